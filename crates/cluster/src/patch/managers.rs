//! The `managedFields` of an object: which manager owns which fields, since when.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::json::{Map, Name, Value};

use super::fields::FieldSet;
use super::owned::Owned;

/// The maximum number of updaters of an object; older ones are merged.
pub(super) const MOST_UPDATERS: usize = 10;
/// The name of the merged updaters.
const ANCIENT: &str = "ancient-changes";
/// How a manager writes. Sorted as the real server sorts: appliers first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Operation {
    Apply,
    Update,
}

/// The identity of an entry, in strings shared with the previous object. An applier is the same whatever version it applies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id {
    pub(super) manager: Arc<str>,
    pub(super) operation: Operation,
    api_version: Arc<str>,
    pub(super) subresource: Arc<str>,
}

impl Id {
    pub(super) fn update(manager: &str, api_version: &str, subresource: &str) -> Self {
        Self::new(manager, Operation::Update, api_version, subresource)
    }

    pub(super) fn apply(manager: &str, subresource: &str) -> Self {
        Self::new(manager, Operation::Apply, "", subresource)
    }

    /// The same for a Scale, which has another version.
    pub(super) fn in_version(&self, api_version: &str) -> Self {
        match self.operation {
            Operation::Apply => self.clone(),
            Operation::Update => Self {
                api_version: api_version.into(),
                ..self.clone()
            },
        }
    }

    /// Whether an entry, once written, reads back with this identity.
    fn is_of(&self, entry: &Entry) -> bool {
        self.operation == Operation::Apply || self.api_version == entry.api_version
    }

    fn new(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> Self {
        let manager = if manager.is_empty() { "unknown" } else { manager };
        Self {
            manager: manager.into(),
            operation,
            api_version: api_version.into(),
            subresource: subresource.into(),
        }
    }
}

/// `"kubectl" with subresource "status" using apps/v1`, as managers appear in messages.
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

/// The fields of one manager.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) owned: Owned,
    pub(super) api_version: Arc<str>,
    pub(super) time: Option<Arc<str>>,
}

impl Entry {
    /// The order by age. Timestamps as the server writes them sort as text.
    fn by_time(&self, other: &Self) -> Ordering {
        fn plain(entry: &Entry) -> Option<&str> {
            let time = entry.time.as_deref()?;
            let digits = time.starts_with(|first: char| first.is_ascii_digit());
            (time.len() == "2026-01-01T00:00:00Z".len() && time.ends_with('Z') && digits).then_some(time)
        }
        match (plain(self), plain(other)) {
            (Some(ours), Some(theirs)) => ours.cmp(theirs),
            _ => self.seconds().cmp(&other.seconds()),
        }
    }

    /// The time in seconds, the precision of the sort order. A missing time is the earliest.
    pub(super) fn seconds(&self) -> i64 {
        let time = self
            .time
            .as_deref()
            .and_then(|time| time.parse::<jiff::Timestamp>().ok());
        time.map_or(0, jiff::Timestamp::as_second)
    }
}

/// All managers of an object, by identity. Most objects have few, for which a map would be wasteful.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Managers {
    entries: Vec<(Id, Entry)>,
}

