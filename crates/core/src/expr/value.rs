//! The values of expressions.
//!
//! The kinds are Go's where a condition can distinguish them: an `int` is not a `float64` as a key of a map, a list of floats from
//! Prometheus is not a list of `any` from JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

/// The maximum nesting of lists and maps.
pub(super) const DEEPEST: u16 = 200;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Nil,
    Bool(bool),
    /// Go's `int`: a whole number literal.
    Int(i64),
    /// Go's `int64`: the result of `asInt`.
    Long(i64),
    /// Go's `uint8`: the result of indexing a string.
    Byte(u8),
    Float(f64),
    Text(Arc<str>),
    List(Arc<List>),
    Map(Arc<Map>),
    Time(Time),
    /// In nanoseconds.
    Duration(i64),
}

/// A time, and its offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time {
    pub(super) at: Timestamp,
    /// In seconds.
    pub(super) offset: i32,
}

/// The Go type of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListKind {
    /// `[]any`
    Any,
    /// `[]any` that is nil: equal to nil, and empty.
    Absent,
    /// `[]float64`
    Floats,
    /// `[]int`
    Ints,
    /// `[]string`
    Texts,
    /// `[2]any`
    Pair,
    /// `[][2]any`
    Pairs,
}

/// A list.
#[derive(Debug)]
pub(super) struct List {
    pub(super) kind: ListKind,
    /// Levels of lists and maps, this one included.
    pub(super) depth: u16,
    pub(super) items: Vec<Value>,
}

/// The Go type of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MapKind {
    /// `map[string]any`
    Fields,
    /// `map[any]any`, from `fromPairs`
    Any,
    /// `map[any][]any`, from `groupBy`
    Groups,
}

/// A map.
#[derive(Debug)]
pub(super) struct Map {
    pub(super) kind: MapKind,
    /// Levels of lists and maps, this one included.
    pub(super) depth: u16,
    pub(super) entries: BTreeMap<Key, Value>,
}

/// The key of a map.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Nil,
    Bool(bool),
    Int(i64),
    Long(i64),
    Byte(u8),
    /// The bits of the number.
    Float(u64),
    Duration(i64),
    Text(Arc<str>),
}

impl Key {
    /// `None` for values that cannot be keys.
    pub(super) fn of(value: &Value) -> Option<Self> {
        Some(match value {
            Value::Nil => Self::Nil,
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Int(int) => Self::Int(*int),
            Value::Long(int) => Self::Long(*int),
            Value::Byte(byte) => Self::Byte(*byte),
            // Zero has two bit patterns but is one key.
            Value::Float(float) => Self::Float(if *float == 0.0 { 0 } else { float.to_bits() }),
            Value::Text(text) => Self::Text(text.clone()),
            Value::Duration(nanoseconds) => Self::Duration(*nanoseconds),
            Value::List(_) | Value::Map(_) | Value::Time(_) => return None,
        })
    }

    pub(super) fn value(&self) -> Value {
        match self {
            Self::Nil => Value::Nil,
            Self::Bool(bool) => Value::Bool(*bool),
            Self::Int(int) => Value::Int(*int),
            Self::Long(int) => Value::Long(*int),
            Self::Byte(byte) => Value::Byte(*byte),
            Self::Float(bits) => Value::Float(f64::from_bits(*bits)),
            Self::Text(text) => Value::Text(text.clone()),
            Self::Duration(nanoseconds) => Value::Duration(*nanoseconds),
        }
    }
}

impl Value {
    pub(super) fn text(text: impl AsRef<str>) -> Self {
        Self::Text(Arc::from(text.as_ref()))
    }

    /// `None` if it is nested too deeply.
    pub(super) fn list(kind: ListKind, items: Vec<Self>) -> Option<Self> {
        let depth = depth_above(&items)?;
        Some(Self::List(Arc::new(List { kind, depth, items })))
    }

    /// `None` if it is nested too deeply.
    pub(super) fn map(kind: MapKind, entries: BTreeMap<Key, Self>) -> Option<Self> {
        let depth = depth_above(entries.values())?;
        Some(Self::Map(Arc::new(Map { kind, depth, entries })))
    }

    /// A list of elements that contain no list or map.
    pub(super) fn flat(kind: ListKind, items: Vec<Self>) -> Self {
        Self::List(Arc::new(List {
            kind,
            depth: 1,
            items,
        }))
    }

    /// A nil list.
    pub(super) fn absent() -> Self {
        Self::flat(ListKind::Absent, Vec::new())
    }

    pub(super) fn is_nil(&self) -> bool {
        match self {
            Self::Nil => true,
            Self::List(list) => list.kind == ListKind::Absent,
            _ => false,
        }
    }

    /// The name of its type for messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Nil => "nil",
            Self::Bool(_) => "a bool",
            Self::Int(_) | Self::Long(_) | Self::Byte(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Time(_) => "a time",
            Self::Duration(_) => "a duration",
        }
    }

    /// The value of a whole number.
    pub(super) fn whole(&self) -> Option<i64> {
        match self {
            Self::Int(int) | Self::Long(int) => Some(*int),
            Self::Byte(byte) => Some(i64::from(*byte)),
            _ => None,
        }
    }

    /// The value of any number.
    pub(super) fn float(&self) -> Option<f64> {
        match self {
            Self::Float(float) => Some(*float),
            _ => self.whole().map(|int| int as f64),
        }
    }

    /// A number as an index or a count: floats are truncated.
    pub(super) fn index(&self) -> Option<i64> {
        match self {
            Self::Float(float) => Some(cut(*float)),
            _ => self.whole(),
        }
    }
}

/// Equality of constants in code; not the `==` of the language.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nil, Self::Nil) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) | (Self::Long(a), Self::Long(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::List(a), Self::List(b)) => a.kind == b.kind && a.items == b.items,
            _ => false,
        }
    }
}

fn depth_above<'a>(values: impl IntoIterator<Item = &'a Value>) -> Option<u16> {
    let below = values
        .into_iter()
        .map(|value| match value {
            Value::List(list) => list.depth,
            Value::Map(map) => map.depth,
            _ => 0,
        })
        .max()
        .unwrap_or(0);
    (below < DEEPEST).then_some(below + 1)
}

/// A float as a whole number, truncated like Go on amd64: an overflow gives the smallest number.
pub(super) fn cut(float: f64) -> i64 {
    // 2^63 is the first float that overflows; the bounds are exact.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&float) {
        float as i64
    } else {
        i64::MIN
    }
}
