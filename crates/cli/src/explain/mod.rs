//! `explain`: what a rollout waits for, since when, and what would move it, in words.
//!
//! `facts` is everything that is looked at, `waiting` says what it comes to, `around` what else is worth knowing. Only `facts` asks the
//! cluster.

mod around;
mod facts;
mod waiting;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::access::Access;
use crate::columns::columns;
use crate::error::Error;
use crate::exit::{self, Exit};
use crate::output::Format;
use crate::session::Session;
use crate::stage::Stage;
use crate::style::Style;
use crate::table::age;
use crate::target::{Targets, each};
use crate::unseen;

use self::facts::Facts;

/// `explain …`
#[derive(Debug, clap::Args)]
#[command(after_help = exit::LOOK_HELP)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// For machines
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

/// What it comes to.
#[derive(Clone, Debug, Default, PartialEq)]
struct Explanation {
    /// What it waits for.
    waits_for: String,
    since: Option<Timestamp>,
    /// What would move it, each a command or a sentence.
    moves: Vec<String>,
    /// When something will happen by itself.
    until: Option<String>,
    /// What the status says is older than what is asked for.
    outdated: bool,
}

pub(crate) async fn run(args: Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    let names = session.names(&args.targets).await?;
    let (mut values, mut first) = (Vec::new(), true);
    let exits = each(&names, session, async |name, session| {
        let rollout = session.rollout(name).await?;
        let facts = session.facts(rollout).await;
        let now = session.clock.now();
        let explanation = waiting::explain(&facts, now, session.program);
        let around = around::lines(&facts, &explanation.waits_for, now);
        if args.output.is_some() {
            values.push(value(&facts, &explanation, &around));
            return Ok(Exit::Done);
        }
        let mut lines = lines(&facts, &explanation, &around, session.style, now);
        if !std::mem::take(&mut first) {
            lines.insert(0, String::new());
        }
        session.print_lines(&lines)?;
        Ok(Exit::Done)
    })
    .await?;
    if let Some(format) = args.output {
        let one = names.len() == 1 && !args.targets.is_bulk();
        let value = match values.pop() {
            Some(value) if one => value,
            last => values.into_iter().chain(last).collect(),
        };
        session.print_data(&format.write(&value, session.charset())?)?;
    }
    Ok(Exit::worst(&exits))
}

fn value(facts: &Facts, explanation: &Explanation, around: &[String]) -> Value {
    let stage = Stage::of(&facts.rollout);
    json!({
        "name": facts.rollout.kind.full_name(&facts.rollout.name_any()),
        "phase": unseen::phase(&stage, facts.set.as_ref()).0, "message": stage.message(),
        "waitsFor": explanation.waits_for, "since": explanation.since, "until": explanation.until,
        "moves": explanation.moves, "seen": around, "outdated": explanation.outdated,
    })
}

fn lines(
    facts: &Facts,
    explanation: &Explanation,
    around: &[String],
    style: Style,
    now: Timestamp,
) -> Vec<String> {
    let stage = Stage::of(&facts.rollout);
    let headline = vec![
        format!("{}/{}", facts.rollout.kind.word(), facts.rollout.name_any()),
        stage.phase_in_words(unseen::phase(&stage, facts.set.as_ref()).0, style),
        if explanation.outdated {
            "as it was before the latest change".into()
        } else {
            stage.progress_in_words().unwrap_or_default()
        },
    ];
    let mut rows = vec![vec!["waits for".to_owned(), explanation.waits_for.clone()]];
    if let Some(since) = explanation.since {
        rows.push(vec![
            "since".into(),
            format!("{}, {} ago", to_seconds(since), age(Some(since), now)),
        ]);
    }
    rows.extend(
        explanation
            .until
            .iter()
            .map(|until| vec!["until".into(), until.clone()]),
    );
    let mut section = |label: &str, lines: &[String]| {
        for (index, line) in lines.iter().enumerate() {
            let label = if index == 0 { label } else { "" };
            rows.push(vec![label.to_owned(), line.clone()]);
        }
    };
    section("moves with", &explanation.moves);
    section("seen", around);
    columns(&[headline]).into_iter().chain(columns(&rows)).collect()
}

/// A time as people read it.
fn to_seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
