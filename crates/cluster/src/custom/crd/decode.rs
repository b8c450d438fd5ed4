//! Decodes the schemas inside a CRD as typed fields: unknown keywords are dropped and reported, empty ones omitted, and values of the wrong
//! type rejected.

use crate::json::{Map, Value};

use super::structural::list;
use crate::go;
use crate::types::Decoded;

/// The type of a keyword, and whether an empty value of it is kept.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    /// A text that may be empty.
    SetText,
    Flag,
    /// A bool that may be false.
    SetFlag,
    Number,
    Count,
    Any,
    Values,
    Texts,
    Schema,
    Schemas,
    Named,
    /// A schema, or several, or a bool. Go decodes these with custom code that does not report unknown keywords.
    Lenient,
    Documentation,
    Rules,
}

fn kind_of(keyword: &str) -> Option<Kind> {
    Some(match keyword {
        "id" | "$schema" | "description" | "type" | "format" | "title" | "pattern" => Kind::Text,
        "$ref" | "x-kubernetes-list-type" | "x-kubernetes-map-type" => Kind::SetText,
        "nullable" | "exclusiveMaximum" | "exclusiveMinimum" | "uniqueItems" => Kind::Flag,
        "x-kubernetes-embedded-resource" | "x-kubernetes-int-or-string" => Kind::Flag,
        "x-kubernetes-preserve-unknown-fields" => Kind::SetFlag,
        "maximum" | "minimum" | "multipleOf" => Kind::Number,
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" => {
            Kind::Count
        }
        "default" | "example" => Kind::Any,
        "enum" => Kind::Values,
        "required" | "x-kubernetes-list-map-keys" => Kind::Texts,
        "not" => Kind::Schema,
        "allOf" | "anyOf" | "oneOf" => Kind::Schemas,
        "properties" | "patternProperties" | "definitions" => Kind::Named,
        "items" | "additionalProperties" | "additionalItems" | "dependencies" => Kind::Lenient,
        "externalDocs" => Kind::Documentation,
        "x-kubernetes-validations" => Kind::Rules,
        _ => return None,
    })
}

/// A keyword with a value of the wrong type, with Go's message.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {wanted}")]
pub(crate) struct WrongKeyword {
    found: &'static str,
    owner: &'static str,
    path: String,
    wanted: &'static str,
}

/// Decodes the schemas of a CRD whose other fields have been decoded already.
pub(crate) fn decode_schemas(crd: &Value) -> Result<Decoded, WrongKeyword> {
    let mut decoded = Decoded {
        value: crd.clone(),
        unknown: Vec::new(),
    };
    for (index, version) in list(&crd["spec"], "versions") {
        let node = &version["schema"]["openAPIV3Schema"];
        if !node.is_object() {
            continue;
        }
        let place = Place {
            path: format!("spec.versions[{index}].schema.openAPIV3Schema"),
            go_path: "spec.versions.schema.openAPIV3Schema".to_owned(),
        };
        let read = read_schema(node, &place, &mut decoded.unknown)?;
        decoded.value["spec"]["versions"][index]["schema"]["openAPIV3Schema"] = read;
    }
    Ok(decoded)
}

/// The path of a node, with and without indexes and names.
struct Place {
    path: String,
    go_path: String,
}

impl Place {
    fn inside(&self, keyword: &str, part: &str) -> Self {
        Self {
            path: format!("{}.{keyword}{part}", self.path),
            go_path: format!("{}.{keyword}", self.go_path),
        }
    }

    fn wrong(&self, owner: &'static str, keyword: &str, value: &Value, wanted: &'static str) -> WrongKeyword {
        WrongKeyword {
            found: go::json_kind(value),
            owner,
            path: format!("{}.{keyword}", self.go_path),
            wanted,
        }
    }
}

fn read_schema(node: &Value, at: &Place, unknown: &mut Vec<String>) -> Result<Value, WrongKeyword> {
    let mut out = Map::new();
    for (keyword, value) in node.as_object().into_iter().flatten() {
        let Some(kind) = kind_of(keyword) else {
            unknown.push(format!("{}.{keyword}", at.path));
            continue;
        };
        if value.is_null() {
            continue;
        }
        if let Some(read) = read_keyword(kind, keyword, value, at, unknown)? {
            out.insert(keyword.clone(), read);
        }
    }
    Ok(Value::Object(out))
}

