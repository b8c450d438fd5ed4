//! The API server's schema checks: types, limits and unknown fields.
//!
//! All problems are reported. Values that cannot be read are removed, so that the operator's checks can run on the rest.

use base64::alphabet::STANDARD;
use base64::engine::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use jiff::Timestamp;
use serde_json::{Map, Value};
use stateward_api::Problem;
use stateward_schema::{Quantity, resolve};

use super::near::nearest;

/// The result of a check.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Violations of the schema.
    pub(super) problems: Vec<Problem>,
    /// The readable part of the object.
    pub(super) readable: Value,
    /// The paths at which a value was removed or replaced by a placeholder.
    taken_out: Vec<String>,
}

impl Checked {
    /// Whether a problem of the readable part only results from a removed value.
    pub(super) fn explains(&self, problem: &Problem) -> bool {
        let field = problem.field.as_str();
        let inside = |outer: &str, inner: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let parent = |path: &str| path.rfind(['.', '[']).map_or(0, |end| end);
        self.taken_out
            .iter()
            .any(|path| inside(path, field) || &path[..parent(path)] == field)
    }
}

/// Checks an object against the schema of its kind. The values of a Secret are never shown.
pub(super) fn checked(schema: &Value, value: &Value, is_secret: bool) -> Checked {
    let mut checker = Checker {
        is_secret,
        ..Checker::default()
    };
    let mut readable = Map::new();
    readable.insert("metadata".into(), Value::Object(Map::new()));
    let schema = resolve(schema);
    for (name, inner) in value.as_object().into_iter().flatten() {
        let read = match name.as_str() {
            // Checked elsewhere.
            "apiVersion" | "kind" => Some(inner.clone()),
            "metadata" => checker.check(stateward_schema::object_meta(), inner, name),
            // The API server drops it if it is a subresource, and validates it otherwise.
            "status" => None,
            _ => match schema["properties"].get(name) {
                Some(schema) => checker.check(schema, inner, name),
                None => {
                    checker.unknown(schema, name, name);
                    None
                }
            },
        };
        readable.extend(read.map(|read| (name.clone(), read)));
    }
    checker.required(schema, value, "", &mut readable);
    Checked {
        problems: checker.problems,
        readable: Value::Object(readable),
        taken_out: checker.taken_out,
    }
}

/// Checks the part of an object at `path`. Texts with `{{args.name}}` may become anything.
pub(super) fn part(schema: &Value, value: &Value, path: &str) -> Vec<Problem> {
    let mut checker = Checker {
        has_args: true,
        ..Checker::default()
    };
    checker.check(schema, value, path);
    checker.problems
}

#[derive(Default)]
struct Checker {
    problems: Vec<Problem>,
    taken_out: Vec<String>,
    is_secret: bool,
    has_args: bool,
}

impl Checker {
    fn problem(&mut self, path: &str, message: impl Into<String>) {
        self.problems.push(Problem {
            field: path.to_owned(),
            message: message.into(),
        });
    }

    /// The readable part of a value; `None` if there is none, or the value is not set.
    fn check(&mut self, schema: &Value, value: &Value, path: &str) -> Option<Value> {
        let schema = resolve(schema);
        let waits = |value: &Value| value.as_str().is_some_and(|text| text.contains("{{"));
        match value {
            // The API server treats null as not set.
            Value::Null => return None,
            value if self.has_args && waits(value) => return Some(value.clone()),
            value => {
                if let Some(wrong) = self.mismatch(schema, value, path) {
                    self.problem(path, wrong);
                    self.taken_out.push(path.to_owned());
                    return None;
                }
            }
        }
        self.lengths(schema, value, path);
        match value {
            Value::Array(items) => {
                let items = items.iter().enumerate().map(|(index, item)| {
                    let inner = format!("{path}[{index}]");
                    let read = self.check(&schema["items"], item, &inner);
                    // The other items keep their indices.
                    read.unwrap_or_else(|| placeholder(&schema["items"]))
                });
                Some(items.collect())
            }
            Value::Object(fields) => Some(Value::Object(self.fields(schema, fields, value, path))),
            value => Some(value.clone()),
        }
    }

