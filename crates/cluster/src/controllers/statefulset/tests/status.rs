//! The status of a set, and when the set is synced again.

use std::time::Duration;

use crate::json::{Value, json};
use jiff::SignedDuration;
use rstest::rstest;

use super::build::{SetBuilder, revision, revision_of};
use super::*;
use crate::controllers::Next;
use crate::status::{About, Status};

fn halfway(set: SetBuilder) -> Lab {
    Lab::new()
        .with(set.image("v2").current("v1"))
        .with(revision("v1", 1))
        .with(revision("v2", 2))
}

#[test]
fn counters_are_those_of_the_pods_before_the_sync() {
    let lab = halfway(set("db").replicas(5).parallel().partition(5).min_ready(10))
        .with(pod("db", 0).ready_since("2025-12-31T00:00:00Z"))
        .with(pod("db", 1).ready())
        .with(pod("db", 2).on("v2").running())
        .with(pod("db", 3).on("v2").ready().terminating());
    assert_eq!(lab.synced(), ["create pods db-4"]);
    let status = json!({
        "observedGeneration": 1, "replicas": 4, "readyReplicas": 3, "availableReplicas": 1, "currentReplicas": 2,
        "updatedReplicas": 1, "currentRevision": revision_of("v1"), "updateRevision": revision_of("v2"),
        "collisionCount": 0,
    });
    assert_eq!(lab.set()["status"], status);
}

#[test]
fn counters_that_are_zero_are_left_out_but_for_two() {
    let lab = Lab::new().with(set("db").replicas(1));
    lab.sync().unwrap();
    let status = json!({
        "observedGeneration": 1, "replicas": 0, "availableReplicas": 0, "collisionCount": 0,
        "currentRevision": revision_of("v1"), "updateRevision": revision_of("v1"),
    });
    assert_eq!(lab.set()["status"], status);
}

#[test]
fn a_ready_condition_without_a_running_phase_is_not_ready() {
    let lab = halfway(set("db").partition(1)).with(pod("db", 0).ready().phase("Pending"));
    lab.sync().unwrap();
    assert_eq!(lab.status("readyReplicas"), Value::Null);
    assert_eq!(lab.status("availableReplicas"), 0);
}

#[test]
fn a_status_is_written_only_when_it_says_something_new() {
    let lab = Lab::settled(set("db").replicas(1));
    lab.sync().unwrap();
    assert_eq!(lab.writes(), [] as [&str; 0]);
    // A spec change that affects no pod: only the generation changes.
    lab.edit(|spec| spec["revisionHistoryLimit"] = 5.into());
    lab.sync().unwrap();
    assert_eq!(lab.writes(), ["update statefulsets.apps/status db"]);
    assert_eq!(lab.status("observedGeneration"), 2);
}

#[test]
fn a_collision_count_alone_is_no_news() {
    let lab = Lab::settled(set("db").replicas(1));
    lab.change("statefulsets.apps", "db", |set| {
        set["status"]["collisionCount"] = Value::Null
    });
    lab.sync().unwrap();
    assert_eq!(lab.writes(), [] as [&str; 0]);
}

#[test]
fn conditions_are_lost_with_the_next_report() {
    let lab = Lab::new().with(set("db").status("conditions", json!([{"type": "Mine"}])));
    lab.sync().unwrap();
    assert_eq!(lab.status("conditions"), Value::Null);
}

#[test]
fn an_update_is_complete_when_all_are_ready_though_none_is_available() {
    let lab = halfway(set("db").replicas(1).min_ready(10)).with(pod("db", 0).on("v2").ready());
    lab.sync().unwrap();
    assert_eq!(lab.status("currentRevision"), revision_of("v2"));
    assert_eq!(lab.status("currentReplicas"), 1);
    assert_eq!(lab.status("availableReplicas"), 0);
}

#[rstest]
#[case::one_too_many(set("db").replicas(1), 2)]
#[case::one_missing(set("db").replicas(3), 2)]
#[case::on_delete(set("db").replicas(2).on_delete(), 2)]
fn an_update_is_not_complete_with(#[case] set: SetBuilder, #[case] pods: u32) {
    let lab = (0..pods).fold(halfway(set), |lab, ordinal| {
        lab.with(pod("db", ordinal).on("v2").ready())
    });
    lab.sync().unwrap();
    assert_eq!(lab.status("currentRevision"), revision_of("v1"));
}

#[test]
fn scaling_to_zero_promotes_a_paused_canary() {
    let lab = Lab::settled(set("db").replicas(3).partition(2));
    lab.set_image("v2");
    lab.settle();
    assert_eq!(lab.images(), ["v1", "v1", "v2"]);
    lab.edit(|spec| spec["replicas"] = 0.into());
    lab.settle();
    assert_eq!(lab.status("currentRevision"), revision_of("v2"));
    lab.edit(|spec| spec["replicas"] = 3.into());
    lab.settle();
    assert_eq!(lab.images(), ["v2", "v2", "v2"]);
}

