//! The operator under faults, in virtual time, with every commit checked.
//!
//! Each scenario of the operator runs again and again on the embedded cluster. In every run one request of the operator meets a
//! [`Fault`](chaos::Fault): the operator crashes before or right after it, or the response is lost. The scenario's expectations must be met
//! all the same, and [`invariants`] must hold after every single commit.
//!
//! `cargo xtask simulate` is exhaustive (every call, every fault); the tests run a bounded selection.

pub(crate) mod chaos;
mod invariants;
mod run;
mod watched;

pub(crate) use self::invariants::Checker;
pub use self::run::run;
pub use self::watched::Watched;
