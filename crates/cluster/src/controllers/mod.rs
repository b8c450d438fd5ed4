//! The controllers of kube-controller-manager that stateful workloads meet, bug for bug.
//!
//! Each one is told which objects changed, names the keys that this concerns, and syncs one key at a time: reads through
//! [`Access`](crate::access::Access), writes through it, says when to look again. None of them knows the queue, the clock or
//! HTTP.

pub(crate) mod claim_protection;
mod definitions;
pub(crate) mod disruption;
pub(crate) mod edit;
#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod garbage;
pub(crate) mod job;
mod manager;
pub(crate) mod moment;
pub(crate) mod namespace;
mod node;
pub(crate) mod owner;
pub(crate) mod pod;
mod recorder;
pub(crate) mod statefulset;
pub(crate) mod ttl_after_finished;
pub(crate) mod volume_binder;

use std::sync::Arc;
use std::time::Duration;

use crate::json::Value;

use crate::access::Access;
use crate::server::Server;
use crate::status::Status;
use crate::store::Key;

pub(crate) use manager::run;
pub use statefulset::MaxUnavailable;

/// Every controller that an embedded cluster runs.
pub(crate) fn all(server: &Arc<Server>) -> Vec<Box<dyn Controller>> {
    vec![
        Box::new(definitions::Definitions(server.clone())),
        Box::new(statefulset::StatefulSets::new(statefulset::Gates {
            max_unavailable: server.max_unavailable,
        })),
        Box::new(job::JobController::default()),
        Box::new(job::orphan::OrphanController),
        Box::new(ttl_after_finished::TtlAfterFinishedController),
        Box::new(garbage::GarbageCollector::default()),
        Box::new(namespace::NamespaceController),
        Box::new(namespace::furnish::ServiceAccountController),
        Box::new(namespace::furnish::RootCaPublisher {
            certificate: server.certificate.clone(),
        }),
        Box::new(node::NodeController),
        Box::new(claim_protection::ClaimProtectionController),
        Box::new(claim_protection::VolumeProtectionController),
        Box::new(volume_binder::VolumeBinder::default()),
        Box::new(disruption::DisruptionController),
        Box::new(disruption::stale::StaleDisruptionController),
    ]
}

/// What happened to one object.
#[derive(Clone, Debug)]
pub(crate) struct Changed {
    /// `pods`, `statefulsets.apps`, …
    pub(crate) resource: Arc<str>,
    pub(crate) before: Option<Arc<Value>>,
    /// `None` when it is gone.
    pub(crate) after: Option<Arc<Value>>,
}

/// What a sync asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing until something changes.
    Wait,
    /// Another sync of the same key after this long, whatever happens until then.
    After(Duration),
}

/// One controller.
pub(crate) trait Controller: Send + Sync {
    /// As kube-controller-manager names it in user agents and events: `statefulset-controller`.
    fn name(&self) -> &'static str;

    /// As its events name their source, where that is another name.
    fn event_source(&self) -> &'static str {
        self.name()
    }

    /// The resources whose changes it wants to be told of; `["*"]` is all there are and will be.
    fn watches(&self) -> &'static [&'static str];

    /// The keys that a change concerns.
    fn concerned(&self, change: &Changed, access: &dyn Access) -> Vec<Key>;

    /// How long the keys that a change concerns wait before their sync, so that more changes can gather. Of several waits
    /// of one key the one that ends first counts.
    fn delay(&self, _change: &Changed) -> Duration {
        Duration::ZERO
    }

    /// Brings one key closer to what it should be. An error is tried again with growing delays.
    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status>;
}
