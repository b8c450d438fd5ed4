//! Skipping the current step, and all of them (rules 10 and 16).

use jiff::SignedDuration;
use rstest::rstest;
use stateward_api::rollout::RolloutStatus;

use super::{by_pod, message, notices, phase, step};
use crate::engine::decide;
use crate::engine::fixture::{NOW, plan, rolling, settled, weight};
use crate::memory::{Activity, BackgroundRun, Command, TakenCommand};
use crate::plan::{Check, Fingerprint, OnBrokenPod, OnFailure, Share, Step, StepIndex};
use crate::record::next_status;
use crate::workload::Unready;
use crate::world::{Action, Decision, Phase, Reason, World};

/// At `step` of 20 %, pause, 40 %, analysis, 40 %, with `released` pods released and updated.
fn at(step: u32, released: usize) -> World {
    let check = || Step::Analysis(Check(Fingerprint::of("errors")));
    let steps = plan(vec![
        weight(20),
        Step::Pause(None),
        weight(40),
        check(),
        weight(40),
    ]);
    let mut world = rolling(step);
    let attempt = world.attempt();
    attempt.steps = steps.fingerprint();
    attempt.paused_at_step = matches!(steps.step(StepIndex(step)), Some(Step::Pause(_)));
    world.plan = Ok(steps);
    world.view().released = released as i64;
    let row = |index: usize| if index + released >= 5 { "b" } else { "a" };
    world.pods([row(0), row(1), row(2), row(3), row(4)]);
    world.commands.skip = true;
    world.commands.by = Some("alice".into());
    world
}

fn taken(decision: &Decision) -> &[TakenCommand] {
    match &decision.memory.activity {
        Activity::Rolling(attempt) => &attempt.commands,
        other => panic!("{other:?}"),
    }
}

/// Skipping exposes no further pod.
#[rstest]
#[case::a_share_whose_pod_is_not_ready(0, 1, Some(4), "step 1 of 5 (20 %)")]
#[case::a_share_that_is_not_released_yet(0, 0, None, "step 1 of 5 (20 %)")]
#[case::a_pause(1, 1, None, "step 2 of 5 (pause until promoted)")]
#[case::a_share_before_an_analysis(2, 2, Some(3), "step 3 of 5 (40 %)")]
#[case::an_analysis(3, 2, None, "step 4 of 5 (analysis)")]
#[case::an_analysis_that_waits_for_a_pod(3, 2, Some(4), "step 4 of 5 (analysis)")]
#[case::the_last_step(4, 2, None, "step 5 of 5 (40 %)")]
fn the_current_step_is_left_whatever_it_waits_for(
    #[case] at_step: u32,
    #[case] released: usize,
    #[case] unready: Option<u32>,
    #[case] skipped: &str,
) {
    let mut world = at(at_step, released);
    unready.into_iter().for_each(|pod| world.unready(pod));
    let decision = decide(&world);
    assert_eq!(step(&decision), at_step + 1, "{:?}", decision.notices);
    assert_eq!(decision.notices[0].reason.as_str(), "StepSkipped");
    assert_eq!(
        decision.notices[0].message,
        format!("db-b: alice skips {skipped}")
    );
    let record = TakenCommand {
        command: Command::Skip,
        from: StepIndex(at_step),
        to: StepIndex(at_step + 1),
        by: Some("alice".into()),
        at: NOW,
    };
    assert_eq!(taken(&decision), [record]);
}

#[rstest]
#[case::out_of_a_pause(
    1,
    1,
    "what follows would release further pods: waiting for pod db-4 to be Ready"
)]
#[case::out_of_the_last_step(
    4,
    2,
    "what follows would release further pods: waiting for pod db-4 to be Ready"
)]
fn nothing_is_skipped_past_a_pod_that_is_not_ready(
    #[case] at_step: u32,
    #[case] released: usize,
    #[case] why: &str,
) {
    let mut world = at(at_step, released);
    world.unready(4);
    let decision = decide(&world);
    assert_eq!(decision.notices[0].message, format!("skip: {why}"));
    assert_eq!(notices(&decision), ["CommandRefused"]);
    assert_eq!((step(&decision), decision.action), (at_step, None));
}

