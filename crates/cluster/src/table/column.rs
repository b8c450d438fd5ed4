//! Columns, and the fields in their cells. A kind is printed with a list of columns.

use crate::json::{Value, json};
use jiff::Timestamp;

use super::age::since;
use super::selector::of_selector;

/// A column: its heading and its cells.
#[derive(Clone, Copy)]
pub(super) struct Column {
    name: &'static str,
    kind: &'static str,
    format: &'static str,
    description: &'static str,
    /// 1 for columns that only `-o wide` shows.
    priority: u8,
    cell: Cell,
}

/// The content of a column, by JSON pointer or computed from the object.
#[derive(Clone, Copy)]
pub(super) enum Cell {
    /// Empty if there is none.
    Text(&'static str),
    /// With a replacement for an empty one.
    TextOr(&'static str, &'static str),
    /// 0 if there is none.
    Number(&'static str),
    Made(fn(&Value) -> Value),
    /// Depends on the current time.
    Timed(fn(&Value, Timestamp) -> Value),
}

impl Column {
    pub(super) const fn text(name: &'static str, description: &'static str, cell: Cell) -> Self {
        Self {
            name,
            kind: "string",
            format: "",
            description,
            priority: 0,
            cell,
        }
    }

    pub(super) const fn integer(name: &'static str, description: &'static str, cell: Cell) -> Self {
        Self {
            kind: "integer",
            ..Self::text(name, description, cell)
        }
    }

    pub(super) const fn boolean(name: &'static str, description: &'static str, cell: Cell) -> Self {
        Self {
            kind: "boolean",
            ..Self::text(name, description, cell)
        }
    }

    /// Shown by `-o wide` only.
    pub(super) const fn wide(name: &'static str, description: &'static str, cell: Cell) -> Self {
        Self::text(name, description, cell).when_wide()
    }

    /// The same column, shown by `-o wide` only.
    pub(super) const fn when_wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    /// The same column with other cells.
    pub(super) const fn showing(self, cell: Cell) -> Self {
        Self { cell, ..self }
    }

    pub(super) fn to_value(self) -> Value {
        let Self {
            name,
            kind,
            format,
            description,
            priority,
            cell: _,
        } = self;
        json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
    }

    pub(super) fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match self.cell {
            Cell::Text(at) => text(object, at).into(),
            Cell::TextOr(at, otherwise) => text_or(object, at, otherwise).into(),
            Cell::Number(at) => number(object, at).into(),
            Cell::Made(make) => make(object),
            Cell::Timed(make) => make(object, now),
        }
    }
}

pub(super) const NAME: Column = Column {
    format: "name",
    ..Column::text("Name", "The object's name.", Cell::Text("/metadata/name"))
};
pub(super) const AGE: Column = Column::text("Age", "How long ago the object was created.", Cell::Timed(age));
pub(super) const CONTAINERS: Column = Column::wide(
    "Containers",
    "The names of the containers in the pod template.",
    Cell::Made(|object| of_containers(object, TEMPLATE, "name")),
);
pub(super) const IMAGES: Column = Column::wide(
    "Images",
    "The images of the containers in the pod template.",
    Cell::Made(|object| of_containers(object, TEMPLATE, "image")),
);
pub(super) const SELECTOR: Column = Column::wide(
    "Selector",
    "Which pods are meant.",
    Cell::Made(|object| of_selector(object.pointer("/spec/selector")).into()),
);

const TEMPLATE: &str = "/spec/template/spec/containers";

/// For kinds without columns of their own.
pub(super) static PLAIN: &[Column] = &[
    NAME,
    Column {
        kind: "date",
        ..Column::text(
            "Created At",
            "When the object was created.",
            Cell::TextOr("/metadata/creationTimestamp", "0001-01-01T00:00:00Z"),
        )
    },
];

/// How long ago an object was created.
pub(super) fn age(object: &Value, now: Timestamp) -> Value {
    since(text(object, "/metadata/creationTimestamp"), now).into()
}

/// The string at a JSON pointer; empty if there is none.
pub(super) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The string at a JSON pointer, or its replacement.
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

/// The names or the images of a template's containers.
pub(super) fn of_containers(object: &Value, pointer: &str, field: &str) -> Value {
    let texts = list(object, pointer)
        .iter()
        .map(|container| container[field].as_str().unwrap_or_default());
    texts.collect::<Vec<_>>().join(",").into()
}
