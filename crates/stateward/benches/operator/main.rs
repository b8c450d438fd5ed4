//! The budgets of the operator, measured. Prints a table; asserts nothing.
//!
//! `cargo xtask bench operator` starts a real control plane for it; without one, the parts that need it are skipped. A number sets the
//! number of StatefulSets in the large part, and the name of a part selects it:
//! `cargo xtask bench operator -- large 1000`

#![allow(clippy::disallowed_methods, reason = "benchmarks name their own objects")]
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark talks, and ends where it cannot go on"
)]

mod analysis;
mod decide;
mod fleet;
mod hostile;
mod large;
mod many;
mod process;
mod simulated;
mod steps;

use std::fmt::Display;

use stateward_scenarios::harness::Backend;

/// The same as in the released binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PARTS: [&str; 7] = [
    "decide",
    "simulated",
    "steps",
    "many",
    "hostile",
    "analysis",
    "large",
];

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let sets = arguments.iter().find_map(|argument| argument.parse().ok());
    let named = arguments
        .iter()
        .any(|argument| PARTS.contains(&argument.as_str()));
    let wanted = |part: &str| !named || arguments.iter().any(|argument| argument == part);
    row("what", "measured", "budget");
    if wanted("decide") {
        decide::measure();
    }
    if wanted("simulated") {
        simulated::measure();
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let real = Backend::real().await.unwrap();
        if let Some(real) = real.as_ref().filter(|_| wanted("steps")) {
            steps::measure(real).await;
        }
        if let Some(real) = real.as_ref().filter(|_| wanted("many")) {
            many::measure(real).await;
        }
        if let Some(real) = real.as_ref().filter(|_| wanted("hostile")) {
            hostile::measure(real).await;
        }
        if wanted("analysis") {
            analysis::measure().await;
        }
        if wanted("large") {
            large::measure(sets.unwrap_or(10_000)).await;
        }
    });
}

/// A row of the table.
fn row(what: &str, measured: impl Display, budget: impl Display) {
    println!(
        "{what:<66} {:>12} {:>12}",
        measured.to_string(),
        budget.to_string()
    );
}
