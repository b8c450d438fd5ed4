//! The decision core: pure functions over snapshots.
//!
//! The input is data (a [`World`](world::World): the plan, the workload with its pods, the durable state, the time as a value), and
//! so is the output (a [`Decision`](world::Decision)). No client, no clock, no randomness, no environment: the `clippy.toml` of
//! this crate disallows them.

pub mod analysis;
mod engine;
pub mod event;
pub mod expr;
pub mod memory;
pub mod phasedrollout;
pub mod plan;
pub mod record;
pub mod revision;
pub mod rolloutplugin;
pub mod stable_copy;
pub mod workload;
pub mod world;

pub use engine::{background_run_name, decide, step_run_name, to_seconds};
