//! `status`: one line and an exit code. `watch` continues until the rollout ends.

mod reason;
mod until;
mod watch;

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};
use stateward_api::duration;
use stateward_api::rollout::RolloutStatus;
use stateward_core::record::{commands, read_reason};
use stateward_core::world::{Commands, Reason};

use crate::error::Error;
use crate::exit::{self, Exit};
use crate::input::access::Access;
use crate::input::target::{Targets, each};
use crate::look::or_why;
use crate::rollout::Rollout;
use crate::session::Session;
use crate::stage::Stage;
use crate::unseen::{PROGRESSING, unseen};
use crate::views::hint;
use crate::views::output::Format;
use crate::views::style::Style;

use self::until::Until;

/// `status …`
#[derive(Debug, clap::Args)]
#[command(after_help = exit::HELP)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Continue until the rollout is Successful or Failed, through all its pauses, with a line for every change
    #[arg(short, long)]
    watch: bool,
    /// With --watch: continue only until this phase, which then counts as success; Healthy is an alias of Successful
    #[arg(
        long,
        value_name = "PHASE",
        value_enum,
        ignore_case = true,
        requires = "watch"
    )]
    until: Option<Until>,
    /// With --watch: give up after this time (30s, 5m, 1h30m), in any phase; 0 is never
    #[arg(long, value_name = "DURATION", value_parser = duration::typed, requires = "watch")]
    timeout: Option<Duration>,
    /// The output format, which also has the reason and whether it is urgent; a list, unless one NAME is given
    #[arg(
        short,
        long,
        value_enum,
        value_name = "json|yaml",
        hide_possible_values = true,
        conflicts_with = "watch"
    )]
    output: Option<Format>,
    #[command(flatten)]
    access: Access,
}

impl Args {
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }
}

pub(crate) async fn run(args: Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    if args.watch {
        let timeout = args.timeout.filter(|timeout| !timeout.is_zero());
        return watch::run(&args.targets, args.until, timeout, session).await;
    }
    let names = session.names(&args.targets).await?;
    let mut list = Vec::new();
    let exits = each(&names, session, async |name, session| {
        let rollout = session.rollout(name).await?;
        let (set, unread) = or_why(session.set(&rollout).await);
        let verdict = Verdict::of(&rollout, set.as_ref(), unread.as_deref(), session.program);
        match args.output {
            Some(_) => list.push(verdict.data),
            None => session.print(&verdict.line())?,
        }
        Ok(verdict.exit)
    })
    .await?;
    if let Some(format) = args.output {
        let one = list.pop_if(|_| names.len() == 1 && args.targets.are_named());
        session.print_data(&format.write(&one.unwrap_or(Value::Array(list)), session.charset())?)?;
    }
    Ok(Exit::worst(&exits))
}

/// The status of a rollout at one moment.
#[derive(Debug, PartialEq)]
struct Verdict {
    exit: Exit,
    /// Nothing more will happen without a user.
    ended: bool,
    /// The phase in one word.
    phase: String,
    /// No change is visible that the status does not include, not even a template that the StatefulSet controller has not observed yet.
    current: bool,
    /// `db: Failed (PodBroken): `
    head: String,
    /// The message, for people.
    message: String,
    /// The document, for tools.
    data: Value,
}

/// The reason for a change that the operator has not seen yet. No status contains it.
pub(crate) const WAITING_FOR_OPERATOR: &str = "WaitingForOperator";

impl Verdict {
    /// A status older than the object it describes is not reported: a template that changed a moment ago must not pass as rolled out. The
    /// same holds for a StatefulSet that cannot be read; `unread` says why.
    fn of(rollout: &Rollout, set: Option<&StatefulSet>, unread: Option<&str>, program: &str) -> Self {
        let stage = Stage::of(rollout);
        if let Some(what) = unseen(&stage, set) {
            return Self {
                exit: Exit::Progressing,
                ended: false,
                phase: PROGRESSING.into(),
                current: false,
                head: format!("{}: {PROGRESSING}: ", rollout.name_any()),
                data: data(
                    &stage,
                    Exit::Progressing,
                    (PROGRESSING, WAITING_FOR_OPERATOR),
                    &what,
                ),
                message: what,
            };
        }
        let (exit, ended) = match stage.phase() {
            "Successful" => (Exit::Done, true),
            "Failed" => (Exit::Failed, stage.status.returning.is_none()),
            "Paused" => (Exit::Paused, false),
            _ => (Exit::Progressing, false),
        };
        let (exit, phase, words, message) = match (unread, exit) {
            (Some(why), Exit::Done) => {
                let (phase, why) = (stage.phase(), unknown_change(why));
                let message = format!("its status says {phase}, but {why}");
                (Exit::Error, "Unknown", "Unknown".to_owned(), message)
            }
            _ => {
                let words = stage.phase_in_words(stage.phase(), Style::default());
                (exit, stage.phase(), words, hint::message(&stage, program))
            }
        };
        Self {
            exit,
            ended,
            phase: phase.to_owned(),
            current: unread.is_none() && !set.is_some_and(|set| is_ahead(set, &stage)),
            head: format!("{}: {words}: ", rollout.name_any()),
            data: data(&stage, exit, (phase, &stage.status.reason), &message),
            message,
        }
    }

