//! What users and nodes do to a StatefulSet, as data.

use std::fmt;

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::harness::SCHEDULER;

/// The only set of a sequence.
pub(crate) const SET: &str = "db";

/// An operation on the set, its pods or its revisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SetOp {
    Create(SetSpec),
    Template(Template),
    Scale(i32),
    Strategy(Strategy),
    /// `spec.ordinals.start`
    Ordinals(i32),
    HistoryLimit(i32),
    Retention(Retention),
    DeletePod(u32),
    /// Deletes the pod with a grace period of zero.
    ForceDeletePod(u32),
    /// Keeps the pod, and every successor of this name, from being Ready.
    Unready(u32),
    Ready(u32),
    /// Pods of this template are never Ready.
    Break(Template),
    Heal(Template),
    /// The node ends the pod: phase Failed.
    Evict(u32),
    DeleteRevision(Lost),
    /// Another client creates a ControllerRevision with the name that this template's revision would get.
    TakeRevisionName(Template),
    /// Removes the label that the selector matches.
    Disown(u32),
    /// Restores the label.
    Reclaim(u32),
    Delete(Propagation),
}

/// A set as it is created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetSpec {
    pub(crate) replicas: i32,
    pub(crate) parallel: bool,
    pub(crate) strategy: Option<Strategy>,
    pub(crate) start: i32,
    pub(crate) claims: bool,
    pub(crate) retention: Option<Retention>,
    pub(crate) history_limit: Option<i32>,
    pub(crate) template: Template,
}

/// One of a few templates; naming an earlier one again reverts to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Template {
    V1,
    V2,
    /// With an annotation that JSON can write in more than one way.
    V3,
    /// With a label of its own.
    V4,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Strategy {
    Partition(i32),
    /// `RollingUpdate` without a `rollingUpdate` block: the status decides which revision a recreated pod gets.
    NoBlock,
    OnDelete,
    /// Rejected while the `rollingUpdate` block is set.
    OnDeleteBesideTheBlock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Retention {
    pub(crate) delete_when_deleted: bool,
    pub(crate) delete_when_scaled: bool,
}

/// Which revision another client deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Lost {
    Current,
    Update,
    /// The one with the lowest revision number.
    Oldest,
}

/// The propagation policy of a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl Template {
    const ALL: [Self; 4] = [Self::V1, Self::V2, Self::V3, Self::V4];

    pub(crate) fn image(self) -> String {
        format!("example.com/{SET}:{}", format!("{self:?}").to_lowercase())
    }

    /// Turns another template, with all defaults of the server, into this one.
    pub(crate) fn replace_in(self, defaulted: &mut Value) {
        let own = without_nulls(self.to_value());
        defaulted["spec"]["containers"][0]["image"] = self.image().into();
        if let Some(Value::Object(metadata)) = defaulted.get_mut("metadata") {
            metadata.insert("labels".into(), own["metadata"]["labels"].clone());
            metadata.insert("annotations".into(), own["metadata"]["annotations"].clone());
            metadata.retain(|_, value| *value != json!({}));
        }
    }

    /// As a merge patch onto any other of them.
    pub(crate) fn to_value(self) -> Value {
        let note = (self == Self::V3).then_some("<a href=\"x\">&\u{2028}</a>");
        let tier = (self == Self::V4).then_some("gold");
        json!({
            "metadata": {"labels": {"app": SET, "tier": tier}, "annotations": {"note": note}},
            "spec": {
                "schedulerName": SCHEDULER,
                "terminationGracePeriodSeconds": 5,
                "containers": [{"name": "main", "image": self.image()}],
            },
        })
    }
}

impl Strategy {
    /// As a merge patch onto any other of them.
    pub(crate) fn to_value(self) -> Value {
        match self {
            Self::Partition(partition) => {
                json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}})
            }
            Self::NoBlock => json!({"type": "RollingUpdate", "rollingUpdate": null}),
            Self::OnDelete => json!({"type": "OnDelete", "rollingUpdate": null}),
            Self::OnDeleteBesideTheBlock => json!({"type": "OnDelete"}),
        }
    }
}

