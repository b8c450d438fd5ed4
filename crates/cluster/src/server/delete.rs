//! Deletes an object: at once, after its grace period, or after its finalizers.

use crate::json::{Value, json};

use super::modify::is_held;
use super::{Server, Target, seconds};
use crate::object::{self, Object};
use crate::status::{FieldError, Status};
use crate::store::Transaction;

/// Checks DeleteOptions.
pub(crate) fn check_deletion(options: &Value) -> Result<(), Status> {
    let mut errors = Vec::new();
    let policy = &options["propagationPolicy"];
    if !policy.is_null() && !options["orphanDependents"].is_null() {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        errors.push(FieldError::invalid("propagationPolicy", policy, detail));
    }
    let known = ["Foreground", "Background", "Orphan", "nil"];
    if !policy.is_null() && !policy.as_str().is_some_and(|policy| known.contains(&policy)) {
        errors.push(FieldError::not_supported("propagationPolicy", policy, &known));
    }
    if let Some(wanted) = options["dryRun"].as_array()
        && wanted.iter().any(|one| one != "All")
    {
        errors.push(FieldError::not_supported("dryRun", &options["dryRun"], &["All"]));
    }
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid_options("DeleteOptions", &errors))
    }
}

/// The result of a deletion.
#[derive(Clone, Debug)]
pub(crate) enum Deleted {
    /// It is gone.
    Gone(Object),
    /// It stays until its finalizers are removed or its grace period ends.
    Going(Object),
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

impl Server {
    /// Deletes the target with these DeleteOptions.
    pub(crate) fn delete(&self, target: &Target, options: &Value, dry_run: bool) -> Result<Deleted, Status> {
        self.store
            .write(|tx| self.delete_in(tx, target, options, dry_run))
    }

    pub(super) fn delete_in(
        &self,
        tx: &mut Transaction<'_>,
        target: &Target,
        options: &Value,
        dry_run: bool,
    ) -> Result<Deleted, Status> {
        let Some(old) = tx.get(target.shelf(), &target.key()).cloned() else {
            return Err(Status::not_found(target.about()));
        };
        check_immortal(target)?;
        check_preconditions(target, &old, &options["preconditions"])?;
        let mut new = Value::clone(&old);
        set_dependents_finalizer(target, &mut new, options);
        let grace = grace(target, &old, options);
        let first = !object::is_terminating(&old);
        if first {
            self.begin(&mut new, grace);
            if &*target.resource.id == "namespaces" {
                new["status"]["phase"] = "Terminating".into();
                object::metadata_mut(&mut new).remove("deletionGracePeriodSeconds");
            }
        } else {
            shorten(&mut new, grace);
        }

        if !object::has_finalizers(&new) && !is_held(target, &new) {
            // A pod is marked before its deletion, even if it is deleted at once.
            let is_marked = !first || &*target.resource.id == "pods";
            let last = if is_marked { new } else { Value::clone(&old) };
            if dry_run {
                return Ok(Deleted::Gone(Object::new(last, old.managers)));
            }
            if first && is_marked {
                tx.put(target.shelf(), target.key(), last.clone(), old.managers.clone());
            }
            let gone = tx.remove(target.shelf(), &target.key(), last, old.managers);
            return Ok(Deleted::Gone(gone));
        }
        if new == *old || dry_run {
            return Ok(Deleted::Going(Object::new(new, old.managers)));
        }
        let going = tx.put(target.shelf(), target.key(), new, old.managers);
        Ok(Deleted::Going(going))
    }

