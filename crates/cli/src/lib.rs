//! The verbs of the kubectl plugin: see a rollout and steer it.
//!
//! A [`Verb`] gets a [`Session`] (client, namespace, clock, output) and returns an [`Exit`]. IO is in `look`, `steer`, `answer` and
//! `workload`; everything that decides or draws is pure.
//!
//! - `verbs`: one module per verb. Read-only: `get`, `watch`, `status`, `explain`, `history`, `diff`. Commands for the operator: `steer`.
//!   Template changes: `undo`, `restart`, `set_image`. Without a rollout: `lint`, `completion`, `version`.
//! - `input`: which cluster (`access`), which rollouts (`target`, `name`, `manifest`), which revision (`revision_guard`), and kubectl's
//!   argument order (`arg_compat`).
//! - `views`: lines, tables, trees, the whole screen, and commands to paste (`invocation`, `hint`).
//! - `command`: the commands for a rollout, whether they apply, and their patches. `answer`: the operator's answer. `workload`: template
//!   changes; `consequence`: their effect.
//! - `rollout`: a rollout of any kind. `stage`: its position in its steps. `unseen`: changes that the operator has not seen yet.
//!   `revisions`, `outcome`: past revisions.
//! - `dry_run`, `exit`, `error`, `connect_error`, `unknown_outcome`: the results of a verb.

mod answer;
mod command;
mod connect_error;
mod consequence;
mod dry_run;
mod error;
mod exit;
mod input;
mod look;
mod outcome;
mod revisions;
mod rollout;
mod session;
mod stage;
mod unknown_outcome;
mod unseen;
mod verbs;
mod views;
mod workload;

#[cfg(test)]
mod fixtures;

pub use self::error::Error;
pub use self::exit::{CODES, Exit};
pub use self::input::access::{Access, Connection};
pub use self::input::arg_compat::as_meant;
pub use self::input::name::Name;
pub use self::session::Session;
pub use self::verbs::lint::mistakes;
pub use self::verbs::{Verb, completion};
pub use self::views::invocation::quoted;
pub use self::views::live::Pane;
pub use self::views::style::Style;
pub use self::views::tree::tree;
