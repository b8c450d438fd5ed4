//! The sets that a change triggers.

use std::sync::Arc;

use crate::json::{Value, json};
use rstest::rstest;

use super::super::StatefulSets;
use super::build::PodBuilder;
use super::*;
use crate::controllers::{Changed, Controller};

/// `db` and `web` select the same labels, `other` does not.
fn three_sets() -> Lab {
    let other = set("other").spec("selector", json!({"matchLabels": {"app": "other"}}));
    let everything = set("everything").spec("selector", json!({}));
    Lab::new()
        .with(set("db"))
        .with(set("web"))
        .with(other)
        .with(everything)
}

fn woken(resource: &str, before: Option<Value>, after: Option<Value>) -> Vec<String> {
    let change = Changed {
        resource: resource.into(),
        before: before.map(Arc::new),
        after: after.map(Arc::new),
    };
    let keys = StatefulSets::default().concerned(&change, &three_sets());
    assert!(keys.iter().all(|key| key.namespace == "lab"));
    keys.into_iter().map(|key| key.name).collect()
}

fn object(builder: PodBuilder) -> Value {
    <(&str, Value)>::from(builder).1
}

#[rstest]
#[case::created(None, Some(pod("db", 0)), &["db"])]
#[case::changed(Some(pod("db", 0)), Some(pod("db", 0).ready()), &["db"])]
#[case::deleted(Some(pod("db", 0)), None, &["db"])]
#[case::first_seen_on_its_way_out(None, Some(pod("db", 0).terminating()), &["db"])]
#[case::owned_by_an_earlier_set_of_that_name(None, Some(pod("db", 0).owner_uid("earlier")), &[])]
#[case::owned_by_a_set_that_is_gone(None, Some(pod("gone", 0)), &[])]
#[case::created_as_an_orphan(None, Some(pod("db", 0).orphan()), &["db", "web"])]
#[case::created_as_an_orphan_that_nobody_selects(None, Some(pod("db", 0).orphan().label("app", "x")), &[])]
#[case::an_orphan_seen_on_its_way_out(None, Some(pod("db", 0).orphan().terminating()), &[])]
#[case::an_orphan_deleted(Some(pod("db", 0).orphan()), None, &[])]
#[case::an_orphan_changed_otherwise(Some(pod("db", 0).orphan()), Some(pod("db", 0).orphan().ready()), &[])]
#[case::an_orphan_relabelled(Some(pod("db", 0).orphan().label("app", "x")), Some(pod("db", 0).orphan()), &["db", "web"])]
#[case::orphaned(Some(pod("other", 0)), Some(pod("other", 0).orphan()), &["other", "db", "web"])]
#[case::handed_over(Some(pod("db", 0)), Some(pod("web", 0)), &["db", "web"])]
fn a_pod_wakes(
    #[case] before: Option<PodBuilder>,
    #[case] after: Option<PodBuilder>,
    #[case] expected: &[&str],
) {
    assert_eq!(woken("pods", before.map(object), after.map(object)), expected);
}

#[test]
fn a_pod_of_another_kind_of_controller_wakes_nobody() {
    let mut pod = object(pod("db", 0));
    pod["metadata"]["ownerReferences"][0]["kind"] = "ReplicaSet".into();
    assert_eq!(woken("pods", None, Some(pod)), [] as [&str; 0]);
}

#[test]
fn a_set_wakes_itself_also_when_it_is_gone() {
    let (_, object) = set("db").into();
    assert_eq!(woken("statefulsets.apps", None, Some(object.clone())), ["db"]);
    assert_eq!(woken("statefulsets.apps", Some(object), None), ["db"]);
}

#[rstest]
#[case("persistentvolumeclaims")]
#[case("controllerrevisions.apps")]
fn claims_and_revisions_wake_nobody(#[case] resource: &str) {
    assert_eq!(woken(resource, None, Some(object(pod("db", 0)))), [] as [&str; 0]);
    assert!(!StatefulSets::default().watches().contains(&resource));
}
