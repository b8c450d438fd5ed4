//! The API server over HTTP: paths, media types, streams. The meaning of a request is in `server`.
//!
//! There is one handler. It resolves the path with the table of resources, so a custom resource is served as soon as its CRD is, and an
//! unknown path is a 404, never a silent 200.

mod answer;
#[cfg(test)]
mod any_request;
mod body;
mod discovery;
mod duplicate_keys;
mod item;
pub(crate) mod negotiate;
mod openapi;
mod protobuf;
mod query;
mod route;
pub(crate) mod syntax;
mod text;
mod watch;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Method, Request, Response, header};

use crate::audit::Entry;
use crate::resource::{Model, Resource};
use crate::server::{Caller, Server, Target};
use crate::status::Status;

use answer::{Reply, plain, refuse};
use query::Query;
use route::Route;

/// The API server as a service, for a socket or for a client in this process.
pub(crate) fn router(server: Arc<Server>) -> Router {
    Router::new().fallback(handle).with_state(server)
}

async fn handle(State(server): State<Arc<Server>>, request: Request<Body>) -> Response<Body> {
    let caller = match server.caller(&request) {
        Ok(caller) => caller,
        Err(status) => return refuse(&status),
    };
    match Route::read(request.uri().path()) {
        Route::Health => plain("ok"),
        Route::Version => answer::json(200, &discovery::version()),
        Route::Groups { core } => discovery::groups(&server, core, request.headers()),
        Route::Group { group } => discovery::group(&server, &group),
        Route::GroupVersion { group, version } => discovery::resources(&server, &group, &version),
        Route::OpenApi => openapi::index(&server),
        Route::OpenApiV2 => openapi::version_2(),
        Route::OpenApiOf { path } => openapi::document(&server, &path),
        Route::Nowhere => nowhere(&server, request.uri().path()),
        Route::Resource(path) => {
            let found = server
                .registry
                .find(&path.group, &path.version, &path.plural)
                .filter(|resource| resource.is_custom() || !path.goes_on);
            let Some(resource) = found else {
                return nowhere(&server, request.uri().path());
            };
            let target = Target {
                resource,
                namespace: path.namespace,
                name: path.name,
                subresource: path.subresource,
            };
            serve(server, request, target, caller).await
        }
    }
}

/// Built-in groups handle every path under their name.
fn nowhere(server: &Server, path: &str) -> Response<Body> {
    let parts: Vec<_> = path.trim_matches('/').split('/').collect();
    let (group, version) = match parts.as_slice() {
        ["api", version, ..] => ("", *version),
        ["apis", group, version, ..] => (*group, *version),
        _ => return not_found(),
    };
    let all = server.registry.all();
    let mut known = all
        .iter()
        .filter(|known| known.group == group && known.version == version);
    let is_builtin = known.any(|known| matches!(known.model, Model::Builtin { .. }));
    if is_builtin {
        refuse(&Status::no_such_path())
    } else {
        not_found()
    }
}

/// An unknown path gets plain text, as from the real server.
fn not_found() -> Response<Body> {
    let mut response = plain("404 page not found\n");
    *response.status_mut() = axum::http::StatusCode::NOT_FOUND;
    response
}

/// Serves one resource and audits writes.
async fn serve(
    server: Arc<Server>,
    request: Request<Body>,
    target: Target,
    caller: Caller,
) -> Response<Body> {
    let query = Query::read(request.uri().query().unwrap_or_default());
    if is_misplaced(&target) {
        return nowhere(&server, request.uri().path());
    }
    if let Err(status) = check_path(&target, request.method()) {
        return refuse(&status);
    }
    if request.method() == Method::GET && target.subresource.is_empty() && query.is_watch() {
        return match watch::start(server, target, &query, negotiate::Form::of(&request)) {
            Ok(response) => response,
            Err(status) => refuse(&status),
        };
    }
    let wanted = negotiate::Form::of(&request);
    let verb = verb(request.method(), &target);
    let mut body = crate::audit::Body::from(crate::json::Value::Null);
    let before = server.store.revision();
    let outcome = item::act(&server, request, &target, &query, &caller, &mut body).await;
    if let Some(verb) = verb {
        let code = outcome.as_ref().map_or_else(Status::code, Reply::code);
        let after = server.store.revision();
        let entry = Entry {
            revision: (after > before).then_some(after),
            ..target.entry(&caller, verb, code)
        };
        server.audit.record(entry, body);
    }
    match outcome {
        Ok(reply) => reply.into_response(&server, &target, wanted, &query),
        Err(status) => refuse(&status),
    }
}

