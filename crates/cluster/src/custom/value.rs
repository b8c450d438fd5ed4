//! Validates values against a schema: types, limits, enums and the logic of allOf, anyOf, oneOf and not.
//!
//! The order of checks and the messages are those of the OpenAPI validator in the real server, including its quirks. Of several failed
//! alternatives it reports the one that got furthest, which `matches` counts.

use crate::json::{Number, Value};

use super::correlate::Before;
use super::decode::{inside, joined};
use super::fault;
use super::format;
use super::number;
use super::outcome::Outcome;
use super::schema::{Additional, Bounds, Schema};
use crate::status::FieldError;

/// Checks a value at `at`. With `before`, errors in unchanged parts are ignored.
pub(super) fn check(value: &Value, schema: &Schema, at: &str, before: Option<Before<'_>>) -> Outcome {
    let mut outcome = checked(value, schema, at, before);
    if !outcome.is_valid() && before.is_some_and(|before| before.is_same(value)) {
        outcome.errors.clear();
    }
    outcome
}

fn checked(value: &Value, schema: &Schema, at: &str, before: Option<Before<'_>>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut step = |found: Outcome| {
        outcome.merge(found);
        outcome.matches += 1;
    };
    if value.is_null() {
        outcome.merge(check_type(value, schema, at));
        outcome.merge(check_allowed(value, schema, at));
        return outcome;
    }
    if !schema.types().is_empty() || !effective_format(schema).is_empty() {
        step(check_type(value, schema, at));
    }
    step(check_logic(value, schema, at));
    match value {
        Value::String(text) => {
            step(check_text(text, &schema.bounds, at));
            if format::is_checked(effective_format(schema)) {
                step(check_format(text, effective_format(schema), at));
            }
        }
        Value::Number(number) => step(check_number(number, schema, at)),
        Value::Array(items) => step(check_items(items, schema, at, before)),
        _ => {}
    }
    step(check_allowed(value, schema, at));
    if let Value::Object(fields) = value {
        step(check_fields(fields, schema, at, before));
    }
    outcome.matches += 1;
    outcome
}

/// The format, if it applies to this type.
fn effective_format(schema: &Schema) -> &str {
    let known = match schema.types() {
        ["integer"] => matches!(schema.format.as_str(), "int32" | "int64"),
        ["number"] => matches!(schema.format.as_str(), "float" | "double"),
        [] | ["string"] | [_, _] => format::is_checked(&schema.format),
        _ => false,
    };
    if known { &schema.format } else { "" }
}

fn check_type(value: &Value, schema: &Schema, at: &str) -> Outcome {
    let (types, format) = (schema.types(), effective_format(schema));
    let mut outcome = Outcome::default();
    let mut refuse = |wanted: &str, found: &str| {
        let sentence = format!("{at} in body must be of type {wanted}: {}", fault::quoted(found));
        outcome.add(&sentence, fault::wrong_type(at, found, &sentence));
    };
    let (kind, kind_format) = match value {
        Value::Null => {
            if !types.is_empty() && !schema.nullable {
                refuse(&types.join(","), "null");
            } else {
                outcome.matches += 1;
            }
            return outcome;
        }
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
    };
    let wanted = |kind: &str| types.contains(&kind);
    let whole = matches!(value, Value::Number(number) if kind == "number" && number::is_whole(number))
        && wanted("integer");
    let widened = kind == "integer" && wanted("number");
    let textual = matches!(value, Value::String(_) | Value::Array(_));
    let numeric = wanted("number") || wanted("integer");
    let fits = wanted(kind) || whole || widened;
    if !textual && !format.is_empty() && !fits && kind_format != format {
        refuse(format, kind_format);
    } else if !numeric && !format.is_empty() && textual {
        // A string with a format is checked by its format.
        outcome.matches += 1;
    } else if !fits {
        refuse(&types.join(","), kind);
    } else {
        outcome.matches += 1;
    }
    outcome
}

