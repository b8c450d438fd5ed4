//! The input: a rollout, its set before and after the change, and its analysis templates.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use stateward_api::analysis::AnalysisTemplateSpec;
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rollout::RolloutStatus;
use stateward_api::rolloutplugin::{Canary, RolloutPlugin, TemplateRef};
use stateward_core::memory::Activity;
use stateward_core::plan::{Plan, pod_by_pod};
use stateward_core::world::NoWorkload;
use stateward_core::{phasedrollout, record, rolloutplugin};

use crate::Error;
use crate::pace::Pace;

/// Everything known of a rollout, as it is collected.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    rollout: Option<Value>,
    /// The set as wanted.
    set: Option<Value>,
    /// The set on the cluster.
    present: Option<Value>,
    templates: Vec<Value>,
    /// The pod template of the stable version, if known.
    stable: Option<Value>,
    pods: Vec<Pod>,
}

/// A required object that was not given.
#[derive(Clone, Debug, PartialEq)]
pub enum Missing {
    /// The StatefulSet of this name.
    Set(String),
    /// This template.
    Template(TemplateRef),
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Set(name) => write!(f, "StatefulSet {name}"),
            Self::Template(template) if template.cluster_scope => {
                write!(f, "ClusterAnalysisTemplate {}", template.template_name)
            }
            Self::Template(template) => write!(f, "AnalysisTemplate {}", template.template_name),
        }
    }
}

/// Where the preview begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// With the template change.
    Beginning,
    /// At the rollout's current step, from 0, for this long.
    Step(usize, Duration),
}

impl Subject {
    /// Adds the objects of a file; unrelated ones are ignored.
    pub fn add_manifests(&mut self, objects: impl IntoIterator<Item = Value>) -> Result<(), Error> {
        for object in objects {
            let place = match object["kind"].as_str() {
                Some("RolloutPlugin" | "PhasedRollout") => &mut self.rollout,
                Some("StatefulSet") => &mut self.set,
                Some("AnalysisTemplate" | "ClusterAnalysisTemplate") => {
                    self.templates.push(object);
                    continue;
                }
                Some("List") => {
                    let items = object["items"].as_array().cloned().unwrap_or_default();
                    self.add_manifests(items)?;
                    continue;
                }
                _ => continue,
            };
            if let Some(other) = place {
                return Err(Error::Subject(format!(
                    "there are two: {} and {}; name the files of one rollout and its StatefulSet",
                    title(other),
                    title(&object)
                )));
            }
            *place = Some(object);
        }
        Ok(())
    }

    /// Adds the rollout on a cluster, unless a file had one.
    pub fn add_rollout(&mut self, rollout: Value) {
        match &mut self.rollout {
            // The file's spec continues from the status on the cluster.
            Some(given) => given["status"] = rollout["status"].clone(),
            empty => *empty = Some(rollout),
        }
    }

    /// Adds the pod template of the stable version, as the operator keeps it.
    pub fn add_stable_template(&mut self, template: Value) {
        self.stable = Some(template);
    }

    /// Adds the set on a cluster.
    pub fn add_present_set(&mut self, set: Value) {
        self.present = Some(set);
    }

    /// Adds an analysis template.
    pub fn add_template(&mut self, template: Value) {
        self.templates.push(template);
    }

    /// Adds the existing pods.
    pub fn add_pods(&mut self, pods: impl IntoIterator<Item = Pod>) {
        self.pods.extend(pods);
    }

    /// The required objects that were not given.
    pub fn missing(&self) -> Result<Vec<Missing>, Error> {
        let rollout = self.rollout()?;
        let mut missing = Vec::new();
        if self.set.is_none() && self.present.is_none() {
            missing.push(Missing::Set(rollout.workload().to_owned()));
        }
        let mut asked = rollout.templates();
        while let Some(template) = asked.pop() {
            match self::template(&self.templates, &template) {
                Some(found) => asked.extend(spec_of(found)?.templates),
                None if missing.contains(&Missing::Template(template.clone())) => {}
                None => missing.push(Missing::Template(template)),
            }
        }
        Ok(missing)
    }

