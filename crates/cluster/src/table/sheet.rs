//! Columns, rows, and reading the fields that go into them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::since;

/// How one kind is printed.
pub(super) struct Sheet {
    pub(super) columns: &'static [Column],
    pub(super) cells: fn(&Value, Timestamp) -> Vec<Value>,
    /// What marks a row, such as a pod that has ended.
    pub(super) conditions: Option<fn(&Value) -> Option<Value>>,
}

/// A column's heading.
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    description: &'static str,
    /// 1 for columns that only `-o wide` shows.
    priority: u8,
}

impl Column {
    pub(super) const fn text(name: &'static str, description: &'static str) -> Self {
        Self {
            name,
            kind: "string",
            format: "",
            description,
            priority: 0,
        }
    }

    pub(super) const fn integer(name: &'static str, description: &'static str) -> Self {
        Self {
            kind: "integer",
            ..Self::text(name, description)
        }
    }

    pub(super) const fn boolean(name: &'static str, description: &'static str) -> Self {
        Self {
            kind: "boolean",
            ..Self::text(name, description)
        }
    }

    pub(super) const fn date(name: &'static str, description: &'static str) -> Self {
        Self {
            kind: "date",
            ..Self::text(name, description)
        }
    }

    /// Shown by `-o wide` only.
    pub(super) const fn wide(name: &'static str, description: &'static str) -> Self {
        Self {
            priority: 1,
            ..Self::text(name, description)
        }
    }

    /// The same column, shown by `-o wide` only.
    pub(super) const fn when_wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    pub(super) fn to_value(&self) -> Value {
        let Self {
            name,
            kind,
            format,
            description,
            priority,
        } = self;
        json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
    }
}

pub(super) const NAME: Column = Column {
    format: "name",
    ..Column::text("Name", "The object's name.")
};
pub(super) const AGE: Column = Column::text("Age", "How long ago the object was created.");
pub(super) const CONTAINERS: Column =
    Column::wide("Containers", "The names of the containers in the pod template.");
pub(super) const IMAGES: Column = Column::wide("Images", "The images of the containers in the pod template.");
pub(super) const SELECTOR: Column = Column::wide("Selector", "Which pods are meant.");

/// For kinds without columns of their own.
pub(super) static PLAIN: Sheet = Sheet {
    columns: &[NAME, Column::date("Created At", "When the object was created.")],
    cells: |object, _| {
        let created = text(object, "/metadata/creationTimestamp");
        vec![
            name(object),
            if created.is_empty() {
                "0001-01-01T00:00:00Z"
            } else {
                created
            }
            .into(),
        ]
    },
    conditions: None,
};

pub(super) fn name(object: &Value) -> Value {
    text(object, "/metadata/name").into()
}

/// How long ago an object was created.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    since(text(object, "/metadata/creationTimestamp"), now).into()
}

/// The text at a JSON pointer; empty when there is none.
pub(super) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The text at a JSON pointer, or what stands in for it.
pub(super) fn text_or<'v>(object: &'v Value, pointer: &str, otherwise: &'v str) -> &'v str {
    match text(object, pointer) {
        "" => otherwise,
        text => text,
    }
}

pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    object
        .pointer(pointer)
        .and_then(Value::as_i64)
        .unwrap_or_default()
}

pub(super) fn list<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object
        .pointer(pointer)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

pub(super) fn is_set(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).is_some_and(|value| !value.is_null())
}

/// The status of the first condition of a type.
pub(super) fn condition<'v>(object: &'v Value, kind: &str) -> Option<&'v str> {
    let found = list(object, "/status/conditions")
        .iter()
        .find(|condition| condition["type"] == kind)?;
    found["status"].as_str()
}

/// The names and the images of a template's containers.
pub(super) fn containers(object: &Value, pointer: &str) -> [Value; 2] {
    let joined = |field: &str| {
        let texts: Vec<_> = list(object, pointer)
            .iter()
            .map(|container| container[field].as_str().unwrap_or_default())
            .collect();
        Value::from(texts.join(","))
    };
    [joined("name"), joined("image")]
}
