//! Creates, terminates and deletes the AnalysisRuns of a rollout, as decided.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::json;
use stateward_analysis::Workers;
use stateward_api::analysis::{AnalysisRun, INSTANCE, INSTANCE_LABEL};
use stateward_api::rolloutplugin::{Analysis, RolloutPlugin};
use stateward_client::{ObjectName, Objects};
use stateward_core::analysis::args::Sources;
use stateward_core::analysis::template;
use stateward_core::plan::Plan;
use stateward_core::rolloutplugin;
use stateward_core::workload::Workload;
use stateward_core::world::{NoWorkload, Run, RunFor};
use stateward_plugin::{Done, Observation};
use tokio::sync::mpsc;

use super::prepared::Prepared;
use super::runs::{Owner, Runs, owner};
use super::templates::{Allowed, Templates, Version};
use crate::error::Error;
use crate::kind::Checks;

/// What is needed to manage AnalysisRuns.
pub(crate) struct AnalysisRunStore {
    client: Client,
    runs: Runs,
    templates: Templates,
    allowed: Allowed,
    /// By the UID of their object.
    plans: Prepared<String, Spec, Result<Plan, Vec<String>>>,
    /// Queues an object for another reconcile, by namespace and name.
    due: mpsc::UnboundedSender<(String, String)>,
}

/// The input of a plan.
struct Spec {
    object: RolloutPlugin,
    templates: Version,
}

impl PartialEq for Spec {
    /// Compares only what args can read before there is a run, not what changes with every write.
    fn eq(&self, other: &Self) -> bool {
        let parts = |spec: &Self| {
            let metadata = &spec.object.metadata;
            (
                spec.templates,
                metadata.generation,
                metadata.deletion_timestamp.clone(),
            )
        };
        let (this, that) = (&self.object, &other.object);
        parts(self) == parts(other)
            && this.spec == that.spec
            && this.metadata.labels == that.metadata.labels
            && this.metadata.annotations == that.metadata.annotations
    }
}

impl AnalysisRunStore {
    pub(crate) fn new(
        client: Client,
        runs: Runs,
        templates: Templates,
        allowed: Allowed,
        workers: Workers,
        due: mpsc::UnboundedSender<(String, String)>,
    ) -> Self {
        Self {
            client,
            runs,
            templates,
            allowed,
            plans: Prepared::new(workers),
            due,
        }
    }
}

#[async_trait]
impl Checks<RolloutPlugin> for AnalysisRunStore {
    fn plan(
        &self,
        object: &RolloutPlugin,
        _: &Result<Workload, NoWorkload>,
    ) -> Option<Result<Plan, Vec<String>>> {
        if !rolloutplugin::has_analysis(object) {
            return Some(rolloutplugin::plan(object));
        }
        if let Some(why) = self.runs.unavailable() {
            return Some(Err(vec![format!(
                "spec.strategy.canary: has analysis, and analysis runs cannot be watched ({why}); they come with: stateward \
                 install --crds | kubectl apply -f -"
            )]));
        }
        let namespace = object.namespace().unwrap_or_default();
        let spec = Spec {
            object: RolloutPlugin {
                metadata: object.metadata.clone(),
                spec: object.spec.clone(),
                status: None,
            },
            templates: self.templates.version(&namespace),
        };
        let templates = self.templates.seen_from(&namespace, self.allowed.clone());
        let plan = move |spec: &Spec| rolloutplugin::plan_with(&spec.object, Some(&templates));
        let (due, again) = (self.due.clone(), (namespace.clone(), object.name_any()));
        let ready = move || {
            // The receiver is gone when the operator shuts down.
            let _ = due.send(again);
        };
        let uid = object.uid().unwrap_or_default();
        let plan = self.plans.get(&namespace, &uid, spec, plan, ready)?;
        Some((*plan).clone())
    }

    fn runs(&self, object: &RolloutPlugin, _: &Result<Workload, NoWorkload>, _: Timestamp) -> Vec<Run> {
        self.runs.of(&Owner::of(object))
    }

