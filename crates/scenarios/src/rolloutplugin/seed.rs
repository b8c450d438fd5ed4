//! The published page of the StatefulSet plugin: its manifests, its walk-through and its test script, unchanged.

use std::path::Path;

use kube::Api;
use kube::api::PostParams;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stateward_api::rolloutplugin::RolloutPlugin;

use crate::harness::{Cluster, Doing, Failure, Outcome, partition};
use crate::scenarios;

scenarios![the_manifests_of_the_page_do_what_it_says, the_test_script_passes,];

const SET: &str = include_str!("../../../../test/rolloutplugin/statefulset.yaml");
const ROLLOUT: &str = include_str!("../../../../test/rolloutplugin/rolloutplugin.yaml");

/// Creates a manifest, unchanged except for the namespace: every scenario has its own.
async fn create<K>(cluster: &Cluster, text: &str) -> Outcome
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::Serialize
        + DeserializeOwned,
{
    let text = text.replace("argo-rollouts", cluster.namespace());
    let object: K = serde_saphyr::from_str(&text)
        .map_err(|error| cluster.unmet("a manifest that can be read", error.to_string()))?;
    Api::<K>::namespaced(cluster.client(), cluster.namespace())
        .create(&PostParams::default(), &object)
        .await
        .doing("create what the page prints")
        .map(drop)
}

/// S000-04, S000-05, S000-06, S000-07
async fn the_manifests_of_the_page_do_what_it_says(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let _kubelet = cluster.play_everybodys_pods();
    create::<k8s_openapi::api::apps::v1::StatefulSet>(cluster, SET).await?;
    let set = cluster.existing("my-statefulset");
    set.expect_images(["1.21"; 5]).await?;
    set.expect_ready().await?;
    create::<RolloutPlugin>(cluster, ROLLOUT).await?;
    let rollout = cluster.existing_rollout("my-statefulset-rollout");
    rollout.expect_phase("Successful").await?;

    // kubectl set image statefulset/my-statefulset nginx=nginx:1.22
    let containers: Value = json!([
        {"name": "nginx", "image": "nginx:1.22", "ports": [{"containerPort": 80}]},
    ]);
    let template = json!({"template": {"spec": {"containers": containers}}});
    set.patch("set image nginx=nginx:1.22", template).await?;
    for (step, expected, images) in [
        (1, 4, ["1.21", "1.21", "1.21", "1.21", "1.22"]),
        (3, 3, ["1.21", "1.21", "1.21", "1.22", "1.22"]),
        (5, 2, ["1.21", "1.21", "1.22", "1.22", "1.22"]),
        (7, 1, ["1.21", "1.22", "1.22", "1.22", "1.22"]),
    ] {
        let status = rollout.expect_step(step, "Paused").await?;
        set.expect_images(images).await?;
        let seen = set.get().await?;
        let told = seen.status.clone().unwrap_or_default();
        let counts = (status.replicas, status.updated_replicas, status.ready_replicas);
        if partition(&seen) != Some(expected)
            || told.current_revision == told.update_revision
            || counts != (Some(5), told.updated_replicas, Some(5))
        {
            let seen = format!("partition {:?}, {counts:?}, {told:?}", partition(&seen));
            return Err(cluster.unmet(format!("partition {expected} at step {step}"), seen));
        }
        // Five minutes are long in real time.
        rollout.promote().await?;
    }
    rollout.expect_phase("Successful").await?;
    set.expect_images(["1.22"; 5]).await
}

/// S000-08
async fn the_test_script_passes(cluster: &mut Cluster) -> Outcome {
    let Some(kubeconfig) = cluster.kubeconfig().map(Path::to_owned) else {
        return Err(Failure::NotHere("kubectl cannot reach it".into()));
    };
    cluster.with_operator().await?;
    let _kubelet = cluster.play_everybodys_pods();
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../test/rolloutplugin/test-statefulset-canary.sh"
    );
    let output = tokio::process::Command::new(script)
        .env("KUBECONFIG", kubeconfig)
        .env("NAMESPACE", cluster.namespace())
        .env("PATH", crate::kubectl::path_to_kubectl())
        .output()
        .await
        .map_err(|error| Failure::NotHere(format!("cannot run the script: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(cluster.unmet(
        "the script passes",
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}