impl Retention {
    pub(crate) fn to_value(self) -> Value {
        let word = |delete: bool| if delete { "Delete" } else { "Retain" };
        json!({"whenDeleted": word(self.delete_when_deleted), "whenScaled": word(self.delete_when_scaled)})
    }
}

impl SetSpec {
    /// The manifest to create.
    pub(crate) fn to_manifest(&self) -> Value {
        let Self {
            replicas,
            parallel,
            strategy,
            start,
            claims,
            retention,
            history_limit,
            template,
        } = self;
        let claim = json!({
            "metadata": {"name": "data", "labels": {"kept": "yes"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        });
        let mut spec = json!({
            "serviceName": SET,
            "replicas": replicas,
            "podManagementPolicy": if *parallel { "Parallel" } else { "OrderedReady" },
            "selector": {"matchLabels": {"app": SET}},
            "template": template.to_value(),
        });
        if let Some(strategy) = strategy {
            spec["updateStrategy"] = strategy.to_value();
        }
        if *start != 0 {
            spec["ordinals"] = json!({"start": start});
        }
        if *claims {
            spec["volumeClaimTemplates"] = json!([claim]);
        }
        if let Some(retention) = retention {
            spec["persistentVolumeClaimRetentionPolicy"] = retention.to_value();
        }
        if let Some(limit) = history_limit {
            spec["revisionHistoryLimit"] = json!(limit);
        }
        json!({"metadata": {"name": SET, "annotations": {"origin": "differential"}}, "spec": without_nulls(spec)})
    }
}

/// A null in a manifest is a value; in a merge patch it removes one.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name, without_nulls(value)))
            .collect(),
        other => other,
    }
}

/// A random sequence: first the creation of the set.
pub(crate) fn sequence(rng: &mut Rng, length: usize) -> Vec<SetOp> {
    let mut spec = random_spec(rng);
    let mut ops = vec![SetOp::Create(spec.clone())];
    let mut broken = Vec::new();
    let mut unready = Vec::new();
    let mut disowned = Vec::new();
    while ops.len() < length {
        let ordinal = u32::try_from(spec.start + rng.i32(0..spec.replicas.max(1))).unwrap_or(0);
        let op = match rng.u32(0..100) {
            0..22 => {
                spec.template = *rng.choice(&Template::ALL).unwrap_or(&Template::V1);
                SetOp::Template(spec.template)
            }
            22..36 => {
                spec.replicas = rng.i32(0..=5);
                SetOp::Scale(spec.replicas)
            }
            36..48 => {
                let strategy = random_strategy(rng);
                SetOp::Strategy(strategy)
            }
            48..51 => {
                spec.start = rng.i32(0..=3);
                SetOp::Ordinals(spec.start)
            }
            51..54 => SetOp::HistoryLimit(rng.i32(0..=2)),
            54..58 => SetOp::Retention(random_retention(rng)),
            58..64 => SetOp::DeletePod(ordinal),
            64..68 => SetOp::ForceDeletePod(ordinal),
            68..73 => {
                unready.push(ordinal);
                SetOp::Unready(ordinal)
            }
            73..78 => {
                let template = *rng.choice(&Template::ALL).unwrap_or(&Template::V1);
                broken.push(template);
                SetOp::Break(template)
            }
            // Broken things are fixed more often than not, so that not every sequence ends stuck.
            78..85 => match (unready.pop(), broken.pop()) {
                (Some(ordinal), _) => SetOp::Ready(ordinal),
                (None, Some(template)) => SetOp::Heal(template),
                (None, None) => SetOp::Evict(ordinal),
            },
            85..88 => SetOp::Evict(ordinal),
            88 => SetOp::TakeRevisionName(*rng.choice(&Template::ALL).unwrap_or(&Template::V1)),
            89..93 => {
                let lost = [Lost::Current, Lost::Update, Lost::Oldest];
                SetOp::DeleteRevision(*rng.choice(&lost).unwrap_or(&Lost::Oldest))
            }
            93..97 => match disowned.pop() {
                Some(ordinal) => SetOp::Reclaim(ordinal),
                None => {
                    disowned.push(ordinal);
                    SetOp::Disown(ordinal)
                }
            },
            _ => {
                let all = [
                    Propagation::Orphan,
                    Propagation::Orphan,
                    Propagation::Background,
                    Propagation::Foreground,
                ];
                ops.push(SetOp::Delete(*rng.choice(&all).unwrap_or(&Propagation::Orphan)));
                spec = SetSpec {
                    parallel: rng.bool(),
                    template: *rng.choice(&Template::ALL).unwrap_or(&Template::V1),
                    ..spec
                };
                SetOp::Create(spec.clone())
            }
        };
        ops.push(op);
    }
    ops
}

