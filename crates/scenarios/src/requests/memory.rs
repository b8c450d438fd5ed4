//! Remembers the answers of a sequence, to build later requests from them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::request::{Body, Request};

/// Objects by `plural/name`, oldest first.
pub(super) struct Memory {
    namespace: String,
    seen: BTreeMap<String, Vec<Value>>,
    token: String,
    list_version: String,
}

impl Memory {
    pub(super) fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            seen: BTreeMap::new(),
            token: String::new(),
            list_version: "0".to_owned(),
        }
    }

    pub(super) fn learn(&mut self, request: &Request, answer: &Value) {
        let metadata = &answer["metadata"];
        if answer["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) {
            self.token = metadata["continue"].as_str().unwrap_or_default().to_owned();
            self.list_version = metadata["resourceVersion"].as_str().unwrap_or("0").to_owned();
        } else if let Some(key) = &request.about
            && metadata["uid"].is_string()
            && metadata["resourceVersion"].is_string()
            && answer["kind"] != "Scale"
            && answer["kind"] != "PartialObjectMetadata"
        {
            self.seen.entry(self.fill(key)).or_default().push(answer.clone());
        }
    }

    /// The bytes of a request's body.
    pub(super) fn body(&self, request: &Request) -> Vec<u8> {
        match &request.body {
            Body::Nothing => Vec::new(),
            Body::Json(value) => self.fill(&value.to_string()).into_bytes(),
            Body::Text(text) => self.fill(text).into_bytes(),
            Body::Heavy(bytes) => format!(
                r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"heavy"}},"data":{{"x":"{}"}}}}"#,
                "x".repeat(*bytes)
            )
            .into_bytes(),
            Body::Edited(patch) => {
                let key = request.about.as_ref().map(|key| self.fill(key));
                let last = key.and_then(|key| self.seen.get(&key)?.last());
                let mut object = last.cloned().unwrap_or_else(|| serde_json::json!({}));
                merge(&mut object, patch);
                self.fill(&object.to_string()).into_bytes()
            }
        }
    }

    /// Fills in `«ns»`, `«token»`, `«list»`, and for objects seen `«rv KEY»`, `«old-rv KEY»`, `«uid KEY»`, `«name KEY»`. A key may itself
    /// contain a placeholder.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        // The first `»` closes the last `«` before it.
        while let Some(end) = filled.find('»') {
            let Some(start) = filled[..end].rfind('«') else {
                return filled;
            };
            let word = self.word(&filled[start + '«'.len_utf8()..end]);
            filled.replace_range(start..end + '»'.len_utf8(), &word);
        }
        filled
    }

    fn word(&self, word: &str) -> String {
        let (word, key) = word.split_once(' ').unwrap_or((word, ""));
        let of = |object: Option<&Value>, field: &str, otherwise: &str| {
            object
                .and_then(|object| object["metadata"][field].as_str())
                .unwrap_or(otherwise)
                .to_owned()
        };
        let seen = self.seen.get(key);
        let (first, last) = (
            seen.and_then(|seen| seen.first()),
            seen.and_then(|seen| seen.last()),
        );
        match word {
            "ns" => self.namespace.clone(),
            "token" => self.token.clone(),
            "list" => self.list_version.clone(),
            "rv" => of(last, "resourceVersion", "1"),
            "old-rv" => of(first, "resourceVersion", "1"),
            "uid" => of(last, "uid", "none"),
            "name" => of(last, "name", "unnamed"),
            other => other.to_owned(),
        }
    }
}

/// RFC 7386 merge.
pub(super) fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    into.remove(key);
                } else {
                    merge(into.entry(key.as_str()).or_insert(Value::Null), value);
                }
            }
        }
        (into, patch) => *into = patch.clone(),
    }
}
