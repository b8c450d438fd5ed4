//! Runs scenarios under faults.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use libtest_mimic::{Arguments, Failed, Trial};

use super::chaos::{CallKind, Chaos, FAULTS, Mishap, WATCHES};
use crate::harness::{Backend, Failure, Scenario};

/// How many runs per scenario the tests make by default.
const A_FEW: u64 = 2;

/// How many failures of one scenario are printed; the others are counted.
const TOLD: usize = 3;

/// Requests `all`, one fault at every call of every scenario, or a number of random seeds per scenario.
const BUDGET: &str = "STATEWARD_SIMULATE";
/// The first seed.
const FIRST_SEED: &str = "STATEWARD_SIMULATE_FIRST_SEED";
/// Requests exactly these mishaps: `12 DiesAfter, 40 Conflict`.
const MISHAPS: &str = "STATEWARD_MISHAPS";

/// The faults to try with each scenario.
#[derive(Clone)]
enum Budget {
    /// Every single fault.
    Exhaustive,
    /// This many seeds, from this one on: single faults and several together.
    Seeds { first: u64, count: u64 },
    /// Only these mishaps.
    Only(Vec<Mishap>),
}

impl Budget {
    fn from_env() -> Result<Self, String> {
        if let Ok(mishaps) = std::env::var(MISHAPS) {
            return parse(&mishaps).map(Self::Only);
        }
        let number = |name: &str, default: u64| match std::env::var(name) {
            Ok(text) => text
                .parse()
                .map_err(|_| format!("{name} is not a number: {text}")),
            Err(_) => Ok(default),
        };
        match std::env::var(BUDGET).as_deref() {
            Ok("all") => Ok(Self::Exhaustive),
            _ => Ok(Self::Seeds {
                first: number(FIRST_SEED, 1)?,
                count: number(BUDGET, A_FEW)?,
            }),
        }
    }
}

fn parse(text: &str) -> Result<Vec<Mishap>, String> {
    let mishap = |part: &str| {
        let (at, fault) = part.trim().split_once(' ')?;
        let fault = FAULTS.into_iter().find(|known| known.to_string() == fault)?;
        Some((at.parse().ok()?, fault))
    };
    let mishaps = text
        .split(',')
        .map(|part| mishap(part).ok_or_else(|| format!("{MISHAPS}: {part:?} is not `<call> <fault>`")));
    mishaps.collect()
}

fn told(mishaps: &[Mishap]) -> String {
    let parts: Vec<_> = mishaps
        .iter()
        .map(|(at, fault)| format!("{at} {fault}"))
        .collect();
    parts.join(", ")
}

/// The counts for the last line of the output.
#[derive(Default)]
struct Count {
    calls: AtomicU64,
    plays: AtomicU64,
}

