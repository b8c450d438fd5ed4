//! Users choose the number of replicas: none may exhaust the operator's memory.

use rstest::rstest;

use super::by_pod::pods;
use crate::engine::decide;
use crate::engine::fixture::{plan, rolling, settled, weight};
use crate::event::EventType;
use crate::memory::Activity;
use crate::plan::Plan;
use crate::workload::MOST_REPLICAS;
use crate::world::{Reason, World};

fn by_weight(_: u32) -> Plan {
    plan(vec![weight(20)])
}

/// A new version in the template of a workload that requests `replicas` pods and has none.
fn begins(replicas: u32, plan: fn(u32) -> Plan) -> World {
    let mut world = settled();
    world.template("b");
    world.plan = Ok(plan(replicas));
    world.view().replicas = replicas;
    world.view().pods.clear();
    world.count();
    world
}

#[rstest]
fn a_workload_with_too_many_replicas_is_refused_and_nothing_is_written_for_each(
    #[values(MOST_REPLICAS + 1, 5_000_000, i32::MAX as u32, u32::MAX)] replicas: u32,
    #[values(by_weight, pods)] plan: fn(u32) -> Plan,
) {
    let mut world = begins(replicas, plan);
    for (activity, paused) in [(Activity::Idle, false), (rolling(0).memory.activity, true)] {
        world.memory.activity = activity.clone();
        world.paused = paused;
        world.commands.abort = true;
        let decision = decide(&world);
        let report = decision.report.unwrap();
        assert_eq!(report.reason, Reason::WorkloadUnfit);
        let words = format!("spec.replicas of the workload: {replicas} is more than 5000");
        assert!(report.message.starts_with(&words), "{}", report.message);
        assert_eq!(decision.action, None);
        assert_eq!(decision.memory.activity, activity);
        let refused = decision
            .notices
            .iter()
            .any(|notice| notice.reason.event_type() == EventType::Warning);
        assert!(refused, "a command is refused and not forgotten");
    }
}

#[rstest]
fn as_many_as_there_may_be_are_rolled_out(#[values(by_weight, pods)] plan: fn(u32) -> Plan) {
    let decision = decide(&begins(MOST_REPLICAS, plan));
    let Activity::Rolling(attempt) = decision.memory.activity else {
        panic!("no rollout begins: {:?}", decision.report);
    };
    assert!(attempt.ignored_pods.len() <= MOST_REPLICAS as usize);
}
