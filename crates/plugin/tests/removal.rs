//! A pod is removed by its identity, not by its name.

#![allow(clippy::unwrap_used, reason = "a test may end where it cannot go on")]

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::PostParams;
use rstest::rstest;
use serde_json::json;
use stateward_clock::Clock;
use stateward_cluster::{Cluster, Options};
use stateward_plugin::statefulset::{Caches, StatefulSets};
use stateward_plugin::{Done, Manager, ResourcePlugin, Target};

#[rstest]
#[case::by_eviction(true)]
#[case::by_deletion(false)]
#[tokio::test(start_paused = true)]
async fn a_pod_that_took_the_place_of_another_is_left_alone(#[case] serving: bool) {
    let clock = Clock::starting_at(Timestamp::constant(1_767_225_600, 0), 1.0);
    let cluster = Cluster::start(Options::at(clock));
    let client = cluster.client("operator");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "ns"}})).unwrap();
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), "ns");
    let pod = json!({"metadata": {"name": "db-0"}, "spec": {"containers": [{"name": "main", "image": "x"}]}});
    let pod = serde_json::from_value(pod).unwrap();
    let pod = pods.create(&PostParams::default(), &pod).await.unwrap();
    let uid = pod.metadata.uid.unwrap();

    let (caches, _changed) = Caches::new();
    let plugin = StatefulSets::new(client, caches);
    let target = Target {
        namespace: "ns".into(),
        name: "db".into(),
        manager: Manager {
            kind: "RolloutPlugin".into(),
            name: "db".into(),
            uid: "1".into(),
        },
    };
    let refused = plugin
        .abort(&target, "db-0", "the one before", serving)
        .await
        .unwrap();
    assert_eq!(refused, Done::Unchanged);
    assert!(pods.get_opt("db-0").await.unwrap().is_some());

    let removed = plugin.abort(&target, "db-0", &uid, serving).await.unwrap();
    assert_eq!(removed, Done::Changed);
    assert!(pods.get_opt("db-0").await.unwrap().is_none());
}
