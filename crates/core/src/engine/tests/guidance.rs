//! What is waited for, the commands that help, and the answers to commands.

use rstest::rstest;
use stateward_api::rollout::{CommandResult, RolloutStatus};

use super::*;
use crate::engine::fixture::{returning, rolling, settled};
use crate::guidance::WaitKind;
use crate::record::next_status;
use crate::world::Commands;

fn awaited(decision: &Decision) -> Option<(WaitKind, Option<&str>, Option<&str>)> {
    let awaited = decision.report.as_ref()?.waiting_for.as_ref()?;
    Some((awaited.kind, awaited.name.as_deref(), awaited.reason.as_deref()))
}

fn commands(decision: &Decision) -> Vec<&str> {
    let commands = decision.report.as_ref().unwrap().commands.iter();
    commands.map(|suggestion| suggestion.command.as_str()).collect()
}

/// A released pod of the new version.
fn one_new_pod(step: u32) -> World {
    let mut world = rolling(step);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world
}

#[rstest]
#[case::nothing(settled(), None, &[])]
#[case::a_start(paused_at_rest(), None, &["resume"])]
#[case::a_pod(starting(), Some((WaitKind::Pod, Some("db-4"), None)), &[])]
#[case::a_pod_that_crashes(crashing(), Some((WaitKind::User, None, None)), &["abort"])]
#[case::a_promotion(one_new_pod(1), Some((WaitKind::Pause, None, None)), &["promote"])]
#[case::the_pod_that_blocks_another(blocked(), Some((WaitKind::Pod, Some("db-1"), None)), &[])]
#[case::checks(at_gate(), Some((WaitKind::Checks, None, None)), &[])]
#[case::a_pod_before_checks(unready_at_gate(), Some((WaitKind::Pod, Some("db-1"), None)), &[])]
#[case::a_user(paused_by_a_user(), Some((WaitKind::User, None, None)), &["resume"])]
#[case::a_rollback(returning(["a", "a", "a", "a", "b"]), Some((WaitKind::Pod, Some("db-4"), None)), &[])]
#[case::another_version(aborted(), Some((WaitKind::User, None, None)), &["retry"])]
#[case::a_valid_spec(invalid(), Some((WaitKind::Spec, None, None)), &[])]
fn a_report_says_what_it_waits_for_and_what_moves_it_on(
    #[case] world: World,
    #[case] expected: Option<(WaitKind, Option<&str>, Option<&str>)>,
    #[case] verbs: &[&str],
) {
    let decision = decide(&world);
    assert_eq!(awaited(&decision), expected, "{}", message(&decision));
    assert_eq!(commands(&decision), verbs);
    let report = decision.report.as_ref().unwrap();
    for verb in verbs {
        assert!(message(&decision).contains(&format!("kubectl stateward {verb} db -n prod")));
        assert!(!report.summary.contains("kubectl"), "{}", report.summary);
    }
}

fn blocked() -> World {
    let mut world = one_new_pod(0);
    world.pods(["a", "a", "a", "a", ""]);
    world.unready(1);
    world
}

/// At the gate before the first pod.
fn at_gate() -> World {
    let mut world = rolling(0);
    let plan = world.plan.as_mut().unwrap();
    (plan.steps, plan.by_pod) = (crate::plan::pod_by_pod(5), true);
    let steps = plan.fingerprint();
    world.attempt().steps = steps;
    world
}

fn unready_at_gate() -> World {
    let mut world = at_gate();
    world.unready(1);
    world
}

fn paused_at_rest() -> World {
    let mut world = settled();
    world.paused = true;
    world
}

fn starting() -> World {
    let mut world = one_new_pod(0);
    world.unready(4);
    world
}

fn crashing() -> World {
    let mut world = one_new_pod(0);
    world.crash(4);
    world
}

fn paused_by_a_user() -> World {
    let mut world = one_new_pod(0);
    world.paused = true;
    world.attempt().paused_by_user = true;
    world
}

fn aborted() -> World {
    let mut world = settled();
    world.template("b");
    world.memory.rejected = Some(rejection());
    world
}

fn invalid() -> World {
    let mut world = settled();
    world.plan = Err(vec!["spec.x: is wrong".into()]);
    world
}

/// Rule 10. The text is what the event says, without the commands.
#[rstest]
#[case::accepted(one_new_pod(1), |given: &mut Commands| given.promote = true, "promote", None)]
#[case::refused(one_new_pod(0), |given: &mut Commands| given.promote = true, "promote", Some("the rollout does not stand at a pause"))]
#[case::the_first_of_two(one_new_pod(1), |given: &mut Commands| (given.promote, given.abort) = (true, true), "abort", None)]
#[case::without_a_rollout(settled(), |given: &mut Commands| given.abort = true, "abort", Some("no rollout is in progress"))]
#[case::retried(aborted(), |given: &mut Commands| given.retry = true, "retry", None)]
#[case::forced(crashing(), |given: &mut Commands| (given.promote_full, given.force) = (true, true), "promote --full --force", None)]
#[case::not_forced(
    crashing(), |given: &mut Commands| given.promote_full = true, "promote --full", Some("pod db-4 is broken on db-b: CrashLoopBackOff")
)]
fn every_command_gets_a_receipt(
    #[case] mut world: World,
    #[case] give: fn(&mut Commands),
    #[case] command: &str,
    #[case] refusal: Option<&str>,
) {
    give(&mut world.commands);
    world.commands.by = Some("alice".into());
    let decision = decide(&world);
    let receipt = decision.receipt.as_ref().unwrap();
    assert_eq!(receipt.command.as_str(), command);
    assert_eq!(receipt.refusal.as_deref(), refusal);
    assert_eq!((receipt.by.as_deref(), receipt.at), (Some("alice"), world.now));
    assert_eq!(
        receipt.revision.as_ref(),
        Some(&world.workload.as_ref().unwrap().update)
    );
    let refused = notices(&decision).contains(&"CommandRefused");
    assert!(refused || refusal.is_none());
}

#[test]
fn a_refusal_names_what_can_be_done_instead() {
    let mut world = crashing();
    world.commands.promote_full = true;
    let status = next_status(&RolloutStatus::default(), None, &world, &decide(&world)).unwrap();
    let receipt = status.last_command.unwrap();
    assert_eq!(
        (
            receipt.verb.as_str(),
            receipt.arguments.as_slice(),
            receipt.result
        ),
        (
            "promote",
            ["--full".to_owned()].as_slice(),
            CommandResult::Refused
        )
    );
    let instead: Vec<_> = receipt
        .alternatives
        .iter()
        .map(|command| format!("{} {}", command.verb, command.arguments.join(" ")))
        .collect();
    assert_eq!(instead, ["abort ", "promote --full --force"]);
}

/// The answer stays until the next command, and what is waited for has been since its first status.
#[test]
fn the_last_answer_and_the_start_of_a_wait_stay() {
    let mut world = one_new_pod(1);
    world.commands.skip = true;
    world.unready(4);
    let first = next_status(&RolloutStatus::default(), None, &world, &decide(&world)).unwrap();
    assert_eq!(
        first.last_command.as_ref().map(|last| last.result),
        Some(CommandResult::Refused)
    );
    world.commands.skip = false;
    world.now += jiff::SignedDuration::from_secs(30);
    let second = next_status(&first, None, &world, &decide(&world)).unwrap_or_else(|| first.clone());
    assert_eq!(second.last_command, first.last_command);
    assert_eq!(second.waiting_for, first.waiting_for);
}
