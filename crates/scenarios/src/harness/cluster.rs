//! The cluster as one scenario has it: a namespace of its own, a kubelet that plays its pods, and eyes on both.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use stateward_analysis::http::Http;
use stateward_analysis::{Ask, Egress, KubeSecrets, Providers};
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

/// The scheduler that scenario pods ask for, so that a real one beside us leaves them alone.
pub(crate) const SCHEDULER: &str = "stateward";

/// What the operator is called in audit logs: the user on the embedded cluster, the program on a real one.
pub(crate) const OPERATOR: &str = "stateward-operator";

/// A namespace of its own on some control plane, with a programmable kubelet.
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
    /// The connection of operators breaks at every so many requests.
    reset_every: Option<usize>,
}

impl Cluster {
    /// Makes a namespace for `scenario` on the control plane behind `client` and starts a kubelet for it.
    pub(crate) async fn open(
        client: Client,
        clock: Clock,
        scenario: &str,
        settings: Settings,
    ) -> Outcome<Self> {
        let namespace = create_namespace(&client, scenario).await?;
        // Nodes have no namespace: named after ours they belong to this scenario alone.
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

    /// A client with all rights, for what the handles have no word for.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Whether users have the rights here that they were given, and no others.
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

    /// What metrics say here.
    pub fn metrics(&self) -> &Oracle {
        &self.oracle
    }

    /// Has the operator ask real providers on this machine from its next start on, not the oracle.
    pub fn ask_providers(&mut self) {
        self.providers = Some(Egress {
            allow: "127.0.0.1".parse().into_iter().collect(),
            ..Egress::default()
        });
    }

    /// Breaks the connection of operators at every `nth` request, from their next start on.
    pub fn reset_every(&mut self, nth: usize) {
        self.reset_every = Some(nth);
    }

    /// The kubelet itself, to make its nodes vanish and return.
    pub fn kubelet(&self) -> &Running {
        &self.kubelet
    }

    /// Makes the server know RolloutPlugins and starts an operator for this namespace.
    pub async fn with_operator(&mut self) -> Outcome {
        self.with_definitions().await?;
        self.start_operator();
        Ok(())
    }

    /// The same with an operator for all namespaces, where no other scenario has one.
    pub async fn with_operator_of_all_namespaces(&mut self) -> Outcome {
        if self.has_access_control() {
            return Err(Failure::NotHere("other scenarios have operators here".into()));
        }
        self.with_definitions().await?;
        self.start_operator_of(Vec::new());
        Ok(())
    }

    /// Makes the server know RolloutPlugins, for an operator that is started elsewhere.
    pub async fn with_definitions(&mut self) -> Outcome {
        super::rollout::install(self).await?;
        self.observer.follow_rollouts(&self.client, &self.namespace);
        Ok(())
    }

    /// Starts an operator, in the place of one that runs.
    pub fn start_operator(&self) {
        self.stop_operator();
        self.start_another_operator();
    }

    /// Starts an operator beside those that run.
    pub fn start_another_operator(&self) {
        self.start_operator_of(vec![self.namespace.clone()]);
    }

    /// Starts an operator of these namespaces, or of all.
    fn start_operator_of(&self, namespaces: Vec<String>) {
        self.note("the operator starts");
        let options = stateward_controller::Options {
            clock: self.clock.clone(),
            namespaces,
        };
        let operator = match &self.simulation {
            None => {
                let client = recorded(&self.operator_client, &self.requests, self.reset_every);
                let providers: Arc<dyn Ask> = match &self.providers {
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

    /// Stops every operator wherever it is.
    pub fn stop_operator(&self) {
        for operator in self.operators().drain(..) {
            self.note("the operator stops");
            operator.abort();
        }
    }

    fn operators(&self) -> MutexGuard<'_, Vec<tokio::task::JoinHandle<()>>> {
        self.operators.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The paths of all requests that the operators have made.
    pub fn operator_paths(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.clone()
    }

    /// What the operators have written to this namespace, oldest first.
    pub fn operator_writes(&self) -> Outcome<Vec<Write>> {
        let Some(mut writes) = self.writes()? else {
            return Err(Failure::NotHere("the control plane shows no audit log".into()));
        };
        writes.retain(|write| write.user == OPERATOR || write.agent == OPERATOR);
        Ok(writes)
    }

    /// Creates an object of a kind that has no handle of its own here: `create("analysistemplates", "checks", json!({"spec": …}))`.
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

    /// Lets the operator read a Secret, as the guides tell users to.
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

    /// The names of the objects of a kind that has no handle of its own here.
    pub async fn names(&self, plural: &str) -> Outcome<Vec<String>> {
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &self.namespace, &kind(plural));
        let objects = api
            .list(&ListParams::default())
            .await
            .doing(format!("list {plural}"))?;
        Ok(objects.iter().map(ResourceExt::name_any).collect())
    }

    /// Describes a RolloutPlugin to create, for the set of this name.
    pub fn rollout(&self, set: &str) -> RolloutBuilder<'_> {
        RolloutBuilder::new(self, set)
    }

    /// Describes a PhasedRollout to create, for the set of this name.
    pub fn phased(&self, set: &str) -> RolloutBuilder<'_, PhasedRollout> {
        RolloutBuilder::new(self, set)
    }

    /// Describes a StatefulSet to create.
    pub fn statefulset(&self, name: &str) -> SetBuilder<'_> {
        SetBuilder::new(self, name)
    }

    /// A RolloutPlugin that is there already.
    pub fn existing_rollout(&self, name: &str) -> Rollout<'_> {
        Rollout::new(self, name)
    }

