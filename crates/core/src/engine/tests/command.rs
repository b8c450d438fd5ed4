//! User commands (rule 10).

use rstest::rstest;

use super::{notices, step};
use crate::engine::decide;
use crate::engine::fixture::{rolling, settled};
use crate::memory::Activity;
use crate::world::World;

/// Rule 10
#[rstest]
#[case::abort(|world: &mut World| world.commands.abort = true)]
#[case::promote(|world: &mut World| world.commands.promote = true)]
#[case::promote_full(|world: &mut World| world.commands.promote_full = true)]
#[case::retry(|world: &mut World| world.commands.retry = true)]
fn a_command_without_a_rollout_is_refused_and_touches_nothing(#[case] command: fn(&mut World)) {
    let mut world = settled();
    command(&mut world);
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["CommandRefused"]);
    assert_eq!((decision.memory, decision.action), (world.memory.clone(), None));
}

/// Rule 10
#[test]
fn of_two_commands_at_once_the_abort_wins_and_the_other_is_answered() {
    let mut world = rolling(1);
    world.pods(["a", "a", "a", "a", "b"]);
    world.commands.abort = true;
    world.commands.promote = true;
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["RolloutAborted", "CommandRefused"]);
    assert!(matches!(decision.memory.activity, Activity::RollingBack(_)));
}

/// Rule 10: retry undoes an abort, so both together must not.
#[test]
fn an_abort_beside_a_retry_is_an_abort() {
    let mut world = rolling(1);
    world.pods(["a", "a", "a", "a", "b"]);
    world.commands.abort = true;
    world.commands.retry = true;
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["RolloutAborted", "CommandRefused"]);
    assert!(matches!(decision.memory.activity, Activity::RollingBack(_)));
}

/// Rule 10
#[rstest]
#[case::promote(|world: &mut World| world.commands.promote = true, "promote: the spec is not valid")]
#[case::promote_full(|world: &mut World| world.commands.promote_full = true, "promote --full: the spec is not valid")]
fn a_promotion_by_a_plan_that_cannot_be_read_is_refused(#[case] command: fn(&mut World), #[case] why: &str) {
    let mut world = rolling(1);
    world.pods(["a", "a", "a", "a", "b"]);
    world.plan = Err(vec!["spec.strategy: nonsense".into()]);
    command(&mut world);
    let decision = decide(&world);
    assert_eq!(decision.notices[0].message, why);
    assert_eq!((decision.memory, decision.action), (world.memory.clone(), None));
}

/// Rule 10
#[test]
fn a_promotion_where_no_pause_stands_is_refused() {
    let mut world = rolling(0);
    world.commands.promote = true;
    let decision = decide(&world);
    assert_eq!((step(&decision), notices(&decision)), (0, vec!["CommandRefused"]));
}

/// Rules 10 and 14
#[test]
fn a_full_promotion_waits_for_the_end_of_a_pause_by_hand() {
    let mut world = rolling(1);
    world.attempt().paused_by_user = true;
    world.paused = true;
    world.commands.promote_full = true;
    let decision = decide(&world);
    assert_eq!((step(&decision), notices(&decision)), (1, vec!["CommandRefused"]));
}

/// Rule 10
#[test]
fn a_command_for_one_version_does_not_hit_the_next() {
    let mut world = rolling(1);
    world.commands.abort = true;
    world.template("c");
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["CommandRefused", "RolloutStarted"]);
    assert_eq!(decision.memory.rejected, None);
}
