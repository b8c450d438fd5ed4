//! How long pods take.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Probe};
use stateward_clock::human_duration;

/// How long a pod takes to become Ready, and to stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// From its creation until it is Ready.
    pub ready_after: Duration,
    /// From the deletion request until it is gone.
    pub stops_after: Duration,
    /// Where `ready_after` comes from, in words.
    pub(crate) source: String,
}

const READY_AFTER: Duration = Duration::from_secs(10);
const STOPS_AFTER: Duration = Duration::from_secs(2);

impl Pace {
    /// As given, or as measured on the existing pods, or as the set's probes imply.
    pub fn of(
        set: &StatefulSet,
        pods: &[Pod],
        ready_after: Option<Duration>,
        stops_after: Option<Duration>,
    ) -> Self {
        let stops_after = stops_after.unwrap_or(STOPS_AFTER);
        let (ready_after, source) = if let Some(said) = ready_after {
            (said, "as asked for".to_owned())
        } else if let Some((median, pods)) = measured(pods) {
            (median, format!("as {pods} of its pods took"))
        } else {
            (
                READY_AFTER.max(soonest(set)),
                "a guess; say --ready-after".to_owned(),
            )
        };
        Self {
            ready_after,
            stops_after,
            source,
        }
    }
}

impl std::fmt::Display for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a pod is Ready {} after it is made ({}) and gone {} after it is asked to stop",
            human(self.ready_after),
            self.source,
            human(self.stops_after)
        )
    }
}

fn human(duration: Duration) -> String {
    human_duration(SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX))
}

/// The median time that the Ready pods took, and the number of pods measured.
fn measured(pods: &[Pod]) -> Option<(Duration, usize)> {
    let mut times: Vec<_> = pods.iter().filter_map(time_to_ready).collect();
    times.sort_unstable();
    let median = times.get(times.len().checked_sub(1)? / 2)?;
    Some((*median, times.len()))
}

fn time_to_ready(pod: &Pod) -> Option<Duration> {
    let created = pod.metadata.creation_timestamp.as_ref()?.0;
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready" && condition.status == "True")?;
    let since = ready.last_transition_time.as_ref()?.0;
    Duration::try_from(since.duration_since(created)).ok()
}

/// The earliest that a pod can be Ready, by its probes.
fn soonest(set: &StatefulSet) -> Duration {
    let template = set.spec.as_ref().and_then(|spec| spec.template.spec.as_ref());
    let containers = template.into_iter().flat_map(|spec| &spec.containers);
    let delay = |probe: Option<&Probe>| {
        let seconds = probe.map_or(0, |probe| {
            let times = i64::from(probe.success_threshold.unwrap_or(1).max(1)) - 1;
            let period = i64::from(probe.period_seconds.unwrap_or(10));
            i64::from(probe.initial_delay_seconds.unwrap_or(0)) + times * period
        });
        u64::try_from(seconds).unwrap_or(0)
    };
    let seconds = containers
        .map(|container| delay(container.startup_probe.as_ref()) + delay(container.readiness_probe.as_ref()));
    Duration::from_secs(seconds.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(ready_at: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "db-0", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": ready_at}]},
        }))
        .unwrap()
    }

    fn set(probe: serde_json::Value) -> StatefulSet {
        let containers = json!([{"name": "db", "readinessProbe": probe}]);
        serde_json::from_value(json!({
            "spec": {"selector": {}, "template": {"spec": {"containers": containers}}},
        }))
        .unwrap()
    }

    #[test]
    fn pods_that_are_there_tell_how_long_they_take() {
        let pods = [
            pod("2026-01-01T00:00:20Z"),
            pod("2026-01-01T00:00:25Z"),
            // This pod became unready in between.
            pod("2026-01-01T07:00:00Z"),
        ];
        let pace = Pace::of(&set(json!({})), &pods, None, None);
        assert_eq!(pace.ready_after, Duration::from_secs(25));
        assert_eq!(pace.source, "as 3 of its pods took");
    }

    #[test]
    fn probes_may_ask_for_any_time() {
        let never = i32::MAX;
        let probe = json!({"initialDelaySeconds": never, "periodSeconds": never, "successThreshold": never});
        assert!(soonest(&set(probe)) > Duration::from_secs(never as u64));
    }

    #[test]
    fn what_is_said_wins_and_probes_are_respected_where_nothing_is_known() {
        let slow = set(json!({"initialDelaySeconds": 60, "periodSeconds": 5, "successThreshold": 3}));
        assert_eq!(
            Pace::of(&slow, &[], None, None).ready_after,
            Duration::from_secs(70)
        );
        assert_eq!(
            Pace::of(&set(json!({})), &[], None, None).ready_after,
            READY_AFTER
        );
        let said = Pace::of(&slow, &[], Some(Duration::from_secs(3)), None);
        assert_eq!(
            said.to_string(),
            "a pod is Ready 3s after it is made (as asked for) and gone 2s after it is asked to stop"
        );
    }
}