    /// The names of the first `most` pods.
    pub fn pod_names(&self, most: usize) -> Vec<String> {
        let Some(set) = self.present.as_ref().or(self.set.as_ref()) else {
            return Vec::new();
        };
        let name = set["metadata"]["name"].as_str().unwrap_or_default();
        let start = set["spec"]["ordinals"]["start"].as_u64().unwrap_or(0);
        let replicas = set["spec"]["replicas"].as_u64().unwrap_or(1);
        (start..start.saturating_add(replicas))
            .take(most)
            .map(|ordinal| format!("{name}-{ordinal}"))
            .collect()
    }

    /// The name of the rollout's StatefulSet.
    pub fn workload(&self) -> Result<String, Error> {
        Ok(self.rollout()?.workload().to_owned())
    }

    /// The namespace of the rollout, if it names one.
    pub fn namespace(&self) -> Option<&str> {
        self.rollout.as_ref()?["metadata"]["namespace"].as_str()
    }

    fn rollout(&self) -> Result<Rollout, Error> {
        let Some(rollout) = &self.rollout else {
            return Err(Error::Subject(
                "there is no RolloutPlugin and no PhasedRollout among what was given".into(),
            ));
        };
        Rollout::read(rollout)
    }

    /// Prepares the simulation, as of `now`.
    pub(crate) fn fixture(&self, now: Timestamp, namespace: &str) -> Result<Fixture, Error> {
        let rollout = self.rollout()?;
        let missing = self.missing()?;
        if let Some(first) = missing.first() {
            return Err(Error::Subject(format!(
                "{} needs {first}, which was not given; name its file as well",
                rollout.title()
            )));
        }
        let (Some(to_be), present) = (self.set.as_ref().or(self.present.as_ref()), &self.present) else {
            return Err(Error::Subject("there is no StatefulSet".into()));
        };
        let named = to_be["metadata"]["name"].as_str().unwrap_or_default();
        if named != rollout.workload() {
            return Err(Error::Subject(format!(
                "{} rolls StatefulSet {}, and the one that was given is {named}",
                rollout.title(),
                rollout.workload()
            )));
        }
        let mut notes = Vec::new();
        let status = rollout.status();
        let (start, stable) = stand(&status, self.stable.clone(), now, &mut notes, &rollout);
        let after = to_be["spec"]["template"].clone();
        let overtaken = present.as_ref().filter(|present| is_overtaken(&status, present));
        if overtaken.is_some() {
            notes.push(
                "no operator has looked at the template that the set has now; it does when this begins"
                    .into(),
            );
        }
        let under_way = stable.is_some().then_some(present.as_ref()).flatten();
        let replaced = match (under_way, overtaken) {
            // The template being rolled out is no longer readable.
            (Some(_), Some(present)) => Some(stamped(present["spec"]["template"].clone(), "overtaken")),
            (Some(present), None) if self.set.is_some() => Some(present["spec"]["template"].clone()),
            _ => None,
        };
        let replaced = replaced.map(placed_anywhere);
        let stands = overtaken.is_some() && under_way.is_some() && self.set.is_none();
        let stable = stable.or_else(|| overtaken.and_then(|_| self.stable.clone()));
        let (before, after) = match (stable, present, &self.set) {
            (Some(stable), ..) => (stable, after),
            (None, Some(present), Some(_)) => (present["spec"]["template"].clone(), after),
            (None, Some(_), None) => {
                notes.push("the next version is like the present one".into());
                (after.clone(), stamped(after, "next"))
            }
            (None, None, _) => {
                notes.push("every pod runs an earlier version of the same shape".into());
                (stamped(after.clone(), "previous"), after)
            }
        };
        let same = before == after;
        let (before, mut after) = (placed_anywhere(before), placed_anywhere(after));
        if before == after && !same {
            after = stamped(after, "next");
        }
        Ok(Fixture {
            set: bare_set(to_be, present.as_ref(), &before, namespace),
            replaced,
            overtaken: stands,
            after,
            rollout: rollout.bare(namespace),
            templates: self
                .templates
                .iter()
                .map(|template| tamed(template, namespace))
                .collect::<Result<_, _>>()?,
            start,
            notes,
            subject: rollout,
        })
    }

    /// The pace of its pods.
    pub fn pace(&self, ready_after: Option<Duration>, stops_after: Option<Duration>) -> Pace {
        let set = self.set.as_ref().or(self.present.as_ref());
        let set: StatefulSet = set
            .and_then(|set| serde_json::from_value(set.clone()).ok())
            .unwrap_or_default();
        Pace::of(&set, &self.pods, ready_after, stops_after)
    }
}

