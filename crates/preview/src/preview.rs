//! What came of it.

use serde::Serialize;

/// A rollout, played.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preview {
    /// `rolloutplugin/db`
    pub rollout: String,
    /// Where it is.
    pub namespace: String,
    /// `statefulset/db`
    pub workload: String,
    /// Its pods at the beginning.
    pub replicas: u32,
    /// The steps, in words.
    pub steps: Vec<String>,
    /// What was taken for granted.
    pub assumptions: Vec<String>,
    /// What was supposed to happen.
    pub what_if: Vec<String>,
    /// How it ends.
    pub outcome: Outcome,
    /// In the words of the operator.
    pub message: String,
    /// Seconds from the change of the template, or from where the rollout stands, to the end.
    pub duration_seconds: f64,
    /// Seconds of these in which it waited for people.
    pub waited_for_people_seconds: f64,
    /// The most pods that were not Ready at the same time.
    pub most_unavailable: u32,
    /// Where people are needed.
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
    /// The new version was turned down or taken out again, and every pod is back.
    RolledBack,
    /// It has failed and stays where it is until somebody decides.
    Held,
    /// It waits for somebody who does not come.
    Waiting,
    /// Nothing moves any more, and nobody is told.
    Stuck,
}

/// Where somebody is needed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Person {
    /// Seconds from the beginning.
    pub at: f64,
    /// The step, from 1; one more than there are when all are done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<usize>,
    /// The command that is waited for.
    pub command: String,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// Seconds from the beginning.
    pub at: f64,
    /// What.
    #[serde(flatten)]
    pub what: Happening,
}

/// What happens.
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
    /// The partition moves.
    Partition {
        /// From here.
        from: i32,
        /// To there.
        to: i32,
    },
    /// The set has another size.
    Scaled {
        /// As many as before.
        from: u32,
        /// As many as now.
        to: u32,
    },
    /// A pod goes.
    PodStops {
        /// Which.
        pod: String,
        /// What it ran.
        version: Version,
    },
    /// A pod is Ready.
    PodReady {
        /// Which.
        pod: String,
        /// What it runs.
        version: Version,
    },
    /// A pod that was Ready is so no more, or one that never was is in trouble.
    PodUnwell {
        /// Which.
        pod: String,
        /// What it runs.
        version: Version,
        /// In Kubernetes' words.
        reason: String,
    },
    /// An analysis has ended.
    Analysed {
        /// Of what.
        of: String,
        /// How it ended.
        verdict: String,
    },
    /// Somebody is needed.
    Waits {
        /// The command that is waited for.
        command: String,
    },
    /// Somebody does something.
    Done {
        /// A command, or what was supposed to happen.
        what_if: String,
    },
    /// The rollout turns round.
    Returns {
        /// Why.
        reason: String,
    },
    /// It says that it has failed and stays where it is.
    Fails {
        /// Why.
        reason: String,
    },
    /// It is over.
    Ends {
        /// How.
        outcome: Outcome,
    },
}

/// What a pod runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Version {
    /// The version before.
    Stable,
    /// The one that was under way when the new one took its place.
    Replaced,
    /// The new one.
    New,
}

/// How a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// Ready.
    Ready,
    /// On its way.
    Starting,
    /// In trouble.
    Unwell,
    /// Told to stop.
    Stopping,
}

/// A pod over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lane {
    /// Its name.
    pub pod: String,
    /// In order, without those in which there is none.
    pub spans: Vec<Span>,
}

/// A stretch of time in which a pod does not change.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// Seconds from the beginning.
    pub from: f64,
    /// Seconds from the beginning.
    pub to: f64,
    /// What it runs.
    pub version: Version,
    /// How it is.
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

    /// Its pods at the end.
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

    /// Whether it takes the place of a rollout that was under way.
    pub(crate) fn replaces(&self) -> bool {
        let mut spans = self.pods.iter().flat_map(|lane| &lane.spans);
        spans.any(|span| span.version == Version::Replaced)
    }

    /// The pods that become Ready, in order, with what they run.
    pub fn readied(&self) -> Vec<(String, Version)> {
        let readied = self.entries.iter().filter_map(|entry| match &entry.what {
            Happening::PodReady { pod, version } => Some((pod.clone(), *version)),
            _ => None,
        });
        readied.collect()
    }
}
