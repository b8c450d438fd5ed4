//! Exit codes.

use std::process::ExitCode;

/// The exit codes of all verbs. They are an interface: scripts depend on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The condition holds, or the command was carried out.
    Done = 0,
    /// An error, and nothing was changed.
    Error = 1,
    /// The rollout has failed.
    Failed = 2,
    /// The rollout is paused.
    Paused = 3,
    /// A timeout, or no answer.
    Timeout = 4,
    /// There is no such rollout.
    NotFound = 5,
    /// The rollout is in progress.
    Progressing = 6,
}

/// The meaning of the codes, for all verbs about rollouts.
pub const CODES: &str = "\
Exit codes of the verbs for rollouts:
  0  done; of status: Successful
  1  an error: refused, no cluster, bad arguments, no permission; nothing was changed
  2  of status: Failed
  3  of status: Paused
  4  no answer, or not in time
  5  there is no such rollout, by its name, its StatefulSet or its labels
  6  of status: Progressing
For several rollouts the exit code is the worst one, in the order 1, 5, 2, 4, 3, 6, 0.";

/// For the help texts of read-only verbs.
pub(crate) const LOOK_HELP: &str = "\
Exit codes:
  0  shown
  1  an error: no cluster, bad arguments, no permission
  5  a named rollout does not exist; the others are still shown";

/// For the help texts of continuous views.
pub(crate) const LIST_HELP: &str = "\
Exit codes:
  0  shown, or there are none
  1  an error: no cluster, bad arguments, no permission";

/// For the help texts.
pub(crate) const HELP: &str = "\
Exit codes:
  0  Successful: every pod runs the version of the workload's template
  1  an error: no cluster, bad arguments, no permission to read the rollout or its workload
  2  Failed; the reason in brackets says whether it was rolled back, is held, is invalid or is
     managed by another object, and -o json says whether that is urgent
  3  Paused (without --watch)
  4  the --timeout ran out
  5  there is no such rollout
  6  Progressing (without --watch)
For several rollouts the exit code is the worst one, in the order 1, 5, 2, 4, 3, 6, 0.
With --watch all rollouts are watched at the same time, each until it ends. A long reason is not
repeated from one line to the next.
With --until PHASE the code is 0 when the rollout is in that phase, 2 when it has failed instead, and
1 when it is Successful instead. While the operator has not seen the latest change, the phase does
not count.";

/// For the help texts of commands.
pub(crate) const COMMAND_HELP: &str = "\
The command applies only to the revision that was shown. With -l or --all, rollouts that the command does not apply to are skipped and
listed; if it applies to none, that is an error. A name is never guessed from a prefix.

Exit codes:
  0  the operator has accepted the command
  1  refused, or the rollout has changed meanwhile: nothing was changed
  4  no answer, or not in time, or not before an interrupt; the output says what was requested, or that this is not known
  5  there is no such rollout
For several rollouts the exit code is the worst one, in the order 1, 5, 4, 0.";

/// For the help texts of verbs that change the template.
pub(crate) const CHANGE_HELP: &str = "\
The change applies only to the template that was read: if another user has changed it meanwhile, nothing is done.
Several rollouts are changed one after the other; one that cannot be changed is reported and does not stop the others.

Exit codes:
  0  the template was changed; follow the rollout with: status NAME --watch
  1  refused, or the template has changed meanwhile: nothing was changed
  4  the API server has not answered; whether the template was changed is not known
  5  there is no such rollout
For several rollouts the exit code is the worst one, in the order 1, 5, 4, 0.";

impl Exit {
    /// Sorted from the worst.
    const RANKED: [Self; 7] = [
        Self::Error,
        Self::NotFound,
        Self::Failed,
        Self::Timeout,
        Self::Paused,
        Self::Progressing,
        Self::Done,
    ];

    /// The worst of several exit codes.
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
