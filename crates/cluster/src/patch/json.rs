//! JSON patch (RFC 6902), with the quirks of the real server's library: indexes may count from the end, replacing and copying tolerate
//! missing keys, and the part of a path before its first slash is ignored.

use crate::json::{Map, Value};

use super::error::PatchError;
use crate::go;

/// The most operations that one patch may have.
const MOST_OPERATIONS: usize = 10_000;

/// `live` after every operation of `patch`.
pub(crate) fn json(live: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = decode(patch)?;
    if operations.len() > MOST_OPERATIONS {
        return Err(PatchError::TooLarge(format!(
            "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
            operations.len()
        )));
    }
    let mut document = live.clone();
    for operation in operations {
        perform(&mut document, operation).map_err(PatchError::DoesNotApply)?;
    }
    Ok(document)
}

/// The operations of a patch, with the checks of Go's decoder.
fn decode(patch: &Value) -> Result<Vec<&Value>, PatchError> {
    let bad =
        |why: String| PatchError::BadRequest(format!("error decoding patch: json: cannot unmarshal {why}"));
    let operations = match patch {
        Value::Array(operations) => operations,
        Value::Null => return Ok(Vec::new()),
        other => {
            return Err(bad(format!(
                "{} into Go value of type []handlers.jsonPatchOp",
                go::json_kind(other)
            )));
        }
    };
    for operation in operations {
        let fields = match operation {
            Value::Object(fields) => fields,
            Value::Null => continue,
            other => {
                return Err(bad(format!(
                    "{} into Go value of type handlers.jsonPatchOp",
                    go::json_kind(other)
                )));
            }
        };
        for name in ["op", "path", "from"] {
            if let Some(value) = fields
                .get(name)
                .filter(|value| !value.is_string() && !value.is_null())
            {
                let kind = go::json_kind(value);
                return Err(bad(format!(
                    "{kind} into Go struct field jsonPatchOp.{name} of type string"
                )));
            }
        }
    }
    Ok(operations.iter().collect())
}

fn perform(document: &mut Value, operation: &Value) -> Result<(), String> {
    let text = |name: &str| {
        operation[name]
            .as_str()
            .ok_or_else(|| format!("operation has no {name}: missing value"))
    };
    let value = operation.get("value");
    match operation["op"].as_str().unwrap_or("unknown") {
        "add" => add(document, text("path")?, value.cloned().unwrap_or_default()),
        "remove" => take(document, text("path")?).map(drop),
        "replace" => replace(document, text("path")?, value.cloned().unwrap_or_default()),
        "move" => {
            let moved = take(document, text("from")?)?;
            add(document, text("path")?, moved)
        }
        "copy" => {
            let copied = get(document, text("from")?)?.cloned().unwrap_or_default();
            add(document, text("path")?, copied)
        }
        "test" => {
            let path = text("path")?;
            let found = if path.is_empty() {
                Some(&*document)
            } else {
                get(document, path)?
            };
            let (found, wanted) = (found.unwrap_or(&Value::Null), value.unwrap_or(&Value::Null));
            if found == wanted {
                Ok(())
            } else {
                Err(format!("testing value {path} failed: test failed"))
            }
        }
        other => Err(format!("Unexpected kind: {other}")),
    }
}

/// A map or a list, and a key into it.
enum Place<'d> {
    Field(&'d mut Map, String),
    Item(&'d mut Vec<Value>, String),
}

fn find<'d>(document: &'d mut Value, path: &str) -> Result<Place<'d>, String> {
    let missing = || format!("doc is missing path: {path:?}: missing value");
    let (_, path_below) = path.split_once('/').ok_or_else(missing)?;
    let mut parts: Vec<String> = path_below
        .split('/')
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect();
    let key = parts.pop().unwrap_or_default();
    let mut at = document;
    for part in parts {
        at = match at {
            Value::Object(fields) => fields.get_mut(&part).ok_or_else(missing)?,
            Value::Array(items) => {
                let index = index(&part, items.len())?;
                items.get_mut(index).ok_or_else(missing)?
            }
            _ => return Err(missing()),
        };
    }
    match at {
        Value::Object(fields) => Ok(Place::Field(fields, key)),
        Value::Array(items) => Ok(Place::Item(items, key)),
        _ => Err(missing()),
    }
}

