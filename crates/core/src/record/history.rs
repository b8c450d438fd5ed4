//! The rollout history: one entry for each revision that was rolled out, for as long as users may want to roll back to it.

use stateward_api::rollout::{PastRollout, RolloutEnd, RolloutStatus};

use super::status::taken_commands;
use crate::memory::{Activity, Cause};
use crate::world::{Decision, World};

/// The default number of revisions that Kubernetes keeps.
const KEPT: usize = 10;

/// The history with the entry that this decision adds, newest first.
pub(super) fn of(old: &RolloutStatus, world: &World, decision: &Decision) -> Vec<PastRollout> {
    let (before, after) = (&world.memory, &decision.memory);
    let another = before.workload.is_some() && before.workload != after.workload;
    let (mut history, ended) = if another {
        (Vec::new(), None)
    } else {
        (old.history.clone(), ended(world, decision))
    };
    let known = |history: &[PastRollout], revision: &str| {
        history
            .iter()
            .any(|past| past.revision == revision && is_good(past))
    };
    if let Some(before) = before.stable.as_ref().filter(|_| !another)
        && ended.as_ref().is_some_and(is_good)
        && !known(&history, before.revision.as_str())
    {
        history.insert(0, found(before.revision.to_string(), world));
    }
    let found = taken_on(world, decision).filter(|past| !known(&history, &past.revision));
    for past in ended.into_iter().chain(found) {
        history.retain(|other| other.revision != past.revision);
        history.insert(0, past);
    }
    while history.len() > KEPT {
        // Users want to roll back to the last good one.
        let last_good = history.iter().position(is_good);
        let oldest = history.len() - 1;
        history.remove(if last_good == Some(oldest) {
            oldest - 1
        } else {
            oldest
        });
    }
    history
}

/// Whether the revision has run in every pod.
fn is_good(past: &PastRollout) -> bool {
    matches!(past.outcome, RolloutEnd::Successful | RolloutEnd::TakenOn)
}

fn found(revision: String, world: &World) -> PastRollout {
    PastRollout {
        revision,
        outcome: RolloutEnd::TakenOn,
        message: None,
        ended_at: world.now,
        taken_commands: Vec::new(),
    }
}

/// The version that was already running when this decision adopted it.
fn taken_on(world: &World, decision: &Decision) -> Option<PastRollout> {
    let (before, after) = (&world.memory, &decision.memory);
    let stable = &after.stable.as_ref()?.revision;
    let same = before.workload == after.workload;
    let known = before
        .stable
        .as_ref()
        .is_some_and(|known| known.revision == *stable);
    let rolled = matches!(&before.activity, Activity::Rolling(attempt) if attempt.target == *stable);
    // A rollback may give the same version another revision name.
    let returned = matches!(before.activity, Activity::RollingBack(_));
    (!same || !(known || rolled || returned)).then(|| found(stable.to_string(), world))
}

