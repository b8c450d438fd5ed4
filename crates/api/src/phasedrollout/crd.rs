//! The CustomResourceDefinition: the types' schema, plus what attributes cannot express.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition,
};
use kube::CustomResourceExt;

use super::PhasedRollout;
use crate::schema::{at, column, rule, served, wide_column};

/// `http://prometheus:9090/prefix`, or `prometheus:9090`.
const ADDRESS: &str = r"^\s*([hH][tT][tT][pP][sS]?://)?([^/?#\s]*@)?(\[[0-9A-Fa-f:.]+\]|[^/?#@:\[\]\s]+)(:0*(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4}))?([/?#]\S*)?$";

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
        // Reject here what the operator would reject: such an object could only release the StatefulSet.
        if let Some(url) = at(schema, &["spec", "check", "query", "url"]) {
            // The API server estimates the cost of the rule from the maximum length.
            url.max_length = Some(2048);
            let address = ADDRESS.replace('\\', r"\\");
            url.x_kubernetes_validations = rule(
                &format!("self.matches('{address}') && !self.matches('/api/v1/query/*$')"),
                "must be the address of a Prometheus, such as http://prometheus:9090/prefix or prometheus:9090, without /api/v1/query",
            );
        }
        if let Some(expr) = at(schema, &["spec", "check", "query", "expr"]) {
            expr.pattern = Some(r"\S".into());
        }
    })
}

fn columns() -> Vec<CustomResourceColumnDefinition> {
    vec![
        column("Target", "string", ".spec.targetRef"),
        column("Phase", "string", ".status.phase"),
        column("Reason", "string", ".status.reason"),
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
        wide_column("Success-On", "string", ".status.successOn"),
        wide_column("Message", "string", ".status.message"),
    ]
}
