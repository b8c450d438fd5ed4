//! A cluster with a StatefulSet of five pods and its rollout, and a user who runs commands.

use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use stateward_analysis::{MetricProvider, MetricQuery, ProviderError};
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_cli::{Exit, Session, Style, Verb};
use stateward_clock::Clock;
use stateward_cluster::{Cluster, Options};
use stateward_core::analysis::Reply;
use stateward_kubelet::{Behaviour, Behaviours, Kubelet, Match, Running};

pub(crate) struct World {
    clock: Clock,
    /// The namespace of its objects; the context's own is always `default`.
    namespace: &'static str,
    client: Client,
    operator: Option<tokio::task::JoinHandle<()>>,
    _cluster: Cluster,
    behaviours: Behaviours,
    _kubelet: Running,
}

/// The fate of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// Received, and never answered.
    Unanswered,
    /// The connection is lost before the answer.
    Broken,
    /// The server itself timed out.
    GivenUp,
}

/// Which strings of a cluster contain [`PAYLOAD`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hostile {
    /// Strings that users choose freely: messages, reasons, annotations, images, arguments.
    FreeText,
    /// All but those that programs depend on: names, kinds, phases.
    EveryString,
    /// Names as well.
    NamesToo,
    /// The server rejects everything, with such messages.
    Refusals,
    /// The server rejects writes.
    RefusedWrites,
}

/// A foreign colour, C1, a carriage return, bidirectional controls, a bell, a forged line.
pub(crate) const PAYLOAD: &str = "\x1b[7mPWN\x1b]0;title\x07\u{9b}2J\u{85}\u{7f}\r\u{202e}\u{2066}\u{200f}\u{2028}\u{8}\u{db}31m\nFORGED\tline";

/// The start of the forged line.
pub(crate) const FORGED: &str = "FORGED";

/// The fields that users choose freely.
const FREE: [&str; 9] = [
    "message",
    "reason",
    "image",
    "value",
    "gitVersion",
    "cause",
    "kubernetes.io/change-cause",
    "command",
    "args",
];

/// The fields that programs depend on.
const MACHINERY: [&str; 10] = [
    "apiVersion",
    "kind",
    "resourceVersion",
    "uid",
    "type",
    "phase",
    "status",
    "continue",
    "outcome",
    "plugin",
];

/// Fields that are validated when objects are read.
const ENUMERATED: [&str; 6] = [
    "NoData",
    "Parallel",
    "OrderedReady",
    "RollingUpdate",
    "Retain",
    "Always",
];

impl Hostile {
    fn rewrite(self, key: &str, value: &mut serde_json::Value) {
        use serde_json::Value;
        match value {
            // Enumerations: an object with other values fails to deserialize, and nothing of it would be shown.
            _ if ["pauseConditions", "noData", "onNoData", "metrics"].contains(&key) => {}
            Value::String(text) if ENUMERATED.contains(&text.as_str()) => {}
            Value::Object(fields) => {
                // The reason of a Status identifies the error.
                let is_status = fields.get("kind").is_some_and(|kind| kind == "Status");
                fields
                    .iter_mut()
                    .filter(|(key, _)| !is_status || *key != "reason")
                    .for_each(|(key, value)| self.rewrite(key, value));
            }
            Value::Array(items) => items.iter_mut().for_each(|value| self.rewrite(key, value)),
            Value::String(text) => {
                let is_a_time = text.parse::<jiff::Timestamp>().is_ok();
                let is_a_name = ["name", "namespace"].contains(&key);
                let hit = match self {
                    Self::FreeText => FREE.contains(&key),
                    Self::EveryString => !is_a_name,
                    Self::NamesToo | Self::Refusals | Self::RefusedWrites => true,
                };
                if hit && !is_a_time && !MACHINERY.contains(&key) {
                    text.push_str(PAYLOAD);
                }
            }
            _ => {}
        }
    }

    /// A response, or a part of one: a list, an object, or one event of a watch.
    fn rewritten(self, bytes: &[u8]) -> Vec<u8> {
        let text = String::from_utf8_lossy(bytes);
        let line = |line: &str| match serde_json::from_str(line) {
            Ok(mut value) => {
                self.rewrite("", &mut value);
                value.to_string()
            }
            Err(_) => line.to_owned(),
        };
        let lines: Vec<_> = text.split('\n').map(line).collect();
        lines.join("\n").into_bytes()
    }
}

/// The output of a command, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) exit: Exit,
    pub(crate) out: String,
    pub(crate) talk: String,
}

