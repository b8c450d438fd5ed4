//! The `managedFields` of an object: who owns what, since when.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::FieldSet;

/// How many updaters an object remembers; older ones become one.
const MOST_UPDATERS: usize = 10;
/// What they become.
const ANCIENT: &str = "ancient-changes";
/// How a manager writes. Sorted as the real server sorts: appliers first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// Whose an entry is. An applier is the same whatever version it applies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Id {
    pub(super) manager: String,
    pub(super) operation: Operation,
    api_version: String,
    pub(super) subresource: String,
}

impl Id {
    pub(super) fn update(manager: &str, api_version: &str, subresource: &str) -> Self {
        Self::new(manager, Operation::Update, api_version, subresource)
    }

    pub(super) fn apply(manager: &str, subresource: &str) -> Self {
        Self::new(manager, Operation::Apply, "", subresource)
    }

    fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        Self {
            manager: manager.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
        }
    }
}

/// `"kubectl" with subresource "status" using apps/v1`, as messages name a manager.
impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.manager)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        match self.operation {
            Operation::Update => write!(f, " using {}", self.api_version),
            Operation::Apply => Ok(()),
        }
    }
}

/// What a manager owns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) set: FieldSet,
    pub(super) api_version: String,
    pub(super) time: Option<String>,
}

impl Entry {
    /// The time in seconds, which is how precisely entries are sorted. No time is the earliest.
    pub(super) fn seconds(&self) -> i64 {
        let time = self
            .time
            .as_deref()
            .and_then(|time| time.parse::<jiff::Timestamp>().ok());
        time.map_or(0, jiff::Timestamp::as_second)
    }
}

/// All managers of an object.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Managers {
    pub(super) entries: BTreeMap<Id, Entry>,
}

impl Managers {
    /// Reads the `managedFields` of an object.
    pub(super) fn of(object: &Value) -> Result<Self, String> {
        let mut entries = BTreeMap::new();
        for (index, entry) in list_of(object).iter().enumerate() {
            let (id, entry) = read(index, entry)?;
            entries.insert(id, entry);
        }
        Ok(Self { entries })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets those who wrote in a version that the object cannot be shown in from here: the other group of an Event.
    pub(super) fn forget_other_versions(&mut self, api_version: &str) {
        self.entries.retain(|_, entry| entry.api_version == api_version);
    }

    /// Merges the oldest updaters of a version into one until there are few enough.
    pub(super) fn forget_the_oldest(&mut self) {
        let updaters = self
            .entries
            .iter()
            .filter(|(id, _)| id.operation == Operation::Update);
        if updaters.clone().count() <= MOST_UPDATERS {
            return;
        }
        let mut updaters: Vec<_> = updaters
            .map(|(id, entry)| (entry.seconds(), id.clone()))
            .collect();
        updaters.sort();
        let mut count = updaters.len();
        let mut first_of_version: BTreeMap<String, Id> = BTreeMap::new();
        for (_, id) in updaters {
            if count <= MOST_UPDATERS {
                return;
            }
            let Some(entry) = self.entries.get(&id).cloned() else {
                continue;
            };
            let Some(first) = first_of_version.get(&entry.api_version) else {
                first_of_version.insert(entry.api_version, id);
                continue;
            };
            let bucket = Id::update(ANCIENT, &entry.api_version, "");
            if !self.entries.contains_key(&bucket)
                && let Some(oldest) = self.entries.remove(first)
            {
                self.entries.insert(bucket.clone(), oldest);
            }
            if let Some(merged) = self.entries.get_mut(&bucket) {
                merged.set = entry.set.union(&merged.set);
                merged.time = entry.time;
            }
            self.entries.remove(&id);
            count -= 1;
        }
    }

    /// Writes the `managedFields` of an object, sorted as the real server sorts them.
    pub(super) fn write(&self, object: &mut Value) {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by(|(left, a), (right, b)| {
            let by_time = left
                .operation
                .cmp(&right.operation)
                .then_with(|| a.seconds().cmp(&b.seconds()));
            let by_name = by_time.then_with(|| left.manager.cmp(&right.manager));
            by_name
                .then_with(|| a.api_version.cmp(&b.api_version))
                .then_with(|| left.subresource.cmp(&right.subresource))
        });
        let entries: Vec<_> = entries
            .into_iter()
            .map(|(id, entry)| written(id, entry))
            .collect();
        put(object, (!entries.is_empty()).then_some(entries));
    }
}

/// Takes the `managedFields` out of an object.
pub(super) fn clear(object: &mut Value) {
    put(object, None);
}

/// The raw entries of an object.
pub(super) fn list_of(object: &Value) -> &[Value] {
    object["metadata"]["managedFields"]
        .as_array()
        .map_or(&[], Vec::as_slice)
}

fn put(object: &mut Value, entries: Option<Vec<Value>>) {
    let Value::Object(object) = object else { return };
    match (object.get_mut("metadata"), entries) {
        (Some(Value::Object(metadata)), Some(entries)) => {
            metadata.insert("managedFields".to_owned(), entries.into());
        }
        (Some(Value::Object(metadata)), None) => {
            metadata.remove("managedFields");
        }
        (_, Some(entries)) => {
            let metadata = Map::from_iter([("managedFields".to_owned(), entries.into())]);
            object.insert("metadata".to_owned(), metadata.into());
        }
        (_, None) => {}
    }
}

fn read(index: usize, entry: &Value) -> Result<(Id, Entry), String> {
    let text = |name: &str| entry[name].as_str().unwrap_or_default();
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType") {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {index}")),
        other => {
            return Err(format!(
                "invalid fieldsType {other:?} in managed fields entry {index}"
            ));
        }
    }
    let id = Id {
        manager: text("manager").to_owned(),
        operation,
        api_version: if operation == Operation::Apply {
            String::new()
        } else {
            api_version.to_owned()
        },
        subresource: text("subresource").to_owned(),
    };
    let set = FieldSet::read(&entry["fieldsV1"])?;
    let time = entry["time"].as_str().map(str::to_owned);
    Ok((
        id,
        Entry {
            set,
            api_version: api_version.to_owned(),
            time,
        },
    ))
}

