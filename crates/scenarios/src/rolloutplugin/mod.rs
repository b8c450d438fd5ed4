//! What the operator does for RolloutPlugins, on every control plane.

mod abort;
mod steps;

use crate::harness::Scenario;

/// All of them.
pub fn all() -> Vec<Scenario> {
    [abort::all(), steps::all()].concat()
}
