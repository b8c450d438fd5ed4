//! Random API requests, sent to the embedded cluster and to a real one: every answer must be the same, in status, reason,
//! message, causes and body, and so must what watches tell.
//!
//! In flows a seed; [`generate`] makes a sequence of it before anything is sent, [`cases`] are sequences with a name: what
//! once differed and may not again. [`play`] sends them, [`normal`] takes out of the answers what is nobody's choice (UIDs,
//! times, the numbers of versions). Out flows nothing, or the first answer that differs with the requests that led to it.
//! [`recorded`] keeps the real server's answers, so that the comparison also runs where there is none.

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
