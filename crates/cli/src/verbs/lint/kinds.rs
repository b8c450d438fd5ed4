//! The kind of a manifest, or the kind that may have been meant.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};
use stateward_api::Problem;
use stateward_schema::Kind;

use super::near::nearest;

/// The class of a manifest.
#[derive(Debug)]
pub(super) enum Class {
    /// A kind of Stateward's definitions.
    Ours(Box<CustomResourceDefinition>),
    /// A built-in kind of Kubernetes.
    BuiltIn(&'static Kind),
    /// A kind that only a cluster knows.
    Foreign,
    /// Not a Kubernetes object.
    NoObject,
}

/// A group with no kinds but those of Stateward's definitions.
const OURS_ALONE: &str = "sts.plus";

/// Kinds that Kubernetes serves but the table of built-in kinds lacks.
const ALSO_SERVED: [(&str, &str); 1] = [("autoscaling/v1", "HorizontalPodAutoscaler")];

/// The kind of a manifest, or the one that was meant, and the problem with how it is given.
pub(super) fn classify(value: &Value) -> (Class, Option<Problem>) {
    let (version, kind) = (&value["apiVersion"], &value["kind"]);
    let Some(kind) = kind.as_str().filter(|kind| !kind.is_empty()) else {
        // A Chart.yaml has an apiVersion too.
        let is_meant = version.is_string() && (value["metadata"].is_object() || value["spec"].is_object());
        return match is_meant {
            true => (Class::Foreign, Some(problem("kind", "is missing"))),
            false => (Class::NoObject, None),
        };
    };
    let version = match version {
        Value::String(version) => version.as_str(),
        Value::Null => {
            return (by_kind(kind), Some(problem("apiVersion", "is missing")));
        }
        other => {
            let wrong = problem("apiVersion", format!("{other} is not a string; put it in quotes"));
            return (by_kind(kind), Some(wrong));
        }
    };
    if let Some(known) = built_in(|known| known.api_version == version && known.kind == kind) {
        return (Class::BuiltIn(known), None);
    }
    match ours(version, kind) {
        (Class::Foreign, None) => meant_built_in(version, kind),
        found => found,
    }
}

/// The kind of the items of a list such as `RoleList`, if known.
pub(super) fn of_items(list: &Value) -> Option<&str> {
    let kind = list["kind"].as_str()?.strip_suffix("List")?;
    let value = json!({"apiVersion": list["apiVersion"], "kind": kind});
    matches!(classify(&value), (Class::Ours(_) | Class::BuiltIn(_), None)).then_some(kind)
}

/// The class of a kind without a known version.
fn by_kind(kind: &str) -> Class {
    let definition = definitions().find(|definition| definition.spec.names.kind == kind);
    match (definition, built_in(|known| known.kind == kind)) {
        (Some(definition), _) => Class::Ours(Box::new(definition)),
        (None, Some(known)) => Class::BuiltIn(known),
        (None, None) => Class::Foreign,
    }
}

fn definitions() -> impl Iterator<Item = CustomResourceDefinition> {
    stateward_api::definitions().into_iter()
}

fn built_in(is: impl Fn(&Kind) -> bool) -> Option<&'static Kind> {
    stateward_schema::kinds().iter().find(|kind| is(kind))
}

fn ours(version: &str, kind: &str) -> (Class, Option<Problem>) {
    let served = |definition: &CustomResourceDefinition| {
        let versions = definition.spec.versions.iter();
        let versions = versions.map(|version| format!("{}/{}", definition.spec.group, version.name));
        versions.collect::<Vec<_>>()
    };
    if let Some(definition) = definitions().find(|definition| definition.spec.names.kind == kind) {
        let served = served(&definition);
        let wrong = (!served.iter().any(|served| served == version)).then(|| {
            let message = format!("{version:?} is not {}", served.join(" or "));
            problem("apiVersion", message)
        });
        return (Class::Ours(Box::new(definition)), wrong);
    }
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let of_the_group: Vec<_> = definitions()
        .filter(|definition| definition.spec.group == group)
        .collect();
    let names: Vec<_> = of_the_group
        .iter()
        .map(|definition| definition.spec.names.kind.as_str())
        .collect();
    // Argo Rollouts and others have kinds of their own in the shared group.
    match nearest(kind, names.iter().copied()) {
        Some(near) => {
            let wrong = not_a_kind(version, kind, near);
            let definition = of_the_group
                .iter()
                .find(|definition| definition.spec.names.kind == near);
            let class = definition.map_or(Class::Foreign, |definition| {
                Class::Ours(Box::new(definition.clone()))
            });
            (class, Some(wrong))
        }
        None if group == OURS_ALONE => {
            let message = format!("{kind} is not a kind of {version}; it has {}", names.join(", "));
            (Class::Foreign, Some(problem("kind", message)))
        }
        None => (Class::Foreign, None),
    }
}

