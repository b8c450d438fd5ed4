//! Objects in one namespace that pretend to belong to a rollout in another, with an operator that manages both.

use std::time::Duration;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stateward_api::analysis::{AnalysisRun, AnalysisTemplate, Phase};

use super::analysis::{accompanied, analysed, expect_runs, metric};
use crate::harness::{Cluster, Doing, Outcome};
use crate::scenarios;

scenarios![
    a_forged_run_opens_no_step,
    forged_pods_claims_and_revisions_are_not_counted,
    a_template_of_another_namespace_is_not_taken,
];

/// Keeps the forged objects from being garbage-collected.
const FINALIZER: &str = "example.com/kept";

const OTHER: &str = "other";

async fn other_namespace(cluster: &Cluster) -> Outcome {
    let namespace: Namespace = read(json!({"metadata": {"name": OTHER}}))?;
    Api::all(cluster.client())
        .create(&PostParams::default(), &namespace)
        .await
        .doing("create the other namespace")
        .map(drop)
}

fn read<K: DeserializeOwned>(object: Value) -> Outcome<K> {
    serde_json::from_value(object)
        .map_err(kube::Error::SerdeError)
        .doing("read what is forged")
}

/// A copy of the object in the other namespace, changed by `patch`.
async fn forge<K>(cluster: &Cluster, object: &K, patch: Value) -> Outcome
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Serialize + DeserializeOwned,
    K: std::fmt::Debug,
{
    let name = object.name_any();
    let mut forged = json!(object);
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "generateName",
    ] {
        forged["metadata"]
            .as_object_mut()
            .map(|fields| fields.remove(field));
    }
    forged["metadata"]["namespace"] = json!(OTHER);
    forged["metadata"]["finalizers"] = json!([FINALIZER]);
    json_patch::merge(&mut forged, &patch);
    let status = forged["status"].clone();
    let api: Api<K> = Api::namespaced(cluster.client(), OTHER);
    api.create(&PostParams::default(), &read(forged)?)
        .await
        .doing(format!("forge {name}"))?;
    if status.is_object() {
        let patch = Patch::Merge(json!({ "status": status }));
        // Without a status subresource, `create` has already set the status.
        let _ = api.patch_status(&name, &PatchParams::default(), &patch).await;
    }
    Ok(())
}

async fn a_forged_run_opens_no_step(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator_of_all_namespaces().await?;
    other_namespace(cluster).await?;
    cluster.metrics().says("errors", [0.0]);
    let three = json!([metric("errors", json!({"count": 3, "interval": "1h"}))]);
    let (db, rollout) = analysed(cluster, three).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Progressing").await?;
    let runs = expect_runs(cluster, &[Phase::Running]).await?;
    let over = json!({"status": {"phase": "Successful"}, "spec": {"terminate": true}});
    forge(cluster, &runs[0], over).await?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    rollout.expect_step(1, "Progressing").await?;
    db.expect_images(["v1", "v1", "v2"]).await?;
    let forged: Api<AnalysisRun> = Api::namespaced(cluster.client(), OTHER);
    forged
        .delete(&runs[0].name_any(), &DeleteParams::default())
        .await
        .doing("delete the forged run")?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    rollout.expect_step(1, "Progressing").await?;
    expect_runs(cluster, &[Phase::Running]).await.map(drop)
}

async fn forged_pods_claims_and_revisions_are_not_counted(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator_of_all_namespaces().await?;
    other_namespace(cluster).await?;
    cluster.metrics().says("errors", [0.0]);
    let (db, rollout) = accompanied(cluster, json!([metric("errors", json!({"interval": "1h"}))])).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    let told = rollout.get().await?.status.unwrap_or_default();
    let pods: Api<Pod> = Api::namespaced(cluster.client(), cluster.namespace());
    // A pod of the new version that is not ready, and one of the old version in its place.
    for (name, image) in [("db-2", "example.com/db:v1"), ("db-1", "example.com/db:v2")] {
        let pod = pods.get(name).await.doing("read a pod")?;
        let containers =
            json!([{"name": pod.spec.as_ref().map(|spec| spec.containers[0].name.clone()), "image": image}]);
        let unready = json!([{"type": "Ready", "status": "False"}]);
        let patch =
            json!({"spec": {"containers": containers}, "status": {"phase": "Failed", "conditions": unready}});
        forge(cluster, &pod, patch).await?;
    }
    let revisions: Api<ControllerRevision> = Api::namespaced(cluster.client(), cluster.namespace());
    let listed = revisions
        .list(&Default::default())
        .await
        .doing("list revisions")?;
    for revision in &listed {
        let evil = json!({"data": {"spec": {"template": {"spec": {"serviceAccountName": "admin"}}}}});
        forge(cluster, revision, evil).await?;
    }
    let set = db.get().await?;
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": set.uid(), "controller": true,
    }]);
    let claim: PersistentVolumeClaim = read(json!({
        "metadata": {"name": "data-db-2", "labels": set.spec.and_then(|spec| spec.selector.match_labels), "ownerReferences": owner},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }))?;
    forge(cluster, &claim, json!({})).await?;
    let runs = expect_runs(cluster, &[Phase::Running]).await?;
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]});
    let job: Job = read(json!({
        "metadata": {"name": "forged", "labels": {"stateward.dev/analysis-run": runs[0].uid()}},
        "spec": {"template": {"spec": pod}},
    }))?;
    forge(cluster, &job, json!({})).await?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let now = rollout.get().await?.status.unwrap_or_default();
    let rows = |status: &stateward_api::rollout::RolloutStatus| (status.pods.clone(), status.ready_replicas);
    if rows(&now) != rows(&told) {
        return Err(cluster.unmet(format!("{:?}", rows(&told)), format!("{:?}", rows(&now))));
    }
    let forged: Api<Pod> = Api::namespaced(cluster.client(), OTHER);
    for name in ["db-1", "db-2"] {
        let unfinished = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        forged
            .patch(name, &PatchParams::default(), &unfinished)
            .await
            .doing("let a forged pod go")?;
        let at_once = DeleteParams::default().grace_period(0);
        match forged.delete(name, &at_once).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error).doing("delete a forged pod"),
        }
    }
    rollout.abort().await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout
        .expect_message("every pod is back on the stable version")
        .await
        .map(drop)
}

async fn a_template_of_another_namespace_is_not_taken(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator_of_all_namespaces().await?;
    other_namespace(cluster).await?;
    let template: AnalysisTemplate = read(json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate", "metadata": {"name": "checks"},
        "spec": {"metrics": [metric("errors", json!({}))]},
    }))?;
    forge(cluster, &template, json!({})).await?;
    let db = cluster.statefulset("db").replicas(1).start().await?;
    let steps = json!([{"setWeight": 50}, {"analysis": {"templates": [{"templateName": "checks"}]}}]);
    let rollout = cluster.rollout("db").steps(steps).create().await?;
    rollout
        .expect_condition("InvalidSpec", "True", "there is no AnalysisTemplate checks")
        .await?;
    db.expect_rest(["v1"]).await
}
