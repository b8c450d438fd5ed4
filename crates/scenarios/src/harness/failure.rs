//! How a scenario fails: with what was expected, what was seen, and how the pods came there.

use std::fmt;
use std::path::PathBuf;

/// What a step of a scenario gives.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a scenario failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The cluster did not come to the state the scenario expects.
    #[error("{0}")]
    Unmet(Box<Unmet>),
    /// A request that the scenario needs was refused.
    #[error("could not {doing}: {source}")]
    Request {
        /// What the scenario was about to do.
        doing: String,
        /// What the API server answered.
        source: Box<kube::Error>,
    },
    /// This cluster cannot show the behaviour: told as ignored, not as failed.
    #[error("not to be seen on this cluster: {0}")]
    NotHere(String),
    /// A process that the scenario needs could not be started or stopped.
    #[error("could not run a process: {0}")]
    Process(#[from] std::io::Error),
    /// The audit log could not be read.
    #[error("could not read the audit log {}: {source}", log.display())]
    Audit {
        /// Where it should be.
        log: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}

/// An expectation that did not come true in time.
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

/// Names what was being done when a request failed.
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
