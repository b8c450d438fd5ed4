//! `history`: the revisions of a StatefulSet and their outcomes.

use serde_json::{Value, json};
use stateward_core::memory::TakenCommand;

use crate::error::Error;
use crate::exit::{self, Exit};
use crate::input::access::Access;
use crate::input::target::{Targets, each};
use crate::outcome;
use crate::revisions::{Revision, number};
use crate::session::Session;
use crate::views::columns::columns;
use crate::views::mask::mask;
use crate::views::output::{Format, to_yaml};
use crate::views::table::age;
use crate::workload::{Workload, same};

/// `history …`
#[derive(Debug, clap::Args)]
#[command(after_help = format!("\
The outcome comes from the rollout's status, which keeps those of the last ten. Where it tells nothing, it is unknown.

{}", exit::LOOK_HELP))]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// Show the template of this revision; values that look like secrets are hidden
    #[arg(long, value_name = "NUMBER", value_parser = number, add = crate::verbs::completion::revisions())]
    revision: Option<i64>,
    /// The output format
    #[arg(
        short,
        long,
        value_enum,
        value_name = "json|yaml",
        hide_possible_values = true
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
    let names = session.names(&args.targets).await?;
    let several = names.len() > 1;
    if several && (args.revision.is_some() || args.output.is_some()) {
        let flag = if args.revision.is_some() {
            "--revision"
        } else {
            "-o"
        };
        return Err(Error::Refused(format!(
            "history {flag} is for one rollout; name one"
        )));
    }
    let mut first = true;
    let exits = each(&names, session, async |name, session| {
        let workload = session.workload(name).await?;
        if several {
            if !std::mem::take(&mut first) {
                session.print("")?;
            }
            let rollout = &workload.rollout;
            session.print(&format!("{}/{}", rollout.kind.word(), rollout.name_any()))?;
        }
        history(&workload, &args, session).await
    });
    Ok(Exit::worst(&exits.await?))
}

async fn history(workload: &Workload, args: &Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    let rollout = &workload.rollout;
    let revisions = session.revisions(&workload.set).await?;
    if let Some(number) = args.revision {
        let found = revisions.iter().find(|revision| revision.number == number);
        let found = found.ok_or_else(|| {
            Error::Refused(format!(
                "there is no revision {number} of statefulset {}",
                rollout.workload
            ))
        })?;
        return show(found, args.output, session);
    }
    let now = session.clock.now();
    let template = workload.template();
    let outcome_of = |revision: &Revision| {
        let asked = same(&revision.template, &template);
        outcome::of(&revision.name, asked, rollout)
    };
    let in_words = |revision: &Revision| {
        let words = outcome_of(revision).in_words(now);
        match outcome::skips(&revision.name, rollout) {
            Some(skips) => format!("{words}; {skips}"),
            None => words,
        }
    };
    if let Some(format) = args.output {
        let item = |revision: &Revision| {
            let outcome = outcome_of(revision);
            let command = |taken: TakenCommand| {
                json!({
                    "command": taken.command.as_str(), "fromStep": taken.from.0, "toStep": taken.to.0, "by": taken.by,
                    "at": taken.at,
                })
            };
            let commands = outcome::commands(&revision.name, rollout)
                .into_iter()
                .map(command);
            json!({
                "revision": revision.number, "name": revision.name, "images": revision.images(), "cause": revision.cause,
                "created": revision.created, "outcome": outcome.word(), "message": in_words(revision),
                "commands": commands.collect::<Vec<_>>(),
            })
        };
        let list: Vec<Value> = revisions.iter().map(item).collect();
        session.print_data(&format.write(&json!(list), session.charset())?)?;
        return Ok(Exit::Done);
    }
    let heading = ["REVISION", "NAME", "IMAGES", "AGE", "CAUSE", "OUTCOME"];
    let row = |revision: &Revision| {
        vec![
            revision.number.to_string(),
            revision.name.clone(),
            revision.images().join(","),
            age(revision.created, now),
            revision.cause.clone().unwrap_or_else(|| "<none>".into()),
            in_words(revision),
        ]
    };
    let rows = std::iter::once(heading.map(str::to_owned).to_vec()).chain(revisions.iter().map(row));
    session.print_lines(columns(&rows.collect::<Vec<_>>()))?;
    Ok(Exit::Done)
}

fn show(revision: &Revision, output: Option<Format>, session: &mut Session<'_>) -> Result<Exit, Error> {
    let (template, _) = mask(&revision.template, &revision.template);
    match output {
        Some(format) => session.print_data(&format.write(&template, session.charset())?)?,
        None => session.print_lines(to_yaml(&template)?.split('\n'))?,
    }
    Ok(Exit::Done)
}
