//! Decodes JSON to exactly what the server stores.
//!
//! The real server decodes JSON into Go structs and encodes those structs again. That drops unknown fields, omits empty values of fields
//! with `omitempty`, and writes zero values of the others. Revision hashes are computed from the result, so every one of these rules
//! matters.

use crate::json::{Map, Name, Value};
use std::borrow::Cow;

use base64::Engine;
use stateward_schema::Quantity;

use super::table::{Field, Kind, Struct, builtin};
use crate::go;

/// The result of decoding an object.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Decoded {
    pub(crate) value: Value,
    /// The paths of unknown fields: `spec.template.spec.containers[0].imagee`.
    pub(crate) unknown: Vec<String>,
}

/// A value that does not fit its field.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum Mismatch {
    #[error("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}")]
    Type {
        found: &'static str,
        owner: String,
        path: String,
        wanted: String,
    },
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
}

impl Mismatch {
    /// The real server's message for the result of a strategic merge patch: no JSON is decoded there, values are converted.
    pub(crate) fn converted(&self) -> String {
        let Self::Type { found, wanted, .. } = self else {
            return self.to_string();
        };
        let found = match *found {
            "number" => "int64",
            "array" => "slice",
            "object" => "map",
            other => other,
        };
        match wanted.as_str() {
            "string" if found == "int64" => "cannot convert int64 to string".to_owned(),
            "string" | "bool" | "int32" | "int64" | "uint8" | "float64" => {
                format!("unrecognized type: {wanted}")
            }
            list if list.starts_with("[]") => format!("cannot restore slice from {found}"),
            map if map.starts_with("map[") => format!("cannot restore map from {found}"),
            _ => format!("cannot restore struct from: {found}"),
        }
    }
}

/// Decodes `value` as the built-in type `name`. `None` if there is no such type.
pub(crate) fn decode(name: &str, value: &Value) -> Option<Result<Decoded, Mismatch>> {
    decode_over(name, value, None)
}

/// The same for an object that replaces `stored`. Shared parts were decoded before and would not change.
pub(crate) fn decode_over(
    name: &str,
    value: &Value,
    stored: Option<&Value>,
) -> Option<Result<Decoded, Mismatch>> {
    let described = builtin(name)?;
    let mut reader = Reader { unknown: Vec::new() };
    let empty = Value::Object(Map::new());
    let given = if value.is_object() { value } else { &empty };
    let read = reader.structure(described, given, stored, &Path::root(name));
    Some(read.map(|value| Decoded {
        value: value.into_owned(),
        unknown: reader.unknown,
    }))
}

/// A decoded value. Nearly all values are unchanged, and stay shared.
type Read<'v> = Result<Cow<'v, Value>, Mismatch>;

struct Reader {
    unknown: Vec<String>,
}

/// The current path, as a chain back to the root: it is rarely printed.
#[derive(Clone, Copy)]
struct Path<'a> {
    above: Option<&'a Path<'a>>,
    step: Step<'a>,
    /// The innermost struct, for Go's error message.
    owner: &'a str,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    fn root(name: &'a str) -> Self {
        Self {
            above: None,
            step: Step::Root,
            owner: short(name),
        }
    }

    fn step(&'a self, step: Step<'a>) -> Self {
        Self {
            above: Some(self),
            step,
            owner: self.owner,
        }
    }

    fn inside(&self, name: &'a str) -> Self {
        Self {
            owner: short(name),
            ..*self
        }
    }

    /// `spec.template.spec.containers[0].image`
    fn shown(&self) -> String {
        let mut path = self.above.map(Self::shown).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Field(name) | Step::Key(name) => append(&mut path, name),
            Step::Index(index) => path.push_str(&format!("[{index}]")),
        }
        path
    }

    /// As in Go's errors, which omit list indexes and map keys.
    fn shown_by_go(&self) -> String {
        let mut path = self.above.map(Self::shown_by_go).unwrap_or_default();
        if let Step::Field(name) = self.step {
            append(&mut path, name);
        }
        path
    }
}