fn meant_built_in(version: &str, kind: &str) -> (Class, Option<Problem>) {
    let of_the_version = || {
        let kinds = stateward_schema::kinds().iter();
        kinds.filter(|known| known.api_version == version)
    };
    let names = of_the_version().map(|known| known.kind.as_str());
    if let Some(near) = nearest(kind, names)
        && let Some(meant) = of_the_version().find(|known| known.kind == near)
    {
        return (Class::BuiltIn(meant), Some(not_a_kind(version, kind, near)));
    }
    if ALSO_SERVED.contains(&(version, kind)) {
        return (Class::Foreign, None);
    }
    let elsewhere: Vec<_> = stateward_schema::kinds()
        .iter()
        .filter(|known| known.kind == kind)
        .collect();
    let group = |version: &str| version.split_once('/').map_or("", |(group, _)| group).to_owned();
    let (theirs, versions) = (
        group(version),
        elsewhere.iter().map(|known| known.api_version.as_str()),
    );
    // A custom group has a dot, and may also have a StatefulSet kind.
    let known = elsewhere.iter().find(|known| {
        let known = group(&known.api_version);
        known == theirs || !theirs.contains('.') || nearest(&theirs, [known.as_str()]).is_some()
    });
    match known {
        Some(known) => {
            let versions: Vec<_> = versions.collect();
            let message = format!(
                "{version:?} has no {kind}; did you mean {}",
                versions.join(" or ")
            );
            (Class::BuiltIn(known), Some(problem("apiVersion", message)))
        }
        None => (Class::Foreign, None),
    }
}

fn not_a_kind(version: &str, kind: &str, near: &str) -> Problem {
    let message = format!("{kind} is not a kind of {version}; did you mean {near}");
    problem("kind", message)
}

