//! What a rollout does: its steps, and how long it may go without progress.
//!
//! Every API kind compiles to a [`Plan`]. The engine executes plans and does not know where they come from.

use std::fmt;

use jiff::SignedDuration;

/// A percentage of the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Weight(u8);

impl Weight {
    /// Every pod.
    pub const FULL: Self = Self(100);

    /// `None` outside 0 to 100.
    pub fn new(percent: i64) -> Option<Self> {
        u8::try_from(percent)
            .ok()
            .filter(|percent| *percent <= 100)
            .map(Self)
    }

    /// The percentage.
    pub fn percent(self) -> u8 {
        self.0
    }
}

/// How many pods may run the new version, counted from the last one down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// A percentage of the current replicas.
    Percent(Weight),
    /// A number of pods.
    Pods(u32),
}

impl Share {
    /// No pod: the guard.
    pub const NONE: Self = Self::Pods(0);
    /// Every pod.
    pub const ALL: Self = Self::Percent(Weight::FULL);

    /// The number of pods out of `replicas`: rounded down, but at least 1 for a weight above 0.
    pub fn of(self, replicas: u32) -> u32 {
        match self {
            Self::Pods(pods) => pods.min(replicas),
            Self::Percent(Weight(0)) => 0,
            Self::Percent(Weight(percent)) => {
                let floor = u64::from(replicas) * u64::from(percent) / 100;
                // Cannot truncate: it is at most `replicas`.
                (floor as u32).max(1).min(replicas)
            }
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(weight) => write!(f, "{} %", weight.0),
            Self::Pods(1) => f.write_str("1 pod"),
            Self::Pods(pods) => write!(f, "{pods} pods"),
        }
    }
}

/// The index of a step in its plan. The plan's length means "all steps are done".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepIndex(pub u32);

impl StepIndex {
    /// The next step.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Release this share, and wait until its pods are available.
    Share(Share),
    /// Wait this long, or until a user promotes.
    Pause(Option<SignedDuration>),
    /// Measure, and advance if the analysis is successful.
    Analysis(Check),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Share(share) => share.fmt(f),
            Self::Pause(None) => f.write_str("pause until promoted"),
            Self::Pause(Some(duration)) => write!(f, "pause {duration:#}"),
            Self::Analysis(_) => f.write_str("analysis"),
        }
    }
}

/// An analysis, identified by a digest of its spec. Its templates are not part of the digest: a run keeps what it began with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check(pub Fingerprint);

/// A background analysis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Background {
    /// The step at which it begins.
    pub from: StepIndex,
    /// The analysis.
    pub check: Check,
}

/// What happens to a rollout with a broken new pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBrokenPod {
    /// The same as for a missed deadline.
    Fail(OnFailure),
    /// Nothing: it may recover before the deadline.
    Wait,
}

/// How many completed AnalysisRuns are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Successful runs.
    pub successful: usize,
    /// All other runs.
    pub unsuccessful: usize,
}

impl Default for History {
    fn default() -> Self {
        Self {
            successful: 5,
            unsuccessful: 5,
        }
    }
}

/// What happens to a rollout that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// It is held, and the status says so.
    Hold,
    /// Every pod is rolled back to the stable version.
    Abort,
}

/// A rollout plan. When all steps are done, the remaining pods are updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The steps, in order.
    pub steps: Steps,
    /// Partition by pod: the steps are counted by pods ([`pod_by_pod`]), so their number follows the replicas.
    pub by_pod: bool,
    /// The background analysis.
    pub background: Option<Background>,
    /// How long the rollout may go without progress.
    pub deadline: SignedDuration,
    /// What happens at the deadline.
    pub on_failure: OnFailure,
    /// What happens when a new pod crashes or cannot start.
    pub on_broken_pod: OnBrokenPod,
    /// What happens when an analysis fails.
    pub on_failed_check: OnFailure,
    /// How many AnalysisRuns are kept.
    pub history: History,
}

impl Plan {
    /// The step at `index`; `None` when all are done.
    pub fn step(&self, index: StepIndex) -> Option<Step> {
        self.steps.get(index.0 as usize)
    }

