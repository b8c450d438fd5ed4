//! Which workloads are adopted (rules 4 and 15).

use rstest::rstest;

use super::{message, notices, phase, step};
use crate::engine::decide;
use crate::engine::fixture::{revision, rolling, settled};
use crate::memory::{Activity, Memory, Stable};
use crate::plan::{Fingerprint, Share};
use crate::workload::Claim;
use crate::world::{Action, NoWorkload, Phase, Reason, World};

/// Rule 4
#[test]
fn a_workload_in_the_middle_of_a_change_is_stable_on_what_it_comes_from() {
    let mut world = settled();
    world.memory = Memory::default();
    world.template("b");
    world.pods(["a", "a", "a", "b", "b"]);
    world.view().current_template = Some(Fingerprint::of("a"));
    let decision = decide(&world);
    assert_eq!(decision.memory.stable.as_ref().unwrap().revision, revision("a"));
    assert_eq!(step(&decision), 0);
    world.memory = decision.memory;
    world.view().released = 5;
    assert_eq!(
        decide(&world).action,
        Some(Action::Release(Share::Pods(2))),
        "pods that are new already stay so, and no other follows"
    );
}

/// Rule 4: the update may complete before it is stopped, and then there is nothing to undo.
#[test]
fn a_change_under_way_is_stopped_before_anything_is_remembered_of_it() {
    let mut world = settled();
    world.memory = Memory::default();
    world.template("b");
    world.pods(["a", "a", "a", "b", "b"]);
    world.view().current_template = Some(Fingerprint::of("a"));
    world.view().released = 5;
    world.view().claim = Claim::Free;
    let decision = decide(&world);
    assert_eq!((&decision.memory.stable, &decision.action), (&None, &None));
    assert_eq!(phase(&decision), (Phase::Progressing, Reason::Guarding));
    world.memory = decision.memory;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::Pods(2))));

    let mut over = world.clone();
    over.current("b");
    over.pods(["b"; 5]);
    over.view().current_template = None;
    let decision = decide(&over);
    assert_eq!(decision.memory.stable.as_ref().unwrap().revision, revision("b"));
    assert_eq!(decision.memory.activity, Activity::Idle);
    assert!(notices(&decision).is_empty());

    world.view().released = 2;
    world.view().claim = Claim::Ours;
    let decision = decide(&world);
    assert_eq!(decision.memory.stable.as_ref().unwrap().revision, revision("a"));
    assert_eq!(notices(&decision), ["RolloutStarted"]);
}

/// Rule 4: pods come from another watch than the workload, and may not be known yet.
#[test]
fn a_workload_whose_pods_are_not_told_yet_is_not_taken_on() {
    let mut world = settled();
    world.memory = Memory::default();
    world.template("b");
    world.view().current_template = Some(Fingerprint::of("a"));
    world.pods(["a", "a", "a", "b", "b"]);
    world.view().pods.clear();
    let decision = decide(&world);
    assert_eq!((decision.report, decision.memory), (None, world.memory.clone()));
    world.pods(["a", "a", "a", "b", "b"]);
    assert!(matches!(decide(&world).memory.activity, Activity::Rolling(attempt) if attempt.min_updated == 2));
}

/// Rule 4: Kubernetes does not know the version of the pods, so every recreated pod gets the new one.
#[test]
fn a_workload_that_was_made_anew_around_its_pods_is_stable_on_what_they_run() {
    let mut world = settled();
    world.template("b");
    world.current("b");
    world.pods(["a", "a", "a", "a", "b"]);
    world.view().uid = "another".into();
    world.view().claim = Claim::Free;
    world.view().released = 5;
    world.view().forgotten = Some(Stable {
        revision: revision("a"),
        template: Fingerprint::of("a"),
    });
    let mut late = world.clone();
    late.view().told.updated = 5;
    assert_eq!(
        decide(&late).memory,
        Memory::default(),
        "the pods may only be late"
    );

    let decision = decide(&world);
    assert_eq!(notices(&decision), ["WorkloadRecreated"]);
    world.memory = decision.memory;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
    world.view().claim = Claim::Ours;
    assert_eq!(decide(&world).action, Some(Action::Restore(Share::ALL)));

    world.template("a");
    world.current("a");
    world.pods(["a"; 5]);
    world.view().forgotten = None;
    world.view().released = 0;
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["RollbackCompleted"]);
    world.memory = decision.memory;
    assert!(message(&decide(&world)).contains("db-b was taken out of the template"));
    world.template("b");
    assert!(
        matches!(decide(&world).memory.activity, Activity::Rolling(_)),
        "it is asked for again"
    );
}

/// Rule 15
#[test]
fn a_workload_of_another_is_left_alone_and_the_other_named() {
    let mut world = rolling(0);
    world.view().claim = Claim::Other("RolloutPlugin first".into());
    let decision = decide(&world);
    assert_eq!(decision.action, None);
    assert!(message(&decision).contains("RolloutPlugin first"));
}

#[test]
fn an_invalid_plan_is_reported_and_releases_nothing() {
    let mut world = settled();
    world.template("b");
    world.view().released = 3;
    world.plan = Err(vec!["spec.x: is empty".into(), "spec.y: is empty".into()]);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::InvalidSpec));
    assert_eq!(
        message(&decision),
        "spec.x: is empty; spec.y: is empty; no pod is released until it is fixed"
    );
    assert_eq!(decision.action, Some(Action::Release(Share::NONE)));
    assert_eq!(decision.memory, world.memory);
}

