//! The cluster of one scenario: a namespace of its own, a kubelet that simulates its pods, and watches of both.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use stateward_analysis::http::Http;
use stateward_analysis::{Egress, KubeSecrets, MetricProvider, Providers};
use stateward_api::analysis::{AnalysisRun, AnalysisTemplate};
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_clock::Clock;
use stateward_kubelet::{Behaviours, Kubelet, NodeSpec, Running};

use super::audit::{AuditLog, Write};
use super::failure::{Doing, Failure, Outcome, Unmet};
use super::observer::{Observer, View};
use super::oracle::Oracle;
use super::rollout::{Kind, Rollout, RolloutBuilder};
use super::set::{Set, SetBuilder};
use crate::simulation::Checker;
use crate::simulation::chaos::{Chaos, Life};

/// The scheduler that scenario pods name, so that a real scheduler on the cluster ignores them.
pub(crate) const SCHEDULER: &str = "stateward";

/// The operator's name in audit logs: its user on the embedded cluster, its user agent on a real one.
pub(crate) const OPERATOR: &str = "stateward-operator";

/// A namespace of its own on some control plane, with a simulated kubelet.
pub struct Cluster {
    client: Client,
    namespace: String,
    nodes: Vec<String>,
    behaviours: Behaviours,
    observer: Observer,
    audit: Option<AuditLog>,
    patience: Duration,
    kubelet: Running,
    kubelet_client: Client,
    clock: Clock,
    heartbeat: Option<Duration>,
    kubeconfig: Option<PathBuf>,
    operator_client: Client,
    operators: Mutex<Vec<tokio::task::JoinHandle<()>>>,
    /// The paths of all requests of operators outside a simulation.
    requests: Arc<Mutex<Vec<String>>>,
    simulation: Option<Simulation>,
    oracle: Oracle,
    providers: Option<Egress>,
    /// The operators' connections break at every n-th request.
    reset_every: Option<usize>,
}

impl Cluster {
    /// Creates a namespace for `scenario` on the control plane behind `client` and starts a kubelet for it.
    pub(crate) async fn open(
        client: Client,
        clock: Clock,
        scenario: &str,
        settings: Settings,
    ) -> Outcome<Self> {
        let namespace = create_namespace(&client, scenario).await?;
        // Nodes are cluster-scoped: naming them after the namespace makes them this scenario's own.
        let nodes: Vec<String> = ["a", "b", "c"]
            .iter()
            .map(|node| format!("{namespace}-{node}"))
            .collect();
        let behaviours = Behaviours::default();
        let kubelet = Kubelet::new(settings.kubelet.clone(), clock.clone())
            .heartbeat(settings.heartbeat)
            .behaviours(behaviours.clone());
        let kubelet = play(kubelet, &namespace, &nodes);
        let observer = Observer::start(&client, &namespace, clock.clone());
        let Settings {
            patience,
            audit,
            operator,
            kubelet: kubelet_client,
            heartbeat,
            kubeconfig,
            simulation,
        } = settings;
        Ok(Self {
            client,
            namespace,
            nodes,
            behaviours,
            observer,
            audit,
            patience,
            kubelet,
            kubelet_client,
            clock,
            heartbeat,
            kubeconfig,
            operator_client: operator,
            operators: Mutex::default(),
            requests: Arc::default(),
            simulation,
            oracle: Oracle::default(),
            providers: None,
            reset_every: None,
        })
    }

    /// A client with all rights, for requests that the handles do not offer.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Whether the control plane enforces RBAC.
    pub fn has_access_control(&self) -> bool {
        !matches!(self.audit, Some(AuditLog::Embedded(_)))
    }

    /// The scenario's namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// How the pods of this cluster behave.
    pub fn pods(&self) -> &Behaviours {
        &self.behaviours
    }

    /// The metrics of this cluster.
    pub fn metrics(&self) -> &Oracle {
        &self.oracle
    }

    /// Makes the operator query real metric providers on this machine instead of the oracle, from its next start on.
    pub fn ask_providers(&mut self) {
        self.providers = Some(Egress {
            allow: "127.0.0.1".parse().into_iter().collect(),
            ..Egress::default()
        });
    }

    /// Breaks the operators' connections at every `nth` request, from their next start on.
    pub fn reset_every(&mut self, nth: usize) {
        self.reset_every = Some(nth);
    }

    /// The kubelet itself, to make its nodes disappear and return.
    pub fn kubelet(&self) -> &Running {
        &self.kubelet
    }

