//! What must hold after every commit. The numbers are those of `docs/design/invariants.md`.
//!
//! - [`world`]: sets, pods and rollouts, rebuilt from the commits.
//! - [`set`], [`pod`], [`rollout`], [`told`]: the checks of each kind of commit, and of requests and events.

mod pod;
mod rollout;
mod set;
mod told;
mod world;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stateward_api::analysis::Phase;
use stateward_cluster::{Commit, Commits};

use self::told::Told;
use self::world::{Pod, Rollout, Set};
use crate::harness::OPERATOR;

/// Reads the commits of a run in order and reports which violated an invariant.
pub(crate) struct Checker {
    cluster: Arc<stateward_cluster::Cluster>,
    commits: Commits,
}

/// The state after the commits so far.
#[derive(Default)]
struct Replay {
    sets: BTreeMap<String, Set>,
    pods: BTreeMap<String, Pod>,
    /// By resource and name.
    rollouts: BTreeMap<(String, String), Rollout>,
    /// AnalysisRuns, by name.
    runs: BTreeMap<String, Phase>,
    /// Runs and Jobs that the operator created, by resource and name.
    made: BTreeSet<(String, String)>,
    told: Told,
    broken: Vec<String>,
}

impl Checker {
    pub(crate) fn of(cluster: Arc<stateward_cluster::Cluster>) -> Self {
        let commits = cluster.commits();
        Self { cluster, commits }
    }

    /// Every violation in `namespace` so far, by a single operator (`alone`) or by several at once.
    pub(crate) fn broken(&mut self, namespace: &str, alone: bool) -> Vec<String> {
        let audit = self.cluster.audit();
        let ours = || audit.iter().filter(|entry| entry.user == OPERATOR);
        let mut replay = Replay {
            told: Told::by(alone),
            ..Replay::default()
        };
        let written: BTreeSet<u64> = ours().filter_map(|entry| entry.revision).collect();
        for commit in self
            .commits
            .by_ref()
            .filter(|commit| commit.namespace == namespace)
        {
            replay.apply(&commit, written.contains(&commit.revision));
        }
        for entry in ours() {
            replay.check_request(entry);
        }
        replay.broken
    }
}

/// The violations of these commits, each with whether the operator wrote it.
pub(super) fn broken<'a>(commits: impl Iterator<Item = (&'a Commit, bool)>) -> Vec<String> {
    let mut replay = Replay::default();
    for (commit, by_us) in commits {
        replay.apply(commit, by_us);
    }
    replay.broken
}

impl Replay {
    fn breaks(&mut self, what: String) {
        if !self.broken.contains(&what) {
            self.broken.push(what);
        }
    }

    fn apply(&mut self, commit: &Commit, by_us: bool) {
        match commit.resource.as_ref() {
            "statefulsets.apps" => self.apply_set(commit, by_us),
            "pods" => self.apply_pod(commit, by_us),
            "rolloutplugins.argoproj.io" | world::PHASED => self.apply_rollout(commit, by_us),
            "analysisruns.argoproj.io" => self.apply_run(commit),
            "events" => self.apply_event(commit, by_us),
            _ => {}
        }
    }

    fn apply_run(&mut self, commit: &Commit) {
        if commit.deleted {
            self.runs.remove(&commit.name);
            return;
        }
        let phase = commit
            .object
            .pointer("/status/phase")
            .cloned()
            .unwrap_or_default();
        let phase: Phase = serde_json::from_value(phase).unwrap_or_default();
        // A finished run may be deleted if it has a TTL: 18.
        if phase.is_over() && commit.object.pointer("/spec/ttlStrategy").is_some() {
            self.made.insert(("analysisruns".into(), commit.name.clone()));
        }
        // A finished run stays finished: 47.
        if let Some(before) = self.runs.get(&commit.name)
            && before.is_over()
            && *before != phase
        {
            self.breaks(format!(
                "47: run {} was {before:?} and became {phase:?}",
                commit.name
            ));
        }
        self.runs.insert(commit.name.clone(), phase);
    }

    /// The rollout that holds a set's claim.
    fn holder(&self, set: &str) -> Option<&Rollout> {
        let claim = &self.sets.get(set)?.claim;
        self.rollouts
            .values()
            .find(|rollout| rollout.set == set && claim.ends_with(&format!("/{}", rollout.uid)))
    }

    /// The pods within a set's replicas that are not terminating and run `revision`.
    fn on<'r>(&'r self, set: &'r str, revision: &'r str) -> impl Iterator<Item = &'r Pod> {
        let replicas = self.sets.get(set).map_or(0, |set| set.replicas);
        self.pods.values().filter(move |pod| {
            pod.set == set && pod.index < replicas && !pod.leaving && pod.revision == revision
        })
    }
}