/// A Prometheus whose responses are always incomplete.
struct BrokenPrometheus;

#[async_trait::async_trait]
impl MetricProvider for BrokenPrometheus {
    async fn query(&self, _: &MetricQuery<'_>) -> Result<Reply, ProviderError> {
        Err(ProviderError::Connection {
            origin: "http://127.0.0.1:9090".into(),
            what: "the connection was closed before the answer was complete".into(),
        })
    }
}

#[derive(Parser)]
#[command(name = "stateward", term_width = 100)]
struct Line {
    #[command(subcommand)]
    verb: Verb,
}

impl World {
    /// An empty cluster.
    pub(crate) fn bare() -> Self {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap(), 1.0);
        let cluster = Cluster::start(Options::at(clock.clone()));
        let behaviours = Behaviours::default();
        let kubelet = Kubelet::new(cluster.lean_client("system:nodes"), clock.clone())
            .behaviours(behaviours.clone())
            .heartbeat(None)
            .spawn();
        Self {
            client: cluster.client("somebody"),
            clock,
            namespace: "default",
            operator: None,
            behaviours,
            _cluster: cluster,
            _kubelet: kubelet,
        }
    }

    /// With an operator that has adopted the StatefulSet.
    pub(crate) async fn with_operator() -> Self {
        Self::with_operator_in("default").await
    }

    /// With all objects in this namespace.
    pub(crate) async fn with_operator_in(namespace: &'static str) -> Self {
        let mut world = Self::bare();
        world.namespace = namespace;
        let place = json!({"metadata": {"name": namespace}});
        let place: Namespace = serde_json::from_value(place).unwrap();
        let namespaces: Api<Namespace> = Api::all(world.client.clone());
        if namespaces.get_opt(namespace).await.unwrap().is_none() {
            namespaces.create(&PostParams::default(), &place).await.unwrap();
        }
        let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
        for definition in stateward_api::definitions() {
            let created = definitions
                .create(&PostParams::default(), &definition)
                .await
                .unwrap();
            let established = conditions::is_crd_established();
            await_condition(definitions.clone(), &created.name_any(), established)
                .await
                .unwrap();
        }
        let options = stateward_controller::Options {
            clock: world.clock.clone(),
            namespaces: Vec::new(),
        };
        let operator = stateward_controller::Operator::new(world.client.clone(), options)
            .providers(Arc::new(BrokenPrometheus));
        world.operator = Some(tokio::spawn(operator.run()));
        let set: StatefulSet = serde_json::from_value(json!({
            "metadata": {"name": "db"},
            "spec": {
                "replicas": 5, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
                "template": {
                    "metadata": {"labels": {"app": "db"}},
                    "spec": {"containers": [{"name": "db", "image": "db:v1"}]},
                },
            },
        }))
        .unwrap();
        world.sets().create(&PostParams::default(), &set).await.unwrap();
        let rollout: RolloutPlugin = serde_json::from_value(json!({
            "metadata": {"name": "db"},
            "spec": {
                "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
                "plugin": {"name": "statefulset"},
                "strategy": {"canary": {"steps": [
                    {"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {"duration": "5m"}},
                ]}},
            },
        }))
        .unwrap();
        world
            .rollouts()
            .create(&PostParams::default(), &rollout)
            .await
            .unwrap();
        world.until("Successful").await;
        await_condition(world.sets(), "db", |set: Option<&StatefulSet>| {
            let strategy = set.and_then(|set| set.spec.as_ref()?.update_strategy.as_ref());
            strategy.and_then(|strategy| strategy.rolling_update.as_ref()?.partition) == Some(5)
        })
        .await
        .unwrap();
        world
    }

    /// Adds a StatefulSet with two pods and its PhasedRollout, and changes the image.
    pub(crate) async fn phase_web(&self) {
        let set: StatefulSet = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {
                "replicas": 2, "serviceName": "web", "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web:v1"}]},
                },
            },
        }))
        .unwrap();
        self.sets().create(&PostParams::default(), &set).await.unwrap();
        let rollout: PhasedRollout = serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {
                "targetRef": "web",
                "check": {"maxTries": 2, "successThreshold": 1, "query": {"expr": "up", "url": "127.0.0.1:9090"}},
            },
        }))
        .unwrap();
        let rollouts: Api<PhasedRollout> = Api::namespaced(self.client.clone(), self.namespace);
        rollouts.create(&PostParams::default(), &rollout).await.unwrap();
        await_condition(rollouts, "web", |rollout: Option<&PhasedRollout>| {
            let status = rollout.and_then(|rollout| rollout.status.as_ref());
            status.is_some_and(|status| status.rollout.phase == "Updated")
        })
        .await
        .unwrap();
        let image =
            json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:v2"}]}}}});
        let patch = Patch::Strategic(image);
        self.sets()
            .patch("web", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    fn sets(&self) -> Api<StatefulSet> {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    fn rollouts(&self) -> Api<RolloutPlugin> {
        Api::namespaced(self.client.clone(), self.namespace)
    }

    pub(crate) fn stop_operator(&mut self) {
        if let Some(operator) = self.operator.take() {
            operator.abort();
        }
    }

    /// Changes the image of the StatefulSet.
    pub(crate) async fn image(&self, tag: &str) {
        let containers = json!([{"name": "db", "image": format!("db:{tag}")}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        self.sets()
            .patch("db", &PatchParams::default(), &Patch::Strategic(patch))
            .await
            .unwrap();
    }

    /// Scales a StatefulSet.
    pub(crate) async fn scale(&self, set: &str, replicas: i32) {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let params = PatchParams::default();
        self.sets().patch(set, &params, &patch).await.unwrap();
    }

    /// Changes the template of the StatefulSet.
    pub(crate) async fn template(&self, template: serde_json::Value) {
        let patch = json!({"spec": {"template": template}});
        self.sets()
            .patch("db", &PatchParams::default(), &Patch::Strategic(patch))
            .await
            .unwrap();
    }

    /// Adds an annotation to the StatefulSet.
    pub(crate) async fn annotate_set(&self, key: &str, value: &str) {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {key: value}}}));
        self.sets()
            .patch("db", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// The images of the pods, by ordinal.
    pub(crate) async fn images(&self) -> Vec<String> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), self.namespace);
        let mut pods = pods.list(&ListParams::default()).await.unwrap().items;
        pods.sort_by_key(ResourceExt::name_any);
        let image = |pod: Pod| pod.spec.unwrap().containers[0].image.clone().unwrap();
        pods.into_iter().map(image).collect()
    }

    /// Recreates the rollout without a status.
    pub(crate) async fn recreate_rollout(&self) {
        let params = PatchParams::default();
        let mut object = self.rollouts().get("db").await.unwrap();
        let let_go = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        self.rollouts().patch("db", &params, &let_go).await.unwrap();
        self.delete_rollout().await;
        object.metadata = kube::api::ObjectMeta {
            name: Some("db".into()),
            ..Default::default()
        };
        object.status = None;
        self.rollouts()
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    /// Runs a command while another client changes the template between its read and its write.
    pub(crate) async fn run_while_the_template_changes(&self, line: &str, tag: &'static str) -> Said {
        let sets = self.sets();
        let meddling = self.client_that(move || {
            let sets = sets.clone();
            async move {
                let image = format!("db:{tag}");
                let patch =
                    json!({"spec": {"template": {"spec": {"containers": [{"name": "db", "image": image}]}}}});
                let params = PatchParams::default();
                sets.patch("db", &params, &Patch::Strategic(patch)).await.unwrap();
            }
        });
        self.run_on(meddling, line, Style::default(), None).await
    }

    /// A client that runs `before` before each patch.
    fn client_that<F, Fut>(&self, before: F) -> Client
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (inner, before) = (self.client.clone(), std::sync::Arc::new(before));
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (inner, before) = (inner.clone(), before.clone());
            async move {
                if request.method() == http::Method::PATCH {
                    before().await;
                }
                inner.send(request).await
            }
        });
        Client::new(service, "default")
    }

    /// Runs commands while the server gives this response to every request for a resource.
    pub(crate) async fn transcript_where(
        &self,
        resource: &'static str,
        (code, body): (u16, &'static str),
        lines: &[&str],
    ) -> String {
        let mut seen = String::new();
        for line in lines {
            let inner = self.client.clone();
            let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
                let inner = inner.clone();
                async move {
                    if request.uri().path().contains(resource) {
                        let body = kube::client::Body::from(body.as_bytes().to_vec());
                        let response = http::Response::builder().status(code).body(body);
                        return Ok(response.unwrap());
                    }
                    inner.send(request).await
                }
            });
            let client = Client::new(service, "default");
            seen.push_str(
                &self
                    .run_on(client, line, Style::default(), None)
                    .await
                    .shown(line),
            );
        }
        seen
    }

    /// Runs a command while requests of this method have this fate.
    pub(crate) async fn run_while(&self, method: http::Method, fate: Fate, line: &str) -> Said {
        let inner = self.client.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let (inner, method) = (inner.clone(), method.clone());
            async move {
                if request.method() != method {
                    return Ok(inner.send(request).await?);
                }
                match fate {
                    Fate::Unanswered => std::future::pending().await,
                    Fate::Broken => Err(tower::BoxError::from(std::io::Error::from(
                        std::io::ErrorKind::ConnectionReset,
                    ))),
                    Fate::GivenUp => {
                        let status = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Timeout",
                            "code": 504, "message": "request did not complete within requested timeout"}"#;
                        let body = kube::client::Body::from(status.as_bytes().to_vec());
                        Ok(http::Response::builder().status(504).body(body)?)
                    }
                }
            }
        });
        let client = Client::new(service, "default");
        self.run_on(client, line, Style::default(), None).await
    }

    /// The server's response to a new object in a strict dry run.
    pub(crate) async fn dry_run(&self, path: &str, object: &serde_json::Value) -> (u16, String) {
        let request = http::Request::post(format!("{path}?dryRun=All&fieldValidation=Strict"))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(kube::client::Body::from(object.to_string().into_bytes()))
            .unwrap();
        let response = self.client.send(request).await.unwrap();
        let code = response.status().as_u16();
        let body = response.into_body().collect_bytes().await.unwrap();
        (code, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Waits for a phase.
    pub(crate) async fn until(&self, phase: &str) {
        let there = |rollout: Option<&RolloutPlugin>| {
            let status = rollout.and_then(|rollout| rollout.status.as_ref());
            status.is_some_and(|status| status.phase == phase)
        };
        await_condition(self.rollouts(), "db", there).await.unwrap();
    }

    /// Changes the rollout's spec.
    pub(crate) async fn spec(&self, spec: serde_json::Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        let params = PatchParams::default();
        self.rollouts().patch("db", &params, &patch).await.unwrap();
    }

    /// Sets the behaviour of pods with this image.
    pub(crate) fn program(&self, image: &str, behaviour: Behaviour) {
        self.behaviours.program(Match::image(image), behaviour);
    }

    /// Creates another rollout for this StatefulSet.
    pub(crate) async fn another_rollout(&self, name: &str, set: &str) {
        let mut object = self.rollouts().get("db").await.unwrap();
        object.metadata = kube::api::ObjectMeta {
            name: Some(name.into()),
            ..Default::default()
        };
        object.spec.workload_ref.name = set.into();
        object.status = None;
        self.rollouts()
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
    }

    /// Adds a label to the rollout.
    pub(crate) async fn label(&self, label: &str) {
        let (key, value) = label.split_once('=').unwrap();
        let patch = Patch::Merge(json!({"metadata": {"labels": {key: value}}}));
        let params = PatchParams::default();
        self.rollouts().patch("db", &params, &patch).await.unwrap();
    }

    /// Adds a Lease with the name of the operator's, renewed this long ago.
    pub(crate) async fn lease(&self, namespace: &str, labels: serde_json::Value, ago: Duration) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let it = serde_json::from_value(json!({"metadata": {"name": namespace}})).unwrap();
        let _ = namespaces.create(&PostParams::default(), &it).await;
        let renewed = self.clock.now() - ago;
        let lease: Lease = serde_json::from_value(json!({
            "metadata": {"name": "stateward", "labels": labels},
            "spec": {"holderIdentity": "it", "leaseDurationSeconds": 15, "renewTime": format!("{renewed:.6}")},
        }))
        .unwrap();
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), namespace);
        leases.create(&PostParams::default(), &lease).await.unwrap();
    }

    pub(crate) async fn delete_rollout(&self) {
        let params = kube::api::DeleteParams::default();
        let _ = self.rollouts().delete("db", &params).await.unwrap();
    }

    pub(crate) async fn version(&self) -> Option<String> {
        self.rollouts().get("db").await.unwrap().resource_version()
    }

    /// Runs a command.
    pub(crate) async fn run(&self, line: &str) -> Said {
        self.run_with(line, Style::default(), None).await
    }

    /// Runs a command, and interrupts it after a while.
    pub(crate) async fn run_for(&self, line: &str, patience: Duration) -> Said {
        self.run_with(line, Style::default(), Some(patience)).await
    }

    pub(crate) async fn run_with(&self, line: &str, style: Style, patience: Option<Duration>) -> Said {
        self.run_on(self.client.clone(), line, style, patience).await
    }

    async fn run_on(&self, client: Client, line: &str, style: Style, patience: Option<Duration>) -> Said {
        self.run_at(client, line, style, patience, false).await
    }

    async fn run_at(
        &self,
        client: Client,
        line: &str,
        style: Style,
        patience: Option<Duration>,
        terminal: bool,
    ) -> Said {
        let words = ["stateward".to_owned()].into_iter().chain(words(line));
        let words = stateward_cli::as_meant(words.map(Into::into).collect());
        let verb = match Line::try_parse_from(words) {
            Ok(line) => line.verb,
            Err(error) => {
                let (out, talk) = if error.use_stderr() {
                    (String::new(), error.to_string())
                } else {
                    (error.to_string(), String::new())
                };
                let exit = if error.use_stderr() {
                    Exit::Error
                } else {
                    Exit::Done
                };
                return Said { exit, out, talk };
            }
        };
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let session = Session {
            user: None,
            client,
            namespace: "default".into(),
            clock: self.clock.clone(),
            program: "stateward",
            style,
            terminal,
            out: &mut out,
            talk: &mut talk,
        };
        let performed = verb.perform(session);
        let ended = match patience {
            Some(patience) => tokio::time::timeout(patience, performed)
                .await
                .unwrap_or(Ok(Exit::Done)),
            None => performed.await,
        };
        let (out, mut talk) = (String::from_utf8(out).unwrap(), String::from_utf8(talk).unwrap());
        let exit = ended.unwrap_or_else(|error| {
            talk.push_str(&error.line(style));
            error.exit()
        });
        Said { exit, out, talk }
    }

    /// Runs a command on a cluster with hostile strings.
    pub(crate) async fn run_hostile(
        &self,
        hostile: Hostile,
        line: &str,
        style: Style,
        terminal: bool,
    ) -> Said {
        let inner = self.client.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let inner = inner.clone();
            async move {
                let refused = match hostile {
                    Hostile::Refusals => true,
                    Hostile::RefusedWrites => request.method() != http::Method::GET,
                    Hostile::FreeText | Hostile::EveryString | Hostile::NamesToo => false,
                };
                let response = if refused {
                    let status = json!({
                        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
                        "message": format!("no{PAYLOAD}"),
                    });
                    let body = kube::client::Body::from(status.to_string().into_bytes());
                    http::Response::builder().status(403).body(body)?
                } else {
                    inner.send(request).await?
                };
                let rewrites = !refused && hostile != Hostile::RefusedWrites;
                let (mut parts, body) = response.into_parts();
                parts.headers.remove(http::header::CONTENT_LENGTH);
                let frames = http_body_util::BodyExt::map_frame(body, move |frame| {
                    frame.map_data(|data| {
                        if rewrites {
                            hostile.rewritten(&data).into()
                        } else {
                            data
                        }
                    })
                });
                Ok::<_, tower::BoxError>(http::Response::from_parts(parts, frames))
            }
        });
        let watches = line.contains("--watch");
        let patience = watches.then_some(Duration::from_secs(20));
        let client = Client::new(service, "default");
        self.run_at(client, line, style, patience, terminal).await
    }

    /// Runs commands one after the other; returns their output.
    pub(crate) async fn transcript(&self, lines: &[&str]) -> String {
        let mut seen = String::new();
        for line in lines {
            let said = self.run(line).await;
            seen.push_str(&said.shown(line));
        }
        seen
    }
}

impl Said {
    /// The output as on a terminal, with messages and data marked, and the exit code.
    pub(crate) fn shown(&self, line: &str) -> String {
        let mut shown = format!("$ stateward {line}\n");
        let (out, talk) = (without_uids(&self.out), without_uids(&self.talk));
        for talk in talk.lines() {
            shown.push_str(format!("! {talk}").trim_end());
            shown.push('\n');
        }
        shown.push_str(&out);
        if !out.is_empty() && !out.ends_with('\n') {
            shown.push_str("%\n");
        }
        shown.push_str(&format!("[{}]\n\n", self.exit as u8));
        shown
    }
}

/// UIDs differ in every cluster.
fn without_uids(text: &str) -> String {
    let is_uid = |word: &str| {
        let lengths: Vec<_> = word.split('-').map(str::len).collect();
        lengths == [8, 4, 4, 4, 12] && word.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
    };
    let mut rest = text;
    let mut out = String::new();
    while let Some(c) = rest.chars().next() {
        match rest.get(..36).filter(|word| is_uid(word)) {
            Some(uid) => {
                out.push_str("UID");
                rest = &rest[uid.len()..];
            }
            None => {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    out
}

/// Splits a line into words like a shell; single quotes group words.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop_operator();
    }
}
