//! Pod by pod, with unready pods: which are ignored, and what does not reject the version (rules 11 and 22).

use jiff::SignedDuration;
use rstest::rstest;
use stateward_api::analysis::Phase as Verdict;

use super::by_pod::{at, checked, pods};
use super::{message, notices, phase, step};
use crate::engine::decide;
use crate::engine::fixture::{NOW, settled};
use crate::memory::Activity;
use crate::plan::{OnFailure, Share, StepIndex};
use crate::world::{Action, Phase, Reason, World};

#[test]
fn an_excuse_ends_when_the_pod_is_well() {
    let mut world = at(2, 1);
    world.attempt().ignored_pods = vec![0];
    world.unready(0);
    checked(&mut world, Verdict::Running);
    let decision = decide(&world);
    assert!(notices(&decision).is_empty());
    assert!(message(&decision).contains("not waiting for pod 0, which was not Ready before"));
    world.view().pods[0].ready_since = Some(NOW);
    world.count();
    let decision = decide(&world);
    let Activity::Rolling(attempt) = &decision.memory.activity else {
        panic!("it rolls");
    };
    assert!(attempt.ignored_pods.is_empty());
    world.memory = decision.memory;
    world.unready(0);
    assert!(notices(&decide(&world)).contains(&"ChecksRestarted"));
}

/// A crash-looping pod without a readiness probe is Ready for a moment after every restart.
#[test]
fn an_excuse_outlasts_a_moment_of_readiness() {
    let mut world = at(2, 1);
    world.attempt().ignored_pods = vec![0];
    world.view().pods[0].restarted_at = Some(NOW - SignedDuration::from_secs(2));
    world.view().pods[0].ready_since = Some(NOW - SignedDuration::from_secs(2));
    world.count();
    let decision = decide(&world);
    let Activity::Rolling(attempt) = &decision.memory.activity else {
        panic!("it rolls");
    };
    assert_eq!(attempt.ignored_pods, [0]);
    assert_eq!(decision.look_again, Some(NOW + SignedDuration::from_secs(8)));
}

/// A pod that is recreated at that index is another one.
#[test]
fn an_excuse_ends_with_the_pod_that_scaling_takes_away() {
    let mut world = at(2, 1);
    world.attempt().ignored_pods = vec![0, 4];
    world.unready(0);
    world.view().replicas = 4;
    world.view().pods.pop();
    world.plan = Ok(pods(4));
    world.count();
    let Activity::Rolling(attempt) = decide(&world).memory.activity else {
        panic!("it rolls");
    };
    assert_eq!(attempt.ignored_pods, [0]);
}

#[rstest]
#[case::being_replaced(|world: &mut World| {
    world.view().pods[0].terminating = true;
    world.view().told.current = 4;
}, &[])]
#[case::starting(|world: &mut World| world.unready(0), &[])]
#[case::crashing(|world: &mut World| world.crash(0), &[0])]
#[case::started_again_a_moment_ago(|world: &mut World| {
    world.unready(0);
    world.view().pods[0].restarted_at = Some(NOW - SignedDuration::from_mins(1));
}, &[0])]
#[case::started_again_long_ago(|world: &mut World| {
    world.unready(0);
    world.view().pods[0].restarts = 1;
    world.view().pods[0].restarted_at = Some(NOW - SignedDuration::from_hours(1));
}, &[])]
fn only_a_pod_that_is_broken_is_excused(#[case] befall: fn(&mut World), #[case] ignored_pods: &[u32]) {
    let mut world = settled();
    world.plan = Ok(pods(5));
    world.template("b");
    befall(&mut world);
    let decision = decide(&world);
    let Activity::Rolling(attempt) = &decision.memory.activity else {
        panic!("it rolls");
    };
    assert_eq!(attempt.ignored_pods, ignored_pods);
}