impl Managers {
    /// Parses the `managedFields` of an object.
    pub(super) fn of(object: &Value) -> Result<Self, String> {
        let mut managers = Self::default();
        for (index, entry) in list_of(object).iter().enumerate() {
            let (id, entry) = read(index, entry)?;
            managers.insert(id, entry);
        }
        Ok(managers)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// As the next write reads them. A write to `/scale` can leave two entries of the same updater, of which the later one counts: never
    /// that of the scale, which has no time.
    pub(super) fn read_again(&self) -> Self {
        let mut managers = self.clone();
        managers.entries.retain(|(id, entry)| id.is_of(entry));
        managers
    }

    /// Renames the entries of a Scale to the identity that they read back with, unless it is taken.
    pub(super) fn adopt_entries_of_scale(&mut self) {
        let (own, foreign) = std::mem::take(&mut self.entries)
            .into_iter()
            .partition(|(id, entry)| id.is_of(entry));
        self.entries = own;
        for (id, entry) in foreign {
            let adopted = Id {
                api_version: entry.api_version.clone(),
                ..id.clone()
            };
            let id = if self.get(&adopted).is_none() { adopted } else { id };
            self.insert(id, entry);
        }
    }

    fn place(&self, id: &Id) -> Result<usize, usize> {
        self.entries.binary_search_by(|(known, _)| known.cmp(id))
    }

    pub(super) fn get(&self, id: &Id) -> Option<&Entry> {
        self.place(id).ok().map(|at| &self.entries[at].1)
    }

    pub(super) fn get_mut(&mut self, id: &Id) -> Option<&mut Entry> {
        self.place(id).ok().map(|at| &mut self.entries[at].1)
    }

    pub(super) fn insert(&mut self, id: Id, entry: Entry) {
        match self.place(&id) {
            Ok(at) => self.entries[at].1 = entry,
            Err(at) => self.entries.insert(at, (id, entry)),
        }
    }

    pub(super) fn remove(&mut self, id: &Id) -> Option<Entry> {
        self.place(id).ok().map(|at| self.entries.remove(at).1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Id, &Entry)> + Clone {
        self.entries.iter().map(|(id, entry)| (id, entry))
    }

    /// Removes this set from all managers except some, and drops empty ones.
    pub(super) fn subtract_unless(&mut self, other: &FieldSet, spared: impl Fn(&Id) -> bool) {
        for (id, entry) in &mut self.entries {
            if !spared(id) {
                entry.owned.subtract(&[other]);
            }
        }
        self.forget_the_dispossessed();
    }

    /// Removes these sets from all managers, and drops empty ones.
    pub(super) fn subtract(&mut self, others: &[&FieldSet]) {
        for (_, entry) in &mut self.entries {
            entry.owned.subtract(others);
        }
        self.forget_the_dispossessed();
    }

    /// Drops managers that own nothing.
    pub(super) fn forget_the_dispossessed(&mut self) {
        self.entries.retain(|(_, entry)| !entry.owned.is_empty());
    }

    /// Drops managers whose version the object cannot be converted to here: the other group of an Event.
    pub(super) fn forget_other_versions(&mut self, api_version: &str) {
        self.entries
            .retain(|(_, entry)| *entry.api_version == *api_version);
    }

    /// Merges the oldest updaters of a version into one until there are few enough.
    pub(super) fn forget_the_oldest(&mut self) {
        let updaters = self.iter().filter(|(id, _)| id.operation == Operation::Update);
        if updaters.clone().count() <= MOST_UPDATERS {
            return;
        }
        let mut updaters: Vec<_> = updaters
            .map(|(id, entry)| (entry.seconds(), id.clone()))
            .collect();
        updaters.sort();
        let mut count = updaters.len();
        let mut first_of_version: BTreeMap<Arc<str>, Id> = BTreeMap::new();
        for (_, id) in updaters {
            if count <= MOST_UPDATERS {
                return;
            }
            let Some(entry) = self.get(&id).cloned() else {
                continue;
            };
            let Some(first) = first_of_version.get(&entry.api_version) else {
                first_of_version.insert(entry.api_version, id);
                continue;
            };
            let bucket = Id::update(ANCIENT, &entry.api_version, "");
            if self.get(&bucket).is_none()
                && let Some(oldest) = self.remove(first)
            {
                self.insert(bucket.clone(), oldest);
            }
            if let Some(merged) = self.get_mut(&bucket) {
                merged.owned.add(FieldSet::clone(&entry.owned.set()));
                merged.time = entry.time;
            }
            self.remove(&id);
            count -= 1;
        }
    }

    /// The entries as the real server sorts them.
    fn sorted(&self) -> Vec<(&Id, &Entry)> {
        let mut entries: Vec<_> = self.iter().collect();
        entries.sort_by(|(left, a), (right, b)| {
            let by_time = left.operation.cmp(&right.operation).then_with(|| a.by_time(b));
            let by_name = by_time.then_with(|| left.manager.cmp(&right.manager));
            by_name
                .then_with(|| a.api_version.cmp(&b.api_version))
                .then_with(|| left.subresource.cmp(&right.subresource))
        });
        entries
    }

    /// Whether others are the same in the same order, except for their times.
    pub(super) fn is_same_but_for_times(&self, others: &Self) -> bool {
        let same = |((id, entry), (other, its)): ((&Id, &Entry), (&Id, &Entry))| {
            (id, &entry.owned, &entry.api_version) == (other, &its.owned, &its.api_version)
        };
        self.entries.len() == others.entries.len() && self.sorted().into_iter().zip(others.sorted()).all(same)
    }

    /// Writes the `managedFields` of an object.
    pub(crate) fn write(&self, object: &mut Value) {
        let entries: Vec<_> = self.sorted().into_iter().map(written).collect();
        put(object, (!entries.is_empty()).then_some(entries));
    }

    /// The text of `managedFields`; none if there are no managers.
    pub(crate) fn text(&self) -> Option<String> {
        let mut out = String::with_capacity(
            self.entries
                .iter()
                .map(|(_, entry)| entry.owned.text().len() + 256)
                .sum(),
        );
        for (id, entry) in self.sorted() {
            out.push(if out.is_empty() { '[' } else { ',' });
            let mut before = '{';
            for (name, value) in texts(id, entry) {
                out.push(std::mem::replace(&mut before, ','));
                out.push('"');
                out.push_str(name);
                out.push_str("\":");
                // The fields are encoded already; of the rest, only names can need JSON escapes.
                match name {
                    "fieldsV1" => out.push_str(value),
                    _ if value
                        .bytes()
                        .all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')) =>
                    {
                        out.push('"');
                        out.push_str(value);
                        out.push('"');
                    }
                    _ => out.push_str(&Value::from(value).to_string()),
                }
            }
            out.push('}');
        }
        (!out.is_empty()).then(|| out + "]")
    }
}

/// Removes the `managedFields` from an object.
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
            metadata.insert("managedFields".into(), entries.into());
        }
        (Some(Value::Object(metadata)), None) => {
            metadata.remove("managedFields");
        }
        (_, Some(entries)) => {
            let metadata = Map::from_iter([(Name::from("managedFields"), entries.into())]);
            object.insert("metadata".into(), metadata.into());
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
        manager: text("manager").into(),
        operation,
        api_version: if operation == Operation::Apply {
            Arc::default()
        } else {
            api_version.into()
        },
        subresource: text("subresource").into(),
    };
    let owned = Owned::of(FieldSet::read(&entry["fieldsV1"])?);
    let time = entry["time"].as_str().map(Arc::from);
    Ok((
        id,
        Entry {
            owned,
            api_version: api_version.into(),
            time,
        },
    ))
}

