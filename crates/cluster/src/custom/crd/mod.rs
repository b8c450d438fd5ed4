//! Validates CRDs.
//!
//! - here: group, names, scope and versions.
//! - `decode`: decodes schemas as typed fields.
//! - `version`: subresources, printer columns and selectable fields.
//! - `structural`: the rules for structural schemas.
//! - `keywords`: the rules for each keyword of a schema; `expressions`, `infer`, `types` and `locate` check CEL.
//! - `defaults`: defaults must be valid values.
//!
//! A CRD with one version is validated as if its schema were at the top of the spec, as on the real server, and errors have those paths.

mod decode;
mod defaults;
mod expressions;
mod infer;
mod keywords;
pub(super) mod locate;
mod structural;
mod types;
mod version;

use crate::json::Value;

pub(crate) use decode::decode_schemas;

use super::definition::{Names, is_storage};
use super::fault;
use super::schema::text;
use crate::names;
use crate::status::FieldError;

const APPROVAL: &str = "api-approved.kubernetes.io";

/// The errors of a new CRD. Its metadata is validated like any other, except for its name.
pub(super) fn check(crd: &Value) -> Vec<FieldError> {
    let mut errors = check_name(crd);
    errors.extend(check_spec(&crd["spec"]));
    errors.extend(check_stored(crd));
    errors.extend(check_approval(crd));
    errors.extend(check_preserve(&crd["spec"]));
    errors
}

/// The errors of a changed CRD.
pub(super) fn check_change(crd: &Value, old: &Value) -> Vec<FieldError> {
    let (spec, old_spec) = (&crd["spec"], &old["spec"]);
    let mut errors = check_spec(spec);
    let conditions = old["status"]["conditions"].as_array().into_iter().flatten();
    let established = conditions
        .into_iter()
        .any(|c| c["type"] == "Established" && c["status"] == "True");
    let fixed = ["/scope", "/names/kind"]
        .iter()
        .filter(|_| established)
        .chain(&["/group", "/names/plural"]);
    for pointer in fixed {
        let (new, old) = (spec.pointer(pointer), old_spec.pointer(pointer));
        if new != old {
            let place = format!("spec{}", pointer.replace('/', "."));
            errors.push(fault::invalid(
                place,
                Some(new.unwrap_or(&Value::Null)),
                "field is immutable",
            ));
        }
    }
    errors.extend(check_stored(crd));
    errors.extend(check_preserve(spec));
    errors
}

fn check_spec(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(check_group(spec));
    errors.extend(match spec["scope"].as_str().unwrap_or_default() {
        "" => Some(FieldError::required("spec.scope", "")),
        "Cluster" | "Namespaced" => None,
        _ => Some(FieldError::not_supported(
            "spec.scope",
            &spec["scope"],
            &["Cluster", "Namespaced"],
        )),
    });
    errors.extend(version::check_all(spec));
    errors.extend(check_names(&spec["names"]));
    errors
}

fn check_preserve(spec: &Value) -> Option<FieldError> {
    let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
    let preserves = spec["preserveUnknownFields"] == true;
    preserves.then(|| FieldError::invalid("spec.preserveUnknownFields", &true.into(), detail))
}

