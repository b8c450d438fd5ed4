//! The state that must be the same on both control planes: everything in the namespace but random names, times and versions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::job_op;
use super::objects::{CLAIM, EVENT, JOB, Objects, POD, REVISION, SET, of_kind};
use super::play::text;
use super::settle::{Nudges, is_ready};

/// Facts by subject. Where names are random, one entry lists the facts of all objects with the same subject.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Portrait(pub(crate) BTreeMap<String, Value>);

impl Portrait {
    /// Describes these objects.
    pub(crate) fn of(objects: &Objects, namespace: &str, nudges: &Nudges) -> Self {
        let plain = Plain::new(objects, namespace);
        let mut facts: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let noise = Noise::in_events(of_kind(objects, EVENT).map(|(_, event)| event));
        for ((kind, name), object) in objects.iter().filter(|(_, object)| !is_about_a_search(object)) {
            let (about, fact) = match *kind {
                POD => (format!("pod {name}"), pod(object)),
                SET => (format!("statefulset {name}"), set(object, nudges)),
                REVISION => (format!("revision {name}"), revision(object)),
                CLAIM => (format!("claim {name}"), claim(object)),
                JOB => (format!("job {name}"), whole(object, &["spec", "status"])),
                EVENT => noise.event(object),
                _ => continue,
            };
            facts
                .entry(plain.text(&about))
                .or_default()
                .push(plain.value(&fact));
        }
        let facts = facts.into_iter().map(|(about, mut facts)| {
            facts.sort_by_cached_key(Value::to_string);
            let all = match facts.len() {
                1 => facts.remove(0),
                // Two events that differ only in random parts count as one event with a higher count.
                _ if about.starts_with("event ") => sum(&facts),
                _ => facts.into(),
            };
            (about, all)
        });
        Self(facts.collect())
    }

    /// The differences, a line per value; empty if there are none.
    pub(crate) fn diff(embedded: &Self, real: &Self) -> String {
        let mut lines = String::new();
        // Events that a real controller records twice reach the limit sooner.
        if real.is_contested() || (real.is_full() && !embedded.is_full()) {
            return Self::diff(&embedded.without_events(), &real.without_events());
        }
        let keys: BTreeSet<_> = embedded.0.keys().chain(real.0.keys()).collect();
        for key in keys {
            differences(key, embedded.0.get(key), real.0.get(key), &mut lines);
        }
        lines
    }
}

/// How a real controller reports a write conflict. It retries, and records the rest of its events then or not at all.
const CONTESTED: &str = "the object has been modified; please apply your changes";

/// How a portrait shows that a source has recorded as many events about an object as the limit allows.
const FULL: &str = ", as many as may be";

impl Portrait {
    fn is_contested(&self) -> bool {
        self.0.keys().any(|about| about.contains(CONTESTED))
    }

    fn is_full(&self) -> bool {
        self.0.keys().any(|about| about.ends_with(FULL))
    }

    fn without_events(&self) -> Self {
        let facts = self.0.iter().filter(|(about, _)| !about.starts_with("event "));
        Self(facts.map(|(about, fact)| (about.clone(), fact.clone())).collect())
    }
}

fn differences(path: &str, embedded: Option<&Value>, real: Option<&Value>, lines: &mut String) {
    match (embedded, real) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let keys: BTreeSet<_> = left.keys().chain(right.keys()).collect();
            for key in keys {
                differences(&format!("{path} .{key}"), left.get(key), right.get(key), lines);
            }
        }
        (left, right) if left == right => {}
        (left, right) => {
            let word = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
            // Writing to a String cannot fail.
            let _ = writeln!(
                lines,
                "  {path}\n    embedded: {}\n    real:     {}",
                word(left),
                word(right)
            );
        }
    }
}

const METADATA: [&str; 6] = [
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "generateName",
    "generation",
];

fn metadata(object: &Value) -> Map<String, Value> {
    let mut kept: Map<_, _> = METADATA
        .iter()
        .filter_map(|field| Some(((*field).to_owned(), object["metadata"].get(field)?.clone())))
        .collect();
    if !object["metadata"]["deletionTimestamp"].is_null() {
        kept.insert("terminating".into(), true.into());
    }
    kept
}

fn whole(object: &Value, parts: &[&str]) -> Value {
    let mut facts = metadata(object);
    facts.extend(
        parts
            .iter()
            .map(|part| ((*part).to_owned(), object[*part].clone())),
    );
    facts.into()
}

fn pod(object: &Value) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let claims: Map<_, _> = list(&spec["volumes"])
        .iter()
        .filter_map(|volume| {
            let claim = volume["persistentVolumeClaim"].get("claimName")?;
            Some((volume["name"].as_str()?.to_owned(), claim.clone()))
        })
        .collect();
    let images: Vec<_> = list(&spec["containers"])
        .iter()
        .map(|one| one["image"].clone())
        .collect();
    let conditions: Map<_, _> = list(&status["conditions"])
        .iter()
        .filter_map(|one| Some((one["type"].as_str()?.to_owned(), one["status"].clone())))
        .collect();
    let mut facts = metadata(object);
    facts.extend(fields(json!({
        "images": images,
        "claims": claims,
        "hostname": spec["hostname"],
        "subdomain": spec["subdomain"],
        "restartPolicy": spec["restartPolicy"],
        "phase": status["phase"],
        "reason": status["reason"],
        "ready": is_ready(object),
        "conditions": conditions,
    })));
    facts.into()
}