    /// Kills the kubelet between two of its requests, and starts another one that knows nothing but what it reads.
    pub fn restart_kubelet(&mut self) {
        let kubelet = Kubelet::new(self.kubelet_client.clone(), self.clock.clone())
            .heartbeat(self.heartbeat)
            .behaviours(self.behaviours.clone());
        self.kubelet = play(kubelet, &self.namespace, &self.nodes);
    }

    /// Plays pods that ask for the scheduler every pod asks for, as manifests of others do, on a node of their own. Until
    /// it is dropped.
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

    /// How other programs reach it, where they can.
    pub fn kubeconfig(&self) -> Option<&Path> {
        self.kubeconfig.as_deref()
    }

    /// A StatefulSet that is there already.
    pub fn existing(&self, name: &str) -> Set<'_> {
        Set::new(self, name, 0)
    }

    /// The claims that the API server has now: names with UIDs.
    pub async fn claims(&self) -> Outcome<Vec<(String, Option<String>)>> {
        let api = Api::<PersistentVolumeClaim>::namespaced(self.client(), self.namespace());
        let claims = api.list(&ListParams::default()).await.doing("list claims")?;
        let claims = claims.into_iter();
        Ok(claims
            .map(|claim| (claim.name_any(), claim.metadata.uid))
            .collect())
    }

    /// Waits until there is no such volume.
    pub async fn expect_no_volume(&self, name: &str) -> Outcome {
        self.expect_volume(name, &format!("no volume {name}"), |volume| volume.is_none())
            .await
    }

    /// Waits until this is true of a volume, or of there being none.
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

    /// Every write to this namespace that the API server has answered, oldest first. `None` where the control plane
    /// shows us no audit log.
    pub fn writes(&self) -> Outcome<Option<Vec<Write>>> {
        self.audit
            .as_ref()
            .map(|log| log.writes(&self.namespace))
            .transpose()
    }

    /// How long to wait for what may never come.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Goes on only where `MaxUnavailableStatefulSet` is off: with the gate on, sets update by another algorithm. It was on
    /// in 1.35.0, off again in 1.35.4 and 1.36, and is on in 1.37.
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

    /// Waits until `check` answers `Ok`, asking again whenever a watch shows a change. `check` says in its error what it
    /// sees instead; `expected` says what it looks for.
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

    /// Looks at what the watches have shown until now.
    pub fn look<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        self.observer.look(look)
    }

    /// How many changes of pods the watch has told until now.
    pub fn pod_changes(&self) -> usize {
        self.look(|view| view.pod_changes.len())
    }

    /// A failure that tells the pods' time line.
    pub fn unmet(&self, expected: impl Into<String>, seen: impl Into<String>) -> Failure {
        Failure::Unmet(Box::new(Unmet {
            expected: expected.into(),
            seen: seen.into(),
            timeline: self.observer.timeline(),
        }))
    }

    /// Fails unless it is so.
    pub fn expect(&self, what: &str, is_so: bool) -> Outcome {
        if is_so {
            Ok(())
        } else {
            Err(self.unmet(what, "it is not so"))
        }
    }

    /// Notes in the time line what the scenario does.
    pub fn note(&self, doing: &str) {
        self.observer.note(format!("-- {doing}"));
    }

    /// An operator that is gone cannot let go of its objects, and a namespace would wait for it for ever.
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

    /// The first invariant that was broken, where they are checked.
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

    /// Gives back what the scenario took. The namespace's own controllers finish the work.
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
        // Volumes have no namespace, so nobody else would clear them away.
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

/// What is gone already need not be deleted.
fn if_there<T>(answer: Result<T, kube::Error>, doing: String) -> Outcome {
    match answer {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        other => other.doing(doing).map(drop),
    }
}

/// A cluster whose operator is in trouble, and the eyes on it.
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

    /// One operator life after another. Never ends.
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
                // A new one is not there at once.
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
        }
    }
}

/// A client that takes down the paths of its requests, and whose connection breaks at every so many of them if it says so.
fn recorded(client: &Client, paths: &Arc<Mutex<Vec<String>>>, reset_every: Option<usize>) -> Client {
    let (inner, paths) = (client.clone(), paths.clone());
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let path = request.uri().path().to_owned();
        let made = {
            let mut paths = paths.lock().unwrap_or_else(PoisonError::into_inner);
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

/// The kinds that scenarios have no handle for.
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

/// What differs between control planes.
pub(crate) struct Settings {
    /// How long an expectation waits for a change.
    pub(crate) patience: Duration,
    /// Where the writes can be read back.
    pub(crate) audit: Option<AuditLog>,
    /// A client whose writes can be told from the scenario's own.
    pub(crate) operator: Client,
    /// The kubelet's.
    pub(crate) kubelet: Client,
    /// How often the nodes say they are alive, where somebody listens.
    pub(crate) heartbeat: Option<Duration>,
    /// What goes wrong for the operator.
    pub(crate) simulation: Option<Simulation>,
    /// Where other programs read how to reach it.
    pub(crate) kubeconfig: Option<PathBuf>,
}

/// Starts a kubelet for a scenario's own namespace and nodes.
fn play(kubelet: Kubelet, namespace: &str, nodes: &[String]) -> Running {
    kubelet
        .namespace(namespace)
        .nodes(nodes.iter().map(|node| NodeSpec::new(node).reserved()))
        .schedulers([SCHEDULER])
        .spawn()
}

async fn create_namespace(client: &Client, scenario: &str) -> Outcome<String> {
    // The server's own suffix keeps scenarios of the same name apart, also across runs on a shared cluster.
    let prefix: String = scenario.replace('_', "-").chars().take(50).collect();
    let namespace = json!({"metadata": {
        "generateName": format!("{}-", prefix.trim_end_matches('-')),
        // What a run that was killed leaves behind can be found by this.
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
