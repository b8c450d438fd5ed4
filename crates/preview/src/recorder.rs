//! Records commits of the cluster as events and as pods over time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;
use stateward_api::rollout::RolloutStatus;
use stateward_cluster::Commit;
use stateward_core::memory::{Activity, Cause};
use stateward_core::record;

use crate::Error;
use crate::preview::{Entry, Happening, Lane, Span, State, Version};
use crate::subject::{Rollout, as_supposed};

/// Records what happens on the cluster.
pub(crate) struct Recorder {
    rollout: Rollout,
    set: String,
    namespace: String,
    first_ordinal: u32,
    titles: Vec<String>,
    /// When the preview began; nothing is recorded before.
    began: Option<Timestamp>,
    /// When something last happened.
    pub(crate) last: Timestamp,
    /// When the last rollback ended.
    pub(crate) arrived: Timestamp,
    pub(crate) status: RolloutStatus,
    pub(crate) activity: Activity,
    pub(crate) observed: bool,
    pub(crate) revision: Revisions,
    pub(crate) replicas: u32,
    partition: i32,
    pods: BTreeMap<u32, Seen>,
    lanes: BTreeMap<u32, Vec<Span>>,
    /// The ordinals of pods that were Ready once: only those can become unavailable.
    served: BTreeSet<u32>,
    runs: BTreeMap<String, String>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) most_unavailable: u32,
    /// The step whose failure was recorded.
    failed_at: Option<usize>,
    /// Changes when something happens that is not an entry.
    pulse: String,
}

/// The revisions of the set, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Revisions {
    /// The revision of the stable version.
    pub(crate) stable: String,
    /// The revision of the template.
    pub(crate) update: String,
    /// The revision that was being rolled out when another replaced it.
    replaced: Option<String>,
}

impl Revisions {
    /// The version of a pod with this revision.
    fn version(&self, revision: &str) -> Version {
        if revision == self.stable {
            Version::Stable
        } else if self.replaced.as_deref() == Some(revision) {
            Version::Replaced
        } else {
            Version::New
        }
    }
}

/// A pod as last seen.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    uid: String,
    revision: String,
    version: Version,
    state: State,
    reason: String,
    /// Whether its problem was recorded.
    troubled: bool,
    since: Timestamp,
}

impl Recorder {
    pub(crate) fn new(rollout: Rollout, namespace: &str, first_ordinal: u32, titles: Vec<String>) -> Self {
        Self {
            set: rollout.workload().to_owned(),
            rollout,
            namespace: namespace.to_owned(),
            first_ordinal,
            titles,
            began: None,
            last: Timestamp::UNIX_EPOCH,
            arrived: Timestamp::UNIX_EPOCH,
            status: RolloutStatus::default(),
            activity: Activity::Idle,
            observed: false,
            revision: Revisions::default(),
            replicas: 0,
            partition: 0,
            pods: BTreeMap::new(),
            lanes: BTreeMap::new(),
            served: BTreeSet::new(),
            runs: BTreeMap::new(),
            entries: Vec::new(),
            most_unavailable: 0,
            failed_at: None,
            pulse: String::new(),
        }
    }

