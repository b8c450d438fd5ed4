//! Analysis: judges answers, counts measurements, and computes the phase of a run.
//!
//! - `reply`: the answer of a provider.
//! - `judge`: the verdict on an answer.
//! - `run`: when a metric is measured, how its measurements are counted, and the phase of the run.
//! - `args`: `{{args.name}}` and the sources of values.
//! - `names`: the metrics that `dryRun` and `measurementRetention` select.
//! - `template`: composes the spec of a run from the templates that a rollout references.
//!
//! Pure, like everything in this crate: the caller queries the providers and passes in the answers with their times.

pub mod args;
pub mod judge;
mod names;
mod reply;
pub mod run;
pub mod template;

#[cfg(test)]
mod tests;

pub use self::names::MOST_PATTERNS;
pub use self::reply::{Data, Reply};
