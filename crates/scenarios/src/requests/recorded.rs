//! The real server's recorded answers.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::request::Step;

/// Set to record the real server's answers.
pub(super) const RECORD: &str = "STATEWARD_RECORD";

/// A sequence with its answers.
#[derive(Serialize, Deserialize)]
pub(super) struct Recorded {
    /// The description of the file.
    about: String,
    pub(super) answers: Vec<Exchange>,
}

/// A request in readable form, and its normalised answer.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Exchange {
    pub(super) request: String,
    pub(super) answer: Value,
}

impl Recorded {
    pub(super) fn read(name: &str) -> Result<Option<Self>> {
        let path = path(name);
        if !path.exists() {
            return Ok(None);
        }
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Some(
            serde_json::from_str(&text).with_context(|| format!("{} is no trace", path.display()))?,
        ))
    }

    pub(super) fn write(name: &str, steps: &[Step], answers: &[Value]) -> Result<()> {
        let about = format!(
            "answers of kube-apiserver v1.36.3 (testbed/) to the requests of {name}, in normal form; written by: \
             STATEWARD_RECORD=1 cargo test -p stateward-scenarios --test requests"
        );
        let exchange = |(step, answer): (&Step, &Value)| Exchange {
            request: step.to_string(),
            answer: answer.clone(),
        };
        let answers = steps.iter().zip(answers).map(exchange).collect();
        let mut text = serde_json::to_string(&Self { about, answers })?;
        // One exchange per line, so that a diff shows one line per change.
        text = text.replace("{\"request\":", "\n{\"request\":");
        text.push('\n');
        let path = path(name);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("traces")
        .join(format!("requests-{name}.json"))
}
