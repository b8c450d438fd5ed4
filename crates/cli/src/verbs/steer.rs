//! `promote`, `skip`, `abort`, `retry`, `pause`, `resume`: check the rollout, send the command, and wait for the operator's answer.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt, Shared, join};
use futures::{StreamExt, stream};
use kube::api::{DynamicObject, Patch};
use stateward_api::duration;
use stateward_client::{ObjectName, Objects, whoami};
use tokio::time::Instant;

use crate::answer::{self, Answer};
use crate::command::Command;
use crate::dry_run::{DryRun, DryRunFlag};
use crate::error::Error;
use crate::exit::{self, Exit};
use crate::input::access::Access;
use crate::input::name::Name;
use crate::input::revision_guard;
use crate::input::target::Targets;
use crate::rollout::{Rollout, parse};
use crate::session::Session;
use crate::stage::Stage;
use crate::unknown_outcome::{may_have_been_made, unknown_outcome};
use crate::verbs::completion;
use crate::views::hint;

/// `abort …`, and the others.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::COMMAND_HELP)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Do it only if this revision is being rolled out; the hash at its end is enough
    #[arg(long, value_name = "REVISION", conflicts_with_all = ["selector", "all"], add = completion::revision_names())]
    revision: Option<String>,
    /// How long to wait for the API server, and then for the operator's answer; 0 does not wait for the operator
    #[arg(long, value_name = "DURATION", value_parser = duration::typed, default_value = "10s")]
    timeout: Duration,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    access: Access,
}

/// `promote …`
#[derive(Debug, clap::Args)]
#[command(after_help = exit::COMMAND_HELP)]
pub struct PromoteArgs {
    /// Skip all remaining steps; refused while a pod of the new version is broken
    #[arg(long)]
    full: bool,
    /// With --full: even while a pod of the new version is broken
    #[arg(long, requires = "full")]
    force: bool,
    #[command(flatten)]
    args: Args,
}

impl Args {
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    fn manner<'m>(&self, by: Option<&'m str>) -> Manner<'m> {
        Manner {
            dry_run: self.dry_run.dry_run,
            timeout: self.timeout,
            pinned: self.revision.is_some(),
            by,
        }
    }
}

impl PromoteArgs {
    pub(crate) fn access(&self) -> &Access {
        &self.args.access
    }
}

pub(crate) async fn promote(args: PromoteArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let PromoteArgs { full, force, args } = args;
    let command = if full {
        Command::PromoteFull { force }
    } else {
        Command::Promote
    };
    run(command, args, session).await
}

pub(crate) async fn run(command: Command, args: Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    let interrupt = interrupt();
    let deadline = args.manner(None).deadline();
    let by = async {
        match args.dry_run.dry_run {
            DryRun::None => within(deadline, session.asking_user()).await.flatten(),
            DryRun::Client | DryRun::Server => None,
        }
    };
    let (targets, by) = join(within(deadline, session.whole_targets(&args.targets)), by).await;
    let manner = args.manner(by.as_deref());
    let targets = targets.ok_or_else(|| {
        Error::Late(format!(
            "the API server has not answered within {:?}; nothing was changed",
            args.timeout
        ))
    })?;
    let mut seen = Vec::new();
    let mut met = HashSet::new();
    for object in targets? {
        let object = object.and_then(parse);
        // A rollout that is named twice, perhaps by its StatefulSet, gets one command.
        if object.as_ref().map_or(true, |object| met.insert(object.uid())) {
            seen.push(object);
        }
    }
    let revision = revision_guard::for_one(args.revision.as_deref(), seen.len())?;
    if let [_] = seen.as_slice()
        && !args.targets.is_bulk()
        && let Some(one) = seen.pop()
    {
        let one = one?;
        if let Some(wanted) = revision {
            revision_guard::rolled(wanted, &one)?;
        }
        let done = give(command, &one, manner, deadline, interrupt, session).await;
        return tell(command, done, manner, session);
    }
    several(command, seen, &args, manner, interrupt, session).await
}

