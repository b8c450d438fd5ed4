//! The revision of a new pod, and the next outdated pod to delete.

use crate::json::{Value, json};
use rstest::rstest;

use super::super::MaxUnavailable::{self, Budget, BudgetBesideBroken};
use super::build::{PodBuilder, SetBuilder, revision};
use super::*;

/// A set in an update from `v1` to `v2`.
fn halfway(set: SetBuilder) -> Lab {
    Lab::new()
        .with(set.image("v2").current("v1"))
        .with(revision("v1", 1))
        .with(revision("v2", 2))
}

#[rstest]
#[case::below_the_partition(set("db").replicas(3).partition(2), 1, "v1")]
#[case::at_the_partition(set("db").replicas(3).partition(2), 2, "v2")]
#[case::index_below_the_partition(set("db").replicas(3).start(5).partition(1), 5, "v1")]
#[case::ordinal_above_but_index_at_the_partition(set("db").replicas(3).start(5).partition(1), 6, "v2")]
#[case::no_block_below_the_current_count(
    set("db").replicas(3).without_rolling_block().status("currentReplicas", json!(2)), 1, "v1")]
#[case::no_block_at_the_current_count(
    set("db").replicas(3).without_rolling_block().status("currentReplicas", json!(1)), 1, "v2")]
#[case::no_block_and_no_count(set("db").replicas(3).without_rolling_block(), 0, "v2")]
#[case::on_delete(set("db").replicas(3).on_delete().status("currentReplicas", json!(3)), 0, "v2")]
fn a_missing_pod_comes_back_as(#[case] set: SetBuilder, #[case] ordinal: i64, #[case] expected: &str) {
    let lab = halfway(set.parallel());
    lab.sync().unwrap();
    let pod = lab.object("pods", &format!("db-{ordinal}"));
    assert_eq!(pod["spec"]["containers"][0]["image"], expected);
    assert_eq!(
        pod["metadata"]["labels"]["controller-revision-hash"],
        build::revision_of(expected)
    );
}

#[test]
fn a_new_set_ignores_its_partition() {
    let lab = Lab::settled(set("db").replicas(3).partition(2));
    assert_eq!(lab.images(), ["v1", "v1", "v1"]);
    assert_eq!(lab.revisions().len(), 1);
}

#[test]
fn pods_are_updated_from_the_top_down_to_the_partition() {
    let lab = Lab::settled(set("db").replicas(4).partition(2));
    lab.set_image("v2");
    assert_eq!(lab.synced().last().unwrap(), "delete pods db-3");
    lab.settle();
    assert_eq!(lab.images(), ["v1", "v1", "v2", "v2"]);
}

#[test]
fn ordinals_added_above_the_partition_start_on_the_new_revision() {
    let lab = Lab::settled(set("db").replicas(2).partition(1));
    lab.set_image("v2");
    lab.edit(|spec| spec["replicas"] = 4.into());
    lab.settle();
    assert_eq!(lab.images(), ["v1", "v2", "v2", "v2"]);
}

#[test]
fn raising_the_partition_moves_no_pod_back() {
    let lab = Lab::settled(set("db").replicas(3).partition(1));
    lab.set_image("v2");
    lab.settle();
    lab.edit(|spec| spec["updateStrategy"]["rollingUpdate"]["partition"] = 3.into());
    assert_eq!(lab.synced(), [] as [&str; 0]);
}

#[test]
fn a_partition_beyond_the_replicas_holds_every_pod() {
    let lab = Lab::settled(set("db").replicas(2).partition(100));
    lab.set_image("v2");
    lab.settle();
    assert_eq!(lab.images(), ["v1", "v1"]);
}

#[rstest]
#[case::the_highest_outdated_one(pod("db", 1).ready(), pod("db", 2).ready(), &["delete pods db-2"])]
#[case::the_next_below_an_updated_one(pod("db", 1).ready(), pod("db", 2).on("v2").ready(), &["delete pods db-1"])]
#[case::an_updated_one_that_is_not_ready_holds(pod("db", 1).ready(), pod("db", 2).on("v2").running(), &[])]
#[case::a_terminating_one_holds(pod("db", 1).ready(), pod("db", 2).ready().terminating(), &[])]
#[case::a_broken_outdated_one_goes(pod("db", 1).ready(), pod("db", 2).running(), &["delete pods db-2"])]
#[case::a_broken_one_below_is_no_reason_to_wait(pod("db", 1).running(), pod("db", 2).ready(), &["delete pods db-2"])]
fn a_parallel_set_updates_one_pod_at_a_time(
    #[case] lower: PodBuilder,
    #[case] upper: PodBuilder,
    #[case] expected: &[&str],
) {
    let lab = halfway(set("db").replicas(3).parallel())
        .with(pod("db", 0).ready())
        .with(lower)
        .with(upper);
    assert_eq!(lab.synced(), expected);
}

#[test]
fn a_set_on_delete_updates_only_what_somebody_deletes() {
    let lab = Lab::settled(set("db").replicas(2).on_delete());
    lab.set_image("v2");
    lab.settle();
    assert_eq!(lab.images(), ["v1", "v1"]);
    lab.remove("pods", "db-0");
    lab.settle();
    assert_eq!(lab.images(), ["v2", "v1"]);
}

