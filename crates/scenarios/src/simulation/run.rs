//! Plays scenarios under faults.

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use super::chaos::{Chaos, FAULTS, Fault};
use crate::harness::{Backend, Failure, Scenario};

/// How many faults per scenario the tests try when nobody asks for more.
const A_FEW: u64 = 6;

/// Names how many faults per scenario to try; `all` for every call and every fault.
const BUDGET: &str = "STATEWARD_SIMULATE";

/// The `main` of a test binary.
pub fn run(scenarios: Vec<Scenario>) -> ExitCode {
    let arguments = Arguments::from_args();
    let budget = std::env::var(BUDGET).unwrap_or_default();
    let budget = match budget.as_str() {
        "all" => None,
        number => Some(number.parse().unwrap_or(A_FEW)),
    };
    let trials = scenarios.into_iter().map(|scenario| {
        Trial::test(scenario.path(), move || {
            simulate(scenario, budget).map_err(Failed::from)
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// Plays one scenario without a fault to count the operator's calls, then with each of the faults.
fn simulate(scenario: Scenario, budget: Option<u64>) -> Result<(), String> {
    if let Ok(only) = std::env::var("STATEWARD_FAULT") {
        let (at, fault) = only
            .split_once(' ')
            .ok_or("STATEWARD_FAULT is `<call> <fault>`")?;
        let at = at.parse().map_err(|_| "STATEWARD_FAULT is `<call> <fault>`")?;
        let fault = FAULTS.into_iter().find(|known| known.to_string() == fault);
        let fault = fault.ok_or("no such fault")?;
        return play(scenario, Arc::new(Chaos::at(at, fault))).map(drop);
    }
    let calls = play(scenario, Arc::default())?;
    let total = calls * FAULTS.len() as u64;
    let chosen: Vec<u64> = match budget {
        None => (0..total).collect(),
        // Spread evenly, and differently for every scenario.
        Some(budget) => {
            let offset: u64 = scenario.path().bytes().map(u64::from).sum();
            let stride = (total / budget.max(1)).max(1);
            (0..budget.min(total))
                .map(|number| (offset + number * stride) % total)
                .collect()
        }
    };
    let mut failures = Vec::new();
    for case in chosen {
        let at = case / FAULTS.len() as u64;
        let fault: Fault = FAULTS[(case % FAULTS.len() as u64) as usize];
        if let Err(failure) = play(scenario, Arc::new(Chaos::at(at, fault))) {
            let path = scenario.path();
            failures.push(format!(
                "{fault} at call {at}: {failure}\nagain: STATEWARD_FAULT='{at} {fault}' cargo test -p stateward-scenarios \
                 --test simulation -- --exact {path}"
            ));
        }
    }
    match failures.first() {
        None => Ok(()),
        Some(first) => Err(format!("{} of {total} faults: {first}", failures.len())),
    }
}

/// Plays a scenario once, and says how many calls the operator made.
fn play(scenario: Scenario, chaos: Arc<Chaos>) -> Result<u64, String> {
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
