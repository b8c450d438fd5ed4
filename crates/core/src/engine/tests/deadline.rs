//! When an attempt fails (rules 11 and 12).

use jiff::SignedDuration;
use rstest::rstest;

use super::{message, notices, phase, step};
use crate::engine::decide;
use crate::engine::fixture::{NOW, revision, rolling};
use crate::memory::Activity;
use crate::plan::{OnBrokenPod, OnFailure};
use crate::world::{Action, Phase, Reason, World};

/// Rule 11
#[test]
fn no_progress_for_too_long_fails_and_a_longer_deadline_takes_it_back() {
    let mut world = rolling(0);
    world.view().released = 1;
    world.now = NOW + SignedDuration::from_mins(9);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Progressing, Reason::Stepping));
    assert_eq!(decision.look_again, Some(NOW + SignedDuration::from_mins(10)));
    world.now = NOW + SignedDuration::from_mins(10);
    assert_eq!(phase(&decide(&world)), (Phase::Failed, Reason::DeadlineExceeded));
    world.plan.as_mut().unwrap().deadline = SignedDuration::from_mins(20);
    assert_eq!(phase(&decide(&world)), (Phase::Progressing, Reason::Stepping));
}

/// Rule 11: a step that was not executed has not used its time.
#[test]
fn the_operators_absence_and_refused_requests_do_not_count_against_the_deadline() {
    let mut world = rolling(0);
    world.plan.as_mut().unwrap().on_failure = OnFailure::Abort;
    world.now = NOW + SignedDuration::from_mins(10);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Progressing, Reason::Stepping));
    world.memory = decision.memory;
    assert!(matches!(decide(&world).action, Some(Action::Release(_))));

    world.now += SignedDuration::from_mins(10);
    let decision = decide(&world);
    assert_eq!(
        phase(&decision),
        (Phase::Progressing, Reason::Stepping),
        "it is refused"
    );

    world.memory = decision.memory;
    world.view().released = 1;
    world.now += SignedDuration::from_mins(10);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::Aborting));
}

/// Rule 11
#[test]
fn a_pause_does_not_count_against_the_deadline() {
    let mut world = rolling(1);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.attempt().max_available = 1;
    world.now = NOW + SignedDuration::from_hours(24);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Paused, Reason::StepPaused));
    world.commands.promote = true;
    let decision = decide(&world);
    assert_eq!(
        (step(&decision), phase(&decision)),
        (2, (Phase::Progressing, Reason::Stepping))
    );
}

/// Rule 11
#[rstest]
#[case::in_a_pause(rolling(1), Reason::StepPaused)]
#[case::by_hand({ let mut world = rolling(0); world.attempt().paused_by_user = true; world.paused = true; world }, Reason::ManuallyPaused)]
fn a_pause_does_not_fail_while_its_pods_are_not_well(#[case] mut world: World, #[case] reason: Reason) {
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.unready(4);
    world.now = NOW + SignedDuration::from_hours(24);
    assert_eq!(phase(&decide(&world)), (Phase::Paused, reason));
}

/// Rule 11
#[test]
fn the_time_of_a_pause_by_hand_is_taken_off_the_deadline() {
    let mut world = rolling(0);
    world.attempt().paused_by_user = true;
    world.now = NOW + SignedDuration::from_hours(24);
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["RolloutResumed"]);
    assert_eq!(phase(&decision), (Phase::Progressing, Reason::Stepping));
}

/// Rule 12: a pod that was already broken is not the new version's fault.
#[test]
fn a_broken_old_pod_does_not_fail_the_new_version() {
    let mut world = rolling(0);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.crash(1);
    assert_eq!(phase(&decide(&world)), (Phase::Progressing, Reason::Stepping));
}

/// Rule 12
#[rstest]
#[case(OnBrokenPod::Fail(OnFailure::Hold), Phase::Failed, false)]
#[case(OnBrokenPod::Fail(OnFailure::Abort), Phase::Failed, true)]
#[case(OnBrokenPod::Wait, Phase::Progressing, false)]
fn a_broken_new_pod_ends_the_step_at_once_unless_it_may_get_well(
    #[case] policy: OnBrokenPod,
    #[case] expected: Phase,
    #[case] returns: bool,
) {
    let mut world = rolling(0);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.crash(4);
    world.plan.as_mut().unwrap().on_broken_pod = policy;
    let decision = decide(&world);
    assert_eq!(phase(&decision).0, expected);
    assert!(
        message(&decision).contains("CrashLoopBackOff"),
        "{}",
        message(&decision)
    );
    assert_eq!(
        matches!(decision.memory.activity, Activity::RollingBack(_)),
        returns
    );
}

/// Rule 12: the recorded step allows more pods than are released, but they are not released.
#[test]
fn a_broken_new_pod_keeps_the_next_share_from_being_released() {
    let mut world = rolling(2);
    world.pods(["a", "a", "a", "a", "b"]);
    world.attempt().max_available = 1;
    world.view().released = 1;
    assert!(matches!(decide(&world).action, Some(Action::Release(_))));
    world.crash(4);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::PodBroken));
    assert_eq!(decision.action, None);
    world.view().released = 4;
    assert!(
        matches!(decide(&world).action, Some(Action::Release(_))),
        "less is always allowed"
    );
}

/// Pods that return to the old version one `minReadySeconds` after another take their time.
#[test]
fn pods_that_go_where_they_belong_are_progress() {
    let mut world = rolling(0);
    world.template("c");
    world.attempt().target = revision("c");
    world.pods(["a", "a", "b", "a", "c"]);
    world.view().released = 1;
    world.view().min_ready = SignedDuration::from_mins(8);
    world.attempt().progressed = NOW - SignedDuration::from_mins(15);
    world.attempt().max_available = 1;
    for (index, minutes) in [(0, 60), (1, 60), (3, 7), (4, 60)] {
        world.view().pods[index].ready_since = Some(NOW - SignedDuration::from_mins(minutes));
    }
    assert_ne!(phase(&decide(&world)).0, Phase::Failed);
    world.now += SignedDuration::from_mins(12);
    assert_eq!(phase(&decide(&world)), (Phase::Failed, Reason::DeadlineExceeded));
}