fn written((id, entry): (&Id, &Entry)) -> Value {
    let fields = texts(id, entry).map(|(name, text)| {
        let value = match name {
            // It was encoded from a set, so it parses.
            "fieldsV1" => serde_json::from_str(text).unwrap_or_default(),
            _ => text.into(),
        };
        (name.to_owned(), value)
    });
    Value::Object(fields.collect())
}

/// The fields of an entry, by name. Empty ones are omitted.
fn texts<'e>(id: &'e Id, entry: &'e Entry) -> impl Iterator<Item = (&'static str, &'e str)> {
    let operation = match id.operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    let fields = [
        ("apiVersion", &*entry.api_version),
        ("fieldsType", "FieldsV1"),
        ("fieldsV1", entry.owned.text()),
        ("manager", &id.manager),
        ("operation", operation),
        ("subresource", &id.subresource),
        ("time", entry.time.as_deref().unwrap_or_default()),
    ];
    fields.into_iter().filter(|(_, text)| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    /// From the real server: with the eleventh updater, the oldest two are merged.
    #[test]
    fn the_oldest_updaters_become_one() {
        let entry = |n: u32| {
            json!({"manager": format!("m{n:02}"), "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
                "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {(format!("f:k{n}")): {}}}})
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

    /// From the real server: appliers first, then by time, then by name; a missing time is the earliest.
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
