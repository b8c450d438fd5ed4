//! The decision core: pure functions over snapshots.
//!
//! What flows in is data (a [`World`](world::World): the plan, the workload with its pods, what was remembered, the time as a
//! value); what flows out is data (a [`Decision`](world::Decision)). No client, no clock, no randomness, no environment:
//! `clippy.toml` beside this crate's manifest refuses them.

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

pub use engine::{decide, name_beside, name_of_step, to_seconds};
