//! Requests on resources, by method.

use crate::json::{Value, json};
use axum::body::Body;
use axum::http::{Method, Request};

use super::answer::Reply;
use super::body::{self, Expected};
use super::duplicate_keys::{self, DuplicateKeys};
use super::query::Query;
use super::syntax;
use crate::audit::Body as Carried;
use crate::object::{self, Object};
use crate::server::{Caller, Change, Deleted, Server, Target, Written};
use crate::status::Status;

/// Executes the request. Its body is left for the audit log.
pub(super) async fn act(
    server: &Server,
    request: Request<Body>,
    target: &Target,
    query: &Query,
    caller: &Caller,
    carried: &mut Carried,
) -> Result<Reply, Status> {
    match (request.method().clone(), target.subresource.as_str()) {
        (Method::GET, "log") => Err(no_logs(server, target)),
        (Method::GET, _) if target.name.is_empty() => list(server, target, query).await,
        (Method::GET, _) => get(server, target, query).await,
        (Method::POST, "") => {
            let mut options = query.write("CreateOptions")?;
            let body = body::object(request, expected(target), &mut options).await?;
            *carried = body.clone().into();
            if target.resource.is_a_review() {
                return server.review(target, &body, &options, caller).map(written);
            }
            server.create(target, &body, &options, caller).map(written)
        }
        (Method::POST, "binding") => {
            let mut options = query.write("CreateOptions")?;
            let body = body::object(request, builtin("Binding"), &mut options).await?;
            *carried = body.clone().into();
            server.bind(target, &body, &options)?;
            Ok(done(Value::Null, 201))
        }
        (Method::POST, "eviction") => {
            let mut options = query.write("CreateOptions")?;
            let body = body::object(request, builtin("Eviction"), &mut options).await?;
            *carried = body.clone().into();
            server.evict(target, &body, &options)?;
            Ok(done(Value::Null, 201))
        }
        (Method::PUT, _) => {
            let mut options = query.write("UpdateOptions")?;
            let expected = match target.subresource.as_str() {
                "scale" => builtin("Scale"),
                _ => expected(target),
            };
            let body = body::object(request, expected, &mut options).await?;
            *carried = body.clone().into();
            server
                .modify(target, Change::Replace(&body), &options, caller)
                .map(written)
        }
        (Method::PATCH, _) => patch(server, request, target, query, caller, carried).await,
        (Method::DELETE, _) if target.name.is_empty() => {
            delete_all(server, request, target, query, carried).await
        }
        (Method::DELETE, _) => {
            let body = deletion(request, query).await?;
            *carried = body.clone().into();
            let dry_run = !body["dryRun"].is_null();
            server
                .delete(target, &body, dry_run)
                .map(|deleted| gone(target, deleted))
        }
        _ => Err(Status::method_not_allowed()),
    }
}

/// An object of the target's own kind.
fn expected(target: &Target) -> Expected<'_> {
    let resource = &*target.resource;
    Expected {
        kind: &resource.kind,
        custom: resource.is_custom().then_some(&*resource.version),
    }
}

/// An object of a kind that follows from its path.
fn builtin(kind: &str) -> Expected<'_> {
    Expected { kind, custom: None }
}

async fn get(server: &Server, target: &Target, query: &Query) -> Result<Reply, Status> {
    let version = query.get("resourceVersion");
    if !version.is_empty() {
        let wanted = version
            .parse::<u64>()
            .map_err(|_| unreadable_version(target, version))?;
        wait_for(server, target, wanted).await?;
    }
    Ok(shown(server.get(target)?, 200))
}

/// The error for a resourceVersion that is not a number.
pub(super) fn unreadable_version(target: &Target, version: &str) -> Status {
    let why = format!(
        "resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: invalid syntax"
    );
    // Events are read from storage, everything else from a cache with other messages.
    match &*target.resource.shelf.name() {
        "events" => Status::bad_request(format!("invalid resource version: {why}")),
        _ => Status::internal_plain(why),
    }
}

async fn list(server: &Server, target: &Target, query: &Query) -> Result<Reply, Status> {
    let options = query.list(&target.resource)?;
    if let Ok(wanted) = options.resource_version.parse::<u64>() {
        wait_for(server, target, wanted).await?;
    }
    server.list(target, &options).map(Reply::List)
}

/// How long the server waits for a version it has not observed yet.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(3);

async fn wait_for(server: &Server, target: &Target, wanted: u64) -> Result<(), Status> {
    let current = server.store.revision();
    if wanted <= current {
        return Ok(());
    }
    let mut growth = server.store.growth(&target.resource.shelf);
    let patience = server.clock.sleep(PATIENCE);
    tokio::pin!(patience);
    loop {
        tokio::select! {
            biased;
            changed = growth.changed() => if changed.is_err() || server.store.revision() >= wanted { return Ok(()) },
            () = &mut patience => return Err(Status::too_large_version(wanted, current)),
        }
    }
}

