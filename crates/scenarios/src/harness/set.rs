//! A handle for a StatefulSet: a builder, user actions and expectations.

use std::sync::atomic::{AtomicI64, Ordering};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, Service};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::cluster::{Cluster, SCHEDULER};
use super::failure::{Doing, Failure, Outcome};
use super::observer::View;
use super::pod::PodRow;

/// Builds a StatefulSet: `cluster.statefulset("db").replicas(5).partition(3).start()`.
pub struct SetBuilder<'c> {
    cluster: &'c Cluster,
    name: String,
    manifest: Value,
}

impl<'c> SetBuilder<'c> {
    pub(crate) fn new(cluster: &'c Cluster, name: &str) -> Self {
        let manifest = json!({
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": name},
            "spec": {
                "serviceName": name,
                "replicas": 3,
                "selector": {"matchLabels": {"app": name}},
                "template": {
                    "metadata": {"labels": {"app": name}},
                    "spec": {
                        "schedulerName": SCHEDULER,
                        "terminationGracePeriodSeconds": 5,
                        "containers": [container(&image(name, "v1"))],
                    },
                },
            },
        });
        Self {
            cluster,
            name: name.to_owned(),
            manifest,
        }
    }

    /// Sets the number of pods.
    pub fn replicas(self, replicas: i32) -> Self {
        self.spec(json!({"replicas": replicas}))
    }

    /// Sets the image tag.
    pub fn image(mut self, tag: &str) -> Self {
        self.manifest["spec"]["template"]["spec"]["containers"][0]["image"] = image(&self.name, tag).into();
        self
    }

    /// The manifest, for callers that write it by other means.
    pub fn manifest(self) -> Value {
        self.manifest
    }