/// The `main` of a test binary.
pub fn run(scenarios: Vec<Scenario>) -> anyhow::Result<ExitCode> {
    let arguments = Arguments::from_args();
    let budget = Budget::from_env().map_err(anyhow::Error::msg)?;
    let count = Arc::new(Count::default());
    let trials = scenarios.into_iter().map(|scenario| {
        let (budget, count) = (budget.clone(), count.clone());
        Trial::test(scenario.path(), move || {
            simulate(scenario, &budget, &count).map_err(Failed::from)
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    let Count { calls, plays } = &*count;
    tell(&format!(
        "{} scenarios with {} calls of the operator, played {} times under faults",
        conclusion.num_passed + conclusion.num_failed,
        calls.load(Ordering::Relaxed),
        plays.load(Ordering::Relaxed)
    ));
    Ok(conclusion.exit_code())
}

#[allow(clippy::print_stdout, reason = "a part of the test's own output")]
fn tell(line: &str) {
    println!("{line}\n");
}

/// Runs one scenario without a fault to count the operator's calls, then with faults.
fn simulate(scenario: Scenario, budget: &Budget, count: &Count) -> Result<(), String> {
    if let Budget::Only(mishaps) = budget {
        return play(scenario, mishaps).map(drop);
    }
    let calls = play(scenario, &[])?;
    let tries: Vec<(String, Vec<Mishap>)> = match *budget {
        Budget::Only(_) => Vec::new(),
        Budget::Exhaustive => single(&calls)
            .into_iter()
            .map(|mishap| (String::new(), vec![mishap]))
            .collect(),
        Budget::Seeds { first, count } => (first..first + count)
            .map(|seed| {
                let mishaps = random(seed, &scenario.path(), calls.len() as u64);
                (format!("seed {seed}, "), mishaps)
            })
            .collect(),
    };
    count.calls.fetch_add(calls.len() as u64, Ordering::Relaxed);
    count.plays.fetch_add(tries.len() as u64, Ordering::Relaxed);
    let failures: Vec<_> = tries
        .into_iter()
        .filter_map(|(seed, mishaps)| {
            let failure = attempt(scenario, mishaps).err()?;
            Some(format!("{seed}{failure}"))
        })
        .collect();
    match failures.len() {
        0 => Ok(()),
        all => Err(format!(
            "{all} failures, the first {}:\n{}",
            all.min(TOLD),
            failures[..all.min(TOLD)].join("\n\n")
        )),
    }
}

/// Every fault at every call where it makes a difference. The faults of watches alternate: a watch that lags from one write on also lags
/// from the next one on.
fn single(calls: &[CallKind]) -> Vec<Mishap> {
    let mut turns = WATCHES.iter().cycle();
    let mut all = Vec::new();
    for (kind, at) in calls.iter().zip(0..) {
        let watches = turns.by_ref().take(usize::from(*kind == CallKind::Write));
        all.extend(kind.faults().iter().chain(watches).map(|fault| (at, *fault)));
    }
    all
}

/// One to four mishaps: the first among the calls of a run without faults, the others possibly later.
fn random(seed: u64, scenario: &str, calls: u64) -> Vec<Mishap> {
    let name = scenario
        .bytes()
        .fold(0_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let mut chance = fastrand::Rng::with_seed(seed ^ name);
    let count = chance.u64(1..=4);
    let mishap = |number: u64, chance: &mut fastrand::Rng| {
        let last = if number == 0 { calls } else { calls * 2 };
        (chance.u64(0..last.max(1)), FAULTS[chance.usize(0..FAULTS.len())])
    };
    (0..count).map(|number| mishap(number, &mut chance)).collect()
}

/// Runs a scenario with these mishaps. A failure is reported with as few of them as still cause it.
fn attempt(scenario: Scenario, mut mishaps: Vec<Mishap>) -> Result<(), String> {
    let Err(mut failure) = play(scenario, &mishaps) else {
        return Ok(());
    };
    let mut index = 0;
    while mishaps.len() > 1 && index < mishaps.len() {
        let mut fewer = mishaps.clone();
        fewer.remove(index);
        match play(scenario, &fewer) {
            Err(still) => (mishaps, failure) = (fewer, still),
            Ok(_) => index += 1,
        }
    }
    let mishaps = told(&mishaps);
    Err(format!(
        "with {mishaps}: {failure}\nagain: {MISHAPS}='{mishaps}' cargo test -p stateward-scenarios --test simulation -- --exact {}",
        scenario.path()
    ))
}

/// Runs a scenario once, and returns the operator's calls.
fn play(scenario: Scenario, mishaps: &[Mishap]) -> Result<Vec<CallKind>, String> {
    let chaos = Arc::new(Chaos::of(mishaps));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    let outcome = runtime.block_on(scenario.run(Backend::Simulated(chaos.clone())));
    if chaos.ran_away() {
        let last = chaos.recent().join("\n  ");
        return Err(format!(
            "the operator goes round in circles: it makes thousands of calls, the last of them:\n  {last}"
        ));
    }
    match outcome {
        Ok(()) | Err(Failure::NotHere(_)) => Ok(chaos.calls()),
        Err(failure) => Err(format!("\n{failure}")),
    }
}