#[rstest]
#[case::held(|world: &mut World| { world.paused = true; world.attempt().paused_by_user = true; }, "spec.paused is true; resume first")]
#[case::at_the_end(|world: &mut World| world.attempt().step = StepIndex(5), "all steps are already done")]
#[case::in_doubt(
    |world: &mut World| world.attempt().background = BackgroundRun::InDoubt(NOW),
    "the background analysis came to no verdict, which is not a step; promote goes on without one"
)]
#[case::without_a_plan(|world: &mut World| world.plan = Err(vec!["nonsense".into()]), "the spec is not valid")]
#[case::overtaken(|world: &mut World| world.template("c"), "it was meant for db-b, the template is db-c now")]
fn a_skip_that_makes_no_sense_is_refused(#[case] befall: fn(&mut World), #[case] why: &str) {
    let mut world = at(1, 1);
    befall(&mut world);
    let decision = decide(&world);
    assert_eq!(decision.notices[0].reason.as_str(), "CommandRefused");
    assert_eq!(decision.notices[0].message, format!("skip: {why}"));
    assert_eq!(decision.action, None);
}

#[test]
fn without_a_rollout_there_is_nothing_to_skip() {
    let mut world = settled();
    world.commands.skip = true;
    let decision = decide(&world);
    assert_eq!(decision.notices[0].message, "skip: no rollout is in progress");
    assert_eq!((decision.memory, decision.action), (world.memory.clone(), None));
}

/// Pod by pod: only checks can be skipped.
#[rstest]
#[case::at_a_gate(
    2,
    1,
    "RolloutResumed",
    "goes on without the rest of the checks of this gate",
    3
)]
#[case::at_a_pod(
    1,
    1,
    "CommandRefused",
    "the next gate waits for the same pod, so there is nothing to skip",
    1
)]
fn at_a_gate_the_rest_of_its_checks_is_skipped(
    #[case] at_step: u32,
    #[case] new: u32,
    #[case] reason: &str,
    #[case] said: &str,
    #[case] next: u32,
) {
    let mut world = by_pod::at(at_step, new);
    if at_step == 1 {
        world.unready(4);
    }
    world.commands.skip = true;
    let decision = decide(&world);
    assert_eq!(
        (decision.notices[0].reason.as_str(), step(&decision)),
        (reason, next)
    );
    assert!(
        decision.notices[0].message.ends_with(said),
        "{:?}",
        decision.notices
    );
}

/// The new pod crashes, and no deadline or policy applies: only a user can continue.
fn broken() -> World {
    let mut world = rolling(1);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.crash(4);
    world.commands.promote_full = true;
    world
}

/// Between two crashes its container runs, and without a probe it is Ready for a moment.
fn crashing(ready: bool) -> World {
    let mut world = broken();
    let pod = world.view().pods.last_mut().unwrap();
    pod.trouble = None;
    pod.restarted_at = Some(NOW - SignedDuration::from_secs(3));
    pod.ready_since = ready.then_some(NOW - SignedDuration::from_secs(3));
    world.count();
    world
}