fn problem(field: &str, message: impl Into<String>) -> Problem {
    Problem {
        field: field.into(),
        message: message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn classified(value: &Value) -> (String, Option<String>) {
        let (class, problem) = classify(value);
        let class = match class {
            Class::Ours(definition) => format!("our {}", definition.spec.names.kind),
            Class::BuiltIn(kind) => format!("{} {}", kind.api_version, kind.kind),
            Class::Foreign => "foreign".to_owned(),
            Class::NoObject => "no object".to_owned(),
        };
        (class, problem.map(|problem| problem.to_string()))
    }

    #[rstest]
    #[case("argoproj.io/v1alpha1", "RolloutPlugin", "our RolloutPlugin")]
    #[case("argoproj.io/v1alpha1", "Rollout", "foreign")]
    #[case("argoproj.io/v1alpha1", "Application", "foreign")]
    #[case("argoproj.io/v1alpha1", "Experiment", "foreign")]
    #[case("apps/v1", "StatefulSet", "apps/v1 StatefulSet")]
    #[case("v1", "Service", "v1 Service")]
    #[case("apps.kruise.io/v1beta1", "StatefulSet", "foreign")]
    #[case("monitoring.coreos.com/v1", "ServiceMonitor", "foreign")]
    #[case("networking.k8s.io/v1", "Ingress", "foreign")]
    #[case("autoscaling/v1", "HorizontalPodAutoscaler", "foreign")]
    #[case("serving.knative.dev/v1", "Service", "foreign")]
    #[case("v1", "ReplicationController", "foreign")]
    fn a_kind_is_known_or_passed_over(#[case] version: &str, #[case] kind: &str, #[case] expected: &str) {
        let found = classified(&json!({"apiVersion": version, "kind": kind}));
        assert_eq!(found, (expected.to_owned(), None));
    }

    #[rstest]
    #[case(
        "argoproj.io/v1alpha1",
        "RolloutPlugins",
        "kind: RolloutPlugins is not a kind of argoproj.io/v1alpha1; did you mean RolloutPlugin"
    )]
    #[case(
        "argoproj.io/v1alpha1",
        "rolloutplugin",
        "kind: rolloutplugin is not a kind of argoproj.io/v1alpha1; did you mean RolloutPlugin"
    )]
    #[case(
        "argoproj.io/v1alpha1",
        "AnalysisTemplat",
        "kind: AnalysisTemplat is not a kind of argoproj.io/v1alpha1; did you mean AnalysisTemplate"
    )]
    #[case(
        "sts.plus/v1alpha1",
        "Rollout",
        "kind: Rollout is not a kind of sts.plus/v1alpha1; it has PhasedRollout"
    )]
    #[case(
        "sts.plus/v1alpha2",
        "PhasedRollout",
        "apiVersion: \"sts.plus/v1alpha2\" is not sts.plus/v1alpha1"
    )]
    #[case(
        "apps/v1",
        "StatefullSet",
        "kind: StatefullSet is not a kind of apps/v1; did you mean StatefulSet"
    )]
    #[case(
        "apps/v1",
        "Statefulset",
        "kind: Statefulset is not a kind of apps/v1; did you mean StatefulSet"
    )]
    #[case(
        "apps/v1beta1",
        "StatefulSet",
        "apiVersion: \"apps/v1beta1\" has no StatefulSet; did you mean apps/v1"
    )]
    #[case(
        "app/v1",
        "StatefulSet",
        "apiVersion: \"app/v1\" has no StatefulSet; did you mean apps/v1"
    )]
    #[case(
        "v1",
        "StatefulSet",
        "apiVersion: \"v1\" has no StatefulSet; did you mean apps/v1"
    )]
    #[case(
        "extensions/v1beta1",
        "Deployment",
        "apiVersion: \"extensions/v1beta1\" has no Deployment; did you mean apps/v1"
    )]
    #[case(
        "rbac.authorisation.k8s.io/v1",
        "Role",
        "apiVersion: \"rbac.authorisation.k8s.io/v1\" has no Role; did you mean rbac.authorization.k8s.io/v1"
    )]
    fn what_was_meant_is_said_and_checked(#[case] version: &str, #[case] kind: &str, #[case] expected: &str) {
        let (class, problem) = classified(&json!({"apiVersion": version, "kind": kind}));
        assert_eq!(problem.as_deref(), Some(expected));
        assert_eq!(class == "foreign", kind == "Rollout", "{class}");
    }

    #[rstest]
    #[case(json!({"kind": "StatefulSet"}), "apps/v1 StatefulSet", Some("apiVersion: is missing"))]
    #[case(json!({"kind": "RolloutPlugin"}), "our RolloutPlugin", Some("apiVersion: is missing"))]
    #[case(json!({"kind": "Thing"}), "foreign", Some("apiVersion: is missing"))]
    #[case(json!({"apiVersion": 1, "kind": "Pod"}), "v1 Pod", Some("apiVersion: 1 is not a string; put it in quotes"))]
    #[case(json!({"apiVersion": "v1", "metadata": {}}), "foreign", Some("kind: is missing"))]
    #[case(json!({"apiVersion": "v2", "name": "chart"}), "no object", None)]
    #[case(json!({"replicas": 3}), "no object", None)]
    #[case(json!("text"), "no object", None)]
    #[case(json!({"kind": ["Pod"]}), "no object", None)]
    fn half_of_a_type_is_a_problem(#[case] value: Value, #[case] class: &str, #[case] problem: Option<&str>) {
        assert_eq!(classified(&value), (class.to_owned(), problem.map(str::to_owned)));
    }
}
