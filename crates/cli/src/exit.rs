//! How a verb ends, as scripts see it.

use std::process::ExitCode;

/// The exit codes. They are part of the interface: scripts branch on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// What was asked for is so, or was done.
    Done = 0,
    /// It could not be done, and nothing was changed.
    Error = 1,
    /// The rollout has failed.
    Failed = 2,
    /// The rollout is paused.
    Paused = 3,
    /// It took too long, or no answer was heard.
    Timeout = 4,
    /// There is no such rollout.
    NotFound = 5,
    /// The rollout is under way.
    Progressing = 6,
}

/// For the help texts.
pub(crate) const HELP: &str = "\
Exit codes:
  0  Successful: every pod runs the version that the workload asks for
  1  an error: no cluster, bad arguments, no permission to read the rollout or its workload
  2  Failed: aborted, broken, or without progress for too long
  3  Paused (without --watch)
  4  the --timeout ran out
  5  there is no such rollout
  6  Progressing (without --watch)";

/// For the help texts of commands.
pub(crate) const COMMAND_HELP: &str = "\
Each rollout is bound to the revision that was seen of it. Of those that nobody has named (-l, --all), the ones that need nothing
are skipped and told; where none needs anything, that is an error. A name is never guessed from its beginning.

Exit codes:
  0  the operator has taken the command
  1  it was refused, or the rollout has moved on: nothing was changed; or several rollouts ended differently
  4  nobody has answered, or not in time, or not before an interrupt; it is said what was asked for, or that this is not known
  5  there is no such rollout";

/// For the help texts of what changes the template.
pub(crate) const CHANGE_HELP: &str = "\
It is bound to the template that was seen: where somebody else has changed it meanwhile, nothing is done.

Exit codes:
  0  the template was changed; what comes of it: status NAME --watch
  1  it was refused, or the template has changed meanwhile: nothing was changed
  4  the API server has not answered; whether the template was changed is not known
  5  there is no such rollout";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
