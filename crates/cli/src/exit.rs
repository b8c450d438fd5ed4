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

/// What the codes mean, for every verb that is about rollouts.
pub const CODES: &str = "\
Exit codes of the verbs that are about rollouts:
  0  done; of status: Successful
  1  an error: refused, no cluster, bad arguments, no permission; what it is about was not changed
  2  of status: Failed
  3  of status: Paused
  4  nobody has answered, or not in time
  5  there is no such rollout, by its name, its StatefulSet or its labels
  6  of status: Progressing
Of several rollouts it is the code of the worst, in the order 1, 5, 2, 4, 3, 6, 0.";

/// For the help texts of what only looks.
pub(crate) const LOOK_HELP: &str = "\
Exit codes:
  0  it was shown
  1  an error: no cluster, bad arguments, no permission
  5  there is no such rollout; what is there of several that were named is shown all the same";

/// For the help texts of what is shown for as long as somebody looks.
pub(crate) const LIST_HELP: &str = "\
Exit codes:
  0  they were shown, or there are none
  1  an error: no cluster, bad arguments, no permission";

/// For the help texts.
pub(crate) const HELP: &str = "\
Exit codes:
  0  Successful: every pod runs the version that the workload asks for
  1  an error: no cluster, bad arguments, no permission to read the rollout or its workload
  2  Failed; the reason in brackets says whether it was rolled back, is held, is invalid or is
     managed by another object, and -o json says whether that is urgent
  3  Paused (without --watch)
  4  the --timeout ran out
  5  there is no such rollout
  6  Progressing (without --watch)
Of several rollouts it is the code of the worst, in the order 1, 5, 2, 4, 3, 6, 0.
With --watch all of them are watched at the same time, each until its own end. A long reason that the
line before has is not repeated.
With --until PHASE the code is 0 when the rollout is in that phase, 2 when it has failed instead, and
1 when it is Successful instead. A phase from before a change that the operator has not seen yet does
not count.";

/// For the help texts of commands.
pub(crate) const COMMAND_HELP: &str = "\
Each rollout is bound to the revision that was seen of it. Of those that nobody has named (-l, --all), the ones that need nothing
are skipped and told; where none needs anything, that is an error. A name is never guessed from its beginning.

Exit codes:
  0  the operator has taken the command
  1  it was refused, or the rollout has moved on: nothing was changed
  4  nobody has answered, or not in time, or not before an interrupt; it is said what was asked for, or that this is not known
  5  there is no such rollout
Of several rollouts it is the code of the worst, in the order 1, 5, 4, 0.";

/// For the help texts of what changes the template.
pub(crate) const CHANGE_HELP: &str = "\
It is bound to the template that was seen: where somebody else has changed it meanwhile, nothing is done.
Several are changed one after the other; one that cannot be is told, and keeps no other from it.

Exit codes:
  0  the template was changed; what comes of it: status NAME --watch
  1  it was refused, or the template has changed meanwhile: nothing was changed
  4  the API server has not answered; whether the template was changed is not known
  5  there is no such rollout
Of several rollouts it is the code of the worst, in the order 1, 5, 4, 0.";

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

    /// How several end: as the worst of them.
    pub(crate) fn worst(exits: &[Self]) -> Self {
        let worst = Self::RANKED.into_iter().find(|exit| exits.contains(exit));
        worst.unwrap_or(Self::Error)
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
    #[case(&[Exit::Done, Exit::Done], Exit::Done)]
    #[case(&[Exit::Done, Exit::Paused], Exit::Paused)]
    #[case(&[Exit::Progressing, Exit::Failed, Exit::Paused], Exit::Failed)]
    #[case(&[Exit::Failed, Exit::NotFound], Exit::NotFound)]
    #[case(&[Exit::Done, Exit::NotFound], Exit::NotFound)]
    #[case(&[Exit::NotFound, Exit::Error], Exit::Error)]
    #[case(&[], Exit::Error)]
    fn several_end_as_the_worst(#[case] exits: &[Exit], #[case] worst: Exit) {
        assert_eq!(Exit::worst(exits), worst);
    }
}
