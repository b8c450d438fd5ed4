//! A set and its pods as a workload.

use jiff::SignedDuration;
use stateward_core::revision::RevisionName;
use stateward_core::workload::{Claim, Counters, Pod, Workload};
use stateward_core::world::NoWorkload;

use super::PEER_MANAGED_BY;
use super::view::{MAX_TEMPLATE_VALUES, PodRow, SetView, count};
use crate::Manager;

impl Manager {
    /// The form of a claim: `RolloutPlugin/my-rollout/0f3c…`
    pub(super) fn claim(&self) -> String {
        format!("{}/{}/{}", self.kind, self.name, self.uid)
    }

    /// Whether it is the PhasedRollout of this name.
    pub(super) fn is_phased(&self, name: &str) -> bool {
        self.kind == PHASED && self.name == name
    }
}

/// How a set names the object that manages it.
pub(super) enum Named<'n> {
    /// By UID.
    Uid(&'n str),
    /// By name: a PhasedRollout that references the set.
    Phased(&'n str),
}

/// The kind that sts-plus-operator also has.
pub(super) const PHASED: &str = "PhasedRollout";

/// The workload from `set` and `pods`, or why it cannot be rolled out.
pub(super) fn workload<'p>(
    set: &SetView,
    pods: impl Iterator<Item = (&'p str, &'p PodRow)>,
    manager: &Manager,
    lives: impl Fn(Named<'_>) -> bool,
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
    let Some(template) = set.spec.template.clone() else {
        return Err(NoWorkload::Unfit(format!(
            "spec.template of StatefulSet {name} has more than {MAX_TEMPLATE_VALUES} values"
        )));
    };
    let replicas = set.replicas();
    let partition = set.partition();
    let mut pods: Vec<Pod> = pods
        .filter_map(|(pod_name, pod)| row(pod_name, pod, name, set.spec.ordinals.start))
        .collect();
    pods.sort_by(|one, other| (one.index, &one.uid).cmp(&(other.index, &other.uid)));
    Ok(Workload {
        uid: set.metadata.uid.clone().unwrap_or_default(),
        observed: Some(status.observed_generation) >= set.metadata.generation,
        replicas,
        released: i64::from(replicas) - i64::from(partition),
        current: RevisionName::from_api(&status.current_revision),
        update: RevisionName::from_api(&status.update_revision),
        template,
        current_template: None,
        forgotten: None,
        setting: setting(set, partition, manager),
        kept_setting: set
            .left
            .filter(|left| left.partition == partition && left.before >= 0)
            .map(|left| left.before.to_string()),
        claim: claim(set, manager, lives),
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

/// The partition that users have set. The partition of a claimed set was set by its claimant. An annotation of sts-plus-operator,
/// which may be stale, counts only if it names our manager, or if the set is guarded.
fn setting(set: &SetView, partition: i32, manager: &Manager) -> String {
    let peers = set.peer_claim.as_deref();
    let held = set.claim().is_some() || peers.is_some_and(|name| set.is_guarded() || manager.is_phased(name));
    if held { 0 } else { partition }.to_string()
}

/// The claim on a set. A claim of a deleted object does not count; then the one in the annotation of sts-plus-operator does.
fn claim(set: &SetView, manager: &Manager, lives: impl Fn(Named<'_>) -> bool) -> Claim {
    let written = set.claim();
    if written == Some(manager.claim().as_str()) {
        return Claim::Ours;
    }
    let mut parts = written.into_iter().flat_map(|claim| claim.splitn(3, '/'));
    if let (Some(kind), Some(name), Some(uid)) = (parts.next(), parts.next(), parts.next())
        && lives(Named::Uid(uid))
    {
        return Claim::Other(format!("{kind} {name}"));
    }
    match set.peer_claim.as_deref() {
        Some(name) if manager.is_phased(name) => Claim::Inherited,
        Some(name) if lives(Named::Phased(name)) => Claim::Other(format!(
            "{PHASED} {name}, as its annotation {PEER_MANAGED_BY} says"
        )),
        _ => Claim::Free,
    }
}

/// The row of a pod; `None` if its name is not `<set>-<ordinal>`.
fn row(name: &str, pod: &PodRow, set: &str, start: i32) -> Option<Pod> {
    let digits = name.strip_prefix(set)?.strip_prefix('-')?;
    let ordinal: i64 = digits.parse().ok()?;
    // `db-01` is not a pod of the set: it would take the place of `db-1`.
    if ordinal.to_string() != digits {
        return None;
    }
    // An ordinal below the first is removed by scaling, so it sorts behind all others.
    let index = u32::try_from(ordinal - i64::from(start)).unwrap_or(u32::MAX);
    Some(Pod {
        name: name.to_owned(),
        uid: pod.uid.clone(),
        index,
        revision: pod.revision.as_ref().map(RevisionName::from_api),
        terminating: pod.terminating,
        ready_since: pod.status.ready_since,
        unready_since: pod.status.unready_since,
        restarts: pod.status.restarts,
        restarted_at: pod.status.restarted_at,
        trouble: pod.status.trouble.clone(),
        unready: pod.status.unready.clone(),
        last_exit: pod.status.last_exit,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statefulset::LEFT;
    use crate::statefulset::view::{Owned, PodView};
    use rstest::rstest;
    use serde_json::{Value, json};

    /// A set of three pods that count from 5, with `patch` merged into it.
    fn set(patch: &Value) -> SetView {
        let mut set = json!({
            "metadata": {"name": "db", "uid": "set", "generation": 2},
            "spec": {
                "replicas": 3, "ordinals": {"start": 5}, "minReadySeconds": 30,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}},
                "template": {},
            },
            "status": {"observedGeneration": 2, "currentRevision": "a", "updateRevision": "b"},
        });
        json_patch::merge(&mut set, patch);
        serde_json::from_value(set).unwrap()
    }

    fn pod(name: &str, phase: &str) -> Owned {
        let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let owner = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "set", "controller": true,
        });
        let pod: PodView = serde_json::from_value(json!({
            "metadata": {
                "name": name, "uid": name, "labels": {"controller-revision-hash": "b"}, "ownerReferences": [owner],
            },
            "status": {"phase": phase, "conditions": [ready]},
        }))
        .unwrap();
        pod.owned().unwrap()
    }

    fn read(patch: &Value, pods: &[Owned]) -> Workload {
        let us = Manager {
            kind: "RolloutPlugin".into(),
            name: "db".into(),
            uid: "us".into(),
        };
        let pods = pods.iter().map(|pod| (pod.key.1.as_str(), &pod.row));
        let lives = |named: Named<'_>| matches!(named, Named::Uid("lives") | Named::Phased("lives"));
        workload(&set(patch), pods, &us, lives).unwrap()
    }

    #[test]
    fn a_set_is_counted_from_its_first_ordinal() {
        let pods = [
            pod("db-7", "Running"),
            pod("db-5", "Running"),
            pod("db-x", "Running"),
            pod("db-05", "Running"),
        ];
        let workload = read(&json!({}), &pods);
        let places: Vec<_> = workload
            .pods
            .iter()
            .map(|pod| (pod.index, pod.name.as_str()))
            .collect();
        assert_eq!(places, [(0, "db-5"), (2, "db-7")]);
        assert_eq!((workload.released, workload.setting.as_str()), (1, "2"));
        assert_eq!(workload.min_ready, SignedDuration::from_secs(30));
    }

    #[test]
    fn a_pod_that_has_ended_is_not_ready() {
        let pods = [pod("db-5", "Running"), pod("db-6", "Failed")];
        let workload = read(&json!({}), &pods);
        let ready: Vec<_> = workload.pods.iter().map(Pod::ready).collect();
        assert_eq!(ready, [true, false]);
    }

    #[rstest]
    #[case(2, true)]
    #[case(3, false)]
    fn a_set_is_observed_when_its_controller_has_seen_its_generation(
        #[case] generation: i64,
        #[case] observed: bool,
    ) {
        let patch = json!({"metadata": {"generation": generation}});
        assert_eq!(read(&patch, &[]).observed, observed);
    }

    #[rstest]
    #[case("RolloutPlugin/db/us", Claim::Ours)]
    #[case("RolloutPlugin/other/lives", Claim::Other("RolloutPlugin other".into()))]
    #[case("RolloutPlugin/db/gone", Claim::Free)]
    #[case("nonsense", Claim::Free)]
    fn a_set_is_anothers_while_that_one_lives(#[case] written: &str, #[case] expected: Claim) {
        let patch = json!({"metadata": {"annotations": {crate::statefulset::MANAGED_BY: written}}});
        assert_eq!(read(&patch, &[]).claim, expected);
    }

    /// Rule 15 also for the annotation of another operator.
    #[rstest]
    #[case(None, Some("lives"), Claim::Other("PhasedRollout lives, as its annotation sts.plus/phasedRollout says".into()))]
    #[case(None, Some("gone"), Claim::Free)]
    #[case(Some("RolloutPlugin/db/us"), Some("lives"), Claim::Ours)]
    #[case(Some("RolloutPlugin/other/lives"), Some("gone"), Claim::Other("RolloutPlugin other".into()))]
    #[case(Some("RolloutPlugin/other/gone"), Some("lives"), Claim::Other("PhasedRollout lives, as its annotation sts.plus/phasedRollout says".into()))]
    fn whom_another_operator_took_a_set_for_goes_first(
        #[case] written: Option<&str>,
        #[case] peers: Option<&str>,
        #[case] expected: Claim,
    ) {
        let annotations = json!({
            crate::statefulset::MANAGED_BY: written,
            PEER_MANAGED_BY: peers,
        });
        assert_eq!(
            read(&json!({"metadata": {"annotations": annotations}}), &[]).claim,
            expected
        );
    }

    #[rstest]
    #[case(json!({}), "2")]
    #[case(json!({crate::statefulset::MANAGED_BY: "RolloutPlugin/db/us"}), "0")]
    #[case(json!({crate::statefulset::MANAGED_BY: "RolloutPlugin/other/gone"}), "0")]
    #[case(json!({PEER_MANAGED_BY: "gone"}), "2")]
    fn a_partition_that_somebody_has_left_is_no_wish_of_users(
        #[case] annotations: Value,
        #[case] setting: &str,
    ) {
        let workload = read(&json!({"metadata": {"annotations": annotations}}), &[]);
        assert_eq!(workload.setting, setting);
    }

    #[rstest]
    #[case::where_we_left_it(r#"{"partition":2,"before":1}"#, Some("1"))]
    #[case::moved_since(r#"{"partition":3,"before":1}"#, None)]
    #[case::not_ours("nonsense", None)]
    #[case::no_partition(r#"{"partition":2,"before":-5}"#, None)]
    fn what_users_had_set_is_kept_while_the_partition_is_where_we_left_it(
        #[case] left: &str,
        #[case] kept: Option<&str>,
    ) {
        let workload = read(&json!({"metadata": {"annotations": {LEFT: left}}}), &[]);
        assert_eq!(workload.kept_setting.as_deref(), kept);
    }

    #[test]
    fn a_guard_of_another_operator_is_no_wish_of_users() {
        let guard = json!({
            "metadata": {"annotations": {PEER_MANAGED_BY: "gone"}},
            "spec": {"updateStrategy": {"rollingUpdate": {"partition": 3}}},
        });
        assert_eq!(read(&guard, &[]).setting, "0");
    }

    #[test]
    fn the_one_that_another_operator_names_takes_the_set() {
        let annotations = json!({PEER_MANAGED_BY: "lives"});
        let named = Manager {
            kind: PHASED.into(),
            name: "lives".into(),
            uid: "us".into(),
        };
        let set = set(&json!({"metadata": {"annotations": annotations}}));
        assert_eq!(claim(&set, &named, |_| true), Claim::Inherited);
    }
}