#[rstest]
#[case::that_waits(broken(), "pod db-4 is broken on db-b: CrashLoopBackOff;")]
#[case::that_runs(
    crashing(false),
    "waiting for pod db-4 to be Ready (3 restarts), and it has crashed lately;"
)]
#[case::that_is_ready_for_a_moment(
    crashing(true),
    "waiting for pod db-4 to be Ready (3 restarts), and it has crashed lately;"
)]
#[case::that_a_policy_waits_for({
    let mut world = broken();
    world.plan.as_mut().unwrap().on_broken_pod = OnBrokenPod::Wait;
    world
}, "pod db-4 is broken on db-b: CrashLoopBackOff;")]
fn not_all_steps_are_skipped_while_a_pod_of_the_new_version_is_broken(
    #[case] world: World,
    #[case] why: &str,
) {
    let decision = decide(&world);
    let refused = &decision.notices[0];
    assert_eq!((refused.reason.as_str(), step(&decision)), ("CommandRefused", 1));
    assert!(
        refused.message.starts_with(&format!("promote --full: {why}")),
        "{refused:?}"
    );
    assert!(
        refused
            .message
            .contains("kubectl stateward promote --full --force db -n prod --revision db-b"),
        "{refused:?}"
    );
    assert!(refused.message.contains("status.force"), "{refused:?}");
    assert_eq!(decision.action, None);
}

/// It has been available for a while since, or is an old pod, which the new version may fix.
#[rstest]
#[case::recovered(|world: &mut World| {
    let pod = world.view().pods.last_mut().unwrap();
    pod.trouble = None;
    pod.restarted_at = Some(NOW - SignedDuration::from_secs(30));
    pod.ready_since = pod.restarted_at;
    world.count();
})]
#[case::an_old_pod(|world: &mut World| {
    world.pods(["a", "a", "a", "a", "b"]);
    world.crash(0);
})]
#[case::only_not_ready(|world: &mut World| {
    world.pods(["a", "a", "a", "a", "b"]);
    world.unready(4);
})]
fn all_steps_are_skipped_where_no_new_pod_is_broken(#[case] befall: fn(&mut World)) {
    let mut world = broken();
    befall(&mut world);
    let decision = decide(&world);
    assert_eq!(
        (decision.notices[0].reason.as_str(), step(&decision)),
        ("RolloutPromoted", 3)
    );
    assert_eq!(
        decision.notices[0].message,
        "db-b: a user skips steps 2 to 3 of 3"
    );
}

#[rstest]
#[case::at_the_deadline(|world: &mut World| {
    let progressed = NOW - SignedDuration::from_mins(11);
    (world.attempt().entered, world.attempt().progressed) = (progressed, progressed);
}, 0)]
#[case::without_its_image(|world: &mut World| {
    let pod = world.view().pods.last_mut().unwrap();
    pod.unready = Some(Unready { reason: "ErrImagePull".into(), message: "ErrImagePull: not found".into() });
}, 1)]
fn all_steps_are_not_skipped_past_a_pod_that_fails(#[case] befall: fn(&mut World), #[case] at_step: u32) {
    let mut world = at(at_step, 1);
    world.unready(4);
    befall(&mut world);
    (world.commands.skip, world.commands.promote_full) = (false, true);
    let decision = decide(&world);
    assert_eq!(notices(&decision)[0], "CommandRefused", "{:?}", decision.notices);
    assert!(decision.notices[0].message.contains("waiting for pod db-4"));
}

/// The user who forced the promotion has not seen these steps.
#[test]
fn steps_that_are_edited_end_a_forced_promotion() {
    let mut world = broken();
    world.commands.force = true;
    world.memory = decide(&world).memory;
    world.commands = Default::default();
    assert!(world.attempt().fully_promoted && world.attempt().is_forced());
    world.plan = Ok(plan(vec![weight(20), Step::Pause(None), weight(40)]));
    world.memory = decide(&world).memory;
    let attempt = world.attempt();
    assert!(!attempt.fully_promoted && !attempt.is_forced());
    assert_eq!(attempt.step.0, 0);
}

