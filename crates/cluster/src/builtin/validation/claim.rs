//! Validates PersistentVolumeClaims and their updates.

use crate::json::{Value, json};
use serde::Serialize;
use serde_json::ser::{PrettyFormatter, Serializer};

use super::{metadata, resource, selector};
use crate::builtin::fields::{copy, has, items, part, same, text};
use crate::builtin::problems::{At, IMMUTABLE, Problems};
use crate::builtin::unified_diff::unified;
use crate::names;
use stateward_schema::Quantity;

pub(crate) const ACCESS_MODES: [&str; 4] = [
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
const SPEC_IS_IMMUTABLE: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

pub(crate) fn create(object: &Value, problems: &mut Problems) {
    metadata::of_kind("persistentvolumeclaims", object, problems);
    spec(&At::new("spec"), &object["spec"], problems);
}

/// Checks the spec of a claim or of a template for one.
pub(crate) fn spec(at: &At, spec: &Value, problems: &mut Problems) {
    let modes = items(spec, "accessModes");
    let modes_at = at.field("accessModes");
    if modes.is_empty() {
        problems.required(&modes_at, "at least 1 access mode is required");
    }
    selector::validate(&at.field("selector"), &spec["selector"], problems);
    for mode in modes
        .iter()
        .filter_map(Value::as_str)
        .filter(|mode| !ACCESS_MODES.contains(mode))
    {
        problems.not_supported(&modes_at, mode, &ACCESS_MODES);
    }
    let is_for_one = |mode: &Value| mode == "ReadWriteOncePod";
    let is_for_more = |mode: &Value| {
        mode.as_str()
            .is_some_and(|mode| ACCESS_MODES[..3].contains(&mode))
    };
    if modes.iter().any(is_for_one) && modes.iter().any(is_for_more) {
        problems.forbidden(&modes_at, "may not use ReadWriteOncePod with other access modes");
    }
    storage(
        &at.field("resources").key("storage"),
        &spec["resources"]["requests"],
        problems,
    );
    for name in ["storageClassName", "volumeAttributesClassName"] {
        let class = text(spec, name);
        if !class.is_empty() {
            problems.invalid_for(&at.field(name), class, names::dns_subdomain(class));
        }
        // The volume mode comes between the two.
        if name == "storageClassName" {
            mode(&at.field("volumeMode"), spec, problems);
            data_sources(at, spec, problems);
        }
    }
}

fn storage(at: &At, requests: &Value, problems: &mut Problems) {
    let size = &requests["storage"];
    if size.is_null() {
        problems.required(at, "");
    } else if !Quantity::of(size.as_str()).is_positive() {
        problems.invalid(at, size.clone(), "must be greater than zero");
    } else {
        resource::quantity(at, "storage", size, problems);
    }
}

fn mode(at: &At, spec: &Value, problems: &mut Problems) {
    if let Some(mode) = spec["volumeMode"]
        .as_str()
        .filter(|mode| !VOLUME_MODES.contains(mode))
    {
        problems.not_supported(at, mode, &VOLUME_MODES);
    }
}

fn data_sources(at: &At, spec: &Value, problems: &mut Problems) {
    for name in ["dataSource", "dataSourceRef"]
        .into_iter()
        .filter(|name| has(spec, name))
    {
        let (at, source) = (at.field(name), &spec[name]);
        for part in ["name", "kind"] {
            if text(source, part).is_empty() {
                problems.required(&at.field(part), "");
            }
        }
        if text(source, "apiGroup").is_empty() && text(source, "kind") != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            problems.invalid(&at, text(source, "kind"), detail);
        }
    }
    let (source, reference) = (&spec["dataSource"], &spec["dataSourceRef"]);
    if !source.is_object() || !reference.is_object() {
        return;
    }
    // The server means to show the path but shows an empty struct.
    if !text(reference, "namespace").is_empty() {
        problems.invalid_as(
            at,
            "{}",
            "may not be specified when dataSourceRef.namespace is specified",
        );
    } else if ["apiGroup", "kind", "name"]
        .iter()
        .any(|name| text(source, name) != text(reference, name))
    {
        problems.invalid_as(at, "{}", "must match dataSourceRef");
    }
}

