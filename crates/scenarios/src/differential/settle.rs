//! Decides when a namespace is at rest.
//!
//! Two things must hold: no object has an obvious next step ([`unsettled`]), and the StatefulSet controller, made to sync its set twice
//! more, changes nothing. No time is measured; a slow control plane is waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::objects::{self, CLAIM, EVENT, JOB, Objects, POD, SET, Watched, of_kind};
use crate::harness::{Cluster, Doing, Outcome};

/// How the kubelet is programmed.
#[derive(Default)]
pub(crate) struct Programme {
    /// Pods that are never Ready, by name.
    pub(crate) unready: BTreeSet<String>,
    /// Images whose pods are never Ready.
    pub(crate) broken: BTreeSet<String>,
    /// Whether the pods of Jobs run until they are stopped.
    pub(crate) jobs_run_on: bool,
}

/// The number of nudges of a set, by its UID: each raised its generation by one.
pub(crate) type Nudges = BTreeMap<String, i64>;

/// Waits until the namespace is at rest and returns all its objects.
pub(crate) async fn settle(
    cluster: &Cluster,
    watched: &Watched,
    programme: &Programme,
    nudges: &mut Nudges,
    quiet: Option<Duration>,
) -> Outcome<Objects> {
    let mut moved = String::new();
    for _ in 0..ROUNDS {
        let before = until(cluster, watched, "the namespace at rest", |objects| {
            unsettled(objects, programme).map_or_else(|| Ok(fingerprint(objects)), Err)
        })
        .await?;
        nudge(cluster, watched, nudges).await?;
        // Virtual time passes for free.
        if let Some(quiet) = quiet {
            tokio::time::sleep(quiet).await;
        }
        let now = objects::read(&cluster.client(), cluster.namespace()).await?;
        let after = fingerprint(&now);
        if unsettled(&now, programme).is_none() && after == before {
            return Ok(now);
        }
        moved = format!("{:?}", changed(&before, &after));
    }
    Err(cluster.unmet("the namespace at rest", format!("it always moves: {moved}")))
}

/// How often a namespace may prove not to be at rest.
const ROUNDS: usize = 20;

/// Longer than any controller waits.
const PATIENCE: Duration = Duration::from_secs(120);

/// More changes than any operation causes. Virtual time costs nothing, but a cluster that loops for that long costs gigabytes.
const CHANGES: usize = 2000;

