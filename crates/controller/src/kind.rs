//! The kinds of objects that roll a workload, and what each of them has of its own.
//!
//! Everything else is the same for all of them: `reconcile` works on any [`Rollout`].

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
use stateward_core::world::{Asked, Decision, NoWorkload, Run, World};
use stateward_core::{phasedrollout, record};
use stateward_plugin::{Done, Observation};

use crate::error::Error;

/// An object that rolls a workload.
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
    /// What it tells and remembers.
    type Status: Clone + Default + Serialize + Send + Sync;

    /// Finalizers that go with our own, because whoever set them is gone.
    const INHERITED_FINALIZERS: &'static [&'static str] = &[];

    /// The name of the workload.
    fn workload(&self) -> &str;

    /// Its status, also before there is one.
    fn status(&self) -> Self::Status;

    /// The same object with another status.
    fn with_status(&self, status: Self::Status) -> Self;

    /// What every rollout tells in it.
    fn record(status: &Self::Status) -> &RolloutStatus;

    /// The same, to change it.
    fn record_mut(status: &mut Self::Status) -> &mut RolloutStatus;

    /// Whether its spec names a workload that it may manage; its plan may be invalid all the same.
    fn reference_valid(&self) -> bool;

    /// Somebody has said stop.
    fn is_paused(&self) -> bool;

    /// The workload is left to Kubernetes.
    fn is_suspended(&self) -> bool {
        false
    }

    /// The status that writes a decision down. `None` when there is nothing worth a write.
    fn next_status(&self, world: &World, decision: &Decision) -> Option<Self::Status>;

    /// The same where it is written in any case, because it says what a check came to: with everything that follows from that.
    fn status_after_check(&self, _world: &World, _decision: &Decision) -> Option<Self::Status> {
        None
    }

    /// The status with a run that has begun, where runs live in the status.
    fn with_run(&self, _name: &str, _now: Timestamp) -> Option<Self::Status> {
        None
    }

    /// Its phase in our own words, for counting.
    fn plain_phase(&self) -> String;
}

/// Whoever makes the checks that a rollout waits for.
#[async_trait]
pub(crate) trait Checks<K: Rollout>: Send + Sync {
    /// What the object asks for, or everything that is wrong with it. `None` while that is worked out, after which the object has
    /// another turn.
    fn plan(&self, object: &K, workload: &Result<Workload, NoWorkload>) -> Option<Result<Plan, Vec<String>>>;

    /// Its runs, the oldest first.
    fn runs(&self, object: &K, workload: &Result<Workload, NoWorkload>, now: Timestamp) -> Vec<Run>;

    /// Begins a run. One of that name that is there already is the one that was meant.
    async fn start(&self, object: &K, seen: &Observation, name: &str, asked: Asked) -> Result<Done, Error>;

    /// Has a run end before its time.
    async fn end(&self, object: &K, name: &str, uid: &str) -> Result<Done, Error>;

    /// Deletes a run that is over.
    async fn delete(&self, object: &K, name: &str, uid: &str) -> Result<Done, Error>;

    /// The status with what was learned since, where runs live in the status, and what to tell of that.
    fn learned(&self, _object: &K, _now: Timestamp) -> Option<(K::Status, Option<Notice>)> {
        None
    }

    /// Asks what is due. When to look again, if something is due later.
    fn ask(&self, _object: &K, _now: Timestamp) -> Option<Timestamp> {
        None
    }

    /// The object is gone.
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