/// Each command is bound to the state that was read, and none waits for another.
async fn several(
    command: Command,
    seen: Vec<Result<Rollout, Error>>,
    args: &Args,
    manner: Manner<'_>,
    interrupt: Interrupt,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let bulk = args.targets.is_bulk();
    let none = seen.is_empty();
    let (mut meant, mut exits) = (Vec::new(), Vec::new());
    for seen in seen {
        let objection = seen.map(|seen| {
            let objection = command.objection(&seen, session.program).err();
            (seen, objection)
        });
        match objection {
            // Not named by the user: the command does not apply to this one.
            Ok((_, Some(why))) if bulk => session.say(&format!("skipped: {why}")),
            Ok((seen, _)) => meant.push(seen),
            Err(error) => {
                session.complain(&error);
                exits.push(error.exit());
            }
        }
    }
    if none {
        return Err(session.none_found(&args.targets));
    }
    if meant.is_empty() && exits.is_empty() {
        return Err(Error::Refused(format!(
            "there is nothing to {} {}",
            command.verb(),
            args.targets.in_words(session)
        )));
    }
    let given = {
        let session = &*session;
        let give = |seen: Rollout| {
            let interrupt = interrupt.clone();
            async move { give(command, &seen, manner, manner.deadline(), interrupt, session).await }
        };
        stream::iter(meant)
            .map(give)
            .buffered(AT_ONCE)
            .collect::<Vec<_>>()
            .await
    };
    for done in given {
        let told = tell(command, done, manner, session);
        exits.push(told.unwrap_or_else(|error| {
            session.complain(&error);
            error.exit()
        }));
    }
    Ok(Exit::worst(&exits))
}

/// How long to wait for the API server to report the user, which is only used as a name.
const NAMED_WITHIN: Duration = Duration::from_secs(2);

/// How many commands to send and wait for concurrently.
const AT_ONCE: usize = 16;

/// The result of a command.
struct Done {
    /// `rolloutplugin.argoproj.io/db`
    name: String,
    title: String,
    /// The effect of the command.
    effect: String,
    /// `None` if no answer came in time, or none was waited for.
    answer: Option<Answer>,
    /// The user interrupted the wait.
    interrupted: bool,
}

/// Ctrl-C. Commands that were sent remain in effect; no further ones are sent.
type Interrupt = Shared<BoxFuture<'static, ()>>;

fn interrupt() -> Interrupt {
    let pressed = async {
        // Without signals there is no interrupt.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    pressed.boxed().shared()
}

/// How to send a command.
#[derive(Clone, Copy)]
struct Manner<'m> {
    dry_run: DryRun,
    /// How long to wait for the operator's answer.
    timeout: Duration,
    /// Only for the revision that the user named.
    pinned: bool,
    /// The user who issues the command, if known.
    by: Option<&'m str>,
}

/// Sends a command that the user has just confirmed for the rollout on the screen, and returns the result as text.
pub(crate) async fn order(command: Command, seen: Rollout, session: &Session<'_>) -> String {
    let by = session.asking_user().await;
    let manner = Manner {
        dry_run: DryRun::None,
        timeout: Duration::from_secs(10),
        pinned: false,
        by: by.as_deref(),
    };
    // On the whole screen, Ctrl-C is an ordinary key.
    let nobody = std::future::pending().boxed().shared();
    match give(command, &seen, manner, manner.deadline(), nobody, session).await {
        Ok(Done { answer: Some(_), .. }) => format!("{} {}", seen.title(), command.done()),
        Ok(done) => manner.unanswered(&done),
        Err(error) => error.to_string(),
    }
}

/// The result of a future, or `None` at the deadline, if there is one.
async fn within<T>(deadline: Option<Instant>, what: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, what).await.ok(),
        None => Some(what.await),
    }
}

impl Manner<'_> {
    /// The deadline of a command that starts now.
    fn deadline(self) -> Option<Instant> {
        Instant::now()
            .checked_add(self.timeout)
            .filter(|_| !self.timeout.is_zero())
    }

    fn unanswered(self, done: &Done) -> String {
        format!(
            "no operator has answered within {:?}; is one running? the command waits for it in {}, and then {}",
            self.timeout, done.title, done.effect
        )
    }
}

