//! Pauses (rule 14).

use jiff::SignedDuration;

use super::{message, phase, step};
use crate::engine::decide;
use crate::engine::fixture::{NOW, plan, rolling, settled, weight};
use crate::memory::Activity;
use crate::plan::{Share, Step};
use crate::world::{Action, Phase, Reason, World};

/// In a pause of its second step, with the pod of the first updated and available.
fn pausing_for(duration: SignedDuration) -> World {
    let mut world = rolling(1);
    world.plan = Ok(plan(vec![weight(20), Step::Pause(Some(duration)), weight(60)]));
    world.attempt().steps = world.plan.as_ref().unwrap().fingerprint();
    world.attempt().max_available = 1;
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world
}

/// Rule 14
#[test]
fn a_timed_pause_lasts_its_time() {
    let minute = SignedDuration::from_mins(1);
    let mut world = pausing_for(minute);
    world.now = NOW + SignedDuration::from_secs(59);
    let decision = decide(&world);
    assert_eq!((step(&decision), decision.look_again), (1, Some(NOW + minute)));
    world.now = NOW + minute;
    assert_eq!(step(&decide(&world)), 2);
}

/// Rule 16: the watch of the pods may lag.
#[test]
fn leaving_a_pause_releases_nothing_while_a_released_pod_is_not_available() {
    let mut world = pausing_for(SignedDuration::from_mins(1));
    world.commands.promote = true;
    world.memory = decide(&world).memory;
    world.commands.promote = false;
    let Step::Share(share) = weight(60) else {
        unreachable!("a weight is a share");
    };
    assert_eq!(decide(&world).action, Some(Action::Release(share)));
    let well = world.clone();
    // The workload's own status reports it first.
    world.view().told.ready -= 1;
    assert_eq!(decide(&world).action, None);
    assert!(message(&decide(&world)).contains("waiting for the workload's status to agree with its pods"));
    // Then the pods do.
    let mut world = well.clone();
    world
        .view()
        .pods
        .iter_mut()
        .filter(|pod| pod.index == 4)
        .for_each(|pod| pod.ready_since = None);
    world.count();
    assert_eq!(decide(&world).action, None);
    assert!(
        message(&decide(&world)).contains("waiting for pod db-4 to be Ready"),
        "{}",
        message(&decide(&world))
    );
    // A full promotion releases everything.
    world.commands.promote_full = true;
    world.memory = decide(&world).memory;
    world.commands.promote_full = false;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::ALL)));
}

/// Rule 14
#[test]
fn a_manual_pause_stops_exposure_in_the_middle_of_a_step() {
    let mut world = rolling(2);
    world.view().released = 3;
    world.pods(["a", "a", "a", "b", "b"]);
    world.attempt().max_available = 2;
    world.paused = true;
    world.memory = decide(&world).memory;
    let decision = decide(&world);
    assert_eq!(decision.action, Some(Action::Release(Share::Pods(2))));
    assert_eq!(phase(&decision), (Phase::Paused, Reason::ManuallyPaused));
    world.commands.abort = true;
    assert!(
        matches!(decide(&world).memory.activity, Activity::RollingBack(_)),
        "abort works while paused"
    );
}

/// Rule 14: whatever another client writes, and however often.
#[test]
fn what_another_client_releases_in_a_manual_pause_goes_back() {
    let mut world = rolling(2);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.paused = true;
    // First the pause is recorded, then that the stop took effect.
    (0..2).for_each(|_| world.memory = decide(&world).memory);
    assert_eq!(world.attempt().stopped_at, Some(1));
    for _ in 0..3 {
        world.view().released = 5;
        assert_eq!(decide(&world).action, Some(Action::Release(Share::Pods(1))));
        world.view().released = 1;
        world.pods(["a", "a", "a", "b", "b"]);
        // The number of updated pods is recorded.
        world.memory = decide(&world).memory;
        assert!(matches!(decide(&world).action, Some(Action::Remove { pod, .. }) if pod == "db-3"));
        world.pods(["a", "a", "a", "a", "b"]);
        assert_eq!(decide(&world).action, None);
    }
    world.paused = false;
    world.memory = decide(&world).memory;
    assert_eq!(world.attempt().stopped_at, None);
}

/// Rule 14: the guard was up before.
#[test]
fn a_pod_that_is_new_before_a_paused_rollout_begins_goes_back() {
    let mut world = settled();
    world.template("b");
    world.pods(["a", "a", "a", "a", "b"]);
    world.paused = true;
    for released in [5, 1] {
        world.view().released = released;
        world.memory = decide(&world).memory;
    }
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
    world.view().released = 0;
    assert!(matches!(decide(&world).action, Some(Action::Remove { pod, .. }) if pod == "db-4"));
}

/// Rules 10 and 16: a pod that was unready on the old version is not ignored on the new one.
#[test]
fn leaving_a_pause_waits_for_a_pod_that_was_not_ready_before() {
    let mut world = rolling(1);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.attempt().ignored_pods = vec![4];
    world.attempt().max_available = 1;
    world.unready(4);
    world.commands.promote = true;
    world.memory = decide(&world).memory;
    world.commands.promote = false;
    assert_eq!(decide(&world).action, None);
    world.pods(["a", "a", "a", "a", "b"]);
    let sixty = Share::Percent(crate::plan::Weight::new(60).unwrap());
    assert_eq!(decide(&world).action, Some(Action::Release(sixty)));
}

/// Rule 14: updated pods stay released, so they must be known.
#[test]
fn a_manual_pause_waits_until_both_watches_tell_of_the_same_pods() {
    let mut world = rolling(2);
    world.view().released = 3;
    world.pods(["a", "a", "a", "b", "b"]);
    world.attempt().max_available = 2;
    world.attempt().paused_by_user = true;
    world.paused = true;
    world.view().pods.truncate(4);
    assert_eq!(decide(&world).action, None);
    world.pods(["a", "a", "a", "b", "b"]);
    assert_eq!(decide(&world).action, Some(Action::Release(Share::Pods(2))));
}

/// Rule 11: after a pause the message says what is waited for, and the deadline applies.
#[test]
fn a_pause_that_is_over_says_what_it_waits_for() {
    let minute = SignedDuration::from_mins(1);
    let mut world = pausing_for(minute);
    world.view().pods[0].ready_since = None;
    world.count();
    assert_eq!(phase(&decide(&world)).0, Phase::Paused);
    world.now = NOW + minute * 2;
    let decision = decide(&world);
    assert!(message(&decision).contains("the pause is over: waiting for pod db-0"));
    world.now = NOW + minute * 12;
    assert_eq!(phase(&decide(&world)).1, Reason::DeadlineExceeded);
}
