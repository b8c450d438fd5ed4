//! A broken watch is reported, even if nothing else changes.

#![allow(clippy::disallowed_methods, reason = "tests name their own objects")]
#![allow(clippy::unwrap_used, reason = "a test may end where it cannot go on")]

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use stateward_clock::Clock;
use stateward_cluster::Cluster;
use stateward_controller::fence::guard;
use stateward_controller::{Fence, Metrics, Operator, Options};

const DEFINITION: &str = "rolloutplugins.argoproj.io";

async fn define(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let apply = PatchParams::apply("test");
    for definition in stateward_api::definitions() {
        let name = definition.metadata.name.clone().unwrap();
        definitions
            .patch(&name, &apply, &Patch::Apply(definition))
            .await
            .unwrap();
        let served = kube::runtime::conditions::is_crd_established();
        await_condition(definitions.clone(), &name, served).await.unwrap();
    }
}

/// Waits until the metrics report a broken watch, or none.
async fn until(metrics: &Metrics, complain: bool) -> Option<String> {
    for _ in 0..600 {
        let complaint = metrics.watches().complaint();
        if complaint.is_some() == complain {
            return complaint;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("not within ten minutes: a complaint is {complain}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_is_deleted_is_told_until_it_is_back() {
    let clock = Clock::starting_at(Timestamp::constant(1_767_225_600, 0), 1.0);
    let cluster = Cluster::start(stateward_cluster::Options::at(clock.clone()));
    let client = cluster.client("admin");
    define(&client).await;
    let metrics = Metrics::default();
    let options = Options {
        clock,
        namespaces: Vec::new(),
    };
    let guarded = guard(cluster.client("operator"), Fence::open(), metrics.clone());
    let operator = tokio::spawn(Operator::new(guarded, options).metrics(metrics.clone()).run());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(metrics.watches().complaint(), None);
    assert!(
        metrics
            .text()
            .contains("stateward_errors_total{kind=\"watch\"} 0")
    );

    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions
        .delete(DEFINITION, &DeleteParams::default())
        .await
        .unwrap();
    let complaint = until(&metrics, true).await.unwrap();
    let expected = "the watch of /apis/argoproj.io/v1alpha1/rolloutplugins does not work: ";
    assert!(complaint.starts_with(expected), "{complaint}");
    let text = metrics.text();
    assert!(
        !text.contains("stateward_errors_total{kind=\"watch\"} 0"),
        "{text}"
    );

    // There is no object whose status could report it.
    define(&client).await;
    until(&metrics, false).await;
    operator.abort();
}
