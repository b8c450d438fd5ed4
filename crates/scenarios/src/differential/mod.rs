//! Random sequences of what users and nodes do, played on the embedded cluster and on a real one: after every operation
//! both must look the same, down to the last label, owner and event.
//!
//! In flows a seed; [`op`] makes a sequence of it before anything is played. [`play`] applies it, [`settle`] waits until
//! nothing moves any more, [`portrait`] draws what is there. Out flows nothing, or the first difference with the sequence
//! that led to it and a command to play it again.
//!
//! The embedded cluster goes first, and the real one, when it has come to rest, gets a little while to look the same:
//! events and garbage come late there. A difference that stays is a difference.

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