/// The current step, and the template being replaced if a rollout is in progress.
fn stand(
    status: &RolloutStatus,
    stable: Option<Value>,
    now: Timestamp,
    notes: &mut Vec<String>,
    rollout: &Rollout,
) -> (Start, Option<Value>) {
    match (record::memory(status).activity, stable) {
        (Activity::Rolling(attempt), Some(stable)) => {
            let since = Duration::try_from(now.duration_since(attempt.entered)).unwrap_or_default();
            notes.push(format!(
                "{} is under way: the preview begins at step {}, where it stands, with every pod well",
                rollout.title(),
                attempt.step.0 + 1
            ));
            (Start::Step(attempt.step.0 as usize, since), Some(stable))
        }
        (Activity::RollingBack(back), _) => {
            notes.push(format!(
                "{} is returning from {} now; this is about the version after it",
                rollout.title(),
                back.from
            ));
            (Start::Beginning, None)
        }
        _ => (Start::Beginning, None),
    }
}

/// Whether the set has another version than the status, and its controller has observed that.
fn is_overtaken(status: &RolloutStatus, present: &Value) -> bool {
    let seen = present["status"]["observedGeneration"] == present["metadata"]["generation"];
    match (
        &status.updated_revision,
        present["status"]["updateRevision"].as_str(),
    ) {
        (Some(known), Some(asked)) => seen && known != asked,
        _ => false,
    }
}

/// The prepared input of a simulation.
pub(crate) struct Fixture {
    pub(crate) subject: Rollout,
    /// The set with the previous version.
    pub(crate) set: Value,
    /// The template of the rollout in progress, if a file may have another.
    pub(crate) replaced: Option<Value>,
    /// Whether the set has the new template already, but the operator has not observed it.
    pub(crate) overtaken: bool,
    /// The new template.
    pub(crate) after: Value,
    pub(crate) rollout: Value,
    pub(crate) templates: Vec<Value>,
    pub(crate) start: Start,
    pub(crate) notes: Vec<String>,
}

impl Fixture {
    /// The referenced template.
    pub(crate) fn template(&self, wanted: &TemplateRef) -> Option<&Value> {
        template(&self.templates, wanted)
    }

    pub(crate) fn replicas(&self) -> u32 {
        let replicas = self.set["spec"]["replicas"].as_u64().unwrap_or(1);
        u32::try_from(replicas).unwrap_or(u32::MAX)
    }

    /// The set's `minReadySeconds`.
    pub(crate) fn min_ready(&self) -> Duration {
        Duration::from_secs(self.set["spec"]["minReadySeconds"].as_u64().unwrap_or(0))
    }

    pub(crate) fn first_ordinal(&self) -> u32 {
        let start = self.set["spec"]["ordinals"]["start"].as_u64().unwrap_or(0);
        u32::try_from(start).unwrap_or(u32::MAX)
    }

    /// The rollout's steps, or why its spec is invalid.
    pub(crate) fn plan(&self) -> Result<Plan, Error> {
        self.subject
            .plan(self.replicas())
            .map_err(|problems| Error::NotRolled {
                what: self.subject.title(),
                why: problems.join("; "),
            })
    }
}

/// A rollout of either kind.
#[derive(Clone, Debug)]
pub(crate) enum Rollout {
    Plugin(Box<RolloutPlugin>),
    Phased(Box<PhasedRollout>),
}

impl Rollout {
    fn read(object: &Value) -> Result<Self, Error> {
        let wrong = |error: serde_json::Error| Error::Subject(format!("{}: {error}", title(object)));
        Ok(match object["kind"].as_str() {
            Some("PhasedRollout") => {
                Self::Phased(Box::new(serde_json::from_value(object.clone()).map_err(wrong)?))
            }
            _ => Self::Plugin(Box::new(serde_json::from_value(object.clone()).map_err(wrong)?)),
        })
    }

    /// `rolloutplugin/db`
    pub(crate) fn title(&self) -> String {
        format!("{}/{}", self.word(), self.name())
    }