async fn patch(
    server: &Server,
    request: Request<Body>,
    target: &Target,
    query: &Query,
    caller: &Caller,
    carried: &mut Carried,
) -> Result<Reply, Status> {
    let mut options = query.write("PatchOptions")?;
    let media = body::media_type(request.headers());
    check_media(target, &media)?;
    let bytes = body::bytes(request).await?;
    let body;
    (body, options.duplicates) = match media.as_str() {
        "application/apply-patch+yaml" => body::applied(&bytes, options.validation)?,
        media => {
            let (patch, paths) = duplicate_keys::read(&bytes, DuplicateKeys::Replaced).map_err(|error| {
                // A patch is parsed only if its object exists.
                if let Err(missing) = server.get(target) {
                    return missing;
                }
                let why = syntax::of(&bytes, &error);
                let strategic = media == "application/strategic-merge-patch+json";
                Status::bad_request(if strategic {
                    why
                } else {
                    format!("error decoding patch: {why}")
                })
            })?;
            let told = match media {
                "application/json-patch+json" => duplicate_keys::in_json_patch(&patch, &paths),
                _ => paths
                    .iter()
                    .map(|path| format!("duplicate field {path:?}"))
                    .collect(),
            };
            (patch, told)
        }
    };
    *carried = match media.as_str() {
        "application/apply-patch+yaml" => body.clone().into(),
        _ => Carried::Text(bytes),
    };
    if options.force && media != "application/apply-patch+yaml" {
        let error = crate::status::FieldError::forbidden("force", "may not be specified for non-apply patch");
        return Err(Status::invalid_options("PatchOptions", &[error]));
    }
    let change = match media.as_str() {
        "application/json-patch+json" => Change::Json(&body),
        "application/merge-patch+json" => Change::Merge(&body),
        "application/strategic-merge-patch+json" => Change::Strategic(&body),
        _ => Change::Apply(&body),
    };
    server.modify(target, change, &options, caller).map(written)
}

/// Custom kinds do not support strategic merge patches.
fn check_media(target: &Target, media: &str) -> Result<(), Status> {
    let mut known = vec!["application/json-patch+json", "application/merge-patch+json"];
    if !target.resource.is_custom() {
        known.push("application/strategic-merge-patch+json");
    }
    known.push("application/apply-patch+yaml");
    if known.contains(&media) {
        return Ok(());
    }
    if !target.resource.is_custom() {
        let mut status = Status::unsupported_media_type("415: Unsupported Media Type");
        status.details = Some(json!({}));
        return Err(status);
    }
    Err(Status::unsupported_media_type(format!(
        "the body of the request was in an unknown format - accepted media types include: {}",
        known.join(", ")
    )))
}

async fn delete_all(
    server: &Server,
    request: Request<Body>,
    target: &Target,
    query: &Query,
    carried: &mut Carried,
) -> Result<Reply, Status> {
    let options = query.list(&target.resource)?;
    let body = deletion(request, query).await?;
    *carried = body.clone().into();
    let dry_run = !body["dryRun"].is_null();
    let page = server.list(target, &options)?;
    let mut deleted = page.clone();
    deleted.items.clear();
    for one in &page.items {
        let target = Target {
            name: object::name(one).to_owned(),
            namespace: object::namespace(one).to_owned(),
            ..target.clone()
        };
        match server.delete(&target, &body, dry_run) {
            // As they were listed.
            Ok(_) => deleted.items.push(one.clone()),
            Err(status) if status.is_not_found() => {}
            Err(status) => return Err(status),
        }
    }
    Ok(Reply::List(deleted))
}

/// DeleteOptions from the body, or from the query as old clients send them.
async fn deletion(request: Request<Body>, query: &Query) -> Result<Value, Status> {
    let mut options = body::options(request).await?;
    if let Ok(grace) = query.get("gracePeriodSeconds").parse::<i64>() {
        options["gracePeriodSeconds"] = grace.into();
    } else if let Some(grace) = query.number("gracePeriodSeconds")? {
        options["gracePeriodSeconds"] = grace.into();
    }
    if !query.get("propagationPolicy").is_empty() {
        options["propagationPolicy"] = query.get("propagationPolicy").into();
    }
    if !query.get("dryRun").is_empty() {
        options["dryRun"] = json!([query.get("dryRun")]);
    }
    if let Some(dry_run) = options["dryRun"].as_array()
        && (dry_run.is_empty() || dry_run.iter().all(|one| one == ""))
        && let Value::Object(fields) = &mut options
    {
        fields.remove("dryRun");
    }
    crate::server::check_deletion(&options)?;
    Ok(options)
}

/// The response to a deletion depends on the kind: most return Success, some the last object.
fn gone(target: &Target, deleted: Deleted) -> Reply {
    match deleted {
        Deleted::Going(object) => shown(object, 200),
        Deleted::Gone(object) if target.resource.shows_what_it_deletes() => shown(object, 200),
        Deleted::Gone(object) => {
            let resource = &target.resource;
            let mut details =
                json!({"name": target.name, "kind": resource.plural, "uid": object::uid(&object)});
            if !resource.group.is_empty() {
                details["group"] = resource.group.as_str().into();
            }
            done(details, 200)
        }
    }
}

/// Simulated containers have no logs.
fn no_logs(server: &Server, target: &Target) -> Status {
    match server.get(target) {
        Ok(_) => Status::not_implemented("this cluster's pods are simulated, not run: they have no logs"),
        Err(status) => status,
    }
}

fn written(written: Written) -> Reply {
    let Written {
        object,
        created,
        warnings,
    } = written;
    Reply::Object {
        object,
        code: if created { 201 } else { 200 },
        warnings,
    }
}

fn shown(object: Object, code: u16) -> Reply {
    Reply::Object {
        object,
        code,
        warnings: Vec::new(),
    }
}

fn done(details: Value, code: u16) -> Reply {
    Reply::Done { details, code }
}
