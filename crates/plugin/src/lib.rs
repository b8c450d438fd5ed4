//! Resource plugins: observe and change workloads.
//!
//! A plugin supports one kind of workload. It observes the current state ([`ResourcePlugin::observe`]) and executes what the engine
//! has decided, one request per call, each safe to repeat. It decides nothing. No Kubernetes type crosses the trait, so a plugin
//! could run in another process.

pub mod statefulset;
mod watches;
mod words;

use async_trait::async_trait;
use stateward_core::plan::{Fingerprint, Share};
use stateward_core::workload::Workload;
use stateward_core::world::{Action, LeftAs, NoWorkload};

pub use self::watches::Watches;
pub use self::words::{words, words_of_watch};

/// A workload to observe or to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its namespace, which is also the manager's.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The object that manages it.
    pub manager: Manager,
}

/// The object that manages a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// `RolloutPlugin`
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// The observed state.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The workload, or why it cannot be rolled out.
    pub workload: Result<Workload, NoWorkload>,
    /// The version of the observed object. Requests decided on it carry it.
    pub version: Version,
}

/// The version of a workload; only its plugin interprets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version(pub String);

/// A complete template.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot(pub serde_json::Value);

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The workload was changed.
    Changed,
    /// There was nothing to change.
    Unchanged,
    /// A disruption budget forbids it at the moment, with this message.
    NotNow(String),
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// Another client has changed the workload since it was observed. Observe it again.
    #[error("{0} has changed since it was looked at")]
    Conflict(String),
    /// The object does not exist.
    #[error("{0} is gone")]
    Gone(String),
    /// Any other error; a retry may help.
    #[error("{what}: {cause}")]
    Failed {
        /// What was attempted.
        what: String,
        /// The cause.
        cause: String,
    },
}

/// A plugin for one kind of workload. Every method may be called again after a crash at any point.
#[async_trait]
pub trait ResourcePlugin: Send + Sync {
    /// Initializes the plugin. Called once, before anything else.
    async fn init(&self) -> Result<(), PluginError>;

    /// Observes the workload. `None` while the plugin's view is older than its own last write; it reports a change once it has caught up.
    async fn observe(&self, target: &Target) -> Result<Option<Observation>, PluginError>;

    /// The name of another workload that the target's manager holds because it referenced that one before.
    async fn held_elsewhere(&self, target: &Target) -> Result<Option<String>, PluginError>;

    /// Releases a share of the pods, and claims the workload for its manager in the same request.
    async fn set_weight(&self, target: &Target, at: &Version, share: Share) -> Result<Done, PluginError>;

    /// Whether the workload itself reports the share as updated. The engine has checked the pods already.
    async fn verify_weight(&self, target: &Target, share: Share) -> Result<bool, PluginError>;

    /// Releases every pod.
    async fn promote(&self, target: &Target, at: &Version) -> Result<Done, PluginError> {
        self.set_weight(target, at, Share::ALL).await
    }

    /// Replaces one pod: deletes it, so that it is recreated on the right version. With `serving` it is evicted, which
    /// respects disruption budgets; otherwise it is deleted only if it is not Ready.
    async fn replace_pod(
        &self,
        target: &Target,
        pod: &str,
        uid: &str,
        serving: bool,
    ) -> Result<Done, PluginError>;

    /// The template of a revision, or the current one. `None` if it does not exist any more.
    async fn snapshot(
        &self,
        target: &Target,
        revision: Option<&str>,
    ) -> Result<Option<Snapshot>, PluginError>;

    /// Restores a template and releases a share of the pods to it.
    async fn restore(
        &self,
        target: &Target,
        at: &Version,
        template: &Snapshot,
        share: Share,
    ) -> Result<Done, PluginError>;

    /// Releases the claim.
    async fn release_claim(&self, target: &Target, at: &Version, leave: &LeftAs)
    -> Result<Done, PluginError>;

    /// Which other client writes what `action` writes, and what to do about it, as a sentence for users.
    async fn foreign_writer(&self, target: &Target, action: &Action) -> String;

    /// Identifies a snapshot.
    fn fingerprint(&self, template: &Snapshot) -> Fingerprint {
        Fingerprint::of(&stateward_core::revision::data(&template.0))
    }
}