/// The rollout that this decision ends.
fn ended(world: &World, decision: &Decision) -> Option<PastRollout> {
    let Activity::Rolling(attempt) = &world.memory.activity else {
        return None;
    };
    let target = &attempt.target;
    let (after, rejected) = (&decision.memory, &decision.memory.rejected);
    if matches!(&after.activity, Activity::Rolling(next) if next.target == *target) {
        return None;
    }
    let stable = after.stable.as_ref().map(|stable| &stable.revision);
    let (outcome, message) = if stable == Some(target) {
        (RolloutEnd::Successful, None)
    } else if let Some(rejected) = rejected.as_ref().filter(|rejected| rejected.revision == *target) {
        (RolloutEnd::Aborted, Some(rejected.reason.clone()))
    } else {
        match &after.activity {
            Activity::Rolling(next) => (RolloutEnd::Replaced, Some(format!("by {}", next.target))),
            Activity::RollingBack(back) if back.cause == Cause::ScaledToZero => {
                (RolloutEnd::ScaledToZero, None)
            }
            Activity::RollingBack(_) => (RolloutEnd::PutBack, None),
            // If no pod was updated yet, there is nothing to roll back.
            Activity::Idle if after.withdrawn.as_ref() == Some(target) => (RolloutEnd::ScaledToZero, None),
            Activity::Idle if stable.is_some() && after.workload == world.memory.workload => {
                (RolloutEnd::PutBack, None)
            }
            Activity::Idle => (RolloutEnd::LeftToKubernetes, None),
        }
    };
    Some(PastRollout {
        revision: target.to_string(),
        outcome,
        message,
        ended_at: world.now,
        taken_commands: taken_commands(&attempt.commands),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::decide;
    use crate::engine::fixture::{rolling, settled};
    use crate::record::next_status;
    use rstest::rstest;

    /// The history after one decision on this world.
    fn history(old: &RolloutStatus, world: &World) -> Vec<PastRollout> {
        next_status(old, Some(1), world, &decide(world)).unwrap().history
    }

    fn told(history: &[PastRollout]) -> Vec<(&str, RolloutEnd, Option<&str>)> {
        let mut told = Vec::new();
        for past in history {
            told.push((past.revision.as_str(), past.outcome, past.message.as_deref()));
        }
        told
    }

    #[rstest]
    #[case::aborted(|world: &mut World| world.commands.abort = true, RolloutEnd::Aborted, Some("aborted by a user"))]
    #[case::replaced(|world: &mut World| world.template("c"), RolloutEnd::Replaced, Some("by db-c"))]
    #[case::put_back(|world: &mut World| world.template("a"), RolloutEnd::PutBack, None)]
    #[case::put_back_before_any_pod(|world: &mut World| {
        world.template("a");
        world.pods(["a"; 5]);
        world.view().released = 0;
    }, RolloutEnd::PutBack, None)]
    #[case::scaled_to_zero(|world: &mut World| {
        world.view().replicas = 0;
        world.current("b");
        world.pods([]);
    }, RolloutEnd::ScaledToZero, None)]
    #[case::left_to_kubernetes(|world: &mut World| world.suspended = true, RolloutEnd::LeftToKubernetes, None)]
    fn an_end_is_told_once(
        #[case] befall: fn(&mut World),
        #[case] outcome: RolloutEnd,
        #[case] message: Option<&str>,
    ) {
        let mut world = rolling(1);
        world.pods(["a", "a", "a", "a", "b"]);
        befall(&mut world);
        let history = history(&RolloutStatus::default(), &world);
        assert_eq!(told(&history), [("db-b", outcome, message)]);
    }

    #[test]
    fn a_success_takes_the_place_of_an_earlier_failure_of_the_same_revision() {
        let mut world = rolling(3);
        world.pods(["b"; 5]);
        world.current("b");
        let past = |revision: &str| PastRollout {
            revision: revision.into(),
            outcome: RolloutEnd::Aborted,
            message: Some("no good".into()),
            ended_at: world.now,
            taken_commands: Vec::new(),
        };
        let old = RolloutStatus {
            history: vec![past("db-b"), past("db-x")],
            ..RolloutStatus::default()
        };
        let history = history(&old, &world);
        assert_eq!(
            told(&history),
            [
                ("db-b", RolloutEnd::Successful, None),
                ("db-a", RolloutEnd::TakenOn, None),
                ("db-x", RolloutEnd::Aborted, Some("no good"))
            ]
        );
    }

    #[test]
    fn what_somebody_else_has_rolled_out_is_told_too() {
        let mut world = settled();
        world.template("b");
        world.current("b");
        world.pods(["b"; 5]);
        let history = history(&RolloutStatus::default(), &world);
        assert_eq!(told(&history), [("db-b", RolloutEnd::TakenOn, None)]);
    }

    #[test]
    fn it_is_as_long_as_it_may_be_and_that_of_one_workload() {
        let mut world = rolling(1);
        world.commands.abort = true;
        let past = |number: usize| PastRollout {
            revision: format!("db-{number}"),
            outcome: RolloutEnd::Successful,
            message: None,
            ended_at: world.now,
            taken_commands: Vec::new(),
        };
        let old = RolloutStatus {
            history: (0..KEPT).map(past).collect(),
            ..RolloutStatus::default()
        };
        let kept = history(&old, &world);
        assert_eq!((kept.len(), kept[0].revision.as_str()), (KEPT, "db-b"));
        for mut another in [settled(), rolling(1)] {
            another.template("a");
            another.view().uid = "another".into();
            assert_eq!(
                told(&history(&old, &another)),
                [("db-a", RolloutEnd::TakenOn, None)],
                "the others are of another workload"
            );
        }
    }

    #[test]
    fn a_good_one_is_not_forgotten() {
        let mut world = rolling(1);
        world.commands.abort = true;
        let past = |number: usize| PastRollout {
            revision: format!("db-{number}"),
            outcome: if number == KEPT - 1 {
                RolloutEnd::TakenOn
            } else {
                RolloutEnd::Aborted
            },
            message: None,
            ended_at: world.now,
            taken_commands: Vec::new(),
        };
        let old = RolloutStatus {
            history: (0..KEPT).map(past).collect(),
            ..RolloutStatus::default()
        };
        let kept = history(&old, &world);
        assert_eq!((kept.len(), kept[KEPT - 1].revision.as_str()), (KEPT, "db-9"));
    }

    #[test]
    fn the_version_before_is_known_once_it_is_left() {
        let mut world = rolling(3);
        world.pods(["b"; 5]);
        world.current("b");
        let history = history(&RolloutStatus::default(), &world);
        assert_eq!(
            told(&history),
            [
                ("db-b", RolloutEnd::Successful, None),
                ("db-a", RolloutEnd::TakenOn, None)
            ]
        );
    }

    #[test]
    fn what_was_a_success_stays_one_when_it_is_taken_back() {
        let mut world = settled();
        world.memory.stable = None;
        let old = RolloutStatus {
            history: vec![PastRollout {
                revision: "db-a".into(),
                outcome: RolloutEnd::Successful,
                message: None,
                ended_at: world.now,
                taken_commands: Vec::new(),
            }],
            ..RolloutStatus::default()
        };
        assert_eq!(history(&old, &world), old.history);
    }
}
