//! What the operator may do: no more than what it does.

use k8s_openapi::api::rbac::v1::PolicyRule;

use crate::endpoints;

/// What it needs wherever it looks after workloads.
pub fn rules() -> Vec<PolicyRule> {
    vec![
        // The finalizer is metadata, so it takes a patch of the object itself.
        rule("argoproj.io", "rolloutplugins", &["list", "watch", "patch"]),
        rule("argoproj.io", "rolloutplugins/status", &["patch"]),
        rule("sts.plus", "phasedrollouts", &["list", "watch", "patch"]),
        rule("sts.plus", "phasedrollouts/status", &["patch"]),
        // Reading one whole is for its template.
        rule("apps", "statefulsets", &["get", "list", "watch", "patch"]),
        // Those of the workload are read; the copy of a stable template is created, and deleted when another version is stable.
        rule(
            "apps",
            "controllerrevisions",
            &["get", "list", "create", "delete"],
        ),
        // A pod that serves is evicted, one that is broken is deleted.
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
        // Those of metrics that are Jobs. The log is for what a failed one said last.
        rule("batch", "jobs", &["list", "watch", "create", "delete"]),
        rule("", "pods/log", &["get"]),
    ]
}

/// What it needs in the namespace of its lease, of that name.
pub fn lease_rules(name: &str) -> Vec<PolicyRule> {
    let lease = rule("coordination.k8s.io", "leases", &["get", "watch", "update"]);
    vec![
        // Creation comes before the name is known to the authorizer; those of other operators have any name.
        rule("coordination.k8s.io", "leases", &["create", "list"]),
        PolicyRule {
            resource_names: Some(vec![name.to_owned()]),
            ..lease
        },
    ]
}

/// What it needs in the namespace `default`, so that it knows where not to ask for metrics: the addresses of the API servers.
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