/// Repeats the check at every change until it returns `Ok`.
pub(crate) async fn until<T>(
    cluster: &Cluster,
    watched: &Watched,
    expected: &str,
    mut check: impl FnMut(&Objects) -> Result<T, String>,
) -> Outcome<T> {
    let mut changes = watched.changes();
    let mut seen = String::new();
    let met = tokio::time::timeout(cluster.patience().min(PATIENCE), async {
        for _ in 0..CHANGES {
            changes.mark_unchanged();
            match watched.look(&mut check) {
                Ok(answer) => return Some(answer),
                Err(instead) => seen = instead,
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        None
    })
    .await;
    met.ok().flatten().ok_or_else(|| cluster.unmet(expected, seen))
}

/// Makes the controller sync each set twice: raises its history limit, then restores it.
async fn nudge(cluster: &Cluster, watched: &Watched, nudges: &mut Nudges) -> Outcome {
    let api: Api<StatefulSet> = Api::namespaced(cluster.client(), cluster.namespace());
    let sets: Vec<_> =
        watched.look(|objects| of_kind(objects, SET).map(|(name, _)| name.to_owned()).collect());
    for name in sets {
        let Some(set) = api.get_opt(&name).await.doing("get the set")? else {
            continue;
        };
        let limit = set
            .spec
            .and_then(|spec| spec.revision_history_limit)
            .unwrap_or(10);
        for limit in [limit + 1, limit] {
            let patch = Patch::Merge(json!({"spec": {"revisionHistoryLimit": limit}}));
            let nudged = match api.patch(&name, &PatchParams::default(), &patch).await {
                // The set was deleted meanwhile; the next check accounts for that.
                Err(kube::Error::Api(status)) if status.is_not_found() => break,
                answer => answer.doing("nudge the set")?,
            };
            *nudges.entry(nudged.metadata.uid.unwrap_or_default()).or_default() += 1;
            let generation = nudged.metadata.generation.unwrap_or(0);
            until(cluster, watched, "the nudge observed", |objects| {
                match objects.get(&(SET, name.clone())) {
                    Some(set) if set["status"]["observedGeneration"].as_i64().unwrap_or(0) < generation => {
                        Err(format!("{}", set["status"]))
                    }
                    _ => Ok(()),
                }
            })
            .await?;
        }
    }
    Ok(())
}

/// The objects that were created, deleted or changed.
fn changed(before: &Fingerprint, after: &Fingerprint) -> Vec<String> {
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let moved = keys.into_iter().filter(|key| before.get(key) != after.get(key));
    moved.map(|(kind, name)| format!("{kind} {name}")).collect()
}

type Fingerprint = BTreeMap<(&'static str, String), Value>;

/// What must not change at rest: every version, but of a set only its status.
fn fingerprint(objects: &Objects) -> Fingerprint {
    let kept = objects.iter().filter(|((kind, _), _)| *kind != EVENT);
    kept.map(|(key, object)| {
        let print = if key.0 == SET {
            let mut status = object["status"].clone();
            status["observedGeneration"] = Value::Null;
            status
        } else {
            object["metadata"]["resourceVersion"].clone()
        };
        (key.clone(), print)
    })
    .collect()
}

/// Describes something that is bound to change by itself.
pub(crate) fn unsettled(objects: &Objects, programme: &Programme) -> Option<String> {
    let uids: BTreeSet<_> = objects.values().map(|object| uid(&object["metadata"])).collect();
    let owners = |object: &Value| {
        object["metadata"]["ownerReferences"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    };
    for ((kind, name), object) in objects.iter().filter(|((kind, _), _)| *kind != EVENT) {
        let why = if owners(object).iter().any(|owner| !uids.contains(uid(owner))) {
            Some("has an owner that is gone".to_owned())
        } else {
            match *kind {
                POD => pod_moves(objects, name, object, programme),
                CLAIM => claim_moves(objects, name, object),
                SET => set_moves(objects, object),
                JOB => job_moves(objects, object),
                _ => is_terminating(object).then(|| "is going".to_owned()),
            }
        };
        if let Some(why) = why {
            return Some(format!("{kind} {name} {why}"));
        }
    }
    None
}

fn pod_moves(objects: &Objects, name: &str, pod: &Value, programme: &Programme) -> Option<String> {
    if is_terminating(pod) {
        return Some("is going".to_owned());
    }
    let tracked = finalizers(pod).any(|finalizer| finalizer == "batch.kubernetes.io/job-tracking");
    match pod["status"]["phase"].as_str() {
        Some("Succeeded" | "Failed") => tracked.then(|| "is yet to be counted".to_owned()),
        Some("Running") if ends_by_itself(pod) && !programme.jobs_run_on => Some("will end".to_owned()),
        Some("Running") => {
            let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
            let never = !ends_by_itself(pod)
                && (programme.unready.contains(name) || programme.broken.contains(image));
            (is_ready(pod) == never).then(|| format!("is ready: {}, and should not be", is_ready(pod)))
        }
        // A pod whose claim is being deleted waits forever.
        phase => {
            let waits = claims_of(pod)
                .any(|claim| objects.get(&(CLAIM, claim.to_owned())).is_none_or(is_terminating));
            (!waits).then(|| format!("is {}", phase.unwrap_or("new")))
        }
    }
}

fn claim_moves(objects: &Objects, name: &str, claim: &Value) -> Option<String> {
    if is_terminating(claim) {
        return (!is_used(objects, name)).then(|| "is going".to_owned());
    }
    (claim["status"]["phase"] != "Bound").then(|| "is not bound".to_owned())
}

/// Whether a pod keeps the claim from being deleted. A finished pod does so too, as long as it exists.
fn is_used(objects: &Objects, claim: &str) -> bool {
    of_kind(objects, POD).any(|(_, pod)| claims_of(pod).any(|one| one == claim))
}

/// Whether the claim of a deleted pod blocks the set forever: each waits for the other.
fn is_held_by_a_claim(objects: &Objects, set: &Value) -> bool {
    finalizers(set).any(|finalizer| finalizer == "foregroundDeletion")
        && of_kind(objects, CLAIM).any(|(name, claim)| {
            let owners = claim["metadata"]["ownerReferences"].as_array();
            let blocks = owners
                .into_iter()
                .flatten()
                .any(|owner| uid(owner) == uid(&set["metadata"]) && owner["blockOwnerDeletion"] == true);
            blocks && is_terminating(claim) && is_used(objects, name)
        })
}

fn set_moves(objects: &Objects, set: &Value) -> Option<String> {
    let status = &set["status"];
    let own: Vec<_> = of_kind(objects, POD)
        .filter(|(_, pod)| pod["metadata"]["ownerReferences"][0]["uid"] == set["metadata"]["uid"])
        .collect();
    let ready = own
        .iter()
        .filter(|(_, pod)| is_ready(pod) && !has_ended(pod))
        .count();
    let counts = |field: &str, count: usize| status[field].as_u64().unwrap_or(0) == count as u64;
    if is_terminating(set) && !is_held_by_a_claim(objects, set) {
        Some("is going".to_owned())
    } else if set["metadata"]["generation"] != status["observedGeneration"] {
        Some("has not been looked at".to_owned())
    } else if !counts("replicas", own.len()) || !counts("readyReplicas", ready) {
        Some(format!(
            "has {} pods, {ready} ready, and reports {status}",
            own.len()
        ))
    } else {
        None
    }
}

fn job_moves(objects: &Objects, job: &Value) -> Option<String> {
    let (spec, status) = (&job["spec"], &job["status"]);
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let live = of_kind(objects, POD)
        .filter(|(_, pod)| pod["metadata"]["ownerReferences"][0]["uid"] == job["metadata"]["uid"])
        .filter(|(_, pod)| !has_ended(pod));
    let (live, ready) = live.fold((0, 0), |(live, ready), (_, pod)| {
        (live + 1, ready + u64::from(is_ready(pod)))
    });
    let holds = |kind: &str| {
        let conditions = status["conditions"].as_array().into_iter().flatten();
        conditions
            .into_iter()
            .any(|one| one["type"] == kind && one["status"] == "True")
    };
    let uncounted = &status["uncountedTerminatedPods"];
    let settled_counts = number(&status["active"]) == live
        && number(&status["ready"]) == ready
        && number(&status["terminating"]) == 0
        && ["succeeded", "failed"]
            .iter()
            .all(|list| uncounted[list].is_null());
    let wanted = if holds("Complete") || holds("Failed") || spec["suspend"] == true {
        0
    } else {
        let parallelism = spec["parallelism"].as_u64().unwrap_or(1);
        let left = spec["completions"]
            .as_u64()
            .map(|all| all.saturating_sub(number(&status["succeeded"])));
        left.map_or(parallelism, |left| left.min(parallelism))
    };
    if is_terminating(job) {
        Some("is going".to_owned())
    } else if status["startTime"].is_null() && spec["suspend"] != true {
        Some("has not begun".to_owned())
    } else if holds("Suspended") != (spec["suspend"] == true) && !holds("Complete") && !holds("Failed") {
        Some("is being suspended or resumed".to_owned())
    } else if wanted > 0 && !spec["activeDeadlineSeconds"].is_null() {
        Some("will run out of time".to_owned())
    } else if !settled_counts || live != wanted {
        Some(format!(
            "has {live} of {wanted} pods, {ready} ready, and reports {status}"
        ))
    } else if wanted == 0
        && spec["suspend"] != true
        && !holds("Complete")
        && !holds("Failed")
        && spec["parallelism"] != 0
    {
        Some("is about to end".to_owned())
    } else {
        None
    }
}

fn uid(holder: &Value) -> &str {
    holder["uid"].as_str().unwrap_or_default()
}

fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn has_ended(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))
}

fn finalizers(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten()
}

fn ends_by_itself(pod: &Value) -> bool {
    pod["spec"]["restartPolicy"] != "Always"
}

pub(crate) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|all| {
        all.iter()
            .any(|one| one["type"] == "Ready" && one["status"] == "True")
    })
}

fn claims_of(pod: &Value) -> impl Iterator<Item = &str> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str())
}