    /// Marks the object as being deleted.
    fn begin(&self, object: &mut Value, grace: i64) {
        let at = self
            .now()
            .checked_add(jiff::SignedDuration::from_secs(grace))
            .unwrap_or(jiff::Timestamp::MAX);
        let generation = object::generation(object);
        let metadata = object::metadata_mut(object);
        metadata.insert("deletionTimestamp".into(), seconds(at).into());
        metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
        if generation > 0 {
            metadata.insert("generation".into(), (generation + 1).into());
        }
    }
}

/// The grace period of a pod that is being deleted can only be shortened.
fn shorten(object: &mut Value, grace: i64) {
    let current = object["metadata"]["deletionGracePeriodSeconds"]
        .as_i64()
        .unwrap_or(0);
    if grace >= current {
        return;
    }
    let started = object["metadata"]["deletionTimestamp"]
        .as_str()
        .and_then(|at| at.parse::<jiff::Timestamp>().ok())
        .and_then(|at| at.checked_sub(jiff::SignedDuration::from_secs(current)).ok());
    let metadata = object::metadata_mut(object);
    if let Some(at) = started.and_then(|at| at.checked_add(jiff::SignedDuration::from_secs(grace)).ok()) {
        metadata.insert("deletionTimestamp".into(), seconds(at).into());
    }
    metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
}

/// The grace period; only pods have one.
fn grace(target: &Target, old: &Value, options: &Value) -> i64 {
    if &*target.resource.id != "pods" {
        return 0;
    }
    let phase = old["status"]["phase"].as_str().unwrap_or_default();
    let unscheduled = old["spec"]["nodeName"].as_str().is_none_or(str::is_empty);
    if unscheduled || phase == "Succeeded" || phase == "Failed" {
        return 0;
    }
    let asked = options["gracePeriodSeconds"].as_i64();
    asked
        .or_else(|| old["spec"]["terminationGracePeriodSeconds"].as_i64())
        .unwrap_or(30)
        .max(0)
}

/// Namespaces that must not be deleted.
fn check_immortal(target: &Target) -> Result<(), Status> {
    let immortal = ["default", "kube-system", "kube-public"];
    if &*target.resource.id == "namespaces" && immortal.contains(&target.name.as_str()) {
        return Err(Status::forbidden(
            target.about(),
            "this namespace may not be deleted",
        ));
    }
    Ok(())
}

fn check_preconditions(target: &Target, old: &Value, preconditions: &Value) -> Result<(), Status> {
    let differs = |field: &str, current: &str| {
        preconditions[field]
            .as_str()
            .filter(|wanted| *wanted != current)
            .map(str::to_owned)
    };
    if let Some(wanted) = differs("uid", object::uid(old)) {
        let current = object::uid(old);
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({current}). \
             The object might have been deleted and then recreated"
        );
        return Err(Status::precondition(target.about(), &why));
    }
    if let Some(wanted) = differs("resourceVersion", object::resource_version(old)) {
        let current = object::resource_version(old);
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({current}). \
             The object might have been modified"
        );
        return Err(Status::precondition(target.about(), &why));
    }
    Ok(())
}

/// The propagation policy is stored as a finalizer for the garbage collector.
fn set_dependents_finalizer(target: &Target, object: &mut Value, options: &Value) {
    let policy = match (
        options["propagationPolicy"].as_str(),
        options["orphanDependents"].as_bool(),
    ) {
        (Some(policy), _) => policy,
        (None, Some(true)) => "Orphan",
        (None, Some(false)) => "Background",
        // An existing finalizer stands for the policy.
        (None, None) if object::finalizers(object).any(|one| one == ORPHAN) => "Orphan",
        (None, None) if object::finalizers(object).any(|one| one == FOREGROUND) => "Foreground",
        // Jobs orphan their pods by default, for old clients.
        (None, None) if &*target.resource.id == "jobs.batch" => "Orphan",
        (None, None) => "Background",
    };
    let wanted = match policy {
        // Events have no dependents.
        _ if &*target.resource.shelf.name() == "events" => None,
        "Orphan" => Some(ORPHAN),
        "Foreground" => Some(FOREGROUND),
        _ => None,
    };
    let mut finalizers: Vec<Value> = object::finalizers(object)
        .filter(|one| *one != ORPHAN && *one != FOREGROUND)
        .map(Value::from)
        .collect();
    finalizers.extend(wanted.map(Value::from));
    let metadata = object::metadata_mut(object);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), json!(finalizers));
    }
}
