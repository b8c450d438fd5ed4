//! The shell around the decision core: turns watch events into snapshots, and decisions into requests.
//!
//! - [`operator`]: wires the parts and runs them.
//! - [`lease`]: leader election.
//! - [`leadership`]: leader election on its own thread, so that no work delays a renewal.
//! - [`fence`]: an operator that does not lead writes nothing.
//! - [`overlap`]: two operators of the same namespaces never both lead.
//! - [`metrics`]: the operator's metrics.
//! - [`rbac`]: the permissions it needs.
//! - `analysis`: AnalysisRuns: created, measured and cached.
//! - `kind`: the kinds of objects that roll out a workload, and what is specific to each of them.
//! - `phased`: the checks of PhasedRollouts.
//! - `kind_barrier`: waits until all objects that may claim a workload are listed.
//! - `reconcile`: one object: observe, decide, write one thing, observe again.
//! - `retry`: retries transient errors of a request in place.
//! - `turn`: what reconciles of any object need.
//! - `status`: status patches, as small as the change and bound to the version they were decided on.
//! - `notify`: events with deterministic names, so that none is posted twice.
//! - `contention`: write backoff when another client writes the same fields.
//! - `index`: which objects reference a workload.
//! - `error`: errors of a reconcile, and when to retry.
//! - `invalid_objects`: watches that skip objects that fail to deserialize.
//!
//! This crate decides nothing about a rollout and never polls: every timer is a deadline of the engine.

mod analysis;
mod contention;
pub mod endpoints;
mod error;
pub mod fence;
mod index;
mod invalid_objects;
mod kind;
mod kind_barrier;
pub mod leadership;
pub mod lease;
pub mod metrics;
mod namespace_slots;
mod notify;
pub mod operator;
pub mod overlap;
mod phased;
pub mod rbac;
mod reconcile;
mod retry;
mod stable_template;
mod status;
mod turn;

pub use analysis::jobs::AnalysisJobs;
pub use fence::Fence;
pub use metrics::Metrics;
pub use operator::{Operator, Options};
pub use retry::retry_transient_errors;
pub use stateward_plugin::Watches;