/// Whatever the spec says about broken pods: a user has decided to continue.
#[rstest]
#[case(OnFailure::Hold)]
#[case(OnFailure::Abort)]
fn a_forced_promotion_goes_past_a_broken_pod(#[case] policy: OnFailure) {
    let mut world = broken();
    world.plan.as_mut().unwrap().on_broken_pod = OnBrokenPod::Fail(policy);
    world.commands.force = true;
    let decision = decide(&world);
    assert_eq!(step(&decision), 3);
    assert_eq!(taken(&decision)[0].command, Command::ForcePromoteFull);
    world.memory = decision.memory;
    world.commands = Default::default();
    let decision = decide(&world);
    assert_eq!(decision.action, Some(Action::Release(Share::ALL)));
    assert_eq!(phase(&decision), (Phase::Progressing, Reason::Converging));
    assert_eq!(
        message(&decision),
        "steps 2 to 3 of 3 were skipped, the remaining pods follow to db-b: waiting for pod db-4 to be Ready (CrashLoopBackOff, 3 \
         restarts)"
    );
    // The deadline ends a promotion that makes no progress.
    world.view().released = 5;
    world.now += SignedDuration::from_mins(11);
    assert_eq!(phase(&decide(&world)), (Phase::Failed, Reason::DeadlineExceeded));
}

#[test]
fn force_alone_asks_for_nothing() {
    let status = RolloutStatus {
        force: true,
        requested_by: Some("alice".into()),
        ..RolloutStatus::default()
    };
    assert_eq!(crate::record::commands(&status), Default::default());
}

/// The history says who skipped which steps, and who rejected a version.
#[test]
fn the_history_tells_the_commands_of_a_rollout_and_who_gave_them() {
    let mut world = rolling(1);
    world.commands.promote = true;
    world.commands.by = Some("alice".into());
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    let decision = decide(&world);
    assert_eq!(decision.notices[0].message, "db-b: the pause was ended by alice");
    world.memory = decision.memory;
    world.commands = Default::default();
    world.commands.abort = true;
    world.commands.by = Some("bob".into());
    let status = next_status(&RolloutStatus::default(), None, &world, &decide(&world)).unwrap();
    assert_eq!(status.aborted_reason.as_deref(), Some("aborted by bob"));
    assert!(
        status.taken_commands.is_empty(),
        "they are of the rollout that has ended"
    );
    let past = &status.history[0];
    assert_eq!(past.message.as_deref(), Some("aborted by bob"));
    let told: Vec<_> = past
        .taken_commands
        .iter()
        .map(|taken| {
            (
                taken.command.as_str(),
                taken.from_step,
                taken.to_step,
                taken.by.as_deref(),
            )
        })
        .collect();
    assert_eq!(told, [("promote", 1, 2, Some("alice"))]);
}

#[test]
fn steps_that_were_edited_were_not_skipped() {
    let mut world = at(0, 1);
    world.memory = decide(&world).memory;
    world.commands = Default::default();
    world.plan = Ok(plan(vec![weight(40), Step::Pause(None)]));
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["StepsChanged"]);
    let taken = &taken(&decision)[0];
    assert_eq!(
        (taken.from, taken.to, taken.by.as_deref()),
        (StepIndex(0), StepIndex(0), Some("alice"))
    );
}

/// Pod by pod, steps are counted by pods.
#[test]
fn a_skipped_gate_keeps_its_place_when_the_set_is_scaled() {
    let mut world = by_pod::at(4, 2);
    world.commands.skip = true;
    world.memory = decide(&world).memory;
    world.commands = Default::default();
    world.view().replicas = 4;
    world.plan = Ok(by_pod::pods(4));
    let decision = decide(&world);
    let taken = &taken(&decision)[0];
    assert_eq!((taken.from, taken.to), (StepIndex(2), StepIndex(3)));
}

#[test]
fn what_was_skipped_is_kept_longer_than_what_was_ended() {
    let mut world = at(0, 1);
    let attempt = world.attempt();
    for index in 0..150 {
        let command = if index < 60 {
            Command::Skip
        } else {
            Command::Promote
        };
        attempt.record(TakenCommand {
            command,
            from: StepIndex(index),
            to: StepIndex(index + 1),
            by: None,
            at: NOW,
        });
    }
    assert_eq!(attempt.commands.len(), 100);
    let skipped = attempt
        .commands
        .iter()
        .filter(|taken| taken.command == Command::Skip);
    assert_eq!(skipped.count(), 60);
}
