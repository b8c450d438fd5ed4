//! The fields of objects that this controller reads.
//!
//! Objects are JSON of any shape. A field that is absent or of another type reads as its zero value, as after decoding in Go; in particular
//! an absent counter is 0. Nothing here panics.

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

/// The metadata of every object.
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

/// A StatefulSet. Fields that a sync reads repeatedly are parsed once.
#[derive(Clone, Debug)]
pub(super) struct Set {
    object: Arc<Value>,
    name: Arc<str>,
    namespace: Arc<str>,
    uid: Arc<str>,
    replicas: usize,
    ordinals: Ordinals,
    is_parallel: bool,
    min_ready: SignedDuration,
    claim_templates: Value,
}

/// A pod as it was when the sync began, or one to be created. Fields that a sync reads repeatedly are parsed once.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    object: Arc<Value>,
    name: Arc<str>,
    revision: Arc<str>,
    phase: Phase,
    is_ready: bool,
    is_terminating: bool,
}

/// The phase of a pod, as far as the controller needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Not created on the API server, which gives every pod a phase.
    None,
    Pending,
    Running,
    /// Failed or Succeeded.
    Ended,
    Other,
}

/// A ControllerRevision.
#[derive(Clone, Debug)]
pub(super) struct Revision {
    object: Arc<Value>,
    name: Arc<str>,
    number: i64,
    controller: Option<Value>,
}

/// A string of an object, shared with it.
fn shared(value: &Value) -> Arc<str> {
    match value {
        Value::String(text) => text.clone(),
        _ => Arc::default(),
    }
}

impl Set {
    pub(super) fn new(object: Arc<Value>) -> Self {
        let (metadata, spec) = (&object["metadata"], &object["spec"]);
        let replicas = count(spec["replicas"].as_i64().unwrap_or(1));
        Self {
            name: shared(&metadata["name"]),
            namespace: shared(&metadata["namespace"]),
            uid: shared(&metadata["uid"]),
            replicas,
            ordinals: Ordinals::new(number(&spec["ordinals"]["start"]), replicas),
            is_parallel: spec["podManagementPolicy"] == "Parallel",
            min_ready: SignedDuration::from_secs(number(&spec["minReadySeconds"])),
            claim_templates: spec["volumeClaimTemplates"].clone(),
            object,
        }
    }
}

impl Metadata for Set {
    fn object(&self) -> &Value {
        &self.object
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn uid(&self) -> &str {
        &self.uid
    }
}

impl Pod {
    pub(super) fn new(object: impl Into<Arc<Value>>) -> Self {
        let object = object.into();
        let metadata = &object["metadata"];
        Self {
            name: shared(&metadata["name"]),
            revision: shared(&metadata["labels"]["controller-revision-hash"]),
            is_terminating: metadata["deletionTimestamp"].is_string(),
            phase: match pod::phase(&object) {
                "" => Phase::None,
                "Pending" => Phase::Pending,
                "Running" => Phase::Running,
                "Succeeded" | "Failed" => Phase::Ended,
                _ => Phase::Other,
            },
            is_ready: pod::is_ready(&object),
            object,
        }
    }
}

impl Metadata for Pod {
    fn object(&self) -> &Value {
        &self.object
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn is_terminating(&self) -> bool {
        self.is_terminating
    }
}

impl Revision {
    pub(super) fn new(object: Arc<Value>) -> Self {
        Self {
            name: shared(&object["metadata"]["name"]),
            number: number(&object["revision"]),
            controller: owner::controller_of(&object).cloned(),
            object,
        }
    }
}

impl Metadata for Revision {
    fn object(&self) -> &Value {
        &self.object
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn controller(&self) -> Option<&Value> {
        self.controller.as_ref()
    }
}

macro_rules! reads_as_its_object {
    ($($name:ident),*) => {$(
        impl Deref for $name {
            type Target = Value;

            fn deref(&self) -> &Value {
                &self.object
            }
        }
    )*};
}

reads_as_its_object!(Set, Pod, Revision);

/// `spec.updateStrategy.rollingUpdate`.
pub(super) struct RollingUpdate<'s> {
    pub(super) partition: usize,
    pub(super) max_unavailable: &'s Value,
}

impl Set {
    pub(super) fn shared(&self) -> &Arc<Value> {
        &self.object
    }

    /// Whether an owner reference names this set: by kind, name and UID.
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
        self.replicas
    }

    pub(super) fn ordinals(&self) -> Ordinals {
        self.ordinals
    }

    pub(super) fn is_parallel(&self) -> bool {
        self.is_parallel
    }

    pub(super) fn min_ready(&self) -> SignedDuration {
        self.min_ready
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
        items(&self.claim_templates)
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

    /// `None` if there is no such block: defaulting adds one only if the type was omitted as well.
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
    pub(super) fn is_read_from(&self, object: &Arc<Value>) -> bool {
        Arc::ptr_eq(&self.object, object)
    }

    /// The set's name and the ordinal, from the pod's own name.
    pub(super) fn parent(&self) -> Option<(&str, Option<Ordinal>)> {
        Ordinal::split(self.name())
    }

    pub(super) fn ordinal(&self) -> Option<Ordinal> {
        self.parent()?.1
    }

    pub(super) fn revision(&self) -> &str {
        &self.revision
    }

    /// Whether it exists on the API server.
    pub(super) fn is_created(&self) -> bool {
        self.phase != Phase::None
    }

    pub(super) fn is_pending(&self) -> bool {
        self.phase == Phase::Pending
    }

    /// Failed or Succeeded. The controller replaces a pod of a set after either.
    pub(super) fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    pub(super) fn is_running_and_ready(&self) -> bool {
        self.phase == Phase::Running && self.is_ready
    }

    /// When the pod will have been Ready for long enough; `None` if it is not Ready, or if it is unknown since when.
    pub(super) fn available_from(&self, min_ready: SignedDuration) -> Option<Timestamp> {
        let condition = pod::condition(self, "Ready").filter(|condition| condition["status"] == "True")?;
        moment::read(&condition["lastTransitionTime"])?
            .checked_add(min_ready)
            .ok()
    }

    /// Ready for at least that long. The phase does not matter here.
    pub(super) fn is_available(&self, min_ready: SignedDuration, now: Timestamp) -> bool {
        self.is_ready
            && (min_ready.is_zero() || self.available_from(min_ready).is_some_and(|from| from <= now))
    }
}

impl Revision {
    pub(super) fn number(&self) -> i64 {
        self.number
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