    pub(crate) fn name(&self) -> &str {
        let metadata = match self {
            Self::Plugin(rollout) => &rollout.metadata,
            Self::Phased(rollout) => &rollout.metadata,
        };
        metadata.name.as_deref().unwrap_or_default()
    }

    fn word(&self) -> &'static str {
        match self {
            Self::Plugin(_) => "rolloutplugin",
            Self::Phased(_) => "phasedrollout",
        }
    }

    pub(crate) fn workload(&self) -> &str {
        match self {
            Self::Plugin(rollout) => &rollout.spec.workload_ref.name,
            Self::Phased(rollout) => &rollout.spec.target_ref,
        }
    }

    pub(crate) fn is_paused(&self) -> bool {
        match self {
            Self::Plugin(rollout) => rollout.spec.paused,
            Self::Phased(rollout) => rollout.spec.paused,
        }
    }

    /// Whether the update is left to Kubernetes.
    pub(crate) fn is_left_alone(&self) -> bool {
        match self {
            Self::Plugin(_) => false,
            Self::Phased(rollout) => rollout.spec.skips_checks(),
        }
    }

    /// The part of the status that every kind of rollout has.
    pub(crate) fn status(&self) -> RolloutStatus {
        match self {
            Self::Plugin(rollout) => rollout.status.clone().unwrap_or_default(),
            Self::Phased(rollout) => {
                let status = rollout.status.clone().unwrap_or_default().rollout;
                let phase = phasedrollout::plain_phase(&status).to_owned();
                RolloutStatus { phase, ..status }
            }
        }
    }

    /// The same rollout with the status of this object.
    pub(crate) fn seen(&self, object: &Value) -> Result<Self, Error> {
        Self::read(object)
    }

    fn plan(&self, replicas: u32) -> Result<Plan, Vec<String>> {
        match self {
            Self::Plugin(rollout) => rolloutplugin::plan(rollout),
            Self::Phased(rollout) => {
                let unknown = Err(NoWorkload::Missing(String::new()));
                phasedrollout::plan(rollout, &unknown).map(|plan| Plan {
                    steps: pod_by_pod(replicas),
                    ..plan
                })
            }
        }
    }

    fn templates(&self) -> Vec<TemplateRef> {
        let Some(canary) = self.canary() else {
            return Vec::new();
        };
        let steps = canary.steps.iter().filter_map(|step| step.analysis.as_ref());
        let beside = canary.analysis.iter().map(|beside| &beside.analysis);
        steps
            .chain(beside)
            .flat_map(|analysis| analysis.templates.clone())
            .collect()
    }

    /// The templates of the analysis at a step, from 0: in the step or in the background.
    pub(crate) fn templates_at(&self, step: usize) -> Vec<TemplateRef> {
        let Some(canary) = self.canary() else {
            return Vec::new();
        };
        let own = canary.steps.get(step).and_then(|step| step.analysis.as_ref());
        let beside = canary.analysis.as_ref().filter(|beside| {
            let from = usize::try_from(beside.starting_step.unwrap_or(0)).unwrap_or(0);
            from <= step
        });
        own.into_iter()
            .chain(beside.map(|beside| &beside.analysis))
            .flat_map(|analysis| analysis.templates.clone())
            .collect()
    }

    fn canary(&self) -> Option<&Canary> {
        match self {
            Self::Plugin(rollout) => rollout.spec.strategy.canary.as_ref(),
            Self::Phased(_) => None,
        }
    }

    /// The object as a user would apply it: without fields that a server or other operators added.
    fn bare(&self, namespace: &str) -> Value {
        let (metadata, mut object) = match self {
            Self::Plugin(rollout) => (&rollout.metadata, json!(rollout)),
            Self::Phased(rollout) => {
                let mut object = json!(rollout);
                object["spec"]["check"]["successOn"] = json!(rollout.success_on());
                if let Some(query) = object["spec"]["check"]["query"].as_object_mut() {
                    query.remove("secretRef");
                }
                (&rollout.metadata, object)
            }
        };
        object["metadata"] =
            json!({"name": metadata.name, "namespace": namespace, "labels": metadata.labels});
        object["spec"]["paused"] = json!(false);
        if let Some(reference) = object["spec"]["workloadRef"].as_object_mut() {
            reference.remove("namespace");
        }
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        object
    }
}

