//! The events of a rollout. Their reasons, types and the reference are generated from one table.

use crate::record::conditions;
use crate::world::Reason;

macro_rules! event_reasons {
    ($($kind:ident $reason:ident $when:literal;)*) => {
        /// Why an event is posted. If Argo Rollouts has an event for the same thing, the reason is the same.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum EventReason {
            $(#[doc = $when] $reason,)*
            /// The rollout is stuck, with the reason of its conditions.
            Stuck(Reason),
        }

        impl EventReason {
            /// All but [`EventReason::Stuck`].
            pub const ALL: &[Self] = &[$(Self::$reason,)*];

            /// The API value.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$reason => stringify!($reason),)*
                    Self::Stuck(reason) => conditions::reason(reason),
                }
            }

            /// When it is posted.
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$reason => $when,)*
                    Self::Stuck(_) => "the rollout is stuck",
                }
            }

            /// Its type.
            pub fn event_type(self) -> EventType {
                match self {
                    $(Self::$reason => EventType::$kind,)*
                    // It may be created later.
                    Self::Stuck(Reason::WorkloadMissing) => EventType::Normal,
                    Self::Stuck(_) => EventType::Warning,
                }
            }
        }
    };
}

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// No action is needed.
    Normal,
    /// A user should look.
    Warning,
}

impl EventType {
    /// The API value.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

event_reasons! {
    Normal RolloutStarted "a new version is rolled out, or replaces another one in the middle of its rollout";
    Normal RolloutPaused "a step pauses, or `spec.paused` is set";
    Normal RolloutResumed "the pause is over, or a user has ended it";
    Normal RolloutPromoted "a user skips the remaining steps";
    Normal StepSkipped "a user skips the current step";
    Normal RolloutCompleted "every pod runs the new version";
    Warning RolloutAborted "a user or the operator rejects the new version, and every pod rolls back";
    Normal RollbackCompleted "every pod is back on the stable version and Ready";
    Normal RolloutRetried "a rejected version is tried again";
    Normal TemplateReverted "the template is the stable one again in the middle of a rollout, and pods roll back";
    Normal TemplateRestored "the object is deleted after an abort, and the stable template replaces the rejected one, so that no pod is replaced";
    Normal StepsChanged "the steps were edited in the middle of a rollout, which restarts at the first";
    Normal Scaled "the workload was scaled in the middle of a rollout; the message says how the share changed";
    Warning ScaledToZero "the workload was scaled to zero in the middle of a rollout, and the stable template is restored";
    Warning AdoptedWithoutChecks "a version was applied while there were no pods, and is the stable one without any step or check";
    Warning StableTemplateUnavailable "there is no copy of the stable template, and none can be made: an abort after every pod is new cannot restore it";
    Warning WorkloadRecreated "the workload was recreated with another template around pods that stayed: the template that they run is restored";
    Warning UnreadyPodsIgnored "pods on the old version did not get Ready before the first new one, for as long as the deadline: the rollout no longer waits for them";
    Warning ExternalRolloutDetected "another client has rolled a version out to every pod, which is the stable one now";
    Warning RolloutFrozen "the object was deleted in the middle of a rollout, and every pod stays as it is";
    Warning CommandRefused "a command cannot be carried out; the message says why";
    Warning RequestRefused "the API server or a disruption budget refuses a request of the operator again and again";
    Warning WorkloadContested "another client keeps changing what the operator sets in the workload; the message names it";
    Warning StatusContested "another client keeps changing this status";
    Warning InvalidObject "the object fails to deserialize, because its definition is not the one of this version; it is left as it is";
    Normal AnalysisRunSuccessful "the analysis of a step was successful";
    Warning AnalysisRunInconclusive "an analysis was inconclusive, and the rollout pauses";
    Normal ChecksPassed "the checks before a pod passed (PhasedRollout)";
    Warning ChecksFailed "the checks before a pod have failed `maxTries` times (PhasedRollout)";
    Normal ChecksRestarted "the checks before a pod restart (PhasedRollout)";
    Warning CheckFailed "the first of several checks in a row failed (PhasedRollout)";
    Warning PrometheusError "the first of several checks in a row got no answer (PhasedRollout)";
    Normal CheckRecovered "a check succeeded after such a row (PhasedRollout)";
    Normal ManagementResumed "the operator manages the workload again, after Kubernetes' own rolling update (PhasedRollout)";
    Warning Suspended "the workload is left to Kubernetes' own rolling update (PhasedRollout)";
}

impl std::fmt::Display for EventReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The reason.
    pub reason: EventReason,
    /// The message, as a sentence.
    pub message: String,
}
