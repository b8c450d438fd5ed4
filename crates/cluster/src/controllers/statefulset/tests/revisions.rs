//! ControllerRevisions: created, reused, deleted.

use crate::json::json;
use rstest::rstest;
use stateward_core::revision::{self as names, RevisionName};

use super::build::{named_pod, revision, revision_of, template};
use super::*;
use crate::status::Status;

#[test]
fn a_revision_holds_the_template_and_is_named_by_its_hash() {
    let lab = Lab::new().with(set("db").annotation("note", "hello"));
    lab.sync().unwrap();
    let name = revision_of("v1");
    let made = lab.object("controllerrevisions.apps", &name);
    let hash = name.strip_prefix("db-").unwrap();
    assert_eq!(
        made["metadata"]["labels"],
        json!({"app": "db", "controller.kubernetes.io/hash": hash})
    );
    assert_eq!(made["metadata"]["annotations"], json!({"note": "hello"}));
    assert_eq!(
        made["metadata"]["ownerReferences"],
        json!([{
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-of-db",
            "controller": true, "blockOwnerDeletion": true,
        }])
    );
    assert_eq!(made["revision"], 1);
    assert_eq!(
        made["data"].to_string(),
        names::data(&(&template("v1")).into()),
        "byte for byte"
    );
}

#[rstest]
#[case("replicas", json!(7))]
#[case("minReadySeconds", json!(7))]
#[case("volumeClaimTemplates", json!([]))]
#[case("updateStrategy", json!({"type": "OnDelete"}))]
fn nothing_but_the_template_makes_a_revision(#[case] field: &str, #[case] value: crate::json::Value) {
    let lab = Lab::settled(set("db"));
    lab.edit(|spec| spec[field] = value);
    lab.sync().unwrap();
    assert_eq!(lab.revisions(), [("v1".to_owned(), 1)]);
}

#[test]
fn a_template_put_back_reuses_its_revision_with_the_newest_number() {
    let lab = Lab::settled(set("db"));
    for image in ["v2", "v1"] {
        lab.set_image(image);
        lab.settle();
    }
    assert_eq!(lab.revisions(), [("v1".to_owned(), 3), ("v2".to_owned(), 2)]);
    assert_eq!(lab.status("updateRevision"), revision_of("v1"));
}

#[test]
fn of_two_equal_revisions_the_newer_is_put_back() {
    let lab = Lab::new()
        .with(set("db"))
        .with(revision("v1", 1).named("db-old"))
        .with(revision("v1", 2).named("db-new"))
        .with(revision("v2", 3));
    assert_eq!(
        lab.synced(),
        ["update controllerrevisions.apps db-new", "create pods db-0"]
    );
    assert_eq!(lab.status("updateRevision"), "db-new");
}

/// Its bytes differ, but it restores the same template.
#[test]
fn the_newest_revision_is_kept_when_putting_it_back_would_change_nothing() {
    let data = json!({"spec": {"template": template("v1")}});
    let lab = Lab::new()
        .with(set("db"))
        .with(revision("v1", 4).named("db-handmade").data(data));
    assert_eq!(lab.synced(), ["create pods db-0"]);
    assert_eq!(lab.status("updateRevision"), "db-handmade");
}

#[test]
fn revisions_with_one_number_are_told_apart_by_age_and_name() {
    let lab = Lab::new()
        .with(set("db"))
        .with(revision("v2", 1).named("a"))
        .with(revision("v1", 1).named("b"));
    assert_eq!(lab.synced(), ["create pods db-0"], "b is the newest, and equal");
    lab.change("controllerrevisions.apps", "a", |a| {
        a["metadata"]["creationTimestamp"] = "2026-01-01T00:00:01Z".into()
    });
    assert_eq!(
        lab.synced(),
        ["update controllerrevisions.apps b"],
        "now it is not"
    );
}

#[test]
fn a_taken_name_raises_the_collision_count() {
    let lab = Lab::new()
        .with(set("db"))
        .with(revision("v1", 7).orphan().data(json!({"not": "a template"})));
    lab.change("controllerrevisions.apps", &revision_of("v1"), |squatter| {
        squatter["metadata"]["labels"] = json!({})
    });
    lab.sync().unwrap();
    let name = RevisionName::of("db", &(&template("v1")).into(), 1);
    assert_eq!(lab.status("updateRevision"), name.as_str());
    assert_eq!(lab.status("collisionCount"), 1);
    let made = lab.object("controllerrevisions.apps", name.as_str());
    let first_try = revision_of("v1").strip_prefix("db-").unwrap().to_owned();
    assert_eq!(
        made["metadata"]["labels"]["controller.kubernetes.io/hash"],
        first_try
    );
}