/// Rule 1: the guard belongs to the object, not to its plan.
#[test]
fn a_workload_is_claimed_and_guarded_before_its_plan_is_valid() {
    let mut world = settled();
    world.memory = Memory::default();
    world.view().claim = Claim::Free;
    world.view().released = 5;
    world.plan = Err(vec!["there is no AnalysisTemplate checks".into()]);
    let adopted = decide(&world);
    assert_eq!(adopted.memory.stable.as_ref().unwrap().revision, revision("a"));
    world.memory = adopted.memory;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
}

/// So is the version before it: pods that another client releases are rolled back.
#[test]
fn a_version_that_slips_through_without_a_plan_goes_back() {
    let mut world = settled();
    world.plan = Err(vec!["spec.x: is empty".into()]);
    world.template("b");
    world.pods(["a", "a", "a", "a", "b"]);
    world.view().released = 1;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
    world.view().released = 0;
    assert!(matches!(decide(&world).action, Some(Action::Remove { pod, .. }) if pod == "db-4"));
    world.pods(["a"; 5]);
    assert_eq!(decide(&world).action, None);
}

#[test]
fn a_change_that_is_found_in_the_middle_stops_there_until_the_plan_is_valid() {
    let mut world = settled();
    let valid = std::mem::replace(&mut world.plan, Err(vec!["spec.x: is empty".into()]));
    world.memory = Memory::default();
    world.view().claim = Claim::Free;
    world.view().released = 5;
    world.template("b");
    world.view().current_template = Some(Fingerprint::of("a"));
    world.pods(["a", "a", "a", "b", "b"]);
    world.memory = decide(&world).memory;
    let stopped = decide(&world);
    assert_eq!(stopped.action, Some(Action::Release(Share::Pods(2))));
    assert_eq!(stopped.memory.stable, None);
    world.view().released = 2;
    world.view().claim = Claim::Ours;
    let adopted = decide(&world);
    assert_eq!(notices(&adopted), ["RolloutStarted"]);
    world.memory = adopted.memory;
    assert_eq!(decide(&world).action, None);
    // A pod that another client releases meanwhile is rolled back.
    world.view().released = 5;
    world.pods(["a", "a", "b", "b", "b"]);
    assert_eq!(decide(&world).action, Some(Action::Release(Share::Pods(2))));
    world.view().released = 2;
    assert!(matches!(decide(&world).action, Some(Action::Remove { pod, .. }) if pod == "db-2"));
    world.pods(["a", "a", "a", "b", "b"]);
    world.plan = valid;
    let begun = decide(&world);
    let Activity::Rolling(attempt) = begun.memory.activity else {
        panic!("{:?}", begun.memory.activity)
    };
    assert_eq!((attempt.step.0, attempt.min_updated), (0, 2));
}

#[test]
fn a_plan_that_becomes_invalid_releases_no_further_pod() {
    let mut world = rolling(0);
    world.pods(["a", "a", "a", "a", "b"]);
    world.plan = Err(vec!["spec.x: is empty".into()]);
    world.view().released = 1;
    assert_eq!(decide(&world).action, None);
    // Another client lowers the partition.
    world.view().released = 5;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::Pods(1))));
    // Until the stop takes effect, pods may be on their way; pods updated afterwards are rolled back.
    world.view().released = 1;
    world.memory = decide(&world).memory;
    for released in [5, 1] {
        world.pods(["a", "a", "a", "b", "b"]);
        world.view().released = released;
        match decide(&world).action {
            Some(Action::Release(share)) if released == 5 => assert_eq!(share, Share::Pods(1)),
            Some(Action::Remove { pod, .. }) if released == 1 => assert_eq!(pod, "db-3"),
            other => panic!("{other:?}"),
        }
    }
    world.reference_valid = false;
    assert_eq!(decide(&world).action, None);
}

#[test]
fn a_workload_that_is_not_there_is_waited_for() {
    let mut world = settled();
    world.workload = Err(NoWorkload::Missing("StatefulSet db".into()));
    let decision = decide(&world);
    assert_eq!(message(&decision), "waiting for StatefulSet db to exist");
    assert_eq!(decision.memory, world.memory);
}

#[test]
fn another_workload_of_the_same_name_is_a_new_one() {
    let mut world = rolling(1);
    world.view().uid = "another".into();
    world.current("b");
    world.pods(["b"; 5]);
    let decision = decide(&world);
    assert_eq!(decision.memory.stable.as_ref().unwrap().revision, revision("b"));
    assert_eq!(decision.memory.activity, Activity::Idle);
}

/// An invalid reference changes nothing and records nothing.
#[rstest]
#[case::at_rest(settled())]
#[case::with_pods_astray({
    let mut world = settled();
    world.pods(["a", "a", "a", "a", "b"]);
    world
})]
#[case::never_seen_before({
    let mut world = settled();
    world.memory = Memory::default();
    world.view().claim = Claim::Free;
    world
})]
fn an_invalid_reference_does_nothing(#[case] mut world: World) {
    world.reference_valid = false;
    world.plan = Err(vec!["spec.plugin.name: foo is not known".into()]);
    let decision = decide(&world);
    assert_eq!((&decision.action, &decision.memory), (&None, &world.memory));
    assert_eq!(phase(&decision), (Phase::Failed, Reason::InvalidSpec));
}
