//! Pod by pod, with a gate before each and after the last (rules 9, 13, 22 and 23).

use jiff::SignedDuration;
use rstest::rstest;
use stateward_api::analysis::Phase as Verdict;

use super::{message, notices, phase, step};
use crate::engine::fixture::{NOW, plan, rolling, settled};
use crate::engine::{decide, step_run_name};
use crate::memory::{Activity, Memory};
use crate::plan::{OnFailure, Plan, Share, StepIndex, pod_by_pod};
use crate::world::{Action, Decision, Phase, Reason, Run, World};

pub(super) fn pods(pods: u32) -> Plan {
    Plan {
        by_pod: true,
        on_failed_check: OnFailure::Hold,
        ..plan(pod_by_pod(pods))
    }
}

/// Five pods, of which `new` from the last one down are updated and available, at `step`.
pub(super) fn at(step: u32, new: u32) -> World {
    let mut world = rolling(0);
    world.plan = Ok(pods(5));
    let steps = pods(5).fingerprint();
    let attempt = world.attempt();
    attempt.step = StepIndex(step);
    attempt.steps = steps;
    attempt.counted = Some(5);
    attempt.paused_at_step = false;
    attempt.max_available = new;
    attempt.max_replaced = new;
    world.view().released = new.into();
    let row = |index: u32| if index + new >= 5 { "b" } else { "a" };
    world.pods([row(0), row(1), row(2), row(3), row(4)]);
    world
}

pub(super) fn checked(world: &mut World, phase: Verdict) {
    let name = step_run_name("db", world.attempt());
    world.runs = vec![Run {
        measured: true,
        title: "the gate before pod db-3".into(),
        uid: name.clone(),
        name,
        phase,
        message: "1 of 3 checks in a row succeeded".into(),
        began: Some(NOW),
        ending: false,
        ended: phase.is_over().then_some(NOW),
    }];
}

#[test]
fn a_message_counts_by_pod_as_the_status_does() {
    let mut world = at(2, 1);
    checked(&mut world, Verdict::Running);
    assert!(
        message(&decide(&world)).starts_with("pod 2 of 5: the gate before pod db-3 is running: 1 of 3"),
        "{}",
        message(&decide(&world))
    );
    world.paused = true;
    let held = decide(&world);
    assert!(matches!(&held.memory.activity, Activity::Rolling(attempt) if attempt.paused_by_user));
    world.memory = held.memory;
    assert!(
        message(&decide(&world)).starts_with("paused by spec.paused at pod 2 of 5; "),
        "{}",
        message(&decide(&world))
    );
}

/// Rule 22: a typo in the spec or in the workload's name deletes the record of the checks.
#[test]
fn a_failed_gate_whose_checks_are_not_on_record_any_more_begins_anew() {
    let mut world = at(2, 1);
    checked(&mut world, Verdict::Failed);
    world.attempt().paused_at_step = true;
    let is_held = |decision: &Decision| matches!(&decision.memory.activity, Activity::Rolling(attempt) if attempt.paused_at_step);
    assert!(is_held(&decide(&world)), "while it is on record");
    world.runs.clear();
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["ChecksRestarted"]);
    assert_eq!((step(&decision), is_held(&decision)), (2, false));
    world.memory = decision.memory;
    let action = decide(&world).action;
    assert!(matches!(action, Some(Action::StartRun { .. })), "{action:?}");
}

#[test]
fn the_first_gate_stands_before_the_first_pod() {
    let mut world = settled();
    world.plan = Ok(pods(5));
    world.template("b");
    let decision = decide(&world);
    assert_eq!(step(&decision), 0);
    world.memory = decision.memory;
    assert!(matches!(decide(&world).action, Some(Action::StartRun { .. })));
    checked(&mut world, Verdict::Running);
    assert_eq!(decide(&world).action, None, "no pod moves while it is checked");
}

#[rstest]
#[case(2, 1, Share::Pods(2))]
#[case(8, 4, Share::Pods(5))]
fn a_gate_that_is_passed_releases_one_more_pod(#[case] gate: u32, #[case] new: u32, #[case] released: Share) {
    let mut world = at(gate, new);
    checked(&mut world, Verdict::Successful);
    let decision = decide(&world);
    assert_eq!(step(&decision), gate + 1);
    world.memory = decision.memory;
    assert_eq!(decide(&world).action, Some(Action::Release(released)));
}

