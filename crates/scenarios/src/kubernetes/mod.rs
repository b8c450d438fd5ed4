//! What Kubernetes itself does with a StatefulSet in awkward moments, with no operator at all.
//!
//! These are facts, not wishes: each was seen on a real control plane, and each is a reason for something the operator
//! does. They are the yardstick that the embedded cluster is held to.

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

/// All of them.
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