    /// Installs the CRDs and starts an operator for this namespace.
    pub async fn with_operator(&mut self) -> Outcome {
        self.with_definitions().await?;
        self.start_operator();
        Ok(())
    }

    /// Installs the CRDs and starts an operator for all namespaces. No other scenario on this control plane may have one.
    pub async fn with_operator_of_all_namespaces(&mut self) -> Outcome {
        if self.has_access_control() {
            return Err(Failure::NotHere("other scenarios have operators here".into()));
        }
        self.with_definitions().await?;
        self.start_operator_of(Vec::new());
        Ok(())
    }

    /// Installs the CRDs, for an operator that is started elsewhere.
    pub async fn with_definitions(&mut self) -> Outcome {
        super::rollout::install(self).await?;
        self.observer.follow_rollouts(&self.client, &self.namespace);
        Ok(())
    }

    /// Starts an operator in place of the running one.
    pub fn start_operator(&self) {
        self.stop_operator();
        self.start_another_operator();
    }

    /// Starts another operator in addition to those that run.
    pub fn start_another_operator(&self) {
        self.start_operator_of(vec![self.namespace.clone()]);
    }

    /// Starts an operator for these namespaces, or for all if there are none.
    fn start_operator_of(&self, namespaces: Vec<String>) {
        self.note("the operator starts");
        let options = stateward_controller::Options {
            clock: self.clock.clone(),
            namespaces,
        };
        let operator = match &self.simulation {
            None => {
                let client = recorded(&self.operator_client, &self.requests, self.reset_every);
                let providers: Arc<dyn MetricProvider> = match &self.providers {
                    Some(egress) => Arc::new(Providers::new(
                        Http::new(egress.clone()),
                        KubeSecrets(client.clone()),
                    )),
                    None => Arc::new(self.oracle.clone()),
                };
                let operator = stateward_controller::Operator::new(client, options).providers(providers);
                tokio::spawn(operator.run())
            }
            Some(simulation) => tokio::spawn(simulation.operate(options, self.oracle.clone())),
        };
        self.operators().push(operator);
    }

    /// Stops every operator immediately, wherever it is in its work.
    pub fn stop_operator(&self) {
        for operator in self.operators().drain(..) {
            self.note("the operator stops");
            operator.abort();
        }
    }