/// Checks do not cover a pod that was unavailable in the meantime.
#[test]
fn a_pod_that_gets_unwell_begins_the_checks_anew() {
    let mut world = at(2, 1);
    checked(&mut world, Verdict::Successful);
    world.unready(0);
    world.now += SignedDuration::from_secs(5);
    let decision = decide(&world);
    assert_eq!(step(&decision), 2, "the gate stays shut");
    assert!(notices(&decision).contains(&"ChecksRestarted"));
    let Activity::Rolling(attempt) = &decision.memory.activity else {
        panic!("it rolls");
    };
    assert_eq!(attempt.entered, world.now, "another run");
    world.memory = decision.memory;
    world.runs.clear();
    let again = decide(&world);
    assert!(notices(&again).is_empty(), "that is told once");
    assert!(message(&again).contains("pod db-0 to be Ready"));
}

#[rstest]
#[case::unavailable_since(|world: &mut World| world.unready(0))]
#[case::a_while_ago(|world: &mut World| world.now += SignedDuration::from_mins(2))]
fn a_pod_that_is_not_out_yet_waits_for_fresh_checks(#[case] change: fn(&mut World)) {
    let mut world = at(3, 1);
    change(&mut world);
    let decision = decide(&world);
    assert_eq!((step(&decision), decision.action), (2, None));
}

#[test]
fn a_pod_that_is_out_goes_on_however_the_others_are() {
    let mut world = at(3, 2);
    world.unready(0);
    world.now += SignedDuration::from_mins(2);
    assert_eq!(step(&decide(&world)), 3);
}

#[test]
fn failed_checks_hold_until_somebody_says_what_to_do() {
    let mut world = at(2, 1);
    checked(&mut world, Verdict::Failed);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::ChecksFailed));
    assert_eq!(notices(&decision), ["ChecksFailed"]);
    world.memory = decision.memory;
    let held = decide(&world);
    assert_eq!(
        (phase(&held), held.action.clone()),
        ((Phase::Failed, Reason::ChecksFailed), None)
    );

    let mut promoted = world.clone();
    promoted.commands.promote = true;
    assert_eq!(step(&decide(&promoted)), 3);

    let mut retried = world.clone();
    retried.now += SignedDuration::from_secs(5);
    retried.commands.retry = true;
    let decision = decide(&retried);
    let Activity::Rolling(attempt) = &decision.memory.activity else {
        panic!("it rolls");
    };
    assert_eq!(
        (attempt.step, attempt.entered, attempt.paused_at_step),
        (StepIndex(2), retried.now, false)
    );

    // The spec allows more tries now.
    checked(&mut world, Verdict::Running);
    assert_eq!(phase(&decide(&world)), (Phase::Progressing, Reason::Analysing));
}

#[test]
fn failed_checks_turn_the_version_down_where_the_policy_says_so() {
    let mut world = at(2, 1);
    world.plan.as_mut().unwrap().on_failed_check = OnFailure::Abort;
    checked(&mut world, Verdict::Failed);
    assert!(matches!(decide(&world).memory.activity, Activity::RollingBack(_)));
}

/// Kubernetes already treats the new version as the current one: another change of the template must not update any pod.
#[test]
fn the_last_checks_are_made_behind_the_guard() {
    let mut world = at(10, 5);
    world.current("b");
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
    world.view().released = 0;
    assert!(matches!(decide(&world).action, Some(Action::StartRun { .. })));
    checked(&mut world, Verdict::Successful);
    let decision = decide(&world);
    assert_eq!(step(&decision), 11);
    world.memory = decision.memory;
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Successful, Reason::Stable));
}

