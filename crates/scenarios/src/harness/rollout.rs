//! A RolloutPlugin as a scenario speaks of it, and the operator that serves it.

use std::sync::atomic::{AtomicI64, Ordering};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};
use stateward_api::rollout::RolloutStatus;
use stateward_api::rolloutplugin::RolloutPlugin;

use super::cluster::Cluster;
use super::failure::{Doing, Outcome};

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

/// A RolloutPlugin to be created: `cluster.rollout("db").steps(json!([{"setWeight": 20}, {"pause": {}}])).create()`.
pub struct RolloutBuilder<'c> {
    cluster: &'c Cluster,
    manifest: Value,
}

impl<'c> RolloutBuilder<'c> {
    /// One of the same name as its set.
    pub(crate) fn new(cluster: &'c Cluster, set: &str) -> Self {
        let manifest = json!({
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "RolloutPlugin",
            "metadata": {"name": set, "namespace": cluster.namespace()},
            "spec": {
                "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": set},
                "plugin": {"name": "statefulset"},
                "strategy": {"canary": {"steps": []}},
            },
        });
        Self { cluster, manifest }
    }

    /// Another name.
    pub fn named(mut self, name: &str) -> Self {
        self.manifest["metadata"]["name"] = name.into();
        self
    }

    /// Its steps.
    pub fn steps(self, steps: Value) -> Self {
        self.spec(json!({"strategy": {"canary": {"steps": steps}}}))
    }

    /// Any other part of the spec, as a merge patch.
    pub fn spec(mut self, patch: Value) -> Self {
        json_patch::merge(&mut self.manifest["spec"], &patch);
        self
    }

    /// Creates it.
    pub async fn create(self) -> Outcome<Rollout<'c>> {
        let Self { cluster, manifest } = self;
        let name = manifest["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        cluster.note(&format!("create rolloutplugin {name}"));
        let object: RolloutPlugin = serde_json::from_value(manifest)
            .map_err(kube::Error::SerdeError)
            .doing("read the manifest of a rolloutplugin")?;
        let api: Api<RolloutPlugin> = Api::namespaced(cluster.client(), cluster.namespace());
        api.create(&PostParams::default(), &object)
            .await
            .doing(format!("create rolloutplugin {name}"))?;
        Ok(Rollout::new(cluster, &name))
    }

    /// Creates it and waits until it has taken hold of its set.
    pub async fn start(self) -> Outcome<Rollout<'c>> {
        let set = self.manifest["spec"]["workloadRef"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let cluster = self.cluster;
        let rollout = self.create().await?;
        rollout.expect_phase("Successful").await?;
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

/// A RolloutPlugin on the cluster.
pub struct Rollout<'c> {
    cluster: &'c Cluster,
    name: String,
    /// The generation of our last write: what the watch shows of an older one is not an answer to it.
    written: AtomicI64,
}

impl<'c> Rollout<'c> {
    pub(crate) fn new(cluster: &'c Cluster, name: &str) -> Self {
        Self {
            cluster,
            name: name.to_owned(),
            written: AtomicI64::new(0),
        }
    }
}

