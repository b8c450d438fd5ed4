//! The verbs of the kubectl plugin: see a rollout and steer it.
//!
//! A [`Verb`] gets a [`Session`] (a client, a namespace, a clock, and where to write) and gives back an [`Exit`]. Reading and
//! writing is in `look`, `steer`, `answer` and `workload`; everything that decides or draws is pure.
//!
//! - `verb`: what can be asked for. `access`: which cluster, `call`: how to be called for it again. `hint`: commands to paste. `habit`: how else it may be typed. `target`, `name`, `manifest`: which rollouts. `pin`: which revision of them.
//! - `get`, `watch`, `status`, `explain`, `history`, `diff`: the verbs that look.
//! - `steer`: those that ask the operator. `command`: what can be asked of it, whether it makes sense, and the patch that asks for it.
//!   `answer`: what it made of that.
//! - `live`: a rollout on the whole screen.
//! - `undo`, `restart`, `set_image`: those that change the template, through `workload`. `consequence`: what comes of it.
//! - `lint`, `completion`, `version`: those that need no rollout.
//! - `rollout`: a rollout of any kind. `stage`: where it stands. `revisions`, `outcome`: what was.
//! - `table`, `tree`, `gates`, `runs`, `checks`, `columns`, `style`, `pod_row`, `mask`: how it looks.
//! - `unseen`: what the operator has not seen yet.
//! - `output`, `dry_run`, `exit`, `error`, `reach`, `unheard`: words on the command line, and how it ends.

mod access;
mod answer;
mod call;
mod checks;
mod columns;
mod command;
pub mod completion;
mod consequence;
mod custom_columns;
mod diff;
mod dry_run;
mod error;
mod exit;
mod explain;
mod gates;
mod get;
mod habit;
mod hint;
mod history;
mod lint;
mod live;
mod look;
mod manifest;
mod mask;
mod name;
mod outcome;
mod output;
mod pin;
mod pod_row;
mod reach;
mod restart;
mod revisions;
mod rollout;
mod runs;
mod session;
mod set_image;
mod stage;
mod status;
mod steer;
mod style;
mod table;
mod target;
mod tree;
mod undo;
mod unheard;
mod unseen;
mod verb;
mod version;
mod watch;
mod workload;

#[cfg(test)]
mod fixtures;

pub use self::access::{Access, Connection};
pub use self::call::quoted;
pub use self::error::Error;
pub use self::exit::{CODES, Exit};
pub use self::habit::as_meant;
pub use self::lint::mistakes;
pub use self::live::Pane;
pub use self::name::Name;
pub use self::session::Session;
pub use self::style::Style;
pub use self::tree::tree;
pub use self::verb::Verb;