fn written(id: &Id, entry: &Entry) -> Value {
    let operation = match id.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    let mut fields = Map::new();
    let mut put = |name: &str, text: &str| {
        if !text.is_empty() {
            fields.insert(name.to_owned(), text.into());
        }
    };
    put("manager", &id.manager);
    put("operation", operation);
    put("apiVersion", &entry.api_version);
    put("time", entry.time.as_deref().unwrap_or_default());
    put("fieldsType", "FieldsV1");
    put("subresource", &id.subresource);
    fields.insert("fieldsV1".to_owned(), entry.set.to_value());
    fields.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// From the real server: of the eleventh updater on, the oldest two become one.
    #[test]
    fn the_oldest_updaters_become_one() {
        let entry = |n: u32| {
            json!({"manager": format!("m{n:02}"), "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {format!("f:k{n}"): {}}}})
        };
        let mut object = json!({"metadata": {"managedFields": (0..11).map(entry).collect::<Vec<_>>()}});
        let mut managers = Managers::of(&object).unwrap();
        managers.forget_the_oldest();
        managers.write(&mut object);
        let names: Vec<_> = list_of(&object)
            .iter()
            .map(|entry| entry["manager"].as_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "ancient-changes",
                "m02",
                "m03",
                "m04",
                "m05",
                "m06",
                "m07",
                "m08",
                "m09",
                "m10"
            ]
        );
        assert_eq!(
            list_of(&object)[0]["fieldsV1"],
            json!({"f:data": {"f:k0": {}, "f:k1": {}}})
        );
    }

    /// From the real server: appliers first, then by time, then by name; no time is the earliest.
    #[test]
    fn entries_are_sorted() {
        let entry = |manager: &str, operation: &str, time: Option<&str>| {
            json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "time": time,
                "fieldsV1": {"f:data": {}}})
        };
        let (early, late) = (Some("2026-01-01T00:00:00Z"), Some("2026-01-02T00:00:00Z"));
        let mut object = json!({"metadata": {"managedFields": [
            entry("a", "Update", late), entry("c", "Update", early), entry("b", "Update", early),
            entry("z", "Apply", early), entry("y", "Apply", None),
        ]}});
        Managers::of(&object).unwrap().write(&mut object);
        let names: Vec<_> = list_of(&object)
            .iter()
            .map(|entry| entry["manager"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["y", "z", "b", "c", "a"]);
    }
}