fn random_spec(rng: &mut Rng) -> SetSpec {
    SetSpec {
        replicas: rng.i32(0..=4),
        parallel: rng.bool(),
        strategy: rng.bool().then(|| random_strategy(rng)),
        start: if rng.u32(0..4) == 0 { rng.i32(1..=4) } else { 0 },
        claims: rng.bool(),
        retention: rng.bool().then(|| random_retention(rng)),
        history_limit: rng.bool().then(|| rng.i32(0..=2)),
        template: Template::V1,
    }
}

fn random_strategy(rng: &mut Rng) -> Strategy {
    match rng.u32(0..10) {
        0..6 => Strategy::Partition(rng.i32(0..=4)),
        6 | 7 => Strategy::NoBlock,
        8 => Strategy::OnDelete,
        _ => Strategy::OnDeleteBesideTheBlock,
    }
}

fn random_retention(rng: &mut Rng) -> Retention {
    Retention {
        delete_when_deleted: rng.bool(),
        delete_when_scaled: rng.bool(),
    }
}

impl fmt::Display for SetOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(spec) => write!(f, "create statefulset {SET} {}", spec.to_manifest()["spec"]),
            Self::Template(template) => write!(f, "set template {template:?}"),
            Self::Scale(replicas) => write!(f, "scale to {replicas}"),
            Self::Strategy(strategy) => write!(f, "set strategy {strategy:?}"),
            Self::Ordinals(start) => write!(f, "start ordinals at {start}"),
            Self::HistoryLimit(limit) => write!(f, "set revisionHistoryLimit {limit}"),
            Self::Retention(retention) => write!(f, "set claim retention {}", retention.to_value()),
            Self::DeletePod(ordinal) => write!(f, "delete pod {SET}-{ordinal}"),
            Self::ForceDeletePod(ordinal) => write!(f, "delete pod {SET}-{ordinal} with no grace"),
            Self::Unready(ordinal) => write!(f, "make {SET}-{ordinal} unready"),
            Self::Ready(ordinal) => write!(f, "let {SET}-{ordinal} be ready again"),
            Self::Break(template) => write!(f, "let pods of {template:?} never be ready"),
            Self::Heal(template) => write!(f, "let pods of {template:?} be ready again"),
            Self::Evict(ordinal) => write!(f, "evict {SET}-{ordinal} from its node"),
            Self::DeleteRevision(lost) => write!(f, "delete the {lost:?} revision"),
            Self::TakeRevisionName(template) => write!(f, "take the name of the revision of {template:?}"),
            Self::Disown(ordinal) => write!(f, "unlabel pod {SET}-{ordinal}"),
            Self::Reclaim(ordinal) => write!(f, "label pod {SET}-{ordinal} again"),
            Self::Delete(propagation) => write!(f, "delete statefulset {SET} ({propagation:?})"),
        }
    }
}
