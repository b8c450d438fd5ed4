//! Plays scenarios under faults.

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use super::chaos::{Chaos, FAULTS, Mishap};
use crate::harness::{Backend, Failure, Scenario};

/// How many runs per scenario the tests make when nobody asks for more.
const A_FEW: u64 = 2;

/// Asks for `all`, one fault at every call of every scenario, or for a number of random seeds per scenario.
const BUDGET: &str = "STATEWARD_SIMULATE";
/// The first seed.
const FIRST_SEED: &str = "STATEWARD_SIMULATE_FIRST_SEED";
/// Asks for exactly these mishaps: `12 DiesAfter, 40 Conflict`.
const MISHAPS: &str = "STATEWARD_MISHAPS";

/// What to try with each scenario.
#[derive(Clone)]
enum Budget {
    /// Every single fault.
    Exhaustive,
    /// So many seeds, from this one on: single faults and several together.
    Seeds { first: u64, count: u64 },
    /// Just this.
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

/// The `main` of a test binary.
pub fn run(scenarios: Vec<Scenario>) -> anyhow::Result<ExitCode> {
    let arguments = Arguments::from_args();
    let budget = Budget::from_env().map_err(anyhow::Error::msg)?;
    let trials = scenarios.into_iter().map(|scenario| {
        let budget = budget.clone();
        Trial::test(scenario.path(), move || {
            simulate(scenario, &budget).map_err(Failed::from)
        })
    });
    Ok(libtest_mimic::run(&arguments, trials.collect()).exit_code())
}

/// Plays one scenario without a fault to count the operator's calls, then with faults.
fn simulate(scenario: Scenario, budget: &Budget) -> Result<(), String> {
    if let Budget::Only(mishaps) = budget {
        return play(scenario, mishaps).map(drop);
    }
    let calls = play(scenario, &[])?;
    match *budget {
        Budget::Only(_) => Ok(()),
        Budget::Exhaustive => {
            let single = (0..calls).flat_map(|at| FAULTS.map(|fault| vec![(at, fault)]));
            single
                .into_iter()
                .try_for_each(|mishaps| attempt(scenario, mishaps))
        }
        Budget::Seeds { first, count } => (first..first + count).try_for_each(|seed| {
            let mishaps = random(seed, &scenario.path(), calls);
            attempt(scenario, mishaps).map_err(|failure| format!("seed {seed}: {failure}"))
        }),
    }
}

/// One to four mishaps, the first among the calls there are without any, the others also later.
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

/// Plays a scenario with these mishaps. One that fails is told with as few of them as still make it fail.
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

/// Plays a scenario once, and says how many calls the operator made.
fn play(scenario: Scenario, mishaps: &[Mishap]) -> Result<u64, String> {
    let chaos = Arc::new(Chaos::of(mishaps));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(|error| error.to_string())?;
    match runtime.block_on(scenario.run(Backend::Simulated(chaos.clone()))) {
        Ok(()) | Err(Failure::NotHere(_)) => Ok(chaos.calls()),
        Err(failure) => Err(format!("\n{failure}")),
    }
}
