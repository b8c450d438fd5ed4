//! Scales: the object that a client writes to change the replicas of a workload.

use crate::json::Value;

use super::problems::{At, Problems};
use super::validation;

pub(super) fn validate(object: &Value, problems: &mut Problems) {
    validation::metadata::of_kind("scales.autoscaling", object, problems);
    problems.non_negative(&At::new("spec"), &object["spec"], "replicas");
}

#[cfg(test)]
mod tests {
    use super::super::validate_scale;
    use crate::json::json;
    use rstest::rstest;

    #[rstest]
    #[case(3, 0)]
    #[case(0, 0)]
    #[case(-1, 1)]
    fn replicas_are_not_negative(#[case] replicas: i32, #[case] errors: usize) {
        let scale = json!({"metadata": {"name": "db", "namespace": "n"}, "spec": {"replicas": replicas}});
        assert_eq!(validate_scale(&scale).len(), errors);
    }
}