/// Checks whether the command applies, sends it, and waits for the answer.
async fn give(
    command: Command,
    seen: &Rollout,
    manner: Manner<'_>,
    deadline: Option<Instant>,
    interrupt: Interrupt,
    session: &Session<'_>,
) -> Result<Done, Error> {
    let Manner { dry_run, timeout, .. } = manner;
    command.objection(seen, session.program).map_err(Error::Refused)?;
    let mut done = Done {
        name: seen.kind.full_name(&seen.name_any()),
        title: seen.title(),
        effect: command.effect(seen, session.program),
        answer: None,
        interrupted: false,
    };
    let before = || {
        Error::Refused(format!(
            "interrupted before {} was asked for anything",
            seen.title()
        ))
    };
    let looked = tokio::select! {
        looked = within(deadline, session.look_ahead(command, seen, manner.pinned, &mut done)) => looked,
        () = interrupt.clone() => return Err(before()),
    };
    looked.ok_or_else(|| {
        Error::Late(format!(
            "the API server has not answered within {timeout:?}; nothing was changed"
        ))
    })??;
    if dry_run == DryRun::Client {
        return Ok(done);
    }
    if interrupt.clone().now_or_never().is_some() {
        return Err(before());
    }
    if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
        return Err(Error::Late(format!(
            "{timeout:?} were over before {} was asked for anything; nothing was changed",
            seen.title()
        )));
    }
    let unknown = |why: &str| unknown_outcome(why, &asked(command, seen), seen, dry_run, session.program);
    let written = tokio::select! {
        sent = within(deadline, send(command, seen, manner, session)) => {
            let late = || unknown(&format!("the API server has not answered within {timeout:?}"));
            sent.ok_or_else(late)??
        }
        () = interrupt.clone() => return Err(unknown("interrupted")),
    };
    if dry_run == DryRun::Server || timeout.is_zero() {
        return Ok(done);
    }
    tokio::select! {
        answered = within(deadline, answer::wait(command, seen, &written, session)) => done.answer = answered,
        () = interrupt => done.interrupted = true,
    }
    match done.answer {
        Some(Answer::Refused) => {
            let reason = answer::reason(command, &written, session).await;
            let reason = reason.unwrap_or_else(|| "it gives no reason".into());
            let reason = hint::localized(&reason, &Stage::of(seen), session.program);
            Err(Error::Refused(format!(
                "the operator has refused to {} {}: {reason}",
                command.verb(),
                seen.title()
            )))
        }
        Some(Answer::Gone) => Err(session.not_found(&Name::of(seen.kind, seen.name_any()))),
        Some(Answer::Taken) | None => Ok(done),
    }
}

impl Session<'_> {
    /// The user who issues the command, as the API server or else the kubeconfig names them.
    async fn asking_user(&self) -> Option<String> {
        let asked = tokio::time::timeout(NAMED_WITHIN, whoami(&self.client)).await;
        asked.ok().flatten().or_else(|| self.user.clone())
    }

    /// Refuses a command for a version that the template has left, and reports the effect of any other command.
    async fn look_ahead(
        &self,
        command: Command,
        seen: &Rollout,
        pinned: bool,
        done: &mut Done,
    ) -> Result<(), Error> {
        if pinned || command.is_for_a_version() {
            return self.not_overtaken(command, seen).await;
        }
        if let Some(asked) = self.overtaken_by(seen).await {
            done.effect = command.effect_on_the_next(seen, &asked, self.program);
        }
        Ok(())
    }
}

/// Reports the result.
fn tell(
    command: Command,
    done: Result<Done, Error>,
    manner: Manner<'_>,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let done = done?;
    let Manner { dry_run, timeout, .. } = manner;
    // A command that no operator has carried out yet must not be reported as done.
    if done.interrupted {
        session.say(&format!(
            "interrupted; {} was given to {} and will be carried out when an operator runs: {}",
            command.verb(),
            done.title,
            done.effect
        ));
        return Ok(Exit::Timeout);
    }
    if dry_run == DryRun::None && done.answer.is_none() {
        if timeout.is_zero() {
            session.say(&format!(
                "not waiting for the operator; when it takes the command, {}",
                done.effect
            ));
            return Ok(Exit::Done);
        }
        session.say(&manner.unanswered(&done));
        return Ok(Exit::Timeout);
    }
    session.say(&dry_run.effect(&done.effect));
    let by = manner.by.map_or_else(String::new, |by| format!(" by {by}"));
    session.print(&format!(
        "{} {}{by}{}",
        done.name,
        command.done(),
        dry_run.suffix()
    ))?;
    Ok(Exit::Done)
}