fn check_allowed(value: &Value, schema: &Schema, at: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let same = |allowed: &Value| match (allowed, value) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (allowed, value) => !value.is_null() && allowed == value,
    };
    if !schema.allowed.is_empty() && !schema.allowed.iter().any(same) {
        let listed: Vec<_> = schema.allowed.iter().map(fault::plain).collect();
        let sentence = format!("{at} in body should be one of [{}]", listed.join(" "));
        outcome.add(sentence, fault::not_supported(at, value, &schema.allowed));
    }
    outcome
}

fn check_text(text: &str, bounds: &Bounds, at: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let length = text.chars().count() as u64;
    let shown = || Value::from(text);
    if let Some(limit) = bounds.max_length.filter(|limit| length > *limit) {
        outcome.add(
            format!("{at} in body should be at most {limit} chars long"),
            fault::too_long(at, limit),
        );
    } else if let Some(limit) = bounds.min_length.filter(|limit| length < *limit) {
        let sentence = format!("{at} in body should be at least {limit} chars long");
        outcome.add(&sentence, fault::invalid(at, Some(&shown()), &sentence));
    } else if let Some(pattern) = bounds.pattern.as_ref().filter(|pattern| !pattern.matches(text)) {
        let sentence = format!("{at} in body should match '{}'", pattern.source);
        outcome.add(&sentence, fault::invalid(at, Some(&shown()), &sentence));
    }
    outcome
}

fn check_format(text: &str, format: &str, at: &str) -> Outcome {
    let mut outcome = Outcome::default();
    if format::fits(format, text) == Some(false) {
        let sentence = format!("{at} in body must be of type {format}: {}", fault::quoted(text));
        outcome.add(&sentence, fault::wrong_type(at, text, &sentence));
    }
    outcome
}

fn check_number(number: &Number, schema: &Schema, at: &str) -> Outcome {
    let kind = match schema.types() {
        [kind @ ("integer" | "number")] => kind,
        _ => "",
    };
    let format = if kind.is_empty() {
        ""
    } else {
        effective_format(schema)
    };
    let mut outcome = Outcome {
        matches: 1,
        ..Outcome::default()
    };
    if let Some(sentence) = number::out_of_range(number, kind, format, at) {
        outcome.add_nowhere(sentence);
    }
    for (sentence, value) in number::out_of_bounds(number, &schema.bounds, kind, format, at) {
        match value {
            Some(value) => outcome.add(&sentence, fault::invalid(at, Some(&value), &sentence)),
            None => outcome.add_nowhere(sentence),
        }
    }
    outcome
}

fn check_items(items: &[Value], schema: &Schema, at: &str, before: Option<Before<'_>>) -> Outcome {
    let mut outcome = Outcome::default();
    if let Some(inner) = &schema.items {
        for (index, item) in items.iter().enumerate() {
            let before = before.and_then(|before| before.element(item));
            outcome.merge(check(item, inner, &inside(at, index.to_string()), before));
        }
    }
    let size = items.len();
    let Bounds {
        min_items,
        max_items,
        unique_items,
        ..
    } = schema.bounds;
    if let Some(limit) = min_items.filter(|limit| (size as u64) < *limit) {
        let sentence = format!("{at} in body should have at least {limit} items");
        outcome.add(&sentence, fault::invalid(at, Some(&size.into()), &sentence));
    }
    if let Some(limit) = max_items.filter(|limit| size as u64 > *limit) {
        outcome.add(
            format!("{at} in body should have at most {limit} items"),
            fault::too_many(at, size, limit),
        );
    }
    if unique_items
        && items
            .iter()
            .enumerate()
            .any(|(index, item)| items[..index].contains(item))
    {
        let sentence = format!("{at} in body shouldn't contain duplicates");
        outcome.add(&sentence, fault::invalid(at, Some(&"".into()), &sentence));
    }
    outcome.matches += 1;
    outcome
}