#[rstest]
#[case::a_gate_before(4, 2, 4, 2)]
#[case::in_the_middle_of_a_pod(5, 3, 4, 3)]
#[case::below_the_new_ones(4, 2, 2, 0)]
#[case::up(4, 2, 7, 4)]
#[case::up_at_the_last_gate(10, 5, 7, 14)]
#[case::up_at_the_end(11, 5, 7, 15)]
#[case::down_at_the_end(11, 5, 3, 7)]
fn scaling_finds_the_step_again(
    #[case] at_step: u32,
    #[case] new: u32,
    #[case] replicas: u32,
    #[case] expected: u32,
) {
    let mut world = at(at_step, new);
    world.plan = Ok(pods(replicas));
    let view = world.view();
    view.released += i64::from(replicas) - 5;
    view.replicas = replicas;
    if replicas > 5 && new < 5 {
        assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
        world.view().released = 0;
    }
    let decision = decide(&world);
    assert_eq!(step(&decision), expected);
    assert!(notices(&decision).contains(&"Scaled"));
    let Activity::Rolling(attempt) = &decision.memory.activity else {
        panic!("it rolls");
    };
    assert_eq!(attempt.counted, Some(replicas));
}

#[test]
fn a_set_in_the_middle_is_taken_on_at_the_gate_before_its_next_pod() {
    let mut world = at(4, 2);
    world.memory = Memory::default();
    world.view().current_template = Some(crate::plan::Fingerprint::of("a"));
    let decision = decide(&world);
    assert_eq!(step(&decision), 4);
    assert_eq!(decision.action, None);
}

#[test]
fn left_to_kubernetes_every_pod_is_released_and_nothing_is_remembered() {
    let mut world = at(4, 2);
    world.suspended = true;
    let decision = decide(&world);
    assert_eq!(decision.memory.stable, None);
    assert_eq!(
        decision.memory.setting.as_deref(),
        Some("0"),
        "but for how it was set before us"
    );
    world.memory = decision.memory;
    let decision = decide(&world);
    assert_eq!(decision.action, Some(Action::Release(Share::ALL)));
    assert_eq!(phase(&decision), (Phase::Progressing, Reason::Suspended));

    let mut kept = at(4, 2);
    kept.memory = Memory::default();
    kept.suspended = true;
    kept.view().setting = "3".into();
    kept.view().kept_setting = Some("1".into());
    assert_eq!(decide(&kept).memory.setting.as_deref(), Some("1"));
}

#[test]
fn a_pause_by_hand_begins_the_checks_anew_when_it_ends() {
    let mut world = at(2, 1);
    world.attempt().paused_by_user = true;
    checked(&mut world, Verdict::Running);
    world.now += SignedDuration::from_mins(10);
    let decision = decide(&world);
    let Activity::Rolling(attempt) = &decision.memory.activity else {
        panic!("it rolls");
    };
    assert_eq!((attempt.paused_by_user, attempt.entered), (false, world.now));
}

/// A pod that was lost and came back while no operator was running.
#[test]
fn a_pod_that_was_unwell_while_nobody_looked_begins_the_checks_anew() {
    let mut world = at(2, 1);
    checked(&mut world, Verdict::Successful);
    world.now += SignedDuration::from_mins(1);
    let since = world.now - SignedDuration::from_secs(10);
    world.view().pods[0].ready_since = Some(since);
    let decision = decide(&world);
    assert_eq!(
        (step(&decision), notices(&decision)),
        (2, vec!["ChecksRestarted"])
    );
    world.view().pods[0].ready_since = Some(NOW);
    assert_eq!(step(&decide(&world)), 3, "ready when they began");
}

#[test]
fn readiness_that_comes_and_goes_is_not_progress() {
    let mut world = at(2, 1);
    world.attempt().progressed = NOW - SignedDuration::from_mins(8);
    checked(&mut world, Verdict::Running);
    world.unready(4);
    world.now += SignedDuration::from_secs(5);
    let decision = decide(&world);
    let Activity::Rolling(attempt) = &decision.memory.activity else {
        panic!("it rolls");
    };
    assert_eq!(attempt.progressed, NOW - SignedDuration::from_mins(8));
}

#[rstest]
#[case::in_the_middle(2, "b", "0")]
#[case::a_users_own(2, "a", "2")]
#[case::a_users_own_that_holds_every_pod(5, "a", "5")]
fn what_another_operator_left_is_no_wish_of_a_user(
    #[case] partition: i64,
    #[case] template: &str,
    #[case] expected: &str,
) {
    let mut world = settled();
    world.plan = Ok(pods(5));
    world.memory = Memory::default();
    world.template(template);
    world.view().released = 5 - partition;
    world.view().setting = partition.to_string();
    world.view().current_template = Some(crate::plan::Fingerprint::of("a"));
    assert_eq!(decide(&world).memory.setting.as_deref(), Some(expected));
}

