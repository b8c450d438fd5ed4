//! Context of an explanation: pods that are not Ready, and the cluster's events about them.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::ResourceExt;
use stateward_core::event::EventReason;

use crate::outcome::event_time;
use crate::verbs::status::unknown_change;
use crate::views::pod_row::PodRow;
use crate::views::runs;
use crate::views::table::age;

use super::facts::{Facts, is_ready, node};
use super::to_seconds;

/// The most lines of a kind to show.
const MOST: usize = 5;

/// The events of a rollout that `explain` repeats.
const REPEATED: [EventReason; 5] = [
    EventReason::WorkloadContested,
    EventReason::StatusContested,
    EventReason::RequestRefused,
    EventReason::CommandRefused,
    EventReason::ExternalRolloutDetected,
];

/// Four times the default duration of a lease.
const LONG: SignedDuration = SignedDuration::from_secs(60);

/// The lines, without what is `said` already.
pub(super) fn lines(facts: &Facts, said: &str, now: Timestamp) -> Vec<String> {
    let mut lines: Vec<_> = silence(&facts.leases, now).into_iter().collect();
    lines.extend(facts.unread.iter().map(|why| unknown_change(why)));
    let unwell: Vec<_> = facts.pods.iter().filter(|pod| !is_ready(pod)).collect();
    for pod in unwell.iter().take(MOST) {
        lines.push(pod_in_words(pod, now));
        let events = facts
            .pod_events
            .iter()
            .filter(|event| event.involved_object.uid == pod.metadata.uid);
        lines.extend(last_warning(events, now).map(|line| format!("  {line}")));
        lines.extend(claims(facts, pod).map(|line| format!("  {line}")));
    }
    if unwell.len() > MOST {
        lines.push(format!("{} more pods are not Ready", unwell.len() - MOST));
    }
    if let Some(warning) = last_warning(facts.set_events.iter(), now) {
        lines.push(format!("statefulset {}: {warning}", facts.rollout.workload));
    }
    let warnings = facts.events.iter().filter(|event| {
        let reason = event.reason.as_deref();
        REPEATED.iter().any(|repeated| reason == Some(repeated.as_str()))
    });
    if let Some(warning) = last(warnings, now) {
        lines.push(warning);
    }
    let troubles = runs::sentences(&facts.runs)
        .into_iter()
        .filter(|(_, trouble)| *trouble);
    let troubles = troubles.filter(|(words, _)| !said.contains(words.as_str()));
    lines.extend(troubles.map(|(words, _)| format!("analysis: {words}")));
    lines.extend(budgets(facts));
    lines
}

/// `pod db-4 on db-2: CrashLoopBackOff, 3 restarts, last ended with 1 (Error), on node-1`
fn pod_in_words(pod: &Pod, now: Timestamp) -> String {
    let Some(row) = PodRow::of(pod) else {
        return format!("pod {}", pod.name_any());
    };
    let mut words = vec![row.state.clone()];
    match row.restarts {
        0 => {}
        1 => words.push("1 restart".into()),
        restarts => words.push(format!("{restarts} restarts")),
    }
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.container_statuses.iter().flatten();
    for container in containers.chain(status.init_container_statuses.iter().flatten()) {
        let state = container.state.clone().unwrap_or_default();
        let last = container.last_state.clone().unwrap_or_default();
        if let Some(ended) = state
            .terminated
            .or(last.terminated)
            .filter(|ended| ended.exit_code != 0)
        {
            let reason = ended
                .reason
                .map_or_else(String::new, |reason| format!(" ({reason})"));
            words.push(format!(
                "{} ended with {}{reason}",
                container.name, ended.exit_code
            ));
        }
        let message = state.waiting.and_then(|waiting| waiting.message);
        words.extend(message.filter(|message| !message.is_empty()));
    }
    let unscheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False");
    words.extend(unscheduled.and_then(|condition| condition.message.clone()));
    words.extend(node(pod).map(|node| format!("on {node}")));
    words.push(match unwell_since(pod) {
        Some(since) => format!("for {}", age(Some(since), now)),
        None => format!("{} old", age(row.created, now)),
    });
    let revision = row.revision.unwrap_or_else(|| "an unknown revision".into());
    format!("pod {} of {revision}: {}", row.name, words.join(", "))
}

