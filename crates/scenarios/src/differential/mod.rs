//! Random sequences of user and node actions, run on the embedded cluster and on a real one: after every operation both must be in the same
//! state, down to the last label, owner and event.
//!
//! In flows a seed; [`op`] makes the whole sequence before it runs. [`play`] applies it, [`settle`] waits until nothing moves any more,
//! [`portrait`] describes the state. Out flows nothing, or the first difference with the sequence that led to it and a command to run it
//! again.
//!
//! The embedded cluster goes first. The real one, once it is at rest, gets a little time to reach the same state: its events and garbage
//! collection lag. A difference that remains is a failure.

mod job_op;
mod job_play;
mod long;
mod named;
mod objects;
mod op;
mod play;
mod portrait;
mod record;
mod run;
mod set_op;
mod set_play;
mod settle;

pub use run::run;
