//! The CustomResourceDefinition: the types' schema, with what attributes cannot say.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition,
};
use kube::CustomResourceExt;

use super::PhasedRollout;
use crate::schema::{at, column, rule, served, wide_column};

/// The definition to apply to a cluster.
pub fn definition() -> CustomResourceDefinition {
    served(PhasedRollout::crd(), &columns(), |schema| {
        if let Some(spec) = at(schema, &["spec"]) {
            spec.x_kubernetes_validations = rule(
                "!has(self.skipCheck) || !has(self.standardRollingUpdate) || self.skipCheck == self.standardRollingUpdate",
                "skipCheck and standardRollingUpdate are two names of the same, and say different things",
            );
        }
        if let Some(query) = at(schema, &["spec", "check", "query"]) {
            query.x_kubernetes_validations = rule(
                "!has(self.caCertificate) || self.caCertificate == '' || !has(self.insecureSkipVerify) || !self.insecureSkipVerify",
                "caCertificate and insecureSkipVerify are given: a certificate is checked or it is not",
            );
        }
        if let Some(url) = at(schema, &["spec", "check", "query", "url"]) {
            url.x_kubernetes_validations = rule(
                r"self.contains('://') ? self.matches('^\\s*[hH][tT][tT][pP][sS]?://[^/:\\s]\\S*$') : self.matches('^\\s*[^/:\\s]\\S*$')",
                "must be the address of a Prometheus, such as http://prometheus:9090/prefix or prometheus:9090",
            );
        }
    })
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