/// A message that no operator renews its lease, if there is one. Clocks differ, and one that has just stopped is reported as gone soon
/// enough. A renewal further in the future than clocks differ does not count.
fn silence(leases: &[Lease], now: Timestamp) -> Option<String> {
    let renewed = leases.iter().filter_map(|lease| {
        let renewed = lease.spec.as_ref()?.renew_time.as_ref()?.0;
        (renewed.duration_since(now) <= LONG).then_some((renewed, lease))
    });
    let (since, last) = renewed.max_by_key(|(renewed, _)| *renewed)?;
    (now.duration_since(since) > LONG).then(|| {
        format!(
            "no operator has renewed lease {} in namespace {} since {}, {} ago",
            last.name_any(),
            last.namespace().unwrap_or_default(),
            to_seconds(since),
            age(Some(since), now)
        )
    })
}

/// When the pod started to terminate, or ceased to be Ready.
fn unwell_since(pod: &Pod) -> Option<Timestamp> {
    if let Some(end) = &pod.metadata.deletion_timestamp {
        let grace = pod.metadata.deletion_grace_period_seconds.unwrap_or(0);
        return end.0.checked_sub(SignedDuration::from_secs(grace)).ok();
    }
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let ready = conditions.find(|condition| condition.type_ == "Ready")?;
    Some(ready.last_transition_time.as_ref()?.0)
}

/// The claims of a pod without a volume.
fn claims<'f>(facts: &'f Facts, pod: &'f Pod) -> impl Iterator<Item = String> + 'f {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let names = volumes.filter_map(|volume| Some(&volume.persistent_volume_claim.as_ref()?.claim_name));
    names.filter_map(|name| {
        let claim = facts.claims.iter().find(|claim| claim.name_any() == *name)?;
        let phase = claim.status.as_ref()?.phase.clone()?;
        (phase != "Bound").then(|| format!("its claim {name} is {phase}"))
    })
}

/// PodDisruptionBudgets that allow no disruption of the StatefulSet's pods.
fn budgets(facts: &Facts) -> Vec<String> {
    let holds = facts.budgets.iter().filter(|budget| {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
        let labels = selector
            .and_then(|selector| selector.match_labels)
            .unwrap_or_default();
        let mut pods = facts.pods.iter();
        let meant = !labels.is_empty()
            && pods.any(|pod| {
                labels
                    .iter()
                    .all(|(key, value)| pod.labels().get(key) == Some(value))
            });
        let allowed = budget
            .status
            .as_ref()
            .and_then(|status| status.disruptions_allowed);
        meant && allowed == Some(0)
    });
    holds
        .map(|budget| {
            format!(
                "disruption budget {} allows no pod to go now; serving pods return when it does",
                budget.name_any()
            )
        })
        .collect()
}

fn last_warning<'e>(events: impl Iterator<Item = &'e Event>, now: Timestamp) -> Option<String> {
    last(
        events.filter(|event| event.type_.as_deref() == Some("Warning")),
        now,
    )
}