/// A version that never becomes Ready does not block its fix forever.
#[test]
fn before_the_first_pod_an_old_one_that_is_stuck_is_waited_for_until_the_deadline() {
    let mut world = at(0, 0);
    world.plan.as_mut().unwrap().on_failure = OnFailure::Abort;
    world.view().ordered = false;
    world.unready(0);
    let decision = decide(&world);
    assert!(message(&decision).contains("waiting for pod db-0"));
    let mut anew = world.clone();
    anew.attempt().progressed = NOW - SignedDuration::from_hours(3);
    assert!(
        !notices(&decide(&anew)).contains(&"UnreadyPodsIgnored"),
        "the gate has just begun anew"
    );
    world.now += SignedDuration::from_mins(10);
    let decision = decide(&world);
    let Activity::Rolling(attempt) = &decision.memory.activity else {
        panic!("it is not rejected");
    };
    assert_eq!(attempt.ignored_pods, [0]);
    assert!(notices(&decision).contains(&"UnreadyPodsIgnored"));

    let mut world = at(2, 1);
    world.plan.as_mut().unwrap().on_failure = OnFailure::Abort;
    world.unready(0);
    world.now += SignedDuration::from_mins(10);
    let decision = decide(&world);
    assert!(
        matches!(decision.memory.activity, Activity::RollingBack(_)),
        "it may be the new one's fault"
    );
}

/// Each pod has the whole deadline: one that has only just become unready is no reason to have two down.
#[test]
fn a_pod_that_has_just_become_unwell_is_not_excused_with_the_others() {
    let mut world = at(0, 0);
    world.view().ordered = false;
    world.unready(0);
    world.unready(1);
    world.now += SignedDuration::from_mins(10);
    let five_seconds_ago = world.now - SignedDuration::from_secs(5);
    world.view().pods[1].unready_since = Some(five_seconds_ago);
    let decision = decide(&world);
    let Activity::Rolling(attempt) = &decision.memory.activity else {
        panic!("it is not rejected");
    };
    assert_eq!(attempt.ignored_pods, [0]);
}

/// Their own times cover only the last restart, so the other pods show how long they have been blocking.
#[rstest]
#[case::alone(|_: &mut World| {}, &[0])]
#[case::after_another(|world: &mut World| {
    let a_minute_ago = world.now - SignedDuration::from_mins(1);
    world.view().pods[3].ready_since = Some(a_minute_ago);
}, &[])]
#[case::beside_another(|world: &mut World| {
    let a_minute_ago = world.now - SignedDuration::from_mins(1);
    world.unready(3);
    world.view().pods[3].unready_since = Some(a_minute_ago);
}, &[])]
#[case::at_a_gate_that_has_begun_anew(|world: &mut World| {
    let a_minute_ago = world.now - SignedDuration::from_mins(1);
    world.attempt().entered = a_minute_ago;
}, &[])]
#[case::while_checks_were_made(|world: &mut World| checked(world, Verdict::Running), &[])]
#[case::crashed_once(|world: &mut World| world.view().pods[0].trouble = None, &[])]
#[case::beside_another_crash_loop(|world: &mut World| {
    let a_moment_ago = world.now - SignedDuration::from_secs(5);
    world.crash(3);
    world.view().pods[3].restarted_at = Some(a_moment_ago);
    world.view().pods[3].unready_since = Some(a_moment_ago);
}, &[0, 3])]
#[case::beside_one_that_is_ready_for_a_moment(|world: &mut World| {
    let a_moment_ago = world.now - SignedDuration::from_secs(5);
    world.view().pods[3].restarted_at = Some(a_moment_ago);
    world.view().pods[3].ready_since = Some(a_moment_ago);
}, &[0])]
fn crash_loops_that_flap_are_excused_when_nothing_else_was_in_the_way(
    #[case] befall: fn(&mut World),
    #[case] ignored_pods: &[u32],
) {
    let mut world = at(0, 0);
    world.view().ordered = false;
    world.now += SignedDuration::from_mins(10);
    let a_moment_ago = world.now - SignedDuration::from_secs(5);
    world.crash(0);
    world.view().pods[0].restarts = 6;
    world.view().pods[0].restarted_at = Some(a_moment_ago);
    world.view().pods[0].unready_since = Some(a_moment_ago);
    befall(&mut world);
    world.count();
    let Activity::Rolling(attempt) = decide(&world).memory.activity else {
        panic!("it is not rejected");
    };
    assert_eq!(attempt.ignored_pods, ignored_pods);
}

