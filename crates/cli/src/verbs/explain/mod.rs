//! `explain`: what a rollout waits for, since when, and what would move it on.
//!
//! `facts` reads the cluster, `waiting` finds what the rollout waits for, and `around` adds context. Only `facts` does IO.

mod around;
mod facts;
mod waiting;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::error::Error;
use crate::exit::{self, Exit};
use crate::input::access::Access;
use crate::input::target::{Targets, each};
use crate::session::Session;
use crate::stage::Stage;
use crate::unseen;
use crate::views::columns::columns;
use crate::views::output::Format;
use crate::views::style::Style;
use crate::views::table::age;

use self::facts::Facts;

/// `explain …`
#[derive(Debug, clap::Args)]
#[command(after_help = exit::LOOK_HELP)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
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

/// An explanation.
#[derive(Clone, Debug, Default, PartialEq)]
struct Explanation {
    /// What the rollout waits for.
    waits_for: String,
    since: Option<Timestamp>,
    /// What would move it on, each a command or a sentence.
    moves: Vec<String>,
    /// When something will happen without a user.
    until: Option<String>,
    /// The status is older than the latest change.
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

/// A time with a resolution of seconds.
fn to_seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
