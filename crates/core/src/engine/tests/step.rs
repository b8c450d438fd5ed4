//! Steps and their gates (rules 2, 3, 9 and 14).

use jiff::SignedDuration;
use rstest::rstest;

use super::{message, notices, phase, silent, step};
use crate::engine::decide;
use crate::engine::fixture::{NOW, plan, revision, rolling, settled, weight};
use crate::memory::Activity;
use crate::plan::{Share, Step, StepIndex};
use crate::world::{Action, Phase, Reason, World};

/// Rule 8: which pods are ignored follows from the pods, so they must be known.
#[rstest]
#[case::a_new_version(settled())]
#[case::a_third_version(rolling(2))]
fn a_version_does_not_begin_before_its_pods_are_told(#[case] mut world: World) {
    world.template("c");
    world.view().pods.clear();
    let decision = decide(&world);
    assert_eq!((decision.report, decision.memory), (None, world.memory.clone()));
}

/// Rules 3 and 12: an attempt that was never recorded is not rejected either.
#[test]
fn a_version_that_is_to_be_turned_down_is_written_down_first() {
    let mut world = settled();
    world.template("b");
    world.current("b");
    world.pods(["b"; 5]);
    world.view().pods[0].ready_since = None;
    world.count();
    let decision = decide(&world);
    assert_eq!((step(&decision), notices(&decision)), (0, vec!["RolloutStarted"]));
    world.memory = decision.memory;
    assert_eq!(notices(&decide(&world)), ["RolloutAborted"]);
}

/// Rules 2 and 3: a step is recorded before it releases pods.
#[test]
fn a_new_version_is_written_down_before_anything_is_released() {
    let mut world = settled();
    world.template("b");
    let decision = decide(&world);
    assert_eq!((step(&decision), decision.action.clone()), (0, None));
    assert_eq!(notices(&decision), ["RolloutStarted"]);
    world.memory = decision.memory;
    let twenty = Share::Percent(crate::plan::Weight::new(20).unwrap());
    assert_eq!(decide(&world).action, Some(Action::Release(twenty)));
}

/// Rule 3
#[rstest]
#[case::another_revision(|world: &mut World| world.pods(["a"; 5]), "pod db-4 to run db-b")]
#[case::not_ready(|world: &mut World| world.unready(4), "pod db-4 to be Ready")]
#[case::an_old_pod_not_ready(|world: &mut World| world.unready(1), "pod db-1 to be Ready")]
#[case::a_missing_pod(|world: &mut World| world.pods(["a", "a", "", "a", "b"]), "pod 2 to be created")]
#[case::counters_lag(|world: &mut World| world.view().told.updated = 0, "status to agree")]
#[case::one_too_many(|world: &mut World| world.pods(["a", "a", "a", "b", "b"]), "pod db-3 to run db-a")]
#[case::not_long_enough(|world: &mut World| world.view().min_ready = SignedDuration::from_mins(5), "stay Ready")]
#[case::scaled_to_zero(|world: &mut World| { world.view().replicas = 0; world.pods([]) }, "scaled to zero")]
fn a_step_is_not_passed(#[case] flaw: fn(&mut World), #[case] waits_for: &str) {
    let mut world = rolling(0);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    let passed = decide(&world);
    assert_eq!(step(&passed), 1, "without the flaw it is passed");
    flaw(&mut world);
    let decision = decide(&world);
    assert_eq!(step(&decision), 0);
    assert!(message(&decision).contains(waits_for), "{}", message(&decision));
}

/// Rule 3: a crash-looping pod without a readiness probe is Ready for a moment after every restart.
#[test]
fn a_pod_that_has_just_crashed_is_not_believed() {
    let mut world = rolling(0);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.view().pods[4].restarted_at = Some(NOW - SignedDuration::from_secs(3));
    let decision = decide(&world);
    assert_eq!(step(&decision), 0);
    assert_eq!(decision.look_again, Some(NOW + SignedDuration::from_secs(7)));
}