    fn fields(
        &mut self,
        schema: &Value,
        fields: &Map<String, Value>,
        whole: &Value,
        path: &str,
    ) -> Map<String, Value> {
        let mut readable = Map::new();
        let any = &schema["additionalProperties"];
        for (name, value) in fields {
            let inner = format!("{path}.{name}");
            let read = match schema["properties"].get(name) {
                Some(schema) => self.check(schema, value, &inner),
                None if any.is_object() => self.check(any, value, &inner),
                None if any == true || schema["x-kubernetes-preserve-unknown-fields"] == true => {
                    Some(value.clone())
                }
                None if schema.is_null() => Some(value.clone()),
                None => {
                    self.unknown(schema, name, &inner);
                    None
                }
            };
            readable.extend(read.map(|read| (name.clone(), read)));
        }
        self.required(schema, whole, path, &mut readable);
        readable
    }

    fn required(&mut self, schema: &Value, value: &Value, path: &str, readable: &mut Map<String, Value>) {
        let names = |list: &str| -> Vec<&str> {
            let names = schema[list].as_array().into_iter().flatten();
            names.filter_map(Value::as_str).collect()
        };
        let inner = |name: &str| match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        let is_missing = |name: &str| value.get(name).is_none_or(Value::is_null);
        let required = names("required");
        for name in &required {
            if is_missing(name) {
                self.problem(&inner(name), "is missing");
                self.taken_out.push(inner(name));
            }
            let stands_for = || placeholder(&schema["properties"][*name]);
            readable.entry(*name).or_insert_with(stands_for);
        }
        for name in names("x-implied") {
            // No field of the metadata is required.
            if is_missing(name) && !required.contains(&name) && !["metadata", "status"].contains(&name) {
                let schema = resolve(&schema["properties"][name]);
                let nothing = Value::Object(Map::new());
                self.required(schema, &nothing, &inner(name), &mut Map::new());
            }
        }
    }

    /// An unknown field, with the field that may have been meant.
    fn unknown(&mut self, schema: &Value, name: &str, path: &str) {
        let known = schema["properties"].as_object().into_iter().flatten();
        let hint = match nearest(name, known.map(|(known, _)| known.as_str())) {
            Some(near) => format!("; did you mean {near}"),
            None => String::new(),
        };
        self.problem(path, format!("unknown field{hint}"));
        self.taken_out.push(path.to_owned());
    }

    /// Why a value does not match the type of the schema.
    fn mismatch(&self, schema: &Value, value: &Value, path: &str) -> Option<String> {
        let shown = |value: &Value| match value {
            Value::Array(_) => "a list".into(),
            Value::Object(_) => "an object".into(),
            _ if self.is_secret && (path.starts_with("data.") || path.starts_with("stringData.")) => {
                "the value".into()
            }
            other => other.to_string(),
        };
        if schema["x-kubernetes-int-or-string"] == true {
            let fits = value.is_i64() || value.is_string();
            return (!fits).then(|| format!("{} is not an integer or a string", shown(value)));
        }
        if let Some(wanted) = schema["type"].as_str()
            && !is_a(wanted, value)
        {
            return Some(format!("{} is not {}", shown(value), article(wanted, value)));
        }
        if let Some(allowed) = schema["enum"].as_array()
            && !allowed.contains(value)
        {
            let allowed = allowed.iter().filter(|allowed| **allowed != "");
            let allowed: Vec<_> = allowed.map(ToString::to_string).collect();
            return Some(format!("{value} is not one of {}", allowed.join(", ")));
        }
        if let Some(wrong) = out_of_range(schema, value) {
            return Some(wrong);
        }
        let text = value.as_str();
        match schema["format"].as_str()? {
            "quantity" => {
                let fits = text.map_or(value.is_number(), |text| Quantity::parse(text).is_some());
                (!fits).then(|| format!("{} is not a quantity such as 500m, 2 or 1Gi", shown(value)))
            }
            "byte" if !text.is_some_and(is_base64) => Some(match self.is_secret {
                true => "the value is not base64; plain text goes into stringData".into(),
                false => "the value is not base64".into(),
            }),
            "date-time" if text.is_none_or(|text| text.parse::<Timestamp>().is_err()) => {
                Some(format!("{value} is not a time such as 2026-01-02T03:04:05Z"))
            }
            _ => None,
        }
    }

    fn lengths(&mut self, schema: &Value, value: &Value, path: &str) {
        let (what, unit, length) = match value {
            Value::String(text) => ("Length", "characters", text.chars().count()),
            Value::Array(items) => ("Items", "items", items.len()),
            _ => return,
        };
        let limit = |least: &str| schema[format!("{least}{what}")].as_u64();
        if let Some(least) = limit("min").filter(|least| (length as u64) < *least) {
            self.problem(path, format!("has {length} {unit}; {least} is the least"));
        }
        if let Some(most) = limit("max").filter(|most| length as u64 > *most) {
            self.problem(path, format!("has {length} {unit}; {most} is the most"));
        }
    }
}

