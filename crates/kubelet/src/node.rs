//! The simulated nodes: registered like a kubelet's, kept alive by a Lease, silent once they vanish.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use stateward_clock::Clock;
use tokio::sync::watch;
use tracing::{debug, warn};

use crate::api::{MANAGER, PLAYED_BY, Refusal, backoff};

/// A simulated node: its name and its labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSpec {
    name: String,
    labels: BTreeMap<String, String>,
    reserved: bool,
}

impl NodeSpec {
    /// A node with the labels every node has.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        let labels = [
            ("kubernetes.io/hostname", name.as_str()),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
            (PLAYED_BY, MANAGER),
        ];
        let labels = labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        Self {
            name,
            labels,
            reserved: false,
        }
    }

    /// Taints the node to keep a real scheduler's pods away; our scheduler ignores taints.
    pub fn reserved(self) -> Self {
        Self {
            reserved: true,
            ..self
        }
    }

    /// Adds a label, for example a zone.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(key.into(), value.into());
        self
    }
}

impl<S: Into<String>> From<S> for NodeSpec {
    fn from(name: S) -> Self {
        Self::new(name)
    }
}

/// What the other tasks know of a node.
#[derive(Clone, Debug)]
pub(crate) struct PlayedNode {
    pub(crate) labels: BTreeMap<String, String>,
    reserved: bool,
    pub(crate) ip: String,
    registered: bool,
    vanished: bool,
}

impl PlayedNode {
    /// Whether the kubelet may act for it now.
    pub(crate) fn is_live(&self) -> bool {
        self.registered && !self.vanished
    }
}

/// The nodes by name.
pub(crate) type Nodes = BTreeMap<String, PlayedNode>;

/// All nodes of one kubelet. Cheap to clone; clones share the nodes.
#[derive(Clone, Debug)]
pub(crate) struct Fleet(Arc<watch::Sender<Nodes>>);

impl Fleet {
    pub(crate) fn of(nodes: impl IntoIterator<Item = impl Into<NodeSpec>>) -> Self {
        let node = |(index, spec): (usize, NodeSpec)| {
            let ip = format!("10.1.{}.{}", index / 250, index % 250 + 1);
            (
                spec.name,
                PlayedNode {
                    labels: spec.labels,
                    reserved: spec.reserved,
                    ip,
                    registered: false,
                    vanished: false,
                },
            )
        };
        let nodes = nodes.into_iter().map(Into::into).enumerate().map(node).collect();
        Self(Arc::new(watch::Sender::new(nodes)))
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Nodes> {
        self.0.subscribe()
    }

    pub(crate) fn handle(&self, name: &str) -> Option<NodeHandle> {
        let played = self.0.borrow().contains_key(name);
        played.then(|| NodeHandle {
            name: name.into(),
            fleet: self.clone(),
        })
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut PlayedNode)) {
        self.0.send_modify(|nodes| {
            if let Some(node) = nodes.get_mut(name) {
                change(node);
            }
        });
    }
}

/// A handle on a simulated node.
#[derive(Clone, Debug)]
pub struct NodeHandle {
    name: String,
    fleet: Fleet,
}

impl NodeHandle {
    /// The node goes silent: no heartbeat, its pods freeze as they are, and a deleted one stays Terminating.
    pub fn vanish(&self) {
        self.fleet.change(&self.name, |node| node.vanished = true);
    }

    /// The node is back, and its pods continue.
    pub fn restore(&self) {
        self.fleet.change(&self.name, |node| node.vanished = false);
    }
}

/// Simulates all nodes forever.
pub(crate) async fn play_nodes(client: Client, clock: Clock, fleet: Fleet, heartbeat: Option<Duration>) {
    let names: Vec<_> = fleet.0.borrow().keys().cloned().collect();
    let player = Player {
        nodes: Api::all(client.clone()),
        leases: Api::namespaced(client, "kube-node-lease"),
        clock,
        fleet,
        heartbeat,
    };
    join_all(names.iter().map(|name| player.play(name))).await;
    // Other clients own all the nodes: there is nothing to simulate, but returning would end the other tasks.
    std::future::pending().await
}

struct Player {
    nodes: Api<Node>,
    leases: Api<Lease>,
    clock: Clock,
    fleet: Fleet,
    heartbeat: Option<Duration>,
}

impl Player {
    async fn play(&self, name: &str) {
        let Some(uid) = self.until_done(|| self.register(name)).await else {
            warn!("node {name} exists and is not ours: leaving it alone; choose another node name");
            return;
        };
        self.fleet.change(name, |node| node.registered = true);

        let mut fleet = self.fleet.subscribe();
        let mut wait_until = async |live: bool| {
            // This cannot fail: the receiver lives as long as this task.
            let _ = fleet
                .wait_for(|nodes| nodes.get(name).is_some_and(|node| node.is_live() == live))
                .await;
        };
        loop {
            wait_until(true).await;
            // A node controller may have marked it Unknown meanwhile.
            self.until_done(|| self.report_ready(name)).await;
            tokio::select! {
                biased;
                () = wait_until(false) => {}
                () = self.beat(name, &uid) => {}
            }
        }
    }