/// What is unknown if no answer arrived.
fn asked(command: Command, seen: &Rollout) -> String {
    format!("{} was asked to {}", seen.title(), command.verb())
}

/// Sends the command, bound to the state that was read.
async fn send(
    command: Command,
    seen: &Rollout,
    manner: Manner<'_>,
    session: &Session<'_>,
) -> Result<Rollout, Error> {
    let Manner { dry_run, by, .. } = manner;
    let name = ObjectName::new(seen.name_any())?;
    let doing = format!("{} {}", command.verb(), seen.title());
    let patch = command.patch(seen, by).map_err(|error| Error::Format {
        format: "json",
        why: error.to_string(),
    })?;
    let patch: Patch<DynamicObject> = Patch::Json(patch);
    let params = dry_run.params();
    let api = Objects::from(session.whole_rollouts(seen.kind, false));
    let sent = if command.is_to_status() {
        api.patch_status(&name, &params, &patch).await
    } else {
        api.patch(&name, &params, &patch).await
    };
    let refused = match sent {
        Ok(written) => return parse(written),
        Err(error) => error,
    };
    // The server does not report which test failed, so read the object again.
    let is_test = matches!(&refused, kube::Error::Api(status) if matches!(status.code, 409 | 422));
    if is_test
        && let Ok(Some(now)) = api.get(&name).await
        && let Ok(now) = parse(now)
        && let Some(what) = command.moved_on(seen, &now)
    {
        return Err(Error::Refused(what));
    }
    let unknown = may_have_been_made(&refused);
    let error = Error::api(doing)(refused);
    if unknown {
        let why = error.cause();
        return Err(unknown_outcome(
            &why,
            &asked(command, seen),
            seen,
            dry_run,
            session.program,
        ));
    }
    Err(error)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests name their own objects")]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, paused, plugin};
    use crate::views::style::Style;
    use kube::api::{ObjectMeta, PatchParams, PostParams};
    use kube::runtime::wait::{await_condition, conditions};
    use kube::{Api, ResourceExt};
    use rstest::rstest;
    use serde_json::json;
    use stateward_api::rolloutplugin::{RolloutPlugin, definition};
    use stateward_clock::Clock;
    use stateward_cluster::{Cluster, Options};

    #[rstest]
    #[case("db-2", None)]
    #[case("2", None)]
    #[case(
        "db-1",
        Some("rolloutplugin db is at revision db-2, not at db-1; nothing was changed")
    )]
    fn a_pinned_revision_is_the_only_one_that_will_do(#[case] wanted: &str, #[case] refusal: Option<&str>) {
        let refused = revision_guard::rolled(wanted, &paused())
            .err()
            .map(|error| error.to_string());
        assert_eq!(refused.as_deref(), refusal);
    }

    /// A cluster without an operator, and a paused rollout.
    async fn unattended() -> (Cluster, Clock, Api<RolloutPlugin>, Rollout) {
        let clock = Clock::starting_at(NOW.parse().unwrap(), 1.0);
        let cluster = Cluster::start(Options::at(clock.clone()));
        let client = cluster.client("somebody");
        let definitions = Api::all(client.clone());
        let defined = definitions
            .create(&PostParams::default(), &definition())
            .await
            .unwrap();
        let name = defined.name_any();
        await_condition(definitions, &name, conditions::is_crd_established())
            .await
            .unwrap();
        let api: Api<RolloutPlugin> = Api::default_namespaced(client);
        let mut object = plugin("db", json!(paused().status));
        object.metadata = ObjectMeta {
            name: Some("db".into()),
            ..ObjectMeta::default()
        };
        api.create(&PostParams::default(), &object).await.unwrap();
        let patch = Patch::Merge(json!({"status": object.status}));
        let stored = api.patch_status("db", &PatchParams::default(), &patch).await;
        (cluster, clock, api, stored.unwrap().into())
    }

    #[rstest]
    #[case::while_waiting(1, true)]
    #[case::before_it_was_asked_for(0, false)]
    #[tokio::test(start_paused = true)]
    async fn an_interrupt_leaves_what_was_asked_for_and_says_so(#[case] after: u64, #[case] asked: bool) {
        let (cluster, clock, api, seen) = unattended().await;
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let mut session = Session {
            client: cluster.client("somebody"),
            namespace: "default".into(),
            clock,
            user: None,
            program: "stateward",
            style: Style::default(),
            terminal: false,
            out: &mut out,
            talk: &mut talk,
        };
        let manner = Manner {
            dry_run: DryRun::None,
            timeout: Duration::from_secs(10),
            pinned: false,
            by: Some("alice"),
        };
        let pressed = tokio::time::sleep(Duration::from_secs(after)).boxed().shared();
        let done = give(
            Command::Abort,
            &seen,
            manner,
            manner.deadline(),
            pressed,
            &session,
        )
        .await;
        let told = tell(Command::Abort, done, manner, &mut session);
        assert_eq!(api.get("db").await.unwrap().status.unwrap().abort, asked);
        if asked {
            assert_eq!(told.unwrap(), Exit::Timeout);
            assert_eq!(
                String::from_utf8(talk).unwrap(),
                "interrupted; abort was given to rolloutplugin db and will be carried out when an operator runs: \
                 db turns db-2 down; every pod on another version than db-1 returns to it\n"
            );
        } else {
            assert_eq!(
                told.unwrap_err().to_string(),
                "interrupted before rolloutplugin db was asked for anything"
            );
        }
    }

    /// The server may have received the request.
    #[rstest]
    #[case::pressed(Duration::ZERO, "interrupted")]
    #[case::late(Duration::from_secs(1), "the API server has not answered within 1s")]
    #[tokio::test(start_paused = true)]
    async fn of_a_request_that_is_not_answered_nothing_is_known(
        #[case] timeout: Duration,
        #[case] why: &str,
    ) {
        let silent = tower::service_fn(|request: http::Request<kube::client::Body>| async move {
            if request.method() != http::Method::GET {
                std::future::pending::<()>().await;
            }
            let nothing = json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"});
            let nothing = kube::client::Body::from(nothing.to_string().into_bytes());
            http::Response::builder().status(404).body(nothing)
        });
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let session = Session {
            client: kube::Client::new(silent, "prod"),
            namespace: "prod".into(),
            clock: Clock::starting_at(NOW.parse().unwrap(), 1.0),
            user: None,
            program: "stateward",
            style: Style::default(),
            terminal: false,
            out: &mut out,
            talk: &mut talk,
        };
        let manner = Manner {
            dry_run: DryRun::None,
            timeout,
            pinned: false,
            by: Some("alice"),
        };
        let pressed = tokio::time::sleep(Duration::from_secs(2)).boxed().shared();
        let given = give(
            Command::Abort,
            &paused(),
            manner,
            manner.deadline(),
            pressed,
            &session,
        )
        .await;
        assert_eq!(
            given.err().unwrap().to_string(),
            format!(
                "{why}; whether rolloutplugin db was asked to abort is not known, see with: stateward status db"
            )
        );
    }

    #[rstest]
    #[case(Command::Promote)]
    #[case(Command::Skip)]
    #[case(Command::PromoteFull { force: true })]
    #[case(Command::Abort)]
    #[case(Command::Pause)]
    #[tokio::test(start_paused = true)]
    async fn a_command_for_what_has_moved_on_changes_nothing(#[case] command: Command) {
        let (cluster, clock, api, seen) = unattended().await;
        let write = async |status: serde_json::Value| {
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status("db", &PatchParams::default(), &patch)
                .await
                .unwrap()
        };
        let stored = write(json!({"updatedRevision": "db-3"})).await;
        let now = Rollout::from(stored.clone());

        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let session = Session {
            client: cluster.client("somebody"),
            namespace: "default".into(),
            clock,
            user: None,
            program: "stateward",
            style: Style::default(),
            terminal: false,
            out: &mut out,
            talk: &mut talk,
        };
        let manner = Manner {
            dry_run: DryRun::None,
            timeout: Duration::ZERO,
            pinned: false,
            by: None,
        };
        let refused = send(command, &seen, manner, &session).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            "rolloutplugin db has moved on to revision db-3, step 2 of 4; this was meant for db-2; nothing was changed"
        );
        assert_eq!(api.get("db").await.unwrap(), stored);
        assert!(send(command, &now, manner, &session).await.is_ok());
    }
}
