//! Previews a rollout: simulates it in virtual time on the embedded cluster, with the real operator.
//!
//! In flows a [`Subject`] (a rollout, its StatefulSet and its analysis templates, from files or from a cluster that is only read) and the
//! failures to simulate ([`WhatIf`]). Out flows a [`Preview`]: what happens when, which pods are down, where a user must act. Nothing here
//! models the operator, because the operator itself runs; only how long pods take and what metrics return is assumed, and the preview names
//! each of these assumptions.
//!
//! - `subject`: the input. `pace`: how long pods take. `what_if`: the failures to simulate.
//! - `check`: whether that can be simulated.
//! - `world`: the cluster, the kubelet and the operator. `answers`: the metric answers.
//! - `play`: who acts when. `recorder`: records what happens.
//! - `preview`: the result. `axis`, `chart`, `text`, `svg`: its presentation.

mod answers;
mod axis;
mod chart;
mod check;
mod pace;
mod play;
mod preview;
mod recorder;
mod subject;
mod svg;
mod text;
mod what_if;
mod world;

pub use self::pace::Pace;
pub use self::play::play;
pub use self::preview::{Entry, Happening, Lane, Outcome, Person, Preview, Span, State, Version};
pub use self::subject::{Missing, Subject};
pub use self::svg::svg;
pub use self::text::{Look, text};
pub use self::what_if::WhatIf;

/// Why there is no preview.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input cannot be simulated.
    #[error("{0}")]
    Subject(String),
    /// A what-if is impossible.
    #[error("--what-if {what_if}: {why}")]
    WhatIf {
        /// The what-if as given.
        what_if: String,
        /// The reason.
        why: String,
    },
    /// The embedded cluster rejects an object, as a real one would.
    #[error("{what} is refused: {why}")]
    Refused {
        /// The object.
        what: String,
        /// The API server's message.
        why: String,
    },
    /// The operator does not adopt the workload.
    #[error("{what} would not be rolled: {why}")]
    NotRolled {
        /// The rollout.
        what: String,
        /// The operator's message.
        why: String,
    },
    /// An internal error.
    #[error("the preview does not work: {0}")]
    Broken(String),
}
