//! Handles for rollouts: RolloutPlugins and PhasedRollouts.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stateward_api::phasedrollout::{PhasedRollout, PhasedRolloutStatus};
use stateward_api::rollout::RolloutStatus;
use stateward_api::rolloutplugin::RolloutPlugin;

use super::cluster::Cluster;
use super::failure::{Doing, Outcome};
use super::observer::View;

/// A kind of rollout.
pub trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// Its status.
    type Status: Clone + Default;

    /// A minimal manifest for the set of this name.
    fn manifest(namespace: &str, set: &str) -> Value;

    /// The phase of a rollout that has nothing to do.
    const AT_REST: &'static str;

    /// The name of the set in a manifest.
    fn set_of(manifest: &Value) -> &Value;

    /// The rollouts of this kind in a view.
    fn seen(view: &View) -> &BTreeMap<String, Self>;

    /// Its status, if it has one.
    fn status(&self) -> Option<&Self::Status>;

    /// The part of the status that every kind of rollout has.
    fn record(status: &Self::Status) -> &RolloutStatus;

    /// The name of the kind in messages.
    fn word() -> String {
        <Self as Resource>::kind(&()).to_lowercase()
    }
}

impl Kind for RolloutPlugin {
    type Status = RolloutStatus;

    const AT_REST: &'static str = "Successful";

    fn manifest(namespace: &str, set: &str) -> Value {
        json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "RolloutPlugin",
            "metadata": {"name": set, "namespace": namespace},
            "spec": {
                "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": set},
                "plugin": {"name": "statefulset"},
                "strategy": {"canary": {"steps": []}},
            },
        })
    }

    fn set_of(manifest: &Value) -> &Value {
        &manifest["spec"]["workloadRef"]["name"]
    }

    fn seen(view: &View) -> &BTreeMap<String, Self> {
        &view.rollouts
    }

    fn status(&self) -> Option<&RolloutStatus> {
        self.status.as_ref()
    }

    fn record(status: &RolloutStatus) -> &RolloutStatus {
        status
    }
}

impl Kind for PhasedRollout {
    type Status = PhasedRolloutStatus;

    const AT_REST: &'static str = "Updated";

    /// Two successful measurements of `errors`, a second apart.
    fn manifest(namespace: &str, set: &str) -> Value {
        json!({
            "apiVersion": "sts.plus/v1alpha1",
            "kind": "PhasedRollout",
            "metadata": {"name": set, "namespace": namespace},
            "spec": {
                "targetRef": set,
                "check": {
                    "initialDelaySeconds": 1, "periodSeconds": 1, "successThreshold": 2,
                    "query": {"expr": "errors", "url": "prometheus:9090"},
                },
            },
        })
    }

    fn set_of(manifest: &Value) -> &Value {
        &manifest["spec"]["targetRef"]
    }

    fn seen(view: &View) -> &BTreeMap<String, Self> {
        &view.phased
    }

    fn status(&self) -> Option<&PhasedRolloutStatus> {
        self.status.as_ref()
    }

    fn record(status: &PhasedRolloutStatus) -> &RolloutStatus {
        &status.rollout
    }
}

/// Installs the CRDs of everything that the operator serves.
pub(crate) async fn install(cluster: &Cluster) -> Outcome {
    let api: Api<CustomResourceDefinition> = Api::all(cluster.client());
    for definition in stateward_api::definitions() {
        let name = definition.metadata.name.clone().unwrap_or_default();
        let apply = PatchParams::apply("stateward-scenarios").force();
        api.patch(&name, &apply, &Patch::Apply(definition))
            .await
            .doing(format!("apply the definition {name}"))?;
        let established = await_condition(api.clone(), &name, conditions::is_crd_established());
        match tokio::time::timeout(cluster.patience(), established).await {
            Ok(Ok(_)) => {}
            other => return Err(cluster.unmet(format!("{name} is established"), format!("{other:?}"))),
        }
    }
    Ok(())
}

/// Builds a rollout: `cluster.rollout("db").steps(json!([{"setWeight": 20}, {"pause": {}}])).create()`.
pub struct RolloutBuilder<'c, K = RolloutPlugin> {
    cluster: &'c Cluster,
    manifest: Value,
    kind: PhantomData<K>,
}

impl<'c> RolloutBuilder<'c> {
    /// Sets its steps.
    pub fn steps(self, steps: Value) -> Self {
        self.spec(json!({"strategy": {"canary": {"steps": steps}}}))
    }
}

impl<'c> RolloutBuilder<'c, PhasedRollout> {
    /// Sets its check, as a merge patch.
    pub fn check(self, patch: Value) -> Self {
        self.spec(json!({"check": patch}))
    }
}

