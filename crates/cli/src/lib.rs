//! The verbs of the kubectl plugin: see a rollout and steer it.
//!
//! A verb gets a [`Session`] (a client, a namespace, a clock, and where to write) and gives back an [`Exit`]. Reading and
//! writing is in `look`, `steer` and `answer`; everything that decides or draws is pure.
//!
//! - `get`, `status`, `steer`: the verbs. `access`: which cluster they talk to.
//! - `command`: what can be asked of a rollout, whether it makes sense, and the patch that asks for it.
//! - `answer`: what the operator made of it.
//! - `rollout`: a rollout of any kind. `stage`: where it stands.
//! - `table`, `tree`, `runs`, `checks`, `columns`, `style`, `pod_row`: how it looks.
//! - `name`, `output`, `exit`, `error`: words on the command line, and how it ends.

mod access;
mod answer;
mod checks;
mod columns;
mod command;
pub mod completion;
mod consequence;
mod diff;
mod dry_run;
mod error;
mod exit;
mod get;
mod history;
mod live;
mod look;
mod manifest;
mod mask;
mod name;
mod outcome;
mod output;
mod pod_row;
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
mod watch;
mod workload;

#[cfg(test)]
mod fixtures;

use std::io::{IsTerminal as _, Write as _};

pub use self::access::Access;
pub use self::error::Error;
pub use self::exit::Exit;
pub use self::name::Name;
pub use self::session::Session;
pub use self::style::Style;

/// What can be asked for.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Show rollouts as a table, or one of them as a tree with its steps and pods
    Get(get::Args),
    /// Show rollouts as a table
    List(get::ListArgs),
    /// Watch rollouts on the whole screen, and steer them with keys
    Top(live::Args),
    /// Say in one line where a rollout stands; the exit code says it too
    Status(status::Args),
    /// End the pause that a rollout stands at, or skip all its remaining steps
    Promote(steer::PromoteArgs),
    /// End a rollout and return every pod to the stable version
    Abort(steer::Args),
    /// Try a revision again that was aborted
    Retry(steer::Args),
    /// Stop a rollout where it is, or the next one at its start: no further pod is released
    Pause(steer::Args),
    /// Let a rollout go on that was stopped with pause
    Resume(steer::Args),
    /// Put the template of a former revision back: the stable one while another is rolled, which then returns at once
    Undo(undo::Args),
    /// Show the revisions of a workload: their images, causes, ages, and what became of them
    History(history::Args),
    /// Show what the new version changes in the template; secrets are never shown
    Diff(diff::Args),
    /// Make every pod anew, through the steps of the rollout
    Restart(restart::Args),
    /// Change a part of the workload's template
    #[command(subcommand)]
    Set(set_image::Set),
}

impl Verb {
    fn access(&self) -> &Access {
        match self {
            Self::Get(args) => args.access(),
            Self::List(args) => args.access(),
            Self::Top(args) => args.access(),
            Self::Status(args) => args.access(),
            Self::Promote(args) => args.access(),
            Self::Abort(args) | Self::Retry(args) | Self::Pause(args) | Self::Resume(args) => args.access(),
            Self::Undo(args) => args.access(),
            Self::History(args) => args.access(),
            Self::Diff(args) => args.access(),
            Self::Restart(args) => args.access(),
            Self::Set(set_image::Set::Image(args)) => args.access(),
        }
    }

    /// Does what was asked for, with this terminal and the cluster that the arguments name. `program` is how the user
    /// calls us, for the commands we suggest.
    pub async fn run(self, program: &str) -> Exit {
        let (mut out, mut talk) = (std::io::stdout(), std::io::stderr());
        let done = match self.access().connect().await {
            Ok((client, namespace)) => {
                let session = Session {
                    client,
                    namespace,
                    clock: stateward_clock::Clock::wall(),
                    program,
                    style: Style::of_the_terminal(),
                    terminal: std::io::stdout().is_terminal(),
                    out: &mut out,
                    talk: &mut talk,
                };
                self.perform(session).await
            }
            Err(error) => Err(error),
        };
        done.unwrap_or_else(|error| {
            if !error.is_nobody_listening() {
                // That nobody reads it is no reason to fail.
                let _ = writeln!(std::io::stderr(), "{program}: {error}");
            }
            error.exit()
        })
    }

    /// Does what was asked for.
    pub async fn perform(self, mut session: Session<'_>) -> Result<Exit, Error> {
        use command::Command;
        session.namespace = self.access().namespace_or(&session.namespace);
        let session = &mut session;
        match self {
            Self::Get(args) => get::run(args, session).await,
            Self::List(args) => get::list(args, session).await,
            Self::Top(args) => live::top(args, session).await,
            Self::Status(args) => status::run(args, session).await,
            Self::Promote(args) => steer::promote(args, session).await,
            Self::Abort(args) => steer::run(Command::Abort, args, session).await,
            Self::Retry(args) => steer::run(Command::Retry, args, session).await,
            Self::Pause(args) => steer::run(Command::Pause, args, session).await,
            Self::Resume(args) => steer::run(Command::Resume, args, session).await,
            Self::Undo(args) => undo::run(args, session).await,
            Self::History(args) => history::run(args, session).await,
            Self::Diff(args) => diff::run(args, session).await,
            Self::Restart(args) => restart::run(args, session).await,
            Self::Set(set_image::Set::Image(args)) => set_image::run(args, session).await,
        }
    }
}
