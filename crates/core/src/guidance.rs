//! What a rollout waits for, the commands that would move it, and the answers to commands.

use std::fmt;

use jiff::Timestamp;

use crate::memory::Command;
use crate::revision::RevisionName;

/// What a rollout waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingFor {
    /// The kind of thing.
    pub kind: WaitKind,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The state that it is in, in one word, if known.
    pub reason: Option<String>,
}

impl WaitingFor {
    /// Something without a name.
    pub fn any(kind: WaitKind) -> Self {
        Self {
            kind,
            name: None,
            reason: None,
        }
    }

    /// Something with a name.
    pub fn named(kind: WaitKind, name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            ..Self::any(kind)
        }
    }
}

macro_rules! wait_kinds {
    ($($kind:ident $when:literal;)*) => {
        /// The kinds of things that a rollout waits for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum WaitKind {
            $(#[doc = $when] $kind,)*
        }

        impl WaitKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The API value.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$kind => stringify!($kind),)*
                }
            }

            /// What is waited for.
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$kind => $when,)*
                }
            }
        }
    };
}

wait_kinds! {
    Pod "a pod, to be created, to run the right version, or to be Ready; the reason is that of the pod";
    Workload "the workload, to exist, to be one that can be rolled out, or to be observed by its controller";
    Pause "the end of a pause step";
    AnalysisRun "the verdict of an AnalysisRun";
    Checks "the checks before a pod (PhasedRollout)";
    User "a user, to decide or to fix the version";
    Spec "a user, to fix the spec";
}

/// A command that would move a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The command.
    pub command: Command,
    /// What it does.
    pub effect: &'static str,
    /// The revision that it is meant for; `None` if it is not about one.
    pub revision: Option<RevisionName>,
}

/// Suggestions as the end of a sentence: `; continue with: CMD, or roll back with: CMD`. `typed` gives each command as users type it.
pub fn alternatives<E: fmt::Display>(suggestions: &[(E, String)]) -> String {
    let mut text = String::new();
    for (index, (effect, typed)) in suggestions.iter().enumerate() {
        text += match index {
            0 => "; ",
            _ if index + 1 == suggestions.len() => ", or ",
            _ => ", ",
        };
        text += &format!("{effect} with: {typed}");
    }
    text
}

/// The answer to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The command.
    pub command: Command,
    /// The revision that it was given for.
    pub revision: Option<RevisionName>,
    /// The user who gave it, if known.
    pub by: Option<String>,
    /// Why it was refused; `None` if it was carried out.
    pub refusal: Option<String>,
    /// The commands that can be given instead.
    pub instead: Vec<Suggestion>,
    /// When it was answered.
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(&[], "")]
    #[case(&[("continue", "a")], "; continue with: a")]
    #[case(&[("continue", "a"), ("roll back", "b")], "; continue with: a, or roll back with: b")]
    #[case(&[("retry", "a"), ("continue", "b"), ("roll back", "c")], "; retry with: a, continue with: b, or roll back with: c")]
    fn alternatives_are_the_end_of_a_sentence(#[case] suggestions: &[(&str, &str)], #[case] expected: &str) {
        let suggestions: Vec<_> = suggestions
            .iter()
            .map(|(effect, typed)| (*effect, (*typed).to_owned()))
            .collect();
        assert_eq!(alternatives(&suggestions), expected);
    }

    #[test]
    fn a_command_is_parsed_as_it_is_typed() {
        for command in Command::ALL {
            assert_eq!(Command::parse(command.as_str()), Some(command));
        }
        assert_eq!(Command::parse("undo"), None);
    }
}
