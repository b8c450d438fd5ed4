//! The workload as a decision sees it: revisions, a row per pod, and how many pods are released.
//!
//! A resource plugin fills it in. Pods are counted by [`Pod::index`] from 0, whatever their ordinals; the released share is counted
//! from the last pod down.

use jiff::{SignedDuration, Timestamp};

use crate::memory::Stable;
use crate::plan::Fingerprint;
use crate::revision::RevisionName;

/// The most replicas of a workload that can be rolled out: the number of nodes in the largest cluster that Kubernetes supports. A
/// tenant can request any number for free, and a decision looks at every requested pod.
pub const MOST_REPLICAS: u32 = 5_000;

/// A snapshot of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its UID.
    pub uid: String,
    /// Its controller has observed the generation of this snapshot.
    pub observed: bool,
    /// Requested replicas.
    pub replicas: u32,
    /// Pods that it is set to update, from the last one down. Negative while the partition is higher than the number of replicas.
    pub released: i64,
    /// The revision that a pod outside the released share gets when it is recreated.
    pub current: RevisionName,
    /// The revision of the template.
    pub update: RevisionName,
    /// Identifies the template.
    pub template: Fingerprint,
    /// Identifies the current revision's template, if known. Read when a workload is adopted.
    pub current_template: Option<Fingerprint>,
    /// The revision of its lowest pod, if its controller has forgotten it and the template is known. Read when a workload is
    /// adopted.
    pub forgotten: Option<Stable>,
    /// The update setting of its users, encoded by the plugin: restored when the workload is released.
    pub setting: String,
    /// The same, recorded on the workload when it was released in the middle of a rollout.
    pub kept_setting: Option<String>,
    /// Which object claims it.
    pub claim: Claim,
    /// Pods are updated in order, so a broken pod blocks the others.
    pub ordered: bool,
    /// How long a pod must be Ready to be available (`minReadySeconds`).
    pub min_ready: SignedDuration,
    /// The counters in the workload's status, which may lag behind the pods or run ahead of them.
    pub told: Counters,
    /// The pods, sorted by index.
    pub pods: Vec<Pod>,
}

/// Which object claims a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// No object.
    Free,
    /// No object, but another operator held it for the object that is being decided on.
    Inherited,
    /// The object that is being decided on.
    Ours,
    /// Another object, by name.
    Other(String),
}

/// The pod counters in the workload's status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// All pods.
    pub replicas: u32,
    /// On the current revision, and not terminating.
    pub current: u32,
    /// On the template's revision, and not terminating.
    pub updated: u32,
    /// Ready.
    pub ready: u32,
    /// Ready for at least `minReadySeconds`.
    pub available: u32,
}

/// One pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its index, from 0.
    pub index: u32,
    /// The revision that it runs.
    pub revision: Option<RevisionName>,
    /// Terminating.
    pub terminating: bool,
    /// Ready since then.
    pub ready_since: Option<Timestamp>,
    /// Not Ready since then, if reported.
    pub unready_since: Option<Timestamp>,
    /// How often its containers have restarted.
    pub restarts: u32,
    /// When a container last restarted.
    pub restarted_at: Option<Timestamp>,
    /// Why it will not become Ready by itself.
    pub trouble: Option<Trouble>,
    /// What is reported while it is not Ready.
    pub unready: Option<Unready>,
    /// The exit code of the container that terminated last, among those that are not Ready.
    pub last_exit: Option<i32>,
}

/// A problem that waiting does not fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The reason that Kubernetes reports: `CrashLoopBackOff`, `ImagePullBackOff`.
    pub reason: String,
    /// The message that Kubernetes reports.
    pub message: String,
}

/// Why a pod is not Ready, as the scheduler and the kubelet report it. It is only shown, because waiting may help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unready {
    /// The reason: `Unschedulable`, `ErrImagePull`.
    pub reason: String,
    /// The reason with details, for users: `ErrImagePull: not found`.
    pub message: String,
}

