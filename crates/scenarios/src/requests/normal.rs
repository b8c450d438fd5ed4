//! Removes the random parts of answers: UIDs, times, version numbers, generated names.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Value, json};

/// Replacements for one server's generated values, numbered in the order of their appearance.
#[derive(Default)]
pub(super) struct Normal {
    uids: BTreeMap<String, usize>,
    versions: BTreeMap<String, usize>,
    /// Generated names and the namespace, with their replacements.
    names: Vec<(String, String)>,
}

static UID: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").ok());
static TIME: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").ok());
/// Versions inside sentences.
static VERSION: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(ResourceVersion in precondition: |ResourceVersion in object meta: |StorageError: invalid object, Code: 4, Key: .*, ResourceVersion: |the ResourceVersion in the precondition \(|the ResourceVersion in record \(|current: |resource version: |resourceVersion: )(\d+)",
    )
    .ok()
});
static PATCHED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?s)((?:patch: |^)Invalid value: )"(?:\{|map\[)(.*)"(: )"#).ok());
/// The error of an invalid pod update ends with a diff of the two specs as Go prints it.
static POD_DIFF: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?s)(allow it to be set to 1 if it was previously negative\)).*").ok());
/// The address that a Service requested.
static ADDRESS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(IPAddress\.networking\.k8s\.io ")10\.0\.0\.\d+"#).ok());
static AGE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^(\d+[smhd])+$").ok());

impl Normal {
    pub(super) fn new(namespace: &str) -> Self {
        Self {
            names: vec![(namespace.to_owned(), "«ns»".to_owned())],
            ..Self::default()
        }
    }

    pub(super) fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                self.learn_generated_name(value);
                let is_list = fields.contains_key("items") || fields.contains_key("rows");
                // A time that is set again within the same second keeps its owner: who that is may be random.
                let fields = fields.iter().filter(|(key, _)| *key != "f:lastTransitionTime");
                let fields = fields.map(|(key, value)| {
                    let normal = match (key.as_str(), value) {
                        // A list's version is the server's, and other clients write too.
                        ("metadata", Value::Object(_)) if is_list => self.list_metadata(value),
                        ("resourceVersion", Value::String(version)) => self.version(version).into(),
                        ("continue", Value::String(token)) if !token.is_empty() => "«token»".into(),
                        // Sorted by time on both sides, and the embedded cluster's clock stands still.
                        ("managedFields", Value::Array(entries)) => self.managers(entries),
                        // The managers of a conflict come in the random order of a Go map.
                        ("causes", Value::Array(causes)) => self.causes(causes),
                        // Differs per cluster.
                        ("ca.crt", Value::String(_)) => "«certificate»".into(),
                        // The real control plane runs its controllers in one binary, which gives the manager another name.
                        ("manager", Value::String(manager)) if manager == "controller-manager" => {
                            "kube-controller-manager".into()
                        }
                        // Our descriptions of columns differ from upstream's.
                        ("columnDefinitions", Value::Array(columns)) => {
                            columns.iter().map(without_description).collect()
                        }
                        // Upstream lists the rules of a user in the random order of a map.
                        ("resourceRules" | "nonResourceRules", Value::Array(rules)) => {
                            let mut rules = rules.clone();
                            rules.sort_by_key(Value::to_string);
                            rules.into()
                        }
                        ("cells", Value::Array(cells)) => cells.iter().map(|cell| self.cell(cell)).collect(),
                        _ => self.value(value),
                    };
                    (self.text(key), normal)
                });
                Value::Object(fields.collect())
            }
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::String(text) => self.text(text).into(),
            other => other.clone(),
        }
    }

    pub(super) fn text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, token) in &self.names {
            text = text.replace(name, token);
        }
        // Upstream shows the patched object in the order of its Go fields.
        if let Some(patched) = &*PATCHED {
            text = patched.replace(&text, "${1}«object»$3").into_owned();
        }
        if let Some(difference) = &*POD_DIFF {
            text = difference.replace(&text, "$1«difference»").into_owned();
        }
        if let Some(address) = &*ADDRESS {
            text = address.replace_all(&text, "$1«address»").into_owned();
        }
        // Which of several undeclared fields upstream names depends on the order of a Go map.
        if let Some((before, _)) = text.split_once("): ").filter(|(before, after)| {
            before.starts_with("failed to create typed patch object") && after.contains("not declared")
        }) {
            text = format!("{before}): «undeclared fields»");
        }
        text = conflicts_in_order(&text);
        if let Some(uid) = &*UID {
            let uids = &mut self.uids;
            text = uid
                .replace_all(&text, |found: &Captures<'_>| numbered("uid", uids, &found[0]))
                .into_owned();
        }
        if let Some(time) = &*TIME {
            text = time
                .replace_all(&text, |found: &Captures<'_>| digits(&found[0]))
                .into_owned();
        }
        if let Some(version) = &*VERSION {
            let versions = &mut self.versions;
            text = version
                .replace_all(&text, |found: &Captures<'_>| {
                    format!("{}{}", &found[1], known(versions, &found[2]))
                })
                .into_owned();
        }
        text
    }

    fn version(&mut self, version: &str) -> String {
        if version.is_empty() {
            String::new()
        } else {
            numbered("rv", &mut self.versions, version)
        }
    }

    fn list_metadata(&mut self, metadata: &Value) -> Value {
        let mut metadata = metadata.clone();
        if metadata["resourceVersion"].is_string() {
            metadata["resourceVersion"] = "«list»".into();
        }
        // Lists of custom objects from storage have an empty `continue` where other lists have none.
        match metadata["continue"].as_str() {
            Some("") => drop(metadata.as_object_mut().map(|fields| fields.remove("continue"))),
            Some(_) => metadata["continue"] = "«token»".into(),
            None => {}
        }
        metadata
    }

    fn managers(&mut self, entries: &[Value]) -> Value {
        let mut entries: Vec<_> = entries.iter().map(|entry| self.value(entry)).collect();
        // The testbed's components use shorter names than those of a release.
        for entry in entries.iter_mut().filter(|entry| entry["manager"] == "apiserver") {
            entry["manager"] = "kube-apiserver".into();
        }
        entries.sort_by_key(|entry| {
            let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
            (text("operation"), text("manager"), text("subresource"))
        });
        entries.into()
    }

    fn causes(&mut self, causes: &[Value]) -> Value {
        let mut causes: Vec<_> = causes.iter().map(|cause| self.value(cause)).collect();
        if causes
            .iter()
            .all(|cause| cause["reason"] == "FieldManagerConflict")
        {
            causes.sort_by_key(Value::to_string);
        }
        causes.into()
    }

    fn cell(&mut self, cell: &Value) -> Value {
        match cell {
            Value::String(text) if AGE.as_ref().is_some_and(|age| age.is_match(text)) => "«age»".into(),
            other => self.value(other),
        }
    }

    /// Replaces a name that the server generated from `generateName` from here on.
    fn learn_generated_name(&mut self, metadata: &Value) {
        let (Some(prefix), Some(name)) = (metadata["generateName"].as_str(), metadata["name"].as_str())
        else {
            return;
        };
        let generated = name.strip_prefix(prefix).is_some_and(|suffix| suffix.len() == 5);
        if generated && !self.names.iter().any(|(known, _)| known == name) {
            let token = format!("{prefix}«{}»", self.names.len());
            self.names.insert(0, (name.to_owned(), token));
        }
    }
}

