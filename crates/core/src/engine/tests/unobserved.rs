//! Decisions before the workload's controller has observed the workload: releases are revoked, and nothing else is done (rules 14 and 16).

use rstest::rstest;

use crate::engine::decide;
use crate::engine::fixture::{returning, rolling, settled};
use crate::plan::{Fingerprint, Share};
use crate::workload::Claim;
use crate::world::{Action, World};

const HELD: Option<Action> = Some(Action::Release(Share::NONE));

fn unobserved(mut world: World, released: i64) -> Option<Action> {
    world.view().observed = false;
    world.view().released = released;
    let decision = decide(&world);
    assert_eq!(decision.memory, world.memory, "nothing is decided");
    assert_eq!(decision.report, None, "nothing is reported");
    decision.action
}

#[rstest]
#[case::at_rest(settled(), 5, HELD)]
#[case::at_rest_and_guarded(settled(), 0, None)]
#[case::the_share_of_the_step(rolling(0), 1, None)]
#[case::more_than_the_share(rolling(0), 5, Some(Action::Release(Share::Pods(1))))]
#[case::in_a_pause(rolling(1), 3, Some(Action::Release(Share::Pods(1))))]
#[case::less_than_the_share(rolling(2), 1, None)]
fn what_is_released_beyond_the_record_is_taken_back(
    #[case] world: World,
    #[case] released: i64,
    #[case] expected: Option<Action>,
) {
    assert_eq!(unobserved(world, released), expected);
}

#[test]
fn while_pods_return_none_is_released() {
    let mut world = returning(["a", "a", "a", "a", "b"]);
    world.view().template = Fingerprint::of("b");
    assert_eq!(unobserved(world, 5), HELD);
}

#[test]
fn in_a_manual_pause_only_what_is_new_stays_released() {
    let mut world = rolling(2);
    world.attempt().paused_by_user = true;
    world.pods(["a", "a", "a", "a", "b"]);
    assert_eq!(unobserved(world, 3), Some(Action::Release(Share::Pods(1))));
}

#[test]
fn the_guard_is_raised_over_pods_that_are_added() {
    let mut world = rolling(1);
    world.view().replicas = 8;
    assert_eq!(unobserved(world, 4), HELD);
}

#[test]
fn an_invalid_plan_releases_no_further_pod() {
    let mut world = rolling(1);
    world.plan = Err(vec!["spec.strategy: nonsense".into()]);
    world.pods(["a", "a", "a", "a", "b"]);
    assert_eq!(unobserved(world, 5), Some(Action::Release(Share::Pods(1))));
}

#[rstest]
#[case::of_another_object(|world: &mut World| world.view().claim = Claim::Inherited)]
#[case::left_to_kubernetes(|world: &mut World| world.suspended = true)]
#[case::not_seen_before(|world: &mut World| world.memory.stable = None)]
#[case::an_invalid_reference(|world: &mut World| {
    world.plan = Err(vec!["spec.workloadRef: nonsense".into()]);
    world.reference_valid = false;
})]
fn what_is_not_managed_is_left_alone(#[case] change: fn(&mut World)) {
    let mut world = settled();
    change(&mut world);
    assert_eq!(unobserved(world, 5), None);
}