impl Unready {
    /// The reason of a pod whose init containers run.
    pub const INITIALIZING: &str = "Initializing";
    /// The reason of a pod whose startup probe has not passed yet.
    pub const STARTUP_PROBE: &str = "StartupProbe";
    /// The reason of a pod whose readiness probe has not passed yet, or fails again.
    pub const READINESS_PROBE: &str = "ReadinessProbe";
}

/// How long a container that has crashed must run before it counts as healthy. A crash-looping container without a readiness probe
/// is Ready for a moment after every restart.
const BELIEVED_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// A crash loop restarts its container within this time.
const CRASHES_WITHIN: SignedDuration = SignedDuration::from_mins(10);

impl Pod {
    /// Ready, and not terminating.
    pub fn ready(&self) -> bool {
        self.ready_since.is_some() && !self.terminating
    }

    /// Not Ready, and not just slow: its containers cannot start, or crashed recently.
    pub fn is_broken(&self, now: Timestamp) -> bool {
        !self.ready() && !self.terminating && (self.trouble.is_some() || self.has_crashed_lately(now))
    }

    /// Whether it may be in a crash loop, even if it is Ready at the moment.
    pub fn has_crashed_lately(&self, now: Timestamp) -> bool {
        self.restarted_at
            .is_some_and(|at| now.duration_since(at) < CRASHES_WITHIN)
    }

    /// When it will be available if nothing happens to it. `None` while it is not Ready.
    pub fn available_at(&self, min_ready: SignedDuration) -> Option<Timestamp> {
        let since = self.ready_since.filter(|_| !self.terminating)?;
        let ready = since.saturating_add(min_ready).ok()?;
        let believed = match self.restarted_at {
            Some(at) => at.saturating_add(BELIEVED_AFTER).ok()?,
            None => ready,
        };
        Some(ready.max(believed))
    }

    /// Whether it runs `revision`.
    pub fn runs(&self, revision: &RevisionName) -> bool {
        self.revision.as_ref() == Some(revision)
    }
}

impl Workload {
    /// The first index that a share of `pods` releases.
    pub fn first_released(&self, pods: u32) -> u32 {
        self.replicas.saturating_sub(pods)
    }

    /// The requested pods, without those that scaling down removes.
    pub fn members(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().filter(|pod| pod.index < self.replicas)
    }

    /// The pod at `index`: the one that stays, if an old one is still terminating.
    pub fn at(&self, index: u32) -> Option<&Pod> {
        let start = self.pods.partition_point(|pod| pod.index < index);
        let mut here = self.pods[start..].iter().take_while(|pod| pod.index == index);
        let first = here.next()?;
        if !first.terminating {
            return Some(first);
        }
        Some(here.find(|pod| !pod.terminating).unwrap_or(first))
    }

    /// The number of consecutive pods from the last one down that already run `revision`.
    pub fn exposed_from_the_top(&self, revision: &RevisionName) -> u32 {
        let runs = |index: &u32| self.at(*index).is_some_and(|pod| pod.runs(revision));
        (0..self.replicas).rev().take_while(runs).count() as u32
    }

    /// The revision of the lowest pod, if its controller has forgotten it: the workload was recreated around its pods with another
    /// template. An update goes from the last pod down, so the lowest pod runs the version before it.
    pub fn forgotten_revision(&self) -> Option<&RevisionName> {
        let mut there = self.members().filter(|pod| !pod.terminating);
        let lowest = there.find_map(|pod| pod.revision.as_ref())?;
        (self.current == self.update && *lowest != self.update).then_some(lowest)
    }

    /// Whether the workload's counters agree with the pods. They come from different watches; while they differ, one is stale.
    pub fn counters_agree(&self) -> bool {
        let ready = self.pods.iter().filter(|pod| pod.ready_since.is_some());
        self.same_pods() && self.told.ready as usize == ready.count()
    }

    /// The same without readiness, which changes often: which pods exist, and which revisions they run.
    pub fn same_pods(&self) -> bool {
        let on = |revision: &RevisionName| {
            let staying = self.pods.iter().filter(|pod| !pod.terminating);
            staying.filter(|pod| pod.runs(revision)).count()
        };
        self.told.replicas as usize == self.pods.len()
            && self.told.updated as usize == on(&self.update)
            && self.told.current as usize == on(&self.current)
    }
}
