//! The cluster, the kubelet and the operator of a demo, and what a user does to them.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_clock::Clock;
use stateward_cluster::{Cluster, Options};
use stateward_controller::Operator;
use stateward_kubelet::{Behaviour, Behaviours, Kubelet, Match, Running};
use tokio::task::JoinHandle;

pub(super) const NAMESPACE: &str = "default";
/// The version that crashes.
pub(super) const BROKEN: &str = "3.0";

/// Everything that runs. Ends when it is dropped.
pub(super) struct Scene {
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) speed: f64,
    operator: JoinHandle<()>,
    _kubelet: Running,
    _cluster: Cluster,
}

impl Scene {
    /// Starts a cluster that knows RolloutPlugins, its nodes, and the operator.
    pub(super) async fn open(speed: f64) -> Result<Self> {
        let clock = Clock::starting_at(Clock::wall().now(), speed);
        let cluster = Cluster::start(Options::at(clock.clone()));
        let seconds = Duration::from_secs;
        let behaviours = Behaviours::default();
        behaviours
            .program(
                Match::any(),
                Behaviour::ready_after(seconds(4))
                    .pull(seconds(2))
                    .stops_after(seconds(2)),
            )
            .program(
                Match::image(image(BROKEN)),
                Behaviour::crash_loop().pull(seconds(2)),
            );
        let kubelet = Kubelet::new(cluster.client("system:nodes"), clock.clone())
            .nodes(["node-a", "node-b", "node-c"])
            .behaviours(behaviours)
            .heartbeat(None)
            .spawn();
        let client = cluster.client("kubernetes-admin");
        define(&client).await?;
        let options = stateward_controller::Options {
            clock: clock.clone(),
            namespaces: Vec::new(),
        };
        let operator = Operator::new(cluster.client("stateward"), options);
        Ok(Self {
            client,
            clock,
            speed,
            operator: tokio::spawn(operator.run()),
            _kubelet: kubelet,
            _cluster: cluster,
        })
    }

    pub(super) fn sets(&self) -> Api<StatefulSet> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(super) fn rollouts(&self) -> Api<RolloutPlugin> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// A set of five.
    pub(super) async fn create_set(&self, version: &str) -> Result<()> {
        let set = serde_json::from_value(json!({
            "metadata": {"name": "db"},
            "spec": {
                "replicas": 5,
                "serviceName": "db",
                "selector": {"matchLabels": {"app": "db"}},
                "template": {
                    "metadata": {"labels": {"app": "db"}},
                    "spec": {"containers": [{"name": "db", "image": image(version)}]},
                },
            },
        }))?;
        let created = self.sets().create(&PostParams::default(), &set).await;
        created.context("cannot create statefulset db").map(drop)
    }

    /// The plan for it.
    pub(super) async fn create_rollout(&self, steps: Value) -> Result<()> {
        let rollout = serde_json::from_value(json!({
            "metadata": {"name": "db"},
            "spec": {
                "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
                "plugin": {"name": "statefulset"},
                "strategy": {"canary": {"steps": steps}},
                "progressDeadlineAbort": true,
            },
        }))?;
        let created = self.rollouts().create(&PostParams::default(), &rollout).await;
        created.context("cannot create rolloutplugin db").map(drop)
    }

    /// `kubectl set image`
    pub(super) async fn set_image(&self, version: &str) -> Result<()> {
        let containers = json!([{"name": "db", "image": image(version)}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        self.sets()
            .patch("db", &PatchParams::default(), &Patch::Strategic(patch))
            .await
            .context("cannot set the image of statefulset db")
            .map(drop)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.operator.abort();
    }
}

fn image(version: &str) -> String {
    format!("db:{version}")
}

async fn define(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in stateward_api::definitions() {
        let name = definition.name_any();
        definitions
            .create(&PostParams::default(), &definition)
            .await
            .with_context(|| format!("cannot define {name}"))?;
        await_condition(definitions.clone(), &name, conditions::is_crd_established())
            .await
            .with_context(|| format!("{name} are not established"))?;
    }
    Ok(())
}