/// As in Go, which allows line breaks anywhere.
fn is_base64(text: &str) -> bool {
    const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true);
    const ENGINE: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);
    ENGINE.decode(text.replace(['\r', '\n'], "")).is_ok()
}

/// A placeholder for a required value that cannot be read.
fn placeholder(schema: &Value) -> Value {
    let schema = resolve(schema);
    match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten();
            let required = required.filter_map(Value::as_str);
            let fields = required.map(|name| (name.to_owned(), placeholder(&schema["properties"][name])));
            Value::Object(fields.collect())
        }
        Some("array") => Value::Array(Vec::new()),
        Some("string") => schema["enum"].get(0).cloned().unwrap_or_else(|| "".into()),
        Some("integer" | "number") => 0.into(),
        Some("boolean") => false.into(),
        _ if schema["x-kubernetes-int-or-string"] == true => 0.into(),
        _ => Value::Null,
    }
}

fn out_of_range(schema: &Value, value: &Value) -> Option<String> {
    let number = value.as_f64()?;
    match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
        (Some(least), Some(most)) if number < least || number > most => {
            Some(format!("{value} is not between {least} and {most}"))
        }
        (Some(least), None) if number < least => Some(format!("{value} is less than {least}")),
        (None, Some(most)) if number > most => Some(format!("{value} is more than {most}")),
        _ => None,
    }
}

fn is_a(wanted: &str, value: &Value) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    }
}

