//! The order in which pods are created, replaced and deleted.

use rstest::rstest;

use super::build::{PodBuilder, claim, named_pod, revision};
use super::*;
use crate::status::Status;

fn steady(set: build::SetBuilder) -> Lab {
    Lab::new().with(set.current("v1")).with(revision("v1", 1))
}

#[test]
fn an_ordered_set_creates_one_pod_and_waits_for_it() {
    let lab = steady(set("db").replicas(3));
    assert_eq!(lab.synced(), ["create pods db-0"]);
    assert_eq!(lab.synced(), [] as [&str; 0]);
    assert_eq!(
        lab.events(),
        ["SuccessfulCreate: Create Pod db-0 in StatefulSet db successful"]
    );
}

#[test]
fn an_ordered_set_creates_the_next_pod_once_the_last_is_ready() {
    let lab = steady(set("db").replicas(3)).with(pod("db", 0).ready());
    assert_eq!(lab.synced(), ["create pods db-1"]);
}

#[test]
fn a_parallel_set_creates_all_pods_at_once() {
    let lab = steady(set("db").replicas(3).parallel()).with(pod("db", 1));
    assert_eq!(lab.synced(), ["create pods db-0", "create pods db-2"]);
}

#[rstest]
#[case::pending(pod("db", 0))]
#[case::not_ready(pod("db", 0).running())]
#[case::terminating(pod("db", 0).ready().terminating())]
#[case::not_ready_for_long_enough(pod("db", 0).ready_since("2025-12-31T23:59:51Z"))]
fn an_ordered_set_goes_no_further_than_a_pod_that_is_not_available(#[case] first: PodBuilder) {
    let lab = steady(set("db").replicas(2).min_ready(10).image("v2"))
        .with(first)
        .with(pod("db", 7).ready());
    let made_a_revision = lab.synced();
    assert_eq!(made_a_revision.len(), 1, "{made_a_revision:?}");
    assert!(made_a_revision[0].starts_with("create controllerrevisions"));
}

#[test]
fn a_pod_is_available_the_moment_its_time_is_up() {
    let lab =
        steady(set("db").replicas(2).min_ready(10)).with(pod("db", 0).ready_since("2025-12-31T23:59:50Z"));
    assert_eq!(lab.synced(), ["create pods db-1"]);
}

#[rstest]
#[case("Failed")]
#[case("Succeeded")]
fn a_pod_that_has_ended_is_deleted_and_an_ordered_set_stops(#[case] phase: &str) {
    let lab = steady(set("db").replicas(2)).with(pod("db", 0).phase(phase));
    assert_eq!(lab.synced(), ["delete pods db-0"]);
    assert_eq!(
        lab.events(),
        ["SuccessfulDelete: Delete Pod db-0 in StatefulSet db successful"]
    );
}

#[test]
fn a_failed_pod_that_is_going_is_not_deleted_again() {
    let lab = steady(set("db").replicas(2)).with(pod("db", 0).phase("Failed").terminating());
    assert_eq!(lab.synced(), [] as [&str; 0]);
}

#[test]
fn a_parallel_set_goes_past_a_failed_pod() {
    let lab = steady(set("db").replicas(2).parallel()).with(pod("db", 0).phase("Failed"));
    assert_eq!(lab.synced(), ["delete pods db-0", "create pods db-1"]);
}

/// The snapshot still has the failed pod, so the update deletes it a second time.
#[test]
fn an_outdated_failed_pod_of_a_parallel_set_is_deleted_twice_in_one_sync() {
    let lab = steady(set("db").replicas(1).parallel().image("v2"))
        .with(revision("v2", 2))
        .with(pod("db", 0).phase("Failed"));
    assert_eq!(lab.synced(), ["delete pods db-0", "delete pods db-0"]);
}

#[test]
fn a_pending_pod_gets_its_missing_claims() {
    let lab = steady(set("db").claim("data").claim("logs"))
        .with(claim("data-db-0"))
        .with(pod("db", 0).volume("data", "data-db-0"));
    assert_eq!(lab.synced(), ["create persistentvolumeclaims logs-db-0"]);
    assert_eq!(
        lab.events(),
        ["SuccessfulCreate: Create Claim logs-db-0 Pod db-0 in StatefulSet db success"]
    );
}

#[test]
fn a_refused_pod_is_an_error_with_an_event_and_a_status() {
    let refusal = Status::bad_request("no room");
    let lab = steady(set("db").replicas(2)).refuse("create pods db-0", refusal.clone());
    assert_eq!(lab.sync().unwrap_err(), refusal);
    assert_eq!(
        lab.events(),
        ["Warning FailedCreate: Create Pod db-0 in StatefulSet db failed error: no room"]
    );
    assert_eq!(lab.status("observedGeneration"), 1);
}

#[test]
fn a_pod_that_exists_under_another_owner_is_an_error_without_an_event() {
    let lab = steady(set("db")).with(pod("db", 0).owner_uid("another"));
    let status = lab.sync().unwrap_err();
    assert_eq!(status.reason, "AlreadyExists");
    assert_eq!(lab.events(), [] as [&str; 0]);
}