/// An index below `length`; a negative one counts from the end.
fn index(key: &str, length: usize) -> Result<usize, String> {
    let invalid = || format!("Unable to access invalid index: {key}: invalid index referenced");
    let number: i64 = key
        .parse()
        .map_err(|_| format!("strconv.Atoi: parsing {key:?}: invalid syntax"))?;
    let signed = i64::try_from(length).map_err(|_| invalid())?;
    let from_start = if number < 0 {
        number.checked_add(signed).ok_or_else(invalid)?
    } else {
        number
    };
    usize::try_from(from_start)
        .ok()
        .filter(|index| *index < length)
        .ok_or_else(invalid)
}

fn get<'d>(document: &'d mut Value, path: &str) -> Result<Option<&'d Value>, String> {
    match find(document, path)? {
        Place::Field(fields, key) => Ok(fields.get(&key)),
        Place::Item(items, key) => {
            let index = index(&key, items.len())?;
            Ok(items.get(index))
        }
    }
}

fn add(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    match find(document, path)? {
        Place::Field(fields, key) => {
            fields.insert(key.into(), value);
        }
        Place::Item(items, key) if key == "-" => items.push(value),
        Place::Item(items, key) => {
            let index = index(&key, items.len() + 1)?;
            items.insert(index, value);
        }
    }
    Ok(())
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err("replace operation value must be object or array".to_owned());
        }
        *document = value;
        return Ok(());
    }
    match find(document, path)? {
        Place::Field(fields, key) => {
            fields.insert(key.into(), value);
        }
        Place::Item(items, key) => {
            let index = index(&key, items.len())?;
            items[index] = value;
        }
    }
    Ok(())
}

