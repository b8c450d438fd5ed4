//! The CustomResourceDefinition: the types' schema, with what attributes cannot say.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, ValidationRule,
};
use kube::CustomResourceExt;

use super::PhasedRollout;
use crate::schema::{at, column, wide_column};

/// The definition to apply to a cluster.
pub fn definition() -> CustomResourceDefinition {
    let mut definition = PhasedRollout::crd();
    definition.spec.names.categories = Some(vec!["all".into(), "stateward".into()]);
    for version in &mut definition.spec.versions {
        version.additional_printer_columns = Some(columns());
        let schema = version
            .schema
            .as_mut()
            .and_then(|schema| schema.open_api_v3_schema.as_mut());
        let Some(schema) = schema else { continue };
        if let Some(spec) = at(schema, &["spec"]) {
            spec.x_kubernetes_validations = Some(vec![ValidationRule {
                rule: "!has(self.skipCheck) || !has(self.standardRollingUpdate) || self.skipCheck == self.standardRollingUpdate"
                    .into(),
                message: Some("skipCheck and standardRollingUpdate are two names of the same, and say different things".into()),
                ..Default::default()
            }]);
        }
        if let Some(url) = at(schema, &["spec", "check", "query", "url"]) {
            url.x_kubernetes_validations = Some(vec![ValidationRule {
                rule: r"self.contains('://') ? self.matches('^\\s*[hH][tT][tT][pP][sS]?://[^/:\\s]\\S*$') : self.matches('^\\s*[^/:\\s]\\S*$')"
                    .into(),
                message: Some("must be the address of a Prometheus, such as http://prometheus:9090/prefix or prometheus:9090".into()),
                ..Default::default()
            }]);
        }
    }
    definition
}

fn columns() -> Vec<CustomResourceColumnDefinition> {
    vec![
        column("Target", "string", ".spec.targetRef"),
        column("Phase", "string", ".status.phase"),
        column("Partition", "integer", ".status.rollingPodStatus.partition"),
        column("Rolling-Pod", "string", ".status.rollingPodStatus.status"),
        column(
            "Checks",
            "integer",
            ".status.rollingPodStatus.consecutiveSuccessfulChecks",
        ),
        column("Age", "date", ".metadata.creationTimestamp"),
        wide_column("Started", "date", ".status.rolloutStartTime"),
        wide_column("Ended", "date", ".status.rolloutEndTime"),
        wide_column("Stable", "string", ".status.stableRevision"),
        wide_column("Message", "string", ".status.message"),
    ]
}
