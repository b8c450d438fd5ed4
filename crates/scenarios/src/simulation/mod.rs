//! The operator under faults, in virtual time, with every commit checked.
//!
//! Each scenario of the operator's is played again and again on the embedded cluster. Each time one request of the operator's
//! meets its [`Fault`](chaos::Fault): the operator dies before it or right after it, or the answer is lost. What the
//! scenario expects must come true all the same, and [`invariants`] must hold after every single commit.
//!
//! Exhaustive (`every call, every fault`) with `cargo xtask simulate`; a bounded choice of them in the tests.

pub(crate) mod chaos;
mod invariants;
mod run;
mod watched;

pub(crate) use self::invariants::Checker;
pub use self::run::run;
pub use self::watched::Watched;
