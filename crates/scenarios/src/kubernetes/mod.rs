//! How Kubernetes itself handles a StatefulSet in edge cases, without an operator.
//!
//! Each of these facts was observed on a real control plane, and each is a reason for something the operator does. The embedded cluster
//! must behave the same.

mod broken;
mod harness_itself;
mod ordering;
mod partition;
mod played_pods;
mod revisions;
mod scaling;
mod status;
mod storage;

use crate::harness::Scenario;

/// All scenarios of this module.
pub fn all() -> Vec<Scenario> {
    [
        broken::all(),
        harness_itself::all(),
        ordering::all(),
        partition::all(),
        played_pods::all(),
        revisions::all(),
        scaling::all(),
        status::all(),
        storage::all(),
    ]
    .concat()
}
