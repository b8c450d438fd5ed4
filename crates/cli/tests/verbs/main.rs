//! The verbs against the embedded cluster, in virtual time, with or without an operator.
//!
//! Commands and their output are snapshots: `INSTA_UPDATE=always cargo test -p stateward-cli` updates them, and the diff shows what
//! changes for users.

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