/// Rule 11: no pod is updated yet, so no version is to blame.
#[rstest]
#[case::stuck_in_the_way_of_all_others(|world: &mut World| world.unready(0), Phase::Failed)]
#[case::never_made(|world: &mut World| world.pods(["a", "", "a", "a", "a"]), Phase::Failed)]
#[case::not_ready_for_long_enough(|world: &mut World| {
    world.view().min_ready = SignedDuration::from_hours(1);
}, Phase::Progressing)]
fn before_the_first_pod_no_version_is_turned_down_for_its_deadline(
    #[case] befall: fn(&mut World),
    #[case] told: Phase,
) {
    let mut world = at(0, 0);
    world.plan.as_mut().unwrap().on_failure = OnFailure::Abort;
    befall(&mut world);
    world.now += SignedDuration::from_mins(10);
    let decision = decide(&world);
    assert!(matches!(decision.memory.activity, Activity::Rolling(_)));
    assert_eq!(phase(&decision).0, told);
}

/// Rule 11: on the old version that pod would block the rollback too; once it is available, the rollout continues.
#[test]
fn a_version_that_an_excused_pod_is_in_the_way_of_is_held_and_not_turned_down() {
    let mut world = at(2, 1);
    world.plan.as_mut().unwrap().on_failure = OnFailure::Abort;
    world.unready(0);
    world.now += SignedDuration::from_mins(10);
    assert!(
        matches!(decide(&world).memory.activity, Activity::RollingBack(_)),
        "it was well before"
    );
    world.attempt().ignored_pods = vec![0];
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::DeadlineExceeded));
    assert!(
        message(&decision).contains("waiting for pod db-0 to be Ready, which is in the way of every other")
    );
    assert!(message(&decision).contains("promote --full"));
    assert!(matches!(decision.memory.activity, Activity::Rolling(_)));

    let now = world.now;
    world.view().pods[0].ready_since = Some(now);
    world.count();
    let Activity::Rolling(attempt) = decide(&world).memory.activity else {
        panic!("it is not rejected when the pod is well");
    };
    assert_eq!((attempt.progressed, attempt.ignored_pods), (now, vec![]));
}

/// Rule 22: Kubernetes has not replaced the pod for a while, so the checks have expired.
#[test]
fn a_released_pod_that_does_not_go_is_taken_back_when_its_checks_are_old() {
    let mut world = at(1, 0);
    world.view().released = 1;
    world.now += SignedDuration::from_secs(30);
    assert_eq!(step(&decide(&world)), 1);
    world.now += SignedDuration::from_secs(40);
    let decision = decide(&world);
    assert_eq!(step(&decision), 0);
    assert_eq!(notices(&decision), ["ChecksRestarted"]);
    world.memory = decision.memory;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
    let mut moves = at(1, 0);
    moves.view().released = 1;
    moves.view().pods[4].terminating = true;
    moves.count();
    moves.now += SignedDuration::from_secs(70);
    assert_eq!(step(&decide(&moves)), 1, "it goes");
}

/// Rule 22: checks from before a pod was unready, or before a manual pause, do not cover the released pod.
#[test]
fn a_released_pod_that_does_not_go_is_taken_back_when_another_was_unwell() {
    let mut world = at(1, 0);
    world.view().released = 1;
    world.now += SignedDuration::from_secs(5);
    world.view().pods[0].ready_since = Some(NOW + SignedDuration::from_secs(3));
    let decision = decide(&world);
    assert_eq!(
        (step(&decision), notices(&decision)),
        (0, vec!["ChecksRestarted"])
    );
}