    /// The index that means "all steps are done".
    pub fn end(&self) -> StepIndex {
        StepIndex(u32::try_from(self.steps.len()).unwrap_or(u32::MAX))
    }

    /// The position of a step.
    pub fn place(&self, index: StepIndex) -> Place {
        self.steps.place(index)
    }

    /// The share in force at a step: its own, or that of the last step before it that has one.
    pub fn share_at(&self, index: StepIndex) -> Share {
        if index >= self.end() {
            return Share::ALL;
        }
        match &self.steps {
            Steps::Listed(steps) => share_before(steps, index),
            Steps::PodByPod(_) => Share::Pods(pods_at(index)),
        }
    }

    /// The same plan for another number of pods, if its steps are counted by pods.
    pub(crate) fn counted_for(&self, replicas: u32) -> Self {
        match self.by_pod {
            true => Self {
                steps: pod_by_pod(replicas),
                ..self.clone()
            },
            false => self.clone(),
        }
    }

    /// A fingerprint that changes when the steps are edited. Scaling does not edit steps that are counted by pods.
    pub fn fingerprint(&self) -> Fingerprint {
        if self.by_pod {
            return Fingerprint::of("pod by pod");
        }
        match &self.steps {
            Steps::Listed(steps) => Fingerprint::of(&format!("{steps:?}")),
            Steps::PodByPod(_) => Fingerprint::of("pod by pod"),
        }
    }
}

/// The position of a step, counted from 1: `step 2 of 4`, or `pod 2 of 5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    unit: &'static str,
    number: u32,
    of: u32,
}

impl Place {
    /// `2/4`
    pub fn short(self) -> String {
        format!("{}/{}", self.number, self.of)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unit, number, of } = self;
        write!(f, "{unit} {number} of {of}")
    }
}

/// The steps of a plan.
///
/// Users choose the number of pods, so steps that are counted by pods are computed on demand: a plan for a million pods takes no
/// more memory than one for a single pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steps {
    /// Listed in the spec.
    Listed(Vec<Step>),
    /// Pod by pod, with a gate before each and one after the last, for this number of pods.
    PodByPod(u32),
}

impl Steps {
    /// The number of steps.
    pub fn len(&self) -> usize {
        match self {
            Self::Listed(steps) => steps.len(),
            Self::PodByPod(pods) => (*pods as usize).saturating_mul(2).saturating_add(1),
        }
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position of a step. Steps that are counted by pods are two for each pod, and are named by the pod.
    pub fn place(&self, index: StepIndex) -> Place {
        let (unit, number, of) = match self {
            Self::PodByPod(pods) => ("pod", index.0 / 2, *pods),
            Self::Listed(steps) => ("step", index.0, u32::try_from(steps.len()).unwrap_or(u32::MAX)),
        };
        let number = number.saturating_add(1).min(of);
        Place { unit, number, of }
    }

    /// The steps in a range that have not passed: `step 2 of 4`, `steps 2 to 4 of 4`. In steps that are counted by pods only the
    /// gates can be skipped: `the checks before pod 2 of 5`, `the checks from pod 2 of 5 on`, `the checks after the last pod`.
    pub fn skipped(&self, from: StepIndex, to: StepIndex) -> String {
        let single = from.0.saturating_add(1) >= to.0;
        match self {
            Self::Listed(_) if single => self.place(from).to_string(),
            Self::Listed(steps) => format!("steps {} to {} of {}", from.0 + 1, to.0, steps.len()),
            // A pod that was already released has passed its gate.
            Self::PodByPod(pods) if from.0.div_ceil(2) >= *pods => "the checks after the last pod".into(),
            Self::PodByPod(_) if single => format!("the checks before {}", self.place(from)),
            Self::PodByPod(_) => {
                let gate = StepIndex(from.0.div_ceil(2).saturating_mul(2));
                format!("the checks from {} on", self.place(gate))
            }
        }
    }

    /// The step at `index`; `None` when all are done.
    pub fn get(&self, index: usize) -> Option<Step> {
        match self {
            Self::Listed(steps) => steps.get(index).cloned(),
            Self::PodByPod(_) if index >= self.len() => None,
            Self::PodByPod(_) if index.is_multiple_of(2) => {
                Some(Step::Analysis(Check(Fingerprint::default())))
            }
            Self::PodByPod(_) => {
                let index = StepIndex(u32::try_from(index).unwrap_or(u32::MAX));
                Some(Step::Share(Share::Pods(pods_at(index))))
            }
        }
    }

    /// The steps in order, each computed on demand.
    pub fn iter(&self) -> impl Iterator<Item = Step> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }
}

