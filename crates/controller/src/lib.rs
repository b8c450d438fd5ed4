//! The shell around the decision core: watches become worlds, decisions become requests.
//!
//! - [`operator`]: what runs, and how the parts are wired.
//! - [`lease`]: one operator leads.
//! - [`leadership`]: the same on a thread of its own, so that no work delays a renewal.
//! - [`fence`]: who does not lead writes nothing.
//! - [`overlap`]: two operators of the same namespaces never both lead.
//! - [`metrics`]: what is counted.
//! - [`rbac`]: what it may do.
//! - `analysis`: runs of analysis: created, measured, and kept in sight.
//! - `kind`: the kinds of objects that roll a workload, and what each has of its own.
//! - `phased`: the checks of PhasedRollouts.
//! - `roster`: whether everybody who may hold a workload is known.
//! - `reconcile`: one object: look, decide, write one thing, look again.
//! - `retry`: transient errors of one request are retried in place.
//! - `turn`: what turns of any object need.
//! - `status`: status writes, as small as the change and bound to the version they were decided on.
//! - `notify`: events with names of their own, so that none is told twice.
//! - `contest`: who writes what somebody else writes too does so in moderation.
//! - `index`: which objects care about a workload.
//! - `error`: what can go wrong and when to try again.
//! - `invalid_objects`: watches without the objects that fail to deserialize.
//!
//! Nothing here decides anything about a rollout, and nothing polls: a timer is only ever a deadline of the engine's.

mod analysis;
mod contest;
pub mod endpoints;
mod error;
pub mod fence;
mod index;
mod invalid_objects;
mod kind;
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
mod roster;
mod stable_template;
mod status;
mod turn;

pub use analysis::jobs::AnalysisJobs;
pub use fence::Fence;
pub use metrics::Metrics;
pub use operator::{Operator, Options};
pub use retry::retry_transient_errors;
pub use stateward_plugin::Watches;
