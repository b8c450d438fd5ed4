//! A Job's status, and the two steps of its end.

use std::collections::BTreeSet;

use crate::json::{Map, Value, json};
use jiff::Timestamp;

use crate::controllers::moment;

/// The status of a Job.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct JobStatus {
    pub(super) conditions: Vec<Value>,
    pub(super) start_time: Option<Timestamp>,
    pub(super) completion_time: Option<Timestamp>,
    pub(super) active: i64,
    pub(super) ready: Option<i64>,
    pub(super) terminating: Option<i64>,
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    pub(super) uncounted: Uncounted,
    pub(super) completed_indexes: String,
    pub(super) failed_indexes: Option<String>,
}

/// Pods that have ended, by uid, until their finalizer is removed and they are counted.
///
/// Written before the finalizer is removed, so that a crash in between neither counts a pod twice nor loses one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Uncounted {
    pub(super) succeeded: Vec<String>,
    pub(super) failed: Vec<String>,
}

/// The content of a condition that becomes true.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Condition {
    pub(super) kind: ConditionKind,
    pub(super) reason: String,
    pub(super) message: String,
}

/// The conditions that end a Job: each final one has an interim one that comes first, while pods are terminating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConditionKind {
    SuccessCriteriaMet,
    Complete,
    FailureTarget,
    Failed,
}

impl ConditionKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SuccessCriteriaMet => "SuccessCriteriaMet",
            Self::Complete => "Complete",
            Self::FailureTarget => "FailureTarget",
            Self::Failed => "Failed",
        }
    }
}

impl Condition {
    pub(super) fn new(kind: ConditionKind, reason: &str, message: impl Into<String>) -> Self {
        Self {
            kind,
            reason: reason.to_owned(),
            message: message.into(),
        }
    }

    /// The final condition that this one leads to.
    pub(super) fn finally(self) -> Self {
        let kind = match self.kind {
            ConditionKind::SuccessCriteriaMet | ConditionKind::Complete => ConditionKind::Complete,
            ConditionKind::FailureTarget | ConditionKind::Failed => ConditionKind::Failed,
        };
        Self { kind, ..self }
    }
}

impl JobStatus {
    pub(super) fn read(job: &Value) -> Self {
        let status = &job["status"];
        let number = |field: &str| status[field].as_i64();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let uids = |field: &str| {
            let uids = status["uncountedTerminatedPods"][field].as_array();
            uids.into_iter().flatten().filter_map(text).collect()
        };
        Self {
            conditions: status["conditions"].as_array().cloned().unwrap_or_default(),
            start_time: moment::read(&status["startTime"]),
            completion_time: moment::read(&status["completionTime"]),
            active: number("active").unwrap_or(0),
            ready: number("ready"),
            terminating: number("terminating"),
            succeeded: number("succeeded").unwrap_or(0),
            failed: number("failed").unwrap_or(0),
            uncounted: Uncounted {
                succeeded: uids("succeeded"),
                failed: uids("failed"),
            },
            completed_indexes: text(&status["completedIndexes"]).unwrap_or_default(),
            failed_indexes: text(&status["failedIndexes"]),
        }
    }

    pub(super) fn to_value(&self) -> Value {
        let Self {
            conditions,
            start_time,
            completion_time,
            active,
            ready,
            terminating,
            ..
        } = self;
        let Self {
            succeeded,
            failed,
            uncounted,
            completed_indexes,
            failed_indexes,
            ..
        } = self;
        let mut status = Map::new();
        let mut put = |field: &str, value: Option<Value>| {
            if let Some(value) = value {
                status.insert(field.into(), value);
            }
        };
        let counter = |count: i64| (count != 0).then(|| count.into());
        put(
            "conditions",
            (!conditions.is_empty()).then(|| conditions.clone().into()),
        );
        put("startTime", start_time.map(|time| moment::shown(time).into()));
        put(
            "completionTime",
            completion_time.map(|time| moment::shown(time).into()),
        );
        put("active", counter(*active));
        put("ready", ready.map(Value::from));
        put("terminating", terminating.map(Value::from));
        put("succeeded", counter(*succeeded));
        put("failed", counter(*failed));
        put("uncountedTerminatedPods", Some(uncounted.to_value()));
        put(
            "completedIndexes",
            (!completed_indexes.is_empty()).then(|| completed_indexes.clone().into()),
        );
        put("failedIndexes", failed_indexes.clone().map(Value::from));
        status.into()
    }

    /// A condition that is true.
    pub(super) fn holds(&self, kind: ConditionKind) -> Option<Condition> {
        let condition = self.conditions.iter().find(|one| one["type"] == kind.name())?;
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        (text("status") == "True").then(|| Condition::new(kind, text("reason"), text("message")))
    }

    pub(super) fn append(&mut self, condition: &Condition, now: Timestamp) {
        let Condition {
            kind,
            reason,
            message,
        } = condition;
        self.conditions
            .push(written(kind.name(), true, reason, message, now));
    }

    /// Sets a condition, of which there is at most one. Returns whether that changed anything; from missing to false does not.
    pub(super) fn set(
        &mut self,
        kind: &str,
        holds: bool,
        reason: &str,
        message: &str,
        now: Timestamp,
    ) -> bool {
        let new = written(kind, holds, reason, message, now);
        match self.conditions.iter_mut().find(|one| one["type"] == kind) {
            Some(old) => {
                let same = ["status", "reason", "message"]
                    .iter()
                    .all(|field| old[field] == new[field]);
                if !same {
                    *old = new;
                }
                !same
            }
            None if holds => {
                self.conditions.push(new);
                true
            }
            None => false,
        }
    }

    /// Moves recorded pods whose finalizer is removed into the counters. Returns whether there were any.
    pub(super) fn settle(&mut self, with_finalizer: &BTreeSet<String>) -> bool {
        let settle = |uids: &mut Vec<String>, counter: &mut i64| {
            let before = uids.len();
            uids.retain(|uid| with_finalizer.contains(uid));
            let settled = before - uids.len();
            *counter = counter.saturating_add(i64::try_from(settled).unwrap_or(0));
            settled > 0
        };
        let succeeded = settle(&mut self.uncounted.succeeded, &mut self.succeeded);
        let failed = settle(&mut self.uncounted.failed, &mut self.failed);
        succeeded || failed
    }
}

impl Uncounted {
    fn to_value(&self) -> Value {
        let Self { succeeded, failed } = self;
        let mut value = Map::new();
        for (field, uids) in [("succeeded", succeeded), ("failed", failed)] {
            if !uids.is_empty() {
                value.insert(field.into(), uids.clone().into());
            }
        }
        value.into()
    }

    pub(super) fn len(&self) -> usize {
        self.succeeded.len() + self.failed.len()
    }
}

fn written(kind: &str, holds: bool, reason: &str, message: &str, now: Timestamp) -> Value {
    let (status, now) = (if holds { "True" } else { "False" }, moment::shown(now));
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastProbeTime": now, "lastTransitionTime": now,
    })
}

/// The condition with which the Job has finished, if it has.
pub(crate) fn finished(job: &Value) -> Option<&Value> {
    let conditions = job["status"]["conditions"].as_array()?;
    conditions
        .iter()
        .find(|one| (one["type"] == "Complete" || one["type"] == "Failed") && one["status"] == "True")
}
