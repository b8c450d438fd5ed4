//! A sequence of operations from a seed: made completely before it runs, so that every back end gets the same.

use std::fmt;

use fastrand::Rng;
use serde::{Deserialize, Serialize};

use super::job_op::{self, JobOp};
use super::set_op::{self, SetOp};

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Op {
    Set(SetOp),
    Job(JobOp),
}

/// One seed in this many is about a Job, the others about a StatefulSet.
const JOBS_EVERY: u64 = 4;

/// What the operations of a seed are about.
pub(crate) fn about(seed: u64) -> &'static str {
    if seed.is_multiple_of(JOBS_EVERY) {
        "job"
    } else {
        "statefulset"
    }
}

/// The operations of a seed.
pub(crate) fn sequence(seed: u64) -> Vec<Op> {
    let mut rng = Rng::with_seed(seed);
    if seed.is_multiple_of(JOBS_EVERY) {
        let length = rng.usize(5..=8);
        return job_op::sequence(&mut rng, length)
            .into_iter()
            .map(Op::Job)
            .collect();
    }
    let length = rng.usize(8..=12);
    set_op::sequence(&mut rng, length)
        .into_iter()
        .map(Op::Set)
        .collect()
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Set(op) => op.fmt(f),
            Self::Job(op) => op.fmt(f),
        }
    }
}