    fn operators(&self) -> MutexGuard<'_, Vec<tokio::task::JoinHandle<()>>> {
        self.operators.lock()
    }

    /// The paths of all requests that the operators have sent.
    pub fn operator_paths(&self) -> Vec<String> {
        let requests = self.requests.lock();
        requests.clone()
    }

    /// The operators' writes to this namespace, oldest first.
    pub fn operator_writes(&self) -> Outcome<Vec<Write>> {
        let Some(mut writes) = self.writes()? else {
            return Err(Failure::NotHere("the control plane shows no audit log".into()));
        };
        writes.retain(|write| write.user == OPERATOR || write.agent == OPERATOR);
        Ok(writes)
    }

    /// Creates an object of a kind without a handle of its own: `create("analysistemplates", "checks", json!({"spec": …}))`.
    pub async fn create(&self, plural: &str, name: &str, mut object: serde_json::Value) -> Outcome {
        self.note(&format!("create {plural} {name}"));
        let resource = kind(plural);
        object["apiVersion"] = resource.api_version.clone().into();
        object["kind"] = resource.kind.clone().into();
        object["metadata"]["name"] = name.into();
        let object = serde_json::from_value(object)
            .map_err(kube::Error::SerdeError)
            .doing(format!("read {plural} {name}"))?;
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), &self.namespace, &resource);
        api.create(&PostParams::default(), &object)
            .await
            .doing(format!("create {plural} {name}"))
            .map(drop)
    }

    /// Allows the operator to read a Secret, as the guides describe.
    pub async fn let_operator_read(&self, secret: &str) -> Outcome {
        let role = json!({"rules": [
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret], "verbs": ["get"]},
        ]});
        self.create("roles", secret, role).await?;
        let binding = json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": secret},
            "subjects": [{"kind": "ServiceAccount", "name": "stateward", "namespace": "stateward-system"}],
        });
        self.create("rolebindings", secret, binding).await
    }

    /// The names of all objects of a kind without a handle of its own.
    pub async fn names(&self, plural: &str) -> Outcome<Vec<String>> {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &kind(plural));
        let objects = api
            .list(&ListParams::default())
            .await
            .doing(format!("list {plural}"))?;
        Ok(objects.iter().map(ResourceExt::name_any).collect())
    }

    /// Builds a RolloutPlugin for the set of this name.
    pub fn rollout(&self, set: &str) -> RolloutBuilder<'_> {
        RolloutBuilder::new(self, set)
    }

    /// Builds a PhasedRollout for the set of this name.
    pub fn phased(&self, set: &str) -> RolloutBuilder<'_, PhasedRollout> {
        RolloutBuilder::new(self, set)
    }

    /// Builds a StatefulSet.
    pub fn statefulset(&self, name: &str) -> SetBuilder<'_> {
        SetBuilder::new(self, name)
    }

    /// A RolloutPlugin that already exists.
    pub fn existing_rollout(&self, name: &str) -> Rollout<'_> {
        Rollout::new(self, name)
    }

    /// Kills the kubelet between two of its requests and starts another, which knows only what it reads from the API server.
    pub fn restart_kubelet(&mut self) {
        let kubelet = Kubelet::new(self.kubelet_client.clone(), self.clock.clone())
            .heartbeat(self.heartbeat)
            .behaviours(self.behaviours.clone());
        self.kubelet = play(kubelet, &self.namespace, &self.nodes);
    }

    /// Simulates pods that use the default scheduler, on a node of their own, until the return value is dropped.
    pub fn play_everybodys_pods(&self) -> Running {
        Kubelet::new(self.kubelet_client.clone(), self.clock.clone())
            .namespace(&self.namespace)
            .nodes([NodeSpec::new(self.everybodys_node()).reserved()])
            .schedulers(["default-scheduler"])
            .behaviours(self.behaviours.clone())
            .heartbeat(self.heartbeat)
            .spawn()
    }

    fn everybodys_node(&self) -> String {
        format!("{}-d", self.namespace)
    }

    /// The kubeconfig for other programs, if they can connect.
    pub fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref()
    }

    /// A StatefulSet that already exists.
    pub fn existing(&self, name: &str) -> Set<'_> {
        Set::new(self, name, 0)
    }

    /// The PersistentVolumeClaims on the API server now: names with UIDs.
    pub async fn claims(&self) -> Outcome<Vec<(String, Option<String>)>> {
        let api = Api::<PersistentVolumeClaim>::namespaced(self.client(), self.namespace());
        let claims = api.list(&ListParams::default()).await.doing("list claims")?;
        let claims = claims.into_iter();
        Ok(claims
            .map(|claim| (claim.name_any(), claim.metadata.uid))
            .collect())
    }

    /// Waits until no PersistentVolume has this name.
    pub async fn expect_no_volume(&self, name: &str) -> Outcome {
        self.expect_volume(name, &format!("no volume {name}"), |volume| volume.is_none())
            .await
    }

    /// Waits until `check` holds for the PersistentVolume, or for its absence.
    pub async fn expect_volume(
        &self,
        name: &str,
        expected: &str,
        is_so: impl Fn(Option<&PersistentVolume>) -> bool,
    ) -> Outcome {
        let volumes = Api::<PersistentVolume>::all(self.client());
        let reached = await_condition(volumes, name, |volume: Option<&PersistentVolume>| is_so(volume));
        match tokio::time::timeout(self.patience, reached).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(self.unmet(expected, error.to_string())),
            Err(_) => Err(self.unmet(expected, "it is not so")),
        }
    }

    /// Every write to this namespace that the API server has answered, oldest first. `None` if the control plane exposes no audit log.
    pub fn writes(&self) -> Outcome<Option<Vec<Write>>> {
        self.audit
            .as_ref()
            .map(|log| log.writes(&self.namespace))
            .transpose()
    }

    /// How long to wait for an expected change.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Continues only if `MaxUnavailableStatefulSet` is off: with the gate on, StatefulSets update by another algorithm. It was on in
    /// 1.35.0, off again in 1.35.4 and 1.36, and is on in 1.37.
    pub async fn needs_max_unavailable_off(&self) -> Outcome {
        let strategy = json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}});
        if self
            .statefulset("gate")
            .spec(strategy)
            .would_keep_max_unavailable()
            .await?
        {
            return Err(Failure::NotHere("MaxUnavailableStatefulSet is on".to_owned()));
        }
        Ok(())
    }

    /// From now on an expectation that is not met at once fails at once.
    pub fn impatient(&mut self) {
        self.patience = Duration::ZERO;
    }

    /// Waits until `check` returns `Ok`, and repeats it at every watch event. The error of `check` describes the current state; `expected`
    /// describes the wanted one.
    pub async fn eventually<T>(
        &self,
        expected: impl Into<String>,
        mut check: impl FnMut(&View) -> Result<T, String>,
    ) -> Outcome<T> {
        let mut changes = self.observer.changes();
        let mut seen = String::new();
        let met = tokio::time::timeout(self.patience, async {
            loop {
                changes.mark_unchanged();
                match self.observer.look(&mut check) {
                    Ok(answer) => return answer,
                    Err(instead) => seen = instead,
                }
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        })
        .await;
        met.map_err(|_| self.unmet(expected, seen))
    }

    /// Reads the state that the watches have shown so far.
    pub fn look<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        self.observer.look(look)
    }

    /// How many pod changes the watch has shown so far.
    pub fn pod_changes(&self) -> usize {
        self.look(|view| view.pod_changes.len())
    }

    /// A failure with the pods' time line.
    pub fn unmet(&self, expected: impl Into<String>, seen: impl Into<String>) -> Failure {
        Failure::Unmet(Box::new(Unmet {
            expected: expected.into(),
            seen: seen.into(),
            timeline: self.observer.timeline(),
        }))
    }

    /// Fails unless `is_so`.
    pub fn expect(&self, what: &str, is_so: bool) -> Outcome {
        if is_so {
            Ok(())
        } else {
            Err(self.unmet(what, "it is not so"))
        }
    }

    /// Adds an action of the scenario to the time line.
    pub fn note(&self, doing: &str) {
        self.observer.note(format!("-- {doing}"));
    }

    /// Removes the rollouts' finalizers: a stopped operator cannot, and the namespace would never finish terminating.
    async fn release_rollouts<K: Kind>(&self) -> Outcome {
        let names: Vec<String> = self.look(|view| K::seen(view).keys().cloned().collect());
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        for name in names {
            let doing = format!("delete {} {name}", K::word());
            if_there(api.delete(&name, &DeleteParams::default()).await, doing.clone())?;
            if_there(api.patch(&name, &PatchParams::default(), &patch).await, doing)?;
        }
        Ok(())
    }

    /// The first violated invariant, if invariants are checked.
    pub(crate) fn check_invariants(&mut self) -> Outcome {
        let alone = self.operators().len() < 2;
        let Some(simulation) = &mut self.simulation else {
            return Ok(());
        };
        match simulation.checker.broken(&self.namespace, alone).first() {
            Some(first) => Err(self.unmet("every invariant holds", first.clone())),
            None => Ok(()),
        }
    }

    /// Deletes what the scenario created. The namespace controller finishes the work.
    pub async fn close(self) -> Outcome {
        self.release_rollouts::<RolloutPlugin>().await?;
        self.release_rollouts::<PhasedRollout>().await?;
        self.stop_operator();
        let namespace = &self.namespace;
        let at_once = DeleteParams::default().grace_period(0);
        Api::<Namespace>::all(self.client.clone())
            .delete(namespace, &DeleteParams::background())
            .await
            .doing(format!("delete namespace {namespace}"))?;
        Api::<Pod>::namespaced(self.client.clone(), namespace)
            .delete_collection(&at_once, &ListParams::default())
            .await
            .doing(format!("delete the pods in {namespace}"))?;
        let nodes = Api::<Node>::all(self.client.clone());
        for node in self.nodes.iter().chain([&self.everybodys_node()]) {
            if_there(nodes.delete(node, &at_once).await, format!("delete node {node}"))?;
        }
        // PersistentVolumes are cluster-scoped: deleting the namespace does not delete them.
        let volumes = Api::<PersistentVolume>::all(self.client.clone());
        let all = volumes.list(&ListParams::default()).await.doing("list volumes")?;
        let is_ours = |volume: &&PersistentVolume| {
            let claim = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
            claim.is_some_and(|claim| claim.namespace.as_ref() == Some(namespace))
        };
        for volume in all.iter().filter(is_ours) {
            let name = volume.name_any();
            if_there(
                volumes.delete(&name, &at_once).await,
                format!("delete volume {name}"),
            )?;
        }
        Ok(())
    }
}

