//! Resources inside a custom object: they need a type, and valid metadata.

use crate::json::Value;

use super::decode::{inside, joined};
use super::fault;
use super::schema::Schema;
use crate::names;
use crate::status::FieldError;

/// The errors of the embedded resources of an object.
pub(super) fn check(value: &Value, schema: &Schema, at: &str, errors: &mut Vec<FieldError>) {
    if !schema.inside.embedded {
        return;
    }
    match value {
        Value::Object(fields) => {
            if schema.embedded {
                check_type(value, at, errors);
                check_metadata(value, at, errors);
            }
            for (name, value) in fields {
                if let Some(known) = schema.properties.get(name.as_str()) {
                    check(value, known, &joined(at, name), errors);
                } else if let Some(known) = schema.additional() {
                    check(value, known, &inside(at, name), errors);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = &schema.items {
                for (index, item) in items.iter().enumerate() {
                    check(item, inner, &inside(at, index.to_string()), errors);
                }
            }
        }
        _ => {}
    }
}

fn check_type(resource: &Value, at: &str, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let place = joined(at, name);
        let Some(value) = resource.get(name) else {
            errors.push(FieldError::required(place, ""));
            continue;
        };
        let detail = match value.as_str() {
            None => Some("must be a string".to_owned()),
            Some("") => Some("must not be empty".to_owned()),
            Some(version) if name == "apiVersion" => (version.matches('/').count() > 1)
                .then(|| format!("unexpected GroupVersion string: {version}")),
            Some(kind) => names::dns_1035_label(&kind.to_lowercase())
                .map(|why| format!("may have mixed case, but should otherwise match: {why}")),
        };
        errors.extend(detail.map(|detail| fault::invalid(place, Some(value), detail)));
    }
}

fn check_metadata(resource: &Value, at: &str, errors: &mut Vec<FieldError>) {
    let Some(metadata) = resource.get("metadata") else {
        return;
    };
    let at = joined(at, "metadata");
    for name in ["generateName", "name"] {
        let Some(value) = metadata.get(name).filter(|value| *value != "") else {
            continue;
        };
        let text = value.as_str().unwrap_or_default();
        let wrong = if name == "name" {
            names::path_segment(text)
        } else {
            names::path_segment_prefix(text)
        };
        let place = format!("{at}.{name}");
        errors.extend(
            wrong
                .into_iter()
                .map(|why| fault::invalid(&place, Some(value), why)),
        );
    }
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        let place = format!("{at}.labels");
        errors.extend(
            names::qualified_name(key)
                .into_iter()
                .map(|why| fault::invalid(&place, Some(&key.as_str().into()), why)),
        );
        let wrong = names::label_value(value.as_str().unwrap_or_default());
        errors.extend(
            wrong
                .into_iter()
                .map(|why| fault::invalid(&place, Some(value), why)),
        );
    }
    for key in metadata["annotations"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key)
    {
        let wrong = names::qualified_name(&key.to_lowercase()).into_iter();
        errors.extend(
            wrong.map(|why| fault::invalid(format!("{at}.annotations"), Some(&key.as_str().into()), why)),
        );
    }
}