#[test]
fn an_update_counts_each_deletion_off_the_current_replicas() {
    let lab = halfway(set("db").replicas(2))
        .with(pod("db", 0).ready())
        .with(pod("db", 1).ready());
    lab.sync().unwrap();
    assert_eq!(lab.status("currentReplicas"), 1);
    assert_eq!(lab.status("replicas"), 2);
}

#[test]
fn scaling_down_counts_nothing_off() {
    let lab = Lab::settled(set("db").replicas(2));
    lab.edit(|spec| spec["replicas"] = 1.into());
    lab.sync().unwrap();
    assert_eq!(lab.status("currentReplicas"), 2);
}

/// Every pod on the second revision, none on the first, and a third template: the deleted pod is counted off a revision that no pod runs.
#[test]
fn a_third_template_over_a_broken_second_one_survives_a_count_of_minus_one() {
    let lab = Lab::settled(set("db").replicas(2).parallel());
    lab.set_image("v2");
    lab.settle();
    lab.change("statefulsets.apps", "db", |set| {
        set["status"]["currentRevision"] = revision_of("v1").into()
    });
    lab.change("pods", "db-0", |pod| {
        pod["status"]["conditions"][0]["status"] = "False".into()
    });
    lab.settle();
    assert_eq!(lab.status("currentReplicas"), Value::Null);

    lab.set_image("v3");
    let refused = lab.sync().unwrap_err();
    assert_eq!(refused.code, 422);
    assert!(
        refused
            .message
            .contains("status.currentReplicas: Invalid value: -1"),
        "{refused}"
    );
    // By then the revision exists and the pod is terminating; only the status is lost.
    assert_eq!(lab.revisions().last().unwrap(), &("v3".to_owned(), 3));
    assert_eq!(lab.status("updateRevision"), revision_of("v2"));
    assert_eq!(lab.object("pods", "db-1")["metadata"]["deletionTimestamp"], NOW);

    lab.settle();
    assert_eq!(lab.images(), ["v3", "v3"]);
    assert_eq!(lab.status("currentRevision"), revision_of("v3"));
    assert_eq!(lab.status("currentReplicas"), 2);
}

#[test]
fn a_failed_report_is_an_error_after_the_work_is_done() {
    let refusal = Status::bad_request("not now");
    let lab = Lab::new()
        .with(set("db"))
        .refuse("update statefulsets.apps/status db", refusal.clone());
    assert_eq!(lab.sync().unwrap_err(), refusal);
    assert_eq!(lab.names("pods"), ["db-0"]);
}

#[test]
fn a_report_is_tried_five_times_against_other_writers() {
    let about = About {
        group: "apps",
        plural: "statefulsets",
        kind: "StatefulSet",
        name: "db",
    };
    let lab = Lab::new()
        .with(set("db"))
        .refuse("update statefulsets.apps/status db", Status::modified(about));
    assert_eq!(lab.sync().unwrap_err().reason, "Conflict");
    assert_eq!(
        lab.writes()
            .iter()
            .filter(|write| write.contains("/status"))
            .count(),
        5
    );
}

#[test]
fn a_set_that_is_ready_but_not_available_is_looked_at_when_its_first_pod_will_be() {
    let lab = Lab::settled(set("db").replicas(2).parallel().min_ready(30));
    assert_eq!(lab.sync(), Ok(Next::After(Duration::from_secs(30))));
    lab.pass(SignedDuration::from_secs(10));
    lab.change("pods", "db-1", |pod| {
        pod["status"]["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:00:05Z".into();
    });
    assert_eq!(lab.sync(), Ok(Next::After(Duration::from_secs(20))));
    lab.pass(SignedDuration::from_secs(20));
    assert_eq!(
        lab.sync(),
        Ok(Next::After(Duration::from_secs(5))),
        "db-0 is available, db-1 is not"
    );
    assert_eq!(lab.status("availableReplicas"), 1);
    lab.pass(SignedDuration::from_secs(5));
    assert_eq!(lab.sync(), Ok(Next::Wait));
    assert_eq!(lab.status("availableReplicas"), 2);
}

#[test]
fn without_a_time_to_go_by_it_is_looked_at_after_the_whole_wait() {
    let lab = Lab::new()
        .with(set("db").min_ready(30))
        .with(pod("db", 0).ready_since(""));
    assert_eq!(lab.sync(), Ok(Next::After(Duration::from_secs(30))));
}

#[test]
fn without_a_wait_a_ready_pod_is_available_since_whenever() {
    let lab = Lab::new().with(set("db")).with(pod("db", 0).ready_since(""));
    assert_eq!(lab.sync(), Ok(Next::Wait));
    assert_eq!(lab.status("availableReplicas"), 1);
}
