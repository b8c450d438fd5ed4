//! `status --watch --until`: a phase to wait for.

use crate::error::Error;
use crate::exit::Exit;

use super::Verdict;

/// A phase to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Until {
    #[value(name = "Progressing")]
    Progressing,
    #[value(name = "Paused")]
    Paused,
    #[value(name = "Successful", alias = "Healthy")]
    Successful,
    #[value(name = "Failed")]
    Failed,
}

impl Until {
    /// The phase as in the status.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Progressing => "Progressing",
            Self::Paused => "Paused",
            Self::Successful => "Successful",
            Self::Failed => "Failed",
        }
    }

    /// How a watch for this phase ends; `None` while it continues. A phase from before a change that the operator has not seen yet does not
    /// count. `unread` says why it is unknown whether there is such a change.
    pub(super) fn end(
        self,
        verdict: &Verdict,
        unread: Option<&str>,
        title: &str,
    ) -> Option<Result<Exit, Error>> {
        let wanted = self.word();
        if verdict.phase == wanted {
            return match unread {
                Some(why) => Some(Err(Error::Refused(format!(
                    "the status of {title} says {wanted}, but {}",
                    super::unknown_change(why)
                )))),
                None => verdict.current.then_some(Ok(Exit::Done)),
            };
        }
        verdict.ended.then(|| match verdict.exit {
            Exit::Done => Err(Error::Refused(format!(
                "{title} is {} and will not be {wanted} before its next rollout",
                verdict.phase
            ))),
            exit => Ok(exit),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{aborted, at_rest, broken, paused, returning, set, stepping, unseen};
    use crate::rollout::Rollout;
    use clap::ValueEnum;
    use rstest::rstest;

    const NEXT: &str = "rolloutplugin cache is Successful and will not be Paused before its next rollout";

    #[rstest]
    #[case::reached(Until::Paused, paused(), Some(Ok(Exit::Done)))]
    #[case::not_yet(Until::Paused, stepping(), None)]
    #[case::on_its_way(Until::Progressing, stepping(), Some(Ok(Exit::Done)))]
    #[case::not_looked_at(Until::Progressing, unseen(), None)]
    #[case::at_the_end(Until::Successful, at_rest(), Some(Ok(Exit::Done)))]
    #[case::past_it(Until::Paused, at_rest(), Some(Err(NEXT)))]
    #[case::broken(Until::Paused, broken(), Some(Ok(Exit::Failed)))]
    #[case::rolling_back(Until::Paused, returning(), None)]
    #[case::rolled_back(Until::Successful, aborted(), Some(Ok(Exit::Failed)))]
    #[case::a_failure_that_is_waited_for(Until::Failed, broken(), Some(Ok(Exit::Done)))]
    fn a_watch_ends_at_the_phase_or_where_it_cannot_come_any_more(
        #[case] until: Until,
        #[case] rollout: Rollout,
        #[case] expected: Option<Result<Exit, &str>>,
    ) {
        let verdict = Verdict::of(&rollout, None, None, "stateward");
        let end = until.end(&verdict, None, &rollout.title());
        let end = end.map(|end| end.map_err(|error| error.to_string()));
        assert_eq!(end, expected.map(|end| end.map_err(str::to_owned)));
    }

    /// The StatefulSet controller takes a moment to compute the revision of a new template.
    #[test]
    fn the_pause_of_a_version_that_another_replaces_is_not_the_one_that_is_waited_for() {
        let ended = |ahead: &_| {
            let verdict = Verdict::of(&paused(), Some(ahead), None, "stateward");
            Until::Paused.end(&verdict, None, "it").is_some()
        };
        let mut ahead = set("db", 4);
        assert!(ended(&ahead));
        ahead.metadata.generation = Some(4);
        assert!(!ended(&ahead), "not looked at by the controller");
        let status = ahead.status.as_mut().unwrap();
        (status.observed_generation, status.update_revision) = (Some(4), Some("db-3".into()));
        assert!(!ended(&ahead), "not looked at by the operator");
    }

    #[test]
    fn a_phase_that_cannot_be_relied_on_is_an_error() {
        let verdict = Verdict::of(&paused(), None, Some("you may not"), "stateward");
        let end = Until::Paused.end(&verdict, Some("you may not"), "rolloutplugin db");
        assert_eq!(
            end.unwrap().unwrap_err().to_string(),
            "the status of rolloutplugin db says Paused, but whether its latest change was looked at is not known: you may not"
        );
    }

    #[rstest]
    #[case("paused", Some(Until::Paused))]
    #[case("HEALTHY", Some(Until::Successful))]
    #[case("Degraded", None)]
    fn phases_are_typed_in_any_case(#[case] typed: &str, #[case] until: Option<Until>) {
        assert_eq!(Until::from_str(typed, true).ok(), until);
    }
}
