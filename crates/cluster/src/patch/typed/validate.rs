//! Checks whether an applied configuration fits its type. Upstream checks this before it merges, with messages of its own.

use std::collections::BTreeSet;

use crate::json::Value;

use super::super::element::Element;
use super::form::{Form, Scalar, allowed, declares, element_of, form};
use crate::go;
use crate::types::{ListKind, Shape};

/// The errors, as one text. Duplicates in sets and keyed lists are errors.
pub(crate) fn validate(value: &Value, shape: Shape<'_>) -> Result<(), String> {
    let mut walk = Walk {
        path: Vec::new(),
        errors: Vec::new(),
    };
    walk.visit(value, shape);
    match walk.errors.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(std::iter::once("errors:".to_owned())
            .chain(several.iter().map(|error| format!("  {error}")))
            .collect::<Vec<_>>()
            .join("\n")),
    }
}

struct Walk {
    path: Vec<Element>,
    errors: Vec<String>,
}

impl Walk {
    fn visit(&mut self, value: &Value, shape: Shape<'_>) {
        match (form(shape, value), value) {
            (_, Value::Null) => {}
            (Form::Scalar, value) => self.visit_scalar(value, allowed(shape).scalar.unwrap_or(Scalar::Any)),
            (Form::List, Value::Array(items)) => self.visit_items(items, shape),
            (Form::List, other) => self.error(format!("expected list, got &{{{}}}", go::plain(other))),
            (Form::Map, Value::Object(fields)) => {
                for (name, value) in fields {
                    self.path.push(Element::field(name));
                    let is_declared = declares(shape, name);
                    if is_declared {
                        self.visit(value, shape.member(name));
                    } else {
                        self.error("field not declared in schema".to_owned());
                    }
                    self.path.pop();
                    // Upstream stops checking a map after such a field.
                    if !is_declared {
                        break;
                    }
                }
            }
            (Form::Map, other) => self.error(format!("expected map, got &{{{}}}", go::plain(other))),
        }
    }

    fn visit_scalar(&mut self, value: &Value, wanted: Scalar) {
        match (wanted, value) {
            (Scalar::Number, Value::Number(_))
            | (Scalar::String, Value::String(_))
            | (Scalar::Bool, Value::Bool(_)) => {}
            (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => {}
            (Scalar::Number, other) => {
                self.error(format!(
                    "expected numeric (int or float), got {}",
                    go::type_name(other)
                ));
            }
            (Scalar::String, other) => {
                self.error(format!(
                    "expected string, got &value.valueUnstructured{{Value:{}}}",
                    go::syntax(other)
                ));
            }
            (Scalar::Bool, other) => self.error(format!("expected boolean, got &{{{}}}", go::plain(other))),
            (Scalar::Any, other) => self.error(format!("expected any scalar, got &{{{}}}", go::plain(other))),
        }
    }

    fn visit_items(&mut self, items: &[Value], shape: Shape<'_>) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = match shape.list() {
                ListKind::Atomic => Element::Index(i64::try_from(index).unwrap_or(i64::MAX)),
                _ => match element_of(shape, item) {
                    Ok(element) => element,
                    // Without an identity the errors inside the item have no path.
                    Err(why) => return self.error(format!("element {index}: {why}")),
                },
            };
            if !seen.insert(element.clone()) {
                self.error(format!("duplicate entries for key {element}"));
            }
            self.path.push(element);
            self.visit(item, shape.element());
            self.path.pop();
        }
    }

    fn error(&mut self, what: String) {
        let path: String = self.path.iter().map(Element::to_string).collect();
        self.errors.push(if path.is_empty() {
            what
        } else {
            format!("{path}: {what}")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use crate::types::Kind;
    use rstest::rstest;

    /// Messages of the real server, which prefixes them with `failed to create typed patch object (…): `.
    #[rstest]
    #[case(json!({"foo": 1}), ".foo: field not declared in schema")]
    #[case(json!({"foo": 1, "spec": 1}), ".foo: field not declared in schema")]
    #[case(json!("x"), ": expected map, got &{x}")]
    #[case(json!([1, "a"]), ": expected map, got &{[1 a]}")]
    #[case(json!({"spec": {"containers": {"a": 1}}}), ".spec.containers: expected list, got &{map[a:1]}")]
    #[case(json!({"spec": {"hostNetwork": "yes"}}), ".spec.hostNetwork: expected boolean, got &{yes}")]
    #[case(json!({"spec": {"priority": "1"}}), ".spec.priority: expected numeric (int or float), got string")]
    #[case(json!({"spec": {"hostname": {"a": 1}}}),
        ".spec.hostname: expected string, got &value.valueUnstructured{Value:map[string]interface {}{\"a\":1}}")]
    #[case(json!({"metadata": {"creationTimestamp": {"a": 1}}}), ".metadata.creationTimestamp: expected any scalar, got &{map[a:1]}")]
    #[case(json!({"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}), ".spec.containers: duplicate entries for key [name=\"a\"]")]
    #[case(json!({"spec": {"containers": [{"name": "a", "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]}]}}),
        ".spec.containers[name=\"a\"].ports: duplicate entries for key [containerPort=80,protocol=\"TCP\"]")]
    #[case(json!({"metadata": {"finalizers": ["x", "x"]}}), ".metadata.finalizers: duplicate entries for key [=\"x\"]")]
    #[case(json!({"metadata": {"finalizers": [1]}}),
        ".metadata.finalizers[=1]: expected string, got &value.valueUnstructured{Value:1}")]
    #[case(json!({"metadata": {"finalizers": [null]}}),
        ".metadata.finalizers: element 0: associative list without keys has an element that's an explicit null")]
    #[case(json!({"spec": {"containers": [null]}}), ".spec.containers: element 0: associative list with keys may not have a null element")]
    #[case(json!({"spec": {"containers": ["x"]}}), ".spec.containers: element 0: associative list with keys may not have non-map elements")]
    fn what_does_not_fit_its_type_is_refused(#[case] template: Value, #[case] expected: &str) {
        let kind = Kind::Struct("io.k8s.api.core.v1.PodTemplate".into());
        let config = json!({"template": template});
        let error = validate(
            &config,
            Shape::Builtin {
                kind: &kind,
                field: None,
            },
        );
        assert_eq!(error, Err(format!(".template{expected}")));
    }

    #[test]
    fn several_errors_are_listed() {
        let kind = Kind::Struct("io.k8s.api.core.v1.PodTemplate".into());
        let config = json!({"metadata": {"name": 1}, "template": {"spec": 1}});
        let error = validate(
            &config,
            Shape::Builtin {
                kind: &kind,
                field: None,
            },
        )
        .unwrap_err();
        assert_eq!(error.lines().count(), 3);
        assert!(error.starts_with("errors:\n  .metadata.name: expected string"));
    }
}
