//! The workload as a decision sees it: revisions, a row per pod, and how far it is released.
//!
//! A resource plugin fills this in. Pods are counted by [`Pod::index`] from 0, whatever ordinals they carry; the share that
//! is released is counted from the last pod down.

use jiff::{SignedDuration, Timestamp};

use crate::memory::Stable;
use crate::plan::Fingerprint;
use crate::revision::RevisionName;

/// The most replicas that a workload may ask for and still be rolled out: as many as the nodes of the largest cluster that
/// Kubernetes supports. The number costs a tenant nothing to write down, and a decision looks at every pod that it asks for.
pub const MOST_REPLICAS: u32 = 5_000;

/// A snapshot of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its identity: another object of the same name has another.
    pub uid: String,
    /// Its controller has seen what the snapshot shows.
    pub observed: bool,
    /// Pods asked for.
    pub replicas: u32,
    /// Pods it is set to update, from the last one down. Negative while it is held more tightly than it needs to be.
    pub released: i64,
    /// The revision that a pod outside the released share gets when it is made again.
    pub current: RevisionName,
    /// The revision of the template.
    pub update: RevisionName,
    /// Tells the template from others.
    pub template: Fingerprint,
    /// The same of the current revision's template, where it is known. Asked for when a workload is taken on.
    pub current_template: Option<Fingerprint>,
    /// What its lowest pod runs, where its controller has forgotten that and its template is known. Asked for when a workload is
    /// taken on.
    pub forgotten: Option<Stable>,
    /// How its users have set it, in the plugin's own words: what it has to be again when it is let go.
    pub setting: String,
    /// The same, where it was written down when the workload was let go of in the middle of a rollout.
    pub kept_setting: Option<String>,
    /// Who holds it.
    pub claim: Claim,
    /// One pod waits for the one before it, so a broken one holds up the others.
    pub ordered: bool,
    /// How long a pod must be Ready to count.
    pub min_ready: SignedDuration,
    /// The workload's own counters, which come by another way than the pods and may lag.
    pub told: Counters,
    /// The pods, sorted by index.
    pub pods: Vec<Pod>,
}

/// Who holds a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nobody.
    Free,
    /// Nobody here, but another operator has held it for the object that is being decided on.
    Inherited,
    /// The object that is being decided on.
    Ours,
    /// Another one, by name.
    Other(String),
}

/// Pods counted by their own workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// There at all.
    pub replicas: u32,
    /// On the current revision, and not on their way out.
    pub current: u32,
    /// On the template's revision, and not on their way out.
    pub updated: u32,
    /// Ready.
    pub ready: u32,
    /// Ready for long enough.
    pub available: u32,
}

/// One pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Its place, from 0.
    pub index: u32,
    /// What it runs.
    pub revision: Option<RevisionName>,
    /// On its way out.
    pub terminating: bool,
    /// Ready since then.
    pub ready_since: Option<Timestamp>,
    /// Not Ready since then, where that is told.
    pub unready_since: Option<Timestamp>,
    /// How often its containers have started again.
    pub restarts: u32,
    /// When the last of them did.
    pub restarted_at: Option<Timestamp>,
    /// Why it will not get well by itself.
    pub trouble: Option<Trouble>,
    /// What is reported of it while it is not Ready.
    pub unready: Option<Unready>,
    /// The exit code of the container that ended last, of those that are not Ready.
    pub last_exit: Option<i32>,
}

/// Something waiting does not mend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Kubernetes' word for it: `CrashLoopBackOff`, `ImagePullBackOff`.
    pub reason: String,
    /// What was said about it.
    pub message: String,
}

/// Why a pod is not Ready, as the scheduler and the kubelet report it. It is shown, and no verdict follows from it: waiting may help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unready {
    /// In one word: `Unschedulable`, `ErrImagePull`.
    pub reason: String,
    /// For people, with the reason: `ErrImagePull: not found`.
    pub message: String,
}

impl Unready {
    /// The reason of a pod whose init containers run.
    pub const INITIALIZING: &str = "Initializing";
    /// The reason of one whose startup probe has yet to pass.
    pub const STARTUP_PROBE: &str = "StartupProbe";
    /// The reason of one whose readiness probe has yet to pass, or passes no more.
    pub const READINESS_PROBE: &str = "ReadinessProbe";
}

/// How long a container that has crashed must run before we believe it. A crash loop without a readiness probe is Ready
/// for a moment at every turn.
const BELIEVED_AFTER: SignedDuration = SignedDuration::from_secs(10);

/// A crash loop starts its container again within this time.
const CRASHES_WITHIN: SignedDuration = SignedDuration::from_mins(10);

impl Pod {
    /// Ready, and staying.
    pub fn ready(&self) -> bool {
        self.ready_since.is_some() && !self.terminating
    }

    /// Not Ready, and more than slow: its containers cannot begin, or have ended a moment ago.
    pub fn is_broken(&self, now: Timestamp) -> bool {
        !self.ready() && !self.terminating && (self.trouble.is_some() || self.has_crashed_lately(now))
    }

    /// Whether it may be in a crash loop, also where it is Ready for a moment.
    pub fn has_crashed_lately(&self, now: Timestamp) -> bool {
        self.restarted_at
            .is_some_and(|at| now.duration_since(at) < CRASHES_WITHIN)
    }

    /// When it will count as available if nothing happens to it. `None` while it is not Ready.
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

    /// The pods that are asked for, without those that scaling down will take away.
    pub fn members(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().filter(|pod| pod.index < self.replicas)
    }

    /// The living pod at `index`: the one that stays, where an old one is still on its way out.
    pub fn at(&self, index: u32) -> Option<&Pod> {
        let start = self.pods.partition_point(|pod| pod.index < index);
        let mut here = self.pods[start..].iter().take_while(|pod| pod.index == index);
        let first = here.next()?;
        if !first.terminating {
            return Some(first);
        }
        Some(here.find(|pod| !pod.terminating).unwrap_or(first))
    }

    /// Pods from the last one down that already run `revision`, without a gap.
    pub fn exposed_from_the_top(&self, revision: &RevisionName) -> u32 {
        let runs = |index: &u32| self.at(*index).is_some_and(|pod| pod.runs(revision));
        (0..self.replicas).rev().take_while(runs).count() as u32
    }

    /// What the lowest pod runs, where its controller has forgotten that: the workload was made anew around its pods, with another
    /// template. A change goes from the last pod down, so that is what they come from.
    pub fn forgotten_revision(&self) -> Option<&RevisionName> {
        let mut there = self.members().filter(|pod| !pod.terminating);
        let lowest = there.find_map(|pod| pod.revision.as_ref())?;
        (self.current == self.update && *lowest != self.update).then_some(lowest)
    }

    /// Whether the workload's counters tell of the same pods as the rows do. The two come by different watches; while
    /// they differ, one of them is old.
    pub fn counters_agree(&self) -> bool {
        let ready = self.pods.iter().filter(|pod| pod.ready_since.is_some());
        self.same_pods() && self.told.ready as usize == ready.count()
    }

    /// The same without readiness, which comes and goes: which pods there are, and what they run.
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