    /// Starts recording.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.began = Some(now);
        self.last = now;
        self.entries.clear();
        self.lanes.clear();
        for pod in self.pods.values_mut() {
            pod.since = now;
            pod.version = self.revision.version(&pod.revision);
        }
        self.most_unavailable = self.unavailable();
    }

    /// Another version replaces the one being rolled out, when the preview begins.
    pub(crate) fn supersede(&mut self) {
        let old = self.revision.update.clone();
        for pod in self.pods.values_mut().filter(|pod| pod.revision == old) {
            pod.version = Version::Replaced;
        }
        self.revision.replaced = Some(old);
    }

    /// The template was the same: the preview begins without a replaced version.
    pub(crate) fn carry_on(&mut self, now: Timestamp) {
        self.revision.replaced = None;
        self.begin(now);
    }

    /// The current step; the number of steps after the last.
    pub(crate) fn step(&self) -> Option<usize> {
        match &self.activity {
            Activity::Rolling(attempt) => Some(attempt.step.0 as usize),
            Activity::Idle | Activity::RollingBack(_) => None,
        }
    }

    /// Whether every pod runs the new version and is Ready. True without pods: added ones would run it.
    pub(crate) fn is_rolled(&self) -> bool {
        let done = |pod: &Seen| pod.version == Version::New && pod.state == State::Ready;
        let asked_for = self.revision.update != self.revision.stable;
        asked_for && self.pods.len() == self.replicas as usize && self.pods.values().all(done)
    }

    /// Whether every pod is Ready.
    pub(crate) fn is_well(&self) -> bool {
        self.wanted().all(|ordinal| self.is_ready(ordinal))
    }

    /// Whether its controller has seen the set, and every pod is Ready.
    pub(crate) fn is_settled(&self) -> bool {
        !self.revision.update.is_empty() && self.is_well()
    }

    fn wanted(&self) -> std::ops::Range<u32> {
        self.first_ordinal..self.first_ordinal + self.replicas
    }

    fn is_ready(&self, ordinal: u32) -> bool {
        let pod = self.pods.get(&ordinal);
        pod.is_some_and(|pod| pod.state == State::Ready)
    }

    /// Records a commit.
    pub(crate) fn note(&mut self, commit: &Commit, now: Timestamp) -> Result<(), Error> {
        if commit.namespace != self.namespace {
            return Ok(());
        }
        match &*commit.resource {
            "statefulsets.apps" if commit.name == self.set => self.note_set(&commit.object, now),
            "pods" => self.note_pod(commit, now),
            "analysisruns.argoproj.io" => self.note_run(commit, now),
            "rolloutplugins.argoproj.io" | "phasedrollouts.sts.plus"
                if commit.name == self.rollout.name() && !commit.deleted =>
            {
                self.note_rollout(&commit.object, now)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds an entry.
    pub(crate) fn tell(&mut self, what: Happening, now: Timestamp) {
        self.last = now;
        if let Some(at) = self.seconds(now) {
            self.entries.push(Entry { at, what });
        }
    }

    /// Seconds from the beginning, to a tenth: timers are late by milliseconds.
    pub(crate) fn seconds(&self, now: Timestamp) -> Option<f64> {
        let since = now.duration_since(self.began?);
        Some((since.as_secs_f64() * 10.0).round() / 10.0)
    }

    fn note_set(&mut self, set: &Value, now: Timestamp) {
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let replicas = number(&set["spec"]["replicas"]).unwrap_or(1);
        if replicas != self.replicas {
            let from = std::mem::replace(&mut self.replicas, replicas);
            self.tell(Happening::Scaled { from, to: replicas }, now);
        }
        let partition = &set["spec"]["updateStrategy"]["rollingUpdate"]["partition"];
        let partition = i32::try_from(partition.as_i64().unwrap_or(0)).unwrap_or(0);
        if partition != self.partition {
            let from = std::mem::replace(&mut self.partition, partition);
            self.tell(Happening::Partition { from, to: partition }, now);
        }
        let status = &set["status"];
        if status["observedGeneration"] == set["metadata"]["generation"] {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            self.revision.update = text(&status["updateRevision"]);
            if self.revision.stable.is_empty() {
                self.revision.stable = text(&status["currentRevision"]);
            }
        }
        self.count();
    }

    fn note_pod(&mut self, commit: &Commit, now: Timestamp) {
        let pod = &commit.object;
        let owner = &pod["metadata"]["ownerReferences"][0];
        let ordinal = commit
            .name
            .strip_prefix(&format!("{}-", self.set))
            .and_then(|ordinal| ordinal.parse::<u32>().ok());
        let (Some(ordinal), true) = (ordinal, owner["kind"] == "StatefulSet") else {
            return;
        };
        let mut seen = (!commit.deleted).then(|| self.seen(pod, now));
        let before = self.pods.get(&ordinal).cloned();
        let same = match (&before, &seen) {
            (Some(before), Some(seen)) => {
                (&before.uid, before.version, before.state, &before.reason)
                    == (&seen.uid, seen.version, seen.state, &seen.reason)
            }
            (None, None) => true,
            _ => false,
        };
        if same {
            return;
        }
        if let Some(before) = before.clone() {
            self.close(ordinal, &before, now);
        }
        let name = commit.name.clone();
        match &mut seen {
            Some(seen) => {
                let version = seen.version;
                let was = before.as_ref().filter(|before| before.uid == seen.uid);
                // Crash, back-off and crash again are one problem until the pod is Ready.
                let troubled = was.is_some_and(|before| before.troubled);
                seen.troubled = seen.state != State::Ready && (troubled || seen.state == State::Unwell);
                let was = was.map(|before| before.state);
                match (was, seen.state) {
                    (Some(State::Ready), State::Ready) => {}
                    (_, State::Ready) => self.tell(Happening::PodReady { pod: name, version }, now),
                    (Some(State::Stopping), State::Stopping) => {}
                    (_, State::Stopping) => self.tell(Happening::PodStops { pod: name, version }, now),
                    (_, State::Unwell) if troubled => {}
                    (Some(State::Ready), State::Starting) | (_, State::Unwell) => {
                        let reason = match seen.reason.as_str() {
                            "" => "not Ready".to_owned(),
                            reason => reason.to_owned(),
                        };
                        let pod = name;
                        self.tell(Happening::PodUnwell { pod, version, reason }, now);
                    }
                    (_, State::Starting) => {}
                }
                self.pods.insert(ordinal, seen.clone());
            }
            None => drop(self.pods.remove(&ordinal)),
        }
        self.count();
    }

    fn close(&mut self, ordinal: u32, pod: &Seen, now: Timestamp) {
        let (Some(from), Some(to)) = (self.seconds(pod.since), self.seconds(now)) else {
            return;
        };
        let lane = self.lanes.entry(ordinal).or_default();
        let (version, state) = (pod.version, pod.state);
        // A span of zero length is dropped, unless it is the last.
        if lane.last().is_some_and(|last| last.from == last.to) {
            lane.pop();
        }
        match lane.last_mut() {
            Some(last) if (last.version, last.state) == (version, state) && last.to == from => last.to = to,
            _ => lane.push(Span {
                from,
                to,
                version,
                state,
            }),
        }
    }

    fn seen(&self, pod: &Value, now: Timestamp) -> Seen {
        let metadata = &pod["metadata"];
        let conditions = pod["status"]["conditions"].as_array();
        let ready = conditions
            .into_iter()
            .flatten()
            .any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
        let containers = pod["status"]["containerStatuses"].as_array();
        let trouble = containers.into_iter().flatten().find_map(|container| {
            let waiting = container["state"]["waiting"]["reason"].as_str();
            let ended = container["state"]["terminated"]["reason"].as_str();
            waiting
                .filter(|reason| !matches!(*reason, "ContainerCreating" | "PodInitializing"))
                .or(ended)
        });
        let state = match (metadata["deletionTimestamp"].is_null(), ready, trouble) {
            (false, ..) => State::Stopping,
            (true, true, _) => State::Ready,
            (true, false, Some(_)) => State::Unwell,
            (true, false, None) => State::Starting,
        };
        let revision = metadata["labels"]["controller-revision-hash"].as_str();
        let revision = revision.unwrap_or_default().to_owned();
        Seen {
            uid: metadata["uid"].as_str().unwrap_or_default().to_owned(),
            version: self.revision.version(&revision),
            revision,
            state,
            reason: trouble.unwrap_or_default().to_owned(),
            troubled: false,
            since: now,
        }
    }

    fn unavailable(&self) -> u32 {
        let missed = |ordinal: &u32| self.served.contains(ordinal) && !self.is_ready(*ordinal);
        u32::try_from(self.wanted().filter(missed).count()).unwrap_or(u32::MAX)
    }

    fn count(&mut self) {
        let ready: Vec<_> = self.wanted().filter(|ordinal| self.is_ready(*ordinal)).collect();
        self.served.extend(ready);
        if self.began.is_some() {
            self.most_unavailable = self.most_unavailable.max(self.unavailable());
        }
    }

    fn note_run(&mut self, commit: &Commit, now: Timestamp) {
        let status = &commit.object["status"];
        let phase = status["phase"].as_str().unwrap_or_default();
        let measured: u64 = status["metricResults"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|metric| metric["successful"].as_u64())
            .sum();
        self.beat(format!("{} {measured}", commit.name), now);
        let over = matches!(phase, "Successful" | "Failed" | "Inconclusive" | "Error");
        let before = self.runs.insert(commit.name.clone(), phase.to_owned());
        if over && before.as_deref() != Some(phase) && !commit.deleted {
            let said = as_supposed(status["message"].as_str().unwrap_or_default());
            let verdict = if said.is_empty() {
                phase.to_owned()
            } else {
                format!("{phase}: {said}")
            };
            let of = commit.name.clone();
            self.tell(Happening::Analysed { of, verdict }, now);
        }
    }

    fn note_rollout(&mut self, object: &Value, now: Timestamp) -> Result<(), Error> {
        let seen = self.rollout.seen(object)?;
        let mut status = seen.status();
        status.message = as_supposed(&status.message);
        status.aborted_reason = status.aborted_reason.map(|reason| as_supposed(&reason));
        if let Rollout::Phased(phased) = &seen {
            let checks = phased
                .status
                .as_ref()
                .and_then(|status| status.rolling_pod_status.as_ref());
            let good = checks.map_or(0, |checks| checks.consecutive_successful_checks);
            let gate = checks.map_or("", |checks| &checks.gate);
            self.beat(format!("{gate} {good}"), now);
        }
        let activity = record::memory(&status).activity;
        let before = self.step();
        let was_returning = matches!(self.activity, Activity::RollingBack(_));
        if was_returning && activity == Activity::Idle {
            self.arrived = now;
        }
        self.observed = status.observed_generation.is_some();
        self.activity = activity;
        self.status = status;
        match self.step() {
            Some(step) if before != Some(step) => {
                let what = match self.titles.get(step) {
                    Some(title) => Happening::Step {
                        step: step + 1,
                        title: title.clone(),
                    },
                    None => Happening::StepsDone,
                };
                self.tell(what, now);
            }
            _ => {}
        }
        let returning = matches!(self.activity, Activity::RollingBack(_));
        let failed = self.status.phase == "Failed";
        if let (Activity::RollingBack(back), false) = (&self.activity, was_returning) {
            let reason = match (back.cause, &self.status.aborted_reason) {
                (Cause::Aborted, Some(reason)) => reason.clone(),
                (Cause::Aborted, None) => "aborted".to_owned(),
                (Cause::TemplateReverted, _) => "the template is the stable one again".to_owned(),
                (Cause::ScaledToZero, _) => {
                    "scaled to zero, and the template gives way to the stable one".to_owned()
                }
            };
            self.tell(Happening::Returns { reason }, now);
        } else if failed && !returning && self.failed_at != self.step() {
            // A pod in a crash loop is one failure, whatever its message.
            self.failed_at = self.step();
            let reason = self.status.message.clone();
            self.tell(Happening::Fails { reason }, now);
        }
        Ok(())
    }

    /// Notes a change that is not an entry.
    fn beat(&mut self, pulse: String, now: Timestamp) {
        if self.pulse != pulse {
            self.pulse = pulse;
            self.last = now;
        }
    }

    /// The pods over time, until `end`.
    pub(crate) fn lanes(&mut self, end: Timestamp) -> Vec<Lane> {
        for (ordinal, pod) in self.pods.clone() {
            self.close(ordinal, &pod, end.max(pod.since));
        }
        let mut lanes = std::mem::take(&mut self.lanes);
        // A crash-looping pod keeps crashing until the end.
        let end = self.seconds(end).unwrap_or_default();
        for spans in lanes.values_mut() {
            spans.retain(|span| span.from < end || span.from == span.to && span.to <= end);
            spans.iter_mut().for_each(|span| span.to = span.to.min(end));
        }
        lanes
            .into_iter()
            .map(|(ordinal, spans)| Lane {
                pod: format!("{}-{ordinal}", self.set),
                spans,
            })
            .collect()
    }
}
