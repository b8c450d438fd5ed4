//! The real server's answers, kept as data.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::request::Step;

/// Set to keep what the real server answers.
pub(super) const RECORD: &str = "STATEWARD_RECORD";

/// A sequence with its answers.
#[derive(Serialize, Deserialize)]
pub(super) struct Recorded {
    /// What this file is.
    about: String,
    pub(super) answers: Vec<Exchange>,
}

/// A request, as people read it, and its answer in normal form.
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
        // One exchange a line: a change shows as one.
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
