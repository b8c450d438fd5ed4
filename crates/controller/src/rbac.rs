//! The permissions of the operator: only those that it uses.

use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::endpoints;

/// The rules for the namespaces that it manages.
pub fn rules() -> Vec<PolicyRule> {
    vec![
        // The finalizer is metadata, so it needs a patch of the object itself.
        rule("argoproj.io", "rolloutplugins", &["list", "watch", "patch"]),
        rule("argoproj.io", "rolloutplugins/status", &["patch"]),
        rule("sts.plus", "phasedrollouts", &["list", "watch", "patch"]),
        rule("sts.plus", "phasedrollouts/status", &["patch"]),
        // A complete set is read for its template.
        rule("apps", "statefulsets", &["get", "list", "watch", "patch"]),
        // The workload's revisions are read; the copy of a stable template is created, and deleted when another version becomes stable.
        rule(
            "apps",
            "controllerrevisions",
            &["get", "list", "create", "delete"],
        ),
        // A pod that serves clients is evicted, a broken one is deleted.
        rule("", "pods", &["list", "watch", "delete"]),
        rule("", "pods/eviction", &["create"]),
        rule("", "events", &["create"]),
        rule("argoproj.io", "analysistemplates", &["list", "watch"]),
        rule("argoproj.io", "clusteranalysistemplates", &["list", "watch"]),
        // A run has no status subresource: its status is written with the run.
        rule(
            "argoproj.io",
            "analysisruns",
            &["list", "watch", "create", "patch", "delete"],
        ),
        // Measurements that are Jobs. The log is read for the last output of a failed one.
        rule("batch", "jobs", &["list", "watch", "create", "delete"]),
        rule("", "pods/log", &["get"]),
    ]
}

/// The rules in the namespace of the Lease with this name.
pub fn lease_rules(name: &str) -> Vec<PolicyRule> {
    let lease = rule("coordination.k8s.io", "leases", &["get", "watch", "update"]);
    vec![
        // The authorizer does not know the name of a created object; other operators' Leases may have any name.
        rule("coordination.k8s.io", "leases", &["create", "list"]),
        PolicyRule {
            resource_names: Some(vec![name.to_owned()]),
            ..lease
        },
    ]
}

/// The rules in the namespace `default`, to find the addresses of the API servers, which metrics must not query.
pub fn endpoint_rules() -> Vec<PolicyRule> {
    vec![PolicyRule {
        resource_names: Some(vec![endpoints::NAME.to_owned()]),
        ..rule("discovery.k8s.io", "endpointslices", &["get"])
    }]
}

fn rule(group: &str, resource: &str, verbs: &[&str]) -> PolicyRule {
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..PolicyRule::default()
    }
}
