//! The result of a simulation.

use serde::Serialize;

/// The preview of a rollout.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// `rolloutplugin/db`
    pub rollout: String,
    /// Its namespace.
    pub namespace: String,
    /// `statefulset/db`
    pub workload: String,
    /// The number of its pods at the beginning.
    pub replicas: u32,
    /// The steps, in words.
    pub steps: Vec<String>,
    /// The assumptions of the simulation.
    pub assumptions: Vec<String>,
    /// The simulated what-ifs.
    pub what_if: Vec<String>,
    /// How it ends.
    pub outcome: Outcome,
    /// The operator's message.
    pub message: String,
    /// Seconds from the template change, or from the rollout's current step, to the end.
    pub duration_seconds: f64,
    /// Seconds of these in which it waited for a user.
    pub waited_for_people_seconds: f64,
    /// The most pods that were not Ready at the same time.
    pub most_unavailable: u32,
    /// Where a user is needed.
    pub people: Vec<Person>,
    /// Everything that happens, in order.
    pub entries: Vec<Entry>,
    /// The pods over time, by ordinal.
    pub pods: Vec<Lane>,
}

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Outcome {
    /// Every pod is on the new version.
    Successful,
    /// The new version was rejected or replaced, and every pod is rolled back.
    RolledBack,
    /// It has failed and stays as it is until a user decides.
    Held,
    /// It waits for a user who does not act.
    Waiting,
    /// Nothing changes any more, and no user is notified.
    Stuck,
}

/// A point at which a user is needed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Person {
    /// Seconds from the beginning.
    pub at: f64,
    /// The step, from 1; one more than the number of steps after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// The expected command.
    pub command: String,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Seconds from the beginning.
    pub at: f64,
    /// The event.
    #[serde(flatten)]
    pub what: Happening,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Happening {
    /// A step begins, counted from 1.
    Step {
        /// Which.
        step: usize,
        /// In words.
        title: String,
    },
    /// All steps are done, and the remaining pods follow.
    StepsDone,
    /// The partition changes.
    Partition {
        /// The old partition.
        from: i32,
        /// The new partition.
        to: i32,
    },
    /// The set is scaled.
    Scaled {
        /// The old number of pods.
        from: u32,
        /// The new number of pods.
        to: u32,
    },
    /// A pod begins to stop.
    PodStops {
        /// The pod.
        pod: String,
        /// Its version.
        version: Version,
    },
    /// A pod is Ready.
    PodReady {
        /// The pod.
        pod: String,
        /// Its version.
        version: Version,
    },
    /// A Ready pod becomes unready, or one that was never Ready has a problem.
    PodUnwell {
        /// The pod.
        pod: String,
        /// Its version.
        version: Version,
        /// The reason, as Kubernetes reports it.
        reason: String,
    },
    /// An analysis has ended.
    Analysed {
        /// Its name.
        of: String,
        /// Its result.
        verdict: String,
    },
    /// A user is needed.
    Waits {
        /// The expected command.
        command: String,
    },
    /// A user acts.
    Done {
        /// The command, or the what-if.
        what_if: String,
    },
    /// The rollout begins to roll back.
    Returns {
        /// The reason.
        reason: String,
    },
    /// The rollout reports a failure and stays as it is.
    Fails {
        /// The reason.
        reason: String,
    },
    /// The simulation ends.
    Ends {
        /// The outcome.
        outcome: Outcome,
    },
}

/// The version that a pod runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Version {
    /// The stable version.
    Stable,
    /// The version that was being rolled out when the new one replaced it.
    Replaced,
    /// The new version.
    New,
}

/// The state of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// Ready.
    Ready,
    /// Starting.
    Starting,
    /// It has a problem.
    Unwell,
    /// Stopping.
    Stopping,
}

/// A pod over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lane {
    /// Its name.
    pub pod: String,
    /// In order; while the pod does not exist there is no span.
    pub spans: Vec<Span>,
}

/// A stretch of time in which a pod's state does not change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Seconds from the beginning.
    pub from: f64,
    /// Seconds from the beginning.
    pub to: f64,
    /// Its version.
    pub version: Version,
    /// Its state.
    pub state: State,
}

impl Preview {
    /// The partitions that are set, in order.
    pub fn partitions(&self) -> Vec<i32> {
        let partitions = self.entries.iter().filter_map(|entry| match entry.what {
            Happening::Partition { to, .. } => Some(to),
            _ => None,
        });
        partitions.collect()
    }

    /// The number of its pods at the end.
    pub(crate) fn replicas_at_the_end(&self) -> u32 {
        let scaled = self.entries.iter().rev().find_map(|entry| match entry.what {
            Happening::Scaled { to, .. } => Some(to),
            _ => None,
        });
        scaled.unwrap_or(self.replicas)
    }

    /// The most pods that it had at any time.
    pub(crate) fn most_replicas(&self) -> u32 {
        let scaled = self.entries.iter().filter_map(|entry| match entry.what {
            Happening::Scaled { to, .. } => Some(to),
            _ => None,
        });
        scaled.fold(self.replicas, u32::max)
    }

    /// Whether it replaces a rollout in progress.
    pub(crate) fn replaces(&self) -> bool {
        let mut spans = self.pods.iter().flat_map(|lane| &lane.spans);
        spans.any(|span| span.version == Version::Replaced)
    }

    /// The pods that become Ready, in order, with their versions.
    pub fn readied(&self) -> Vec<(String, Version)> {
        let readied = self.entries.iter().filter_map(|entry| match &entry.what {
            Happening::PodReady { pod, version } => Some((pod.clone(), *version)),
            _ => None,
        });
        readied.collect()
    }
}
