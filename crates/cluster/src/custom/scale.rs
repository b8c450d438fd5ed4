//! The scale subresource of custom objects: the replicas at the paths that the CRD declares.

use crate::json::{Map, Value, json};

use super::fault;
use super::schema::text;
use crate::status::FieldError;

/// The paths of the replicas.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    /// `.spec.replicas`
    pub(crate) spec_replicas: String,
    /// `.status.replicas`
    pub(crate) status_replicas: String,
    /// `.status.selector`, or empty.
    pub(crate) label_selector: String,
}

/// A field on the path has the wrong type: Go's message.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misplaced(String);

impl Scale {
    pub(super) fn read(scale: &Value) -> Option<Self> {
        scale.is_object().then(|| Self {
            spec_replicas: text(scale, "specReplicasPath"),
            status_replicas: text(scale, "statusReplicasPath"),
            label_selector: text(scale, "labelSelectorPath"),
        })
    }

    /// The desired replicas; `None` if the object has none.
    pub(crate) fn replicas(&self, object: &Value) -> Result<Option<i64>, Misplaced> {
        integer(object, &self.spec_replicas)
    }

    /// The object as an `autoscaling/v1` Scale. Absent replicas are zero.
    pub(crate) fn to_scale(&self, object: &Value) -> Result<Value, Misplaced> {
        let metadata = &object["metadata"];
        let kept = ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"];
        let kept = kept
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), metadata.get(name)?.clone())));
        let replicas = self.replicas(object)?.unwrap_or_default();
        let mut status = json!({"replicas": integer(object, &self.status_replicas)?.unwrap_or_default()});
        if !self.label_selector.is_empty()
            && let Some(selector) =
                string(object, &self.label_selector)?.filter(|selector| !selector.is_empty())
        {
            status["selector"] = selector.into();
        }
        // Zero replicas are omitted from a spec, as everywhere in Go.
        let spec = if replicas == 0 {
            json!({})
        } else {
            json!({"replicas": replicas})
        };
        Ok(json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": Value::Object(kept.collect()),
            "spec": spec, "status": status,
        }))
    }

    /// Sets the desired replicas, creating the objects on the path.
    pub(crate) fn set_replicas(&self, object: &mut Value, replicas: i64) -> Result<(), Misplaced> {
        let path = steps(&self.spec_replicas);
        let mut at = object;
        for (depth, step) in path.iter().enumerate() {
            let fields = match at {
                Value::Object(fields) => fields,
                _ => {
                    let way = path[..depth].join(".");
                    let why = format!("value cannot be set because .{way} is not a map[string]interface{{}}");
                    return Err(Misplaced(why));
                }
            };
            at = fields
                .entry((*step).to_owned())
                .or_insert_with(|| Value::Object(Map::new()));
        }
        *at = replicas.into();
        Ok(())
    }

    /// The errors of the desired replicas.
    pub(super) fn check_spec(&self, object: &Value) -> Vec<FieldError> {
        check(&self.spec_replicas, integer(object, &self.spec_replicas))
    }

    /// The errors of the actual replicas and of the selector.
    pub(super) fn check_status(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = check(&self.status_replicas, integer(object, &self.status_replicas));
        if !self.label_selector.is_empty()
            && let Err(misplaced) = string(object, &self.label_selector)
        {
            errors.push(fault::invalid(
                &self.label_selector,
                Some(&"".into()),
                misplaced.to_string(),
            ));
        }
        errors
    }
}

fn check(path: &str, replicas: Result<Option<i64>, Misplaced>) -> Vec<FieldError> {
    let (value, detail) = match replicas {
        Err(misplaced) => (0, misplaced.to_string()),
        Ok(Some(replicas)) if replicas < 0 => (replicas, "should be a non-negative integer".into()),
        Ok(Some(replicas)) if replicas > i64::from(i32::MAX) => {
            (replicas, format!("should be less than or equal to {}", i32::MAX))
        }
        Ok(_) => return Vec::new(),
    };
    vec![fault::invalid(path, Some(&value.into()), detail)]
}

fn steps(path: &str) -> Vec<&str> {
    path.strip_prefix('.').unwrap_or(path).split('.').collect()
}

fn integer(object: &Value, path: &str) -> Result<Option<i64>, Misplaced> {
    let Some(value) = follow(object, path)? else {
        return Ok(None);
    };
    value
        .as_i64()
        .map(Some)
        .ok_or_else(|| misplaced(&steps(path).join("."), value, "int64"))
}

fn string<'v>(object: &'v Value, path: &str) -> Result<Option<&'v str>, Misplaced> {
    let Some(value) = follow(object, path)? else {
        return Ok(None);
    };
    value
        .as_str()
        .map(Some)
        .ok_or_else(|| misplaced(&steps(path).join("."), value, "string"))
}

fn follow<'v>(object: &'v Value, path: &str) -> Result<Option<&'v Value>, Misplaced> {
    let steps = steps(path);
    let mut at = object;
    for step in &steps {
        match at {
            Value::Object(fields) => match fields.get(step) {
                Some(inner) => at = inner,
                None => return Ok(None),
            },
            other => return Err(misplaced(&steps.join("."), other, "map[string]interface{}")),
        }
    }
    Ok(Some(at))
}

fn misplaced(path: &str, value: &Value, expected: &str) -> Misplaced {
    let kind = match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    let shown = fault::plain(value);
    Misplaced(format!(
        ".{path} accessor error: {shown} is of the type {kind}, expected {expected}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale() -> Scale {
        Scale {
            spec_replicas: ".spec.size.replicas".into(),
            status_replicas: ".status.replicas".into(),
            label_selector: ".status.selector".into(),
        }
    }

    #[test]
    fn a_scale_is_read_from_where_the_crd_says() {
        let object = json!({"metadata": {"name": "w", "labels": {"a": "b"}}, "spec": {"size": {"replicas": 3}},
            "status": {"replicas": 2, "selector": "app=w"}});
        assert_eq!(
            scale().to_scale(&object).unwrap(),
            json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": {"name": "w"},
                "spec": {"replicas": 3}, "status": {"replicas": 2, "selector": "app=w"}})
        );
    }

    #[test]
    fn setting_replicas_makes_the_way_there() {
        let mut object = json!({"metadata": {"name": "w"}});
        scale().set_replicas(&mut object, 5).unwrap();
        assert_eq!(object["spec"], json!({"size": {"replicas": 5}}));
        let mut broken = json!({"spec": {"size": "big"}});
        let error = scale().set_replicas(&mut broken, 5).unwrap_err();
        assert_eq!(
            error.to_string(),
            "value cannot be set because .spec.size is not a map[string]interface{}"
        );
    }
}
