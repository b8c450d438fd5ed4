//! Stored objects, and access to the fields that every kind has.

use std::ops::Deref;
use std::sync::Arc;

use crate::json::{Map, Value};

use crate::patch::Managers;

/// A stored object: its content, and separately the owners of its fields.
///
/// `managedFields` would be nearly half of a pod, and only clients that read the whole object need it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    pub(crate) value: Arc<Value>,
    pub(crate) managers: Arc<Managers>,
}

impl Object {
    pub(crate) fn new(value: Value, managers: impl Into<Arc<Managers>>) -> Self {
        Self {
            value: Arc::new(value),
            managers: managers.into(),
        }
    }

    /// Whether both share the same allocation.
    pub(crate) fn shares(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.value, &other.value) && Arc::ptr_eq(&self.managers, &other.managers)
    }

    /// The object with its `managedFields`.
    pub(crate) fn whole(&self) -> Value {
        let mut value = Value::clone(&self.value);
        self.managers.write(&mut value);
        value
    }
}

/// An object without field owners.
impl From<Value> for Object {
    fn from(value: Value) -> Self {
        Self::new(value, Managers::default())
    }
}

impl Deref for Object {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

/// The name of a new object, or its `generateName`.
pub(crate) fn name_or_prefix(object: &Value) -> &str {
    match name(object) {
        "" => object["metadata"]["generateName"].as_str().unwrap_or_default(),
        name => name,
    }
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

pub(crate) fn resource_version(object: &Value) -> &str {
    text(object, "resourceVersion")
}

pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap_or(0)
}

/// The controller of the object, if it has one.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)
}

/// The UID of its controller; empty for an orphan.
pub(crate) fn controller_uid(object: &Value) -> &str {
    controller(object)
        .and_then(|owner| owner["uid"].as_str())
        .unwrap_or_default()
}

pub(crate) fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

pub(crate) fn has_finalizers(object: &Value) -> bool {
    finalizers(object).next().is_some()
}

pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// The object's metadata as a map, created if it is missing.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map {
    map_at(object, "metadata")
}

/// The map at a field, created if it is missing.
pub(crate) fn map_at<'o>(object: &'o mut Value, field: &str) -> &'o mut Map {
    map_in(map(object), field)
}

pub(crate) fn map_in<'o>(fields: &'o mut Map, field: &str) -> &'o mut Map {
    map(fields.entry(field).or_insert(Value::Null))
}

pub(crate) fn map(value: &mut Value) -> &mut Map {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("made an object above"),
    }
}

fn text<'o>(object: &'o Value, field: &str) -> &'o str {
    object["metadata"][field].as_str().unwrap_or_default()
}