fn article<'w>(wanted: &'w str, found: &Value) -> &'w str {
    match wanted {
        "object" => "an object",
        "array" => "a list",
        // The author may not have written a boolean.
        "string" if found.is_boolean() => "a string; put it in quotes, also yes, no, on and off",
        "string" if found.is_number() => "a string; put it in quotes",
        "string" => "a string",
        "boolean" => "true or false",
        "integer" => "an integer",
        "number" => "a number",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn found(schema: &Value, value: &Value, is_secret: bool) -> Vec<String> {
        let problems = checked(schema, value, is_secret).problems;
        problems.iter().map(ToString::to_string).collect()
    }

    #[rstest]
    #[case(json!({"spec": {"n": 3}}), &[])]
    #[case(json!({"spec": {"n": "3"}}), &["spec.n: \"3\" is not an integer"])]
    #[case(json!({"spec": {"n": 300}}), &["spec.n: 300 is not between 0 and 100"])]
    #[case(json!({"spec": {"N": 3}}), &["spec.N: unknown field; did you mean n", "spec.n: is missing"])]
    #[case(json!({"spec": {"n": 1, "list": [1, "a"]}}), &["spec.list[0]: 1 is not a string; put it in quotes"])]
    #[case(json!({"spec": {"n": 1, "any": {"thing": 1}, "when": "5m"}}), &[])]
    #[case(json!({"spec": {"n": 1, "when": true}}), &["spec.when: true is not an integer or a string"])]
    #[case(json!({"spec": {"n": null}}), &["spec.n: is missing"])]
    #[case(json!({}), &["spec: is missing"])]
    #[case(json!({"spec": {"n": 1}, "sepc": {}, "status": {"x": 1}}), &["sepc: unknown field; did you mean spec"])]
    #[case(json!({"spec": {"n": 1}, "metadata": {"lables": {"a": "b"}, "annotations": {"a": true}}}), &[
        "metadata.annotations.a: true is not a string; put it in quotes, also yes, no, on and off",
        "metadata.lables: unknown field; did you mean labels",
    ])]
    fn a_schema_is_held_against_an_object(#[case] value: Value, #[case] expected: &[&str]) {
        let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": {
            "type": "object", "required": ["n"], "properties": {
                "n": {"type": "integer", "minimum": 0, "maximum": 100},
                "list": {"type": "array", "items": {"type": "string"}},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "when": {"x-kubernetes-int-or-string": true},
            },
        }}});
        assert_eq!(found(&schema, &value, false), expected);
    }

    fn built_in(api_version: &str, kind: &str, value: &Value) -> Vec<String> {
        let mut kinds = stateward_schema::kinds().iter();
        let kind = kinds.find(|known| known.api_version == api_version && known.kind == kind);
        let kind = kind.unwrap();
        found(kind.schema(), value, kind.kind == "Secret")
    }

    #[rstest]
    #[case(json!({"replicas": "5"}), &["spec.replicas: \"5\" is not an integer"])]
    #[case(json!({"replicas": 3_000_000_000_i64}), &["spec.replicas: 3000000000 is not between -2147483648 and 2147483647"])]
    #[case(json!({"updateStrategy": {"type": "rolling"}}), &["spec.updateStrategy.type: \"rolling\" is not one of \"OnDelete\", \"RollingUpdate\""])]
    #[case(json!({"updateStrategy": {"type": "", "rollingUpdate": {"maxUnavailable": "50%"}}}), &[])]
    #[case(json!({"podManagmentPolicy": "Parallel"}), &["spec.podManagmentPolicy: unknown field; did you mean podManagementPolicy"])]
    #[case(json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1 GB"}}}}]}),
        &["spec.volumeClaimTemplates[0].spec.resources.requests.storage: \"1 GB\" is not a quantity such as 500m, 2 or 1Gi"])]
    #[case(json!({"template": null}), &["spec.template: is missing"])]
    #[case(json!({"template": {"metadata": {}}}), &["spec.template.spec.containers: is missing"])]
    #[case(json!({"template": {"spec": {"containers": {"name": "db"}}}}), &["spec.template.spec.containers: an object is not a list"])]
    #[case(json!({"template": {"spec": {"containers": [{"name": "db", "imagee": "db:1", "env": [{"name": "A", "value": 1}]}]}}}), &[
        "spec.template.spec.containers[0].env[0].value: 1 is not a string; put it in quotes",
        "spec.template.spec.containers[0].imagee: unknown field; did you mean image",
    ])]
    fn a_built_in_kind_is_checked_as_any_other(#[case] patch: Value, #[case] expected: &[&str]) {
        let mut spec = json!({"selector": {}, "template": {"spec": {"containers": []}}});
        for (name, value) in patch.as_object().unwrap() {
            spec[name] = value.clone();
        }
        let set = json!({"metadata": {"name": "db"}, "spec": spec});
        assert_eq!(built_in("apps/v1", "StatefulSet", &set), expected);
    }

    #[test]
    fn what_a_struct_requires_is_missing_with_it() {
        assert_eq!(
            built_in("apps/v1", "StatefulSet", &json!({"metadata": {"name": "db"}})),
            ["spec.selector: is missing", "spec.template: is missing"]
        );
    }

    #[test]
    fn what_a_secret_holds_is_not_shown() {
        let secret = json!({"data": {"a": "hunter2", "b": 4711, "c": "aHVu\nd GVy"}, "stringData": {"d": 4711, "e": [4711]}});
        let found = built_in("v1", "Secret", &secret);
        assert_eq!(
            found,
            [
                "data.a: the value is not base64; plain text goes into stringData",
                "data.b: the value is not a string; put it in quotes",
                "data.c: the value is not base64; plain text goes into stringData",
                "stringData.d: the value is not a string; put it in quotes",
                "stringData.e: a list is not a string",
            ]
        );
        assert_eq!(
            built_in("v1", "Secret", &json!({"data": {"a": "aHVu\ndGVy\n"}})),
            [""; 0]
        );
    }

    #[test]
    fn what_waits_for_its_args_may_become_anything() {
        let job = json!({"backoffLimit": "{{args.tries}}", "parallelism": "many", "template": {"spec": {"containers": [], "image": "x"}}});
        let found: Vec<_> = part(stateward_schema::job_spec(), &job, "job")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "job.parallelism: \"many\" is not an integer",
                "job.template.spec.image: unknown field"
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_taken_out_and_explains_what_comes_of_it() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["ref", "n"], "properties": {
            "ref": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
            "n": {"type": "integer"},
            "steps": {"type": "array", "items": {"type": "object", "properties": {"weight": {"type": "integer"}, "x": {"type": "string"}}}},
        }}}});
        let checked = checked(
            &schema,
            &json!({"spec": {"ref": {}, "n": "one", "steps": [{"weight": "9"}, "step", {"x": "y"}]}}),
            false,
        );
        assert_eq!(
            checked.readable,
            json!({"metadata": {}, "spec": {"ref": {"name": ""}, "n": 0, "steps": [{}, {}, {"x": "y"}]}})
        );
        let explains = |field: &str| {
            checked.explains(&Problem {
                field: field.into(),
                message: "is empty".into(),
            })
        };
        assert!(explains("spec.ref.name") && explains("spec.ref") && explains("spec.n"));
        assert!(explains("spec.steps[0]") && explains("spec.steps[1].weight"));
        assert!(!explains("spec.steps[2]") && !explains("spec.nn") && !explains("spec.steps[10]"));
    }
}
