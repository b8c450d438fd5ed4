//! Random API requests, sent to the embedded cluster and to a real one: every answer must be the same, in status, reason, message, causes
//! and body, and so must every watch event.
//!
//! In flows a seed; [`generate`] makes the whole sequence before anything is sent, [`cases`] are named sequences, such as those that once
//! differed. [`play`] sends them, [`normal`] removes random parts from the answers (UIDs, times, version numbers). Out flows nothing, or
//! the first answer that differs with the requests that led to it. [`recorded`] keeps the real server's answers, so that the comparison
//! also runs without a real server.

mod cases;
mod generate;
mod identity;
mod kinds;
mod memory;
mod normal;
mod play;
mod recorded;
mod refused;
mod request;
mod run;
mod scales;
mod watches;

pub use run::run;
