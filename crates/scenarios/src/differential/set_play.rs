//! Applies an operation to a StatefulSet.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stateward_core::revision::RevisionName;
use stateward_kubelet::{Behaviour, Match};

use super::objects::POD;
use super::play::{Stage, text};
use super::set_op::{Lost, Propagation, SET, SetOp, Template};
use super::settle::until;
use crate::harness::{Doing, Outcome};

/// Long enough to remove the rule before it matches the pod's successor.
const EVICTED_AFTER: Duration = Duration::from_secs(2);

pub(crate) async fn apply(stage: &mut Stage, op: &SetOp) -> Outcome {
    let doing = op.to_string();
    match op {
        SetOp::Create(spec) => create::<StatefulSet>(stage, spec.to_manifest()).await,
        SetOp::Template(template) => {
            patch_spec(stage, &doing, json!({"template": template.to_value()})).await
        }
        SetOp::Scale(replicas) => patch_spec(stage, &doing, json!({"replicas": replicas})).await,
        SetOp::Strategy(strategy) => {
            patch_spec(stage, &doing, json!({"updateStrategy": strategy.to_value()})).await
        }
        SetOp::Ordinals(start) => patch_spec(stage, &doing, json!({"ordinals": {"start": start}})).await,
        SetOp::HistoryLimit(limit) => patch_spec(stage, &doing, json!({"revisionHistoryLimit": limit})).await,
        SetOp::Retention(retention) => {
            let policy = json!({"persistentVolumeClaimRetentionPolicy": retention.to_value()});
            patch_spec(stage, &doing, policy).await
        }
        SetOp::DeletePod(ordinal) => delete_pod(stage, *ordinal, &DeleteParams::default()).await,
        SetOp::ForceDeletePod(ordinal) => {
            delete_pod(stage, *ordinal, &DeleteParams::default().grace_period(0)).await
        }
        SetOp::Unready(ordinal) => {
            stage.programme.unready.insert(pod_name(*ordinal));
            stage
                .cluster
                .pods()
                .program(Match::pod(pod_name(*ordinal)), Behaviour::never_ready());
            Ok(())
        }
        SetOp::Ready(ordinal) => {
            stage.programme.unready.remove(&pod_name(*ordinal));
            stage.cluster.pods().forget(&Match::pod(pod_name(*ordinal)));
            Ok(())
        }
        SetOp::Break(template) => {
            stage.programme.broken.insert(template.image());
            stage
                .cluster
                .pods()
                .program(Match::image(template.image()), Behaviour::never_ready());
            Ok(())
        }
        SetOp::Heal(template) => {
            stage.programme.broken.remove(&template.image());
            stage.cluster.pods().forget(&Match::image(template.image()));
            Ok(())
        }
        SetOp::Evict(ordinal) => evict(stage, *ordinal).await,
        SetOp::DeleteRevision(lost) => delete_revision(stage, *lost).await,
        SetOp::TakeRevisionName(template) => take_revision_name(stage, *template).await,
        SetOp::Disown(ordinal) => label(stage, *ordinal, Value::Null).await,
        SetOp::Reclaim(ordinal) => label(stage, *ordinal, SET.into()).await,
        SetOp::Delete(propagation) => {
            let api = api::<StatefulSet>(stage);
            api.delete(SET, &propagation.to_params())
                .await
                .doing(doing)
                .map(drop)
        }
    }
}

impl Propagation {
    pub(crate) fn to_params(self) -> DeleteParams {
        match self {
            Self::Background => DeleteParams::background(),
            Self::Foreground => DeleteParams::foreground(),
            Self::Orphan => DeleteParams::orphan(),
        }
    }
}

pub(crate) fn api<K>(stage: &Stage) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
{
    Api::namespaced(stage.cluster.client(), stage.cluster.namespace())
}

pub(crate) async fn create<K>(stage: &Stage, manifest: Value) -> Outcome
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    let doing = format!("create a {}", K::kind(&()));
    let object: K = serde_json::from_value(manifest)
        .map_err(kube::Error::SerdeError)
        .doing(doing.clone())?;
    api::<K>(stage)
        .create(&PostParams::default(), &object)
        .await
        .doing(doing)
        .map(drop)
}

