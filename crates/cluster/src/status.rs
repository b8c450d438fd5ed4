//! Error responses: the API's Status object.

use crate::json::{Value, json};

use crate::go::{quoted, shown};

/// Why a request was rejected, with the API server's message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Status {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Value>,
    /// Warnings about the request, sent in headers.
    pub(crate) warnings: Vec<String>,
}

/// The object of a request in messages: `statefulsets.apps "db"`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) group: &'a str,
    pub(crate) plural: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

/// One validation error.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldError {
    pub(crate) field: String,
    /// `FieldValueInvalid`, `FieldValueRequired`, …
    pub(crate) reason: &'static str,
    /// The whole message without the field: `Invalid value: -1: must be greater than or equal to 0`.
    pub(crate) message: String,
}

impl FieldError {
    pub(crate) fn new(field: impl Into<String>, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason,
            message: message.into(),
        }
    }

    pub(crate) fn invalid(field: impl Into<String>, value: &Value, detail: impl AsRef<str>) -> Self {
        let message = format!("Invalid value: {}: {}", shown(value), detail.as_ref());
        Self::new(field, "FieldValueInvalid", message)
    }

    /// Like `invalid`, for a value whose text is not JSON. An empty `detail` is omitted.
    pub(crate) fn invalid_as(field: impl Into<String>, shown: &str, detail: &str) -> Self {
        let mut parts = vec!["Invalid value", shown, detail];
        parts.retain(|part| !part.is_empty());
        Self::new(field, "FieldValueInvalid", parts.join(": "))
    }

    pub(crate) fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new(
            field,
            "FieldValueNotFound",
            format!("Not found: {}", shown(value)),
        )
    }

    pub(crate) fn too_many(field: impl Into<String>, count: usize, limit: u64) -> Self {
        let items = if limit == 1 { "item" } else { "items" };
        let message = format!("Too many: {count}: must have at most {limit} {items}");
        Self::new(field, "FieldValueTooMany", message)
    }

    pub(crate) fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = match detail {
            "" => "Required value".to_owned(),
            detail => format!("Required value: {detail}"),
        };
        Self::new(field, "FieldValueRequired", message)
    }

    pub(crate) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(field, "FieldValueForbidden", format!("Forbidden: {detail}"))
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::duplicate_as(field, &shown(value))
    }

    /// For a value whose text is not JSON.
    pub(crate) fn duplicate_as(field: impl Into<String>, shown: &str) -> Self {
        Self::new(field, "FieldValueDuplicate", format!("Duplicate value: {shown}"))
    }

    pub(crate) fn not_supported(field: impl Into<String>, value: &Value, allowed: &[&str]) -> Self {
        Self::not_supported_as(field, &shown(value), allowed)
    }

    /// For a value whose text is not JSON.
    pub(crate) fn not_supported_as(field: impl Into<String>, shown: &str, allowed: &[&str]) -> Self {
        let allowed: Vec<_> = allowed.iter().map(|one| quoted(one)).collect();
        let message = format!(
            "Unsupported value: {shown}: supported values: {}",
            allowed.join(", ")
        );
        Self::new(field, "FieldValueNotSupported", message)
    }

    pub(crate) fn too_long(field: impl Into<String>, limit: u64) -> Self {
        let bytes = if limit == 1 { "byte" } else { "bytes" };
        let message = format!("Too long: may not be more than {limit} {bytes}");
        Self::new(field, "FieldValueTooLong", message)
    }
}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            warnings: Vec::new(),
        }
    }

    /// The same, with additional warnings.
    pub(crate) fn warning(mut self, warnings: &[String]) -> Self {
        self.warnings.extend_from_slice(warnings);
        self
    }

    fn about(mut self, about: About<'_>) -> Self {
        let mut details = json!({"name": about.name, "group": about.group, "kind": about.plural});
        drop_empty(&mut details);
        self.details = Some(details);
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn forbidden(about: About<'_>, why: &str) -> Self {
        Self::new(403, "Forbidden", format!("{} is forbidden: {why}", named(about))).about(about)
    }

    pub(crate) fn not_found(about: About<'_>) -> Self {
        Self::new(404, "NotFound", format!("{} not found", named(about))).about(about)
    }

    /// An unknown path.
    pub(crate) fn no_such_path() -> Self {
        let mut status = Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        );
        status.details = Some(json!({}));
        status
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut status = Self::new(405, "MethodNotAllowed", message);
        status.details = Some(json!({}));
        status
    }

    pub(crate) fn already_exists(about: About<'_>) -> Self {
        Self::new(409, "AlreadyExists", format!("{} already exists", named(about))).about(about)
    }

    pub(crate) fn conflict(about: About<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {}: {why}", named(about));
        Self::new(409, "Conflict", message).about(about)
    }

    /// The object changed since the client read it.
    pub(crate) fn modified(about: About<'_>) -> Self {
        Self::conflict(
            about,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn invalid(about: About<'_>, errors: &[FieldError]) -> Self {
        let mut sentences: Vec<String> = Vec::new();
        for error in errors {
            let sentence = format!("{}: {}", error.field, error.message);
            // Each message once; the causes have them all.
            if !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
        let list = match sentences.as_slice() {
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let about = About {
            group: kind_group(about.group),
            ..about
        };
        let kind = if about.group.is_empty() {
            about.kind.to_owned()
        } else {
            format!("{}.{}", about.kind, about.group)
        };
        let mut status = Self::new(
            422,
            "Invalid",
            format!("{kind} \"{}\" is invalid: {list}", about.name),
        );
        let causes: Vec<_> = errors
            .iter()
            .map(|error| json!({"reason": error.reason, "message": error.message, "field": error.field}))
            .collect();
        let mut details =
            json!({"name": about.name, "group": about.group, "kind": about.kind, "causes": causes});
        drop_empty(&mut details);
        status.details = Some(details);
        status
    }

    /// Contradictory options in a query.
    pub(crate) fn invalid_options(kind: &str, errors: &[FieldError]) -> Self {
        Self::invalid(
            About {
                group: "meta.k8s.io",
                plural: "",
                kind,
                name: "",
            },
            errors,
        )
    }

    /// The object does not meet a precondition of the request.
    pub(crate) fn precondition(about: About<'_>, why: &str) -> Self {
        // Named by its kind, as otherwise only invalid objects are.
        Self::conflict(
            About {
                plural: about.kind,
                group: kind_group(about.group),
                ..about
            },
            why,
        )
    }

    /// A version that the server has not reached yet.
    pub(crate) fn too_large_version(wanted: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {wanted}, current: {current}");
        let mut status = Self::new(504, "Timeout", format!("Timeout: {message}"));
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        status.details = Some(json!({"causes": [cause], "retryAfterSeconds": 1}));
        status
    }

    /// An internal error without a prefix.
    pub(crate) fn internal_plain(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    pub(crate) fn too_many_requests(message: impl Into<String>, cause: Value, retry_after: u64) -> Self {
        let mut status = Self::new(429, "TooManyRequests", message);
        let mut details = json!({"causes": [cause]});
        if retry_after > 0 {
            details["retryAfterSeconds"] = retry_after.into();
        }
        status.details = Some(details);
        status
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        let message = message.into();
        let mut status = Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {message}"),
        );
        status.details = Some(json!({"causes": [{"message": message}]}));
        status
    }

    pub(crate) fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(501, "NotImplemented", message)
    }

    /// Whether the object was not found.
    pub(crate) fn is_not_found(&self) -> bool {
        self.code == 404
    }

    /// Whether it is a write conflict.
    pub(crate) fn is_conflict(&self) -> bool {
        self.code == 409
    }

    /// Whether the namespace is being deleted, so that nothing can be created in it.
    pub(crate) fn is_about_terminating_namespace(&self) -> bool {
        let causes = self
            .details
            .as_ref()
            .and_then(|details| details["causes"].as_array());
        causes
            .into_iter()
            .flatten()
            .any(|cause| cause["reason"] == "NamespaceTerminating")
    }

    /// The HTTP status code.
    pub(crate) fn code(&self) -> u16 {
        self.code
    }

    /// The object as it goes over the wire.
    pub(crate) fn to_value(&self) -> Value {
        let mut value = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        // Some of upstream's errors have none.
        if !self.reason.is_empty() {
            value["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            value["details"] = details.clone();
        }
        value
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

/// The group of a kind in messages: an Event is always the core group's.
fn kind_group(group: &str) -> &str {
    if group == "events.k8s.io" { "" } else { group }
}

/// `statefulsets.apps "db"`
fn named(about: About<'_>) -> String {
    let About {
        group, plural, name, ..
    } = about;
    if group.is_empty() {
        format!("{plural} \"{name}\"")
    } else {
        format!("{plural}.{group} \"{name}\"")
    }
}

fn drop_empty(details: &mut Value) {
    if let Value::Object(fields) = details {
        fields.retain(|_, value| value != "");
    }
}