fn numbered(what: &str, seen: &mut BTreeMap<String, usize>, value: &str) -> String {
    let next = seen.len() + 1;
    format!("«{what} {}»", seen.entry(value.to_owned()).or_insert(next))
}

/// The replacement for a version inside a sentence: a version that an object had, or an unknown one.
fn known(seen: &BTreeMap<String, usize>, value: &str) -> String {
    seen.get(value)
        .map_or_else(|| "«version»".to_owned(), |number| format!("«rv {number}»"))
}

/// Upstream lists managers of the same name by the time of their writes, which stands still in the embedded cluster.
fn conflicts_in_order(text: &str) -> String {
    let Some((count, list)) = text.split_once(" conflicts: conflicts with ") else {
        return text.to_owned();
    };
    let mut managers: Vec<_> = list.split("\nconflicts with ").collect();
    managers.sort_unstable();
    format!(
        "{count} conflicts: conflicts with {}",
        managers.join("\nconflicts with ")
    )
}

fn without_description(column: &Value) -> Value {
    let mut column = column.clone();
    column["description"] = Value::Null;
    column
}

fn digits(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_ascii_digit() { '0' } else { letter })
        .collect()
}

/// An answer in the form that is compared and recorded.
pub(super) fn answer(code: u16, headers: Value, body: Value) -> Value {
    json!({"code": code, "headers": headers, "body": body})
}
