//! Rollouts as a scenario speaks of them: RolloutPlugins and PhasedRollouts.

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
    /// What it tells.
    type Status: Clone + Default;

    /// One of this name as small as can be, for the set of that name.
    fn manifest(namespace: &str, set: &str) -> Value;

    /// The phase of one that has nothing to do.
    const AT_REST: &'static str;

    /// The name of the set that a manifest is for.
    fn set_of(manifest: &Value) -> &Value;

    /// Those that are seen.
    fn seen(view: &View) -> &BTreeMap<String, Self>;

    /// Its status, once it has one.
    fn status(&self) -> Option<&Self::Status>;

    /// What every rollout tells in it.
    fn record(status: &Self::Status) -> &RolloutStatus;

    /// In a sentence.
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

    /// Two good answers to `errors`, a second apart.
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

/// Makes the API server know everything that we serve.
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

/// A rollout to be created: `cluster.rollout("db").steps(json!([{"setWeight": 20}, {"pause": {}}])).create()`.
pub struct RolloutBuilder<'c, K = RolloutPlugin> {
    cluster: &'c Cluster,
    manifest: Value,
    kind: PhantomData<K>,
}

impl<'c> RolloutBuilder<'c> {
    /// Its steps.
    pub fn steps(self, steps: Value) -> Self {
        self.spec(json!({"strategy": {"canary": {"steps": steps}}}))
    }
}

impl<'c> RolloutBuilder<'c, PhasedRollout> {
    /// What is checked, as a merge patch.
    pub fn check(self, patch: Value) -> Self {
        self.spec(json!({"check": patch}))
    }
}

impl<'c, K: Kind> RolloutBuilder<'c, K> {
    /// One of the same name as its set.
    pub(crate) fn new(cluster: &'c Cluster, set: &str) -> Self {
        let manifest = K::manifest(cluster.namespace(), set);
        Self {
            cluster,
            manifest,
            kind: PhantomData,
        }
    }

    /// Another name.
    pub fn named(mut self, name: &str) -> Self {
        self.manifest["metadata"]["name"] = name.into();
        self
    }

    /// Any other part of the spec, as a merge patch.
    pub fn spec(mut self, patch: Value) -> Self {
        json_patch::merge(&mut self.manifest["spec"], &patch);
        self
    }

    /// Any part of the object, as a merge patch.
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

    /// Creates it and waits until it has taken hold of its set.
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

/// The partition of a set.
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
    /// The generation of our last write: what the watch shows of an older one is not an answer to it.
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

/// What users do to it: through the status subresource, as Argo's users know it.
impl<K: Kind> Rollout<'_, K> {
    /// Ends the pause that stands.
    pub async fn promote(&self) -> Outcome {
        self.command("promote", json!({"pauseConditions": null})).await
    }

    /// Goes on from where it waits, also where no pause stands, and waits for the answer. Whether it was a yes.
    pub async fn go_on(&self) -> Outcome<bool> {
        self.leaves_its_step(json!({"promote": true})).await
    }

    /// Skips the current step, and waits for the answer. Whether it was a yes.
    pub async fn skip(&self) -> Outcome<bool> {
        self.leaves_its_step(json!({"skipCurrentStep": true})).await
    }

    /// Skips the current step as soon as that is allowed: an operator whose view is late may say no first.
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

    /// The same while a pod of the new version is broken.
    pub async fn force_promote_full(&self) -> Outcome {
        self.command(
            "promote fully, by force,",
            json!({"promoteFull": true, "force": true}),
        )
        .await
    }

    /// Goes back.
    pub async fn abort(&self) -> Outcome {
        self.command("abort", json!({"abort": true})).await
    }

    /// Tries the aborted revision again.
    pub async fn retry(&self) -> Outcome {
        self.command("retry", json!({"restart": true})).await
    }

    /// Somebody else writes the status, and it is seen.
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

/// What to expect of it.
impl<K: Kind> Rollout<'_, K> {
    /// The object with every field that the API server has.
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

    /// What `kubectl get` shows of it without being asked for more: its columns with their cells, but for its age.
    pub async fn columns(&self) -> Outcome<Vec<(String, Value)>> {
        let table = self.table().await?;
        let shown = table.into_iter().filter(|(column, _)| column["priority"] == 0);
        Ok(shown.map(|(column, cell)| (name(&column), cell)).collect())
    }

    /// The same with `-o wide`.
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

    /// Checks what `kubectl get -o wide` shows of it in these columns.
    pub async fn expect_columns<const N: usize>(&self, expected: [(&str, Value); N]) -> Outcome {
        let table = self.table().await?.into_iter();
        let shown: Vec<_> = table.map(|(column, cell)| (name(&column), cell)).collect();
        let here = expected
            .iter()
            .all(|(name, value)| shown.iter().any(|(column, cell)| column == name && cell == value));
        self.cluster
            .expect(&format!("columns {expected:?} in {shown:?}"), here)
    }

    /// The object as the API server has it now.
    pub async fn get(&self) -> Outcome<K> {
        self.api()
            .get(&self.name)
            .await
            .doing(format!("get {} {}", K::word(), self.name))
    }

    /// Waits until its status says this phase of its latest spec.
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

    /// Waits until it stands at a step, in this phase.
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

    /// Waits until its message has this in it.
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

    /// Waits until one of its conditions says this, with this in its message.
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

    /// Waits until an event of this reason was told about it, with this in its message.
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

    /// Checks that no more events of this reason were told about it.
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

    /// Waits until no command is left in its status.
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

    /// Waits until it is gone.
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

    /// Waits until `check` says yes to a status that is about the latest spec.
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

    /// Its own API, for what has no word here.
    pub fn api(&self) -> Api<K> {
        Api::namespaced(self.cluster.client(), self.cluster.namespace())
    }
}

/// That of a column.
fn name(column: &Value) -> String {
    column["name"].as_str().unwrap_or_default().to_owned()
}
