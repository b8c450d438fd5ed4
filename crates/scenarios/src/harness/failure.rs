//! Failures of a scenario: what it expected, what it saw, and the pods' time line.

use std::fmt;
use std::path::PathBuf;

/// The result of a step of a scenario.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a scenario failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The cluster did not reach the state that the scenario expects.
    #[error("{0}")]
    Unmet(Box<Unmet>),
    /// A request of the scenario failed.
    #[error("could not {doing}: {source}")]
    Request {
        /// What the scenario was doing.
        doing: String,
        /// The API server's error.
        source: Box<kube::Error>,
    },
    /// This cluster cannot show the behaviour: the scenario is reported as ignored, not as failed.
    #[error("not to be seen on this cluster: {0}")]
    NotHere(String),
    /// A process that the scenario needs could not be started or stopped.
    #[error("could not run a process: {0}")]
    Process(#[from] std::io::Error),
    /// The audit log could not be read.
    #[error("could not read the audit log {}: {source}", log.display())]
    Audit {
        /// The path of the log.
        log: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// An expectation that was not met in time.
#[derive(Debug)]
pub struct Unmet {
    pub(crate) expected: String,
    pub(crate) seen: String,
    pub(crate) timeline: String,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            expected,
            seen,
            timeline,
        } = self;
        writeln!(f, "expected: {expected}")?;
        writeln!(f, "    seen: {seen}")?;
        write!(f, "timeline:\n{timeline}")
    }
}

/// Adds to a failed request what the scenario was doing.
pub(crate) trait Doing<T> {
    /// `doing` completes the sentence "could not …".
    fn doing(self, doing: impl Into<String>) -> Outcome<T>;
}

impl<T> Doing<T> for Result<T, kube::Error> {
    fn doing(self, doing: impl Into<String>) -> Outcome<T> {
        self.map_err(|source| Failure::Request {
            doing: doing.into(),
            source: Box::new(source),
        })
    }
}