fn check_name(crd: &Value) -> Vec<FieldError> {
    let name = text(&crd["metadata"], "name");
    let mut wrong = names::domain(&name);
    if name
        != format!(
            "{}.{}",
            text(&crd["spec"]["names"], "plural"),
            text(&crd["spec"], "group")
        )
    {
        wrong.push(r#"must be spec.names.plural+"."+spec.group"#.to_owned());
    }
    wrong
        .into_iter()
        .map(|why| fault::invalid("metadata.name", Some(&name.as_str().into()), why))
        .collect()
}

fn check_group(spec: &Value) -> Option<FieldError> {
    let group = text(spec, "group");
    let wrong = names::domain(&group).join(",");
    let invalid = |why: &str| Some(fault::invalid("spec.group", Some(&group.as_str().into()), why));
    match group.as_str() {
        "" => Some(FieldError::required("spec.group", "")),
        _ if !wrong.is_empty() => invalid(&wrong),
        group if !group.contains('.') => invalid("should be a domain with at least one dot"),
        _ => None,
    }
}

fn check_names(names: &Value) -> Vec<FieldError> {
    let Names {
        plural,
        singular,
        kind,
        list_kind,
        short_names,
        categories,
    } = Names::read(names);
    let mut errors = Vec::new();
    let all = [
        ("plural", &plural),
        ("singular", &singular),
        ("kind", &kind),
        ("listKind", &list_kind),
    ];
    for (field, _) in all.iter().filter(|(_, name)| name.is_empty()) {
        errors.push(FieldError::required(format!("spec.names.{field}"), ""));
    }
    for (field, name) in all.iter().filter(|(_, name)| !name.is_empty()) {
        let mixed = matches!(*field, "kind" | "listKind");
        let wrong = if mixed {
            let wrong = names::dns_1035_label(&name.to_lowercase());
            wrong.map(|why| format!("may have mixed case, but should otherwise match: {why}"))
        } else {
            names::dns_1035_label(name)
        };
        let place = format!("spec.names.{field}");
        errors.extend(wrong.map(|why| fault::invalid(place, Some(&name.as_str().into()), why)));
    }
    let mut check_list = |field: &str, list: &[String]| {
        for (index, name) in list.iter().enumerate() {
            let place = format!("spec.names.{field}[{index}]");
            let wrong = names::dns_1035_label(name);
            errors.extend(wrong.map(|why| fault::invalid(place, Some(&name.as_str().into()), why)));
        }
    };
    check_list("shortNames", &short_names);
    check_list("categories", &categories);
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(fault::invalid(
            "spec.names.listKind",
            Some(&list_kind.into()),
            detail,
        ));
    }
    errors
}

/// The storage version must be among the stored ones, and a version that was ever stored must stay.
fn check_stored(crd: &Value) -> Vec<FieldError> {
    let versions = crd["spec"]["versions"]
        .as_array()
        .map_or(&[] as &[_], Vec::as_slice);
    let mut stored = crd["status"]["storedVersions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    // The server adds the first storage version itself.
    let first = versions
        .iter()
        .find(|version| is_storage(version))
        .map(|version| version["name"].clone());
    stored.extend(first.filter(|first| !stored.contains(first)));
    let place = "status.storedVersions";
    if stored.is_empty() {
        return vec![fault::invalid(
            place,
            Some(&Value::Null),
            "must have at least one stored version",
        )];
    }
    let shown = Value::from(stored.clone());
    let missing = versions
        .iter()
        .filter(|version| is_storage(version) && !stored.contains(&version["name"]));
    let missing = missing.map(|version| format!("must have the storage version {}", text(version, "name")));
    let mut errors: Vec<_> = missing
        .map(|detail| fault::invalid(place, Some(&shown), detail))
        .collect();
    for (index, version) in stored.iter().enumerate() {
        if !versions.iter().any(|known| known["name"] == *version) {
            let name = version.as_str().unwrap_or_default();
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(fault::invalid(format!("{place}[{index}]"), Some(version), detail));
        }
    }
    errors
}

/// Groups of the Kubernetes project require an approval annotation.
fn check_approval(crd: &Value) -> Option<FieldError> {
    let group = text(&crd["spec"], "group");
    let is_protected = |domain: &str| group == domain || group.ends_with(&format!(".{domain}"));
    if !is_protected("k8s.io") && !is_protected("kubernetes.io") {
        return None;
    }
    let place = format!("metadata.annotations[{APPROVAL}]");
    let approval = crd["metadata"]["annotations"]
        .get(APPROVAL)
        .and_then(Value::as_str)
        .unwrap_or_default();
    match approval {
        "" => {
            let see = "see https://github.com/kubernetes/enhancements/pull/1111";
            let detail = format!("protected groups must have approval annotation \"{APPROVAL}\", {see}");
            Some(FieldError::required(place, &detail))
        }
        approval if approval.starts_with("unapproved") || approval.contains("://") => None,
        approval => {
            let detail = format!(
                "protected groups must have approval annotation \"{APPROVAL}\" with either a URL or a reason starting with \"unapproved\", see https://github.com/kubernetes/enhancements/pull/1111"
            );
            Some(fault::invalid(place, Some(&approval.into()), detail))
        }
    }
}
