//! Commands to paste. They are bound to the cluster, the rollout and the revision at the time of printing: once another revision is rolled
//! out, they are refused.

use stateward_api::rollout::SuggestedCommand;
use stateward_core::guidance::alternatives;
use stateward_core::memory::{Activity, Command};

use crate::rollout::Rollout;
use crate::stage::Stage;
use crate::views::invocation;

/// `stateward promote db --full --revision db-2`
pub(crate) fn command(verb: &str, stage: &Stage<'_>, program: &str) -> String {
    // With no rollout in progress, a command is for the next revision, which is unknown, unless the last one was rejected.
    let seen = stage.activity != Activity::Idle || stage.status.aborted;
    let revision = stage.status.updated_revision.as_deref();
    let revision = revision.filter(|_| Command::parse(verb).is_some() && seen);
    let (verb, flags) = verb.split_once(' ').unwrap_or((verb, ""));
    typed(verb, flags, revision, stage.object, program)
}

fn typed(verb: &str, flags: &str, revision: Option<&str>, object: &Rollout, program: &str) -> String {
    let mut command = format!(
        "{} {verb} {}",
        invocation::about(program, object),
        object.name_any()
    );
    if !flags.is_empty() {
        command += &format!(" {flags}");
    }
    if let Some(revision) = revision {
        command += &format!(" --revision {}", invocation::quoted(revision));
    }
    command
}

/// The operator's message, with its commands as the user must type them.
pub(crate) fn message(stage: &Stage<'_>, program: &str) -> String {
    format!("{}{}", stage.summary(), commands(stage, program))
}

/// The commands at the end of the message: `; continue with: stateward promote db --revision db-2`.
pub(crate) fn commands(stage: &Stage<'_>, program: &str) -> String {
    suggested(&stage.status.commands, stage.object, program)
}

/// Commands that the operator suggests, as the user must type them.
pub(crate) fn suggested(commands: &[SuggestedCommand], object: &Rollout, program: &str) -> String {
    let typed = |command: &SuggestedCommand| {
        let flags = command.arguments.join(" ");
        let revision = command.revision.as_deref();
        let typed = typed(&command.verb, &flags, revision, object, program);
        (command.effect.clone(), typed)
    };
    // A user who may write the status can write anything here, and others paste it.
    let known = |command: &&SuggestedCommand| {
        let words = [std::slice::from_ref(&command.verb), &command.arguments].concat();
        Command::parse(&words.join(" ")).is_some()
    };
    let typed: Vec<_> = commands.iter().filter(known).map(typed).collect();
    alternatives(&typed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{aborted, at_rest, paused, suggesting};
    use rstest::rstest;

    const PROGRAM: &str = "stateward --context x -n prod";

    #[test]
    fn a_template_is_bound_by_the_template() {
        let aborted = aborted();
        assert_eq!(
            command("undo", &Stage::of(&aborted), "stateward"),
            "stateward undo queue"
        );
    }

    #[rstest]
    #[case::paused(
        paused(),
        "step 2 of 4: paused; continue with: stateward --context x -n prod promote db --revision db-2"
    )]
    #[case::aborted(
        aborted(),
        "queue-2 was rejected (aborted by a user) and every pod is back on the stable version; change the template to roll out another; retry it with: stateward --context x -n prod retry queue --revision queue-2"
    )]
    #[case::of_the_next_version(
        suggesting(at_rest(), "paused by spec.paused", &[("resume", &[], None, "let it start")]),
        "paused by spec.paused; let it start with: stateward --context x -n prod resume cache"
    )]
    #[case::several(
        suggesting(paused(), "no progress", &[
            ("promote", &["--full", "--force"], Some("db-2"), "replace it"), ("abort", &[], Some("db-2"), "roll back"),
        ]),
        "no progress; replace it with: stateward --context x -n prod promote db --full --force --revision db-2, or roll back with: stateward --context x -n prod abort db --revision db-2"
    )]
    #[case::that_are_no_commands(
        suggesting(paused(), "paused", &[
            ("promote", &["; reboot"], Some("db-2"), "continue"), ("abort", &[], Some("db-2; reboot"), "roll back"),
        ]),
        "paused; roll back with: stateward --context x -n prod abort db --revision 'db-2; reboot'"
    )]
    #[case::without_any(at_rest(), "every pod runs cache-1")]
    fn suggestions_are_commands_for_the_revision_that_was_seen(
        #[case] rollout: Rollout,
        #[case] expected: &str,
    ) {
        assert_eq!(message(&Stage::of(&rollout), PROGRAM), expected);
    }
}
