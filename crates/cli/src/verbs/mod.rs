//! The verbs and their dispatch.

pub mod completion;
pub(crate) mod diff;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod history;
pub(crate) mod lint;
pub(crate) mod restart;
pub(crate) mod set_image;
pub(crate) mod status;
pub(crate) mod steer;
pub(crate) mod undo;
pub(crate) mod version;
pub(crate) mod watch;

use std::io::Write;

use crate::command::Command;
use crate::error::Error;
use crate::exit::Exit;
use crate::input::access::{Access, Connection};
use crate::session::{Session, write_line};
use crate::verbs::set_image::Set;
use crate::views::live;
use crate::views::style::Style;

/// The verbs.
#[derive(Debug, clap::Subcommand)]
pub enum Verb {
    /// Show rollouts as a table, or one of them as a tree with its steps and pods
    Get(get::Args),
    /// Show rollouts as a table
    List(get::ListArgs),
    /// Watch rollouts on the whole screen, and control them with keys
    Top(live::Args),
    /// Show the phase of a rollout in one line; the exit code reports it too
    Status(status::Args),
    /// Explain what a rollout waits for, since when, and what would move it on
    Explain(explain::Args),
    /// End the current pause of a rollout, or skip all its remaining steps
    Promote(steer::PromoteArgs),
    /// Skip the current step, whatever it waits for; refused if it would release more pods while one is not Ready
    Skip(steer::Args),
    /// Abort a rollout and roll every pod back to the stable version
    Abort(steer::Args),
    /// Retry an aborted revision
    Retry(steer::Args),
    /// Pause a rollout, or the next one at its start: no further pods are released
    Pause(steer::Args),
    /// Resume a rollout that was stopped with pause
    Resume(steer::Args),
    /// Restore the template of a former revision: during a rollout the stable one, which rolls back at once
    Undo(undo::Args),
    /// Restart all pods, following the rollout's steps
    Restart(restart::Args),
    /// Change a part of the workload's template
    #[command(subcommand)]
    Set(Set),
    /// Show the revisions of a workload with their images, causes, ages and outcomes
    History(history::Args),
    /// Show what the new version changes in the template; values that look like secrets are hidden
    Diff(diff::Args),
    /// Check manifests without a cluster, as the API server and the operator would
    Lint(lint::Args),
    /// Print a completion script, which also completes names of rollouts
    Completion(completion::Args),
    /// Show the versions of this program, the operator and the API server
    Version(version::Args),
}

impl Verb {
    /// The flags that select the cluster; `None` for a verb without a cluster.
    fn access(&self) -> Option<&Access> {
        match self {
            Self::Get(args) => Some(args.access()),
            Self::List(args) => Some(args.access()),
            Self::Top(args) => Some(args.access()),
            Self::Status(args) => Some(args.access()),
            Self::Explain(args) => Some(args.access()),
            Self::Promote(args) => Some(args.access()),
            Self::Skip(args)
            | Self::Abort(args)
            | Self::Retry(args)
            | Self::Pause(args)
            | Self::Resume(args) => Some(args.access()),
            Self::Undo(args) => Some(args.access()),
            Self::Restart(args) => Some(args.access()),
            Self::Set(Set::Image(args)) => Some(args.access()),
            Self::History(args) => Some(args.access()),
            Self::Diff(args) => Some(args.access()),
            Self::Version(args) => args.access(),
            Self::Lint(_) | Self::Completion(_) => None,
        }
    }

    /// Runs the verb with this terminal and the cluster that the arguments select. `program` is how the user invoked it, for suggested
    /// commands.
    pub async fn run(self, program: &str) -> Exit {
        let (mut out, mut talk) = (std::io::stdout(), std::io::stderr());
        let done = match self.access() {
            None => self.perform_alone(&mut out, &mut talk),
            Some(access) => match access.connect().await {
                Ok(Connection {
                    client,
                    namespace,
                    clock,
                    user,
                }) => {
                    let session = Session {
                        user,
                        client,
                        namespace,
                        clock,
                        program,
                        style: Style::of_the_terminal(),
                        terminal: Style::has_a_screen(),
                        out: &mut out,
                        talk: &mut talk,
                    };
                    self.perform(session).await
                }
                // The part that needs no cluster still works.
                Err(error) => match &self {
                    Self::Version(args) => args.without_a_cluster(&error, &mut out, &mut talk),
                    _ => Err(error),
                },
            },
        };
        done.unwrap_or_else(|error| {
            if !error.is_nobody_listening() {
                // A closed stderr is not an error.
                let line = format!("{program}: {error}");
                let _ = write_line(&mut std::io::stderr(), &line, Style::of_the_terminal());
            }
            error.exit()
        })
    }

    /// Runs a verb that needs no cluster.
    fn perform_alone(
        self,
        out: &mut (dyn Write + Send),
        talk: &mut (dyn Write + Send),
    ) -> Result<Exit, Error> {
        match self {
            Self::Lint(args) => lint::run(&args, out, talk),
            Self::Completion(args) => completion::run(&args, out),
            Self::Version(args) => args.alone(out),
            _ => Ok(Exit::Error),
        }
    }

    /// Runs the verb.
    pub async fn perform(self, mut session: Session<'_>) -> Result<Exit, Error> {
        let Some(access) = self.access() else {
            return self.perform_alone(session.out, session.talk);
        };
        session.namespace = access.namespace_or(&session.namespace);
        // Where rollouts of any namespace can be chosen, each suggested command names the namespace.
        let explicit =
            matches!(self, Self::Top(_)) || session.namespace != session.client.default_namespace();
        let named = explicit.then_some(session.namespace.as_str());
        let program = access.call(session.program, named);
        let session = &mut session.called(&program);
        match self {
            Self::Get(args) => get::run(args, session).await,
            Self::List(args) => get::list(args, session).await,
            Self::Top(args) => live::top(args, session).await,
            Self::Status(args) => status::run(args, session).await,
            Self::Explain(args) => explain::run(args, session).await,
            Self::Promote(args) => steer::promote(args, session).await,
            Self::Skip(args) => steer::run(Command::Skip, args, session).await,
            Self::Abort(args) => steer::run(Command::Abort, args, session).await,
            Self::Retry(args) => steer::run(Command::Retry, args, session).await,
            Self::Pause(args) => steer::run(Command::Pause, args, session).await,
            Self::Resume(args) => steer::run(Command::Resume, args, session).await,
            Self::Undo(args) => undo::run(args, session).await,
            Self::Restart(args) => restart::run(args, session).await,
            Self::Set(Set::Image(args)) => crate::verbs::set_image::run(args, session).await,
            Self::History(args) => history::run(args, session).await,
            Self::Diff(args) => diff::run(args, session).await,
            Self::Version(args) => version::run(args, session).await,
            Self::Lint(_) | Self::Completion(_) => self.perform_alone(session.out, session.talk),
        }
    }
}
