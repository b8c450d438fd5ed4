//! The metrics show how many objects are queued.

#![allow(clippy::disallowed_methods, reason = "tests name their own objects")]
#![allow(clippy::unwrap_used, reason = "a test may end where it cannot go on")]

use std::time::Duration;

use http::{Method, Request};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::json;
use stateward_api::rolloutplugin::{self, RolloutPlugin};
use stateward_clock::Clock;
use stateward_cluster::Cluster;
use stateward_controller::{Metrics, Operator, Options};
use tokio::sync::watch;
use tower::BoxError;

/// A client whose writes block until the gate is open.
fn gated(client: Client, gate: watch::Receiver<bool>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, mut gate) = (client.clone(), gate.clone());
        async move {
            if request.method() != Method::GET {
                gate.wait_for(|open| *open).await?;
            }
            client.send(request).await.map_err(BoxError::from)
        }
    });
    Client::new(service, "default")
}

/// Waits until the metrics contain a line.
async fn until(metrics: &Metrics, line: &str) {
    for _ in 0..60 {
        if metrics.text().lines().any(|told| told == line) {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("{line} did not come:\n{}", metrics.text());
}

async fn create(client: &Client, namespace: &str, count: usize) {
    let objects: Api<RolloutPlugin> = Api::namespaced(client.clone(), namespace);
    for number in 0..count {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPlugin",
            "metadata": {"name": format!("db-{number}")},
            "spec": {
                "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
                "plugin": {"name": "statefulset"}, "strategy": {"canary": {}},
            },
        });
        let object = serde_json::from_value(object).unwrap();
        objects.create(&PostParams::default(), &object).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn objects_wait_while_others_have_their_turns() {
    let clock = Clock::starting_at(Timestamp::constant(1_767_225_600, 0), 1.0);
    let cluster = Cluster::start(stateward_cluster::Options::at(clock.clone()));
    let client = cluster.client("admin");
    let definitions = Api::all(client.clone());
    let (name, apply) = ("rolloutplugins.argoproj.io", PatchParams::apply("test"));
    let definition = Patch::Apply(rolloutplugin::definition());
    definitions.patch(name, &apply, &definition).await.unwrap();
    let served = kube::runtime::conditions::is_crd_established();
    await_condition(definitions, name, served).await.unwrap();
    create(&client, "default", 20).await;

    let (open, gate) = watch::channel(false);
    let metrics = Metrics::default();
    let options = Options {
        clock,
        namespaces: Vec::new(),
    };
    let operator = Operator::new(gated(cluster.client("operator"), gate), options);
    let operator = tokio::spawn(operator.metrics(metrics.clone()).run());
    until(&metrics, "stateward_reconciles_in_flight 12").await;
    until(&metrics, "stateward_reconciles_waiting 8").await;
    // A quarter of the slots is left to other namespaces.
    let shop = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &shop).await.unwrap();
    create(&client, "shop", 6).await;
    until(&metrics, "stateward_reconciles_in_flight 16").await;
    until(&metrics, "stateward_reconciles_waiting 10").await;

    open.send(true).unwrap();
    until(&metrics, "stateward_reconciles_in_flight 0").await;
    until(&metrics, "stateward_reconciles_waiting 0").await;
    // The watch reports the deletion too, and then there is nothing left to reconcile.
    let objects: Api<RolloutPlugin> = Api::default_namespaced(client);
    objects.delete("db-0", &DeleteParams::default()).await.unwrap();
    let gone = |object: Option<&RolloutPlugin>| object.is_none();
    await_condition(objects, "db-0", gone).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    until(&metrics, "stateward_reconciles_waiting 0").await;
    operator.abort();
}
