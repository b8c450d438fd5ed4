//! The expressions of rules: they must parse, type-check against their schema, and return a bool.

use crate::json::Value;

use super::infer::infer;
use super::structural::list;
use super::types::Type;
use crate::custom::rules::{parse, uses_old_self};
use crate::custom::schema::{Schema, flag, text};
use crate::custom::{fault, field_path};
use crate::status::FieldError;

const RULES: &str = "x-kubernetes-validations";
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];

/// The errors in the expressions at one node.
pub(super) fn check(node: &Value, at: &str, resource: bool, no_old_self: Option<&str>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if list(node, RULES).next().is_none() {
        return errors;
    }
    let schema = Schema::read(node);
    for (index, rule) in list(node, RULES) {
        let place = |name: &str| format!("{at}.{RULES}[{index}].{name}");
        let mut refuse = |name: &str, detail: String| {
            let message = format!("Invalid value: {}: {detail}", as_go_struct(rule));
            errors.push(FieldError {
                field: place(name),
                reason: "FieldValueInvalid",
                message,
            });
        };
        let optional = flag(rule, "optionalOldSelf");
        let source = text(rule, "rule");
        let kind = match typed(&source, &schema, resource, optional) {
            Ok(kind) => kind,
            Err(why) => {
                refuse("rule", format!("compilation failed: {why}"));
                continue;
            }
        };
        if !matches!(kind, Type::Bool | Type::Dyn) {
            refuse("rule", "cel expression must evaluate to a bool".into());
            continue;
        }
        let expression = text(rule, "messageExpression");
        if !expression.trim().is_empty() {
            match typed(&expression, &schema, resource, optional) {
                Err(why) => refuse(
                    "messageExpression",
                    format!("messageExpression compilation failed: {why}"),
                ),
                Ok(Type::String | Type::Dyn) => {}
                Ok(_) => refuse(
                    "messageExpression",
                    "messageExpression must evaluate to a string".into(),
                ),
            }
        }
        let uses_old = parse(&source).is_ok_and(|expression| uses_old_self(&expression));
        if let Some(within) = no_old_self.filter(|_| uses_old) {
            let detail =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {within}");
            errors.push(fault::invalid(place("rule"), Some(&source.into()), detail));
        } else if !uses_old && rule.get("optionalOldSelf").is_some_and(|value| !value.is_null()) {
            let detail = "may not be set if oldSelf is not used in rule";
            errors.push(fault::invalid(
                place("optionalOldSelf"),
                Some(&optional.into()),
                detail,
            ));
        }
    }
    errors
}

fn typed(source: &str, schema: &Schema, resource: bool, optional: bool) -> Result<Type, String> {
    let expression = parse(source)?;
    infer(source, &expression, schema, resource, optional)
}

/// A rule as Go prints its struct.
fn as_go_struct(rule: &Value) -> String {
    let quoted = |name: &str| fault::json(&text(rule, name).into());
    let given = |name: &str| fault::json(rule.get(name).unwrap_or(&Value::Null));
    format!(
        r#"{{"Rule":{},"Message":{},"MessageExpression":{},"Reason":{},"FieldPath":{},"OptionalOldSelf":{}}}"#,
        quoted("rule"),
        quoted("message"),
        quoted("messageExpression"),
        given("reason"),
        quoted("fieldPath"),
        given("optionalOldSelf"),
    )
}

/// The texts of rules other than their expressions.
pub(super) fn check_texts(node: &Value, at: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (index, rule) in list(node, RULES) {
        let place = |name: &str| format!("{at}.{RULES}[{index}].{name}");
        let (source, message) = (text(rule, "rule"), text(rule, "message"));
        let breaks = |text: &str| text.contains(['\n', '\r']);
        if source.trim().is_empty() {
            errors.push(FieldError::required(place("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(fault::invalid(
                place("message"),
                Some(&message.into()),
                "must be non-empty if specified",
            ));
        } else if breaks(message.trim()) {
            errors.push(fault::invalid(
                place("message"),
                Some(&message.into()),
                "must not contain line breaks",
            ));
        } else if breaks(source.trim()) && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(place("message"), detail));
        }
        let expression = text(rule, "messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(place("messageExpression"), detail));
        }
        if let Some(reason) = rule["reason"].as_str().filter(|reason| !REASONS.contains(reason)) {
            errors.push(FieldError::not_supported(
                place("reason"),
                &reason.into(),
                &REASONS,
            ));
        }
        let path = text(rule, "fieldPath");
        if !path.is_empty() {
            let mut refuse = |detail: &str| {
                errors.push(fault::invalid(
                    place("fieldPath"),
                    Some(&path.as_str().into()),
                    detail,
                ))
            };
            if path.trim().is_empty() {
                refuse("must be non-empty if specified");
            }
            if breaks(&path) {
                refuse("must not contain line breaks");
            }
            if field_path::resolve(&path, &Schema::read(node), true).is_err() {
                refuse("must be a valid path");
            }
        }
    }
    errors
}