async fn patch_spec(stage: &Stage, doing: &str, spec: Value) -> Outcome {
    let patch = Patch::Merge(json!({"spec": spec}));
    let patched = api::<StatefulSet>(stage)
        .patch(SET, &PatchParams::default(), &patch)
        .await;
    patched.doing(doing).map(drop)
}

async fn delete_pod(stage: &Stage, ordinal: u32, params: &DeleteParams) -> Outcome {
    let name = pod_name(ordinal);
    let deleted = api::<Pod>(stage).delete(&name, params).await;
    deleted.doing(format!("delete pod {name}")).map(drop)
}

async fn label(stage: &Stage, ordinal: u32, value: Value) -> Outcome {
    let name = pod_name(ordinal);
    let patch = Patch::Merge(json!({"metadata": {"labels": {"app": value}}}));
    let patched = api::<Pod>(stage)
        .patch(&name, &PatchParams::default(), &patch)
        .await;
    patched.doing(format!("label pod {name}")).map(drop)
}

/// Makes the kubelet evict this pod, but not its successor.
async fn evict(stage: &Stage, ordinal: u32) -> Outcome {
    let name = pod_name(ordinal);
    // The rule might still match the pod's successor, which would then be Ready for a moment: if pods must not be Ready, the result would
    // be random.
    if stage.programme.unready.contains(&name) || !stage.programme.broken.is_empty() {
        return Ok(());
    }
    let pod = api::<Pod>(stage)
        .get(&name)
        .await
        .doing(format!("get pod {name}"))?;
    let rule = Match::pod(&name);
    stage
        .cluster
        .pods()
        .program(rule.clone(), Behaviour::evicted(EVICTED_AFTER));
    let evicted = until(
        &stage.cluster,
        &stage.watched,
        "an evicted pod",
        |objects| match objects.get(&(POD, name.clone())) {
            Some(now)
                if text(now, "/metadata/uid") == pod.metadata.uid.as_deref().unwrap_or_default()
                    && text(now, "/status/phase") != "Failed" =>
            {
                Err(text(now, "/status/phase").to_owned())
            }
            _ => Ok(()),
        },
    )
    .await;
    stage.cluster.pods().forget(&rule);
    evicted
}

async fn delete_revision(stage: &Stage, lost: Lost) -> Outcome {
    let revisions = api::<ControllerRevision>(stage);
    let status = api::<StatefulSet>(stage)
        .get_opt(SET)
        .await
        .doing("get the set")?
        .and_then(|set| set.status)
        .unwrap_or_default();
    let name = match lost {
        Lost::Current => status.current_revision,
        Lost::Update => status.update_revision,
        Lost::Oldest => {
            let all = revisions
                .list(&ListParams::default())
                .await
                .doing("list revisions")?;
            all.items
                .into_iter()
                .min_by_key(|one| one.revision)
                .and_then(|one| one.metadata.name)
        }
    };
    let Some(name) = name else { return Ok(()) };
    let deleted = revisions.delete(&name, &DeleteParams::default()).await;
    deleted.doing(format!("delete revision {name}")).map(drop)
}

async fn take_revision_name(stage: &Stage, template: Template) -> Outcome {
    let set = api::<StatefulSet>(stage).get(SET).await.doing("get the set")?;
    let status = set.status.unwrap_or_default();
    let spec = set.spec.unwrap_or_default();
    let mut taken = serde_json::to_value(&spec.template)
        .map_err(kube::Error::SerdeError)
        .doing("read the template")?;
    template.replace_in(&mut taken);
    let name = RevisionName::of(SET, &taken, status.collision_count.unwrap_or(0));
    let squatter = json!({"metadata": {"name": name.as_str()}, "data": {"not": "a template"}, "revision": 7});
    create::<ControllerRevision>(stage, squatter).await
}

fn pod_name(ordinal: u32) -> String {
    format!("{SET}-{ordinal}")
}
