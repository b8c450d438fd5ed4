//! The budgets of the operator, measured. Prints a table; asserts nothing.
//!
//! `cargo xtask bench operator` gives it a real control plane of its own; the parts that ask for one are left out without it.
//! A number changes how many sets the large part has: `cargo xtask bench operator -- 1000`

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark talks, and ends where it cannot go on"
)]

mod decide;
mod fleet;
mod large;
mod many;
mod process;
mod simulated;
mod steps;

use std::fmt::Display;

use stateward_scenarios::harness::Backend;

fn main() {
    let sets: usize = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(10_000);
    row("what", "measured", "budget");
    let took = decide::measure();
    let what = format!("a decision about {} pods, p50", decide::PODS);
    row(&what, format!("{:.0} µs", took.as_secs_f64() * 1e6), "200 µs");
    let took = simulated::measure();
    row(
        "a simulated rollout of five pods",
        format!("{:.1} ms", took.as_secs_f64() * 1e3),
        "5 ms",
    );
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        if let Some(real) = Backend::real().await.unwrap() {
            steps::measure(&real).await;
            many::measure(&real).await;
        }
        large::measure(sets).await;
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
