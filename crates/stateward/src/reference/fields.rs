//! Renders a schema as tables: one for the object, and one for each nested object.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray,
};

use super::cell;

/// The tables of an object at `path`, with headings for nested objects. Required fields and defaults are shown only for what users write.
pub(super) fn tables(path: &str, schema: &JSONSchemaProps) -> String {
    let written = path.starts_with("spec");
    let mut page = String::from("| field | type | |\n|---|---|---|\n");
    let required = schema.required.clone().unwrap_or_default();
    let mut below = String::new();
    for (name, field) in schema.properties.iter().flatten() {
        let needed = if required.contains(name) {
            "**needed**. "
        } else {
            ""
        };
        let about = cell(field.description.as_deref().unwrap_or_default());
        page.push_str(&format!(
            "| `{name}` | {} | {needed}{about}{} |\n",
            kind(field),
            limits(field, written)
        ));
        let (path, inner) = inside(&format!("{path}.{name}"), field);
        if inner.properties.is_some() {
            below.push_str(&format!("\n### {path}\n\n"));
            below.push_str(&tables(&path, inner));
        }
    }
    page + &below
}

/// The schema of a list's items, or the schema itself.
fn inside<'s>(path: &str, schema: &'s JSONSchemaProps) -> (String, &'s JSONSchemaProps) {
    match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => inside(&format!("{path}[]"), item),
        _ => (path.to_owned(), schema),
    }
}

fn kind(schema: &JSONSchemaProps) -> String {
    if schema.x_kubernetes_int_or_string == Some(true) {
        return "number or text".into();
    }
    let (path, inner) = inside("", schema);
    let listed = path.len() / 2;
    let kind = match (inner.type_.as_deref(), inner.format.as_deref()) {
        (Some("string"), Some("date-time")) => "time",
        (Some("string"), _) => "text",
        (Some("integer" | "number"), _) => "number",
        (Some("boolean"), _) => "bool",
        (Some("object"), _) => "object",
        _ => "anything",
    };
    "list of ".repeat(listed) + kind
}

fn limits(schema: &JSONSchemaProps, written: bool) -> String {
    let mut said = String::new();
    let values: Vec<_> = schema.enum_.iter().flatten().collect();
    // A nullable field has null among its values.
    let values = values.iter().filter_map(|value| value.0.as_str());
    let values: Vec<_> = values.map(|value| format!("`{value}`")).collect();
    if !values.is_empty() {
        said.push_str(&format!(" One of {}.", values.join(", ")));
    }
    let numbers = schema.x_kubernetes_int_or_string != Some(true);
    // The limits of a 32-bit integer are not worth showing.
    let told = |bound: Option<f64>| bound.filter(|bound| numbers && bound.abs() < f64::from(i32::MAX));
    match (told(schema.minimum), told(schema.maximum)) {
        (Some(least), Some(most)) => said.push_str(&format!(" {least} to {most}.")),
        (Some(least), None) => said.push_str(&format!(" {least} or more.")),
        (None, Some(most)) => said.push_str(&format!(" At most {most}.")),
        (None, None) => {}
    }
    if let Some(default) = schema.default.as_ref().filter(|_| written) {
        said.push_str(&format!(" Unless given: `{}`.", default.0));
    }
    said
}
