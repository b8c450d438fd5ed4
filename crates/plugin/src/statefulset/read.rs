//! A set and its pods as a workload.

use jiff::SignedDuration;
use stateward_core::revision::RevisionName;
use stateward_core::workload::{Claim, Counters, Pod, Workload};
use stateward_core::world::NoWorkload;

use super::view::{PodView, SetView, count};
use crate::Manager;

impl Manager {
    /// How a claim is written down: `RolloutPlugin/my-rollout/0f3c…`
    pub(super) fn claim(&self) -> String {
        format!("{}/{}/{}", self.kind, self.name, self.uid)
    }
}

/// The workload that `set` and `pods` show, or why it cannot be rolled.
pub(super) fn workload<'p>(
    set: &SetView,
    pods: impl Iterator<Item = &'p PodView>,
    manager: &Manager,
    holder_lives: impl Fn(&str) -> bool,
) -> Result<Workload, NoWorkload> {
    let name = set.metadata.name.as_deref().unwrap_or_default();
    if set.metadata.deletion_timestamp.is_some() {
        return Err(NoWorkload::Missing(format!(
            "StatefulSet {name}, which is being deleted,"
        )));
    }
    let strategy = &set.spec.update_strategy;
    if strategy.kind != "RollingUpdate" {
        return Err(NoWorkload::Unfit(format!(
            "StatefulSet {name} has spec.updateStrategy.type {}: only RollingUpdate can be rolled in steps",
            strategy.kind
        )));
    }
    let status = &set.status;
    if status.update_revision.is_empty() {
        return Err(NoWorkload::Missing(format!(
            "the first status of StatefulSet {name}"
        )));
    }
    let replicas = set.replicas();
    let partition = strategy
        .rolling_update
        .as_ref()
        .map_or(0, |rolling| rolling.partition);
    let mut pods: Vec<Pod> = pods
        .filter_map(|pod| row(pod, name, set.spec.ordinals.start))
        .collect();
    pods.sort_by(|one, other| (one.index, &one.uid).cmp(&(other.index, &other.uid)));
    Ok(Workload {
        uid: set.metadata.uid.clone().unwrap_or_default(),
        observed: Some(status.observed_generation) >= set.metadata.generation,
        replicas,
        released: i64::from(replicas) - i64::from(partition),
        current: RevisionName::from_api(&status.current_revision),
        update: RevisionName::from_api(&status.update_revision),
        template: set.spec.template.clone(),
        current_template: None,
        setting: partition.to_string(),
        claim: claim(set, manager, holder_lives),
        ordered: set.spec.pod_management_policy.as_deref() != Some("Parallel"),
        min_ready: SignedDuration::from_secs(set.spec.min_ready_seconds.unwrap_or(0).into()),
        told: Counters {
            replicas: count(status.replicas),
            current: count(status.current_replicas),
            updated: count(status.updated_replicas),
            ready: count(status.ready_replicas),
            available: count(status.available_replicas),
        },
        pods,
    })
}

/// Whose it is. A claim whose object is gone is nobody's.
fn claim(set: &SetView, manager: &Manager, holder_lives: impl Fn(&str) -> bool) -> Claim {
    match set.claim() {
        None => Claim::Free,
        Some(written) if written == manager.claim() => Claim::Ours,
        Some(written) => {
            let mut parts = written.splitn(3, '/');
            let (kind, name, uid) = (parts.next(), parts.next(), parts.next());
            match (kind, name, uid) {
                (Some(kind), Some(name), Some(uid)) if holder_lives(uid) => {
                    Claim::Other(format!("{kind} {name}"))
                }
                _ => Claim::Free,
            }
        }
    }
}

/// The row of a pod; `None` for one whose name is not `<set>-<ordinal>`.
fn row(pod: &PodView, set: &str, start: i32) -> Option<Pod> {
    let name = pod.metadata.name.as_deref()?;
    let ordinal: i64 = name.strip_prefix(set)?.strip_prefix('-')?.parse().ok()?;
    let labels = pod.metadata.labels.as_ref();
    let revision = labels.and_then(|labels| labels.get("controller-revision-hash"));
    // An ordinal below the first is one that scaling takes away: it sorts behind all others.
    let index = u32::try_from(ordinal - i64::from(start)).unwrap_or(u32::MAX);
    Some(Pod {
        name: name.to_owned(),
        uid: pod.metadata.uid.clone()?,
        index,
        revision: revision.map(RevisionName::from_api),
        terminating: pod.metadata.deletion_timestamp.is_some(),
        ready_since: pod.status.ready_since,
        restarts: pod.status.restarts,
        restarted_at: pod.status.restarted_at,
        trouble: pod.status.trouble.clone(),
    })
}
