//! The kinds of objects that roll out a workload, and what is specific to each of them.
//!
//! Everything else is shared: `reconcile` works on any [`Rollout`].

use std::fmt::Debug;

use async_trait::async_trait;
use jiff::Timestamp;
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use stateward_api::phasedrollout::{PEER_FINALIZER, PhasedRollout, PhasedRolloutStatus};
use stateward_api::rollout::RolloutStatus;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_core::event::Notice;
use stateward_core::plan::Plan;
use stateward_core::workload::Workload;
use stateward_core::world::{Decision, NoWorkload, Run, RunFor, World};
use stateward_core::{phasedrollout, record};
use stateward_plugin::{Done, Observation};

use crate::error::Error;

/// An object that rolls out a workload.
pub(crate) trait Rollout:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Default
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// The type of its status.
    type Status: Clone + Default + Serialize + Send + Sync;

    /// Finalizers to remove together with our own, because the operator that set them is gone.
    const INHERITED_FINALIZERS: &'static [&'static str] = &[];

    /// The name of the workload.
    fn workload(&self) -> &str;

    /// Its status, or the default if it has none.
    fn status(&self) -> Self::Status;

    /// The same object with another status.
    fn with_status(&self, status: Self::Status) -> Self;

    /// The part of the status that all kinds share.
    fn record(status: &Self::Status) -> &RolloutStatus;

    /// The same, mutable.
    fn record_mut(status: &mut Self::Status) -> &mut RolloutStatus;

    /// Whether its spec references a workload that it may manage, even if its plan is invalid.
    fn reference_valid(&self) -> bool;

    /// A user has paused it.
    fn is_paused(&self) -> bool;

    /// The workload is left to Kubernetes.
    fn is_suspended(&self) -> bool {
        false
    }

    /// The status that records a decision. `None` when nothing is worth a write.
    fn next_status(&self, world: &World, decision: &Decision) -> Option<Self::Status>;

    /// The same, but always written because it records the result of a check, with the decision that follows from it.
    fn status_after_check(&self, _world: &World, _decision: &Decision) -> Option<Self::Status> {
        None
    }

    /// The status with a new run, for kinds that keep runs in the status.
    fn with_run(&self, _name: &str, _now: Timestamp) -> Option<Self::Status> {
        None
    }

    /// Its phase in the engine's terms, for metrics.
    fn plain_phase(&self) -> String;
}

/// Makes the checks that a rollout waits for.
#[async_trait]
pub(crate) trait Checks<K: Rollout>: Send + Sync {
    /// The plan, or everything that is wrong with the spec. `None` while it is computed, after which the object is reconciled
    /// again.
    fn plan(&self, object: &K, workload: &Result<Workload, NoWorkload>) -> Option<Result<Plan, Vec<String>>>;

    /// Its runs, oldest first.
    fn runs(&self, object: &K, workload: &Result<Workload, NoWorkload>, now: Timestamp) -> Vec<Run>;

    /// Starts a run. An existing run of that name is the right one.
    async fn start(&self, object: &K, seen: &Observation, name: &str, run_for: RunFor)
    -> Result<Done, Error>;

    /// Terminates a run early.
    async fn end(&self, object: &K, name: &str, uid: &str) -> Result<Done, Error>;

    /// Deletes a completed run.
    async fn delete(&self, object: &K, name: &str, uid: &str) -> Result<Done, Error>;

    /// The status with new results, for kinds that keep runs in the status, and the event to post.
    fn learned(&self, _object: &K, _now: Timestamp) -> Option<(K::Status, Option<Notice>)> {
        None
    }

    /// Starts the checks that are due. Returns when the next one is due.
    fn start_due(&self, _object: &K, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// Forgets a deleted object.
    fn forget(&self, _uid: &str) {}
}

impl Rollout for RolloutPlugin {
    type Status = RolloutStatus;

    fn workload(&self) -> &str {
        &self.spec.workload_ref.name
    }

    fn status(&self) -> RolloutStatus {
        self.status.clone().unwrap_or_default()
    }

    fn with_status(&self, status: RolloutStatus) -> Self {
        Self {
            status: Some(status),
            ..self.clone()
        }
    }

    fn record(status: &RolloutStatus) -> &RolloutStatus {
        status
    }

    fn record_mut(status: &mut RolloutStatus) -> &mut RolloutStatus {
        status
    }

    fn reference_valid(&self) -> bool {
        self.reference_problems().is_empty()
    }

    fn is_paused(&self) -> bool {
        self.spec.paused
    }

    fn next_status(&self, world: &World, decision: &Decision) -> Option<RolloutStatus> {
        record::next_status(&self.status(), self.meta().generation, world, decision)
    }

    fn plain_phase(&self) -> String {
        self.status
            .as_ref()
            .map(|status| status.phase.clone())
            .unwrap_or_default()
    }
}

impl Rollout for PhasedRollout {
    type Status = PhasedRolloutStatus;

    const INHERITED_FINALIZERS: &'static [&'static str] = &[PEER_FINALIZER];

    fn workload(&self) -> &str {
        &self.spec.target_ref
    }

    fn status(&self) -> PhasedRolloutStatus {
        self.status.clone().unwrap_or_default()
    }

    fn with_status(&self, status: PhasedRolloutStatus) -> Self {
        Self {
            status: Some(status),
            ..self.clone()
        }
    }

    fn record(status: &PhasedRolloutStatus) -> &RolloutStatus {
        &status.rollout
    }

    fn record_mut(status: &mut PhasedRolloutStatus) -> &mut RolloutStatus {
        &mut status.rollout
    }

    fn reference_valid(&self) -> bool {
        self.reference_problems().is_empty()
    }

    fn is_paused(&self) -> bool {
        self.spec.paused
    }

    fn is_suspended(&self) -> bool {
        self.spec.skips_checks()
    }

    fn next_status(&self, world: &World, decision: &Decision) -> Option<PhasedRolloutStatus> {
        phasedrollout::next_status(self, world, decision)
    }

    fn status_after_check(&self, world: &World, decision: &Decision) -> Option<PhasedRolloutStatus> {
        phasedrollout::status(self, world, decision)
    }

    fn with_run(&self, name: &str, now: Timestamp) -> Option<PhasedRolloutStatus> {
        Some(phasedrollout::begin(self, name, now))
    }

    fn plain_phase(&self) -> String {
        phasedrollout::plain_phase(&self.status().rollout).to_owned()
    }
}

/// `prod/db`
pub(crate) fn full_name(object: &impl Resource<DynamicType = ()>) -> String {
    format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any())
}