    /// Sets the partition of its rolling update.
    pub fn partition(self, partition: i32) -> Self {
        self.spec(
            json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}),
        )
    }

    /// Uses parallel pod management.
    pub fn parallel(self) -> Self {
        self.spec(json!({"podManagementPolicy": "Parallel"}))
    }

    /// Sets how long a pod must be Ready to count as available.
    pub fn min_ready_seconds(self, seconds: i32) -> Self {
        self.spec(json!({"minReadySeconds": seconds}))
    }

    /// Sets the ordinal of its first pod.
    pub fn ordinals_start(self, start: i32) -> Self {
        self.spec(json!({"ordinals": {"start": start}}))
    }

    /// Adds a volume claim template.
    pub fn claim(self, name: &str) -> Self {
        self.spec(json!({"volumeClaimTemplates": [{
            "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }]}))
    }

    /// Sets any other part of the spec, as a merge patch.
    pub fn spec(mut self, patch: Value) -> Self {
        merge(&mut self.manifest["spec"], patch);
        self
    }

    /// Whether the API server would store a `maxUnavailable`.
    pub(crate) async fn would_keep_max_unavailable(self) -> Outcome<bool> {
        let Self {
            cluster, manifest, ..
        } = self;
        let doing = "ask whether maxUnavailable is kept";
        let set: StatefulSet = serde_json::from_value(manifest)
            .map_err(kube::Error::SerdeError)
            .doing(doing)?;
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let api = Api::<StatefulSet>::namespaced(cluster.client(), cluster.namespace());
        let kept = api.create(&dry_run, &set).await.doing(doing)?;
        let strategy = kept.spec.and_then(|spec| spec.update_strategy?.rolling_update);
        Ok(strategy.is_some_and(|strategy| strategy.max_unavailable.is_some()))
    }

    /// Creates the set.
    pub async fn create(self) -> Outcome<Set<'c>> {
        let Self {
            cluster,
            name,
            manifest,
        } = self;
        cluster.note(&format!("create statefulset {name}"));
        let service = json!({
            "metadata": {"name": name},
            "spec": {"clusterIP": "None", "selector": {"app": name}, "ports": [{"port": 5432}]},
        });
        match create::<Service>(cluster, &name, service).await {
            // A Service of an earlier set of this name.
            Err(Failure::Request { source, .. }) if matches!(&*source, kube::Error::Api(status) if status.is_already_exists()) =>
                {}
            other => drop(other?),
        }
        let created: StatefulSet = create(cluster, &name, manifest).await?;
        let generation = created.metadata.generation.unwrap_or(0);
        Ok(Set::new(cluster, &name, generation))
    }

    /// Creates the set and waits until all its pods are Ready.
    pub async fn start(self) -> Outcome<Set<'c>> {
        let set = self.create().await?;
        set.expect_ready().await?;
        Ok(set)
    }
}

/// A StatefulSet on the cluster.
pub struct Set<'c> {
    cluster: &'c Cluster,
    name: String,
    /// The generation of our last write: a status with an older observed generation does not answer it.
    written: AtomicI64,
}

impl<'c> Set<'c> {
    pub(crate) fn new(cluster: &'c Cluster, name: &str, generation: i64) -> Self {
        Self {
            cluster,
            name: name.to_owned(),
            written: AtomicI64::new(generation),
        }
    }
}

/// User actions.
impl Set<'_> {
    /// Sets the image tag of every container in the pod template.
    pub async fn set_image(&self, tag: &str) -> Outcome {
        let containers = json!([container(&image(&self.name, tag))]);
        self.patch(
            &format!("set image {tag}"),
            json!({"template": {"spec": {"containers": containers}}}),
        )
        .await
    }

    /// Sets the partition.
    pub async fn set_partition(&self, partition: i32) -> Outcome {
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
        self.patch(
            &format!("set partition {partition}"),
            json!({"updateStrategy": strategy}),
        )
        .await
    }

    /// Sets the number of pods.
    pub async fn scale(&self, replicas: i32) -> Outcome {
        self.patch(&format!("scale to {replicas}"), json!({"replicas": replicas}))
            .await
    }

    /// Merges a patch into the spec.
    pub async fn patch(&self, doing: &str, spec: Value) -> Outcome {
        let doing = format!("{doing} on statefulset {}", self.name);
        self.cluster.note(&doing);
        let patch = Patch::Merge(json!({"spec": spec}));
        let patched = self
            .api()
            .patch(&self.name, &PatchParams::default(), &patch)
            .await
            .doing(doing)?;
        self.written
            .store(patched.metadata.generation.unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }

    /// Deletes the pod with this ordinal, like `kubectl delete pod`.
    pub async fn delete_pod(&self, ordinal: u32) -> Outcome {
        let name = format!("{}-{ordinal}", self.name);
        self.cluster.note(&format!("delete pod {name}"));
        let pods = Api::<Pod>::namespaced(self.cluster.client(), self.cluster.namespace());
        pods.delete(&name, &DeleteParams::default())
            .await
            .doing(format!("delete pod {name}"))
            .map(drop)
    }
}

/// Expectations.
impl Set<'_> {
    /// The StatefulSet on the API server now.
    pub async fn get(&self) -> Outcome<StatefulSet> {
        self.api()
            .get(&self.name)
            .await
            .doing(format!("get statefulset {}", self.name))
    }

    /// Its pods by ordinal, on the API server now.
    pub async fn pods(&self) -> Outcome<Vec<PodRow>> {
        let pods = Api::<Pod>::namespaced(self.cluster.client(), self.cluster.namespace())
            .list(&ListParams::default().labels(&format!("app={}", self.name)))
            .await
            .doing(format!("list the pods of {}", self.name))?;
        let mut rows: Vec<_> = pods.iter().map(PodRow::of).collect();
        rows.sort_by_key(|row| row.ordinal);
        Ok(rows)
    }

    /// Waits until the controller has observed our last write. The controller creates and deletes pods before it reports, so every change
    /// that the write causes has begun by then.
    pub async fn expect_observed(&self) -> Outcome<StatefulSet> {
        self.eventually("the controller observes the latest generation", |set, _| {
            Ok(set.clone())
        })
        .await
    }

    /// Waits until all pods exist and are Ready.
    pub async fn expect_ready(&self) -> Outcome {
        self.eventually("all pods Ready", |set, pods| {
            let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
            let ready = set
                .status
                .as_ref()
                .and_then(|status| status.ready_replicas)
                .unwrap_or(0);
            let all = pods.len() == usize::try_from(wanted).unwrap_or(0) && pods.iter().all(|pod| pod.ready);
            if all && ready == wanted {
                Ok(())
            } else {
                Err(format!("status counts {ready} of {wanted} Ready"))
            }
        })
        .await
    }

    /// Waits until there is exactly one pod per tag, in the order of their ordinals, and none is terminating.
    pub async fn expect_images<const N: usize>(&self, tags: [&str; N]) -> Outcome {
        self.eventually(format!("images [{}]", tags.join(" ")), |_, pods| {
            let seen: Vec<_> = pods.iter().map(|pod| pod.image.as_str()).collect();
            let leaving = pods.iter().any(|pod| pod.terminating);
            if seen == tags && !leaving {
                Ok(())
            } else {
                Err(format!("images [{}]", seen.join(" ")))
            }
        })
        .await
    }

    /// Waits for these images, triggers another sync of the controller, and expects the images to stay.
    pub async fn expect_rest<const N: usize>(&self, tags: [&str; N]) -> Outcome {
        self.expect_images(tags).await?;
        self.expect_no_move().await?;
        self.expect_images(tags).await
    }

    /// Triggers another sync of the controller and expects that it changes no pod and that none is terminating: shows that nothing moves,
    /// without a sleep.
    pub async fn expect_no_move(&self) -> Outcome {
        self.expect_observed().await?;
        let before = self.pods().await?;
        if let Some(leaving) = before.iter().find(|row| row.terminating) {
            return Err(self.cluster.unmet("no pod on its way out", leaving.to_string()));
        }
        let limit = self
            .get()
            .await?
            .spec
            .and_then(|spec| spec.revision_history_limit)
            .unwrap_or(10);
        self.patch("nudge the controller", json!({"revisionHistoryLimit": limit + 1}))
            .await?;
        self.expect_observed().await?;
        self.expect_same_pods(&before).await
    }

    /// Expects the same pods as `before`, now: none replaced, none terminating.
    pub async fn expect_same_pods(&self, before: &[PodRow]) -> Outcome {
        let identity = |rows: &[PodRow]| -> Vec<_> {
            rows.iter()
                .map(|row| (row.name.clone(), row.uid.clone(), row.terminating))
                .collect()
        };
        let now = self.pods().await?;
        if identity(before) == identity(&now) {
            return Ok(());
        }
        Err(self
            .cluster
            .unmet(format!("the same pods: {}", list(before)), list(&now)))
    }

    /// Waits until `check` accepts the set and its pods (by ordinal), once the controller has observed our last write.
    pub async fn eventually<T>(
        &self,
        expected: impl Into<String>,
        mut check: impl FnMut(&StatefulSet, &[PodRow]) -> Result<T, String>,
    ) -> Outcome<T> {
        let written = self.written.load(Ordering::Relaxed);
        let expected = format!("{}: {}", self.name, expected.into());
        self.cluster
            .eventually(expected, |view| {
                let pods = self.pods_in(view);
                let set = view.sets.get(&self.name).ok_or("no such set yet")?;
                let observed = set
                    .status
                    .as_ref()
                    .and_then(|status| status.observed_generation)
                    .unwrap_or(0);
                if observed < written {
                    return Err(format!(
                        "generation {observed} observed, {written} written; pods: {}",
                        list(&pods)
                    ));
                }
                check(set, &pods).map_err(|seen| format!("{seen}; pods: {}", list(&pods)))
            })
            .await
    }

    /// Every pod that this set ever had, in the order of creation.
    pub fn births(&self) -> Vec<PodRow> {
        self.cluster
            .look(|view| view.births.iter().filter(|row| self.owns(row)).cloned().collect())
    }

    /// Expects that a released set carries no annotations.
    pub async fn expect_no_annotations(&self) -> Outcome {
        let annotations = self.get().await?.metadata.annotations.unwrap_or_default();
        if annotations.is_empty() {
            Ok(())
        } else {
            Err(self.cluster.unmet("no annotations", format!("{annotations:?}")))
        }
    }

    /// Expects that since `since` (see [`Cluster::pod_changes`]) at most one pod at a time was missing or not Ready.
    pub fn expect_one_down_at_most(&self, since: usize) -> Outcome {
        let (changes, replicas) = self.cluster.look(|view| {
            let set = view.sets.get(&self.name);
            let replicas = set.and_then(|set| set.spec.as_ref()?.replicas).unwrap_or(0);
            (view.pod_changes.clone(), replicas as usize)
        });
        let mut pods = std::collections::BTreeMap::new();
        for (count, (name, row)) in changes.into_iter().enumerate() {
            match row {
                Some(row) if self.owns(&row) => drop(pods.insert(name, row)),
                _ => drop(pods.remove(&name)),
            }
            let serving = pods.values().filter(|pod| pod.ready && !pod.terminating);
            if count >= since && serving.count() + 1 < replicas {
                let rows: Vec<_> = pods.into_values().collect();
                return Err(self.cluster.unmet("one pod down at most", list(&rows)));
            }
        }
        Ok(())
    }

    fn pods_in(&self, view: &View) -> Vec<PodRow> {
        let mut pods: Vec<_> = view.pods.values().filter(|row| self.owns(row)).cloned().collect();
        pods.sort_by_key(|row| row.ordinal);
        pods
    }

    fn owns(&self, row: &PodRow) -> bool {
        row.name.rsplit_once('-').is_some_and(|(set, _)| set == self.name)
    }

    /// The kube API, for requests that this handle does not offer.
    pub fn api(&self) -> Api<StatefulSet> {
        Api::namespaced(self.cluster.client(), self.cluster.namespace())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The container of every set. Its readiness probe makes it run for a moment before it is Ready.
pub(crate) fn container(image: &str) -> Value {
    json!({"name": "main", "image": image, "readinessProbe": {"tcpSocket": {"port": 5432}}})
}

fn image(set: &str, tag: &str) -> String {
    format!("example.com/{set}:{tag}")
}

fn list(rows: &[PodRow]) -> String {
    let rows: Vec<_> = rows.iter().map(PodRow::to_string).collect();
    if rows.is_empty() {
        "none".to_owned()
    } else {
        rows.join(", ")
    }
}

async fn create<K>(cluster: &Cluster, name: &str, manifest: Value) -> Outcome<K>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + serde::Serialize,
{
    let doing = format!("create {} {name}", K::kind(&()).to_lowercase());
    let object: K = serde_json::from_value(manifest)
        .map_err(kube::Error::SerdeError)
        .doing(doing.clone())?;
    Api::<K>::namespaced(cluster.client(), cluster.namespace())
        .create(&PostParams::default(), &object)
        .await
        .doing(doing)
}

/// RFC 7386 merge for the builder's own manifest.
fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, patch) => *into = patch,
    }
}
