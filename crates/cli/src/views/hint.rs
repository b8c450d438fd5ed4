//! Commands to paste. They are bound to the cluster, the rollout and the revision at the time of printing: once another revision is rolled
//! out, they are refused.

use stateward_core::memory::Activity;

use crate::stage::Stage;
use crate::views::invocation;

/// The verbs in the operator's messages, longer ones first.
const VERBS: [&str; 7] = [
    "promote --full --force",
    "promote --full",
    "promote",
    "skip",
    "abort",
    "retry",
    "resume",
];

/// `stateward promote db --full --revision db-2`
pub(crate) fn command(verb: &str, stage: &Stage<'_>, program: &str) -> String {
    let mut command = typed(verb, stage, program);
    // With no rollout in progress, a command is for the next revision, which is unknown, unless the last one was rejected.
    let seen = stage.activity != Activity::Idle || stage.status.aborted;
    let revision = stage.status.updated_revision.as_ref();
    if let Some(revision) = revision.filter(|_| VERBS.contains(&verb) && seen) {
        command += &format!(" --revision {}", invocation::quoted(revision));
    }
    command
}

/// `stateward promote db --full`
fn typed(verb: &str, stage: &Stage<'_>, program: &str) -> String {
    let (verb, flags) = verb.split_once(' ').unwrap_or((verb, ""));
    let program = invocation::about(program, stage.object);
    format!("{program} {verb} {} {flags}", stage.object.name_any())
        .trim_end()
        .to_owned()
}

/// The operator's message, with its commands as the user must type them. It names the revision itself.
pub(crate) fn message(stage: &Stage<'_>, program: &str) -> String {
    localized(stage.message(), stage, program)
}

/// Another text of the operator, with its commands as the user must type them.
pub(crate) fn localized(text: &str, stage: &Stage<'_>, program: &str) -> String {
    let (name, namespace) = (
        stage.object.name_any(),
        stage.object.namespace().unwrap_or_default(),
    );
    VERBS.iter().fold(text.to_owned(), |message, verb| {
        let said = format!("kubectl stateward {verb} {name} -n {namespace}");
        message.replace(&said, &typed(verb, stage, program))
    })
}

/// The message without the commands at its end.
pub(crate) fn without_commands(message: &str) -> &str {
    let commands = [
        "; go back with: ",
        "; go on with: ",
        "; check again with: ",
        "; replace it and ",
    ];
    let end = commands.iter().filter_map(|command| message.find(command)).min();
    &message[..end.unwrap_or(message.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{aborted, at_rest, paused};
    use crate::rollout::Rollout;
    use rstest::rstest;

    fn saying(mut rollout: Rollout, message: &str) -> Rollout {
        rollout.status.get_or_insert_default().message = message.to_owned();
        rollout
    }

    #[test]
    fn a_template_is_bound_by_the_template() {
        let aborted = aborted();
        assert_eq!(
            command("undo", &Stage::of(&aborted), "stateward"),
            "stateward undo queue"
        );
    }

    #[rstest]
    #[case::where_it_stands(
        paused(),
        "step 2 of 4: paused; go on with: stateward --context x -n prod promote db --revision db-2"
    )]
    #[case::of_what_was_turned_down(
        aborted(),
        "queue-2 was rejected (aborted by a user) and every pod is back on the stable version; change the template, or: stateward --context x -n prod retry queue --revision queue-2"
    )]
    #[case::of_the_next_version(
        saying(
            at_rest(),
            "it will stand at its start until: kubectl stateward resume cache -n prod"
        ),
        "it will stand at its start until: stateward --context x -n prod resume cache"
    )]
    #[case::several(
        saying(
            paused(),
            "go back with: kubectl stateward abort db -n prod --revision db-2, or replace it with: kubectl stateward promote --full db -n prod --revision db-2"
        ),
        "go back with: stateward --context x -n prod abort db --revision db-2, or replace it with: stateward --context x -n prod promote db --full --revision db-2"
    )]
    #[case::with_more_flags(
        saying(
            paused(),
            "with: kubectl stateward promote --full --force db -n prod --revision db-2"
        ),
        "with: stateward --context x -n prod promote db --full --force --revision db-2"
    )]
    #[case::without_any(at_rest(), "every pod runs cache-1")]
    fn what_the_operator_names_is_for_what_was_seen(#[case] rollout: Rollout, #[case] expected: &str) {
        let stage = Stage::of(&rollout);
        assert_eq!(message(&stage, "stateward --context x -n prod"), expected);
    }
}
