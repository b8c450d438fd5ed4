//! Runs a sequence on a cluster and takes a portrait after each operation.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stateward_kubelet::ClaimBehaviour;

use super::job_op;
use super::job_play;
use super::objects::{self, Objects, Watched, of_kind};
use super::op::Op;
use super::portrait::Portrait;
use super::set_play;
use super::settle::{Nudges, Programme, settle};
use crate::harness::{Backend, Cluster, Failure, Outcome};

/// One operation, the API server's answer, and the resulting state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) op: Op,
    pub(crate) answer: String,
    /// The pods created and deleted, in order where the order is not random.
    pub(crate) moves: Vec<String>,
    pub(crate) portrait: Portrait,
}

impl Step {
    /// Whether the embedded cluster (`self`) and the real one reached the same state.
    pub(crate) fn agrees_with(&self, real: &Self) -> bool {
        self.answer == real.answer
            && self.moves == real.moves
            && Portrait::diff(&self.portrait, &real.portrait).is_empty()
    }
}

/// The cluster that a sequence acts on, and its watches.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    pub(crate) watched: Watched,
    pub(crate) programme: Programme,
    nudges: Nudges,
    quiet: Option<Duration>,
}

/// Virtual time to let pass on a cluster that seems to be at rest: longer than any of our controllers batches updates.
const QUIET: Duration = Duration::from_secs(3);

/// Delays the binding of a claim past the writes of the StatefulSet controller, which follow its creation of the claim immediately: the
/// winner of that race would be random.
const UNBOUND: Duration = Duration::from_millis(400);

/// How long a real control plane may lag in things that no nudge waits for, such as events.
const LAG: Duration = Duration::from_secs(10);

impl Stage {
    pub(crate) async fn open(backend: &Backend, name: &str) -> Outcome<Self> {
        let cluster = backend.cluster(name).await?;
        cluster.pods().claims(ClaimBehaviour::ProvisionAfter(UNBOUND));
        let watched = Watched::start(&cluster.client(), cluster.namespace());
        Ok(Self {
            watched,
            cluster,
            programme: Programme::default(),
            nudges: Nudges::default(),
            quiet: matches!(backend, Backend::Embedded).then_some(QUIET),
        })
    }

    pub(crate) async fn step(&mut self, op: &Op) -> Outcome<Step> {
        self.cluster.note(&op.to_string());
        self.watched.take_moves();
        let answer = match op {
            Op::Set(op) => set_play::apply(self, op).await,
            Op::Job(op) => job_play::apply(self, op).await,
        };
        let answer = self.told(answer)?;
        let objects = self.settle().await?;
        Ok(Step {
            op: op.clone(),
            answer,
            moves: self.moves(&objects),
            portrait: self.portrait(&objects),
        })
    }

    /// A Parallel set creates and deletes several pods at a time, and so does the garbage collector; a Job's pods have random names.
    fn moves(&self, objects: &Objects) -> Vec<String> {
        let mut moves = self.watched.take_moves();
        moves.retain(|name| !name.starts_with(job_op::JOB));
        let ordered = of_kind(objects, objects::SET)
            .any(|(_, set)| set["spec"]["podManagementPolicy"] == "OrderedReady");
        if !ordered {
            moves.sort();
        }
        moves
    }

    /// The same step, once the control plane has had time to reach the expected state.
    pub(crate) async fn catch_up(&self, mut step: Step, expected: &Step) -> Outcome<Step> {
        let mut changes = self.watched.changes();
        let deadline = tokio::time::Instant::now() + LAG;
        while !expected.agrees_with(&step) {
            changes.mark_unchanged();
            let objects = objects::read(&self.cluster.client(), self.cluster.namespace()).await?;
            step.portrait = self.portrait(&objects);
            if !expected.agrees_with(&step)
                && tokio::time::timeout_at(deadline, changes.changed())
                    .await
                    .is_err()
            {
                break;
            }
        }
        Ok(step)
    }

    pub(crate) async fn close(self) -> Outcome {
        self.cluster.close().await
    }

    async fn settle(&mut self) -> Outcome<Objects> {
        let Self {
            cluster,
            watched,
            programme,
            nudges,
            quiet,
        } = self;
        settle(cluster, watched, programme, nudges, *quiet).await
    }

    fn portrait(&self, objects: &Objects) -> Portrait {
        Portrait::of(objects, self.cluster.namespace(), &self.nudges)
    }

    /// A rejected request is a result to compare; a request that never reached the server is a failure.
    fn told(&self, answer: Outcome) -> Outcome<String> {
        match answer {
            Ok(()) => Ok("done".to_owned()),
            Err(Failure::Request { source, .. }) if matches!(*source, kube::Error::Api(_)) => {
                let kube::Error::Api(status) = *source else {
                    return Ok(String::new());
                };
                let message = status.message.replace(self.cluster.namespace(), "<namespace>");
                Ok(format!("{} {}: {message}", status.code, status.reason))
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Runs a whole sequence.
pub(crate) async fn play(backend: &Backend, name: &str, ops: &[Op]) -> Outcome<Vec<Step>> {
    let mut stage = Stage::open(backend, name).await?;
    let mut steps = Vec::new();
    for op in ops {
        steps.push(stage.step(op).await?);
    }
    stage.close().await?;
    Ok(steps)
}

/// The string at this JSON pointer; empty if there is none.
pub(crate) fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
