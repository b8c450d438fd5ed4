//! What a rollout would do: played in virtual time on the embedded cluster, with the operator itself.
//!
//! In flows a [`Subject`] (a rollout, its StatefulSet and the analysis it asks for, from files or from a cluster that is only
//! read) and what is supposed to go wrong ([`WhatIf`]). Out flows a [`Preview`]: what happens when, which pods are down, where
//! people are needed. Nothing here guesses what the operator would do, because it is the operator that does it; what is guessed
//! is how long pods take and what metrics say, and the preview names each of these guesses.
//!
//! - `subject`: what is played. `pace`: how long pods take. `what_if`: what is supposed to go wrong.
//! - `check`: whether that can be played.
//! - `world`: the cluster, the kubelet and the operator. `answers`: what metrics say there.
//! - `play`: who acts when. `scribe`: what is written down of it.
//! - `preview`: what came of it. `axis`, `chart`, `text`, `svg`: how it looks.

mod answers;
mod axis;
mod chart;
mod check;
mod pace;
mod play;
mod preview;
mod scribe;
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

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was given cannot be played.
    #[error("{0}")]
    Subject(String),
    /// What is supposed to happen cannot.
    #[error("--what-if {what_if}: {why}")]
    WhatIf {
        /// As it was said.
        what_if: String,
        /// Why not.
        why: String,
    },
    /// The embedded cluster refuses an object, as a real one would.
    #[error("{what} is refused: {why}")]
    Refused {
        /// The object.
        what: String,
        /// In the words of the server.
        why: String,
    },
    /// The operator does not take it on.
    #[error("{what} would not be rolled: {why}")]
    NotRolled {
        /// The rollout.
        what: String,
        /// In the words of the operator.
        why: String,
    },
    /// Something that cannot be, in our own house.
    #[error("the preview does not work: {0}")]
    Broken(String),
}
