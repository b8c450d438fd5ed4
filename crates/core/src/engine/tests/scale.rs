//! Scaling in the middle of a rollout (rule 9).

use rstest::rstest;

use super::{message, notices, step};
use crate::engine::fixture::{plan, rolling, weight};
use crate::engine::scale::to_release;
use crate::engine::{self, decide};
use crate::memory::{Activity, Attempt};
use crate::plan::{Share, Step};
use crate::world::{Action, World};

/// Five pods, the last one updated, in the pause after 20 %, scaled to `replicas`. Only the spec has changed so far.
fn scaled(replicas: u32) -> World {
    let mut world = rolling(1);
    world.view().released = 1;
    world.attempt().max_available = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.view().replicas = replicas;
    world.view().released += i64::from(replicas) - 5;
    world
}

/// Records decisions until one has an action, and returns that action.
fn settle(world: &mut World) -> Option<Action> {
    for _ in 0..10 {
        let decision = decide(world);
        if decision.memory == world.memory {
            return decision.action;
        }
        assert_eq!(decision.action, None, "it is written down first");
        world.memory = decision.memory;
    }
    panic!("it never settles");
}

fn attempt(world: &World) -> &Attempt {
    match &world.memory.activity {
        Activity::Rolling(attempt) => attempt,
        other => panic!("{other:?}"),
    }
}

#[test]
fn scaling_up_raises_the_guard_first_and_moves_no_pod() {
    let mut world = scaled(8);
    let decision = decide(&world);
    assert_eq!(decision.memory, world.memory);
    assert_eq!(decision.action, Some(Action::Release(Share::NONE)));
    world.view().released = 0;
    // Which pods are updated is unknown while the two watches differ.
    world.view().told.updated = 2;
    let decision = decide(&world);
    assert_eq!((decision.action, decision.memory == world.memory), (None, true));
    world.count();
    let decision = decide(&world);
    assert_eq!((step(&decision), notices(&decision)), (1, vec!["Scaled"]));
    world.memory = decision.memory;
    assert_eq!(attempt(&world).kept, [4]);
    for pods in [
        ["a", "a", "a", "a", "b", "", "", ""],
        ["a", "a", "a", "a", "b", "a", "a", "a"],
    ] {
        world.pods(pods);
        let decision = decide(&world);
        assert_eq!(decision.action, None);
        assert_eq!(decision.memory, world.memory);
        assert!(!message(&decision).contains("scaled up"), "20 % of eight are one");
    }
    // The next step releases what 60 % of eight allow, and counts the pod that is already updated.
    world.commands.promote = true;
    world.memory = decide(&world).memory;
    world.commands.promote = false;
    assert_eq!(attempt(&world).step.0, 2);
    let sixty = Share::Percent(crate::plan::Weight::new(60).unwrap());
    assert_eq!(settle(&mut world), Some(Action::Release(sixty)));
}

/// Two of ten would be allowed, and one more was created before the guard was raised.
#[test]
fn an_added_pod_that_is_new_stays_so_within_the_share() {
    for (added, kept) in [("a", vec![4]), ("b", vec![4, 5])] {
        let mut world = scaled(10);
        world.view().released = 0;
        world.pods(["a", "a", "a", "a", "b", added, "a", "a", "a", "a"]);
        assert_eq!(settle(&mut world), None);
        assert_eq!(
            (attempt(&world).limit, attempt(&world).kept.clone()),
            (Some(kept.len() as u32), kept)
        );
        let decision = decide(&world);
        let words = "; scaled up: 1 of 10 pods may run the new version until the next setWeight";
        assert_eq!(
            message(&decision).contains(words),
            added == "a",
            "{}",
            message(&decision)
        );
    }
}

#[test]
fn pods_that_were_created_before_the_guard_was_raised_are_pulled_back() {
    let mut world = scaled(8);
    world.view().released = 0;
    world.pods(["a", "a", "a", "a", "b", "b", "b", ""]);
    settle(&mut world);
    assert_eq!(attempt(&world).kept, [4]);
    world.pods(["a", "a", "a", "a", "b", "b", "b", "a"]);
    assert!(matches!(settle(&mut world), Some(Action::Remove { pod, .. }) if pod == "db-6"));
    world.pods(["a", "a", "a", "a", "b", "b", "a", "a"]);
    assert!(matches!(settle(&mut world), Some(Action::Remove { pod, .. }) if pod == "db-5"));
    world.pods(["a", "a", "a", "a", "b", "a", "a", "a"]);
    assert_eq!(settle(&mut world), None);
}

/// In a pause nothing replaces it; a step with a share makes up for it.
#[test]
fn a_kept_pod_that_is_lost_comes_back_stable_and_is_made_up_for_by_the_next_step() {
    let mut world = scaled(8);
    world.view().released = 0;
    settle(&mut world);
    world.pods(["a"; 8]);
    assert_eq!(settle(&mut world), None);
    world.commands.promote = true;
    world.memory = decide(&world).memory;
    world.commands.promote = false;
    world.plan = Ok(plan(vec![weight(20), Step::Pause(None), weight(25)]));
    world.attempt().steps = world.plan.as_ref().unwrap().fingerprint();
    let quarter = Share::Percent(crate::plan::Weight::new(25).unwrap());
    assert_eq!(settle(&mut world), Some(Action::Release(quarter)));
    assert!(attempt(&world).kept.is_empty());
}

