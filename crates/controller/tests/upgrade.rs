//! An operator whose definitions are older than it is forgets nothing.

#![allow(clippy::disallowed_methods, reason = "tests name their own objects")]
#![allow(clippy::unwrap_used, reason = "a test may end where it cannot go on")]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client};
use serde_json::json;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_clock::Clock;
use stateward_cluster::Cluster;
use stateward_controller::{Operator, Options};

/// Applies the definitions, with or without the fields that this version adds to the status.
async fn define(client: &Client, with_state: bool) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in stateward_api::definitions() {
        let name = definition.metadata.name.clone().unwrap();
        let mut definition = json!(definition);
        let status = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
        if let (Some(status), false) = (definition.pointer_mut(status), with_state) {
            status.as_object_mut().unwrap().remove("state");
        }
        let apply = PatchParams::apply("test").force();
        let patch = Patch::Apply(definition);
        definitions.patch(&name, &apply, &patch).await.unwrap();
        let served = await_condition(definitions.clone(), &name, conditions::is_crd_established());
        served.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollout_is_remembered_although_its_definition_is_older_than_the_operator() {
    let clock = Clock::starting_at(Timestamp::constant(1_767_225_600, 0), 1.0);
    let cluster = Cluster::start(stateward_cluster::Options::at(clock.clone()));
    let client = cluster.client("admin");
    define(&client, false).await;
    let resource = ApiResource::erase::<RolloutPlugin>(&());
    let raw: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": "db"},
        "spec": {
            "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
            "plugin": {"name": "statefulset"}, "strategy": {"canary": {"steps": [{"setWeight": 20}, {"pause": {}}]}},
        },
    });
    let object = serde_json::from_value(object).unwrap();
    raw.create(&PostParams::default(), &object).await.unwrap();
    let now = "2025-12-31T23:00:00Z";
    let status = json!({"status": {
        "workloadUid": "uid", "stableRevision": "db-1", "stableTemplateHash": "h", "updatedRevision": "db-2",
        "currentStepIndex": 1, "currentStepHash": "s", "currentStepStartedAt": now,
    }});
    raw.patch_status("db", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();

    let options = Options {
        clock,
        namespaces: Vec::new(),
    };
    let operator = tokio::spawn(Operator::new(cluster.client("operator"), options).run());
    tokio::time::sleep(Duration::from_secs(120)).await;
    let kept = raw.get("db").await.unwrap();
    assert_eq!(kept.data["status"]["workloadUid"], "uid", "{}", kept.data);
    assert_eq!(kept.data["status"]["currentStepStartedAt"], now);

    define(&client, true).await;
    let rollouts: Api<RolloutPlugin> = Api::namespaced(client.clone(), "default");
    let moved = await_condition(rollouts, "db", |object: Option<&RolloutPlugin>| {
        let status = object.and_then(|object| object.status.as_ref());
        status.is_some_and(|status| status.state.rollout.is_some() && status.former.workload_uid.is_none())
    });
    let moved = tokio::time::timeout(Duration::from_secs(600), moved).await;
    let status = moved.unwrap().unwrap().unwrap().status.unwrap();
    let rollout = status.state.rollout.unwrap();
    assert_eq!((rollout.revision.as_str(), rollout.step_index), ("db-2", 1));
    operator.abort();
}