impl<'c, K: Kind> RolloutBuilder<'c, K> {
    /// A rollout with the name of its set.
    pub(crate) fn new(cluster: &'c Cluster, set: &str) -> Self {
        let manifest = K::manifest(cluster.namespace(), set);
        Self {
            cluster,
            manifest,
            kind: PhantomData,
        }
    }

    /// Sets another name.
    pub fn named(mut self, name: &str) -> Self {
        self.manifest["metadata"]["name"] = name.into();
        self
    }

    /// Sets any other part of the spec, as a merge patch.
    pub fn spec(mut self, patch: Value) -> Self {
        json_patch::merge(&mut self.manifest["spec"], &patch);
        self
    }

    /// Sets any part of the object, as a merge patch.
    pub fn with(mut self, patch: &Value) -> Self {
        json_patch::merge(&mut self.manifest, patch);
        self
    }

    /// Creates it.
    pub async fn create(self) -> Outcome<Rollout<'c, K>> {
        let Self {
            cluster, manifest, ..
        } = self;
        let kind = K::word();
        let name = manifest["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        cluster.note(&format!("create {kind} {name}"));
        let object: K = serde_json::from_value(manifest)
            .map_err(kube::Error::SerdeError)
            .doing(format!("read the manifest of a {kind}"))?;
        let api: Api<K> = Api::namespaced(cluster.client(), cluster.namespace());
        api.create(&PostParams::default(), &object)
            .await
            .doing(format!("create {kind} {name}"))?;
        Ok(Rollout::new(cluster, &name))
    }

    /// Creates it and waits until it has adopted its set.
    pub async fn start(self) -> Outcome<Rollout<'c, K>> {
        let set = K::set_of(&self.manifest).as_str().unwrap_or_default().to_owned();
        let cluster = self.cluster;
        let rollout = self.create().await?;
        rollout.expect_phase(K::AT_REST).await?;
        cluster
            .eventually(format!("{set} is guarded"), |view| {
                let set = view.sets.get(&set).ok_or("no such set")?;
                let partition = partition(set);
                let replicas = set.spec.as_ref().and_then(|spec| spec.replicas);
                if partition == replicas {
                    Ok(())
                } else {
                    Err(format!("partition {partition:?}"))
                }
            })
            .await?;
        Ok(rollout)
    }
}

/// The partition of a StatefulSet.
pub fn partition(set: &k8s_openapi::api::apps::v1::StatefulSet) -> Option<i32> {
    set.spec
        .as_ref()?
        .update_strategy
        .as_ref()?
        .rolling_update
        .as_ref()?
        .partition
}

/// A rollout on the cluster.
pub struct Rollout<'c, K = RolloutPlugin> {
    cluster: &'c Cluster,
    name: String,
    kind: PhantomData<K>,
    /// The generation of our last write: a status with an older observed generation does not answer it.
    written: AtomicI64,
}

impl<'c, K: Kind> Rollout<'c, K> {
    pub(crate) fn new(cluster: &'c Cluster, name: &str) -> Self {
        Self {
            cluster,
            name: name.to_owned(),
            kind: PhantomData,
            written: AtomicI64::new(0),
        }
    }
}

