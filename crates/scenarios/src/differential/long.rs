//! Runs seed after seed until the time is up.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::run::{SEQUENCES_AT_ONCE, Sequence, compare};
use crate::harness::Backend;

/// Runs for `minutes`, reports every difference as it is found, and at the end how much was compared.
pub(crate) fn run(minutes: u64, first: u64, real: &Backend, runtime: &Runtime) -> ExitCode {
    let end = Instant::now() + Duration::from_secs(minutes.saturating_mul(60));
    let next = AtomicU64::new(first);
    let [sequences, ops, differences] = [const { AtomicUsize::new(0) }; 3];
    std::thread::scope(|scope| {
        for _ in 0..SEQUENCES_AT_ONCE {
            scope.spawn(|| {
                while Instant::now() < end {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let sequence = Sequence::of_seed(seed);
                    if let Err(failed) = compare(&sequence, real, runtime) {
                        differences.fetch_add(1, Ordering::Relaxed);
                        eprintln!("seed {seed}: {}", failed.message().unwrap_or_default());
                    }
                    sequences.fetch_add(1, Ordering::Relaxed);
                    ops.fetch_add(sequence.ops.len(), Ordering::Relaxed);
                }
            });
        }
    });
    let [sequences, ops, differences] = [sequences, ops, differences].map(AtomicUsize::into_inner);
    let peak = peak_memory().unwrap_or_else(|| "unknown".to_owned());
    eprintln!(
        "compared {sequences} sequences of {ops} operations from seed {first} on: {differences} differences; \
         peak memory {peak}"
    );
    if differences == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The peak memory of this process, as Linux reports it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = peak.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(format!("{} MiB", kibibytes / 1024))
}