/// The verb of a write in audit logs.
fn verb(method: &Method, target: &Target) -> Option<&'static str> {
    match *method {
        Method::POST => Some("create"),
        Method::PUT => Some("update"),
        Method::PATCH => Some("patch"),
        Method::DELETE if target.name.is_empty() => Some("deletecollection"),
        Method::DELETE => Some("delete"),
        _ => None,
    }
}

/// `/api/v1/pods/x` and `/api/v1/namespaces/ns/nodes` are not valid paths.
fn is_misplaced(target: &Target) -> bool {
    match target.resource.namespaced {
        true => target.namespace.is_empty() && !target.name.is_empty(),
        false => !target.namespace.is_empty(),
    }
}

/// Whether the table has such a path with such a method.
fn check_path(target: &Target, method: &Method) -> Result<(), Status> {
    let resource = &target.resource;
    let verbs = match target.subresource.as_str() {
        "" => &resource.verbs,
        part => match (resource.subresource(part), &resource.model) {
            (Some(part), _) => &part.verbs,
            (None, Model::Builtin { .. }) => return Err(no_such_part(resource, part)),
            (None, Model::Custom(_)) => return Err(Status::not_found(target.about())),
        },
    };
    let (one, many) = match *method {
        Method::GET => ("get", "list"),
        Method::POST => ("create", "create"),
        Method::PUT => ("update", ""),
        Method::PATCH => ("patch", ""),
        Method::DELETE => ("delete", "deletecollection"),
        _ => ("", ""),
    };
    let collection = target.name.is_empty();
    // Reviews can only be created and have no names.
    if !collection && target.subresource.is_empty() && resource.is_a_review() {
        return Err(Status::no_such_path());
    }
    // An object is created in its collection, a subresource on its object.
    // Custom resources accept an object's name after their collection.
    let misdirected = *method == Method::POST
        && collection != target.subresource.is_empty()
        && !(resource.is_custom() && target.subresource.is_empty());
    // Across all namespaces objects can be read, not written.
    let everywhere = resource.namespaced && target.namespace.is_empty() && *method != Method::GET;
    let verb = if collection { many } else { one };
    if resource.is_custom() && collection && matches!(*method, Method::PUT | Method::PATCH) {
        return Err(Status::bad_request("name must be provided"));
    }
    if misdirected || everywhere || !verbs.iter().any(|known| known == verb) {
        return Err(Status::method_not_allowed());
    }
    Ok(())
}

/// Subresources of a real cluster that this one cannot have are rejected with the reason, others are unknown paths.
fn no_such_part(resource: &Resource, part: &str) -> Status {
    match (&*resource.id, part) {
        ("pods", "exec" | "attach" | "portforward" | "proxy" | "ephemeralcontainers") => {
            Status::not_implemented(format!(
                "this cluster's pods are simulated, not run: there is nothing behind {part}"
            ))
        }
        ("pods", "resize") | ("serviceaccounts", "token") | ("nodes" | "services", "proxy") => {
            Status::not_implemented(format!(
                "this embedded cluster does not serve {}/{part}",
                resource.plural
            ))
        }
        _ => Status::no_such_path(),
    }
}

impl Server {
    /// The user of the request: set by the client in this process, or from its token.
    fn caller(&self, request: &Request<Body>) -> Result<Caller, Status> {
        let agent = request
            .headers()
            .get(header::USER_AGENT)
            .and_then(|agent| agent.to_str().ok())
            .unwrap_or_default();
        let token = request
            .headers()
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        let token = token.and_then(|value| value.strip_prefix("Bearer "));
        let user = match (request.extensions().get::<User>(), token) {
            (Some(User(user)), _) => user.clone(),
            (None, Some(token)) => self.users.get(token).cloned().ok_or_else(Status::unauthorized)?,
            (None, None) if self.anonymous => "system:admin".to_owned(),
            (None, None) => return Err(Status::unauthorized()),
        };
        Ok(Caller {
            user,
            agent: agent.to_owned(),
        })
    }
}

/// A request extension with the user of a client in this process.
#[derive(Clone, Debug)]
pub(crate) struct User(pub(crate) String);