/// A promotion skips the checks of one gate, and nothing else.
#[rstest]
#[case::before_they_begin(None)]
#[case::under_way(Some(Verdict::Running))]
fn a_promotion_passes_the_gate_that_stands(#[case] checks: Option<Verdict>) {
    let mut world = at(2, 1);
    if let Some(verdict) = checks {
        checked(&mut world, verdict);
    }
    world.commands.promote = true;
    let decision = decide(&world);
    assert_eq!((step(&decision), decision.action.clone()), (3, None));
    assert_eq!(notices(&decision), ["RolloutResumed"]);
    world.memory = decision.memory;
    world.commands.promote = false;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::Pods(2))));

    world.view().released = 2;
    world.pods(["a", "a", "a", "b", "b"]);
    world.attempt().max_available = 2;
    world.runs.clear();
    let decision = decide(&world);
    assert_eq!(step(&decision), 4, "the next gate");
    world.memory = decision.memory;
    assert!(matches!(decide(&world).action, Some(Action::StartRun { .. })));
}

#[test]
fn a_promotion_at_the_last_gate_ends_the_rollout() {
    let mut world = at(10, 5);
    world.current("b");
    world.view().released = 0;
    checked(&mut world, Verdict::Running);
    world.commands.promote = true;
    let decision = decide(&world);
    assert_eq!(step(&decision), 11);
    world.memory = decision.memory;
    world.commands.promote = false;
    assert_eq!(decide(&world).memory.activity, Activity::Idle);
}

#[rstest]
#[case::a_pod_is_unwell(|world: &mut World| world.unready(0), "pod db-0 to be Ready")]
#[case::a_pod_is_missing(|world: &mut World| world.pods(["a", "a", "", "a", "b"]), "pod 2 to be created")]
#[case::not_long_enough(|world: &mut World| {
    world.view().min_ready = SignedDuration::from_secs(30);
    world.view().pods[0].ready_since = Some(NOW);
}, "pod db-0 to stay Ready")]
#[case::paused(|world: &mut World| world.paused = true, "spec.paused is true")]
#[case::scaled(|world: &mut World| {
    world.plan = Ok(pods(4));
    world.view().replicas = 4;
    world.pods(["a"; 4]);
}, "does not stand at a gate")]
#[case::between_gates(|world: &mut World| {
    world.attempt().step = StepIndex(3);
    world.view().released = 2;
}, "does not stand at a gate")]
#[case::another_version(|world: &mut World| world.template("c"), "the template is db-c now")]
fn a_promotion_skips_nothing_but_the_checks_that_were_seen(
    #[case] change: fn(&mut World),
    #[case] why: &str,
) {
    let mut world = at(2, 1);
    checked(&mut world, Verdict::Running);
    change(&mut world);
    world.commands.promote = true;
    let decision = decide(&world);
    let refused = decision
        .notices
        .iter()
        .find(|notice| notice.reason.as_str() == "CommandRefused");
    let refused = &refused.expect("it is refused").message;
    assert!(
        refused.starts_with("promote: ") && refused.contains(why),
        "{refused}"
    );
    let releases = matches!(decision.action, Some(Action::Release(_)));
    assert!(step(&decision) <= 3 && !releases);
}

/// A promotion that was given before the gate was reported is refused.
#[test]
fn a_promotion_of_what_was_not_seen_is_refused() {
    let mut world = at(2, 1);
    world.memory = Memory::default();
    world.view().current_template = Some(crate::plan::Fingerprint::of("a"));
    world.commands.promote = true;
    let decision = decide(&world);
    assert_eq!(step(&decision), 2);
    assert!(notices(&decision).contains(&"CommandRefused"));
}

/// A failed gate is held until a user decides, and even then nothing is released while a pod is unavailable.
#[test]
fn a_failed_gate_stays_shut_while_a_pod_is_unwell() {
    let mut world = at(2, 1);
    checked(&mut world, Verdict::Failed);
    world.attempt().paused_at_step = true;
    world.unready(0);
    world.commands.promote = true;
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["CommandRefused"]);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::ChecksFailed));
}
