//! An object that fails to deserialize does not block the others.

#![allow(clippy::disallowed_methods, reason = "tests name their own objects")]
#![allow(clippy::unwrap_used, reason = "a test may end where it cannot go on")]

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::{Value, json};
use stateward_api::analysis::{AnalysisRun, AnalysisTemplate};
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_clock::Clock;
use stateward_cluster::Cluster;
use stateward_controller::{Operator, Options};

/// CRDs without bounds, like those of Argo Rollouts.
async fn define(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for mut definition in stateward_api::definitions() {
        let name = definition.metadata.name.clone().unwrap();
        for version in &mut definition.spec.versions {
            let schema = version
                .schema
                .as_mut()
                .and_then(|schema| schema.open_api_v3_schema.as_mut());
            without_bounds(schema.unwrap());
        }
        let apply = PatchParams::apply("test");
        definitions
            .patch(&name, &apply, &Patch::Apply(definition))
            .await
            .unwrap();
        let served = kube::runtime::conditions::is_crd_established();
        await_condition(definitions.clone(), &name, served).await.unwrap();
    }
}

fn without_bounds(schema: &mut JSONSchemaProps) {
    (schema.minimum, schema.maximum, schema.pattern) = (None, None, None);
    schema
        .properties
        .iter_mut()
        .flat_map(|fields| fields.values_mut())
        .for_each(without_bounds);
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => without_bounds(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(without_bounds),
        None => {}
    }
}

async fn create<K>(client: &Client, name: &str, labels: Value, content: Value)
where
    K: kube::Resource<DynamicType = ()>,
{
    let resource = ApiResource::erase::<K>(&());
    let mut object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name, "labels": labels},
    });
    for (field, value) in content.as_object().unwrap() {
        object[field] = value.clone();
    }
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

fn template(count: i64) -> Value {
    let metric =
        json!({"name": "m", "interval": "1m", "count": count, "provider": {"prometheus": {"query": "up"}}});
    json!({"spec": {"metrics": [metric]}})
}

fn rollout(template: &str, pause: i64) -> Value {
    let analysis = json!({"templates": [{"templateName": template}]});
    let steps = json!([{"setWeight": 20}, {"analysis": analysis}, {"pause": {"duration": pause}}]);
    json!({"spec": {
        "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "nobody"},
        "plugin": {"name": "statefulset"}, "strategy": {"canary": {"steps": steps}},
    }})
}

/// The status message of an object, once there is one.
async fn told(client: &Client, name: &str) -> String {
    let api: Api<RolloutPlugin> = Api::namespaced(client.clone(), "default");
    let told = await_condition(api, name, |object: Option<&RolloutPlugin>| {
        let status = object.and_then(|object| object.status.as_ref());
        status.is_some_and(|status| !status.message.is_empty())
    });
    let told = tokio::time::timeout(Duration::from_secs(600), told)
        .await
        .unwrap();
    told.unwrap().unwrap().status.unwrap().message
}

/// The events about an object, once there is one.
async fn events(client: &Client, name: &str) -> String {
    let api: Api<Event> = Api::namespaced(client.clone(), "default");
    let about = watcher::Config::default().fields(&format!("involvedObject.name={name}"));
    let mut told = watcher(api, about).applied_objects().boxed();
    let told = tokio::time::timeout(Duration::from_secs(600), told.try_next())
        .await
        .unwrap();
    told.unwrap().unwrap().message.unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_that_cannot_be_read_hide_no_other() {
    const TOO_LARGE: i64 = 3_000_000_000;
    let clock = Clock::starting_at(Timestamp::constant(1_767_225_600, 0), 1.0);
    let cluster = Cluster::start(stateward_cluster::Options::at(clock.clone()));
    let client = cluster.client("admin");
    define(&client).await;
    create::<AnalysisTemplate>(&client, "bad", json!({}), template(TOO_LARGE)).await;
    create::<AnalysisTemplate>(&client, "good", json!({}), template(3)).await;
    let ours = json!({"argo-rollouts.argoproj.io/controller-instance-id": "stateward"});
    let run = json!({"spec": {"metrics": []}, "status": {"startedAt": "2024-01-01T00:00:00+99:99"}});
    create::<AnalysisRun>(&client, "bad", ours, run).await;
    create::<RolloutPlugin>(&client, "bad", json!({}), rollout("good", TOO_LARGE)).await;
    create::<RolloutPlugin>(&client, "good", json!({}), rollout("good", 5)).await;
    create::<RolloutPlugin>(&client, "with-a-bad-template", json!({}), rollout("bad", 5)).await;
    create::<RolloutPlugin>(&client, "with-none", json!({}), rollout("none", 5)).await;

    let options = Options {
        clock,
        namespaces: Vec::new(),
    };
    let operator = tokio::spawn(Operator::new(cluster.client("operator"), options).run());
    let good = told(&client, "good").await;
    assert!(good.contains("waiting for StatefulSet nobody to exist"), "{good}");
    let bad = told(&client, "with-a-bad-template").await;
    assert!(bad.contains("AnalysisTemplate bad cannot be read: "), "{bad}");
    assert!(bad.contains("3000000000"), "{bad}");
    let none = told(&client, "with-none").await;
    assert!(none.contains("there is no AnalysisTemplate none"), "{none}");
    let unread = events(&client, "bad").await;
    assert!(
        unread.contains("RolloutPlugin cannot be read and is left as it stands: "),
        "{unread}"
    );
    assert!(unread.contains("3000000000"), "{unread}");
    operator.abort();
}
