//! The verbs against the embedded cluster, in virtual time, with an operator beside them or without.
//!
//! What is typed and what is answered is kept as snapshots: `INSTA_UPDATE=always cargo test -p stateward-cli` writes them anew, and
//! the diff says what has changed for people.

#![allow(clippy::disallowed_methods, reason = "tests name their own objects")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it"
)]

mod bulk;
mod explain;
mod get;
mod help;
mod history;
mod hostile;
mod lint;
mod lint_server;
mod steering;
mod template;
mod world;
