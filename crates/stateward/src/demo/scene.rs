//! The cluster, the kubelet and the operator of a demo, and what a user does to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use stateward_analysis::{MetricProvider, MetricQuery, ProviderError};
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_clock::Clock;
use stateward_cluster::{Cluster, Options};
use stateward_controller::Operator;
use stateward_core::analysis::{Data, Reply};
use stateward_kubelet::{Behaviour, Behaviours, Kubelet, Match, Running};
use tokio::task::JoinHandle;

use crate::cluster::Door;

pub(super) const NAMESPACE: &str = "default";
/// The version that crashes.
pub(super) const BROKEN: &str = "3.0";

/// All components of the demo, which stop when it is dropped.
pub(super) struct Scene {
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) speed: f64,
    pub(super) alerts: Alerts,
    pub(super) cluster: Cluster,
    operator: Option<JoinHandle<()>>,
    _kubelet: Running,
}

/// Whether the demo's Prometheus returns an alert.
#[derive(Clone, Default)]
pub(super) struct Alerts(Arc<AtomicBool>);

impl Alerts {
    pub(super) fn fire(&self, firing: bool) {
        self.0.store(firing, Ordering::Relaxed);
    }
}

#[async_trait]
impl MetricProvider for Alerts {
    async fn query(&self, query: &MetricQuery<'_>) -> Result<Reply, ProviderError> {
        let firing = self.0.load(Ordering::Relaxed);
        Ok(Reply {
            data: Data::Numbers(if firing { vec![1.0] } else { Vec::new() }),
            newest: Some(query.now),
            series: None,
            notes: BTreeMap::new(),
        })
    }
}

impl Scene {
    /// Starts a cluster with all definitions, its nodes, and the operator. `door` also serves it to other clients.
    pub(super) async fn open(speed: f64, door: Option<&Door>) -> Result<Self> {
        let clock = Clock::starting_at(Clock::wall().now(), speed);
        let options = door.map_or_else(|| Options::at(clock.clone()), |door| door.options(&clock));
        let cluster = Cluster::start(options);
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
        let kubelet = Kubelet::new(cluster.lean_client("system:nodes"), clock.clone())
            .nodes(["node-a", "node-b", "node-c"])
            .behaviours(behaviours)
            .heartbeat(None)
            .spawn();
        let client = cluster.client("kubernetes-admin");
        define(&client).await?;
        let mut scene = Self {
            client,
            clock,
            speed,
            alerts: Alerts::default(),
            cluster,
            operator: None,
            _kubelet: kubelet,
        };
        scene.start_operator();
        Ok(scene)
    }

    pub(super) fn start_operator(&mut self) {
        let options = stateward_controller::Options {
            clock: self.clock.clone(),
            namespaces: Vec::new(),
        };
        let operator =
            Operator::new(self.cluster.client("stateward"), options).providers(Arc::new(self.alerts.clone()));
        self.operator = Some(tokio::spawn(operator.run()));
    }

    /// Like a crash: between two requests, without releasing the Lease.
    pub(super) fn kill_operator(&mut self) {
        if let Some(operator) = self.operator.take() {
            operator.abort();
        }
    }

    pub(super) fn sets(&self) -> Api<StatefulSet> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(super) fn rollouts(&self) -> Api<RolloutPlugin> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Creates the StatefulSet.
    pub(super) async fn create_set(&self, replicas: i32, version: &str) -> Result<()> {
        let set = serde_json::from_value(json!({
            "metadata": {"name": "db"},
            "spec": {
                "replicas": replicas,
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

    /// Creates the RolloutPlugin.
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

    /// Creates the PhasedRollout, with two checks a second apart before each pod.
    pub(super) async fn create_phased_rollout(&self) -> Result<()> {
        let rollout: PhasedRollout = serde_json::from_value(json!({
            "metadata": {"name": "db"},
            "spec": {
                "targetRef": "db",
                "check": {
                    "initialDelaySeconds": 2, "periodSeconds": 3, "successThreshold": 2,
                    "query": {"expr": "ALERTS{app=\"db\"}", "url": "prometheus:9090"},
                },
            },
        }))?;
        let api: Api<PhasedRollout> = Api::namespaced(self.client.clone(), NAMESPACE);
        let created = api.create(&PostParams::default(), &rollout).await;
        created.context("cannot create phasedrollout db").map(drop)
    }

    /// `kubectl scale`
    #[expect(clippy::disallowed_methods, reason = "the name is a constant")]
    pub(super) async fn scale(&self, replicas: i32) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        self.sets()
            .patch("db", &PatchParams::default(), &patch)
            .await
            .context("cannot scale statefulset db")
            .map(drop)
    }

    /// `kubectl set image`
    #[expect(clippy::disallowed_methods, reason = "the name is a constant")]
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
        self.kill_operator();
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
