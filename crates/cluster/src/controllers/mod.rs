//! The controllers of kube-controller-manager that affect stateful workloads, bug for bug.
//!
//! Each one receives changed objects, names the affected keys, and syncs one key at a time: it reads and writes through
//! [`Access`](crate::access::Access), and returns when to sync again. None of them knows the queue, the clock or HTTP.

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
        Box::new(namespace::bootstrap::ServiceAccountController),
        Box::new(namespace::bootstrap::RootCaPublisher {
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

/// A change of one object.
#[derive(Clone, Debug)]
pub(crate) struct Changed {
    /// `pods`, `statefulsets.apps`, …
    pub(crate) resource: Arc<str>,
    pub(crate) before: Option<Arc<Value>>,
    /// `None` if it was deleted.
    pub(crate) after: Option<Arc<Value>>,
}

/// When to sync a key again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Not before something changes.
    Wait,
    /// After this time, whatever happens until then.
    After(Duration),
}

/// One controller.
pub(crate) trait Controller: Send + Sync {
    /// Its name in kube-controller-manager's user agents and events: `statefulset-controller`.
    fn name(&self) -> &'static str;

    /// The source of its events, if that name differs.
    fn event_source(&self) -> &'static str {
        self.name()
    }

    /// The resources whose changes it receives; `["*"]` means all, including future ones.
    fn watches(&self) -> &'static [&'static str];

    /// The keys that a change affects.
    fn concerned(&self, change: &Changed, access: &dyn Access) -> Vec<Key>;

    /// How long the affected keys wait before their sync, so that changes can be batched. Of several delays of one key the one that ends
    /// first counts.
    fn delay(&self, _change: &Changed) -> Duration {
        Duration::ZERO
    }

    /// Brings one key closer to its desired state. After an error the sync is retried with back-off.
    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status>;
}
