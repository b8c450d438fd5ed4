//! Ownership of pods.

use crate::json::json;
use rstest::rstest;

use super::build::{PodBuilder, named_pod, revision};
use super::*;
use crate::controllers::Next;
use crate::status::{About, Status};

fn steady(set: build::SetBuilder) -> Lab {
    Lab::new().with(set.current("v1")).with(revision("v1", 1))
}

fn owner(lab: &Lab, pod: &str) -> crate::json::Value {
    lab.object("pods", pod)["metadata"]["ownerReferences"].clone()
}

#[test]
fn an_orphan_that_matches_is_adopted_and_counted() {
    let lab = steady(set("db")).with(pod("db", 0).orphan().ready());
    assert_eq!(lab.synced(), ["update pods db-0"]);
    let expected = json!([{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-of-db",
        "controller": true, "blockOwnerDeletion": true,
    }]);
    assert_eq!(owner(&lab, "db-0"), expected);
    assert_eq!(lab.status("readyReplicas"), 1);
}

#[rstest]
#[case::that_is_terminating(pod("db", 3).orphan().terminating())]
#[case::with_other_labels(pod("db", 3).orphan().label("app", "web"))]
#[case::with_another_name(named_pod("db", "web-3").orphan())]
#[case::of_another_set(pod("db", 3).owner_uid("another"))]
fn a_pod_is_left_alone(#[case] pod: PodBuilder) {
    let lab = steady(set("db").replicas(0)).with(pod.ready());
    assert_eq!(lab.synced(), [] as [&str; 0]);
    assert_eq!(lab.status("replicas"), 0);
}

#[rstest]
#[case::its_labels_no_longer_match(pod("db", 0).label("app", "web"), "db-0")]
#[case::its_name_is_not_the_sets(named_pod("db", "web-0"), "web-0")]
fn a_pod_is_released_when(#[case] pod: PodBuilder, #[case] name: &str) {
    let lab = steady(set("db").replicas(0)).with(pod.ready());
    assert_eq!(lab.synced(), [format!("update pods {name}")]);
    assert!(owner(&lab, name).is_null());
}

#[test]
fn a_set_that_is_being_deleted_neither_adopts_nor_releases() {
    let lab = steady(set("db").deleted())
        .with(pod("db", 0).orphan())
        .with(pod("db", 1).label("app", "web"));
    assert_eq!(lab.synced(), [] as [&str; 0]);
}

#[rstest]
#[case::bad_request(400, false)]
#[case::invalid(422, true)]
fn a_refused_release_is_an_error_but_for_an_invalid_one(#[case] code: u16, #[case] fine: bool) {
    let lab = steady(set("db").replicas(0))
        .with(pod("db", 0).label("app", "web"))
        .refuse(
            "update pods db-0",
            Status {
                code,
                ..Status::bad_request("no")
            },
        );
    assert_eq!(lab.sync().is_ok(), fine);
}

#[test]
fn a_refused_adoption_ends_the_sync() {
    let lab = steady(set("db").replicas(2))
        .with(pod("db", 0).orphan())
        .refuse("update pods db-0", Status::bad_request("not now"));
    assert_eq!(lab.sync().unwrap_err().message, "not now");
    assert_eq!(lab.writes(), ["update pods db-0"]);
}

#[test]
fn an_adoption_is_tried_again_against_other_writers() {
    let about = About {
        group: "",
        plural: "pods",
        kind: "Pod",
        name: "db-0",
    };
    let lab = steady(set("db"))
        .with(pod("db", 0).orphan())
        .refuse("update pods db-0", Status::modified(about));
    lab.sync().unwrap_err();
    assert_eq!(lab.writes().len(), 5);
}

#[test]
fn an_owner_that_is_no_controller_stays_beside_us() {
    let lab = steady(set("db")).with(pod("db", 0).ready());
    lab.change("pods", "db-0", |pod| {
        pod["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}]);
    });
    lab.sync().unwrap();
    assert_eq!(owner(&lab, "db-0").as_array().unwrap().len(), 2);
    lab.change("pods", "db-0", |pod| {
        pod["metadata"]["labels"]["app"] = "web".into()
    });
    let _ = lab.sync();
    assert_eq!(owner(&lab, "db-0")[0]["kind"], "ConfigMap");
    assert_eq!(owner(&lab, "db-0").as_array().unwrap().len(), 1);
}

#[test]
fn a_set_that_is_gone_needs_nothing() {
    assert_eq!(Lab::new().sync(), Ok(Next::Wait));
}

#[test]
fn a_set_with_an_invalid_selector_is_not_tried_again() {
    let selector = json!({"matchExpressions": [{"key": "app", "operator": "Near"}]});
    let lab = Lab::new().with(set("db").spec("selector", selector));
    assert_eq!(lab.sync(), Ok(Next::Wait));
    assert_eq!(lab.writes(), [] as [&str; 0]);
}
