//! Reads the body of a request.

use crate::json::Value;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{HeaderMap, Request, header};

use super::duplicate_keys::{self, DuplicateKeys};
use super::{protobuf, syntax};
use crate::go;
use crate::server::{FieldValidation, WriteOptions};
use crate::status::Status;

/// The limit, as upstream: three mebibytes.
const LIMIT: usize = 3 * 1024 * 1024;

/// The expected object.
#[derive(Clone, Copy)]
pub(super) struct Expected<'e> {
    pub(super) kind: &'e str,
    /// The version of a custom kind, which must be set.
    pub(super) custom: Option<&'e str>,
}

/// The body as JSON, decoded from any of the supported formats. Duplicate fields are recorded in the options.
pub(super) async fn object(
    request: Request<Body>,
    expected: Expected<'_>,
    options: &mut WriteOptions,
) -> Result<Value, Status> {
    let Expected { kind, custom } = expected;
    let media = media_type(request.headers());
    let bytes = bytes(request).await?;
    match media.as_str() {
        "" | "application/json" | "application/yaml" => {
            let read = match media.as_str() {
                "application/yaml" => converted(&bytes).and_then(is_typed),
                _ => typed(&bytes, custom.is_some(), &mut options.duplicates),
            };
            let value = read.map_err(|why| unrecognized(kind, &why, &bytes))?;
            match custom {
                Some(version) if value["kind"].as_str().is_none_or(str::is_empty) => {
                    let why = format!(
                        "Object 'Kind' is missing in '{}'",
                        String::from_utf8_lossy(&bytes)
                    );
                    // The message differs if unknown fields are ignored.
                    Err(match options.validation {
                        FieldValidation::Ignore => Status::bad_request(format!(
                            "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
                        )),
                        _ => unrecognized(kind, &why, &bytes),
                    })
                }
                _ => Ok(value),
            }
        }
        "application/vnd.kubernetes.protobuf" => protobuf::decode(&bytes),
        _ => Err(Status::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

/// The options of a deletion: the body may be empty.
pub(super) async fn options(request: Request<Body>) -> Result<Value, Status> {
    let media = media_type(request.headers());
    let bytes = bytes(request).await?;
    match (bytes.is_empty(), media.as_str()) {
        (true, _) => Ok(Value::Object(crate::json::Map::new())),
        (false, "application/vnd.kubernetes.protobuf") => protobuf::decode(&bytes),
        (false, _) => typed(&bytes, false, &mut Vec::new()).map_err(Status::bad_request),
    }
}

pub(super) async fn bytes(request: Request<Body>) -> Result<Bytes, Status> {
    to_bytes(request.into_body(), LIMIT)
        .await
        .map_err(|_| Status::too_large("Request entity too large: limit is 3145728"))
}

/// An object with its type, if it has one.
fn typed(bytes: &[u8], custom: bool, duplicates: &mut Vec<String>) -> Result<Value, String> {
    // Without a known type the last value of a duplicate field counts.
    let twice = if custom {
        DuplicateKeys::Replaced
    } else {
        DuplicateKeys::Merged
    };
    let (value, paths) =
        duplicate_keys::read(bytes, twice).map_err(|error| unread(syntax::of(bytes, &error)))?;
    duplicates.extend(paths.iter().map(|path| format!("duplicate field {path:?}")));
    is_typed(value)
}

fn unread(why: String) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}

/// YAML converted to JSON.
fn converted(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins, with_snippet: false };
    match text.trim() {
        "" => Ok(Value::Null),
        _ => serde_saphyr::from_str_with_options(text, options).map_err(|error| {
            // Go counts lines from zero and adds no context.
            let line = error
                .location()
                .map_or(0, |location| location.line().saturating_sub(1));
            let why = error.to_string();
            let why = why.split(" at line ").next().unwrap_or_default();
            let why = why.rsplit(", ").next().unwrap_or_default();
            format!("yaml: line {line}: {why}")
        }),
    }
}

/// An object whose kind, if set, is a string.
fn is_typed(value: Value) -> Result<Value, String> {
    let value = match value {
        Value::Null => Value::Object(crate::json::Map::new()),
        value => value,
    };
    if !value.is_object() {
        let what = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                    Kind string \"json:\\\"kind,omitempty\\\"\" }";
        return Err(unread(format!(
            "json: cannot unmarshal {} into Go value of type {what}",
            go::json_kind(&value)
        )));
    }
    for field in ["apiVersion", "kind"] {
        let given = &value[field];
        if !given.is_string() && !given.is_null() {
            let name = go::json_kind(given);
            return Err(unread(format!(
                "json: cannot unmarshal {name} into Go struct field .{field} of type string"
            )));
        }
    }
    Ok(value)
}

fn unrecognized(kind: &str, why: &str, bytes: &[u8]) -> Status {
    const SHOWN: usize = 30;
    let shown = &bytes[..bytes.len().min(SHOWN)];
    let mut summary = match bytes.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if bytes.len() > SHOWN {
        summary.push_str(" ...");
    }
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({summary})"
    ))
}

/// The configuration of an apply, and its duplicate fields.
pub(super) fn applied(bytes: &[u8], validation: FieldValidation) -> Result<(Value, Vec<String>), Status> {
    let told = |name: &str, line: u64| format!("line {line}: key {name:?} already set in map");
    let duplicates: Vec<_> = if bytes.contains(&b'\n') {
        first_said_twice(bytes)
            .map(|(name, line)| told(&name, line))
            .into_iter()
            .collect()
    } else {
        duplicate_keys::names(bytes)
            .iter()
            .map(|name| told(name, 1))
            .collect()
    };
    if validation == FieldValidation::Strict && !duplicates.is_empty() {
        return Err(Status::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {}",
            duplicates.join("\n  ")
        )));
    }
    Ok((yaml(bytes)?, duplicates))
}

/// The first duplicate field in YAML, and its line. Documents on a single line are JSON.
fn first_said_twice(bytes: &[u8]) -> Option<(String, u64)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error };
    let error = serde_saphyr::from_str_with_options::<serde::de::IgnoredAny>(text, options).err()?;
    said_twice(&error)
}

fn said_twice(error: &serde_saphyr::Error) -> Option<(String, u64)> {
    match error {
        serde_saphyr::Error::DuplicateMappingKey { key, location } => {
            Some((key.clone().unwrap_or_default(), location.line()))
        }
        serde_saphyr::Error::WithSnippet { error, .. } => said_twice(error),
        _ => None,
    }
}

/// Parses YAML, which includes JSON.
pub(super) fn yaml(bytes: &[u8]) -> Result<Value, Status> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?;
    let value = match text.trim() {
        "" => Value::Null,
        text => serde_saphyr::from_str_with_options(
            text,
            serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins },
        )
        .map_err(|error| Status::bad_request(format!("error decoding YAML: {error}")))?,
    };
    match value {
        Value::Null => Ok(Value::Object(crate::json::Map::new())),
        Value::Object(_) => Ok(value),
        other => Err(Status::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of \
             type map[string]interface {{}}",
            go::json_kind(&other)
        ))),
    }
}

/// Without parameters.
pub(super) fn media_type(headers: &HeaderMap) -> String {
    let value = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    value
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}