#[test]
fn a_taken_name_with_the_same_data_is_used_as_it_is() {
    let lab = Lab::new().with(set("db")).with(revision("v1", 7));
    lab.change("controllerrevisions.apps", &revision_of("v1"), |hidden| {
        hidden["metadata"]["labels"] = json!({})
    });
    lab.sync().unwrap();
    assert_eq!(lab.status("updateRevision"), revision_of("v1"));
    assert_eq!(lab.status("collisionCount"), 0);
}

#[test]
fn deleting_the_current_revision_promotes_the_canary() {
    let lab = Lab::settled(set("db").replicas(3).partition(2));
    lab.set_image("v2");
    lab.settle();
    lab.remove("controllerrevisions.apps", &revision_of("v1"));
    lab.remove("pods", "db-0");
    lab.settle();
    assert_eq!(lab.images(), ["v2", "v1", "v2"]);
    assert_eq!(lab.status("currentRevision"), revision_of("v2"));
}

#[rstest]
#[case::two(2, &["v2", "v3"])]
#[case::none(0, &[])]
#[case::negative_keeps_all(-1, &["v1", "v2", "v3"])]
fn old_revisions_are_kept_up_to_the_limit(#[case] limit: i64, #[case] kept: &[&str]) {
    let lab = Lab::settled(set("db").history_limit(limit));
    for image in ["v2", "v3", "v4"] {
        lab.set_image(image);
        lab.settle();
    }
    lab.settle();
    let revisions = lab.revisions();
    let images: Vec<_> = revisions
        .iter()
        .map(|(image, _)| image.as_str())
        .filter(|image| *image != "v4")
        .collect();
    assert_eq!(images, kept);
}

#[test]
fn a_revision_that_a_pod_carries_is_not_forgotten() {
    let lab = Lab::new()
        .with(set("db").history_limit(0).image("v4").current("v3").partition(9))
        .with(revision("v1", 1))
        .with(revision("v2", 2))
        .with(revision("v3", 3))
        .with(revision("v4", 4))
        .with(pod("db", 0).on("v2").running());
    assert_eq!(
        lab.synced(),
        [format!("delete controllerrevisions.apps {}", revision_of("v1"))]
    );
}

#[test]
fn history_is_cut_also_when_the_pods_failed() {
    let lab = Lab::new()
        .with(set("db").history_limit(0).image("v2"))
        .with(revision("v1", 1))
        .with(revision("v2", 2))
        .refuse("create pods db-0", Status::bad_request("no room"));
    lab.sync().unwrap_err();
    assert_eq!(lab.revisions(), [("v2".to_owned(), 2)]);
}

/// Without a chosen revision, only pods protect one from deletion.
#[test]
fn a_refused_revision_can_cost_the_current_one() {
    let lab = Lab::new()
        .with(set("db").history_limit(0).image("v2").current("v1"))
        .with(revision("v1", 1))
        .refuse(
            &format!("create controllerrevisions.apps {}", revision_of("v2")),
            Status::bad_request("no room"),
        );
    assert_eq!(lab.sync().unwrap_err().message, "no room");
    assert_eq!(lab.revisions(), []);
}

#[test]
fn a_revision_of_another_set_is_not_ours() {
    let lab = Lab::new().with(set("db")).with(revision("v1", 9).named("web-1"));
    lab.change("controllerrevisions.apps", "web-1", |web| {
        web["metadata"]["ownerReferences"][0]["uid"] = "other".into()
    });
    lab.sync().unwrap();
    assert_eq!(
        lab.object("controllerrevisions.apps", &revision_of("v1"))["revision"],
        1
    );
}

#[test]
fn an_orphaned_revision_is_adopted_before_anything_else() {
    let lab = Lab::new().with(set("db")).with(revision("v1", 1).orphan());
    let name = revision_of("v1");
    assert_eq!(
        lab.synced(),
        [
            format!("update controllerrevisions.apps {name}"),
            "create pods db-0".to_owned()
        ]
    );
    assert_eq!(
        lab.object("controllerrevisions.apps", &name)["metadata"]["ownerReferences"][0]["uid"],
        "uid-of-db"
    );
}

#[test]
fn a_set_that_is_being_deleted_adopts_no_revision_and_goes_no_further() {
    let lab = Lab::new()
        .with(set("db").deleted())
        .with(revision("v1", 1).orphan());
    let message = lab.sync().unwrap_err().message;
    assert!(
        message.starts_with("cannot adopt revisions: StatefulSet lab/db is being deleted"),
        "{message}"
    );
    assert_eq!(lab.writes(), [] as [&str; 0]);
}

#[test]
fn a_current_revision_that_holds_no_patch_is_an_error() {
    let lab = Lab::new()
        .with(set("db").status("currentRevision", "db-odd".into()))
        .with(revision("v1", 1).named("db-odd").data("odd".into()))
        .with(named_pod("db", "db-0").ready());
    assert_eq!(
        lab.sync().unwrap_err().message,
        "revision db-odd holds no patch of a StatefulSet"
    );
}