/// Rule 9
#[test]
fn what_slipped_through_is_pulled_back() {
    let mut world = rolling(0);
    world.attempt().counted = Some(10);
    world.view().replicas = 10;
    world.view().released = 6;
    world.pods(["a", "a", "a", "a", "b", "b", "b", "b", "b", "b"]);
    let twenty = Share::Percent(crate::plan::Weight::new(20).unwrap());
    assert_eq!(decide(&world).action, None, "progress is written down first");
    world.attempt().max_available = 10;
    assert_eq!(decide(&world).action, Some(Action::Release(twenty)));
    world.view().released = 2;
    assert!(matches!(decide(&world).action, Some(Action::Remove { pod, .. }) if pod == "db-7"));
}

#[test]
fn edited_steps_begin_again_and_move_no_pod() {
    let mut world = rolling(2);
    world.view().released = 3;
    world.pods(["a", "a", "b", "b", "b"]);
    world.plan = Ok(plan(vec![weight(20), weight(40), Step::Pause(None), weight(80)]));
    for expected in [0, 1, 2] {
        let decision = decide(&world);
        assert_eq!((step(&decision), decision.action.clone()), (expected, None));
        world.memory = decision.memory;
    }
    assert_eq!(
        phase(&decide(&world)),
        (Phase::Paused, Reason::StepPaused),
        "no gate is skipped"
    );
}

#[test]
fn a_place_that_no_step_has_skips_no_gate() {
    let mut world = rolling(1);
    world.attempt().step = StepIndex(99);
    let decision = decide(&world);
    assert_eq!((step(&decision), notices(&decision)), (0, vec!["StepsChanged"]));
}

#[test]
fn all_steps_done_every_pod_follows_and_then_it_is_stable() {
    let mut world = rolling(3);
    assert_eq!(decide(&world).action, Some(Action::Release(Share::ALL)));
    world.view().released = 5;
    world.pods(["b"; 5]);
    world.attempt().max_available = 5;
    assert!(silent(&world), "Kubernetes has not turned over yet");
    world.current("b");
    let decision = decide(&world);
    assert_eq!(
        decision.action,
        Some(Action::Release(Share::NONE)),
        "rule 1: the guard is up before anybody hears that it is done"
    );
    assert_eq!((decision.report, &decision.memory), (None, &world.memory));
    world.view().released = 0;
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Successful, Reason::Stable));
    assert_eq!(decision.memory.activity, Activity::Idle);
    assert_eq!(decision.memory.stable.as_ref().unwrap().revision, revision("b"));
}

/// Rule 1: the guard stays, even if a pod is lost at that moment.
#[test]
fn a_guard_that_is_up_at_the_end_stays_up() {
    let mut world = rolling(3);
    world.pods(["b", "b", "", "b", "b"]);
    world.view().current = revision("b");
    let decision = decide(&world);
    assert_eq!(decision.action, None);
    assert_eq!(step(&decision), 3);
}

#[rstest]
#[case::ordered(true)]
#[case::parallel(false)]
fn a_broken_stable_version_does_not_hold_up_its_cure(#[case] ordered: bool) {
    let mut world = settled();
    world.view().ordered = ordered;
    world.crash(4);
    world.template("b");
    world.memory = decide(&world).memory;
    world.view().released = 1;
    assert!(
        matches!(decide(&world).action, Some(Action::Remove { pod, serving: false, .. }) if pod == "db-4"),
        "Kubernetes may replace nothing while a pod is broken"
    );
    world.pods(["a", "a", "a", "a", "b"]);
    world.crash(1);
    assert_eq!(step(&decide(&world)), 0, "one that broke only later counts");
    world.attempt().ignored_pods = vec![1];
    assert_eq!(step(&decide(&world)), 1);
}

#[test]
fn a_promoted_rollout_skips_to_its_end() {
    let mut world = rolling(1);
    world.commands.promote_full = true;
    let decision = decide(&world);
    assert_eq!(step(&decision), 3);
    assert_eq!(StepIndex(step(&decision)), world.plan.as_ref().unwrap().end());
}
