//! Caches changes of ownership. Objects are written in the same few ways again and again, for example the status of every pod. The owners
//! after a write follow from the owners before, the writer, and which paths changed how, so the result is cached.

use std::sync::{Arc, LazyLock};

use super::managed::Write;
use super::managers::{Entry, Id, MOST_UPDATERS, Managers};
use super::owned::Owned;
use crate::hash::Table;
use parking_lot::{Mutex, MutexGuard};

/// All inputs of a change of ownership except the times, which only decide which of many managers are dropped.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Transition {
    before: Vec<(Id, Owned, Arc<str>)>,
    writer: Id,
    reset: &'static [&'static str],
    /// The changed paths and how each changed.
    trace: Vec<u8>,
}

/// The entries after a transition.
type Outcome = Arc<[(Id, Owned, Arc<str>, Since)]>;

/// The time of an entry.
#[derive(Clone, Copy)]
enum Since {
    Before,
    Now,
}

static KNOWN: LazyLock<Mutex<Table<Transition, Outcome>>> = LazyLock::new(Mutex::default);
/// The number of cached transitions.
const REMEMBERED: usize = 1024;
/// The maximum size of a cached transition's inputs, in bytes.
const LARGEST: usize = 16 * 1024;

impl Transition {
    /// `None` if the times matter as well, and if it is too large.
    pub(super) fn of(
        managers: &Managers,
        write: &Write<'_>,
        trace: impl FnOnce() -> Vec<u8>,
    ) -> Option<Self> {
        let entries = managers.iter();
        let owned: usize = entries.clone().map(|(_, entry)| entry.owned.text().len()).sum();
        if entries.clone().count() >= MOST_UPDATERS || owned > LARGEST {
            return None;
        }
        let trace = trace();
        (trace.len() <= LARGEST).then(|| Self {
            before: entries
                .map(|(id, entry)| (id.clone(), entry.owned.clone(), entry.api_version.clone()))
                .collect(),
            writer: Id::update(write.manager, write.api_version, write.subresource),
            reset: write.reset,
            trace,
        })
    }

    /// The managers after it, if it is cached.
    pub(super) fn outcome(&self, managers: &Managers, write: &Write<'_>) -> Option<Managers> {
        let outcome = known().get(self)?.clone();
        let now: Arc<str> = write.now.into();
        let mut after = Managers::default();
        for (id, owned, api_version, since) in outcome.iter() {
            let entry = Entry {
                owned: owned.clone(),
                api_version: api_version.clone(),
                time: match since {
                    Since::Now => Some(now.clone()),
                    Since::Before => managers.get(id).and_then(|entry| entry.time.clone()),
                },
            };
            after.insert(id.clone(), entry);
        }
        Some(after)
    }

    /// Caches the result, and whether the writer has gained anything.
    pub(super) fn remember(mut self, after: &Managers, has_gained: bool) {
        let entry = |(id, entry): (&Id, &Entry)| {
            let since = match has_gained && *id == self.writer {
                true => Since::Now,
                false => Since::Before,
            };
            (id.clone(), entry.owned.clone(), entry.api_version.clone(), since)
        };
        let outcome = after.iter().map(entry).collect();
        self.trace.shrink_to_fit();
        let mut known = known();
        if known.len() == REMEMBERED {
            known.clear();
        }
        known.insert(self, outcome);
    }
}

fn known() -> MutexGuard<'static, Table<Transition, Outcome>> {
    KNOWN.lock()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::json::{Value, json};
    use crate::patch::managed::whole::update;
    use crate::types::Shape;

    const LONG_AGO: &str = "2026-01-01T00:00:00Z";

    fn entry(manager: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": LONG_AGO, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": fields}})
    }

    /// The result of the same write at different times: computed once, then cached.
    #[rstest]
    #[case::gains_what_it_changes(json!({"x": "2", "y": "1"}), |now| vec![("two", LONG_AGO), ("one", now)])]
    #[case::gains_what_others_had(json!({"x": "1", "y": "2"}), |now| vec![("one", now)])]
    #[case::only_takes_away(json!({"x": "1"}), |_| vec![("one", LONG_AGO)])]
    #[case::changes_nothing(json!({"x": "1", "y": "1"}), |_| vec![("one", LONG_AGO), ("two", LONG_AGO)])]
    fn times_are_those_of_the_write_at_hand(
        #[case] data: Value,
        #[case] expected: impl Fn(&'static str) -> Vec<(&'static str, &'static str)>,
    ) {
        let managers = [
            entry("one", json!({".": {}, "f:x": {}})),
            entry("two", json!({"f:y": {}})),
        ];
        let old = json!({"data": {"x": "1", "y": "1"}, "metadata": {"uid": "u", "managedFields": managers}});
        // The first at the same second as the managers' own writes.
        for now in [LONG_AGO, "2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"] {
            let write = Write {
                manager: "one",
                subresource: "",
                api_version: "v1",
                kind: "ConfigMap",
                reset: &[],
                now,
            };
            let mut new = old.clone();
            new["data"] = data.clone();
            update(Some(&old), &mut new, &write, Shape::Unknown);
            let mut seen: Vec<_> = new["metadata"]["managedFields"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|entry| {
                    [&entry["time"], &entry["manager"]].map(|text| text.as_str().unwrap_or_default())
                })
                .collect();
            let mut expected: Vec<_> = expected(now)
                .into_iter()
                .map(|(manager, time)| [time, manager])
                .collect();
            seen.sort();
            expected.sort();
            assert_eq!(seen, expected, "at {now}");
        }
    }
}
