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
  6  Progressing (without --watch)
Of several rollouts it is the code of the worst, in the order 1, 5, 2, 4, 3, 6, 0.
With --watch all of them are watched at the same time, each until its own end.";

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
Several are changed one after the other; one that cannot be is told, and keeps no other from it.

Exit codes:
  0  the template was changed; what comes of it: status NAME --watch
  1  it was refused, or the template has changed meanwhile: nothing was changed; or several rollouts ended differently
  4  the API server has not answered; whether the template was changed is not known
  5  there is no such rollout";

impl Exit {
    /// From the worst on.
    const RANKED: [Self; 7] = [
        Self::Error,
        Self::NotFound,
        Self::Failed,
        Self::Timeout,
        Self::Paused,
        Self::Progressing,
        Self::Done,
    ];

    /// How several stand: as the worst of them.
    pub(crate) fn worst(exits: &[Self]) -> Self {
        let worst = Self::RANKED.into_iter().find(|exit| exits.contains(exit));
        worst.unwrap_or(Self::Error)
    }

    /// How several were changed. Where they ended differently there is no code that says it all.
    pub(crate) fn of_all(exits: &[Self]) -> Self {
        match exits.split_first() {
            Some((first, rest)) if rest.iter().all(|exit| exit == first) => *first,
            _ => Self::Error,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(&[Exit::Done, Exit::Done], Exit::Done, Exit::Done)]
    #[case(&[Exit::Done, Exit::Paused], Exit::Paused, Exit::Error)]
    #[case(&[Exit::Progressing, Exit::Failed, Exit::Paused], Exit::Failed, Exit::Error)]
    #[case(&[Exit::Failed, Exit::NotFound], Exit::NotFound, Exit::Error)]
    #[case(&[], Exit::Error, Exit::Error)]
    fn several_end_as_the_worst_or_as_all(#[case] exits: &[Exit], #[case] worst: Exit, #[case] all: Exit) {
        assert_eq!((Exit::worst(exits), Exit::of_all(exits)), (worst, all));
    }
}