fn take(document: &mut Value, path: &str) -> Result<Value, String> {
    match find(document, path)? {
        Place::Field(fields, key) => fields
            .remove(&key)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
        Place::Item(items, key) => {
            let index = index(&key, items.len())?;
            Ok(items.remove(index))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;
    use crate::status::Status;
    use proptest::prelude::*;
    use rstest::rstest;

    /// The resulting custom object on the real server after each patch.
    #[rstest]
    #[case(json!([{"op": "add", "path": "/l/-", "value": 4}]), json!({"a": {"b": 1}, "l": [1, 2, 4]}))]
    #[case(json!([{"op": "add", "path": "/l/0", "value": 0}]), json!({"a": {"b": 1}, "l": [0, 1, 2]}))]
    #[case(json!([{"op": "add", "path": "/l/-1", "value": 0}]), json!({"a": {"b": 1}, "l": [1, 2, 0]}))]
    #[case(json!([{"op": "add", "path": "/l/-2", "value": 0}]), json!({"a": {"b": 1}, "l": [1, 0, 2]}))]
    #[case(json!([{"op": "remove", "path": "/l/-1"}]), json!({"a": {"b": 1}, "l": [1]}))]
    #[case(json!([{"op": "replace", "path": "/l/1", "value": "x"}]), json!({"a": {"b": 1}, "l": [1, "x"]}))]
    #[case(json!([{"op": "replace", "path": "/new", "value": 1}]), json!({"a": {"b": 1}, "l": [1, 2], "new": 1}))]
    #[case(json!([{"op": "copy", "from": "/none", "path": "/c"}]), json!({"a": {"b": 1}, "c": null, "l": [1, 2]}))]
    #[case(json!([{"op": "copy", "from": "/a", "path": "/c"}]), json!({"a": {"b": 1}, "c": {"b": 1}, "l": [1, 2]}))]
    #[case(json!([{"op": "move", "from": "/a/b", "path": "/b"}]), json!({"a": {}, "b": 1, "l": [1, 2]}))]
    #[case(json!([{"op": "test", "path": "/none"}, {"op": "remove", "path": "/l"}]), json!({"a": {"b": 1}}))]
    #[case(json!([{"op": "test", "path": "/l", "value": [1, 2]}, {"op": "remove", "path": "/l"}]), json!({"a": {"b": 1}}))]
    #[case(json!([{"op": "add", "path": "/a~1b~0c", "value": 1}]), json!({"a": {"b": 1}, "a/b~c": 1, "l": [1, 2]}))]
    #[case(json!([{"op": "add", "path": "l/x", "value": 1}]), json!({"a": {"b": 1}, "l": [1, 2], "x": 1}))]
    #[case(json!([{"op": "add", "path": "/v"}]), json!({"a": {"b": 1}, "l": [1, 2], "v": null}))]
    #[case(json!(null), json!({"a": {"b": 1}, "l": [1, 2]}))]
    fn operations_are_performed(#[case] patch: Value, #[case] expected: Value) {
        assert_eq!(json(&json!({"a": {"b": 1}, "l": [1, 2]}), &patch), Ok(expected));
    }

    /// The real server gives the same answer to all of them: 422 and that there is an error in the request.
    #[rstest]
    #[case(json!([{"op": "test", "path": "/a/b", "value": 5}]))]
    #[case(json!([{"op": "test", "path": "/a/c", "value": 5}]))]
    #[case(json!([{"op": "remove", "path": "/none"}]))]
    #[case(json!([{"op": "remove", "path": "/none/x"}]))]
    #[case(json!([{"op": "remove", "path": "/l/7"}]))]
    #[case(json!([{"op": "add", "path": "/none/x", "value": 1}]))]
    #[case(json!([{"op": "add", "path": "/l/x", "value": 1}]))]
    #[case(json!([{"op": "replace", "path": "/none/x", "value": 1}]))]
    #[case(json!([{"op": "replace", "path": "", "value": "x"}]))]
    #[case(json!([{"op": "move", "from": "/none", "path": "/x"}]))]
    #[case(json!([{"op": "frob", "path": "/a"}]))]
    #[case(json!([{"path": "/a"}]))]
    #[case(json!([{"op": "add", "value": 1}]))]
    #[case(json!([null]))]
    fn an_operation_that_does_not_fit_is_refused(#[case] patch: Value) {
        let status = Status::from(json(&json!({"a": {"b": 1}, "l": [1, 2]}), &patch).unwrap_err());
        let message = "the server rejected our request due to an error in our request";
        assert_eq!(
            (status.code, status.message.as_str(), status.details),
            (422, message, Some(json!({})))
        );
    }

    /// Messages of the real server.
    #[rstest]
    #[case(json!({}), 400, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp")]
    #[case(json!(["x"]), 400, "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp")]
    #[case(json!([{"op": 1}]), 400,
        "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string")]
    #[case(vec![json!({"op": "test", "path": ""}); 10_001].into(), 413,
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001")]
    fn what_is_no_patch_is_refused(#[case] patch: Value, #[case] code: u16, #[case] message: &str) {
        let status = Status::from(json(&json!({}), &patch).unwrap_err());
        assert_eq!((status.code, status.message.as_str()), (code, message));
    }

    proptest! {
        #[test]
        fn no_patch_panics(
            live in super::super::arbitrary::json(),
            operations in proptest::collection::vec(
                ("add|remove|replace|move|copy|test", "(/[a-c]|/-?[0-3]|/-){0,3}", "(/[a-c]|/-?[0-3]){0,3}", super::super::arbitrary::json()),
                0..4,
            ),
        ) {
            let patch = operations.into_iter().map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}));
            let _ = json(&live, &patch.collect::<Vec<_>>().into());
        }
    }
}