    /// Creates the Node and returns its UID; `None` if another client owns a Node of this name.
    async fn register(&self, name: &str) -> Result<Option<String>, Refusal> {
        let node: Node = serde_json::from_value(self.node(name)).unwrap_or_default();
        let refusal = match self.nodes.create(&manager(), &node).await {
            Ok(node) => return Ok(node.uid()),
            Err(error) => Refusal::of(&format!("node {name}"), error),
        };
        match self.nodes.get_opt(name).await {
            Ok(Some(node))
                if node
                    .labels()
                    .get(PLAYED_BY)
                    .is_some_and(|player| player == MANAGER) =>
            {
                Ok(node.uid())
            }
            Ok(Some(_)) => Ok(None),
            Ok(None) | Err(_) => Err(refusal),
        }
    }

    async fn report_ready(&self, name: &str) -> Result<(), Refusal> {
        let status = json!({ "status": self.status(name) });
        let written = self
            .nodes
            .patch_status(name, &PatchParams::apply(MANAGER), &Patch::Strategic(status))
            .await;
        written
            .map(drop)
            .map_err(|error| Refusal::of(&format!("node {name}"), error))
    }

    async fn beat(&self, name: &str, uid: &str) {
        let Some(interval) = self.heartbeat else {
            return std::future::pending().await;
        };
        loop {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                // As with a real kubelet, the Lease is deleted with its Node.
                "metadata": {
                    "name": name,
                    "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": name, "uid": uid }],
                },
                "spec": {
                    "holderIdentity": name,
                    "leaseDurationSeconds": 40,
                    "renewTime": MicroTime(self.clock.now()),
                },
            });
            let params = PatchParams::apply(MANAGER).force();
            if let Err(error) = self.leases.patch(name, &params, &Patch::Apply(lease)).await {
                debug!("lease of node {name} was not renewed: {error}");
            }
            self.clock.sleep(interval).await;
        }
    }

    async fn until_done<T, F: Future<Output = Result<T, Refusal>>>(&self, attempt: impl Fn() -> F) -> T {
        let mut failures = 0;
        loop {
            match attempt().await {
                Ok(done) => return done,
                Err(refusal) => {
                    failures += 1;
                    if failures == 5 {
                        warn!("{refusal}; trying on");
                    }
                    self.clock
                        .sleep(backoff(failures).max(refusal.retry_after()))
                        .await;
                }
            }
        }
    }

    fn node(&self, name: &str) -> Value {
        let known = self.fleet.0.borrow().get(name).cloned();
        let labels = known.as_ref().map(|node| node.labels.clone());
        let taints = match known {
            Some(PlayedNode { reserved: true, .. }) => {
                json!([{ "key": PLAYED_BY, "value": MANAGER, "effect": "NoSchedule" }])
            }
            _ => json!([]),
        };
        json!({
            "metadata": { "name": name, "labels": labels },
            "spec": { "taints": taints },
            "status": self.status(name),
        })
    }

    fn status(&self, name: &str) -> Value {
        let ip = self.fleet.0.borrow().get(name).map(|node| node.ip.clone());
        node_status(name, &ip.unwrap_or_default(), self.clock.now())
    }
}

fn node_status(name: &str, ip: &str, now: Timestamp) -> Value {
    let resources = json!({ "cpu": "1000", "memory": "4Ti", "ephemeral-storage": "100Ti", "pods": "100000" });
    let condition = |kind, status, reason, message| {
        json!({
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": Time(now),
            "lastTransitionTime": Time(now),
        })
    };
    json!({
        "capacity": resources,
        "allocatable": resources,
        "addresses": [{ "type": "InternalIP", "address": ip }, { "type": "Hostname", "address": name }],
        "conditions": [
            condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has enough memory"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has enough process IDs"),
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "operatingSystem": "linux",
            "osImage": "pretend",
            "kernelVersion": "pretend",
            "containerRuntimeVersion": "pretend://1",
            "kubeletVersion": "v1.36.0-stateward",
            "kubeProxyVersion": "",
            "bootID": "",
            "machineID": "",
            "systemUUID": "",
        },
    })
}

fn manager() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.into()),
        ..PostParams::default()
    }
}

#[cfg(test)]
pub(crate) mod fixtures {
    use super::*;

    /// These nodes, all registered.
    pub(crate) fn live(nodes: impl IntoIterator<Item = impl Into<NodeSpec>>) -> Nodes {
        let mut nodes = Fleet::of(nodes).0.borrow().clone();
        nodes.values_mut().for_each(|node| node.registered = true);
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_reads_as_a_kubernetes_node() {
        let status = node_status("node-a", "10.1.0.1", Timestamp::UNIX_EPOCH);
        let node: Node = serde_json::from_value(json!({ "status": status })).unwrap();

        let status = node.status.unwrap();
        assert_eq!(status.allocatable.unwrap()["pods"].0, "100000");
        assert_eq!(status.conditions.unwrap()[0].type_, "Ready");
    }

    #[test]
    fn a_node_is_live_once_registered_and_until_it_vanishes() {
        let fleet = Fleet::of(["a", "b"]);
        let live = || fleet.0.borrow()["a"].is_live();
        assert!(!live());
        fleet.change("a", |node| node.registered = true);
        assert!(live());
        fleet.handle("a").unwrap().vanish();
        assert!(!live());
        fleet.handle("a").unwrap().restore();
        assert!(live());
    }

    #[test]
    fn a_node_that_is_not_played_has_no_handle() {
        assert!(Fleet::of(["a", "b"]).handle("c").is_none());
    }
}