fn read_keyword(
    kind: Kind,
    keyword: &str,
    value: &Value,
    at: &Place,
    unknown: &mut Vec<String>,
) -> Result<Option<Value>, WrongKeyword> {
    let wrong = |wanted| Err(at.wrong("JSONSchemaProps", keyword, value, wanted));
    Ok(match (kind, value) {
        (Kind::Text, Value::String(text)) => (!text.is_empty()).then(|| value.clone()),
        (Kind::Flag, Value::Bool(flag)) => flag.then(|| value.clone()),
        (Kind::SetText, Value::String(_)) | (Kind::SetFlag, Value::Bool(_)) | (Kind::Any, _) => {
            Some(value.clone())
        }
        (Kind::Number, Value::Number(_)) => Some(value.clone()),
        (Kind::Count, Value::Number(number)) if number.is_i64() => Some(value.clone()),
        (Kind::Values, Value::Array(items)) => (!items.is_empty()).then(|| value.clone()),
        (Kind::Texts, Value::Array(items)) if items.iter().all(Value::is_string) => {
            (!items.is_empty()).then(|| value.clone())
        }
        (Kind::Schema, Value::Object(_)) => Some(read_schema(value, &at.inside(keyword, ""), unknown)?),
        (Kind::Schemas, Value::Array(items)) => {
            let read = items.iter().enumerate();
            let read = read
                .map(|(index, item)| read_schema(item, &at.inside(keyword, &format!("[{index}]")), unknown));
            let read = read.collect::<Result<Vec<_>, _>>()?;
            (!read.is_empty()).then(|| read.into())
        }
        (Kind::Named, Value::Object(fields)) => {
            let read = fields.iter().map(|(name, item)| {
                Ok((
                    name.clone(),
                    read_schema(item, &at.inside(keyword, &format!(".{name}")), unknown)?,
                ))
            });
            let read = read.collect::<Result<Map, WrongKeyword>>()?;
            (!read.is_empty()).then(|| read.into())
        }
        (Kind::Lenient, Value::Object(_)) if keyword != "dependencies" => {
            Some(read_schema(value, &at.inside(keyword, ""), &mut Vec::new())?)
        }
        (Kind::Lenient, _) => Some(value.clone()),
        (Kind::Documentation, Value::Object(_)) => Some(read_texts(
            value,
            &["description", "url"],
            &at.inside(keyword, ""),
            unknown,
        )),
        (Kind::Rules, Value::Array(rules)) => {
            let known = [
                "rule",
                "message",
                "messageExpression",
                "reason",
                "fieldPath",
                "optionalOldSelf",
            ];
            let read = rules.iter().enumerate();
            let read = read.map(|(index, rule)| {
                read_texts(rule, &known, &at.inside(keyword, &format!("[{index}]")), unknown)
            });
            let read: Vec<_> = read.collect();
            (!read.is_empty()).then(|| read.into())
        }
        (Kind::Text | Kind::SetText, _) => return wrong("string"),
        (Kind::Flag | Kind::SetFlag, _) => return wrong("bool"),
        (Kind::Number, _) => return wrong("float64"),
        (Kind::Count, _) => return wrong("int64"),
        (Kind::Values, _) => return wrong("[]v1.JSON"),
        (Kind::Texts, _) => return wrong("[]string"),
        (Kind::Schema, _) => return wrong("v1.JSONSchemaProps"),
        (Kind::Schemas, _) => return wrong("[]v1.JSONSchemaProps"),
        (Kind::Named, _) => return wrong("map[string]v1.JSONSchemaProps"),
        (Kind::Documentation, _) => return wrong("v1.ExternalDocumentation"),
        (Kind::Rules, _) => return wrong("v1.ValidationRules"),
    })
}

/// A small struct of strings: unknown fields are dropped, empty ones omitted. A rule is always written.
fn read_texts(value: &Value, known: &[&str], at: &Place, unknown: &mut Vec<String>) -> Value {
    let mut out = Map::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        if !known.contains(&name.as_str()) {
            unknown.push(format!("{}.{name}", at.path));
        } else if name == "rule" || !(value.is_null() || value == "") {
            out.insert(name.clone(), value.clone());
        }
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use rstest::rstest;

    fn crd(schema: Value) -> Value {
        json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}})
    }

    /// As Kubernetes v1.36.3 answered: inside `items` and `additionalProperties` it does not report them.
    #[test]
    fn misspelt_keywords_are_dropped_and_named() {
        let decoded = decode_schemas(&crd(
            json!({"type": "object", "properites": {}, "properties": {"spec": {
                "type": "object", "foo": 1, "x-kubernetes-validations": [{"rule": "true", "bar": 1}],
                "items": {"type": "string", "zed": 1}, "anyOf": [{"q": 1}], "additionalProperties": {"type": "string", "r": 2},
            }}}),
        ));
        let decoded = decoded.unwrap();
        let at = "spec.versions[0].schema.openAPIV3Schema";
        let mut unknown = decoded.unknown;
        unknown.sort();
        assert_eq!(
            unknown,
            [
                format!("{at}.properites"),
                format!("{at}.properties.spec.anyOf[0].q"),
                format!("{at}.properties.spec.foo"),
                format!("{at}.properties.spec.x-kubernetes-validations[0].bar"),
            ]
        );
        assert_eq!(
            decoded.value,
            crd(
                json!({"type": "object", "properties": {"spec": {"type": "object", "items": {"type": "string"},
                "anyOf": [{}], "additionalProperties": {"type": "string"}, "x-kubernetes-validations": [{"rule": "true"}]}}})
            )
        );
    }

    #[test]
    fn empty_keywords_are_left_out_unless_they_mean_something() {
        let given = json!({"type": "string", "nullable": false, "minLength": 0, "pattern": "", "enum": [],
            "description": "", "default": null, "title": "t", "example": {"b": null}, "externalDocs": {"url": "u"}});
        let decoded = decode_schemas(&crd(given)).unwrap();
        let kept = json!({"type": "string", "title": "t", "minLength": 0, "externalDocs": {"url": "u"},
            "example": {"b": null}});
        assert_eq!(decoded.value, crd(kept));
    }

    #[rstest]
    #[case(json!({"properties": {"a": {"minLength": "x"}}}), "string", "properties.minLength", "int64")]
    #[case(json!({"properties": {"a": {"type": ["string"]}}}), "array", "properties.type", "string")]
    #[case(json!({"required": "a"}), "string", "required", "[]string")]
    fn a_value_of_another_type_is_refused(
        #[case] schema: Value,
        #[case] found: &str,
        #[case] path: &str,
        #[case] wanted: &str,
    ) {
        let error = decode_schemas(&crd(schema)).unwrap_err().to_string();
        let field = format!("JSONSchemaProps.spec.versions.schema.openAPIV3Schema.{path}");
        assert_eq!(
            error,
            format!("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")
        );
    }
}
