//! Changes an object: replace, patch, apply.

use std::borrow::Cow;
use std::sync::Arc;

use crate::json::{List, Map, Value};

use super::create::{check_kind, check_namespace, check_type, definition_errors};
use super::scale::replicas_path;
use super::{
    Caller, Server, Target, Unreadable, WriteOptions, Written, decode, decode_over, manager, unconvertible,
    unknown_fields, unreadable,
};
use crate::builtin::{self, Endpoint};
use crate::custom::{self, CustomType};
use crate::events;
use crate::go;
use crate::object::{self, Object};
use crate::patch::{
    self, Managers, PatchError,
    managed::{self, Write},
};
use crate::resource::{Model, Resource};
use crate::status::{About, FieldError, Status};
use crate::store::Transaction;

/// The change.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    /// PUT with the new object.
    Replace(&'a Value),
    /// PUT of `base` with another status.
    Status { base: &'a Arc<Value>, status: &'a Value },
    /// RFC 6902
    Json(&'a Value),
    /// RFC 7386
    Merge(&'a Value),
    /// Strategic merge, built-in kinds only.
    Strategic(&'a Value),
    /// Server-side apply.
    Apply(&'a Value),
}

/// The requested object, not yet validated.
struct Wish<'a> {
    change: Change<'a>,
    /// Decoded as its type.
    new: Value,
    /// The field owners, if the request sets them.
    managers: Option<Managers>,
    stored: Object,
    /// The stored object, in the form of the requested resource.
    old: Object,
    endpoint: Endpoint,
}

impl Server {
    /// Changes the target, or its status or scale.
    pub(crate) fn modify(
        &self,
        target: &Target,
        change: Change<'_>,
        options: &WriteOptions,
        caller: &Caller,
    ) -> Result<Written, Status> {
        if matches!(change, Change::Apply(_)) && options.manager.is_empty() {
            let error = FieldError::required("fieldManager", "is required for apply patch");
            return Err(Status::invalid_options("PatchOptions", &[error]));
        }
        self.store.write(|tx| {
            if target.subresource == "scale" {
                return self.modify_scale_in(tx, target, change, options, caller);
            }
            self.modify_in(tx, target, change, options, caller)
        })
    }

    pub(super) fn modify_in(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        change: Change<'_>,
        options: &WriteOptions,
        caller: &Caller,
    ) -> Result<Written, Status> {
        if let Change::Replace(body) = change
            && target.subresource != "scale"
        {
            check_kind(&target.resource, body)?;
            // A body that cannot be decoded is rejected for that, whatever its name.
            check_name(target, body).map_err(|refused| {
                match read_strictly(&target.resource, body, options) {
                    Ok(warnings) => check_namespace(target, &mut body.clone())
                        .err()
                        .unwrap_or(refused)
                        .warning(&warnings),
                    Err(why) => unreadable(&target.resource, why),
                }
            })?;
        }
        let Some(stored) = tx.get(target.shelf(), &target.key()).cloned() else {
            // A body is validated before the object is looked up.
            let warnings = match change {
                Change::Replace(body) if target.subresource != "scale" => {
                    let warnings = read_strictly(&target.resource, body, options)
                        .map_err(|why| unreadable(&target.resource, why))?;
                    check_namespace(target, &mut body.clone())
                        .map_err(|refused| refused.warning(&warnings))?;
                    warnings
                }
                _ => Vec::new(),
            };
            let made = self.create_by_change(tx, target, change, options, caller);
            return made.map_err(|refused| match refused.warnings.is_empty() {
                true => refused.warning(&warnings),
                false => refused,
            });
        };
        let old = match events::is_redressed(&target.resource.id) {
            true => Object::new(events::as_events_group(&stored), stored.managers.clone()),
            false => stored.clone(),
        };
        let endpoint = Endpoint::of(&target.subresource);
        let resource = &*target.resource;
        let owner = manager(options, caller);
        let (now, api_version) = (self.now_text(), resource.api_version());
        let write = Write {
            manager: owner,
            subresource: &target.subresource,
            api_version: &api_version,
            kind: &resource.kind,
            reset: never_owned(resource, endpoint),
            now: &now,
        };
        let (wished, managers) = wish(target, &old, change, options, &write)?;
        let refused = |why: &Unreadable| refusal(target, &old, change, why);
        if let (Change::Json(_) | Change::Merge(_), true) = (change, wished["kind"].is_number()) {
            let why = "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of \
                       type string";
            return Err(refused(&Unreadable::Other(why.to_owned())));
        }

        let is_reset = resets_managers(&resource.model, &wished);
        let (mut new, unknown) = match (&resource.model, change) {
            // Nulls left by an apply are validated, not dropped.
            (Model::Custom(custom), Change::Apply(_)) => custom::decode_applied(custom, &wished)
                .map(|decoded| (decoded.value, decoded.unknown))
                .map_err(|why| Unreadable::Other(why.to_string())),
            // An Event in its other form was never decoded in that form.
            _ => {
                let stored = (!events::is_redressed(&resource.id)).then_some(&*old);
                decode_over(resource, &wished, stored)
            }
        }
        .map_err(|why| refused(&why))?;
        if is_reset {
            object::metadata_mut(&mut new).insert("managedFields".into(), Value::Array(List::default()));
        }
        let warnings = unknown_fields(&unknown, options).map_err(|why| refused(&Unreadable::Other(why)))?;
        let wish = Wish {
            change,
            new,
            managers,
            stored,
            old,
            endpoint,
        };
        let mut written = self
            .modify_decoded(tx, target, wish, options, &write)
            .map_err(|refused| refused.warning(&warnings))?;
        written.warnings = warnings;
        Ok(written)
    }

    /// Like `modify_in`, with the decoded new object.
    fn modify_decoded(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        wish: Wish<'_>,
        options: &WriteOptions,
        write: &Write<'_>,
    ) -> Result<Written, Status> {
        let Wish {
            change,
            mut new,
            managers,
            stored,
            old,
            endpoint,
        } = wish;
        let resource = &*target.resource;
        check_namespace(target, &mut new)?;
        if endpoint != Endpoint::Scale {
            check_name(target, &new)?;
        }
        check_uid(target, &old, &new, options.dry_run)?;
        check_version(target, &old, &new, change)?;
        keep_system_fields(&old, &mut new);

        match &resource.model {
            Model::Builtin { .. } => builtin::default_changed(&resource.id, &old, &mut new),
            Model::Custom(custom) => custom::default(custom, &mut new),
        }
        // Ownership is computed from the client's object, before the server changes it.
        let managers = match managers {
            Some(managers) => managers,
            // Ownership of an object of another kind cannot be computed.
            None if new["kind"] != resource.kind => Managers::default(),
            None if endpoint == Endpoint::Scale => {
                managed::scale(&old, &new, write, &replicas_path(&resource.model))
            }
            None => managed::update(Some(&old), &mut new, write, resource.shape()),
        };
        // From here on an Event is in its stored form.
        let old = stored;
        if events::is_redressed(&resource.id) {
            new = events::as_core(&new);
        }
        match &resource.model {
            Model::Builtin { .. } => {
                let finalizers = new["spec"].get("finalizers").cloned();
                builtin::prepare_update(&resource.id, &old, &mut new, endpoint, &self.context(""));
                // A namespace's finalizers can be removed only through this subresource.
                if target.subresource == "finalize" {
                    set(&mut new["spec"], "finalizers", finalizers);
                }
                self.assign_addresses(tx, target, &mut new)?;
            }
            Model::Custom(custom) => {
                prepare_custom(custom, &old, &mut new, endpoint);
                check_type(target, &new)?;
            }
        }
        let mut errors = builtin::validate_update(&resource.id, &old, &new, endpoint);
        match (&resource.model, endpoint) {
            (Model::Builtin { .. }, _) => errors.extend(definition_errors(target, &new, Some(&old))),
            (Model::Custom(custom), Endpoint::Status) => {
                errors.extend(custom::validate_status(custom, &new, &old))
            }
            (Model::Custom(custom), _) => errors = custom::validate_after(errors, custom, &new, Some(&old)),
        }
        if !errors.is_empty() {
            return Err(Status::invalid(target.about(), &errors));
        }

        let managers = managed::keep_times(&old, &new, managers);
        self.commit(tx, target, old, new, managers, options)
    }

    /// Writes the new object if it differs, or deletes it if only its finalizers kept it.
    fn commit(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        old: Object,
        new: Value,
        managers: Arc<Managers>,
        options: &WriteOptions,
    ) -> Result<Written, Status> {
        // The stored form of a new claim differs from that of an updated one, although both read the same.
        let is_rewritten =
            &*target.resource.id == "persistentvolumeclaims" && tx.is_as_made(target.shelf(), &target.key());
        if *old == new && old.managers == managers && !is_rewritten {
            return Ok(Written {
                object: old,
                created: false,
                warnings: Vec::new(),
            });
        }
        let done = object::is_terminating(&new) && !object::has_finalizers(&new) && !is_held(target, &new);
        let object = match (options.dry_run, done) {
            (true, _) => Object::new(new, managers),
            // The final watch event still has the finalizer that kept it.
            (false, true) => {
                tx.remove(target.shelf(), &target.key(), Value::clone(&old), old.managers);
                Object::new(new, managers)
            }
            (false, false) => tx.put(target.shelf(), target.key(), new, managers),
        };
        Ok(Written {
            object,
            created: false,
            warnings: Vec::new(),
        })
    }

    /// Some writes create a missing object.
    fn create_by_change(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        change: Change<'_>,
        options: &WriteOptions,
        caller: &Caller,
    ) -> Result<Written, Status> {
        let resource = &*target.resource;
        // A Service is also created through its status.
        let is_made = target.subresource.is_empty() || &*resource.id == "services";
        match change {
            Change::Replace(body) if resource.is_created_by_update() && is_made => {
                if !object::uid(body).is_empty() {
                    return Err(Status::conflict(
                        target.about(),
                        &other_uid(target, object::uid(body), "", options.dry_run),
                    ));
                }
                // Whatever resourceVersion it had.
                let mut body = body.clone();
                object::metadata_mut(&mut body).remove("resourceVersion");
                self.create_in(tx, target, &body, options, caller)
            }
            Change::Apply(config) if is_made => {
                let write = Write {
                    manager: manager(options, caller),
                    subresource: &target.subresource,
                    api_version: &resource.api_version(),
                    kind: &resource.kind,
                    reset: never_owned(resource, Endpoint::of(&target.subresource)),
                    now: &self.now_text(),
                };
                let applied = managed::apply(None, config, options.force, &write, resource.shape())?;
                check_name(target, &applied.0)?;
                self.create_applied_in(tx, target, applied, options)
            }
            _ => Err(Status::not_found(target.about())),
        }
    }
}

/// The requested object, before any check, and its field owners if the request sets them.
fn wish<'c>(
    target: &Target,
    old: &Object,
    change: Change<'c>,
    options: &WriteOptions,
    write: &Write<'_>,
) -> Result<(Cow<'c, Value>, Option<Managers>), Status> {
    let resource = &*target.resource;
    let live = if mentions_managers(change) {
        Cow::Owned(old.whole())
    } else {
        Cow::Borrowed(&**old)
    };
    let wished = match change {
        Change::Replace(body) => {
            check_kind(resource, body)?;
            check_name(target, body)?;
            Cow::Borrowed(body)
        }
        Change::Status { base, status } => {
            let mut body = Value::clone(base);
            set(&mut body, "status", Some(status.clone()));
            check_kind(resource, &body)?;
            check_name(target, &body)?;
            Cow::Owned(body)
        }
        Change::Strategic(patch) => match resource.model {
            Model::Builtin { .. } => Cow::Owned(patch::strategic(&live, patch, resource.shape())?),
            Model::Custom(_) => {
                return Err(Status::unsupported_media_type(
                    "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                ));
            }
        },
        Change::Json(_) | Change::Merge(_) => Cow::Owned(patched(&live, change)?),
        Change::Apply(config) => {
            let (applied, managers) =
                managed::apply(Some(old), config, options.force, write, resource.shape())?;
            return Ok((Cow::Owned(applied), Some(managers)));
        }
    };
    Ok((wished, None))
}

/// The result of a patch that ignores types.
fn patched(live: &Value, change: Change<'_>) -> Result<Value, PatchError> {
    match change {
        Change::Json(patch) => patch::json(live, patch),
        Change::Merge(patch) => patch::merge(live, patch),
        _ => Ok(live.clone()),
    }
}

/// Whether a patch needs the `managedFields` of an object.
fn mentions_managers(change: Change<'_>) -> bool {
    match change {
        Change::Json(patch) => {
            let operations = patch.as_array().into_iter().flatten();
            let mut pointers = operations.flat_map(|operation| [&operation["path"], &operation["from"]]);
            pointers.any(|pointer| {
                pointer.as_str().is_some_and(|pointer| {
                    matches!(pointer, "" | "/metadata") || pointer.starts_with("/metadata/managedFields")
                })
            })
        }
        Change::Merge(patch) | Change::Strategic(patch) => {
            let fields = patch["metadata"].as_object().into_iter().flatten();
            fields
                .into_iter()
                .any(|(name, _)| name.ends_with("managedFields"))
        }
        Change::Replace(_) | Change::Status { .. } | Change::Apply(_) => false,
    }
}
/// The error if the requested object cannot be decoded. For a patch it contains its result, or the patch itself.
fn refusal(target: &Target, old: &Object, change: Change<'_>, why: &Unreadable) -> Status {
    let (shown, why) = match (change, why) {
        (Change::Replace(_) | Change::Status { .. }, _) => return unreadable(&target.resource, why),
        (Change::Apply(config), _) => {
            return unconvertible(&target.resource, object::namespace(config), &target.name, why);
        }
        (Change::Json(_) | Change::Merge(_), _) => {
            let wished = patched(&old.whole(), change).unwrap_or_default();
            (wished.to_string(), why.to_string())
        }
        (Change::Strategic(patch), Unreadable::Mismatch(mismatch)) => {
            (go::plain(patch), mismatch.converted())
        }
        (Change::Strategic(patch), Unreadable::Other(why)) => (go::plain(patch), why.clone()),
    };
    unpatchable(shown, why)
}

/// The error of a patch whose result, as shown, cannot be decoded.
pub(super) fn unpatchable(shown: String, why: String) -> Status {
    let nothing = About {
        group: "",
        plural: "",
        kind: "",
        name: "",
    };
    Status::invalid(nothing, &[FieldError::invalid("patch", &shown.into(), why)])
}

/// Checks that a body fits the type; returns warnings if it does.
fn read_strictly(
    resource: &Resource,
    body: &Value,
    options: &WriteOptions,
) -> Result<Vec<String>, Unreadable> {
    let (_, unknown) = decode(resource, body)?;
    unknown_fields(&unknown, options).map_err(Unreadable::Other)
}

pub(super) fn check_name(target: &Target, body: &Value) -> Result<(), Status> {
    let given = object::name(body);
    if given.is_empty() {
        let name = &target.name;
        let message =
            format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
        return Err(Status::bad_request(message));
    }
    if given == target.name {
        return Ok(());
    }
    Err(Status::bad_request(format!(
        "the name of the object ({given}) does not match the name on the URL ({})",
        target.name
    )))
}

/// Optimistic locking: a resourceVersion in the request must be the current one.
fn check_version(target: &Target, old: &Value, new: &Value, change: Change<'_>) -> Result<(), Status> {
    let (given, current) = (object::resource_version(new), object::resource_version(old));
    if given.is_empty() {
        if matches!(change, Change::Replace(_) | Change::Status { .. })
            && !target.resource.may_update_unconditionally()
        {
            let error = FieldError::invalid(
                "metadata.resourceVersion",
                &0.into(),
                "must be specified for an update",
            );
            // Upstream names the resource here where it names the kind elsewhere.
            let about = About {
                kind: &target.resource.plural,
                ..target.about()
            };
            return Err(Status::invalid(about, &[error]));
        }
        return Ok(());
    }
    if given != current {
        return Err(Status::modified(target.about()));
    }
    Ok(())
}

/// A UID in the request must be that of the stored object.
pub(super) fn check_uid(target: &Target, old: &Value, new: &Value, dry_run: bool) -> Result<(), Status> {
    let (given, current) = (object::uid(new), object::uid(old));
    if given.is_empty() || given == current {
        return Ok(());
    }
    Err(Status::conflict(
        target.about(),
        &other_uid(target, given, current, dry_run),
    ))
}

/// The storage's error for an object with another UID, or none.
fn other_uid(target: &Target, given: &str, current: &str, dry_run: bool) -> String {
    let resource = &*target.resource;
    let place = match &*resource.id {
        "services" => "services/specs".to_owned(),
        "nodes" => "minions".to_owned(),
        "endpoints" => "services/endpoints".to_owned(),
        _ if resource.is_custom() || resource.group == "apiextensions.k8s.io" => {
            format!("{}/{}", resource.group, resource.plural)
        }
        _ => resource.plural.clone(),
    };
    let key = [place.as_str(), &target.namespace, &target.name];
    let root = if dry_run { "" } else { "/registry" };
    let key: Vec<_> = key.into_iter().filter(|part| !part.is_empty()).collect();
    format!(
        "StorageError: invalid object, Code: 4, Key: {root}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {given}, UID in object meta: {current}",
        key.join("/")
    )
}

/// An empty list of managers clears them; decoding the object would drop it.
fn resets_managers(model: &Model, wished: &Value) -> bool {
    let reset = wished["metadata"]["managedFields"]
        .as_array()
        .is_some_and(Vec::is_empty);
    reset && matches!(model, Model::Builtin { .. })
}

/// Keeps the system fields.
fn keep_system_fields(old: &Value, new: &mut Value) {
    let kept = [
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
        "generation",
    ];
    let (old, new) = (&old["metadata"], object::metadata_mut(new));
    for field in kept {
        keep(old, new, field);
    }
    // A different name, namespace or UID fails validation; an absent one is filled in.
    for field in ["name", "namespace", "uid"] {
        if new.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            keep(old, new, field);
        }
    }
}

fn keep(old: &Value, new: &mut Map, field: &str) {
    match (old.get(field), new.get(field)) {
        (None, None) => {}
        (Some(old), Some(new)) if old.shares(new) => {}
        (Some(old), _) => drop(new.insert(field.into(), old.clone())),
        (None, Some(_)) => drop(new.remove(field)),
    }
}

/// The rules of a custom resource: which part an endpoint may write, and which changes increase the generation.
fn prepare_custom(custom: &CustomType, old: &Value, new: &mut Value, endpoint: Endpoint) {
    let empty = Map::new();
    match endpoint {
        Endpoint::Status => {
            let status = new.get("status").cloned();
            *new = old.clone();
            set(new, "status", status);
        }
        _ => {
            if custom.version.has_status {
                set(new, "status", old.get("status").cloned());
            }
            let old_fields = old.as_object().unwrap_or(&empty);
            let new_fields = new.as_object().unwrap_or(&empty);
            let counts = |key: &str| key != "metadata" && !(custom.version.has_status && key == "status");
            let differs = |a: &Map, b: &Map| {
                a.iter()
                    .any(|(key, value)| counts(key) && b.get(key) != Some(value))
            };
            if differs(old_fields, new_fields) || differs(new_fields, old_fields) {
                let next = object::generation(old) + 1;
                object::metadata_mut(new).insert("generation".into(), next.into());
            }
        }
    }
}

fn set(object: &mut Value, field: &str, value: Option<Value>) {
    if let Value::Object(fields) = object {
        match value {
            Some(value) => fields.insert(field.into(), value),
            None => fields.remove(field),
        };
    }
}

/// The fields that a write through this endpoint can never own, because the server ignores them there.
pub(super) fn never_owned(resource: &Resource, endpoint: Endpoint) -> &'static [&'static str] {
    match (&resource.model, endpoint) {
        (Model::Builtin { .. }, Endpoint::Status) if &*resource.id == "pods" => {
            &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"]
        }
        (Model::Builtin { .. }, Endpoint::Status) => &["spec"],
        (Model::Custom(_), Endpoint::Status) => &["spec", "metadata"],
        (Model::Custom(custom), _) if !custom.version.has_status => &[],
        _ => &["status"],
    }
}

/// Whether a terminating object stays for a reason other than finalizers: a pod's grace period, a namespace's content.
pub(super) fn is_held(target: &Target, object: &Value) -> bool {
    match &*target.resource.id {
        "pods" => object["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .is_some_and(|grace| grace > 0),
        "namespaces" => object["spec"]["finalizers"]
            .as_array()
            .is_some_and(|finalizers| !finalizers.is_empty()),
        _ => false,
    }
}