#[test]
fn a_step_under_way_goes_on_to_its_new_share() {
    let mut world = scaled(10);
    world.attempt().step.0 = 2;
    world.attempt().paused_at_step = false;
    world.view().released = 0;
    let sixty = Share::Percent(crate::plan::Weight::new(60).unwrap());
    assert_eq!(settle(&mut world), Some(Action::Release(sixty)));
    // 30 % are three: the kept one and two more.
    let mut world = scaled(10);
    world.plan = Ok(plan(vec![weight(20), Step::Pause(None), weight(30)]));
    world.attempt().steps = world.plan.as_ref().unwrap().fingerprint();
    world.attempt().step.0 = 2;
    world.attempt().paused_at_step = false;
    world.view().released = 0;
    assert_eq!(settle(&mut world), Some(Action::Release(Share::Pods(2))));
    world.view().released = 2;
    world.pods(["a", "a", "a", "a", "b", "a", "a", "a", "b", "b"]);
    world.attempt().max_available = 3;
    let passed = decide(&world);
    assert_eq!(step(&passed), 3);
    assert_eq!(passed.passed_share(&world), Some(Share::Pods(2)));
    // A kept pod must be available like every updated one.
    world.crash(4);
    let decision = decide(&world);
    assert_eq!(step(&decision), 2);
    assert!(message(&decision).contains("db-4"), "{}", message(&decision));
}

#[test]
fn scaling_up_again_keeps_what_is_new_by_then() {
    let mut world = scaled(8);
    world.view().released = 0;
    settle(&mut world);
    world.pods(["a", "a", "a", "a", "b", "a", "a", "a"]);
    world.view().replicas = 9;
    world.view().released = 1;
    assert_eq!(settle(&mut world), Some(Action::Release(Share::NONE)));
    world.view().released = 0;
    settle(&mut world);
    assert_eq!(
        (attempt(&world).kept.clone(), attempt(&world).limit),
        (vec![4], Some(1))
    );
    // Scaled down again, the share is one of five: the last pod, which is updated.
    world.pods(["a", "a", "a", "a", "b"]);
    world.view().replicas = 5;
    world.view().released = -4;
    assert_eq!(
        settle(&mut world),
        Some(Action::Release(Share::Percent(
            crate::plan::Weight::new(20).unwrap()
        )))
    );
}

#[test]
fn where_every_pod_is_released_added_ones_are_new() {
    let mut world = scaled(8);
    world.plan = Ok(plan(vec![weight(100), Step::Pause(None)]));
    world.attempt().steps = world.plan.as_ref().unwrap().fingerprint();
    world.view().released = 8;
    world.pods(["b"; 5]);
    settle(&mut world);
    assert_eq!(
        (attempt(&world).kept.clone(), attempt(&world).limit),
        (vec![], None)
    );
}

#[test]
fn an_invalid_plan_releases_no_added_pod() {
    let mut world = scaled(8);
    world.plan = Err(vec!["spec.strategy: no".into()]);
    assert_eq!(decide(&world).action, Some(Action::Release(Share::Pods(0))));
}

/// The order in which pods are updated, pod by pod; `kept` as below.
#[rstest]
#[case("-----", &[4, 3, 2, 1, 0])]
#[case("--k--", &[2, 4, 3, 1, 0])]
#[case("k-k--", &[2, 0, 4, 3, 1])]
#[case("--kk-", &[3, 2, 4, 1, 0])]
#[case("----k", &[4, 3, 2, 1, 0])]
#[case("kkkkk", &[4, 3, 2, 1, 0])]
fn kept_pods_come_first(#[case] kept: &str, #[case] order: &[u32]) {
    let mut world = rolling(0);
    let replicas = kept.len() as u32;
    let kept = kept.char_indices().filter(|(_, letter)| *letter == 'k');
    world.attempt().kept = kept.map(|(index, _)| index as u32).collect();
    let attempt = world.attempt().clone();
    let pods: Vec<_> = (1..=replicas)
        .filter_map(|number| attempt.pod_number(number, replicas))
        .collect();
    assert_eq!(pods, order);
    assert_eq!(attempt.pod_number(0, replicas), None);
    assert_eq!(attempt.pod_number(replicas + 1, replicas), None);
    // Releasing one more never updates a later pod.
    for share in 1..=replicas {
        let first = replicas - engine::release_of(&attempt, share, replicas);
        let later = &order[share as usize..];
        assert!(later.iter().all(|pod| *pod < first), "{share}");
    }
}

/// `kept` is a letter per pod: kept (`k`) or not (`-`).
#[rstest]
#[case("-----", 2, 2)]
#[case("----k---", 1, 0)]
#[case("----k---", 2, 1)]
#[case("----k---", 3, 2)]
#[case("----k---", 4, 4)]
#[case("---kk---", 1, 0)]
#[case("---kk---", 5, 5)]
#[case("-------k", 1, 1)]
#[case("k-------", 8, 8)]
#[case("k-------", 7, 6)]
fn kept_pods_count(#[case] kept: &str, #[case] share: u32, #[case] released: u32) {
    let mut world = rolling(0);
    let replicas = kept.len() as u32;
    let kept = kept.char_indices().filter(|(_, letter)| *letter == 'k');
    world.attempt().kept = kept.map(|(index, _)| index as u32).collect();
    assert_eq!(engine::release_of(world.attempt(), share, replicas), released);
    world.attempt().min_updated = share;
    world.attempt().limit = Some(0);
    assert_eq!(to_release(world.attempt(), &plan(vec![weight(0)]), replicas), 0);
}
