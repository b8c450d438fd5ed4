//! Prefixes of printed commands: pasted, the commands apply to the same cluster and rollout.
//!
//! A session's `program` is how the user invoked it, with the flags for the cluster and, at its end, the namespace:
//! `kubectl stateward --context x -n prod`. Every printed command starts with it.

use std::borrow::Cow;

use crate::input::name::is_label;
use crate::rollout::Rollout;
use crate::session::Session;

/// The namespace flag, which is the last one.
const NAMESPACE: &str = " -n ";

/// The invocation for this namespace. Without a namespace in `program`, the context's own applies.
pub(crate) fn in_namespace(program: &str, namespace: &str) -> String {
    format!("{}{NAMESPACE}{namespace}", split(program).0)
}

/// The invocation for this rollout, which may be in another namespace than the session.
pub(crate) fn about<'p>(program: &'p str, rollout: &Rollout) -> Cow<'p, str> {
    match (split(program).1, rollout.namespace()) {
        (Some(said), Some(theirs)) if said != theirs => in_namespace(program, &theirs).into(),
        _ => program.into(),
    }
}

/// The invocation without a namespace, for all namespaces.
pub(crate) fn everywhere(program: &str) -> &str {
    split(program).0
}

/// kubectl for the same cluster: it has the same flags.
pub(crate) fn kubectl(program: &str) -> String {
    let flags = everywhere(program)
        .strip_prefix(name(program))
        .unwrap_or_default();
    format!("kubectl{flags}")
}

/// The name of the program.
pub(crate) fn name(program: &str) -> &str {
    program.split(" -").next().unwrap_or(program)
}

fn split(program: &str) -> (&str, Option<&str>) {
    match program.rsplit_once(NAMESPACE) {
        Some((before, namespace)) if is_label(namespace) => (before, Some(namespace)),
        _ => (program, None),
    }
}

/// A word, quoted for a shell.
pub fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''")).into()
    }
}

impl Session<'_> {
    /// The invocation for the namespace of this session.
    pub(crate) fn here(&self) -> Cow<'_, str> {
        if split(self.program).1.is_none() && self.namespace != self.client.default_namespace() {
            in_namespace(self.program, &self.namespace).into()
        } else {
            self.program.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::paused;
    use rstest::rstest;

    #[rstest]
    #[case("stateward", "stateward")]
    #[case(
        "kubectl stateward --context x -n prod",
        "kubectl stateward --context x -n prod"
    )]
    #[case("stateward -n test", "stateward -n prod")]
    #[case("stateward --kubeconfig '/a -n b'", "stateward --kubeconfig '/a -n b'")]
    fn a_command_is_for_the_namespace_of_its_rollout(#[case] program: &str, #[case] expected: &str) {
        assert_eq!(about(program, &paused()), expected);
    }

    #[rstest]
    #[case("stateward", "stateward", "stateward")]
    #[case(
        "kubectl stateward --context x -n prod",
        "kubectl stateward --context x",
        "kubectl stateward"
    )]
    fn a_program_can_be_named_alone(#[case] program: &str, #[case] all: &str, #[case] alone: &str) {
        assert_eq!((everywhere(program), name(program)), (all, alone));
        assert_eq!(kubectl(program), all.replace(alone, "kubectl"));
    }

    #[rstest]
    #[case("kind-dev", "kind-dev")]
    #[case("arn:aws:eks:eu-1:1:cluster/a", "arn:aws:eks:eu-1:1:cluster/a")]
    #[case("my context", "'my context'")]
    #[case("it's", r"'it'\''s'")]
    #[case("", "''")]
    fn a_word_is_one_word_for_a_shell(#[case] word: &str, #[case] expected: &str) {
        assert_eq!(quoted(word), expected);
    }
}