/// Ignores the error if the object is already gone.
fn if_there<T>(answer: Result<T, kube::Error>, doing: String) -> Outcome {
    match answer {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other.doing(doing).map(drop),
    }
}

/// A simulated cluster with faults injected into the operator, and its observer.
pub(crate) struct Simulation {
    cluster: Arc<stateward_cluster::Cluster>,
    chaos: Arc<Chaos>,
    checker: Checker,
}

impl Simulation {
    pub(crate) fn of(cluster: Arc<stateward_cluster::Cluster>, chaos: Arc<Chaos>) -> Self {
        Self {
            checker: Checker::of(cluster.clone()),
            cluster,
            chaos,
        }
    }

    /// Runs the operator and restarts it after every crash. Never returns.
    fn operate(
        &self,
        options: stateward_controller::Options,
        oracle: Oracle,
    ) -> impl Future<Output = ()> + use<> {
        let (cluster, chaos) = (self.cluster.clone(), self.chaos.clone());
        async move {
            loop {
                let life = Arc::new(Life::new(chaos.clone()));
                let client = cluster.client_with(OPERATOR, life.clone());
                let operator = stateward_controller::Operator::new(client, options.clone())
                    .providers(Arc::new(oracle.clone()));
                tokio::select! {
                    () = operator.run() => {}
                    () = life.end() => {}
                }
                // A replacement takes a moment to start.
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        }
    }
}

/// A client that records the paths of its requests, and whose connection breaks at every `reset_every`-th request.
fn recorded(client: &Client, paths: &Arc<Mutex<Vec<String>>>, reset_every: Option<usize>) -> Client {
    let (inner, paths) = (client.clone(), paths.clone());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let path = request.uri().path().to_owned();
        let made = {
            let mut paths = paths.lock();
            paths.push(path);
            paths.len()
        };
        let inner = inner.clone();
        async move {
            if reset_every.is_some_and(|every| made.is_multiple_of(every)) {
                return Err(tower::BoxError::from("connection reset by peer"));
            }
            inner.send(request).await.map_err(tower::BoxError::from)
        }
    });
    Client::new(service, client.default_namespace())
}