    /// The line for people.
    fn line(&self) -> String {
        format!("{}{}", self.head, self.message)
    }
}

/// The document for tools.
fn data(stage: &Stage<'_>, exit: Exit, (phase, reason): (&str, &str), message: &str) -> Value {
    json!({
        "kind": stage.object.kind.word(), "name": stage.object.name_any(), "namespace": stage.object.namespace(),
        "phase": phase, "reason": reason, "urgent": read_reason(reason).is_some_and(Reason::is_urgent),
        "step": stage.status.step, "revision": stage.status.updated_revision, "message": message,
        "exitCode": exit as u8,
    })
}

/// Whether the StatefulSet has a change that the status does not include.
pub(crate) fn is_ahead(set: &StatefulSet, stage: &Stage<'_>) -> bool {
    let status = set.status.clone().unwrap_or_default();
    let (Some(asked), Some(known)) = (status.update_revision, &stage.status.updated_revision) else {
        return false;
    };
    status.observed_generation != set.metadata.generation || asked != *known
}

/// Whether the StatefulSet has another revision than the status, and its controller has observed it.
pub(crate) fn asks_for_another(set: &StatefulSet, stage: &Stage<'_>) -> bool {
    let status = set.status.clone().unwrap_or_default();
    status.observed_generation == set.metadata.generation && is_ahead(set, stage)
}

/// The verb of the command that was issued and that no operator has carried out yet.
pub(crate) fn waiting_command(status: &RolloutStatus) -> Option<&'static str> {
    let Commands {
        promote,
        skip,
        promote_full,
        force: _,
        abort,
        retry,
        by: _,
    } = commands(status);
    let given = [
        (abort, "abort"),
        (retry, "retry"),
        (promote_full, "promote --full"),
        (skip, "skip"),
        (promote, "promote"),
    ];
    given.into_iter().find_map(|(given, verb)| given.then_some(verb))
}

/// A message that no operator has carried out the command.
pub(crate) fn untaken(verb: &str) -> String {
    format!("{verb} was asked for and waits for the operator")
}

/// A message that no operator has seen the latest change.
pub(crate) fn unseen_change(rollout: &Rollout) -> String {
    format!(
        "the latest change of statefulset {} has not been looked at yet",
        rollout.workload
    )
}

