//! `diff`: what the new version changes in the template.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use crate::error::Error;
use crate::exit::Exit;
use crate::input::access::Access;
use crate::input::name::Name;
use crate::revisions::{Revision, number};
use crate::session::Session;
use crate::stage::Stage;
use crate::views::invocation;
use crate::views::mask::mask;
use crate::views::output::to_yaml;
use crate::views::style::Style;
use crate::workload::{same, without_nulls};

/// `diff …`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Values that look like secrets are hidden, and it is only shown whether they differ: by the name before them, by how tokens begin, or \
by the flag before them. References (valueFrom) never carry any and are shown. A secret that looks like nothing in particular, under \
a name that says nothing, is shown as it is written: keep such in Secrets.

Exit codes (not those of kubectl diff: here 2 is a failed rollout):
  0  the difference, if there is one, was shown
  1  an error
  5  there is no such rollout")]
pub struct Args {
    /// The rollout: NAME, rp/NAME, phased/NAME, or sts/NAME for the rollout of that StatefulSet
    #[arg(required_unless_present_any = ["filename", "selector"], add = crate::verbs::completion::rollout_names())]
    name: Option<Name>,
    /// kubectl's flag, which means something else
    #[arg(short = 'f', long, hide = true, value_name = "FILE")]
    filename: Option<PathBuf>,
    /// For one rollout only
    #[arg(short = 'l', long, hide = true, value_name = "SELECTOR")]
    selector: Option<String>,
    /// Compare from this revision, by its number in the history, instead of from the stable version
    #[arg(long, value_name = "NUMBER", value_parser = number, add = crate::verbs::completion::revisions())]
    from_revision: Option<i64>,
    /// Compare with this revision instead of with the current template
    #[arg(long, value_name = "NUMBER", value_parser = number, add = crate::verbs::completion::revisions())]
    to_revision: Option<i64>,
    #[command(flatten)]
    access: Access,
}

impl Args {
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }
}

/// A template and its title.
struct Side {
    title: String,
    template: Value,
}

pub(crate) async fn run(args: Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    if let Some(file) = &args.filename {
        return Err(Error::Refused(format!(
            "-f: diff compares the versions of a rollout that is there, by its NAME; a manifest is compared by: {} diff -f {}",
            invocation::kubectl(session.program),
            invocation::quoted(&file.display().to_string())
        )));
    }
    let (Some(name), None) = (&args.name, &args.selector) else {
        return Err(Error::Refused(format!(
            "-l: diff is for one rollout, by its NAME; those with these labels are: {} get -l {} -o name",
            session.program,
            invocation::quoted(args.selector.as_deref().unwrap_or_default())
        )));
    };
    let workload = session.workload(name).await?;
    let revisions = session.revisions(&workload.set).await?;
    let stage = Stage::of(&workload.rollout);
    let numbered = |number: i64| {
        let found = revisions.iter().find(|revision| revision.number == number);
        found.map(side).ok_or_else(|| {
            Error::Refused(format!(
                "there is no revision {number} of statefulset {}",
                workload.rollout.workload
            ))
        })
    };
    let stable = || {
        let name = stage.status.stable_revision.as_deref();
        let kept = revisions
            .iter()
            .rev()
            .find(|revision| match &workload.stable_template {
                Some(template) => same(&revision.template, template),
                None => Some(revision.name.as_str()) == name,
            });
        let copied = workload.stable_template.clone().map(|template| Side {
            title: name.unwrap_or("stable").to_owned(),
            template,
        });
        kept.map(side).or(copied).ok_or_else(|| {
            Error::Refused(format!(
                "{} has no stable version yet to compare with",
                workload.rollout.title()
            ))
        })
    };
    let before = args.from_revision.map_or_else(stable, numbered)?;
    let after = match args.to_revision {
        Some(number) => numbered(number)?,
        None => Side {
            title: format!("statefulset {}", workload.rollout.workload),
            template: workload.template(),
        },
    };
    let text = text(&before, &after, session.style)?;
    if text.is_empty() {
        session.say(&format!(
            "{} and {} have the same template",
            before.title, after.title
        ));
    } else {
        session.print_lines(text.lines())?;
    }
    Ok(Exit::Done)
}

fn side(revision: &Revision) -> Side {
    Side {
        title: revision.title(),
        template: revision.template.clone(),
    }
}

/// The lines that differ, with three lines of context; empty if none differ.
fn text(before: &Side, after: &Side, style: Style) -> Result<String, Error> {
    let (old, new) = mask(&without_nulls(&before.template), &without_nulls(&after.template));
    let (old, new) = (to_yaml(&old)? + "\n", to_yaml(&new)? + "\n");
    let diff = TextDiff::from_lines(&old, &new);
    let mut out = String::new();
    for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
        if out.is_empty() {
            let heading = format!("--- {}\n+++ {}", before.title, after.title);
            for line in heading.lines() {
                let _ = writeln!(out, "{}", style.strong(line));
            }
        }
        let _ = writeln!(out, "{}", style.note(hunk.header().to_string().trim_end()));
        for change in hunk.iter_changes() {
            let line = change.value().trim_end_matches('\n');
            let line = match change.tag() {
                ChangeTag::Equal => format!(" {line}"),
                ChangeTag::Delete => style.gone(&format!("-{line}")),
                ChangeTag::Insert => style.come(&format!("+{line}")),
            };
            let _ = writeln!(out, "{line}");
        }
    }
    Ok(out)
}
