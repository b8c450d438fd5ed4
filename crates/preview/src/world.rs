//! The cluster, the kubelet and the operator of a preview, and the actions on them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use stateward_clock::Clock;
use stateward_cluster::{Cluster, Commits, Options};
use stateward_controller::Operator;
use stateward_kubelet::{Behaviour, Behaviours, Kubelet, Match, Running};
use tokio::task::JoinHandle;

use crate::Error;
use crate::answers::Answers;
use crate::pace::Pace;
use crate::what_if::{Trouble, Verdict};

/// When a preview begins. Any fixed time works.
const EPOCH: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// Everything that runs. Stops when it is dropped.
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) commits: Commits,
    client: Client,
    namespace: String,
    cluster: Cluster,
    behaviours: Behaviours,
    answers: Answers,
    pace: Pace,
    operator: Option<JoinHandle<()>>,
    _kubelet: Running,
}

impl World {
    /// Starts a cluster with our CRDs and its nodes.
    pub(crate) async fn open(namespace: &str, pace: Pace, answers: Answers) -> Result<Self, Error> {
        let clock = Clock::starting_at(EPOCH, 1.0);
        let cluster = Cluster::start(Options {
            patient_watches: true,
            ..Options::at(clock.clone())
        });
        let behaviours = Behaviours::default();
        let kubelet = Kubelet::new(cluster.lean_client("system:nodes"), clock.clone())
            .behaviours(behaviours.clone())
            .heartbeat(None)
            .spawn();
        let client = cluster.client("kubernetes-admin");
        let world = Self {
            commits: cluster.commits(),
            clock,
            client,
            namespace: namespace.to_owned(),
            cluster,
            behaviours,
            answers,
            pace,
            operator: None,
            _kubelet: kubelet,
        };
        world.furnish().await?;
        Ok(world)
    }

    async fn furnish(&self) -> Result<(), Error> {
        let broken = |error: &dyn std::fmt::Display| Error::Broken(error.to_string());
        if self.namespace != "default" {
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace},
            });
            self.create(&namespace).await?;
        }
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for definition in stateward_api::definitions() {
            let name = definition.name_any();
            definitions
                .create(&PostParams::default(), &definition)
                .await
                .map_err(|error| broken(&error))?;
            await_condition(definitions.clone(), &name, conditions::is_crd_established())
                .await
                .map_err(|error| broken(&error))?;
        }
        Ok(())
    }

    /// Gives pods of this set the pace of the preview.
    pub(crate) fn pace_set(&self, set: &str) {
        self.behaviours.program(Match::set(set), self.well());
    }

    fn well(&self) -> Behaviour {
        self.paced(Behaviour::ready_after(self.pace.ready_after))
    }

    fn paced(&self, behaviour: Behaviour) -> Behaviour {
        behaviour
            .jitter(0.0)
            .pull(Duration::ZERO)
            .start(Duration::ZERO)
            .stops_after(self.pace.stops_after)
    }

    /// Gives pods of the new version a problem.
    pub(crate) fn trouble(&self, set: &str, revision: &str, ordinal: Option<u32>, trouble: Trouble) {
        let pods = Match::set(set).revision(revision);
        let pods = match ordinal {
            Some(ordinal) => pods.ordinal(ordinal),
            None => pods,
        };
        let behaviour = match trouble {
            Trouble::NeverReady => Behaviour::never_ready(),
            Trouble::Crash => Behaviour::crash_loop(),
            Trouble::NoImage => Behaviour::image_pull_error(),
            Trouble::OutOfMemory => Behaviour::oom_killed(),
            Trouble::ReadyAfter(time) => Behaviour::ready_after(time),
        };
        self.behaviours.program(pods, self.paced(behaviour));
    }

    /// Sets the current step of the rollout.
    pub(crate) fn come_to(&self, step: usize) {
        self.answers.come_to(step);
    }

    /// Makes the pods of this Job succeed or fail as its metric's verdict says.
    pub(crate) fn run_job(&self, job: &str, metric: Option<&str>) {
        let code = match self.answers.verdict(metric) {
            Verdict::Succeeds => 0,
            Verdict::Fails | Verdict::Inconclusive | Verdict::Silent => 1,
        };
        self.behaviours
            .program(Match::job(job), Behaviour::exits(code, Duration::ZERO));
    }

    pub(crate) fn start_operator(&mut self) {
        self.stop_operator();
        let options = stateward_controller::Options {
            clock: self.clock.clone(),
            namespaces: Vec::new(),
        };
        let operator = Operator::new(self.cluster.client("stateward-operator"), options)
            .providers(Arc::new(self.answers.clone()));
        self.operator = Some(tokio::spawn(operator.run()));
    }

    pub(crate) fn stop_operator(&mut self) {
        if let Some(operator) = self.operator.take() {
            operator.abort();
        }
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let (group, version) = match text("apiVersion").split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", text("apiVersion")),
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        }
    }

    /// Creates an object.
    pub(crate) async fn create(&self, object: &Value) -> Result<(), Error> {
        let what = described(object);
        let parsed = serde_json::from_value(object.clone());
        let parsed: DynamicObject = parsed.map_err(|error| Error::Subject(format!("{what}: {error}")))?;
        let created = self.api(object).create(&PostParams::default(), &parsed).await;
        created.map(drop).map_err(|error| refused(what, &error))
    }

    /// Merges a patch into an object, or into its status.
    pub(crate) async fn patch(&self, object: &Value, patch: Value) -> Result<(), Error> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let is_status = patch.get("status").is_some();
        let patch = Patch::Merge(patch);
        let (api, params) = (self.api(object), PatchParams::default());
        let patched = if is_status {
            api.patch_status(name, &params, &patch).await
        } else {
            api.patch(name, &params, &patch).await
        };
        patched
            .map(drop)
            .map_err(|error| refused(described(object), &error))
    }

    /// Replaces the set's template as a whole.
    pub(crate) async fn retemplate(&self, set: &Value, template: &Value) -> Result<(), Error> {
        let name = set["metadata"]["name"].as_str().unwrap_or_default();
        let patch = json!([{"op": "replace", "path": "/spec/template", "value": template}]);
        let patch = serde_json::from_value(patch).map_err(|error| Error::Broken(error.to_string()))?;
        let patched = self
            .api(set)
            .patch(name, &PatchParams::default(), &Patch::<Value>::Json(patch))
            .await;
        patched.map(drop).map_err(|error| refused(described(set), &error))
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop_operator();
    }
}

fn described(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

fn refused(what: String, error: &kube::Error) -> Error {
    let why = match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    };
    Error::Refused { what, why }
}