/// A message that it is unknown whether there is an unseen change.
pub(crate) fn unknown_change(why: &str) -> String {
    format!("whether its latest change was looked at is not known: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, aborted, at_rest, paused, returning, set, stepping};
    use rstest::rstest;

    const PROGRAM: &str = "stateward -n prod";

    #[rstest]
    #[case::unseen(
        fixtures::unseen(),
        Exit::Progressing,
        false,
        "new: Progressing: no operator has looked at it yet"
    )]
    #[case::stepping(
        stepping(),
        Exit::Progressing,
        false,
        "db: Progressing: step 1 of 4: 20 % to db-2: waiting for pod db-4 to be Ready"
    )]
    #[case::paused(
        paused(),
        Exit::Paused,
        false,
        "db: Paused: step 2 of 4: paused; go on with: stateward -n prod promote db --revision db-2"
    )]
    #[case::at_rest(at_rest(), Exit::Done, true, "cache: Successful: every pod runs cache-1")]
    #[case::returning(
        returning(),
        Exit::Failed,
        false,
        "queue: Failed (RollingBack): queue-2 was rejected (aborted by a user): returning every pod to queue-1, 4 of 5 are there"
    )]
    fn every_phase_has_its_exit_code(
        #[case] rollout: Rollout,
        #[case] exit: Exit,
        #[case] ended: bool,
        #[case] line: &str,
    ) {
        let verdict = Verdict::of(&rollout, None, None, PROGRAM);
        assert_eq!((verdict.exit, verdict.ended), (exit, ended));
        assert_eq!(verdict.line(), line);
    }

    /// One value of `status.phase` covers five cases; each has its reason.
    #[rstest]
    #[case::rolling_back(returning(), "RollingBack", false)]
    #[case::rolled_back(aborted(), "RolledBack", false)]
    #[case::held(failed("PodBroken"), "PodBroken", true)]
    #[case::held_in_time(failed("ProgressDeadlineExceeded"), "ProgressDeadlineExceeded", true)]
    #[case::held_by_checks(failed("ChecksFailed"), "ChecksFailed", true)]
    #[case::invalid(failed("InvalidSpec"), "InvalidSpec", false)]
    #[case::claimed(failed("WorkloadClaimed"), "WorkloadClaimed", false)]
    #[case::unseen(fixtures::unseen(), "WaitingForOperator", false)]
    #[case::of_a_later_operator(failed("SomethingNew"), "SomethingNew", false)]
    fn a_script_sees_why_and_whether_it_is_urgent(
        #[case] rollout: Rollout,
        #[case] reason: &str,
        #[case] urgent: bool,
    ) {
        let verdict = Verdict::of(&rollout, None, None, PROGRAM);
        assert_eq!(
            (&verdict.data["reason"], &verdict.data["urgent"]),
            (&json!(reason), &json!(urgent))
        );
        assert_eq!(verdict.data["exitCode"], json!(verdict.exit as u8));
        let in_words = verdict.line().contains(&format!(": Failed ({reason}): "));
        assert_eq!(in_words, verdict.data["phase"] == "Failed", "{}", verdict.line());
    }

    fn failed(reason: &str) -> Rollout {
        let mut rollout = stepping();
        let status = rollout.status.as_mut().unwrap();
        (status.phase, status.reason) = ("Failed".into(), reason.into());
        rollout
    }

    #[test]
    fn an_abort_has_ended_when_every_pod_is_back() {
        let verdict = Verdict::of(&aborted(), None, None, PROGRAM);
        assert_eq!((verdict.exit, verdict.ended), (Exit::Failed, true));
    }

    #[test]
    fn a_pause_that_is_overtaken_waits_for_nobody() {
        let mut ahead = set("db", 4);
        let status = ahead.status.as_mut().unwrap();
        status.update_revision = Some("db-3".into());
        status.observed_generation = ahead.metadata.generation;
        assert_eq!(
            Verdict::of(&paused(), Some(&ahead), None, PROGRAM).line(),
            "db: Progressing: the latest change of statefulset db has not been looked at yet"
        );
        ahead.metadata.generation = Some(99);
        let on_its_way = Verdict::of(&paused(), Some(&ahead), None, PROGRAM);
        assert_eq!(on_its_way.exit, Exit::Paused, "its partition may have moved");
    }

    #[test]
    fn a_template_that_nobody_has_seen_yet_is_not_rolled_out() {
        let ahead = set("cache", 3);
        let verdict = Verdict::of(&at_rest(), Some(&ahead), None, PROGRAM);
        assert_eq!(verdict.exit, Exit::Progressing);
        assert_eq!(
            verdict.line(),
            "cache: Progressing: the latest change of statefulset cache has not been looked at yet"
        );
    }

    #[test]
    fn a_spec_that_nobody_has_seen_yet_is_not_rolled_out() {
        let mut rollout = at_rest();
        rollout.metadata.generation = Some(2);
        assert_eq!(Verdict::of(&rollout, None, None, PROGRAM).exit, Exit::Progressing);
    }

    #[test]
    fn a_set_that_is_ahead_says_nothing_about_a_rollout_under_way() {
        let mut ahead = set("db", 4);
        ahead.metadata.generation = Some(4);
        assert_eq!(
            Verdict::of(&paused(), Some(&ahead), None, PROGRAM).exit,
            Exit::Paused
        );
    }

    #[test]
    fn a_command_that_nobody_has_taken_keeps_it_open() {
        let mut rollout = aborted();
        rollout.status.as_mut().unwrap().restart = true;
        assert_eq!(
            Verdict::of(&rollout, None, None, PROGRAM).line(),
            "queue: Progressing: retry was asked for and waits for the operator"
        );
    }
}