#[rstest]
#[case::an_ordered_set_stays_stuck(false, "bad")]
#[case::a_parallel_set_heals(true, "v1")]
fn after_a_revert_of_a_broken_template(#[case] parallel: bool, #[case] last: &str) {
    let new = set("db").replicas(2);
    let lab = Lab::settled(if parallel { new.parallel() } else { new });
    lab.set_image("bad");
    lab.settle();
    assert_eq!(lab.images(), ["v1", "bad"]);
    lab.set_image("v1");
    lab.settle();
    assert_eq!(lab.images(), ["v1", last]);
}

/// Created on the current revision because of the last status, and deleted as outdated in the same sync: another cause of a count of -1.
#[test]
fn without_a_block_a_parallel_set_may_delete_what_it_has_just_created() {
    let lab = halfway(
        set("db")
            .replicas(1)
            .parallel()
            .without_rolling_block()
            .status("currentReplicas", json!(1)),
    );
    assert_eq!(lab.sync().unwrap_err().code, 422);
    assert_eq!(lab.writes()[..2], ["create pods db-0", "delete pods db-0"]);
}

#[rstest]
#[case::the_default(json!(null), &["delete pods db-3"])]
#[case::a_number(json!(2), &["delete pods db-3", "delete pods db-2"])]
#[case::a_share(json!("75%"), &["delete pods db-3", "delete pods db-2", "delete pods db-1"])]
#[case::a_share_rounded_down(json!("74%"), &["delete pods db-3", "delete pods db-2"])]
#[case::never_less_than_one(json!("1%"), &["delete pods db-3"])]
fn a_budget_lets_several_pods_go(
    #[case] max_unavailable: Value,
    #[case] expected: &[&str],
    #[values(Budget, BudgetBesideBroken)] gate: MaxUnavailable,
    #[values(false, true)] parallel: bool,
) {
    let set = set("db").replicas(4).max_unavailable(max_unavailable);
    let lab = (0..4).fold(
        halfway(if parallel { set.parallel() } else { set }).gate(gate),
        |lab, ordinal| lab.with(pod("db", ordinal).ready()),
    );
    assert_eq!(lab.synced(), expected);
}

#[test]
fn the_field_does_nothing_while_its_gate_is_off() {
    let lab = halfway(set("db").replicas(2).max_unavailable(json!(2)))
        .with(pod("db", 0).ready())
        .with(pod("db", 1).ready());
    assert_eq!(lab.synced(), ["delete pods db-1"]);
}

#[rstest]
#[case(json!("two"))]
#[case(json!("2"))]
#[case(json!({}))]
fn a_budget_that_cannot_be_read_is_an_error(#[case] max_unavailable: Value) {
    let lab = halfway(set("db").max_unavailable(max_unavailable))
        .gate(Budget)
        .with(pod("db", 0).ready());
    let message = lab.sync().unwrap_err().message;
    assert!(
        message.starts_with("spec.updateStrategy.rollingUpdate.maxUnavailable of StatefulSet db: "),
        "{message}"
    );
}

#[rstest]
#[case::all_of_the_budget_is_taken(1, Budget, &[])]
#[case::what_is_left_goes_to_the_top(2, Budget, &["delete pods db-3"])]
#[case::broken_ones_go_beside_it(1, BudgetBesideBroken, &["delete pods db-1"])]
#[case::broken_ones_first_then_the_budget(2, BudgetBesideBroken, &["delete pods db-1", "delete pods db-3"])]
fn a_broken_outdated_pod_takes_from_the_budget(
    #[case] max_unavailable: i64,
    #[case] gate: MaxUnavailable,
    #[case] expected: &[&str],
) {
    let set = set("db")
        .replicas(4)
        .parallel()
        .max_unavailable(max_unavailable.into());
    let lab = halfway(set).gate(gate);
    let lab = lab
        .with(pod("db", 0).ready())
        .with(pod("db", 1).running())
        .with(pod("db", 2).ready())
        .with(pod("db", 3).ready());
    assert_eq!(lab.synced(), expected);
}

#[rstest]
fn unavailable_pods_below_the_partition_take_from_the_budget(
    #[values(Budget, BudgetBesideBroken)] gate: MaxUnavailable,
) {
    let set = set("db")
        .replicas(3)
        .parallel()
        .partition(1)
        .max_unavailable(json!(2));
    let lab = halfway(set)
        .gate(gate)
        .with(pod("db", 0).running())
        .with(pod("db", 1).ready())
        .with(pod("db", 2).ready());
    assert_eq!(lab.synced(), ["delete pods db-2"]);
}

/// k/k#137409 and its fix.
#[rstest]
#[case(Budget, "bad")]
#[case(BudgetBesideBroken, "v1")]
fn a_parallel_set_heals_under_a_budget_only_since_1_37(#[case] gate: MaxUnavailable, #[case] last: &str) {
    let lab = Lab::settled(set("db").replicas(2).parallel()).gate(gate);
    lab.set_image("bad");
    lab.settle();
    lab.set_image("v1");
    lab.settle();
    assert_eq!(lab.images(), ["v1", last]);
}