fn append(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

impl Reader {
    fn structure<'v>(
        &mut self,
        described: &'static Struct,
        given: &'v Value,
        stored: Option<&Value>,
        at: &Path<'_>,
    ) -> Read<'v> {
        let Value::Object(fields) = given else {
            return Ok(Cow::Borrowed(given));
        };
        let zeros = zeros(described);
        let mut read = Vec::new();
        let mut is_same = true;
        // In the order of the input, so that errors come in it too.
        for (index, (name, given)) in fields.iter().enumerate() {
            let value = match described.fields.get(name.as_str()) {
                None => {
                    self.unknown.push(at.step(Step::Field(name)).shown());
                    None
                }
                Some(_) if given.is_null() => {
                    let zero = zeros.iter().find(|(zero, _)| zero == name);
                    zero.map(|(_, zero)| Cow::Borrowed(zero))
                }
                Some(field) => {
                    let stored = stored.and_then(|stored| stored.get(name));
                    Some(self.value(&field.kind, given, stored, &at.step(Step::Field(name)))?)
                        .filter(|value| is_written(field, value))
                }
            };
            if is_same && !value.as_ref().is_some_and(|value| value.shares(given)) {
                is_same = false;
                read = copied(fields, index);
            }
            if !is_same {
                read.extend(value.map(|value| (name.clone(), value.into_owned())));
            }
        }
        let missing = zeros.iter().filter(|(name, _)| !fields.contains_key(name));
        let mut missing = missing.cloned().peekable();
        if is_same && missing.peek().is_some() {
            is_same = false;
            read = copied(fields, fields.len());
        }
        Ok(match is_same {
            true => Cow::Borrowed(given),
            false => Cow::Owned(Value::Object(read.into_iter().chain(missing).collect())),
        })
    }

    fn value<'v>(
        &mut self,
        kind: &'static Kind,
        given: &'v Value,
        stored: Option<&Value>,
        at: &Path<'_>,
    ) -> Read<'v> {
        let mismatch = |wanted: &str| mismatch(given, at, wanted);
        let same = Ok(Cow::Borrowed(given));
        if stored.is_some_and(|stored| stored.shares(given)) {
            return same;
        }
        match (kind, given) {
            (Kind::Any, _) => same,
            (Kind::String | Kind::Duration, Value::String(_)) => same,
            (Kind::Bool, Value::Bool(_)) => same,
            (Kind::Int32, Value::Number(number)) => match number.as_i64() {
                Some(number) if i32::try_from(number).is_ok() => same,
                _ => Err(mismatch("int32")),
            },
            (Kind::Int64, Value::Number(number)) if number.is_i64() => same,
            (Kind::Uint8, Value::Number(number)) if number.as_u64().is_some_and(|n| n < 256) => same,
            (Kind::Float, Value::Number(_)) => same,
            (Kind::Bytes, Value::String(text)) => {
                match base64::engine::general_purpose::STANDARD.decode(text.as_bytes()) {
                    Ok(_) => same,
                    Err(error) => Err(Mismatch::Base64(corrupt_at(text, &error))),
                }
            }
            (Kind::Time, Value::String(text)) if is_plain_time(text.as_bytes()) => same,
            (Kind::Time, Value::String(text)) => made(time(text, 0), || mismatch("v1.Time")),
            (Kind::MicroTime, Value::String(text)) => made(time(text, 6), || mismatch("v1.MicroTime")),
            (Kind::Quantity, Value::String(text)) => match canonical(text) {
                Some(canonical) if *canonical == **text => same,
                canonical => made(canonical, || mismatch("resource.Quantity")),
            },
            (Kind::Quantity, Value::Number(number)) => {
                made(canonical(&number.to_string()), || mismatch("resource.Quantity"))
            }
            (Kind::IntOrString, Value::String(_)) => same,
            (Kind::IntOrString, Value::Number(number)) if number.is_i64() => same,
            (Kind::Struct(name), Value::Object(_)) => match name.described() {
                Some(described) => self.structure(described, given, stored, &at.inside(name)),
                None => same,
            },
            (Kind::List(element), Value::Array(items)) => {
                let items = items.iter().enumerate();
                let read = items.map(|(index, item)| {
                    let stored = stored.and_then(|stored| stored.get(index));
                    self.item(element, item, stored, &at.step(Step::Index(index)))
                });
                let read = read.collect::<Result<Vec<_>, _>>()?;
                Ok(match read.iter().all(|item| matches!(item, Cow::Borrowed(_))) {
                    true => Cow::Borrowed(given),
                    false => Cow::Owned(read.into_iter().map(Cow::into_owned).collect()),
                })
            }
            (Kind::Map(element), Value::Object(fields)) => {
                let fields = fields.iter();
                let read = fields.map(|(key, item)| {
                    let stored = stored.and_then(|stored| stored.get(key));
                    Ok((key, self.item(element, item, stored, &at.step(Step::Key(key)))?))
                });
                let read = read.collect::<Result<Vec<_>, _>>()?;
                Ok(
                    match read.iter().all(|(_, item)| matches!(item, Cow::Borrowed(_))) {
                        true => Cow::Borrowed(given),
                        false => {
                            let fields = read
                                .into_iter()
                                .map(|(key, item)| (key.clone(), item.into_owned()));
                            Cow::Owned(Value::Object(fields.collect()))
                        }
                    },
                )
            }
            (kind, _) => Err(mismatch(&go_type(kind))),
        }
    }

    /// A null inside a list or a map is the zero value of its element.
    fn item<'v>(
        &mut self,
        kind: &'static Kind,
        given: &'v Value,
        stored: Option<&Value>,
        at: &Path<'_>,
    ) -> Read<'v> {
        match given {
            Value::Null => Ok(zero(kind).map_or(Cow::Borrowed(given), Cow::Owned)),
            given => self.value(kind, given, stored, at),
        }
    }
}

