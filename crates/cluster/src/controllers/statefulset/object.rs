//! What this controller reads of the objects it handles.
//!
//! Objects are JSON of any shape. What is absent or of another type reads as its zero value, as it would after Go has
//! decoded it; in particular an absent counter is 0. Nothing here panics.

use std::ops::Deref;
use std::sync::Arc;

use crate::json::Value;
use jiff::{SignedDuration, Timestamp};

use super::ordinal::{Ordinal, Ordinals};
use crate::controllers::{moment, owner, pod};
use crate::object;

pub(super) const SETS: &str = "statefulsets.apps";
pub(super) const CLAIMS: &str = "persistentvolumeclaims";
pub(super) const REVISIONS: &str = "controllerrevisions.apps";

/// What every object has.
pub(super) trait Metadata {
    fn object(&self) -> &Value;

    fn name(&self) -> &str {
        object::name(self.object())
    }

    fn namespace(&self) -> &str {
        object::namespace(self.object())
    }

    fn uid(&self) -> &str {
        object::uid(self.object())
    }

    fn labels(&self) -> &Value {
        &self.object()["metadata"]["labels"]
    }

    fn is_terminating(&self) -> bool {
        object::is_terminating(self.object())
    }

    fn owners(&self) -> &[Value] {
        items(&self.object()["metadata"]["ownerReferences"])
    }

    /// The owner reference of the controller, if there is one.
    fn controller(&self) -> Option<&Value> {
        owner::controller_of(self.object())
    }
}

impl Metadata for Value {
    fn object(&self) -> &Value {
        self
    }
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A StatefulSet.
#[derive(Clone, Debug)]
pub(super) struct Set(Arc<Value>);

/// A pod, as it was when the sync began, or one that is yet to be created.
#[derive(Clone, Debug)]
pub(super) struct Pod(Arc<Value>);

/// A ControllerRevision.
#[derive(Clone, Debug)]
pub(super) struct Revision(Arc<Value>);

macro_rules! wraps_an_object {
    ($($name:ident),*) => {$(
        impl $name {
            pub(super) fn new(object: impl Into<Arc<Value>>) -> Self {
                Self(object.into())
            }
        }

        impl Deref for $name {
            type Target = Value;

            fn deref(&self) -> &Value {
                &self.0
            }
        }

        impl Metadata for $name {
            fn object(&self) -> &Value {
                &self.0
            }
        }
    )*};
}

wraps_an_object!(Set, Pod, Revision);

/// `spec.updateStrategy.rollingUpdate`.
pub(super) struct RollingUpdate<'s> {
    pub(super) partition: usize,
    pub(super) max_unavailable: &'s Value,
}

impl Set {
    pub(super) fn shared(&self) -> &Arc<Value> {
        &self.0
    }

    /// Whether an owner reference means this set: by kind, name and UID.
    pub(super) fn is_named_by(&self, owner: &Value) -> bool {
        owner["kind"] == "StatefulSet" && owner["name"] == self.name() && owner["uid"] == self.uid()
    }

    fn spec(&self) -> &Value {
        &self["spec"]
    }

    pub(super) fn status(&self) -> &Value {
        &self["status"]
    }

    pub(super) fn generation(&self) -> i64 {
        object::generation(self)
    }

    pub(super) fn annotations(&self) -> &Value {
        &self["metadata"]["annotations"]
    }

    pub(super) fn replicas(&self) -> usize {
        count(self.spec()["replicas"].as_i64().unwrap_or(1))
    }

    pub(super) fn ordinals(&self) -> Ordinals {
        Ordinals::new(number(&self.spec()["ordinals"]["start"]), self.replicas())
    }

    pub(super) fn is_parallel(&self) -> bool {
        self.spec()["podManagementPolicy"] == "Parallel"
    }

    pub(super) fn min_ready(&self) -> SignedDuration {
        SignedDuration::from_secs(number(&self.spec()["minReadySeconds"]))
    }

    /// `None`: all are kept.
    pub(super) fn history_limit(&self) -> Option<usize> {
        usize::try_from(self.spec()["revisionHistoryLimit"].as_i64().unwrap_or(10)).ok()
    }

    pub(super) fn selector(&self) -> &Value {
        &self.spec()["selector"]
    }

    pub(super) fn template(&self) -> &Value {
        &self.spec()["template"]
    }

    pub(super) fn claim_templates(&self) -> &[Value] {
        items(&self.spec()["volumeClaimTemplates"])
    }

    pub(super) fn service_name(&self) -> &str {
        text(&self.spec()["serviceName"])
    }

    pub(super) fn retention(&self) -> &Value {
        &self.spec()["persistentVolumeClaimRetentionPolicy"]
    }

    pub(super) fn updates_on_delete(&self) -> bool {
        self.spec()["updateStrategy"]["type"] == "OnDelete"
    }

    pub(super) fn updates_by_rolling(&self) -> bool {
        self.spec()["updateStrategy"]["type"] == "RollingUpdate"
    }

    /// `None` when there is no such block: defaulting adds one only where the type was left out as well.
    pub(super) fn rolling_update(&self) -> Option<RollingUpdate<'_>> {
        let block = &self.spec()["updateStrategy"]["rollingUpdate"];
        let partition = count(number(&block["partition"]));
        block.is_object().then_some(RollingUpdate {
            partition,
            max_unavailable: &block["maxUnavailable"],
        })
    }
}

impl Pod {
    /// The set's name and the ordinal, read off the pod's own name.
    pub(super) fn parent(&self) -> Option<(&str, Option<Ordinal>)> {
        Ordinal::split(self.name())
    }

    pub(super) fn ordinal(&self) -> Option<Ordinal> {
        self.parent()?.1
    }

    pub(super) fn revision(&self) -> &str {
        text(&self.labels()["controller-revision-hash"])
    }

    /// Whether the API server knows it: it gives every pod a phase.
    pub(super) fn is_created(&self) -> bool {
        !pod::phase(self).is_empty()
    }

    pub(super) fn is_pending(&self) -> bool {
        pod::phase(self) == "Pending"
    }

    /// Failed or Succeeded: a pod of a set is replaced after both.
    pub(super) fn has_ended(&self) -> bool {
        pod::is_terminal(self)
    }

    pub(super) fn is_running_and_ready(&self) -> bool {
        pod::phase(self) == "Running" && pod::is_ready(self)
    }

    /// When the pod will have been Ready for long enough; `None` when it is not Ready, or nobody knows since when.
    pub(super) fn available_from(&self, min_ready: SignedDuration) -> Option<Timestamp> {
        let condition = pod::condition(self, "Ready").filter(|condition| condition["status"] == "True")?;
        moment::read(&condition["lastTransitionTime"])?
            .checked_add(min_ready)
            .ok()
    }

    /// Ready for at least that long. The phase does not matter here.
    pub(super) fn is_available(&self, min_ready: SignedDuration, now: Timestamp) -> bool {
        pod::is_ready(self)
            && (min_ready.is_zero() || self.available_from(min_ready).is_some_and(|from| from <= now))
    }
}

impl Revision {
    pub(super) fn number(&self) -> i64 {
        number(&self["revision"])
    }

    pub(super) fn data(&self) -> &Value {
        &self["data"]
    }

    pub(super) fn created(&self) -> &str {
        text(&self["metadata"]["creationTimestamp"])
    }
}

fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}
