//! Sequences with the states they reached on a real control plane, as files: a machine without one replays them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use kube::Client;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::op::Op;
use super::play::Step;
use super::portrait::Portrait;

/// Set to 1 to record the states on the real control plane.
const RECORD: &str = "STATEWARD_RECORD";

/// A recorded sequence.
#[derive(Serialize, Deserialize)]
pub(crate) struct Trace {
    header: Header,
    steps: Vec<Change>,
}

/// The origin of the data.
#[derive(Serialize, Deserialize)]
struct Header {
    what: String,
    kubernetes: String,
    command: String,
}

/// One operation and its changes to the portrait: a null removes a fact.
#[derive(Serialize, Deserialize)]
struct Change {
    op: Op,
    answer: String,
    moves: Vec<String>,
    changes: BTreeMap<String, Option<Value>>,
}

/// Whether to write traces.
pub(crate) fn is_asked_for() -> bool {
    std::env::var_os(RECORD).is_some_and(|value| value == "1")
}

/// The directory of the traces.
pub(crate) fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("traces/sequences")
}

/// The version that the API server reports.
pub(crate) async fn version(client: &Client) -> anyhow::Result<String> {
    Ok(client.apiserver_version().await?.git_version)
}

impl Trace {
    pub(crate) fn of(steps: &[Step], kubernetes: String) -> Self {
        let mut before = &Portrait::default();
        let mut changes = Vec::new();
        for step in steps {
            changes.push(Change {
                op: step.op.clone(),
                answer: step.answer.clone(),
                moves: step.moves.clone(),
                changes: changes_between(before, &step.portrait),
            });
            before = &step.portrait;
        }
        Self {
            header: Header {
                what: "what a real control plane showed after each operation; a test replays it on the embedded one"
                    .to_owned(),
                kubernetes,
                command: "STATEWARD_RECORD=1 cargo xtask kube exec -- cargo test -p stateward-scenarios --test differential"
                    .to_owned(),
            },
            steps: changes,
        }
    }

    pub(crate) fn write(&self, name: &str) -> anyhow::Result<()> {
        let path = directory().join(format!("{name}.json"));
        std::fs::create_dir_all(directory()).context("cannot make the directory of traces")?;
        // A line per step keeps the changes of a new recording apart.
        let steps: Result<Vec<_>, _> = self.steps.iter().map(serde_json::to_string).collect();
        let header = serde_json::to_string(&self.header)?;
        let text = format!(
            "{{\"header\":{header},\n\"steps\":[\n{}\n]}}\n",
            steps?.join(",\n")
        );
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }

    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is not a trace", path.display()))
    }

    /// The steps, each with a whole portrait.
    pub(crate) fn into_steps(self) -> Vec<Step> {
        let mut now = Portrait::default();
        let steps = self.steps.into_iter().map(
            |Change {
                 op,
                 answer,
                 moves,
                 changes,
             }| {
                for (about, fact) in changes {
                    match fact {
                        Some(fact) => now.0.insert(about, fact),
                        None => now.0.remove(&about),
                    };
                }
                Step {
                    op,
                    answer,
                    moves,
                    portrait: now.clone(),
                }
            },
        );
        steps.collect()
    }
}

fn changes_between(before: &Portrait, after: &Portrait) -> BTreeMap<String, Option<Value>> {
    let gone = before.0.keys().filter(|about| !after.0.contains_key(*about));
    let new = after
        .0
        .iter()
        .filter(|(about, fact)| before.0.get(*about) != Some(fact));
    gone.map(|about| (about.clone(), None))
        .chain(new.map(|(about, fact)| (about.clone(), Some(fact.clone()))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::set_op::SetOp;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_trace_gives_back_the_steps_it_was_made_of() {
        let step = |facts: Value| Step {
            op: Op::Set(SetOp::Scale(1)),
            answer: "done".to_owned(),
            moves: vec!["db-0 comes".to_owned()],
            portrait: serde_json::from_value(facts).unwrap(),
        };
        let steps = [
            step(json!({"pod db-0": {"ready": true}, "pod db-1": {"ready": null}})),
            step(json!({"pod db-1": {"ready": false}})),
        ];
        let written = serde_json::to_string(&Trace::of(&steps, "v1".to_owned())).unwrap();
        let read: Trace = serde_json::from_str(&written).unwrap();
        assert_eq!(read.into_steps(), steps);
    }
}