impl From<Vec<Step>> for Steps {
    fn from(steps: Vec<Step>) -> Self {
        Self::Listed(steps)
    }
}

impl FromIterator<Step> for Steps {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self::Listed(steps.into_iter().collect())
    }
}

/// The share of a step, or that of the last step before it that has one.
fn share_before(steps: &[Step], index: StepIndex) -> Share {
    let before = steps.iter().take(index.0 as usize + 1).rev();
    before
        .filter_map(|step| match step {
            Step::Share(share) => Some(*share),
            Step::Pause(_) | Step::Analysis(_) => None,
        })
        .next()
        .unwrap_or(Share::NONE)
}

/// Pod by pod, with a gate before each and one after the last.
pub fn pod_by_pod(pods: u32) -> Steps {
    Steps::PodByPod(pods)
}

/// The pods that are released at a step of [`pod_by_pod`]: one more at every second step.
fn pods_at(index: StepIndex) -> u32 {
    index.0.div_ceil(2)
}

/// The gate of [`pod_by_pod`] after `pods` updated pods.
pub fn gate_after(pods: u32) -> StepIndex {
    StepIndex(pods.saturating_mul(2))
}

/// A short digest of something too long to store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The digest of a text: FNV-1a, which is short and identical on every machine and in every release.
    pub fn of(text: &str) -> Self {
        let sum = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(format!("{sum:016x}"))
    }

    /// A fingerprint from the API.
    pub fn from_api(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The form that the API stores.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn percent(weight: i64) -> Share {
        Share::Percent(Weight::new(weight).unwrap())
    }

    /// S000-01
    #[rstest]
    #[case(0, 10)]
    #[case(20, 8)]
    #[case(40, 6)]
    #[case(60, 4)]
    #[case(80, 2)]
    #[case(100, 0)]
    fn the_weights_of_the_table_give_its_partitions(#[case] weight: i64, #[case] partition: u32) {
        assert_eq!(10 - percent(weight).of(10), partition);
    }

    #[test]
    fn one_pod_after_the_other_passes_a_gate_before_each_and_after_the_last() {
        let plan = by_pod(3);
        let shares: Vec<_> = plan
            .steps
            .iter()
            .map(|step| match step {
                Step::Share(share) => Some(share.of(3)),
                Step::Pause(_) | Step::Analysis(_) => None,
            })
            .collect();
        assert_eq!(shares, [None, Some(1), None, Some(2), None, Some(3), None]);
        assert_eq!(gate_after(3), StepIndex(6));
        let in_force: Vec<_> = (0..8).map(|index| plan.share_at(StepIndex(index))).collect();
        let pods = [0, 1, 1, 2, 2, 3, 3].map(Share::Pods);
        assert_eq!(in_force[..7], pods);
        assert_eq!(in_force[7], Share::ALL);
    }

    #[test]
    fn a_place_is_counted_from_one_and_by_pod_where_steps_are() {
        let places = |plan: &Plan| -> Vec<_> {
            (0..=plan.end().0)
                .map(|index| plan.place(StepIndex(index)).to_string())
                .collect()
        };
        let listed = |steps: Vec<Step>| Plan {
            steps: steps.into(),
            ..by_pod(0)
        };
        assert_eq!(places(&listed(Vec::new())), ["step 0 of 0"]);
        let two = listed(vec![Step::Pause(None), Step::Pause(None)]);
        assert_eq!(places(&two), ["step 1 of 2", "step 2 of 2", "step 2 of 2"]);
        let pods = [
            "pod 1 of 2",
            "pod 1 of 2",
            "pod 2 of 2",
            "pod 2 of 2",
            "pod 2 of 2",
            "pod 2 of 2",
        ];
        assert_eq!(places(&by_pod(2)), pods);
    }

    #[rstest]
    #[case(0, 1, "the checks before pod 1 of 3")]
    #[case(4, 5, "the checks before pod 3 of 3")]
    #[case(6, 7, "the checks after the last pod")]
    #[case(2, 7, "the checks from pod 2 of 3 on")]
    #[case(3, 7, "the checks from pod 3 of 3 on")]
    #[case(5, 7, "the checks after the last pod")]
    fn what_is_skipped_pod_by_pod_are_checks(#[case] from: u32, #[case] to: u32, #[case] expected: &str) {
        assert_eq!(pod_by_pod(3).skipped(StepIndex(from), StepIndex(to)), expected);
    }

    #[rstest]
    #[case(0)]
    #[case(5_000_000)]
    #[case(i32::MAX as u32)]
    #[case(u32::MAX)]
    fn steps_that_are_counted_by_pods_take_no_room_for_each(#[case] pods: u32) {
        let plan = by_pod(pods);
        assert!(matches!(plan.steps, Steps::PodByPod(counted) if counted == pods));
        assert_eq!(plan.steps.len(), 2 * pods as usize + 1);
        assert_eq!(plan.step(plan.end()).is_none(), pods <= i32::MAX as u32);
        assert!(matches!(plan.step(StepIndex(0)), Some(Step::Analysis(_))));
        assert_eq!(plan.share_at(StepIndex(0)), Share::NONE);
        let last = StepIndex(plan.end().0.saturating_sub(1));
        assert!(plan.share_at(last).of(pods) <= pods);
        assert!(gate_after(pods) <= plan.end());
    }

    #[test]
    fn the_digest_of_listed_steps_is_that_of_every_release() {
        let listed = Plan {
            steps: vec![Step::Share(percent(20)), Step::Pause(None)].into(),
            by_pod: false,
            ..by_pod(0)
        };
        let written = Fingerprint::of("[Share(Percent(Weight(20))), Pause(None)]");
        assert_eq!(listed.fingerprint(), written);
        assert_eq!(by_pod(3).fingerprint(), Fingerprint::of("pod by pod"));
    }

    fn by_pod(pods: u32) -> Plan {
        Plan {
            steps: pod_by_pod(pods),
            background: None,
            deadline: SignedDuration::from_mins(10),
            on_failure: OnFailure::Hold,
            on_broken_pod: OnBrokenPod::Fail(OnFailure::Hold),
            on_failed_check: OnFailure::Abort,
            by_pod: true,
            history: History::default(),
        }
    }

    #[rstest]
    #[case(1, 3, 1)]
    #[case(33, 3, 1)]
    #[case(34, 3, 1)]
    #[case(67, 3, 2)]
    #[case(99, 3, 2)]
    #[case(10, 5, 1)]
    #[case(99, 1, 1)]
    #[case(50, 0, 0)]
    fn a_weight_above_zero_is_at_least_one_pod(
        #[case] weight: i64,
        #[case] replicas: u32,
        #[case] pods: u32,
    ) {
        assert_eq!(percent(weight).of(replicas), pods);
    }

    #[test]
    fn a_pause_keeps_the_share_before_it() {
        let plan = Plan {
            steps: vec![
                Step::Pause(None),
                Step::Share(percent(20)),
                Step::Pause(None),
                Step::Share(percent(60)),
            ]
            .into(),
            background: None,
            deadline: SignedDuration::from_mins(10),
            on_failure: OnFailure::Hold,
            on_broken_pod: OnBrokenPod::Fail(OnFailure::Hold),
            on_failed_check: OnFailure::Abort,
            by_pod: false,
            history: History::default(),
        };
        let shares: Vec<_> = (0..5).map(|index| plan.share_at(StepIndex(index))).collect();
        assert_eq!(
            shares,
            [Share::NONE, percent(20), percent(20), percent(60), Share::ALL]
        );
    }

    proptest! {
        #[test]
        fn a_larger_weight_never_releases_fewer(low in 0i64..=100, more in 0i64..=100, replicas in 0u32..5000) {
            let high = (low + more).min(100);
            prop_assert!(percent(low).of(replicas) <= percent(high).of(replicas));
            prop_assert_eq!(percent(100).of(replicas), replicas);
        }
    }
}
