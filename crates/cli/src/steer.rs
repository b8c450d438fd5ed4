//! `promote`, `abort`, `retry`, `pause`, `resume`: look, ask, and wait for the answer.

use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use stateward_api::rolloutplugin::RolloutPlugin;

use crate::access::Access;
use crate::answer::{self, Answer};
use crate::command::Command;
use crate::error::Error;
use crate::exit::{self, Exit};
use crate::name::Name;
use crate::output::full_name;
use crate::session::Session;
use crate::status::parse_duration;

/// `abort …`, and the others.
#[derive(Debug, clap::Args)]
#[command(after_help = exit::COMMAND_HELP)]
pub struct Args {
    /// The rollout: NAME, rp/NAME or rolloutplugin/NAME
    name: Name,
    /// Do it only if this is the revision that is being rolled; the hash at its end will do
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// How long to wait for the operator's answer; 0 does not wait
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "10s")]
    timeout: Duration,
    #[command(flatten)]
    access: Access,
}

/// `promote …`
#[derive(Debug, clap::Args)]
#[command(after_help = exit::COMMAND_HELP)]
pub struct PromoteArgs {
    /// Skip all remaining steps
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    args: Args,
}

impl Args {
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }
}

impl PromoteArgs {
    pub(crate) fn access(&self) -> &Access {
        &self.args.access
    }
}

pub(crate) async fn promote(args: PromoteArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let PromoteArgs { full, args } = args;
    let command = if full {
        Command::PromoteFull
    } else {
        Command::Promote
    };
    run(command, args, session).await
}

pub(crate) async fn run(command: Command, args: Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    let seen = session.rollout(&args.name).await?;
    if let Some(wanted) = &args.revision {
        pin(wanted, &seen)?;
    }
    command
        .objection(&seen, session.program)
        .map_err(Error::Refused)?;
    let written = send(command, &seen, session).await?;
    session.say(&command.effect(&seen, session.program));
    let name = seen.name_any();
    if args.timeout.is_zero() {
        session.say("not waiting for the operator");
        return Ok(Exit::Done);
    }
    let answered = tokio::time::timeout(args.timeout, answer::wait(command, &seen, &written, session)).await;
    match answered {
        Ok(Answer::Taken) => {
            session.print(&format!("{} {}", full_name(&name), command.done()))?;
            Ok(Exit::Done)
        }
        Ok(Answer::Refused) => {
            let reason = answer::reason(command, &written, session).await;
            let reason = reason.unwrap_or_else(|| "it gives no reason".into());
            Err(Error::Refused(format!(
                "the operator has refused to {} rolloutplugin {name}: {reason}",
                command.verb()
            )))
        }
        Ok(Answer::Gone) => Err(session.not_found(&args.name)),
        Err(_) => {
            session.say(&format!(
                "no operator has answered within {:?}; is one running? the command waits for it in rolloutplugin {name}",
                args.timeout
            ));
            Ok(Exit::Timeout)
        }
    }
}

/// Refuses to act on any other revision than the one that is meant.
fn pin(wanted: &str, seen: &RolloutPlugin) -> Result<(), Error> {
    let revision = seen
        .status
        .as_ref()
        .and_then(|status| status.updated_revision.as_deref())
        .unwrap_or("none");
    let is_hash = revision.rsplit_once('-').is_some_and(|(_, hash)| hash == wanted);
    if revision == wanted || is_hash {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "rolloutplugin {} is at revision {revision}, not at {wanted}; nothing was changed",
        seen.name_any()
    )))
}

/// Asks for it, bound to what was seen.
pub(crate) async fn send(
    command: Command,
    seen: &RolloutPlugin,
    session: &Session<'_>,
) -> Result<RolloutPlugin, Error> {
    let name = seen.name_any();
    let doing = format!("{} rolloutplugin {name}", command.verb());
    let patch = command.patch(seen).map_err(|error| Error::Format {
        format: "json",
        why: error.to_string(),
    })?;
    let patch: Patch<RolloutPlugin> = Patch::Json(patch);
    let params = PatchParams {
        field_manager: Some("stateward-cli".into()),
        ..PatchParams::default()
    };
    let api = session.rollouts();
    let sent = if command.is_to_status() {
        api.patch_status(&name, &params, &patch).await
    } else {
        api.patch(&name, &params, &patch).await
    };
    let refused = match sent {
        Ok(written) => return Ok(written),
        Err(error) => error,
    };
    // The server does not say which test has failed, so look again.
    let is_test = matches!(&refused, kube::Error::Api(status) if matches!(status.code, 409 | 422));
    if is_test
        && let Ok(now) = api.get(&name).await
        && let Some(what) = command.moved_on(seen, &now)
    {
        return Err(Error::Refused(what));
    }
    Err(Error::api(doing)(refused))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::paused;
    use rstest::rstest;

    #[rstest]
    #[case("db-2", None)]
    #[case("2", None)]
    #[case(
        "db-1",
        Some("rolloutplugin db is at revision db-2, not at db-1; nothing was changed")
    )]
    fn a_pinned_revision_is_the_only_one_that_will_do(#[case] wanted: &str, #[case] refusal: Option<&str>) {
        let refused = pin(wanted, &paused()).err().map(|error| error.to_string());
        assert_eq!(refused.as_deref(), refusal);
    }
}
