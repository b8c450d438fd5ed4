//! One element of a path into an object, in the notation of `fieldsV1`.

use std::cmp::Ordering;
use std::fmt;

use crate::json::{Map, Name, Value, is_plain, write_text};

use crate::go;

/// An element: a field, or one item of a list.
#[derive(Clone, Debug)]
pub(crate) enum Element {
    /// `f:spec`
    Field(Name),
    /// `k:{"name":"a"}`: the item with these fields, sorted by name.
    Key(Vec<(Name, Value)>),
    /// `v:"x"`: the item that is this scalar.
    Value(Value),
    /// `i:0`
    Index(i64),
}

impl Element {
    pub(crate) fn field(name: impl Into<Name>) -> Self {
        Self::Field(name.into())
    }

    /// Parses `f:spec`. `None` for a type of element from a later version: upstream drops those.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, String> {
        let bytes = text.as_bytes();
        if bytes.len() < 2 {
            return Err("key must be 2 characters long:".to_owned());
        }
        let (Some(kind), Some(rest)) = (text.get(..2), text.get(2..)) else {
            return Err(format!("missing colon: {text}"));
        };
        let element = match kind {
            "f:" => Self::field(rest),
            "v:" => Self::Value(serde_json::from_str(rest).map_err(|error| error.to_string())?),
            "k:" => {
                let fields: Map = serde_json::from_str(rest).map_err(|error| error.to_string())?;
                Self::Key(sorted(fields))
            }
            "i:" => Self::Index(
                rest.parse()
                    .map_err(|_| format!("strconv.Atoi: parsing {rest:?}: invalid syntax"))?,
            ),
            _ if bytes[1] == b':' => return Ok(None),
            _ => return Err(format!("missing colon: {text}")),
        };
        Ok(Some(element))
    }

    /// `f:spec`, as in `fieldsV1`.
    pub(crate) fn spelled(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(fields) => {
                let fields: Map = fields.iter().cloned().collect();
                format!("k:{}", go::json(&fields.into()))
            }
            Self::Value(value) => format!("v:{}", go::json(value)),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    /// Appends the same as a JSON string.
    pub(in crate::patch) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Field(name) if is_plain(name) => {
                out.extend_from_slice(b"\"f:");
                out.extend_from_slice(name.as_bytes());
                out.push(b'"');
            }
            // Nearly all keys are names and types, which need no escapes except for the quotes.
            Self::Key(fields) if fields.iter().all(is_plain_key) => {
                out.extend_from_slice(b"\"k:{");
                for (index, (name, value)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    let value = value.as_str().unwrap_or_default();
                    for part in ["\\\"", name, "\\\":\\\"", value, "\\\""] {
                        out.extend_from_slice(part.as_bytes());
                    }
                }
                out.extend_from_slice(b"}\"");
            }
            _ => write_text(out, &self.spelled()),
        }
    }

    /// Upstream sorts fields before keys, keys before values, values before indexes.
    fn rank(&self) -> u8 {
        match self {
            Self::Field(_) => 0,
            Self::Key(_) => 1,
            Self::Value(_) => 2,
            Self::Index(_) => 3,
        }
    }
}

/// Whether a key's value is a string, and neither it nor its name needs escapes in Go or JSON.
fn is_plain_key((name, value): &(Name, Value)) -> bool {
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&'))
    };
    is_plain(name) && value.as_str().is_some_and(is_plain)
}

fn sorted(fields: Map) -> Vec<(Name, Value)> {
    let mut fields: Vec<(Name, Value)> = fields.into_iter().collect();
    fields.sort_by(|(left, _), (right, _)| left.cmp(right));
    fields
}

/// `.spec.containers[name="a"].image`, as paths appear in messages.
impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| format!("{name}={}", shown(value)))
                    .collect();
                write!(f, "[{}]", fields.join(","))
            }
            Self::Value(value) => write!(f, "[={}]", shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => format!("{text:?}"),
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| format!("{key}={}", shown(value)))
            .collect(),
        other => go::plain(other),
    }
}

impl Ord for Element {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Field(left), Self::Field(right)) => left.cmp(right),
            (Self::Key(left), Self::Key(right)) => {
                let pairs = left.iter().zip(right);
                let first =
                    pairs.map(|(left, right)| left.0.cmp(&right.0).then_with(|| compare(&left.1, &right.1)));
                first
                    .into_iter()
                    .find(|order| order.is_ne())
                    .unwrap_or_else(|| left.len().cmp(&right.len()))
            }
            (Self::Value(left), Self::Value(right)) => compare(left, right),
            (Self::Index(left), Self::Index(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Element {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Element {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Element {}

/// Upstream's order of values: numbers by size, then strings, booleans, lists, maps and null. Two values are the same exactly if they
/// compare as equal; `1` and `1.0` are.
pub(crate) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            _ => left
                .as_f64()
                .partial_cmp(&right.as_f64())
                .unwrap_or(Ordering::Equal),
        },
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let first = left
                .iter()
                .zip(right)
                .map(|(left, right)| compare(left, right))
                .find(|order| order.is_ne());
            first.unwrap_or_else(|| left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => {
            let (left, right) = (sorted(left.clone()), sorted(right.clone()));
            Element::Key(left).cmp(&Element::Key(right))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

/// Whether two values are equal by upstream's rules.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        _ => compare(left, right).is_eq(),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}