/// User actions: written to the status subresource, as Argo's plugin users do.
impl<K: Kind> Rollout<'_, K> {
    /// Ends the current pause.
    pub async fn promote(&self) -> Outcome {
        self.command("promote", json!({"pauseConditions": null})).await
    }

    /// Sends `promote`, also if no pause stands, and waits for the answer. Returns whether the operator accepted it.
    pub async fn go_on(&self) -> Outcome<bool> {
        self.leaves_its_step(json!({"promote": true})).await
    }

    /// Skips the current step, and waits for the answer. Returns whether the operator accepted it.
    pub async fn skip(&self) -> Outcome<bool> {
        self.leaves_its_step(json!({"skipCurrentStep": true})).await
    }

    /// Skips the current step as soon as the operator accepts it: an operator with a stale view may reject it first.
    pub async fn skip_when_allowed(&self) -> Outcome {
        while !self.skip().await? {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }

    async fn leaves_its_step(&self, command: Value) -> Outcome<bool> {
        let before = self.get().await?;
        self.overwrite(command).await?;
        self.expect_no_command().await?;
        let after = self.get().await?;
        let step = |object: &K| {
            object
                .status()
                .and_then(|status| K::record(status).current_step_index)
        };
        Ok(step(&before) != step(&after))
    }

    /// Skips the remaining steps.
    pub async fn promote_full(&self) -> Outcome {
        self.command("promote fully", json!({"promoteFull": true})).await
    }

    /// Skips the remaining steps even if a pod of the new version is broken.
    pub async fn force_promote_full(&self) -> Outcome {
        self.command(
            "promote fully, by force,",
            json!({"promoteFull": true, "force": true}),
        )
        .await
    }

    /// Aborts the rollout.
    pub async fn abort(&self) -> Outcome {
        self.command("abort", json!({"abort": true})).await
    }

    /// Retries the aborted revision.
    pub async fn retry(&self) -> Outcome {
        self.command("retry", json!({"restart": true})).await
    }

    /// Writes the status as another client, and waits until the watch shows it.
    pub async fn overwrite(&self, status: Value) -> Outcome {
        let written = self.write("write the status of", status).await?;
        let number = |object: &K| -> Option<u64> { object.resource_version()?.parse().ok() };
        self.cluster
            .eventually("that write", |view| {
                let seen = K::seen(view).get(&self.name).and_then(number);
                if seen >= number(&written) {
                    Ok(())
                } else {
                    Err(format!("version {seen:?}"))
                }
            })
            .await
    }

    async fn command(&self, doing: &str, status: Value) -> Outcome {
        self.write(doing, status).await.map(drop)
    }

    async fn write(&self, doing: &str, status: Value) -> Outcome<K> {
        let doing = format!("{doing} {} {}", K::word(), self.name);
        self.cluster.note(&doing);
        let patch = Patch::Merge(json!({"status": status}));
        self.api()
            .patch_status(&self.name, &PatchParams::default(), &patch)
            .await
            .doing(doing)
    }

    /// Merges a patch into the spec.
    pub async fn patch(&self, doing: &str, spec: Value) -> Outcome {
        let doing = format!("{doing} on {} {}", K::word(), self.name);
        self.cluster.note(&doing);
        let patch = Patch::Merge(json!({"spec": spec}));
        let patched = self
            .api()
            .patch(&self.name, &PatchParams::default(), &patch)
            .await
            .doing(doing)?;
        let generation = patched.meta().generation.unwrap_or(0);
        self.written.store(generation, Ordering::Relaxed);
        Ok(())
    }

    /// Deletes it.
    pub async fn delete(&self) -> Outcome {
        let doing = format!("delete {} {}", K::word(), self.name);
        self.cluster.note(&doing);
        self.api()
            .delete(&self.name, &DeleteParams::default())
            .await
            .doing(doing)
            .map(drop)
    }
}