/// A converted value.
fn made<'v>(value: Option<impl Into<Value>>, otherwise: impl FnOnce() -> Mismatch) -> Read<'v> {
    value.map(|value| Cow::Owned(value.into())).ok_or_else(otherwise)
}

/// The first fields of a map, with room for the rest.
fn copied(fields: &Map, count: usize) -> Vec<(Name, Value)> {
    let mut copied = Vec::with_capacity(fields.len() + 1);
    let first = fields.iter().take(count);
    copied.extend(first.map(|(name, value)| (name.clone(), value.clone())));
    copied
}

/// Whether a field with this value is written.
fn is_written(field: &Field, value: &Value) -> bool {
    if field.omit_zero && !field.pointer && zero(&field.kind).is_none_or(|zero| zero == *value) {
        return false;
    }
    let empty = match value {
        Value::Null => false,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() && matches!(field.kind, Kind::Map(_)),
    };
    // Quantities and int-or-strings are structs in Go, although they are scalars in JSON.
    let is_struct = matches!(field.kind, Kind::Quantity | Kind::IntOrString | Kind::Any);
    !field.omit_empty || field.pointer || is_struct || !empty
}

/// The values written for missing fields of a struct.
fn zeros(described: &'static Struct) -> &'static [(Name, Value)] {
    described.zeros.get_or_init(|| {
        let zeros = described.fields.iter().filter_map(|(name, field)| {
            let value = if field.pointer { None } else { zero(&field.kind) };
            let value = match value {
                Some(value) => Some(value).filter(|value| is_written(field, value)),
                // An absent pointer, list or map: omitted, or null if the field has no `omitempty`.
                None => (!field.omit_empty && !field.omit_zero).then_some(Value::Null),
            };
            Some((name.into(), value?))
        });
        zeros.collect()
    })
}

/// The encoded zero value of this kind; `None` if it is nil.
fn zero(kind: &Kind) -> Option<Value> {
    match kind {
        Kind::String => Some("".into()),
        Kind::Bool => Some(false.into()),
        Kind::Int32 | Kind::Int64 | Kind::Uint8 | Kind::Float | Kind::IntOrString => Some(0.into()),
        Kind::Quantity => Some("0".into()),
        Kind::Duration => Some("0s".into()),
        // A zero time is written as null.
        Kind::Time | Kind::MicroTime => Some(Value::Null),
        Kind::Struct(name) => {
            let zeros = zeros(name.described()?).iter().cloned();
            Some(Value::Object(zeros.collect()))
        }
        Kind::Bytes | Kind::Any | Kind::List(_) | Kind::Map(_) => None,
    }
}

/// Times are stored in UTC, truncated to the field's precision.
fn time(text: &str, digits: usize) -> Option<Value> {
    if digits == 0 && is_plain_time(text.as_bytes()) {
        return Some(text.into());
    }
    let parsed: jiff::Timestamp = text.parse().ok()?;
    Some(if digits == 0 {
        jiff::Timestamp::from_second(parsed.as_second())
            .ok()?
            .to_string()
            .into()
    } else {
        format!("{parsed:.digits$}").into()
    })
}

/// Whether this is a time in the stored format, `2026-01-02T03:04:05Z`: most are, and need no parsing.
fn is_plain_time(text: &[u8]) -> bool {
    let Ok(text) = <&[u8; 20]>::try_from(text) else {
        return false;
    };
    let two = |at: usize| match (text[at], text[at + 1]) {
        (tens @ b'0'..=b'9', ones @ b'0'..=b'9') => Some((tens - b'0') * 10 + (ones - b'0')),
        _ => None,
    };
    let within = |at: usize, range: std::ops::RangeInclusive<u8>| {
        two(at).is_some_and(|number| range.contains(&number))
    };
    let separators = [text[4], text[7], text[10], text[13], text[16], text[19]];
    separators == *b"--T::Z"
        && within(0, 1..=99)
        && two(2).is_some()
        && within(5, 1..=12)
        // Every month has these.
        && within(8, 1..=28)
        && within(11, 0..=23)
        && within(14, 0..=59)
        && within(17, 0..=59)
}

fn canonical(text: &str) -> Option<String> {
    Some(Quantity::parse(text)?.to_string())
}

fn mismatch(given: &Value, at: &Path<'_>, wanted: &str) -> Mismatch {
    Mismatch::Type {
        found: go::json_kind(given),
        owner: at.owner.to_owned(),
        path: at.shown_by_go(),
        wanted: wanted.to_owned(),
    }
}

/// The offset in Go's error: the wrong byte, or the start of the last incomplete group of four.
fn corrupt_at(text: &str, error: &base64::DecodeError) -> usize {
    match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => *at,
        base64::DecodeError::InvalidLength(length) => length / 4 * 4,
        base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
    }
}

