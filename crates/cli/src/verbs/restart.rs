//! `restart`: new pods of the same version, following the rollout's steps.

use serde_json::{Value, json};
use stateward_core::memory::Activity;

use crate::consequence;
use crate::dry_run::{DryRun, DryRunFlag};
use crate::error::Error;
use crate::exit::{self, Exit};
use crate::input::access::Access;
use crate::input::name::Name;
use crate::input::revision_guard::TemplateRevision;
use crate::input::target::{Targets, each};
use crate::rollout::Rollout;
use crate::session::Session;
use crate::stage::Stage;
use crate::views::invocation;

/// `restart …`
#[derive(Debug, clap::Args)]
#[command(after_help = exit::CHANGE_HELP)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    pin: TemplateRevision,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    access: Access,
}

impl Args {
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }
}

/// The annotation that kubectl sets.
const STAMP: &str = "kubectl.kubernetes.io/restartedAt";

pub(crate) async fn run(args: Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    let dry_run = args.dry_run.dry_run;
    let names = session.names(&args.targets).await?;
    let pinned = args.pin.of(&names)?;
    let exits = each(&names, session, async |name, session| {
        restart(name, pinned, dry_run, session).await
    });
    Ok(Exit::worst(&exits.await?))
}

async fn restart(
    name: &Name,
    pinned: Option<&str>,
    dry_run: DryRun,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let workload = session.workload(name).await?;
    session.pinned(&workload, pinned).await?;
    consequence::objection(&workload.rollout)
        .and_then(|()| objection(&workload.rollout, session.program))
        .map_err(Error::Refused)?;
    let now = session.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut template = workload.template();
    let stamps = template.pointer("/metadata/annotations").cloned();
    if stamps.as_ref().and_then(|stamps| stamps.get(STAMP)) == Some(&json!(now)) {
        // kubectl's wording: the annotation has a resolution of one second.
        return Err(Error::Refused(format!(
            "statefulset {} was restarted within the last second; wait a moment and try again",
            workload.rollout.workload
        )));
    }
    stamp(&mut template, &now);
    session.give_template(&workload, &template, dry_run).await?;
    let effect = consequence::in_words(
        &workload.rollout,
        "the same version in new pods",
        false,
        session.program,
    );
    session.say(&dry_run.effect(&effect));
    session.print(&format!("{} restarted{}", workload.set_name(), dry_run.suffix()))?;
    Ok(Exit::Done)
}

/// A restart during a rollout would start it again under another revision name, and a restart of a rejected revision would bypass its
/// rejection.
fn objection(rollout: &Rollout, program: &str) -> Result<(), String> {
    let stage = Stage::of(rollout);
    let (title, name, program) = (
        rollout.title(),
        rollout.name_any(),
        invocation::about(program, rollout),
    );
    let revision = stage.status.aborted_revision.as_deref().unwrap_or_default();
    match &stage.activity {
        Activity::Rolling(attempt) => Err(format!(
            "{title} is being rolled to {}; a restart would begin that again; see: {program} get {name}",
            attempt.target
        )),
        Activity::RollingBack(back) => Err(format!(
            "{title} is returning from {}; restart when every pod is back",
            back.from
        )),
        Activity::Idle if stage.status.aborted && !stage.status.aborted_template_replaced => Err(format!(
            "{title} asks for {revision}, which was rejected, and a restart would roll it; first: {program} undo {name} --revision {revision}",
        )),
        Activity::Idle => Ok(()),
    }
}

fn stamp(template: &mut Value, now: &str) {
    let patch = json!({"metadata": {"annotations": {STAMP: now}}});
    json_patch::merge(template, &patch);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{aborted, at_rest, paused, replaced, returning};
    use rstest::rstest;

    #[rstest]
    #[case(at_rest(), None)]
    #[case(replaced(), None)]
    #[case(
        paused(),
        Some(
            "rolloutplugin db is being rolled to db-2; a restart would begin that again; see: stateward get db"
        )
    )]
    #[case(
        returning(),
        Some("rolloutplugin queue is returning from queue-2; restart when every pod is back")
    )]
    #[case(
        aborted(),
        Some(
            "rolloutplugin queue asks for queue-2, which was rejected, and a restart would roll it; first: stateward undo queue --revision queue-2"
        )
    )]
    fn only_what_is_at_rest_is_restarted(#[case] rollout: Rollout, #[case] expected: Option<&str>) {
        let refused = objection(&rollout, "stateward").err();
        assert_eq!(refused.as_deref(), expected);
    }
}