/// Expectations.
impl<K: Kind> Rollout<'_, K> {
    /// The object with every field that the API server stores.
    pub async fn raw(&self) -> Outcome<Value> {
        let resource = ApiResource::erase::<K>(&());
        let client = self.cluster.client();
        let api: Api<DynamicObject> = Api::namespaced_with(client, self.cluster.namespace(), &resource);
        let object = api
            .get(&self.name)
            .await
            .doing(format!("read {} {}", K::word(), self.name))?;
        Ok(json!(object))
    }

    /// The default columns of `kubectl get` with their cells, without the age.
    pub async fn columns(&self) -> Outcome<Vec<(String, Value)>> {
        let table = self.table().await?;
        let shown = table.into_iter().filter(|(column, _)| column["priority"] == 0);
        Ok(shown.map(|(column, cell)| (name(&column), cell)).collect())
    }

    /// The columns of `kubectl get -o wide` with their cells.
    async fn table(&self) -> Outcome<Vec<(Value, Value)>> {
        let resource = ApiResource::erase::<K>(&());
        let path = format!(
            "/apis/{}/namespaces/{}/{}/{}",
            resource.api_version,
            self.cluster.namespace(),
            resource.plural,
            self.name
        );
        let request = http::Request::get(path)
            .header("accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
            .body(Vec::new())
            .map_err(std::io::Error::other)?;
        let doing = format!("get the table of {} {}", K::word(), self.name);
        let table: Value = self.cluster.client().request(request).await.doing(doing)?;
        let columns = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
        let cells = table["rows"][0]["cells"].as_array().cloned().unwrap_or_default();
        let shown = columns.into_iter().zip(cells);
        Ok(shown.filter(|(column, _)| column["name"] != "Age").collect())
    }

    /// Checks the cells of these columns of `kubectl get -o wide`.
    pub async fn expect_columns<const N: usize>(&self, expected: [(&str, Value); N]) -> Outcome {
        let table = self.table().await?.into_iter();
        let shown: Vec<_> = table.map(|(column, cell)| (name(&column), cell)).collect();
        let here = expected
            .iter()
            .all(|(name, value)| shown.iter().any(|(column, cell)| column == name && cell == value));
        self.cluster
            .expect(&format!("columns {expected:?} in {shown:?}"), here)
    }

    /// The object on the API server now.
    pub async fn get(&self) -> Outcome<K> {
        self.api()
            .get(&self.name)
            .await
            .doing(format!("get {} {}", K::word(), self.name))
    }

    /// Waits until the status shows this phase for the latest spec.
    pub async fn expect_phase(&self, phase: &str) -> Outcome<K::Status> {
        self.eventually(format!("phase {phase}"), |status| {
            if K::record(status).phase == phase {
                Ok(status.clone())
            } else {
                Err(String::new())
            }
        })
        .await
    }

    /// Waits until the rollout is at this step, in this phase.
    pub async fn expect_step(&self, step: i32, phase: &str) -> Outcome<K::Status> {
        self.eventually(format!("phase {phase} at step {step}"), |status| {
            let record = K::record(status);
            let there = record.phase == phase && record.current_step_index == Some(step);
            if there {
                Ok(status.clone())
            } else {
                Err(String::new())
            }
        })
        .await
    }

    /// Waits until its message contains `part`.
    pub async fn expect_message(&self, part: &str) -> Outcome<K::Status> {
        self.eventually(format!("a message with {part:?}"), |status| {
            if K::record(status).message.contains(part) {
                Ok(status.clone())
            } else {
                Err(String::new())
            }
        })
        .await
    }

    /// Waits until a condition of this type has this status, with `part` in its message.
    pub async fn expect_condition(&self, kind: &str, is: &str, part: &str) -> Outcome<K::Status> {
        let expected = format!("condition {kind} is {is} with {part:?}");
        self.eventually(expected, |status| {
            let found = K::record(status).conditions.iter().find(|one| one.kind == kind);
            match found {
                Some(one) if one.status == is && (one.message.contains(part) || one.reason == part) => {
                    Ok(status.clone())
                }
                other => Err(format!("{other:?}")),
            }
        })
        .await
    }

    /// Waits for an event with this reason about it, with `part` in its message.
    pub async fn expect_event(&self, reason: &str, part: &str) -> Outcome {
        let expected = format!("an event {reason} with {part:?}");
        self.cluster
            .eventually(expected, |view| {
                let says = |event: &Event| event.message.as_deref().is_some_and(|said| said.contains(part));
                match self.events(view, reason).any(says) {
                    true => Ok(()),
                    false => Err("no such event".to_owned()),
                }
            })
            .await
    }

    /// Checks that there are at most `most` events with this reason about it.
    pub async fn expect_events_at_most(&self, reason: &str, most: usize) -> Outcome {
        let told = self
            .cluster
            .eventually(format!("the events {reason}"), |view| {
                Ok(self.events(view, reason).count())
            })
            .await?;
        let expected = format!("at most {most} events {reason}, not {told}");
        self.cluster.expect(&expected, told <= most)
    }

    fn events<'v>(&self, view: &'v View, reason: &str) -> impl Iterator<Item = &'v Event> {
        view.events.values().filter(move |event| {
            event.involved_object.name.as_deref() == Some(&self.name)
                && event.reason.as_deref() == Some(reason)
        })
    }

    /// Waits until its status has no command left.
    pub async fn expect_no_command(&self) -> Outcome {
        self.eventually("no command is left", |status| {
            let record = K::record(status);
            let steers = record.promote || record.promote_full || record.skip_current_step;
            let with = record.force || record.requested_by.is_some();
            if record.abort || record.restart || steers || with {
                Err("a command is there".into())
            } else {
                Ok(())
            }
        })
        .await
    }

    /// Waits until it is deleted.
    pub async fn expect_gone(&self) -> Outcome {
        self.cluster
            .eventually(
                format!("{} {} is gone", K::word(), self.name),
                |view| match K::seen(view).get(&self.name) {
                    Some(_) => Err("it is there".to_owned()),
                    None => Ok(()),
                },
            )
            .await
    }

    /// Waits until `check` accepts a status of the latest spec.
    pub async fn eventually<T>(
        &self,
        expected: impl Into<String>,
        mut check: impl FnMut(&K::Status) -> Result<T, String>,
    ) -> Outcome<T> {
        let expected = format!("{} {}: {}", K::word(), self.name, expected.into());
        let written = Some(self.written.load(Ordering::Relaxed));
        self.cluster
            .eventually(expected, |view| {
                let object = K::seen(view).get(&self.name).ok_or("no such object")?;
                let none = K::Status::default();
                let status = object.status().unwrap_or(&none);
                let record = K::record(status);
                let seen = format!(
                    "phase {:?} at step {:?}: {}",
                    record.phase, record.current_step_index, record.message
                );
                let generation = object.meta().generation;
                if record.observed_generation != generation || generation < written {
                    return Err(format!("an older generation: {seen}"));
                }
                check(status).map_err(|why| {
                    if why.is_empty() {
                        seen
                    } else {
                        format!("{why}; {seen}")
                    }
                })
            })
            .await
    }

    /// The kube API, for requests that this handle does not offer.
    pub fn api(&self) -> Api<K> {
        Api::namespaced(self.cluster.client(), self.cluster.namespace())
    }
}

/// The name of a column.
fn name(column: &Value) -> String {
    column["name"].as_str().unwrap_or_default().to_owned()
}
