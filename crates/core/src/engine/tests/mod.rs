//! The rules, one by one, on hand-made worlds; one file per family. The numbers are those of `docs/design/rules.md`.

mod adopt;
mod analysis;
mod by_pod;
mod command;
mod deadline;
mod guard;
mod in_the_way;
mod pause;
mod release_claim;
mod rollback;
mod scale;
mod size;
mod skip;
mod step;
mod target;
mod unobserved;

use crate::engine::decide;
use crate::engine::fixture::{NOW, revision};
use crate::memory::{Activity, Rejection};
use crate::world::{Decision, Phase, Reason, World};

fn phase(decision: &Decision) -> (Phase, Reason) {
    let report = decision.report.as_ref().unwrap();
    (report.phase, report.reason)
}

fn message(decision: &Decision) -> &str {
    &decision.report.as_ref().unwrap().message
}

fn step(decision: &Decision) -> u32 {
    match &decision.memory.activity {
        Activity::Rolling(attempt) => attempt.step.0,
        other => panic!("not rolling: {other:?}"),
    }
}

fn notices(decision: &Decision) -> Vec<&str> {
    decision
        .notices
        .iter()
        .map(|notice| notice.reason.as_str())
        .collect()
}

fn rejection() -> Rejection {
    Rejection {
        revision: revision("b"),
        at: NOW,
        reason: "aborted by a user".into(),
        replaced: false,
    }
}

fn silent(world: &World) -> bool {
    let decision = decide(world);
    decision.memory == world.memory && decision.action.is_none() && decision.notices.is_empty()
}