/// The resource of a kind that scenarios have no handle for.
fn kind(plural: &str) -> ApiResource {
    match plural {
        "jobs" => ApiResource::erase::<Job>(&()),
        "secrets" => ApiResource::erase::<Secret>(&()),
        "roles" => ApiResource::erase::<Role>(&()),
        "rolebindings" => ApiResource::erase::<RoleBinding>(&()),
        "analysisruns" => ApiResource::erase::<AnalysisRun>(&()),
        "rolloutplugins" => ApiResource::erase::<RolloutPlugin>(&()),
        "phasedrollouts" => ApiResource::erase::<PhasedRollout>(&()),
        _ => ApiResource::erase::<AnalysisTemplate>(&()),
    }
}

/// The differences between control planes.
pub(crate) struct Settings {
    /// How long an expectation waits for a change.
    pub(crate) patience: Duration,
    /// Where the scenario reads the audited writes.
    pub(crate) audit: Option<AuditLog>,
    /// The operator's client, whose writes are distinguishable from the scenario's own.
    pub(crate) operator: Client,
    /// The kubelet's client.
    pub(crate) kubelet: Client,
    /// How often the nodes renew their heartbeat, if a controller watches for it.
    pub(crate) heartbeat: Option<Duration>,
    /// The faults injected into the operator.
    pub(crate) simulation: Option<Simulation>,
    /// The kubeconfig for other programs.
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// Starts a kubelet for a scenario's namespace and nodes.
fn play(kubelet: Kubelet, namespace: &str, nodes: &[String]) -> Running {
    kubelet
        .namespace(namespace)
        .nodes(nodes.iter().map(|node| NodeSpec::new(node).reserved()))
        .schedulers([SCHEDULER])
        .spawn()
}

async fn create_namespace(client: &Client, scenario: &str) -> Outcome<String> {
    // The suffix that the API server generates keeps scenarios of the same name apart, also across runs on a shared cluster.
    let prefix: String = scenario.replace('_', "-").chars().take(50).collect();
    let namespace = json!({"metadata": {
        "generateName": format!("{}-", prefix.trim_end_matches('-')),
        // Finds what an interrupted run left behind.
        "labels": {"app.kubernetes.io/managed-by": "stateward-scenarios"},
    }});
    let namespace = serde_json::from_value(namespace)
        .map_err(kube::Error::SerdeError)
        .doing("name a namespace")?;
    let created = Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .doing(format!("create a namespace for {scenario}"))?;
    Ok(created.name_any())
}