    async fn start(
        &self,
        object: &RolloutPlugin,
        seen: &Observation,
        name: &str,
        run_for: RunFor,
    ) -> Result<Done, Error> {
        let Some((analysis, path, span)) = rolloutplugin::analysis(object, run_for) else {
            return Ok(Done::Unchanged);
        };
        let namespace = object.namespace().unwrap_or_default();
        let status = object.status.clone().unwrap_or_default();
        let templates = self.templates.seen_from(&namespace, self.allowed.clone());
        let sources = Sources {
            object: &json!(object),
            stable: status.stable_revision.as_deref(),
            latest: seen
                .workload
                .as_ref()
                .ok()
                .map(|workload| workload.update.as_str()),
        };
        let spec = match template::compose(analysis, &path, span, &templates, sources) {
            Ok(spec) => spec,
            Err(problems) => {
                let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
                return Ok(Done::NotNow(format!(
                    "analysis run {name} cannot be started: {}",
                    problems.join("; ")
                )));
            }
        };
        let run = AnalysisRun {
            metadata: metadata(object, analysis, name, run_for),
            spec,
            status: None,
        };
        let runs = Objects::<AnalysisRun>::in_namespace_of(&self.client, object)?;
        match runs.create(&run).await {
            Ok(created) => {
                self.runs.put(&created);
                Ok(Done::Changed)
            }
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                let there = runs.find(&ObjectName::new(name)?).await;
                let there = there.map_err(Error::api("cannot read an analysis run"))?;
                match there {
                    Some(there) if there.metadata.deletion_timestamp.is_some() => Ok(Done::NotNow(format!(
                        "AnalysisRun {name} is being deleted; it is started again when that one is gone"
                    ))),
                    Some(there) if is_of(&there, object) => {
                        self.runs.put(&there);
                        Ok(Done::Changed)
                    }
                    Some(_) => Ok(Done::NotNow(format!(
                        "there is an AnalysisRun {name} that belongs to another object; delete it to continue"
                    ))),
                    None => Ok(Done::Unchanged),
                }
            }
            Err(error) => Err(Error::api("cannot start an analysis run")(error)),
        }
    }

    async fn end(&self, object: &RolloutPlugin, name: &str, uid: &str) -> Result<Done, Error> {
        let patch = json!({"metadata": {"uid": uid}, "spec": {"terminate": true}});
        let ended = Objects::<AnalysisRun>::in_namespace_of(&self.client, object)?
            .patch(
                &ObjectName::new(name)?,
                &PatchParams::default(),
                &Patch::Merge(patch),
            )
            .await;
        match ended {
            Ok(run) => {
                self.runs.put(&run);
                Ok(Done::Changed)
            }
            Err(kube::Error::Api(status)) if status.code == 404 => self.gone(object, name),
            Err(error) => Err(Error::api("cannot end an analysis run")(error)),
        }
    }

    async fn delete(&self, object: &RolloutPlugin, name: &str, uid: &str) -> Result<Done, Error> {
        let deleted = Objects::<AnalysisRun>::in_namespace_of(&self.client, object)?
            .delete(&ObjectName::new(name)?, Some(uid.to_owned()))
            .await;
        deleted.map_err(Error::api("cannot delete an analysis run"))?;
        self.gone(object, name)
    }

    fn forget(&self, uid: &str) {
        self.plans.forget(&uid.to_owned());
    }
}

impl AnalysisRunStore {
    fn gone(&self, object: &RolloutPlugin, name: &str) -> Result<Done, Error> {
        self.runs.take(&Owner::of(object), name);
        Ok(Done::Unchanged)
    }
}

fn metadata(object: &RolloutPlugin, analysis: &Analysis, name: &str, run_for: RunFor) -> ObjectMeta {
    let extra = analysis.analysis_run_metadata.clone().unwrap_or_default();
    let mut labels: BTreeMap<String, String> = extra.labels;
    // The label values that users of Argo Rollouts select by.
    let (kind, step) = match run_for {
        RunFor::Step(step) => ("Step", Some(step.0.to_string())),
        RunFor::Background => ("Background", None),
    };
    labels.insert(INSTANCE_LABEL.into(), INSTANCE.into());
    labels.insert("rollout-type".into(), kind.into());
    labels.insert("rollout-plugin-name".into(), label(&object.name_any()));
    labels.extend(step.map(|step| ("step-index".to_owned(), step)));
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: object.namespace(),
        labels: Some(labels),
        annotations: Some(extra.annotations).filter(|annotations| !annotations.is_empty()),
        owner_references: object.controller_owner_ref(&()).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// Labels have a shorter limit than names.
fn label(name: &str) -> String {
    let label: String = name.chars().take(63).collect();
    label.trim_end_matches(['-', '.']).to_owned()
}

fn is_of(run: &AnalysisRun, object: &RolloutPlugin) -> bool {
    owner(run).is_some_and(|owner| owner == Owner::of(object))
}