/// What users do to it: through the status subresource, as Argo's users know it.
impl Rollout<'_> {
    /// Ends the pause that stands.
    pub async fn promote(&self) -> Outcome {
        self.command("promote", json!({"pauseConditions": null})).await
    }

    /// Skips the remaining steps.
    pub async fn promote_full(&self) -> Outcome {
        self.command("promote fully", json!({"promoteFull": true})).await
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
        let number = |object: &RolloutPlugin| -> Option<u64> {
            object.metadata.resource_version.as_ref()?.parse().ok()
        };
        self.cluster
            .eventually("that write", |view| {
                let seen = view.rollouts.get(&self.name).and_then(number);
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

    async fn write(&self, doing: &str, status: Value) -> Outcome<RolloutPlugin> {
        let doing = format!("{doing} rolloutplugin {}", self.name);
        self.cluster.note(&doing);
        let patch = Patch::Merge(json!({"status": status}));
        self.api()
            .patch_status(&self.name, &PatchParams::default(), &patch)
            .await
            .doing(doing)
    }

    /// Merges a patch into the spec.
    pub async fn patch(&self, doing: &str, spec: Value) -> Outcome {
        let doing = format!("{doing} on rolloutplugin {}", self.name);
        self.cluster.note(&doing);
        let patch = Patch::Merge(json!({"spec": spec}));
        let patched = self
            .api()
            .patch(&self.name, &PatchParams::default(), &patch)
            .await
            .doing(doing)?;
        let generation = patched.metadata.generation.unwrap_or(0);
        self.written.store(generation, Ordering::Relaxed);
        Ok(())
    }

    /// Deletes it.
    pub async fn delete(&self) -> Outcome {
        let doing = format!("delete rolloutplugin {}", self.name);
        self.cluster.note(&doing);
        self.api()
            .delete(&self.name, &DeleteParams::default())
            .await
            .doing(doing)
            .map(drop)
    }
}

/// What to expect of it.
impl Rollout<'_> {
    /// The object as the API server has it now.
    pub async fn get(&self) -> Outcome<RolloutPlugin> {
        self.api()
            .get(&self.name)
            .await
            .doing(format!("get rolloutplugin {}", self.name))
    }

    /// Waits until its status says this phase of its latest spec.
    pub async fn expect_phase(&self, phase: &str) -> Outcome<RolloutStatus> {
        self.eventually(format!("phase {phase}"), |status| {
            if status.phase == phase {
                Ok(status.clone())
            } else {
                Err(String::new())
            }
        })
        .await
    }

    /// Waits until it stands at a step, in this phase.
    pub async fn expect_step(&self, step: i32, phase: &str) -> Outcome<RolloutStatus> {
        self.eventually(format!("phase {phase} at step {step}"), |status| {
            let there = status.phase == phase && status.current_step_index == Some(step);
            if there {
                Ok(status.clone())
            } else {
                Err(String::new())
            }
        })
        .await
    }

    /// Waits until its message has this in it.
    pub async fn expect_message(&self, part: &str) -> Outcome<RolloutStatus> {
        self.eventually(format!("a message with {part:?}"), |status| {
            if status.message.contains(part) {
                Ok(status.clone())
            } else {
                Err(String::new())
            }
        })
        .await
    }

    /// Waits until one of its conditions says this, with this in its message.
    pub async fn expect_condition(&self, kind: &str, is: &str, part: &str) -> Outcome<RolloutStatus> {
        let expected = format!("condition {kind} is {is} with {part:?}");
        self.eventually(expected, |status| {
            let found = status.conditions.iter().find(|one| one.kind == kind);
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
                let about = view
                    .events
                    .values()
                    .filter(|event| event.involved_object.name.as_deref() == Some(&self.name));
                let told = |event: &&k8s_openapi::api::core::v1::Event| {
                    let message = event.message.as_deref().unwrap_or_default();
                    event.reason.as_deref() == Some(reason) && message.contains(part)
                };
                let mut about = about;
                about
                    .find(told)
                    .map(drop)
                    .ok_or_else(|| "no such event".to_owned())
            })
            .await
    }

    /// Waits until no command is left in its status.
    pub async fn expect_no_command(&self) -> Outcome {
        self.eventually("no command is left", |status| {
            if status.abort || status.promote_full || status.restart {
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
            .eventually(format!("rolloutplugin {} is gone", self.name), |view| match view
                .rollouts
                .get(&self.name)
            {
                Some(_) => Err("it is there".to_owned()),
                None => Ok(()),
            })
            .await
    }

    /// Waits until `check` says yes to a status that is about the latest spec.
    pub async fn eventually<T>(
        &self,
        expected: impl Into<String>,
        mut check: impl FnMut(&RolloutStatus) -> Result<T, String>,
    ) -> Outcome<T> {
        let expected = format!("rolloutplugin {}: {}", self.name, expected.into());
        let written = Some(self.written.load(Ordering::Relaxed));
        self.cluster
            .eventually(expected, |view| {
                let object = view.rollouts.get(&self.name).ok_or("no such rolloutplugin")?;
                let none = RolloutStatus::default();
                let status = object.status.as_ref().unwrap_or(&none);
                let seen = format!(
                    "phase {:?} at step {:?}: {}",
                    status.phase, status.current_step_index, status.message
                );
                let generation = object.metadata.generation;
                if status.observed_generation != generation || generation < written {
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
    pub fn api(&self) -> Api<RolloutPlugin> {
        Api::namespaced(self.cluster.client(), self.cluster.namespace())
    }
}