fn check_fields(fields: &crate::json::Map, schema: &Schema, at: &str, before: Option<Before<'_>>) -> Outcome {
    let mut outcome = Outcome::default();
    let size = fields.len();
    if let Some(limit) = schema
        .bounds
        .min_properties
        .filter(|limit| (size as u64) < *limit)
    {
        let sentence = format!("{at} in body should have at least {limit} properties");
        outcome.add(&sentence, fault::invalid(at, Some(&size.into()), &sentence));
    }
    if let Some(limit) = schema.bounds.max_properties.filter(|limit| size as u64 > *limit) {
        let sentence = format!("{at} in body should have at most {limit} properties");
        outcome.add(sentence, fault::too_many(at, size, limit));
    }
    let child = |name: &str, value: &Value, known: &Schema, place: &str| {
        // Old and new always have the same kind and apiVersion, so these two never ratchet.
        let before = before.filter(|_| !(at.is_empty() && matches!(name, "kind" | "apiVersion")));
        check(value, known, place, before.and_then(|before| before.member(name)))
    };
    for (name, value) in fields
        .iter()
        .filter(|(name, _)| !schema.properties.contains_key(name.as_str()))
    {
        match &schema.additional {
            Additional::Allowed(false) => {
                let sentence = format!("{at}.{name} in body is a forbidden property");
                outcome.add(
                    &sentence,
                    fault::invalid(at, Some(&name.as_str().into()), &sentence),
                );
            }
            Additional::Of(known) => outcome.merge(child(name, value, known, &format!("{at}.{name}"))),
            _ => {}
        }
    }
    for (name, known) in &schema.properties {
        if let Some(value) = fields.get(name) {
            outcome.merge(child(name, value, known, &joined(at, name)));
        }
    }
    for name in schema
        .required
        .iter()
        .filter(|name| !fields.contains_key(name.as_str()))
    {
        let place = joined(at, name);
        outcome.add(
            format!("{at}.{name} in body is required"),
            FieldError::required(place, ""),
        );
    }
    outcome
}

/// The branches of allOf, anyOf, oneOf and not. Their contents do not ratchet.
fn check_logic(value: &Value, schema: &Schema, at: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let quoted = || fault::quoted(at);
    let branch = |schema: &Schema| checked(value, schema, at, None);
    if !schema.any_of.is_empty() {
        match chosen(&schema.any_of, branch) {
            Chosen {
                first_success: Some(success),
                ..
            } => outcome.merge(success),
            Chosen { best_failure, .. } => {
                outcome.add_nowhere(format!("{} must validate at least one schema (anyOf)", quoted()));
                best_failure
                    .into_iter()
                    .for_each(|failure| outcome.merge(failure));
            }
        }
    }
    if !schema.one_of.is_empty() {
        let Chosen {
            first_success,
            best_failure,
            successes,
        } = chosen(&schema.one_of, branch);
        match (successes, first_success) {
            (1, Some(success)) => outcome.merge(success),
            (0, _) => {
                outcome.add_nowhere(format!(
                    "{} must validate one and only one schema (oneOf). Found none valid",
                    quoted()
                ));
                best_failure
                    .into_iter()
                    .for_each(|failure| outcome.merge(failure));
            }
            (valid, _) => {
                let found = format!("Found {valid} valid alternatives");
                outcome.add_nowhere(format!(
                    "{} must validate one and only one schema (oneOf). {found}",
                    quoted()
                ));
            }
        }
    }
    if !schema.all_of.is_empty() {
        let mut valid = 0;
        for result in schema.all_of.iter().map(branch) {
            valid += usize::from(result.is_valid());
            outcome.merge(result);
        }
        if valid != schema.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            outcome.add_nowhere(format!(
                "{} must validate all the schemas (allOf){none}",
                quoted()
            ));
        }
    }
    if let Some(not) = &schema.not
        && branch(not).is_valid()
    {
        outcome.add_nowhere(format!("{} must not validate the schema (not)", quoted()));
    }
    outcome.matches += 1;
    outcome
}

struct Chosen {
    first_success: Option<Outcome>,
    /// The failure that got furthest, before any success.
    best_failure: Option<Outcome>,
    successes: usize,
}

fn chosen(branches: &[Schema], check: impl Fn(&Schema) -> Outcome) -> Chosen {
    let mut chosen = Chosen {
        first_success: None,
        best_failure: None,
        successes: 0,
    };
    for result in branches.iter().map(check) {
        if result.is_valid() {
            chosen.successes += 1;
            chosen.first_success.get_or_insert(result);
        } else if chosen
            .best_failure
            .as_ref()
            .is_none_or(|best| result.matches > best.matches)
        {
            chosen.best_failure = Some(result);
        }
    }
    chosen
}
