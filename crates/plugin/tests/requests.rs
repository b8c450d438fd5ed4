//! The plugin's requests: each applies to the observed object only, and changes no more than requested.

#![allow(clippy::disallowed_methods, reason = "tests name their own objects")]
#![allow(clippy::unwrap_used, reason = "a test may end where it cannot go on")]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt};
use rstest::rstest;
use serde_json::json;
use stateward_clock::Clock;
use stateward_cluster::{Cluster, Options};
use stateward_core::plan::{Share, Weight};
use stateward_core::world::NoWorkload;
use stateward_plugin::statefulset::{Caches, StatefulSets};
use stateward_plugin::{Done, Manager, PluginError, ResourcePlugin, Target, Version, Watches};
use tokio::task::JoinHandle;

/// A cluster with the namespace `ns`. It stops when it is dropped.
async fn cluster() -> (Cluster, Client) {
    let clock = Clock::starting_at(Timestamp::constant(1_767_225_600, 0), 1.0);
    let cluster = Cluster::start(Options::at(clock));
    let client = cluster.client("operator");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "ns"}})).unwrap();
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    (cluster, client)
}

fn target() -> Target {
    Target {
        namespace: "ns".into(),
        name: "db".into(),
        manager: Manager {
            kind: "RolloutPlugin".into(),
            name: "db".into(),
            uid: "1".into(),
        },
    }
}

/// A set of `replicas` pods.
async fn set(client: &Client, replicas: i32) -> Api<StatefulSet> {
    let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "ns");
    let set = json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 5}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "main", "image": "x"}]},
            },
        },
    });
    let set = serde_json::from_value(set).unwrap();
    sets.create(&PostParams::default(), &set).await.unwrap();
    sets
}

/// A pod of a set that is not Ready, its UID, a plugin that has observed it, and the task that keeps the plugin's cache current.
async fn pod_of_a_set(client: &Client) -> (Api<Pod>, String, StatefulSets, JoinHandle<()>) {
    set(client, 1).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "ns");
    let there = |pod: Option<&Pod>| pod.is_some();
    let pod = await_condition(pods.clone(), "db-0", there).await.unwrap();
    let (caches, _changed) = Caches::new();
    let (filled, watching) = (caches.clone(), client.clone());
    let watch = tokio::spawn(async move { filled.run(watching, Some("ns"), &Watches::default()).await });
    caches.synced().await;
    let plugin = StatefulSets::new(client.clone(), caches);
    (pods, pod.unwrap().uid().unwrap(), plugin, watch)
}

/// Whether the same pod still exists.
async fn is_there(pods: &Api<Pod>, uid: &str) -> bool {
    let pod = pods.get_opt("db-0").await.unwrap();
    pod.is_some_and(|pod| pod.uid().as_deref() == Some(uid) && pod.metadata.deletion_timestamp.is_none())
}

#[rstest]
#[case::by_eviction(true)]
#[case::by_deletion(false)]
#[tokio::test(start_paused = true)]
async fn a_pod_that_took_the_place_of_another_is_left_alone(#[case] serving: bool) {
    let (_cluster, client) = cluster().await;
    let (pods, uid, plugin, _watch) = pod_of_a_set(&client).await;
    let refused = plugin
        .replace_pod(&target(), "db-0", "the one before", serving)
        .await
        .unwrap();
    assert_eq!(refused, Done::Unchanged);
    assert!(is_there(&pods, &uid).await);

    let removed = plugin
        .replace_pod(&target(), "db-0", &uid, serving)
        .await
        .unwrap();
    assert_eq!(removed, Done::Changed);
    assert!(!is_there(&pods, &uid).await);
}

