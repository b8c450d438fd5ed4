//! The rollback (rule 5).

use jiff::SignedDuration;
use rstest::rstest;

use super::{message, phase, rejection, silent};
use crate::engine::decide;
use crate::engine::fixture::{NOW, returning, revision};
use crate::memory::Activity;
use crate::plan::{Fingerprint, Share};
use crate::world::{Action, Phase, Reason};

/// Rule 5
#[rstest]
#[case::healthy_ones_from_the_last(["a", "a", "a", "b", "b"], &[], Some("db-4"))]
#[case::a_broken_one_first(["a", "a", "b", "b", "b"], &[2], Some("db-2"))]
#[case::none_while_one_is_away(["a", "a", "a", "b", ""], &[], None)]
#[case::none_while_a_stable_one_is_not_ready(["a", "a", "a", "b", "b"], &[0], None)]
fn the_way_back_removes_one_pod(
    #[case] pods: [&str; 5],
    #[case] broken: &[u32],
    #[case] removed: Option<&str>,
) {
    let mut world = returning(pods);
    broken.iter().for_each(|index| world.unready(*index));
    let action = decide(&world).action;
    let name = action.map(|action| match action {
        Action::Remove { pod, serving, .. } => {
            assert_eq!(serving, broken.is_empty(), "a broken pod serves nobody");
            pod
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(name.as_deref(), removed);
}

/// Rule 5: a pod that is Ready but not available yet already counts as unavailable.
#[rstest]
#[case::a_stable_one(&[0], None)]
#[case::one_that_has_to_go(&[3], Some("db-3"))]
#[case::two_that_have_to_go(&[3, 4], Some("db-4"))]
#[case::one_of_each(&[0, 3], Some("db-3"))]
fn the_way_back_has_one_pod_unavailable_at_most(#[case] fresh: &[usize], #[case] removed: Option<&str>) {
    let mut world = returning(["a", "a", "a", "b", "b"]);
    world.view().min_ready = SignedDuration::from_secs(30);
    let since = NOW - SignedDuration::from_secs(20);
    for index in fresh {
        world.view().pods[*index].ready_since = Some(since);
    }
    let decision = decide(&world);
    let name = decision.action.clone().map(|action| match action {
        Action::Remove { pod, serving, .. } => {
            assert!(serving);
            pod
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(name.as_deref(), removed);
    assert_eq!(decision.look_again, Some(NOW + SignedDuration::from_secs(10)));
    let waits = message(&decide(&world)).contains("waiting for pod db-0 to stay Ready");
    assert_eq!(waits, fresh.contains(&0));
}

/// Rule 5: a terminating pod may still be Ready.
#[test]
fn the_way_back_removes_none_while_one_is_on_its_way_out() {
    let mut world = returning(["a", "a", "a", "b", "b"]);
    world.view().pods[0].terminating = true;
    assert_eq!(decide(&world).action, None);
}

/// Rule 5: the counters lack a terminating pod before its own watch event arrives.
#[test]
fn the_way_back_removes_none_while_the_counters_miss_a_pod() {
    let mut world = returning(["a", "a", "a", "b", "b"]);
    world.view().told.current = 2;
    assert_eq!(decide(&world).action, None);
}

/// Rule 5
#[test]
fn the_way_back_holds_the_others_first() {
    let mut world = returning(["a", "a", "a", "b", "b"]);
    world.view().released = 2;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
}

/// Rule 5: Kubernetes has forgotten the stable version.
#[test]
fn a_forgotten_version_is_restored_from_our_copy() {
    let mut world = returning(["b"; 5]);
    world.current("b");
    world.view().released = 5;
    assert_eq!(decide(&world).action, Some(Action::Restore(Share::ALL)));

    world.template("a");
    assert_eq!(decide(&world).action, None, "now Kubernetes rolls every pod back");
    world.crash(4);
    assert!(matches!(decide(&world).action, Some(Action::Remove { .. })));
}

/// Rule 5
#[test]
fn what_keeps_a_pod_from_going_is_told() {
    let mut world = returning(["a", "a", "a", "b", "b"]);
    world.last_error = Some("pod db-4 may not go now".into());
    let decision = decide(&world);
    assert!(message(&decision).ends_with("pod db-4 is next; pod db-4 may not go now"));
    assert!(matches!(decision.action, Some(Action::Remove { pod, .. }) if pod == "db-4"));
}

/// Rule 5: a restored template may get another revision name.
#[test]
fn a_version_that_comes_back_under_another_name_is_guarded_before_it_is_stable() {
    let mut world = returning(["a2"; 5]);
    world.template("a2");
    world.view().template = Fingerprint::of("a");
    world.current("b");
    world.view().released = 5;
    assert!(silent(&world), "Kubernetes has not turned over yet");
    world.current("a2");
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
    world.view().released = 0;
    let decision = decide(&world);
    assert_eq!(decision.memory.activity, Activity::Idle);
    assert_eq!(decision.memory.stable.unwrap().revision, revision("a2"));
}

/// Rule 5
#[test]
fn the_way_back_ends_when_every_pod_is_stable_and_ready() {
    let mut world = returning(["a"; 5]);
    world.memory.rejected = Some(rejection());
    world.unready(2);
    assert_eq!(phase(&decide(&world)), (Phase::Failed, Reason::Aborting));
    world.pods(["a"; 5]);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::Rejected));
    assert_eq!(decision.memory.activity, Activity::Idle);
    world.memory = decision.memory;
    assert!(silent(&world), "rule 6: rejected stays rejected");
}

/// Rule 5: the counters lack a terminating pod before its own watch event arrives.
#[test]
fn the_way_back_does_not_end_while_the_counters_miss_a_pod() {
    let mut world = returning(["a"; 5]);
    world.view().told.current = 4;
    assert!(silent(&world));
    world.view().told.current = 5;
    assert_eq!(decide(&world).memory.activity, Activity::Idle);
}
