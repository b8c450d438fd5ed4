//! The decision core: pure functions over snapshots.
//!
//! What flows in is data (objects as the API server shows them, the time as a value); what flows out is data. No
//! client, no clock, no randomness, no environment: `clippy.toml` beside this crate's manifest refuses them.

pub mod revision;
