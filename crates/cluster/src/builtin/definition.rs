//! CustomResourceDefinitions.

use crate::json::{Value, json};

use super::fields::{fill, fill_text, flag, items, made, part, set, text};

pub(super) fn default(object: &mut Value) {
    let Some(spec) = made(object, "spec") else { return };
    if let Some(names) = made(spec, "names") {
        let kind = text(names, "kind").to_owned();
        if !kind.is_empty() {
            fill_text(names, "singular", &kind.to_lowercase());
            fill_text(names, "listKind", &format!("{kind}List"));
        }
    }
    fill(spec, "conversion", json!({"strategy": "None"}));
    let client = part(spec, "conversion")
        .and_then(|it| part(it, "webhook"))
        .and_then(|it| part(it, "clientConfig"));
    if let Some(service) = client.and_then(|it| part(it, "service")) {
        fill(service, "port", 443);
    }
    store_version(object);
}

pub(super) fn prepare_create(object: &mut Value) {
    let names = json!({"plural": "", "kind": ""});
    set(
        object,
        "status",
        json!({"conditions": null, "acceptedNames": names, "storedVersions": null}),
    );
    store_version(object);
}

/// Records that objects may be stored in the current storage version.
pub(super) fn store_version(object: &mut Value) {
    let storage = items(&object["spec"], "versions")
        .iter()
        .find(|version| flag(version, "storage"));
    let Some(name) = storage.map(|version| version["name"].clone()) else {
        return;
    };
    let Some(status) = made(object, "status") else {
        return;
    };
    let mut stored = items(status, "storedVersions").to_vec();
    if !stored.contains(&name) {
        stored.push(name);
        set(status, "storedVersions", stored);
    }
}
