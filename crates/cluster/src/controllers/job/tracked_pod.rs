//! The fields of pods that a Job reads.

use crate::json::Value;

use super::failure_policy::Meaning;
use super::spec::JobSpec;
use crate::controllers::pod;
use crate::object;

/// Keeps a pod until its Job has counted it.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";

pub(super) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const INDEX_IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

pub(super) fn is_tracked(pod: &Value) -> bool {
    object::finalizers(pod).any(|finalizer| finalizer == TRACKING)
}

/// The index of a pod.
pub(super) fn completion_index(pod: &Value) -> Option<i64> {
    annotation(pod, COMPLETION_INDEX)?
        .parse()
        .ok()
        .filter(|index| *index >= 0)
}

/// The same, if the Job has that index.
pub(super) fn valid_index(pod: &Value, completions: i64) -> Option<i64> {
    completion_index(pod).filter(|index| *index < completions)
}

pub(super) fn has_succeeded(pod: &Value) -> bool {
    pod::phase(pod) == "Succeeded"
}

/// Deleted pods count as failed: one whose node is gone never reports its end.
pub(super) fn has_failed(pod: &Value, spec: &JobSpec) -> bool {
    pod::phase(pod) == "Failed"
        || (!spec.waits_for_failure && object::is_terminating(pod) && !has_succeeded(pod))
}

/// The effect of its failure on the Job.
pub(super) fn meaning(pod: &Value, spec: &JobSpec) -> Meaning {
    spec.failure_policy
        .as_ref()
        .map_or(Meaning::Counts, |policy| policy.meaning(pod))
}

/// The failure counts of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IndexFailures {
    pub(super) counted: i64,
    pub(super) ignored: i64,
}

impl IndexFailures {
    /// The counts before this pod, from its annotations.
    pub(super) fn before(pod: &Value) -> Self {
        let number = |name: &str| annotation(pod, name).and_then(|text| text.parse::<i32>().ok());
        let count = |name: &str| i64::from(number(name).unwrap_or(0).max(0));
        Self {
            counted: count(INDEX_FAILURES),
            ignored: count(INDEX_IGNORED_FAILURES),
        }
    }

    pub(super) fn all(self) -> i64 {
        self.counted + self.ignored
    }

    /// The counts before the replacement of a failed pod.
    pub(super) fn after(failed: &Value, spec: &JobSpec) -> Self {
        let Self { counted, ignored } = Self::before(failed);
        match meaning(failed, spec) {
            Meaning::Ignored => Self {
                counted,
                ignored: ignored + 1,
            },
            _ => Self {
                counted: counted + 1,
                ignored,
            },
        }
    }

    /// The annotations that pass the counts to the next pod.
    pub(super) fn annotations(self) -> Vec<(&'static str, String)> {
        let mut annotations = vec![(INDEX_FAILURES, self.counted.to_string())];
        if self.ignored > 0 {
            annotations.push((INDEX_IGNORED_FAILURES, self.ignored.to_string()));
        }
        annotations
    }
}

fn annotation<'p>(pod: &'p Value, name: &str) -> Option<&'p str> {
    pod["metadata"]["annotations"][name].as_str()
}
