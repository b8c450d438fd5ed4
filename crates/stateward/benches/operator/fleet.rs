//! Many StatefulSets and their rollouts in one namespace.

use std::collections::BTreeSet;
use std::ops::Range;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stateward_api::rolloutplugin::RolloutPlugin;

/// The number of concurrent requests.
const AT_ONCE: usize = 16;

/// StatefulSets `db0`, `db1`, … each with a rollout of the same name.
pub(crate) struct Fleet {
    client: Client,
    namespace: String,
    scheduler: &'static str,
}

impl Fleet {
    pub(crate) fn new(client: Client, namespace: &str) -> Self {
        Self {
            client,
            namespace: namespace.to_owned(),
            scheduler: "default-scheduler",
        }
    }

    /// With pods for the scenarios' scheduler.
    pub(crate) fn on_a_plane(client: Client, namespace: &str) -> Self {
        Self {
            scheduler: "stateward",
            ..Self::new(client, namespace)
        }
    }

    /// Creates the CustomResourceDefinition of RolloutPlugins.
    pub(crate) async fn define(&self) {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for definition in stateward_api::definitions() {
            let name = definition.name_any();
            let apply = PatchParams::apply("bench").force();
            api.patch(&name, &apply, &Patch::Apply(definition)).await.unwrap();
            await_condition(api.clone(), &name, conditions::is_crd_established())
                .await
                .unwrap();
        }
    }

    pub(crate) fn sets(&self) -> Api<StatefulSet> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn rollouts(&self) -> Api<RolloutPlugin> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) async fn create_sets(&self, which: Range<usize>, replicas: i32) {
        let api = self.sets();
        let one = async |number| {
            let name = name(number);
            let set = serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {
                    "replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": name}},
                    "template": {
                        "metadata": {"labels": {"app": name}},
                        "spec": {
                            "schedulerName": self.scheduler,
                            "containers": [{"name": "main", "image": "example.com/db:v1"}],
                        },
                    },
                },
            }));
            api.create(&PostParams::default(), &set.unwrap()).await.unwrap();
        };
        stream::iter(which)
            .map(one)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await
    }

    pub(crate) async fn create_rollouts(&self, which: Range<usize>, steps: Value) {
        let api = self.rollouts();
        let one = async |number| {
            let name = name(number);
            let rollout = serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {
                    "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name},
                    "plugin": {"name": "statefulset"},
                    "strategy": {"canary": {"steps": steps}},
                },
            }));
            api.create(&PostParams::default(), &rollout.unwrap())
                .await
                .unwrap();
        };
        stream::iter(which)
            .map(one)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await
    }

    /// Changes the image of each.
    pub(crate) async fn roll(&self, which: Range<usize>, tag: &str) {
        let containers = json!([{"name": "main", "image": format!("example.com/db:{tag}")}]);
        let patch = Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": containers}}}}));
        let api = self.sets();
        let one = async |number| {
            api.patch(&name(number), &PatchParams::default(), &patch)
                .await
                .unwrap();
        };
        stream::iter(which)
            .map(one)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await
    }

    /// Waits until every pod runs the template of its StatefulSet.
    pub(crate) async fn sets_settled(&self, which: Range<usize>) {
        let settled = |set: &StatefulSet| {
            let status = set.status.clone().unwrap_or_default();
            let wanted = set.spec.as_ref().and_then(|spec| spec.replicas);
            status.observed_generation == set.metadata.generation
                && status.updated_replicas == wanted
                && status.ready_replicas == wanted
                && status.current_revision == status.update_revision
        };
        all(self.sets(), which, settled).await;
    }

    /// Waits until every rollout reports that the revision of its StatefulSet is done.
    pub(crate) async fn rollouts_settled(&self, which: Range<usize>) {
        let settled = |rollout: &RolloutPlugin| {
            let status = rollout.status.clone().unwrap_or_default();
            status.phase == "Successful" && status.stable_revision == status.updated_revision
        };
        all(self.rollouts(), which, settled).await;
    }
}

fn name(number: usize) -> String {
    format!("db{number}")
}

async fn all<K>(api: Api<K>, which: Range<usize>, settled: impl Fn(&K) -> bool)
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static,
{
    let mut missing: BTreeSet<_> = which.map(name).collect();
    let mut changes = watcher(api, watcher::Config::default())
        .default_backoff()
        .applied_objects()
        .boxed();
    while !missing.is_empty() {
        let object = changes.try_next().await.unwrap().unwrap();
        if settled(&object) {
            missing.remove(&object.name_any());
        }
    }
}