pub(crate) fn update(old: &Value, new: &Value, problems: &mut Problems) {
    metadata::update_of_kind("persistentvolumeclaims", old, new, problems);
    create(new, problems);
    let (mut before, mut after) = (old["spec"].clone(), new["spec"].clone());
    // Binding sets the volume name once.
    if text(&before, "volumeName").is_empty() {
        copy(&after, &mut before, "volumeName");
    }
    if text(&new["status"], "phase") == "Bound" {
        copy(&before, &mut after, "volumeAttributesClassName");
        let size = before["resources"]["requests"]["storage"].clone();
        if let Some(requests) =
            part(&mut after, "resources").and_then(|resources| part(resources, "requests"))
        {
            crate::builtin::fields::set(requests, "storage", size);
        }
    }
    // A default class may be set later.
    if !has(&before, "storageClassName") {
        copy(&before, &mut after, "storageClassName");
    }
    if !same(&before, &after) {
        let compared = unified(&dumped(&before), &dumped(&after));
        problems.forbidden(&At::new("spec"), &format!("{SPEC_IS_IMMUTABLE}\n{compared}"));
    }
    let size = |object: &Value| Quantity::of(object["spec"]["resources"]["requests"]["storage"].as_str());
    if size(new) < size(old) && size(new) <= Quantity::of(old["status"]["capacity"]["storage"].as_str()) {
        let at = At::new("spec.resources.requests.storage");
        problems.forbidden(&at, "field can not be less than status.capacity");
    }
    if old["spec"]["volumeMode"] != new["spec"]["volumeMode"] {
        problems.invalid(
            &At::new("volumeMode"),
            new["spec"]["volumeMode"].clone(),
            IMMUTABLE,
        );
    }
}

/// A spec as the server prints its own struct, with other field names and their order.
fn dumped(spec: &Value) -> String {
    let source = |name: &str, is_reference: bool| {
        let source = &spec[name];
        if source.is_null() {
            return Value::Null;
        }
        let mut dumped = json!({"APIGroup": source["apiGroup"], "Kind": text(source, "kind"), "Name": text(source, "name")});
        if is_reference {
            dumped["Namespace"] = source["namespace"].clone();
        }
        dumped
    };
    let resources = &spec["resources"];
    let fields = [
        ("AccessModes", spec["accessModes"].clone()),
        ("Selector", spec["selector"].clone()),
        (
            "Resources",
            json!({"Limits": resources["limits"], "Requests": resources["requests"]}),
        ),
        ("VolumeName", text(spec, "volumeName").into()),
        ("StorageClassName", spec["storageClassName"].clone()),
        ("VolumeMode", spec["volumeMode"].clone()),
        ("DataSource", source("dataSource", false)),
        ("DataSourceRef", source("dataSourceRef", true)),
        (
            "VolumeAttributesClassName",
            spec["volumeAttributesClassName"].clone(),
        ),
    ];
    let fields = fields.map(|(name, value)| format!(" {name:?}: {}", indented(&value)));
    format!("{{\n{}\n}}", fields.join(",\n"))
}

/// JSON inside of a struct, one space for each level.
fn indented(value: &Value) -> String {
    let mut text = Vec::new();
    let format = PrettyFormatter::with_indent(b" ");
    let mut serializer = Serializer::with_formatter(&mut text, format);
    // Writing a Value to memory cannot fail.
    let _ = value.serialize(&mut serializer);
    String::from_utf8_lossy(&text).replace('\n', "\n ")
}

pub(crate) fn update_status(old: &Value, new: &Value, problems: &mut Problems) {
    metadata::update_of_kind("persistentvolumeclaims", old, new, problems);
    if items(&new["spec"], "accessModes").is_empty() {
        problems.required(&At::new("Spec.accessModes"), "");
    }
    for (name, amount) in crate::builtin::fields::entries(&new["status"], "capacity") {
        if Quantity::of(amount.as_str()).is_negative() {
            let at = At::new("status.capacity");
            let at = at.key(name);
            problems.invalid(&at, amount.clone(), "must be a valid resource quantity");
        }
    }
}
