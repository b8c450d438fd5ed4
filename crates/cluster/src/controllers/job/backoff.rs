//! How long a Job waits after failures: 10 s, doubled by every failure since the last success, 10 min at most.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::json::Value;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

use crate::controllers::{moment, pod};
use crate::store::Key;

const FIRST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(600);

/// The failures of one Job since its last success.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Backoff {
    failures: usize,
    last_failure: Option<Timestamp>,
}

impl Backoff {
    /// Updates it with newly ended pods.
    pub(super) fn after(self, succeeded: &[Arc<Value>], failed: &[Arc<Value>]) -> Self {
        let last_success = succeeded.iter().map(|pod| finished_at(pod)).max();
        let failures = failed.iter().map(|pod| finished_at(pod));
        let since: Vec<_> = failures
            .filter(|failure| last_success.is_none_or(|success| *failure > success))
            .collect();
        let before = if last_success.is_some() {
            Self::default()
        } else {
            self
        };
        Self {
            failures: before.failures + since.len(),
            last_failure: since.into_iter().max().or(before.last_failure),
        }
    }

    /// How long until the next pod may be created.
    pub(super) fn remaining(self, now: Timestamp) -> Duration {
        let last_failure = self.last_failure.unwrap_or(Timestamp::UNIX_EPOCH);
        remaining(self.failures, last_failure, now)
    }
}

/// How long the replacement of a failed pod waits, if every index counts its own failures.
pub(super) fn remaining_for_index(failed: &Value, failures_before: i64, now: Timestamp) -> Duration {
    remaining(
        usize::try_from(failures_before).unwrap_or(0) + 1,
        finished_at(failed),
        now,
    )
}

fn remaining(failures: usize, last_failure: Timestamp, now: Timestamp) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else {
        return Duration::ZERO;
    };
    let factor = 1_u32
        .checked_shl(u32::try_from(doublings).unwrap_or(u32::MAX))
        .unwrap_or(u32::MAX);
    let delay = FIRST.saturating_mul(factor).min(LONGEST);
    moment::until(moment::later(last_failure, delay), now)
}

/// When a pod ended: from its containers, else from its readiness, its deletion or its creation.
pub(super) fn finished_at(pod: &Value) -> Timestamp {
    let ready = pod::condition(pod, "Ready").filter(|condition| condition["status"] == "False");
    last_container_end(pod)
        .or_else(|| moment::read(&ready?["lastTransitionTime"]))
        .or_else(|| {
            let deletion = moment::read(&pod["metadata"]["deletionTimestamp"])?;
            let grace = moment::seconds(
                pod["metadata"]["deletionGracePeriodSeconds"]
                    .as_i64()
                    .unwrap_or(0),
            );
            deletion.checked_sub(grace).ok()
        })
        .or_else(|| moment::read(&pod["metadata"]["creationTimestamp"]))
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

/// `None` while one of them is running. Sidecars end after the ordinary containers and count too.
fn last_container_end(pod: &Value) -> Option<Timestamp> {
    let ends = |field: &str| {
        let statuses = pod["status"][field].as_array().into_iter().flatten();
        let sidecar = |status: &&Value| {
            field == "containerStatuses" || pod::sidecar_names(pod).any(|name| status["name"] == name)
        };
        let ends = statuses
            .filter(sidecar)
            .map(|status| moment::read(&status["state"]["terminated"]["finishedAt"]));
        ends.collect::<Option<Vec<_>>>()
    };
    let ordinary = ends("containerStatuses").unwrap_or_default();
    let sidecars = ends("initContainerStatuses")?;
    ordinary.into_iter().chain(sidecars).max()
}

/// The back-off of every Job, kept in memory only: a restarted controller starts over, like the real one.
#[derive(Default)]
pub(super) struct Backoffs(Mutex<BTreeMap<Key, Backoff>>);

impl Backoffs {
    pub(super) fn of(&self, key: &Key) -> Backoff {
        self.all().get(key).copied().unwrap_or_default()
    }

    pub(super) fn keep(&self, key: &Key, backoff: Backoff) {
        self.all().insert(key.clone(), backoff);
    }

    pub(super) fn forget(&self, key: &Key) {
        self.all().remove(key);
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Key, Backoff>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    fn ended(at: &str) -> Arc<Value> {
        let finished = json!({"terminated": {"finishedAt": format!("2026-01-01T00:{at}Z")}});
        Arc::new(json!({"status": {"containerStatuses": [{"name": "c", "state": finished}]}}))
    }

    fn at(time: &str) -> Timestamp {
        format!("2026-01-01T00:{time}Z").parse().unwrap()
    }

    #[rstest]
    #[case(0, "00:00", 0)]
    #[case(1, "00:00", 10)]
    #[case(1, "00:04", 6)]
    #[case(1, "00:11", 0)]
    #[case(2, "00:00", 20)]
    #[case(6, "00:00", 320)]
    #[case(7, "00:00", 600)]
    #[case(4_000, "00:00", 600)]
    fn every_failure_doubles_the_delay(#[case] failures: usize, #[case] now: &str, #[case] seconds: u64) {
        let backoff = Backoff {
            failures,
            last_failure: Some(at("00:00")),
        };
        assert_eq!(backoff.remaining(at(now)), Duration::from_secs(seconds));
    }

    #[test]
    fn a_success_forgets_the_failures_before_it() {
        let failing = Backoff::default().after(&[], &[ended("01:00"), ended("02:00")]);
        assert_eq!(
            failing,
            Backoff {
                failures: 2,
                last_failure: Some(at("02:00"))
            }
        );

        let mixed = failing.after(&[ended("03:00")], &[ended("02:30"), ended("03:30")]);
        assert_eq!(
            mixed,
            Backoff {
                failures: 1,
                last_failure: Some(at("03:30"))
            }
        );
        assert_eq!(mixed.after(&[ended("04:00")], &[]), Backoff::default());
    }

    #[rstest]
    #[case::containers(json!({"status": {"containerStatuses": [
        {"state": {"terminated": {"finishedAt": "2026-01-01T00:01:00Z"}}},
        {"state": {"terminated": {"finishedAt": "2026-01-01T00:02:00Z"}}},
    ]}}), "02:00")]
    #[case::readiness(json!({"status": {
        "containerStatuses": [{"state": {"running": {}}}],
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:03:00Z"}],
    }}), "03:00")]
    #[case::deletion(json!({"metadata": {
        "deletionTimestamp": "2026-01-01T00:04:30Z", "deletionGracePeriodSeconds": 30,
    }}), "04:00")]
    #[case::creation(json!({"metadata": {"creationTimestamp": "2026-01-01T00:05:00Z"}}), "05:00")]
    fn the_end_of_a_pod_is_read_or_guessed(#[case] pod: Value, #[case] end: &str) {
        assert_eq!(finished_at(&pod), at(end));
    }
}
