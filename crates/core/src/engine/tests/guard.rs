//! While no rollout is in progress (rules 1, 15 and 18).

use rstest::rstest;

use super::{message, notices, phase, silent};
use crate::engine::decide;
use crate::engine::fixture::{revision, rolling, settled};
use crate::memory::{Activity, Cause};
use crate::plan::Share;
use crate::workload::Claim;
use crate::world::{Action, Phase, Reason, World};

/// Rule 18
#[test]
fn a_settled_world_is_left_alone() {
    assert!(silent(&settled()));
    assert_eq!(phase(&decide(&settled())), (Phase::Successful, Reason::Stable));
}

/// Rule 1
#[test]
fn the_guard_is_put_back_where_it_was_taken_down() {
    let mut world = settled();
    world.view().released = 5;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
    world.view().released = -2;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
}

/// Rule 15: the claim is written with the partition, even if the partition is already right.
#[test]
fn a_set_that_is_guarded_by_chance_is_claimed() {
    let mut world = settled();
    world.view().claim = Claim::Free;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
}

/// Rule 1
#[rstest]
#[case::open(|world: &mut World| world.view().released = 5, Reason::Guarding)]
#[case::not_ours(|world: &mut World| world.view().claim = Claim::Free, Reason::Guarding)]
#[case::tighter_than_need_be(|world: &mut World| world.view().released = -2, Reason::Stable)]
fn nothing_is_well_before_the_guard_is_up(#[case] open: fn(&mut World), #[case] reason: Reason) {
    let mut world = settled();
    open(&mut world);
    assert_eq!(phase(&decide(&world)).1, reason);
}

/// Rule 9
#[test]
fn a_pod_astray_at_rest_is_brought_back() {
    let mut world = settled();
    world.pods(["a", "a", "a", "a", "b"]);
    let decision = decide(&world);
    assert!(
        matches!(&decision.memory.activity, Activity::RollingBack(back) if back.cause == Cause::TemplateReverted)
    );
    world.memory = decision.memory;
    assert!(matches!(decide(&world).action, Some(Action::Remove { pod, .. }) if pod == "db-4"));
}

/// Rule 9
#[test]
fn a_pod_that_scaling_takes_away_is_not_astray() {
    let mut world = settled();
    world.pods(["a", "a", "a", "a", "a", "b"]);
    assert!(silent(&world));
}

/// Rule 16
#[test]
fn nothing_is_decided_on_what_its_controller_has_not_seen() {
    let mut world = rolling(0);
    world.view().observed = false;
    let decision = decide(&world);
    assert_eq!((decision.report, decision.action), (None, None));
    assert_eq!(decision.memory, world.memory);
}

/// Rule 1: a restarted operator must not surprise users.
#[test]
fn what_others_rolled_out_to_every_pod_is_taken_on() {
    let mut world = settled();
    world.template("b");
    world.current("b");
    world.view().released = 5;
    world.pods(["b"; 5]);
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["ExternalRolloutDetected"]);
    assert_eq!(decision.memory.stable.as_ref().unwrap().revision, revision("b"));
    assert_eq!(decision.memory.activity, Activity::Idle);
    world.memory = decision.memory;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
}

/// Rule 14
#[test]
fn a_pause_by_hand_at_rest_is_told() {
    let mut world = settled();
    world.paused = true;
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Successful, Reason::Stable));
    assert!(message(&decision).contains("stand at its start until: kubectl stateward resume db -n prod"));
    assert!(
        !message(&decision).contains("--revision"),
        "nobody has seen the next version yet"
    );
}