fn set(object: &Value, nudges: &Nudges) -> Value {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let nudges = nudges.get(uid).copied().unwrap_or(0);
    let mut facts = whole(object, &["spec", "status"]);
    for path in ["/generation", "/status/observedGeneration"] {
        if let Some(generation) = facts.pointer_mut(path) {
            *generation = json!(generation.as_i64().unwrap_or(0) - nudges);
        }
    }
    facts
}

fn revision(object: &Value) -> Value {
    whole(object, &["revision", "data"])
}

fn claim(object: &Value) -> Value {
    let mut facts = metadata(object);
    facts.extend(fields(
        json!({"phase": object["status"]["phase"], "storage": object["spec"]["resources"]}),
    ));
    facts.into()
}

/// Whether an event is about the search for a volume: only a real control plane searches, and how often before it finds one is random.
fn is_about_a_search(object: &Value) -> bool {
    object["source"]["component"] == "persistentvolume-controller" && object["reason"] == "FailedBinding"
}

/// Subjects with so many events that the rest are random.
struct Noise<'o> {
    /// An object and a reason with so many messages that they are aggregated: which of them stay separate is random.
    combined: BTreeSet<(&'o str, &'o str)>,
    /// An object and a type of event that reached the limit: which event is the last is random.
    full: BTreeSet<(&'o str, &'o str)>,
}

/// The limit of events that a source may record about an object within the time a sequence takes.
const BURST: i64 = 25;

impl<'o> Noise<'o> {
    fn in_events(events: impl Iterator<Item = &'o Value>) -> Self {
        let mut combined = BTreeSet::new();
        let mut told: BTreeMap<_, i64> = BTreeMap::new();
        for event in events {
            let about = text(event, "/involvedObject/uid");
            if text(event, "/message").starts_with("(combined") {
                combined.insert((about, text(event, "/reason")));
            }
            *told.entry((about, text(event, "/type"))).or_default() += event["count"].as_i64().unwrap_or(1);
        }
        let full = told
            .into_iter()
            .filter(|(_, count)| *count >= BURST)
            .map(|(key, _)| key);
        Self {
            combined,
            full: full.collect(),
        }
    }

    /// The message of an event and its count. A failure is recorded at every retry, so its count depends on time.
    fn event(&self, event: &Value) -> (String, Value) {
        let (uid, kind, reason) = (
            text(event, "/involvedObject/uid"),
            text(event, "/type"),
            text(event, "/reason"),
        );
        let about = format!(
            "event {} {} {} {kind}",
            text(event, "/source/component"),
            text(event, "/involvedObject/kind"),
            text(event, "/involvedObject/name"),
        );
        if self.full.contains(&(uid, kind)) {
            (format!("{about}{FULL}"), json!("some"))
        } else if self.combined.contains(&(uid, reason)) {
            (format!("{about} {reason}: (combined)"), json!("some"))
        } else {
            // The controller records a deletion again if it has not yet seen its own.
            let again = kind == "Warning" || reason == "SuccessfulDelete";
            let count = if again {
                json!("some")
            } else {
                event["count"].clone()
            };
            (format!("{about} {reason}: {}", text(event, "/message")), count)
        }
    }
}

fn sum(counts: &[Value]) -> Value {
    counts
        .iter()
        .map(Value::as_i64)
        .sum::<Option<i64>>()
        .map_or_else(|| json!("some"), Value::from)
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Replaces random names and times with fixed words.
struct Plain<'o> {
    namespace: &'o str,
    owners: BTreeMap<&'o str, String>,
    jobs: Vec<&'o str>,
}

impl<'o> Plain<'o> {
    fn new(objects: &'o Objects, namespace: &'o str) -> Self {
        let owners = objects.iter().filter_map(|((kind, name), object)| {
            Some((
                object["metadata"]["uid"].as_str()?,
                format!("<uid of {kind} {name}>"),
            ))
        });
        Self {
            namespace,
            owners: owners.collect(),
            jobs: vec![job_op::JOB],
        }
    }

    fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), self.value(value)))
                .collect(),
            other => other.clone(),
        }
    }

    fn text(&self, text: &str) -> String {
        if text.parse::<Timestamp>().is_ok() {
            return "<time>".to_owned();
        }
        let text = text.replace(self.namespace, "<namespace>");
        let in_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let mut plain = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end.max(first.len_utf8()));
            plain.push_str(&self.word(word));
            rest = after;
        }
        plain
    }

    fn word(&self, word: &str) -> String {
        if let Some(owner) = self.owners.get(word) {
            return owner.clone();
        }
        if word.len() == 36 && word.split('-').map(str::len).eq([8, 4, 4, 4, 12]) {
            return "<uid of nobody>".to_owned();
        }
        let by_chance = |suffix: &str| suffix.len() == 5 && suffix.bytes().all(|b| SUFFIX.contains(&b));
        match word.rsplit_once('-') {
            Some((stem, suffix))
                if by_chance(suffix)
                    && self
                        .jobs
                        .iter()
                        .any(|job| stem.strip_prefix(job).is_some_and(is_index)) =>
            {
                format!("{stem}-#")
            }
            _ => word.to_owned(),
        }
    }
}

/// The characters of a generated name's suffix.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// Empty, or the `-3` of an indexed Job's pod.
fn is_index(text: &str) -> bool {
    text.is_empty()
        || text
            .strip_prefix('-')
            .is_some_and(|index| index.parse::<u32>().is_ok())
}