#[test]
fn a_failing_parallel_set_does_not_start_the_next_batch() {
    let refusal = Status::bad_request("no room");
    let lab = steady(set("db").replicas(7).parallel()).refuse("create pods db-1", refusal.clone());
    assert_eq!(lab.sync().unwrap_err(), refusal);
    assert_eq!(lab.names("pods"), ["db-0", "db-2"]);
}

#[test]
fn several_errors_of_a_batch_become_one() {
    let lab = steady(set("db").replicas(3).parallel())
        .refuse("create pods db-1", Status::bad_request("no room"))
        .refuse("create pods db-2", Status::bad_request("no light"));
    assert_eq!(lab.sync().unwrap_err().message, "[no room, no light]");
}

#[test]
fn an_ordered_set_scales_down_from_the_top_one_pod_at_a_time() {
    let lab = Lab::settled(set("db").replicas(4));
    lab.edit(|spec| spec["replicas"] = 1.into());
    assert_eq!(lab.synced(), ["delete pods db-3"]);
    assert_eq!(lab.synced(), [] as [&str; 0], "it waits for db-3 to be gone");
    lab.remove("pods", "db-3");
    assert_eq!(lab.synced(), ["delete pods db-2"]);
}

#[test]
fn a_parallel_set_scales_down_at_once() {
    let lab = Lab::settled(set("db").replicas(4).parallel());
    lab.edit(|spec| spec["replicas"] = 1.into());
    assert_eq!(
        lab.synced(),
        ["delete pods db-3", "delete pods db-2", "delete pods db-1"]
    );
}

#[test]
fn an_ordered_set_with_a_broken_pod_does_not_scale_down() {
    let lab = steady(set("db").replicas(1))
        .with(pod("db", 0).running())
        .with(pod("db", 1).ready());
    assert_eq!(lab.synced(), [] as [&str; 0]);
}

#[rstest]
#[case::the_only_broken_one_goes(pod("db", 1).ready(), pod("db", 2).running(), &["delete pods db-2"])]
#[case::a_well_one_above_a_broken_one_goes(pod("db", 1).running(), pod("db", 2).ready(), &["delete pods db-2"])]
#[case::a_broken_one_above_a_broken_one_waits(pod("db", 1).running(), pod("db", 2).running(), &[])]
#[case::a_broken_one_above_a_terminating_one_waits(pod("db", 1).ready().terminating(), pod("db", 2).running(), &[])]
#[case::a_terminating_one_holds_the_rest(pod("db", 1).ready(), pod("db", 2).ready().terminating(), &[])]
fn a_condemned_pod_goes_when_nothing_below_it_is_broken(
    #[case] lower: PodBuilder,
    #[case] upper: PodBuilder,
    #[case] expected: &[&str],
) {
    let lab = steady(set("db").replicas(1))
        .with(pod("db", 0).ready())
        .with(lower)
        .with(upper);
    assert_eq!(lab.synced(), expected);
}

#[test]
fn a_condemned_pod_must_be_available_too() {
    let lab = steady(set("db").replicas(0).min_ready(10))
        .with(pod("db", 0).ready_since("2025-12-31T23:59:55Z"))
        .with(pod("db", 1).ready_since("2025-12-31T23:59:55Z"));
    assert_eq!(
        lab.synced(),
        [] as [&str; 0],
        "db-1 is not the first unavailable one"
    );
    lab.remove("pods", "db-1");
    assert_eq!(lab.synced(), ["delete pods db-0"]);
}

#[test]
fn scaling_comes_before_updating() {
    let lab = Lab::settled(set("db").replicas(3));
    lab.edit(|spec| {
        spec["replicas"] = 2.into();
        spec["template"] = build::template("v2");
    });
    let writes = lab.synced();
    assert_eq!(writes.last().unwrap(), "delete pods db-2");
    lab.settle();
    assert_eq!(lab.images(), ["v2", "v2"]);
}

#[test]
fn pods_below_the_first_ordinal_are_condemned() {
    let lab = Lab::settled(set("db").replicas(2));
    lab.edit(|spec| spec["ordinals"] = crate::json::json!({"start": 1}));
    lab.settle();
    assert_eq!(lab.names("pods"), ["db-1", "db-2"]);
}

#[test]
fn a_pod_whose_number_is_no_ordinal_is_let_be() {
    let lab = steady(set("db").replicas(0)).with(named_pod("db", "db-99999999999").ready());
    assert_eq!(lab.synced(), [] as [&str; 0]);
    assert_eq!(lab.status("replicas"), 0, "nor is it counted");
}

#[test]
fn an_enormous_ordered_set_starts_with_its_first_pod() {
    let lab = steady(set("db").replicas(i64::from(i32::MAX)));
    assert_eq!(lab.synced(), ["create pods db-0"]);
}

#[test]
fn a_set_that_is_being_deleted_touches_no_pod() {
    let lab = steady(set("db").replicas(2).deleted())
        .with(pod("db", 0).phase("Failed"))
        .with(pod("db", 7).ready());
    assert_eq!(lab.synced(), [] as [&str; 0]);
    assert_eq!(lab.status("replicas"), 2);
}

#[test]
fn a_settled_set_writes_nothing() {
    let lab = Lab::settled(set("db").replicas(3).claim("data").partition(1));
    lab.sync().unwrap();
    assert_eq!(lab.writes(), [] as [&str; 0]);
    assert_eq!(lab.events(), [] as [&str; 0]);
}
