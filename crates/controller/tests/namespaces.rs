//! An operator of several namespaces manages each of them.

#![allow(clippy::disallowed_methods, reason = "tests name their own objects")]
#![allow(clippy::unwrap_used, reason = "a test may end where it cannot go on")]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::json;
use stateward_api::rolloutplugin::{self, RolloutPlugin};
use stateward_clock::Clock;
use stateward_cluster::Cluster;
use stateward_controller::{Operator, Options};

async fn object(client: &Client, namespace: &str) -> Api<RolloutPlugin> {
    let made = serde_json::from_value::<Namespace>(json!({"metadata": {"name": namespace}})).unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &made).await.unwrap();
    let object = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPlugin", "metadata": {"name": "db"},
        "spec": {
            "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
            "plugin": {"name": "statefulset"}, "strategy": {"canary": {}},
        },
    });
    let api: Api<RolloutPlugin> = Api::namespaced(client.clone(), namespace);
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    api
}

#[tokio::test(start_paused = true)]
async fn every_namespace_that_is_named_is_looked_after() {
    let clock = Clock::starting_at(Timestamp::constant(1_767_225_600, 0), 1.0);
    let cluster = Cluster::start(stateward_cluster::Options::at(clock.clone()));
    let client = cluster.client("admin");
    let definitions = Api::all(client.clone());
    let definition = rolloutplugin::definition();
    let apply = PatchParams::apply("test");
    let name = "rolloutplugins.argoproj.io";
    definitions
        .patch(name, &apply, &Patch::Apply(definition))
        .await
        .unwrap();
    let served = kube::runtime::conditions::is_crd_established();
    await_condition(definitions, name, served).await.unwrap();
    let objects = [
        object(&client, "first").await,
        object(&client, "second").await,
        object(&client, "third").await,
    ];
    let options = Options {
        clock,
        namespaces: vec!["first".into(), "second".into()],
    };
    let operator = tokio::spawn(Operator::new(cluster.client("operator"), options).run());

    let told = |object: Option<&RolloutPlugin>| object.is_some_and(|object| object.status.is_some());
    for api in &objects[..2] {
        let told = await_condition(api.clone(), "db", told);
        tokio::time::timeout(Duration::from_secs(60), told)
            .await
            .unwrap()
            .unwrap();
    }
    assert_eq!(
        objects[2].get("db").await.unwrap().status,
        None,
        "the third was not named"
    );
    operator.abort();
}
