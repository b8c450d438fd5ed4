//! Runs sequences as ordinary test cases.

use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use stateward_clock::Clock;
use stateward_cluster as embedded;
use tokio::runtime::Runtime;

use super::cases::{self, CASES};
use super::generate;
use super::play::Play;
use super::recorded::{RECORD, Recorded};
use super::request::Step;

/// How many seeds to run, from the first on.
const SEEDS: &str = "STATEWARD_DIFF_SEEDS";
const DEFAULT_SEEDS: u64 = 30;
/// How many of the first seeds have recorded answers; all would be too large for the repository.
const RECORDED_SEEDS: u64 = 11;
const FIRST_SEED: &str = "STATEWARD_DIFF_FIRST_SEED";
/// The kubeconfig of the control plane that tests may use freely.
const KUBECONFIG: &str = "STATEWARD_TEST_KUBECONFIG";
/// Sequences mostly wait.
const SEQUENCES_AT_ONCE: usize = 4;
/// When the embedded cluster begins; any fixed time works.
const EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// A named sequence.
struct Sequence {
    name: String,
    steps: Vec<Step>,
    /// Whether to record the real server's answers.
    is_kept: bool,
}

/// The `main` of the test binary.
pub fn run() -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(SEQUENCES_AT_ONCE);
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build()?);
    let real = runtime.block_on(real())?;
    let first = number(FIRST_SEED)?.unwrap_or(1);
    let seeds = first..first + number(SEEDS)?.unwrap_or(DEFAULT_SEEDS);
    let seeded = seeds.map(|seed| Sequence {
        name: format!("seed_{seed}"),
        steps: generate::sequence(seed),
        is_kept: seed <= RECORDED_SEEDS,
    });
    let named = CASES.iter().map(|case| Sequence {
        name: case.name.to_owned(),
        steps: cases::steps(case),
        is_kept: true,
    });
    let mut trials = Vec::new();
    for sequence in named.chain(seeded) {
        let sequence = Arc::new(sequence);
        let (name, same) = (sequence.name.clone(), sequence.clone());
        if let Some(recorded) = Recorded::read(&name)? {
            trials.push(Trial::test(format!("recorded::{name}"), move || {
                replay(&same, &recorded)
            }));
        }
        let Some(client) = real.clone() else { continue };
        let runtime = runtime.clone();
        trials.push(Trial::test(format!("requests::{name}"), move || {
            compare(&sequence, &client, &runtime)
        }));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

fn number(variable: &str) -> Result<Option<u64>> {
    std::env::var(variable)
        .ok()
        .map(|value| Ok(value.parse()?))
        .transpose()
}

async fn real() -> Result<Option<Client>> {
    let Some(path) = std::env::var_os(KUBECONFIG).filter(|path: &OsString| !path.is_empty()) else {
        return Ok(None);
    };
    let kubeconfig = Kubeconfig::read_from(path)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // "Try again" is an answer to compare, not a reason to retry.
    config.default_retry = false;
    Ok(Some(Client::try_from(config)?))
}

/// A name that no earlier run on the same control plane has used.
fn namespace(name: &str) -> String {
    let suffix: String = std::iter::repeat_with(fastrand::lowercase).take(5).collect();
    let name: String = name.replace('_', "-").chars().take(40).collect();
    format!("{name}-{suffix}")
}

fn on_embedded(namespace: &str, steps: &[Step]) -> Result<Vec<Value>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()?;
    runtime.block_on(async {
        let cluster = embedded::Cluster::start(embedded::Options::at(Clock::starting_at(EPOCH, 1.0)));
        let mut play = Play::open(cluster.client("system:admin"), namespace).await?;
        let mut answers = Vec::new();
        for step in steps {
            answers.push(play.step(step).await?);
        }
        Ok(answers)
    })
}

async fn on_real(client: &Client, namespace: &str, steps: &[Step]) -> Result<Vec<Value>> {
    let mut play = Play::open(client.clone(), namespace).await?;
    let mut answers = Vec::new();
    for step in steps {
        answers.push(play.step(step).await?);
    }
    play.close().await?;
    Ok(answers)
}

fn compare(sequence: &Sequence, client: &Client, runtime: &Runtime) -> Result<(), Failed> {
    let Sequence { name, steps, is_kept } = sequence;
    let namespace = namespace(name);
    let real = runtime
        .block_on(on_real(client, &namespace, steps))
        .map_err(|error| format!("\nreal: {error:#}"))?;
    if *is_kept && std::env::var_os(RECORD).is_some() {
        Recorded::write(name, steps, &real).map_err(|error| format!("{error:#}"))?;
    }
    let embedded = on_embedded(&namespace, steps).map_err(|error| format!("\nembedded: {error:#}"))?;
    judge(steps, &embedded, &real)
}

fn replay(sequence: &Sequence, recorded: &Recorded) -> Result<(), Failed> {
    let Sequence { name, steps, .. } = sequence;
    let same = steps
        .iter()
        .map(Step::to_string)
        .eq(recorded.answers.iter().map(|exchange| exchange.request.clone()));
    if !same {
        return Err(
            "the sequence is another one than was recorded; record it again with STATEWARD_RECORD=1".into(),
        );
    }
    let embedded = on_embedded(&namespace(name), steps).map_err(|error| format!("\nembedded: {error:#}"))?;
    let real: Vec<_> = recorded
        .answers
        .iter()
        .map(|exchange| exchange.answer.clone())
        .collect();
    judge(steps, &embedded, &real)
}

/// The first answer that differs, with the requests that led to it, and the number of other differences.
fn judge(steps: &[Step], embedded: &[Value], real: &[Value]) -> Result<(), Failed> {
    let pairs = embedded.iter().zip(real).enumerate();
    let differing: Vec<_> = pairs.filter(|(_, (embedded, real))| embedded != real).collect();
    if differing.is_empty() {
        return Ok(());
    }
    let mut story = format!("\n{} of {} answers differ\n", differing.len(), steps.len());
    let first = differing.first().map_or(0, |(index, _)| *index);
    for (index, step) in steps.iter().enumerate().take(first) {
        let line: String = step.to_string().chars().take(LINE).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(story, "  {index}: {line}");
    }
    for (index, (embedded, real)) in differing.iter().take(TOLD) {
        let _ = writeln!(story, "request {index}: {}", steps[*index]);
        tell(&mut story, "", embedded, real);
    }
    Err(story.into())
}

/// The maximum length of a printed request.
const LINE: usize = 200;
/// How many differing answers are printed.
const TOLD: usize = 6;

/// Prints where two values differ.
fn tell(story: &mut String, path: &str, embedded: &Value, real: &Value) {
    match (embedded, real) {
        (embedded, real) if embedded == real => {}
        (Value::Object(ours), Value::Object(theirs)) => {
            let keys: std::collections::BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
            for key in keys {
                let none = Value::Null;
                tell(
                    story,
                    &format!("{path}/{key}"),
                    ours.get(key).unwrap_or(&none),
                    theirs.get(key).unwrap_or(&none),
                );
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            for (index, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                tell(story, &format!("{path}/{index}"), ours, theirs);
            }
        }
        _ => {
            let _ = writeln!(story, "  {path}\n    embedded: {embedded}\n    real:     {real}");
        }
    }
}