/// `FailedCreate 20s ago: exceeded quota`
fn last<'e>(events: impl Iterator<Item = &'e Event>, now: Timestamp) -> Option<String> {
    let event = events.max_by_key(|event| event_time(event))?;
    Some(format!(
        "{} {} ago: {}",
        event.reason.as_deref().unwrap_or("Warning"),
        age(event_time(event), now),
        event.message.as_deref().unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, returning, set};
    use serde_json::{Value, json};

    fn facts(pods: Value, change: impl FnOnce(&mut Facts)) -> Vec<String> {
        let mut facts = Facts {
            rollout: returning(),
            set: Some(set("queue", 4)),
            unread: None,
            pods: serde_json::from_value(pods).unwrap(),
            runs: Vec::new(),
            events: Vec::new(),
            set_events: Vec::new(),
            pod_events: Vec::new(),
            budgets: Vec::new(),
            claims: Vec::new(),
            leases: Vec::new(),
        };
        change(&mut facts);
        lines(&facts, "", NOW.parse().unwrap())
    }

    fn event(uid: &str, reason: &str, message: &str) -> Event {
        let event = json!({
            "metadata": {"name": reason}, "involvedObject": {"uid": uid}, "type": "Warning", "reason": reason, "message": message,
            "lastTimestamp": "2026-01-01T00:09:40Z",
        });
        serde_json::from_value(event).unwrap()
    }

    fn pod(ready: bool) -> Value {
        json!({
            "metadata": {
                "name": "queue-4", "uid": "p", "creationTimestamp": "2026-01-01T00:09:00Z",
                "labels": {"app": "queue", "controller-revision-hash": "queue-2"},
            },
            "spec": {"containers": [], "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-queue-4"}}]},
            "status": {"phase": "Pending", "conditions": [
                {"type": "Ready", "status": if ready { "True" } else { "False" }},
                {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"},
            ]},
        })
    }

    #[test]
    fn a_pod_without_a_node_says_what_it_lacks() {
        let told = facts(json!([pod(false)]), |facts| {
            facts.pod_events = vec![
                event("p", "FailedScheduling", "unbound claims"),
                event("other", "Other", "x"),
            ];
            let claim = json!({"metadata": {"name": "data-queue-4"}, "status": {"phase": "Pending"}});
            facts.claims = vec![serde_json::from_value(claim).unwrap()];
        });
        assert_eq!(
            told,
            [
                "pod queue-4 of queue-2: Unschedulable, 0/3 nodes are available, 60s old",
                "  FailedScheduling 20s ago: unbound claims",
                "  its claim data-queue-4 is Pending",
            ]
        );
    }

    #[test]
    fn a_pod_is_unwell_since_it_ceased_to_be_ready_or_was_told_to_stop() {
        let mut unready = pod(false);
        unready["status"]["conditions"][0]["lastTransitionTime"] = json!("2026-01-01T00:09:50Z");
        let mut stopping = unready.clone();
        stopping["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:10:15Z");
        stopping["metadata"]["deletionGracePeriodSeconds"] = json!(30);
        let told = facts(json!([unready, stopping]), |_| {});
        assert!(told[0].ends_with("for 10s"), "{told:?}");
        assert!(told[1].ends_with("for 15s"), "{told:?}");
    }

    #[test]
    fn an_operator_that_shows_no_sign_of_life_is_told() {
        let lease = |renewed: &str| {
            let lease = json!({
                "metadata": {"name": "stateward", "namespace": "ops"}, "spec": {"renewTime": format!("2026-01-01T00:{renewed}.000000Z")},
            });
            serde_json::from_value(lease).unwrap()
        };
        let told = facts(json!([]), |facts| {
            facts.leases = vec![lease("07:00"), lease("05:00")]
        });
        assert_eq!(
            told,
            ["no operator has renewed lease stateward in namespace ops since 2026-01-01T00:07:00Z, 3m ago"]
        );
        let ahead = facts(json!([]), |facts| {
            facts.leases = vec![lease("07:00"), lease("59:00")]
        });
        assert_eq!(ahead, told);
        for renewed in ["09:50", "10:05"] {
            let alive = facts(json!([]), |facts| {
                facts.leases = vec![lease("05:00"), lease(renewed)]
            });
            assert_eq!(alive, [""; 0]);
        }
    }

    #[test]
    fn a_quota_that_keeps_pods_from_being_made_is_told_by_the_set() {
        let told = facts(json!([]), |facts| {
            facts.set_events = vec![event(
                "s",
                "FailedCreate",
                "create Pod queue-4 failed: exceeded quota: small",
            )];
        });
        assert_eq!(
            told,
            ["statefulset queue: FailedCreate 20s ago: create Pod queue-4 failed: exceeded quota: small"]
        );
    }

    #[test]
    fn others_that_undo_what_the_operator_does_are_told() {
        let told = facts(json!([]), |facts| {
            facts.events = vec![
                event("r", "WorkloadContested", "somebody sets the partition"),
                event("r", "Other", "x"),
            ];
        });
        assert_eq!(told, ["WorkloadContested 20s ago: somebody sets the partition"]);
    }

    #[test]
    fn a_budget_that_holds_a_return_is_named_and_no_other() {
        let budget = |name: &str, app: &str, allowed: i32| {
            let budget = json!({
                "metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {"disruptionsAllowed": allowed},
            });
            serde_json::from_value(budget).unwrap()
        };
        let told = facts(json!([pod(true)]), |facts| {
            facts.budgets = vec![
                budget("tight", "queue", 0),
                budget("wide", "queue", 1),
                budget("other", "web", 0),
            ];
        });
        assert_eq!(
            told,
            ["disruption budget tight allows no pod to go now; serving pods return when it does"]
        );
    }
}
