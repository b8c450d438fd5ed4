//! A rollout of any kind, with the fields that the verbs read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ApiResource, DynamicObject};
use kube::core::TypeMeta;
use kube::{Resource, ResourceExt};
use stateward_api::phasedrollout::{Check, PhasedRollout, RollingPodStatus};
use stateward_api::rollout::RolloutStatus;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_core::plan::{Plan, pod_by_pod};
use stateward_core::world::NoWorkload;
use stateward_core::{phasedrollout, rolloutplugin};

use crate::error::Error;

/// The rollout kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    RolloutPlugin,
    PhasedRollout,
}

impl Kind {
    pub(crate) const ALL: [Self; 2] = [Self::RolloutPlugin, Self::PhasedRollout];

    pub(crate) fn resource(self) -> ApiResource {
        match self {
            Self::RolloutPlugin => ApiResource::erase::<RolloutPlugin>(&()),
            Self::PhasedRollout => ApiResource::erase::<PhasedRollout>(&()),
        }
    }

    /// `rolloutplugin`
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::RolloutPlugin => "rolloutplugin",
            Self::PhasedRollout => "phasedrollout",
        }
    }

    /// Its short name.
    pub(crate) fn short(self) -> &'static str {
        match self {
            Self::RolloutPlugin => "rp",
            Self::PhasedRollout => "phased",
        }
    }

    pub(crate) fn group(self) -> &'static str {
        match self {
            Self::RolloutPlugin => "argoproj.io",
            Self::PhasedRollout => "sts.plus",
        }
    }

    /// `rolloutplugin.argoproj.io/db`
    pub(crate) fn full_name(self, name: &str) -> String {
        format!("{}.{}/{name}", self.word(), self.group())
    }

    /// The kind of an object from the server.
    pub(crate) fn of(types: Option<&TypeMeta>) -> Self {
        match types {
            Some(types) if types.kind == PhasedRollout::kind(&()) => Self::PhasedRollout,
            _ => Self::RolloutPlugin,
        }
    }
}

/// A rollout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rollout {
    pub(crate) kind: Kind,
    pub(crate) metadata: ObjectMeta,
    /// `spec.paused`
    pub(crate) paused: bool,
    /// `spec.skipCheck`: left to Kubernetes.
    pub(crate) left_alone: bool,
    /// The spec names a workload that the rollout may manage, even if its plan is invalid.
    pub(crate) reference_valid: bool,
    /// The kind of its workload.
    pub(crate) workload_kind: String,
    /// The name of its workload.
    pub(crate) workload: String,
    /// The number of steps, even if the plan is invalid.
    pub(crate) steps: usize,
    /// The plan, if it is valid.
    pub(crate) plan: Option<Plan>,
    /// The status, with the phase mapped to the common phases.
    pub(crate) status: Option<RolloutStatus>,
    /// The spec and status of a PhasedRollout's checks.
    pub(crate) checks: Option<(Check, RollingPodStatus)>,
}

impl From<RolloutPlugin> for Rollout {
    fn from(object: RolloutPlugin) -> Self {
        let plan = rolloutplugin::plan(&object).ok();
        let reference_valid = object.reference_problems().is_empty();
        let canary = object.spec.strategy.canary.as_ref();
        Self {
            kind: Kind::RolloutPlugin,
            paused: object.spec.paused,
            left_alone: false,
            reference_valid,
            workload_kind: object.spec.workload_ref.kind.clone(),
            workload: object.spec.workload_ref.name.clone(),
            steps: canary.map_or(0, |canary| canary.steps.len()),
            plan,
            status: object.status,
            checks: None,
            metadata: object.metadata,
        }
    }
}

impl From<PhasedRollout> for Rollout {
    fn from(object: PhasedRollout) -> Self {
        let status = object.status.clone();
        let counted = status.as_ref().and_then(|status| {
            let rollout = &status.rollout;
            u32::try_from(rollout.step_replicas.or(rollout.replicas)?).ok()
        });
        let steps = pod_by_pod(counted.unwrap_or(0));
        let unknown = Err(NoWorkload::Missing(String::new()));
        let plan = phasedrollout::plan(&object, &unknown).ok();
        let checks = status
            .as_ref()
            .and_then(|status| status.rolling_pod_status.clone());
        Self {
            kind: Kind::PhasedRollout,
            paused: object.spec.paused,
            left_alone: object.spec.skips_checks(),
            reference_valid: object.reference_problems().is_empty(),
            workload_kind: "StatefulSet".into(),
            workload: object.spec.target_ref.clone(),
            steps: steps.len(),
            plan: plan.map(|plan| Plan { steps, ..plan }),
            status: status.map(|status| {
                let phase = phasedrollout::plain_phase(&status.rollout).to_owned();
                RolloutStatus {
                    phase,
                    ..status.rollout
                }
            }),
            checks: checks.map(|checks| (object.spec.check.clone(), checks)),
            metadata: object.metadata,
        }
    }
}

impl Rollout {
    pub(crate) fn name_any(&self) -> String {
        self.metadata.name.clone().unwrap_or_default()
    }

    pub(crate) fn uid(&self) -> Option<String> {
        self.metadata.uid.clone()
    }

    pub(crate) fn namespace(&self) -> Option<String> {
        self.metadata.namespace.clone()
    }

    pub(crate) fn resource_version(&self) -> Option<String> {
        self.metadata.resource_version.clone()
    }

    /// `rolloutplugin db`
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.kind.word(), self.name_any())
    }
}

/// The field of a listed object that says why it failed to deserialize. No object from a server has it.
pub(crate) const INVALID: &str = "invalid";

/// Parses an object.
pub(crate) fn parse(object: DynamicObject) -> Result<Rollout, Error> {
    let kind = Kind::of(object.types.as_ref());
    let title = format!("{} {}", kind.word(), object.name_any());
    if let Some(why) = object.data[INVALID].as_str() {
        let namespace = object.namespace().unwrap_or_default();
        return Err(Error::Refused(format!(
            "{title} in namespace {namespace} cannot be read: {why}"
        )));
    }
    let parsed = match kind {
        Kind::RolloutPlugin => object.try_parse::<RolloutPlugin>().map(Rollout::from),
        Kind::PhasedRollout => object.try_parse::<PhasedRollout>().map(Rollout::from),
    };
    parsed.map_err(|error| {
        Error::Refused(format!(
            "{title} is not one that this release understands: {error}"
        ))
    })
}
