//! HTTP responses: objects, lists, tables and errors.

use std::borrow::Cow;
use std::sync::LazyLock;

use crate::json::{Value, json};
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, StatusCode, header};

use super::negotiate::Form;
use super::query::Query;
use super::text::{self, Entries};
use crate::events;
use crate::object::Object;
use crate::patch::Managers;
use crate::resource::{Model, Resource};
use crate::server::{Page, Server, Target};
use crate::status::Status;
use crate::table::{self, IncludeObject};

/// The result of a request.
#[derive(Debug)]
pub(super) enum Reply {
    /// One object of the target's resource (or a Scale of it).
    Object {
        object: Object,
        code: u16,
        warnings: Vec<String>,
    },
    /// Many of them.
    List(Page),
    /// Success without an object.
    Done { details: Value, code: u16 },
}

impl Reply {
    pub(super) fn code(&self) -> u16 {
        match self {
            Self::Object { code, .. } | Self::Done { code, .. } => *code,
            Self::List(_) => 200,
        }
    }

    pub(super) fn into_response(
        self,
        server: &Server,
        target: &Target,
        form: Form,
        query: &Query,
    ) -> Response<Body> {
        match self {
            Self::Object {
                object,
                code,
                warnings,
            } => {
                let mut response = match form {
                    Form::Object | Form::Lean => response(
                        code,
                        "application/json",
                        text_of(server, &target.resource, &object, form),
                    ),
                    Form::Metadata => json(code, &metadata_only(&object.whole(), "PartialObjectMetadata")),
                    Form::Table => {
                        let shown = dressed_whole(&target.resource, &object);
                        let version = shown["metadata"]["resourceVersion"].clone();
                        let mut table = match target.subresource.as_str() {
                            "scale" => table::render("scales", &[&shown], None, server.now(), include(query)),
                            _ => rows(server, &target.resource, &[&shown], query),
                        };
                        table["metadata"] = json!({"resourceVersion": version});
                        json(code, &table)
                    }
                };
                warn(&mut response, &warnings);
                response
            }
            Self::List(page) => {
                let text = list(server, &target.resource, &page, form, query);
                response(200, "application/json", text)
            }
            Self::Done { details, code } => {
                let mut status =
                    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"});
                match details {
                    Value::Null => status["code"] = code.into(),
                    details => status["details"] = details,
                }
                json(code, &status)
            }
        }
    }
}

fn list(server: &Server, resource: &Resource, page: &Page, form: Form, query: &Query) -> Vec<u8> {
    let mut metadata = json!({"resourceVersion": page.revision.to_string()});
    if let Some(token) = &page.continue_token {
        metadata["continue"] = token.as_str().into();
    }
    if let Some(remaining) = page.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    match form {
        Form::Table => {
            let items: Vec<_> = page
                .items
                .iter()
                .map(|object| dressed_whole(resource, object))
                .collect();
            let mut table = rows(server, resource, &items.iter().collect::<Vec<_>>(), query);
            table["metadata"] = metadata;
            text::of(&table)
        }
        Form::Metadata => {
            let items = page.items.iter().map(Object::whole);
            text::of(&json!({
                "kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                "items": items.map(|object| metadata_only(&object, "PartialObjectMetadata")).collect::<Vec<_>>(),
            }))
        }
        Form::Object | Form::Lean => {
            let typed = matches!(resource.model, Model::Builtin { .. });
            let items = page
                .items
                .iter()
                .map(|object| (dressed(resource, object), managers_for(form, object)));
            let mut out = Vec::with_capacity(4096);
            let mut entries = Entries::begin(&mut out);
            text::write(entries.next("apiVersion"), &resource.api_version().into());
            text::write_items(entries.next("items"), items, typed);
            text::write(entries.next("kind"), &resource.list_kind.as_str().into());
            text::write(entries.next("metadata"), &metadata);
            entries.end();
            out
        }
    }
}

/// The object in the form of the requested resource: the two Events share storage.
pub(super) fn dressed<'o>(resource: &Resource, object: &'o Value) -> Cow<'o, Value> {
    match &*resource.id {
        "events.events.k8s.io" => Cow::Owned(events::as_events_group(object)),
        _ => Cow::Borrowed(object),
    }
}

/// The encoded object in that form.
pub(super) fn text_of(server: &Server, resource: &Resource, object: &Object, form: Form) -> Bytes {
    let managers = managers_for(form, object);
    match dressed(resource, object) {
        Cow::Borrowed(shown) => server.told.text(object, form == Form::Lean, |out, spec| {
            text::write_object(out, shown, managers, spec)
        }),
        Cow::Owned(shown) => {
            let mut out = Vec::with_capacity(4096);
            text::write_object(&mut out, &shown, managers, None);
            out.into()
        }
    }
}

/// The managers that this form shows.
fn managers_for(form: Form, object: &Object) -> &Managers {
    static NONE: LazyLock<Managers> = LazyLock::new(Managers::default);
    match form {
        Form::Lean => &NONE,
        _ => &object.managers,
    }
}

/// The same with its `managedFields`.
pub(super) fn dressed_whole(resource: &Resource, object: &Object) -> Value {
    let mut whole = dressed(resource, object).into_owned();
    object.managers.write(&mut whole);
    whole
}

/// The objects as a Table.
pub(super) fn rows(server: &Server, resource: &Resource, objects: &[&Value], query: &Query) -> Value {
    let custom = match &resource.model {
        Model::Custom(custom) => Some(&**custom),
        Model::Builtin { .. } => None,
    };
    table::render(&resource.id, objects, custom, server.now(), include(query))
}

fn include(query: &Query) -> IncludeObject {
    IncludeObject::parse(query.get("includeObject")).unwrap_or_default()
}

/// The metadata of an object only.
pub(super) fn metadata_only(object: &Value, kind: &str) -> Value {
    json!({"kind": kind, "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

pub(super) fn json(code: u16, value: &Value) -> Response<Body> {
    response(code, "application/json", text::of(value))
}

pub(super) fn plain(text: &'static str) -> Response<Body> {
    response(200, "text/plain; charset=utf-8", text)
}

pub(super) fn refuse(status: &Status) -> Response<Body> {
    let mut response = json(status.code(), &status.to_value());
    let seconds = status
        .details
        .as_ref()
        .and_then(|details| details["retryAfterSeconds"].as_u64());
    if let Some(seconds) = seconds {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    warn(&mut response, &status.warnings);
    response
}

pub(super) fn response(code: u16, media: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes.into()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

/// Sends warnings in headers, one each.
fn warn(response: &mut Response<Body>, warnings: &[String]) {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}