#[test]
fn a_released_pod_that_does_not_go_is_checked_again_after_a_pause_by_hand() {
    let mut world = at(1, 0);
    world.attempt().paused_by_user = true;
    assert_eq!(step(&decide(&world)), 0);
    let mut moves = at(1, 0);
    moves.attempt().paused_by_user = true;
    moves.view().released = 1;
    moves.view().pods[4].terminating = true;
    moves.count();
    assert_eq!(step(&decide(&moves)), 1, "it goes");
}

/// Rule 11: repeating the checks before the same pod is not progress.
#[test]
fn a_pod_that_is_taken_back_again_and_again_uses_up_the_deadline() {
    let mut world = at(1, 0);
    world.view().released = 1;
    world.now += SignedDuration::from_secs(70);
    world.memory = decide(&world).memory;
    assert_eq!(world.attempt().progressed, NOW);
    world.view().released = 0;
    world.now += SignedDuration::from_secs(30);
    checked(&mut world, Verdict::Successful);
    world.memory = decide(&world).memory;
    assert_eq!(world.attempt().step, StepIndex(1));
    assert_eq!(
        world.attempt().progressed,
        NOW + SignedDuration::from_secs(30),
        "what the checks took does not count"
    );
    world.view().released = 1;
    let mut goes = world.clone();
    goes.view().pods[4].terminating = true;
    goes.count();
    goes.memory = decide(&goes).memory;
    let attempt = goes.attempt();
    assert_eq!(attempt.progressed, attempt.entered, "it goes");
}

/// Rule 11: as long as the old pod is not replaced, or still terminating, the new version is not to blame.
#[test]
fn no_version_is_turned_down_while_no_pod_has_run_it() {
    let mut world = at(1, 0);
    world.plan.as_mut().unwrap().on_failure = OnFailure::Abort;
    world.view().released = 1;
    let mut stays = world.clone();
    stays.plan.as_mut().unwrap().deadline = SignedDuration::from_secs(30);
    stays.now += SignedDuration::from_secs(40);
    assert_eq!(phase(&decide(&stays)), (Phase::Failed, Reason::DeadlineExceeded));
    world.view().pods[4].terminating = true;
    world.count();
    world.now += SignedDuration::from_mins(10);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::DeadlineExceeded));
    let message = message(&decision);
    assert!(
        message.contains("; pod db-4 has not stopped; go back with"),
        "{message}"
    );
    world.view().pods.pop();
    world.count();
    let decision = decide(&world);
    assert!(
        matches!(decision.memory.activity, Activity::Rolling(_)),
        "it has gone at last"
    );
    world.memory = decision.memory;
    world.now += SignedDuration::from_mins(10);
    assert!(
        matches!(decide(&world).memory.activity, Activity::RollingBack(_)),
        "it cannot be made on the new version"
    );
}

#[test]
fn no_version_is_turned_down_for_an_old_pod_that_takes_long_to_stop() {
    let mut world = at(3, 1);
    world.plan.as_mut().unwrap().on_failure = OnFailure::Abort;
    world.view().released = 2;
    world.view().pods[3].terminating = true;
    world.count();
    world.now += SignedDuration::from_mins(10);
    assert_eq!(phase(&decide(&world)), (Phase::Failed, Reason::DeadlineExceeded));
    world.pods(["a", "a", "a", "b", "b"]);
    world.unready(3);
    let Activity::Rolling(attempt) = decide(&world).memory.activity else {
        panic!("the new one has its time");
    };
    assert_eq!((attempt.max_replaced, attempt.progressed), (2, world.now));
    world.attempt().max_replaced = 2;
    assert!(
        matches!(decide(&world).memory.activity, Activity::RollingBack(_)),
        "that it is made again is not progress"
    );
}

/// An ignored pod that is updated is not ignored any more.
#[test]
fn an_excuse_does_not_cover_the_new_version() {
    let mut world = at(2, 1);
    world.attempt().ignored_pods = vec![4];
    world.unready(4);
    checked(&mut world, Verdict::Running);
    assert!(notices(&decide(&world)).contains(&"ChecksRestarted"));
}
