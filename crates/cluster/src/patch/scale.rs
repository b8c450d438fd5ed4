//! The owners of the replicas after a write to `/scale`.

use crate::json::Value;

use super::element::Element;
use super::fields::FieldSet;
use super::managed::Write;
use super::managers::{Entry, Id, Managers};
use super::owned::Owned;
use crate::object::Object;

/// The API version of a Scale.
const SCALE_VERSION: &str = "autoscaling/v1";

/// A write to `/scale`. The owners of the replicas are converted to those of a Scale, to which the write is an ordinary update, and then
/// back. `replicas` is the path of the field in the object.
///
/// All of this is as upstream: a Scale omits zero replicas, so scaling to zero leaves them without an owner; an update does not give an
/// owner to fields without one; and as the identity of an updater includes the version, an owner that stays comes back with another
/// identity, without a time, and loses the replicas from its own entry.
pub(crate) fn scale(old: &Object, new: &Value, write: &Write<'_>, replicas: &[&str]) -> Managers {
    let path: Vec<_> = replicas.iter().copied().map(Element::field).collect();
    let mut set = FieldSet::default();
    set.insert(&path);
    let at = |object: &Value| {
        let value = replicas.iter().fold(object, |at, name| &at[*name]);
        value.as_i64().unwrap_or(0)
    };
    let (before, after) = (at(old), at(new));

    let mut managers = old.managers.read_again();
    let mut owners: Vec<Id> = managers
        .iter()
        .filter(|(_, entry)| entry.owned.set().has(&path))
        .map(|(id, _)| id.in_version(SCALE_VERSION))
        .collect();
    if before != after && !owners.is_empty() {
        owners.clear();
        if after != 0 {
            owners.push(Id::update(write.manager, SCALE_VERSION, write.subresource));
        }
    }

    managers.subtract_unless(&set, |id| owners.contains(id));
    for owner in owners {
        // A manager that lost nothing keeps its entry unchanged.
        if managers
            .get(&owner)
            .is_none_or(|entry| !entry.owned.set().has(&path))
        {
            let entry = Entry {
                owned: Owned::of(set.clone()),
                api_version: write.api_version.into(),
                time: None,
            };
            managers.insert(owner, entry);
        }
    }
    managers.adopt_entries_of_scale();
    managers
}

#[cfg(test)]
mod tests {
    use super::super::managed::whole::scale;
    use super::*;
    use crate::json::json;

    fn entry(fields: Value) -> Value {
        json!({"manager": "one", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    /// From the real server: the entry of a scale has no time and comes first.
    #[test]
    fn a_scale_takes_the_replicas() {
        let old = json!({"metadata": {"managedFields": [entry(json!({"f:spec": {"f:replicas": {}, "f:x": {}}}))]},
            "spec": {"replicas": 1}});
        let mut new = json!({"metadata": {}, "spec": {"replicas": 2}});
        let write = Write {
            manager: "sc",
            subresource: "scale",
            api_version: "v1",
            kind: "Thing",
            reset: &[],
            now: "",
        };
        scale(&old, &mut new, &write, &["spec", "replicas"]);
        let scaled = json!({"manager": "sc", "operation": "Update", "apiVersion": "v1", "subresource": "scale",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}});
        assert_eq!(
            new["metadata"]["managedFields"],
            json!([scaled, entry(json!({"f:spec": {"f:x": {}}}))])
        );
    }
}
