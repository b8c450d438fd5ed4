//! Analysis: what answers mean, how measurements add up, and what a run comes to.
//!
//! - `reply`: what a provider may say.
//! - `judge`: what that means.
//! - `run`: when a metric is measured, how its measurements add up, and what the run comes to.
//! - `args`: `{{args.name}}` and where values come from.
//! - `names`: which metrics `dryRun` and `measurementRetention` name.
//! - `template`: from the templates that a rollout names to the spec of a run.
//!
//! Pure, like everything here: whoever asks the providers hands in what they said and when.

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