fn template<'a>(templates: &'a [Value], wanted: &TemplateRef) -> Option<&'a Value> {
    let kind = if wanted.cluster_scope {
        "ClusterAnalysisTemplate"
    } else {
        "AnalysisTemplate"
    };
    let named = |object: &&Value| {
        object["kind"] == kind && object["metadata"]["name"] == wanted.template_name.as_str()
    };
    templates.iter().find(named)
}

/// `StatefulSet db`
fn title(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

fn spec_of(template: &Value) -> Result<AnalysisTemplateSpec, Error> {
    serde_json::from_value(template["spec"].clone())
        .map_err(|error| Error::Subject(format!("{}: {error}", title(template))))
}

/// A pod template with a mark that makes it differ.
fn stamped(mut template: Value, mark: &str) -> Value {
    if !template["metadata"].is_object() {
        template["metadata"] = json!({});
    }
    if !template["metadata"]["annotations"].is_object() {
        template["metadata"]["annotations"] = json!({});
    }
    template["metadata"]["annotations"]["stateward.dev/preview"] = json!(mark);
    template
}

/// Removes node constraints: the nodes of the preview have room for every pod.
fn placed_anywhere(mut template: Value) -> Value {
    if let Some(spec) = template["spec"].as_object_mut() {
        for field in ["nodeSelector", "affinity", "nodeName", "schedulerName"] {
            spec.remove(field);
        }
    }
    template
}

/// The set as a user would apply it, with the previous version.
fn bare_set(to_be: &Value, present: Option<&Value>, before: &Value, namespace: &str) -> Value {
    let metadata = &to_be["metadata"];
    let mut spec = to_be["spec"].clone();
    spec["template"] = before.clone();
    // The current replicas if the file has none: they are often left to an autoscaler.
    if let (true, Some(present)) = (spec["replicas"].is_null(), present) {
        spec["replicas"] = present["spec"]["replicas"].clone();
    }
    // A guard is set by the operator, not by the user.
    if present.is_some()
        && let Some(rolling) = spec["updateStrategy"]["rollingUpdate"].as_object_mut()
    {
        rolling.remove("partition");
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": metadata["name"], "namespace": namespace, "labels": metadata["labels"]},
        "spec": spec,
    })
}

/// The annotation of a Job with the name of its metric.
pub(crate) const METRIC_OF_JOB: &str = "stateward.dev/preview-metric";

/// The failure condition of a tamed metric.
const FAILS: &str = "result[0] == 0";

/// The operator's message without conditions and values that were only simulated, and without the commands at its end: they name a revision
/// that exists only in the simulation.
pub(crate) fn as_supposed(words: &str) -> String {
    let command = words.find("kubectl stateward ");
    let before = command.and_then(|at| words[..at].rsplit_once("; "));
    before
        .map_or(words, |(before, _)| before)
        .replace(&format!("failureCondition {FAILS:?} holds of [0]"), "as supposed")
        .replace(
            "neither condition holds of [2]",
            "neither condition holds, as supposed",
        )
}

/// A template whose metrics query only this preview: their timing stays, their query and conditions are replaced. A Job runs on the
/// simulated kubelet.
fn tamed(template: &Value, namespace: &str) -> Result<Value, Error> {
    let mut template = template.clone();
    let name = template["metadata"]["name"].clone();
    let clusterwide = template["kind"] == "ClusterAnalysisTemplate";
    template["metadata"] = if clusterwide {
        json!({"name": name})
    } else {
        json!({"name": name, "namespace": namespace})
    };
    spec_of(&template)?;
    for metric in template["spec"]["metrics"].as_array_mut().into_iter().flatten() {
        if metric["provider"]["job"].is_object() {
            // The Job must carry its metric's name when it runs.
            let (name, job) = (metric["name"].clone(), &mut metric["provider"]["job"]);
            if !job["metadata"].is_object() {
                job["metadata"] = json!({});
            }
            if !job["metadata"]["annotations"].is_object() {
                job["metadata"]["annotations"] = json!({});
            }
            job["metadata"]["annotations"][METRIC_OF_JOB] = name;
            continue;
        }
        metric["provider"] = json!({"prometheus": {"address": "http://preview", "query": "preview"}});
        metric["successCondition"] = json!("result[0] == 1");
        metric["failureCondition"] = json!(FAILS);
    }
    Ok(template)
}
