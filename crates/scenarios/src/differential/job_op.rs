//! What users and nodes do to a Job, as data.

use std::fmt;

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::set_op::Propagation;
use crate::harness::SCHEDULER;

/// The only Job of a sequence.
pub(crate) const JOB: &str = "mig";
/// The image of its pods.
pub(crate) const IMAGE: &str = "example.com/mig:v1";

/// An operation on the Job or its pods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum JobOp {
    Create(JobSpec),
    /// How its pods end, from now on.
    Fate(Fate),
    Suspend(bool),
    Parallelism(i32),
    /// Deletes the first of the running pods.
    DeletePod,
    Delete(Propagation),
}

/// A Job as it is created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JobSpec {
    pub(crate) completions: Option<i32>,
    pub(crate) parallelism: i32,
    pub(crate) backoff_limit: i32,
    pub(crate) restarts: bool,
    pub(crate) indexed: bool,
    pub(crate) suspended: bool,
    pub(crate) deadline_seconds: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Fate {
    RunOn,
    Succeed,
    Fail,
}

impl JobSpec {
    /// The manifest to create.
    pub(crate) fn to_manifest(&self) -> Value {
        let Self {
            completions,
            parallelism,
            backoff_limit,
            restarts,
            indexed,
            suspended,
            deadline_seconds,
        } = self;
        let mut spec = json!({
            "parallelism": parallelism,
            "backoffLimit": backoff_limit,
            "completionMode": if *indexed { "Indexed" } else { "NonIndexed" },
            "suspend": suspended,
            "template": {
                "metadata": {"labels": {"app": JOB}},
                "spec": {
                    "schedulerName": SCHEDULER,
                    "terminationGracePeriodSeconds": 5,
                    "restartPolicy": if *restarts { "OnFailure" } else { "Never" },
                    "containers": [{"name": "main", "image": IMAGE}],
                },
            },
        });
        if let Some(completions) = completions {
            spec["completions"] = json!(completions);
        }
        if let Some(seconds) = deadline_seconds {
            spec["activeDeadlineSeconds"] = json!(seconds);
        }
        json!({"metadata": {"name": JOB}, "spec": spec})
    }
}

/// A random sequence: first how the pods end, then the Job.
pub(crate) fn sequence(rng: &mut Rng, length: usize) -> Vec<JobOp> {
    let fates = [Fate::RunOn, Fate::RunOn, Fate::Succeed, Fate::Fail];
    let mut fate = *rng.choice(&fates).unwrap_or(&Fate::RunOn);
    let mut ops = vec![JobOp::Fate(fate), JobOp::Create(random_spec(rng, fate))];
    // A replacement waits ten seconds, and twice as long each time.
    let mut replaced = 0;
    while ops.len() < length {
        let op = match rng.u32(0..100) {
            0..25 => {
                fate = match *rng.choice(&fates).unwrap_or(&Fate::RunOn) {
                    // If several pods fail at once, it is random how many the controller counts before it fails the Job.
                    Fate::Fail => Fate::Succeed,
                    fate => fate,
                };
                JobOp::Fate(fate)
            }
            25..45 => JobOp::Suspend(true),
            45..60 => JobOp::Suspend(false),
            60..75 => {
                let parallelism = rng.i32(0..=3);
                // Which of several pods is deleted is random, and the pods of an Indexed Job differ: delete all or none.
                let some = (1..3).contains(&parallelism) && is_indexed(&ops);
                JobOp::Parallelism(if some { 3 } else { parallelism })
            }
            75..82 if replaced == 0 => {
                replaced += 1;
                JobOp::DeletePod
            }
            _ => {
                let all = [
                    Propagation::Background,
                    Propagation::Foreground,
                    Propagation::Orphan,
                ];
                ops.push(JobOp::Delete(
                    *rng.choice(&all).unwrap_or(&Propagation::Background),
                ));
                JobOp::Create(random_spec(rng, fate))
            }
        };
        ops.push(op);
    }
    ops
}

/// Whether the Job after these operations is an Indexed one.
fn is_indexed(ops: &[JobOp]) -> bool {
    let last = ops.iter().rev().find_map(|op| match op {
        JobOp::Create(spec) => Some(spec.indexed),
        _ => None,
    });
    last.unwrap_or(false)
}

fn random_spec(rng: &mut Rng, fate: Fate) -> JobSpec {
    let fails = fate == Fate::Fail;
    let indexed = rng.u32(0..4) == 0;
    let deadline = fate == Fate::RunOn && rng.u32(0..6) == 0;
    JobSpec {
        completions: (indexed || rng.u32(0..5) > 0).then(|| rng.i32(1..=4)),
        parallelism: if fails { 1 } else { rng.i32(1..=3) },
        backoff_limit: if fails { rng.i32(0..=1) } else { rng.i32(0..=6) },
        restarts: rng.bool(),
        indexed,
        suspended: rng.u32(0..5) == 0,
        // Pods that are set to end must end well before it.
        deadline_seconds: deadline.then_some(6),
    }
}

impl fmt::Display for JobOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(spec) => write!(f, "create job {JOB} {}", spec.to_manifest()["spec"]),
            Self::Fate(Fate::RunOn) => f.write_str("let job pods run on"),
            Self::Fate(Fate::Succeed) => f.write_str("let job pods succeed"),
            Self::Fate(Fate::Fail) => f.write_str("let job pods fail"),
            Self::Suspend(true) => write!(f, "suspend job {JOB}"),
            Self::Suspend(false) => write!(f, "resume job {JOB}"),
            Self::Parallelism(parallelism) => write!(f, "set parallelism {parallelism}"),
            Self::DeletePod => f.write_str("delete the first running job pod"),
            Self::Delete(propagation) => write!(f, "delete job {JOB} ({propagation:?})"),
        }
    }
}
