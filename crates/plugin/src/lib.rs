//! Resource plugins: the hands and eyes of a rollout.
//!
//! A plugin knows one kind of workload. It shows what is there ([`ResourcePlugin::observe`]) and carries out what the engine
//! has decided, one request per call, each of them safe to repeat. It decides nothing. No Kubernetes type crosses the
//! trait, so that a plugin may as well live in another process.

pub mod statefulset;
mod watches;
mod words;

use async_trait::async_trait;
use stateward_core::plan::{Fingerprint, Share};
use stateward_core::workload::Workload;
use stateward_core::world::{Action, Leave, NoWorkload};

pub use self::watches::Watches;
pub use self::words::{words, words_of_watch};

/// A workload to look at or to act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its namespace, which is also that of whoever manages it.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The object that manages it.
    pub manager: Manager,
}

/// Who manages a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// `RolloutPlugin`
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
}

/// What is there.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The workload, or why there is none to roll.
    pub workload: Result<Workload, NoWorkload>,
    /// The version of the object that was looked at. What is decided on it carries it along.
    pub version: Version,
}

/// The version of a workload, opaque but to its plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version(pub String);

/// A template, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot(pub serde_json::Value);

/// A request that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// Something was changed.
    Changed,
    /// It was so already.
    Unchanged,
    /// A disruption budget says not now, in these words.
    NotNow(String),
}

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// Somebody else has changed the workload since it was looked at. Look again.
    #[error("{0} has changed since it was looked at")]
    Conflict(String),
    /// What was asked for is not there.
    #[error("{0} is gone")]
    Gone(String),
    /// Anything else; trying again may help.
    #[error("{what}: {cause}")]
    Failed {
        /// What was tried.
        what: String,
        /// What came of it.
        cause: String,
    },
}

/// One kind of workload. Every method may be called again after a crash at any point.
#[async_trait]
pub trait ResourcePlugin: Send + Sync {
    /// Gets ready. Called once, before anything else.
    async fn init(&self) -> Result<(), PluginError>;

    /// What is there. `None` while the plugin's view is older than its own last write: it will say when it has caught up.
    async fn observe(&self, target: &Target) -> Result<Option<Observation>, PluginError>;

    /// The name of another workload that the target's manager holds, from before it was meant for this one.
    async fn held_elsewhere(&self, target: &Target) -> Result<Option<String>, PluginError>;

    /// Releases a share of the pods, and claims the workload for its manager in the same request.
    async fn set_weight(&self, target: &Target, at: &Version, share: Share) -> Result<Done, PluginError>;

    /// Whether a share is out, as far as the workload itself tells. The engine has looked at the pods already.
    async fn verify_weight(&self, target: &Target, share: Share) -> Result<bool, PluginError>;

    /// Releases every pod.
    async fn promote(&self, target: &Target, at: &Version) -> Result<Done, PluginError> {
        self.set_weight(target, at, Share::ALL).await
    }

    /// One step of a way back: makes one pod go, so that it comes back as it should be. `serving` asks the disruption
    /// budgets first; otherwise it goes only while it is not Ready.
    async fn abort(&self, target: &Target, pod: &str, uid: &str, serving: bool) -> Result<Done, PluginError>;

    /// The template of a revision, or the one that is asked for now. `None` when it is gone.
    async fn snapshot(
        &self,
        target: &Target,
        revision: Option<&str>,
    ) -> Result<Option<Snapshot>, PluginError>;

    /// Puts a template back and releases a share of the pods to it.
    async fn restore(
        &self,
        target: &Target,
        at: &Version,
        template: &Snapshot,
        share: Share,
    ) -> Result<Done, PluginError>;

    /// Gives the claim up.
    async fn let_go(&self, target: &Target, at: &Version, leave: &Leave) -> Result<Done, PluginError>;

    /// Who else writes what `action` writes, and what to do about it, in a sentence for people.
    async fn foreign_writer(&self, target: &Target, action: &Action) -> String;

    /// What tells a snapshot from others.
    fn fingerprint(&self, template: &Snapshot) -> Fingerprint {
        Fingerprint::of(&stateward_core::revision::data(&template.0))
    }
}