/// Whether or not the watch has shown it: a pod that was not Ready may serve clients by now (invariant 19).
#[rstest]
#[case::and_was_seen(true)]
#[case::and_was_not_seen(false)]
#[tokio::test(start_paused = true)]
async fn a_pod_that_has_become_ready_is_left_alone(#[case] seen: bool) {
    let (_cluster, client) = cluster().await;
    let (pods, uid, plugin, watch) = pod_of_a_set(&client).await;
    if !seen {
        watch.abort();
    }
    let ready = json!({"status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }});
    pods.patch_status("db-0", &PatchParams::default(), &Patch::Merge(ready))
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let removed = plugin.replace_pod(&target(), "db-0", &uid, false).await.unwrap();
    assert_eq!(removed, Done::Unchanged);
    assert!(is_there(&pods, &uid).await);
}

/// In one request: between two requests Kubernetes would roll out one of the templates.
#[rstest]
#[case::guarded(Share::NONE, 10)]
#[case::released(Share::ALL, 0)]
#[tokio::test(start_paused = true)]
async fn a_template_is_restored_with_the_partition_of_a_share(#[case] share: Share, #[case] expected: i32) {
    let (_cluster, client) = cluster().await;
    let sets = set(&client, 10).await;
    let (caches, _changed) = Caches::new();
    let (filled, watching) = (caches.clone(), client.clone());
    tokio::spawn(async move { filled.run(watching, Some("ns"), &Watches::default()).await });
    caches.synced().await;
    let plugin = StatefulSets::new(client, caches);
    let before = plugin.snapshot(&target(), None).await.unwrap().unwrap();
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "y"}]}}}});
    let (params, patch) = (PatchParams::default(), Patch::Strategic(image));
    let patched = sets.patch("db", &params, &patch).await.unwrap();
    let at = Version(patched.resource_version().unwrap());
    let restored = plugin.restore(&target(), &at, &before, share).await;
    assert_eq!(restored.unwrap(), Done::Changed);
    let set = sets.get("db").await.unwrap().spec.unwrap();
    assert_eq!(
        set.template.spec.unwrap().containers[0].image.as_deref(),
        Some("x")
    );
    let rolling = set.update_strategy.unwrap().rolling_update;
    assert_eq!(rolling.unwrap().partition, Some(expected));
}

#[rstest]
#[case::nothing(Share::NONE, 10)]
#[case::a_fifth(Share::Percent(Weight::new(20).unwrap()), 8)]
#[case::everything(Share::ALL, 0)]
#[tokio::test(start_paused = true)]
async fn a_share_is_a_partition_of_the_set_that_was_looked_at(#[case] share: Share, #[case] expected: i32) {
    let (_cluster, client) = cluster().await;
    let sets = set(&client, 10).await;
    let (caches, _changed) = Caches::new();
    let filled = caches.clone();
    let (watching, plugin) = (client.clone(), StatefulSets::new(client, caches.clone()));
    let filling = tokio::spawn(async move { filled.run(watching, Some("ns"), &Watches::default()).await });
    caches.synced().await;

    let looked_at = Version(sets.get("db").await.unwrap().resource_version().unwrap());
    let touch = Patch::Merge(json!({"metadata": {"labels": {"somebody": "else"}}}));
    sets.patch("db", &PatchParams::default(), &touch).await.unwrap();
    let refused = plugin.set_weight(&target(), &looked_at, share).await;
    assert!(matches!(refused, Err(PluginError::Conflict(_))), "{refused:?}");

    loop {
        let now = Version(sets.get("db").await.unwrap().resource_version().unwrap());
        match plugin.set_weight(&target(), &now, share).await {
            // The set's controller wrote first.
            Err(PluginError::Conflict(_)) => {}
            other => break assert_eq!(other.unwrap(), Done::Changed),
        }
    }
    let set = sets.get("db").await.unwrap();
    let rolling = set.spec.unwrap().update_strategy.unwrap().rolling_update;
    assert_eq!(rolling.unwrap().partition, Some(expected));
    filling.abort();
}

/// A command must not be refused, nor an object released, because the watch was interrupted when the set was created.
#[tokio::test(start_paused = true)]
async fn a_set_that_the_watch_has_not_shown_is_not_missing() {
    let (_cluster, client) = cluster().await;
    let plugin = StatefulSets::new(client.clone(), Caches::new().0);
    let seen = plugin.observe(&target()).await.unwrap().unwrap();
    assert!(
        matches!(seen.workload, Err(NoWorkload::Missing(_))),
        "{:?}",
        seen.workload
    );
    set(&client, 1).await;
    let error = plugin.observe(&target()).await.unwrap_err();
    assert!(matches!(error, PluginError::Conflict(_)), "{error}");
}

/// The problems of the spec name the invalid field; an error of a request would not.
#[tokio::test(start_paused = true)]
async fn a_set_whose_name_is_invalid_is_missing() {
    let (_cluster, client) = cluster().await;
    let plugin = StatefulSets::new(client, Caches::new().0);
    let invalid = Target {
        name: "../db".into(),
        ..target()
    };
    let seen = plugin.observe(&invalid).await.unwrap().unwrap();
    assert!(
        matches!(seen.workload, Err(NoWorkload::Missing(_))),
        "{:?}",
        seen.workload
    );
}