/// The Go type in its errors.
fn go_type(kind: &Kind) -> String {
    match kind {
        Kind::String => "string".into(),
        Kind::Bool => "bool".into(),
        Kind::Int32 => "int32".into(),
        Kind::Int64 => "int64".into(),
        Kind::Uint8 => "uint8".into(),
        Kind::Float => "float64".into(),
        Kind::Bytes => "[]uint8".into(),
        Kind::Time => "v1.Time".into(),
        Kind::MicroTime => "v1.MicroTime".into(),
        Kind::Duration => "v1.Duration".into(),
        Kind::Quantity => "resource.Quantity".into(),
        Kind::IntOrString => "intstr.IntOrString".into(),
        Kind::Any => "interface {}".into(),
        Kind::Struct(name) => {
            let mut parts = name.rsplit('.');
            let (kind, version) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            format!("{version}.{kind}")
        }
        Kind::List(element) => format!("[]{}", go_type(element)),
        Kind::Map(element) => format!("map[string]{}", go_type(element)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    #[rstest::rstest]
    #[case("2026-01-02T03:04:05Z", Some("2026-01-02T03:04:05Z"))]
    #[case("2026-01-31T03:04:05Z", Some("2026-01-31T03:04:05Z"))]
    #[case("2026-01-02T03:04:05.9Z", Some("2026-01-02T03:04:05Z"))]
    #[case("2026-01-02T05:04:05+02:00", Some("2026-01-02T03:04:05Z"))]
    #[case("2026-02-30T03:04:05Z", None)]
    #[case("2026-13-02T03:04:05Z", None)]
    #[case("2026-01-02T24:04:05Z", None)]
    fn a_time_is_kept_in_whole_seconds(#[case] text: &str, #[case] expected: Option<&str>) {
        assert_eq!(time(text, 0), expected.map(Value::from));
    }

    const SET: &str = "io.k8s.api.apps.v1.StatefulSet";
    const TEMPLATE: &str = "io.k8s.api.core.v1.PodTemplateSpec";

    fn read(name: &str, value: Value) -> Decoded {
        decode(name, &value).unwrap().unwrap()
    }

    #[test]
    fn empty_values_are_left_out_and_zero_structs_written() {
        let template = json!({"spec": {"hostNetwork": false, "volumes": [], "nodeSelector": {}, "containers": [
            {"name": "c", "image": "", "env": [{"name": "A", "value": ""}], "ports": null},
        ], "securityContext": {}, "terminationGracePeriodSeconds": 0}});
        assert_eq!(
            read(TEMPLATE, template).value,
            json!({"metadata": {}, "spec": {"containers": [{"name": "c", "env": [{"name": "A"}], "resources": {}}],
                "securityContext": {}, "terminationGracePeriodSeconds": 0}})
        );
    }

    #[test]
    fn a_new_set_has_the_status_that_its_type_cannot_leave_out() {
        let status = &read(SET, json!({"metadata": {"name": "db"}})).value["status"];
        assert_eq!(status, &json!({"replicas": 0, "availableReplicas": 0}));
    }

    #[test]
    fn a_condition_without_a_time_says_null() {
        let pod = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(
            read("io.k8s.api.core.v1.Pod", pod).value["status"]["conditions"][0],
            json!({"type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": null})
        );
    }

    #[test]
    fn unknown_fields_are_dropped_and_named() {
        let set = json!({"spec": {"replicaz": 3, "template": {"spec": {"containers": [{"name": "c", "imagee": "x"}]}}}});
        let decoded = read(SET, set);
        assert_eq!(
            decoded.unknown,
            ["spec.replicaz", "spec.template.spec.containers[0].imagee"]
        );
        assert_eq!(decoded.value["spec"].get("replicaz"), None);
    }

    #[test]
    fn a_value_of_another_type_is_refused_as_go_refuses_it() {
        let error = decode(SET, &json!({"spec": {"replicas": "3"}}))
            .unwrap()
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "json: cannot unmarshal string into Go struct field StatefulSetSpec.spec.replicas of type int32"
        );
    }

    #[test]
    fn what_is_not_base64_is_refused_where_it_stops_being_it() {
        let error = decode("io.k8s.api.core.v1.Secret", &json!({"data": {"a": "not base64"}}))
            .unwrap()
            .unwrap_err();
        assert_eq!(error.to_string(), "illegal base64 data at input byte 3");
    }

    #[test]
    fn times_are_utc_at_their_fields_precision() {
        assert_eq!(
            time("2026-01-01T02:00:00.5+02:00", 0),
            Some("2026-01-01T00:00:00Z".into())
        );
        assert_eq!(
            time("2026-01-01T00:00:00.5Z", 6),
            Some("2026-01-01T00:00:00.500000Z".into())
        );
        assert_eq!(time("yesterday", 0), None);
    }
}
