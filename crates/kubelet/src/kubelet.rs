//! Configures, starts and stops a kubelet.

use std::time::Duration;

use kube::Client;
use stateward_clock::Clock;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::api::Scope;
use crate::claim::Claims;
use crate::driver::Driver;
use crate::node::{Fleet, NodeHandle, NodeSpec, play_nodes};
use crate::rules::Behaviours;

/// A fake scheduler and kubelet, ready to be started.
///
/// ```no_run
/// # use std::time::Duration;
/// # use stateward_clock::Clock;
/// # use stateward_kubelet::{Behaviour, Behaviours, Kubelet, Match};
/// # async fn example(client: kube::Client) {
/// let behaviours = Behaviours::default();
/// let running = Kubelet::new(client, Clock::wall()).behaviours(behaviours.clone()).spawn();
/// behaviours.program(Match::set("db").ordinal(2), Behaviour::never_ready());
/// if let Some(node) = running.node("node-a") { node.vanish() }
/// # }
/// ```
#[must_use = "a kubelet does nothing until it runs"]
pub struct Kubelet {
    client: Client,
    clock: Clock,
    scope: Scope,
    fleet: Fleet,
    behaviours: Behaviours,
    schedulers: Vec<String>,
    seed: u64,
    heartbeat: Option<Duration>,
}

impl Kubelet {
    /// A kubelet for all namespaces, with the nodes `node-a`, `node-b` and `node-c` and a heartbeat every ten seconds.
    pub fn new(client: Client, clock: Clock) -> Self {
        Self {
            client,
            clock,
            scope: Scope::default(),
            fleet: Fleet::of(["node-a", "node-b", "node-c"]),
            behaviours: Behaviours::default(),
            schedulers: vec!["default-scheduler".into(), "stateward".into()],
            seed: 0,
            heartbeat: Some(Duration::from_secs(10)),
        }
    }

    /// Handles only the pods and claims of this namespace.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self {
            scope: Scope::namespace(namespace),
            ..self
        }
    }

    /// Simulates these nodes instead of the default ones.
    pub fn nodes(self, nodes: impl IntoIterator<Item = impl Into<NodeSpec>>) -> Self {
        Self {
            fleet: Fleet::of(nodes),
            ..self
        }
    }

    /// Uses these rules.
    pub fn behaviours(self, behaviours: Behaviours) -> Self {
        Self { behaviours, ..self }
    }

    /// Binds only pods that name one of these schedulers. On a cluster with a real scheduler, leave `default-scheduler` out and keep that
    /// scheduler off the nodes with [`NodeSpec::reserved`].
    pub fn schedulers(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            schedulers: names.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// The seed of every random choice.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// How often each node renews its Lease; with `None` never, and a real node controller then evicts its pods.
    pub fn heartbeat(self, interval: Option<Duration>) -> Self {
        Self {
            heartbeat: interval,
            ..self
        }
    }

    /// A handle on one of the nodes; `None` if there is no such node.
    pub fn node(&self, name: &str) -> Option<NodeHandle> {
        self.fleet.handle(name)
    }

    /// Runs on the current tokio runtime until the returned handle is dropped or stopped.
    pub fn spawn(self) -> Running {
        let stop = CancellationToken::new();
        let fleet = self.fleet.clone();
        let task = tokio::spawn(self.run(stop.clone()));
        Running {
            fleet,
            stop: stop.drop_guard(),
            task,
        }
    }

    /// Runs until `stop` is cancelled, and returns once all its tasks have ended. Dropping this future stops them too.
    pub async fn run(self, stop: CancellationToken) {
        let Self {
            client,
            clock,
            scope,
            fleet,
            behaviours,
            schedulers,
            seed,
            heartbeat,
        } = self;
        let (news_of_claims, claims_seen) = mpsc::unbounded_channel();
        let nodes = play_nodes(client.clone(), clock.clone(), fleet.clone(), heartbeat);
        let claims = Claims::new(
            client.clone(),
            clock.clone(),
            scope.clone(),
            behaviours.subscribe(),
            news_of_claims,
        );
        let driver = Driver::new(
            client,
            clock,
            scope,
            fleet.subscribe(),
            behaviours.subscribe(),
            schedulers,
            seed,
        );

        // Separate tasks: an event for one need not wake the others.
        let mut parts = JoinSet::new();
        parts.spawn(nodes);
        parts.spawn(claims.run());
        parts.spawn(driver.run(claims_seen));
        let ended = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            ended = parts.join_next() => ended,
        };
        parts.shutdown().await;
        if let Some(Err(error)) = ended
            && let Ok(panic) = error.try_into_panic()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

/// A running kubelet. Dropping it stops the kubelet like a crash: between two requests, without cleanup.
#[must_use = "dropping it stops the kubelet"]
pub struct Running {
    fleet: Fleet,
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Running {
    /// A handle on one of the nodes; `None` if there is no such node.
    pub fn node(&self, name: &str) -> Option<NodeHandle> {
        self.fleet.handle(name)
    }

    /// Stops, and returns once all its tasks have ended.
    pub async fn stop(self) {
        drop(self.stop);
        // The task fails only by a panic, which has been reported already.
        let _ = self.task.await;
    }
}
