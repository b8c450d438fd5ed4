//! Runs sequences as ordinary test cases, or as many as fit into a time limit.

use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

use super::op::{self, Op};
use super::play::{Stage, Step, play};
use super::portrait::Portrait;
use super::record::{self, Trace};
use super::{long, named};
use crate::harness::Backend;

/// How many seeds to run, from the first on.
const SEEDS: &str = "STATEWARD_DIFF_SEEDS";
const DEFAULT_SEEDS: u64 = 24;
/// The first seed.
const FIRST_SEED: &str = "STATEWARD_DIFF_FIRST_SEED";
/// Runs seed after seed for this many minutes, instead of the test cases.
const MINUTES: &str = "STATEWARD_DIFF_MINUTES";

/// Sequences mostly wait, so many can share a core.
pub(crate) const SEQUENCES_AT_ONCE: usize = 12;

/// The `main` of the test binary.
pub fn run() -> anyhow::Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(SEQUENCES_AT_ONCE);
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build()?);
    let real = runtime.block_on(Backend::real())?;
    let first = number(FIRST_SEED)?.unwrap_or(1);
    if let (Some(minutes), Some(real)) = (number(MINUTES)?, &real) {
        return Ok(long::run(minutes, first, real, &runtime));
    }

    let mut trials = Vec::new();
    for seed in first..first + number(SEEDS)?.unwrap_or(DEFAULT_SEEDS) {
        let title = format!("differential::{}::seed_{seed}", op::about(seed));
        trials.push(on_both(
            title,
            Sequence::of_seed(seed),
            real.clone(),
            runtime.clone(),
        ));
    }
    for named in named::all() {
        let title = format!("differential::named::{}", named.name);
        let sequence = Sequence {
            again: format!(
                "cargo xtask kube exec -- cargo test -p stateward-scenarios --test differential -- {}",
                named.name
            ),
            name: named.name.to_owned(),
            ops: named.ops,
        };
        trials.push(on_both(title, sequence, real.clone(), runtime.clone()));
    }
    trials.extend(recorded()?);
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn number(variable: &str) -> anyhow::Result<Option<u64>> {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
    value.map(|value| Ok(value.parse()?)).transpose()
}

/// A sequence, and the command to run it again.
pub(crate) struct Sequence {
    pub(crate) name: String,
    pub(crate) ops: Vec<Op>,
    again: String,
}

impl Sequence {
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self {
            name: format!("seed_{seed}"),
            ops: op::sequence(seed),
            again: format!("cargo xtask diff --seed {seed}"),
        }
    }
}

/// Without a real control plane the comparison is reported as ignored; in CI it fails, so that the gap is noticed.
fn on_both(title: String, sequence: Sequence, real: Option<Backend>, runtime: Arc<Runtime>) -> Trial {
    match real {
        Some(real) => Trial::test(title, move || compare(&sequence, &real, &runtime)),
        None if std::env::var_os("CI").is_some_and(|ci| ci == "true") => Trial::test(title, || {
            Err("no real control plane; run the tests with: cargo xtask test".into())
        }),
        None => Trial::test(title, || Ok(())).with_ignored_flag(true),
    }
}

/// One test case per trace.
fn recorded() -> anyhow::Result<Vec<Trial>> {
    let directory = record::directory();
    let mut paths = match std::fs::read_dir(&directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        entries => entries?
            .map(|entry| Ok(entry?.path()))
            .collect::<anyhow::Result<_>>()?,
    };
    paths.sort();
    let trials = paths.into_iter().map(|path| {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Trial::test(format!("recorded::{name}"), move || {
            let trace = Trace::read(&path).map_err(|error| Failed::from(format!("{error:#}")))?;
            replay(&name, &trace.into_steps())
        })
    });
    Ok(trials.collect())
}

fn replay(name: &str, recorded: &[Step]) -> Result<(), Failed> {
    let sequence = Sequence {
        name: name.to_owned(),
        ops: recorded.iter().map(|step| step.op.clone()).collect(),
        again: format!("cargo test -p stateward-scenarios --test differential -- recorded::{name}"),
    };
    let seen = on_embedded(&sequence)?;
    match seen
        .iter()
        .zip(recorded)
        .position(|(seen, recorded)| !seen.agrees_with(recorded))
    {
        None => Ok(()),
        Some(index) => Err(told(&sequence, index, &seen[index], &recorded[index])),
    }
}

/// Runs on the embedded cluster, in virtual time.
fn on_embedded(sequence: &Sequence) -> Result<Vec<Step>, Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    let played = runtime.block_on(play(&Backend::Embedded, &sequence.name, &sequence.ops));
    played.map_err(|failure| {
        Failed::from(format!(
            "\non the embedded cluster\n{failure}\nagain: {}",
            sequence.again
        ))
    })
}

/// Runs on both and reports the first difference.
pub(crate) fn compare(sequence: &Sequence, real: &Backend, runtime: &Runtime) -> Result<(), Failed> {
    let expected = on_embedded(sequence)?;
    let seen = runtime
        .block_on(follow(sequence, &expected, real))
        .map_err(|failure| {
            Failed::from(format!(
                "\non the real cluster\n{failure}\nagain: {}",
                sequence.again
            ))
        })?;
    if record::is_asked_for() {
        note_down(sequence, &seen, real, runtime).map_err(|error| Failed::from(format!("{error:#}")))?;
    }
    match seen
        .iter()
        .zip(&expected)
        .position(|(seen, expected)| !expected.agrees_with(seen))
    {
        None => Ok(()),
        Some(index) => Err(told(sequence, index, &expected[index], &seen[index])),
    }
}

/// Runs on a real cluster up to the first difference, or to the end when recording.
async fn follow(
    sequence: &Sequence,
    expected: &[Step],
    real: &Backend,
) -> crate::harness::Outcome<Vec<Step>> {
    let mut stage = Stage::open(real, &sequence.name).await?;
    let mut seen = Vec::new();
    for expected in expected {
        let step = stage.step(&expected.op).await?;
        let step = stage.catch_up(step, expected).await?;
        let differs = !expected.agrees_with(&step);
        seen.push(step);
        if differs && !record::is_asked_for() {
            break;
        }
    }
    stage.close().await?;
    Ok(seen)
}

fn note_down(sequence: &Sequence, seen: &[Step], real: &Backend, runtime: &Runtime) -> anyhow::Result<()> {
    let Backend::Real { client, .. } = real else {
        return Ok(());
    };
    let version = runtime.block_on(record::version(client))?;
    Trace::of(seen, version).write(&sequence.name)
}

fn told(sequence: &Sequence, index: usize, embedded: &Step, real: &Step) -> Failed {
    let mut story = "\nthe control planes differ after\n".to_owned();
    for op in &sequence.ops[..=index] {
        // Writing to a String cannot fail.
        let _ = writeln!(story, "  {op}");
    }
    if embedded.answer != real.answer {
        let _ = writeln!(
            story,
            "answer\n    embedded: {}\n    real:     {}",
            embedded.answer, real.answer
        );
    }
    if embedded.moves != real.moves {
        let (ours, theirs) = (embedded.moves.join(", "), real.moves.join(", "));
        let _ = writeln!(story, "pods\n    embedded: {ours}\n    real:     {theirs}");
    }
    let _ = write!(
        story,
        "portrait\n{}",
        Portrait::diff(&embedded.portrait, &real.portrait)
    );
    let _ = write!(story, "again: {}", sequence.again);
    story.into()
}
