//! Who owns the replicas after a write to `/scale`.

use serde_json::Value;

use super::element::{Element, same};
use super::fields::FieldSet;
use super::managed::Write;
use super::managers::{Entry, Id, Managers};
use super::owned::Owned;
use crate::object::Object;

/// A write to `/scale`: whoever owned the replicas loses them to the writer, if they changed. `replicas` is
/// the path of the field in the object. Upstream forgets the time of such an entry.
pub(crate) fn scale(old: &Object, new: &Value, write: &Write<'_>, replicas: &[&str]) -> Managers {
    let at = |object: &Value| replicas.iter().fold(object.clone(), |at, name| at[*name].clone());
    let mut managers = Managers::clone(&old.managers);
    if !managers.is_empty() && !same(&at(old), &at(new)) {
        let path: Vec<_> = replicas.iter().copied().map(Element::field).collect();
        let mut set = FieldSet::default();
        set.insert(&path);
        managers.subtract(&[&set]);
        let entry = Entry {
            owned: Owned::of(set),
            api_version: write.api_version.to_owned(),
            time: None,
        };
        managers.insert(
            Id::update(write.manager, write.api_version, write.subresource),
            entry,
        );
    }
    managers
}

#[cfg(test)]
mod tests {
    use super::super::managed::whole::scale;
    use super::*;
    use serde_json::json;

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
