//! Leases.

use crate::json::Value;

use super::fields::int;
use super::problems::{At, NEGATIVE, Problems};

pub(super) fn validate(object: &Value, problems: &mut Problems) {
    let (at, spec) = (At::new("spec"), &object["spec"]);
    if let Some(seconds) = int(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        problems.invalid(
            &at.field("leaseDurationSeconds"),
            seconds,
            "must be greater than 0",
        );
    }
    if let Some(count) = int(spec, "leaseTransitions").filter(|count| *count < 0) {
        problems.invalid(&at.field("leaseTransitions"), count, NEGATIVE);
    }
}
