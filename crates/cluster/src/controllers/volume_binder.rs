//! Binds claims to volumes: to the one created for the claim, with a `claimRef` as provisioners set it, or to the one that the claim names.
//! Volumes become Available, Bound or Released, and claims Pending, Bound or Lost.
//!
//! This is only part of upstream's volume controller: it does not match free volumes, provision or reclaim them, and records no events
//! about waiting claims.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::json::{Value, json};
use parking_lot::{Mutex, MutexGuard};

use super::claim_protection::{CLAIMS, VOLUMES};
use super::edit::{Target, edit, with_status};
use super::{Changed, Controller, Next};
use crate::access::{Access, EventKind};
use crate::object;
use crate::status::Status;
use crate::store::Key;
use stateward_schema::Quantity;

const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// Its keys are volumes, which are cluster-scoped, and claims, which are namespaced.
#[derive(Default)]
pub(crate) struct VolumeBinder {
    /// The volumes created for a claim, whether the claim exists or not.
    made: Mutex<BTreeMap<Key, BTreeSet<String>>>,
}

impl Controller for VolumeBinder {
    fn name(&self) -> &'static str {
        "persistentvolume-binder-controller"
    }

    fn event_source(&self) -> &'static str {
        "persistentvolume-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[CLAIMS, VOLUMES]
    }

    fn concerned(&self, change: &Changed, access: &dyn Access) -> Vec<Key> {
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        let Some(object) = after.or(before) else {
            return Vec::new();
        };
        let mut keys = vec![Key::new(object::namespace(object), object::name(object))];
        if &*change.resource == VOLUMES {
            let (was_for, is_for) = (before.and_then(claim_of), after.and_then(claim_of));
            self.note(object::name(object), was_for.as_ref(), is_for.as_ref());
            if is_for.is_none() {
                keys.extend(claims_that_name(object::name(object), access));
            }
            keys.extend(was_for.filter(|claim| is_for.as_ref() != Some(claim)));
            keys.extend(is_for);
        }
        keys
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let Key { namespace, name } = key;
        if namespace.is_empty() {
            settle(name, access)?;
            return Ok(Next::Wait);
        }
        let made = self.made().get(key).cloned().unwrap_or_default();
        if let Some(claim) = access.get(CLAIMS, namespace, name) {
            attend(&claim, &made, access)?;
        }
        // The state of the claim decides that of its volumes.
        made.iter().try_for_each(|volume| settle(volume, access))?;
        Ok(Next::Wait)
    }
}

impl VolumeBinder {
    fn made(&self) -> MutexGuard<'_, BTreeMap<Key, BTreeSet<String>>> {
        self.made.lock()
    }

    fn note(&self, volume: &str, was_for: Option<&Key>, is_for: Option<&Key>) {
        let mut made = self.made();
        if was_for != is_for
            && let Some(claim) = was_for
            && let Some(volumes) = made.get_mut(claim)
        {
            volumes.remove(volume);
            if volumes.is_empty() {
                made.remove(claim);
            }
        }
        if let Some(claim) = is_for {
            made.entry(claim.clone()).or_default().insert(volume.to_owned());
        }
    }
}

/// The claim that a volume was created for.
fn claim_of(volume: &Value) -> Option<Key> {
    let claim = &volume["spec"]["claimRef"];
    Some(Key::new(claim["namespace"].as_str()?, claim["name"].as_str()?))
}

/// The claims that name this volume.
fn claims_that_name(volume: &str, access: &dyn Access) -> Vec<Key> {
    let mut claims = access.list(CLAIMS, "");
    claims.retain(|claim| claim["spec"]["volumeName"] == volume);
    let key = |claim: &Arc<Value>| Key::new(object::namespace(claim), object::name(claim));
    claims.iter().map(key).collect()
}

/// A string, if there is one.
fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// Sets the phase of a volume from its claim. If the claim is yet to be bound, the volume keeps its phase.
fn settle(name: &str, access: &dyn Access) -> Result<(), Status> {
    let Some(volume) = access.get(VOLUMES, "", name) else {
        return Ok(());
    };
    let phase = match (text(&volume["spec"]["claimRef"]["uid"]), claim_of(&volume)) {
        (None, _) => "Available",
        (Some(_), None) => return Ok(()),
        (Some(uid), Some(claim)) => {
            let claim = access.get(CLAIMS, &claim.namespace, &claim.name);
            let claim = claim.filter(|claim| object::uid(claim) == uid);
            match claim.as_ref().map(|claim| text(&claim["spec"]["volumeName"])) {
                Some(None) => return Ok(()),
                Some(Some(named)) if named == name => "Bound",
                Some(Some(_)) if !is_disposable(&volume) => return unbind(&volume, access),
                // A volume that could not be reclaimed stays Failed.
                _ if volume["status"]["phase"] == "Failed" => return Ok(()),
                _ => "Released",
            }
        }
    };
    set_phase(&volume, phase, access)
}

/// Releases a volume whose claim is bound to another one; if it was created for that claim, only that claim may still bind it.
fn unbind(volume: &Value, access: &dyn Access) -> Result<(), Status> {
    let seen = &volume["spec"]["claimRef"];
    edit(access, Target::of(VOLUMES, volume), |volume| {
        if volume["spec"]["claimRef"] != *seen {
            return false;
        }
        let annotations = object::map_in(object::metadata_mut(volume), "annotations");
        let by_us = annotations.remove(BOUND_BY_CONTROLLER).is_some();
        if annotations.is_empty() {
            object::metadata_mut(volume).remove("annotations");
        }
        match (by_us, volume["spec"].as_object_mut()) {
            (true, Some(spec)) => drop(spec.remove("claimRef")),
            _ => drop(object::map(&mut volume["spec"]["claimRef"]).remove("uid")),
        }
        true
    })?;
    Ok(())
}

/// Whether a provisioner created the volume and will delete it.
fn is_disposable(volume: &Value) -> bool {
    volume["metadata"]["annotations"].get(PROVISIONED_BY).is_some()
        && volume["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
}

/// Binds a claim, or marks it Lost.
fn attend(claim: &Value, made: &BTreeSet<String>, access: &dyn Access) -> Result<(), Status> {
    let volume = |name: &str| access.get(VOLUMES, "", name);
    let named = text(&claim["spec"]["volumeName"]);
    if claim["metadata"]["annotations"].get(BIND_COMPLETED).is_some() {
        let lost = match named.map(volume) {
            Some(Some(volume)) => match text(&volume["spec"]["claimRef"]["uid"]) {
                Some(uid) if uid == object::uid(claim) => return bind(&volume, claim, access),
                None if volume["spec"]["claimRef"].is_null() => return bind(&volume, claim, access),
                _ => (
                    "ClaimMisbound",
                    "Two claims are bound to the same volume, this one is bound incorrectly",
                ),
            },
            Some(None) => (
                "ClaimLost",
                "Bound claim has lost its PersistentVolume. Data on the volume is lost!",
            ),
            None => (
                "ClaimLost",
                "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
            ),
        };
        return lose(claim, lost, access);
    }
    let volume = match named {
        Some(name) => volume(name).filter(|volume| match volume["spec"]["claimRef"].is_null() {
            true => !object::is_terminating(volume) && fits(volume, claim) && class(volume) == class(claim),
            // A volume and a claim that name each other need no further checks.
            false => is_for(volume, claim),
        }),
        None => {
            let mut volumes = made.iter().filter_map(|name| volume(name));
            volumes.find(|volume| {
                !object::is_terminating(volume) && is_for(volume, claim) && fits(volume, claim)
            })
        }
    };
    match volume {
        Some(volume) => bind(&volume, claim, access),
        None if named.is_some() => set_status(CLAIMS, claim, without_volume("Pending"), access),
        None => Ok(()),
    }
}

/// Whether a volume names the claim, and not an earlier one of its name.
fn is_for(volume: &Value, claim: &Value) -> bool {
    claim_of(volume) == Some(Key::new(object::namespace(claim), object::name(claim)))
        && text(&volume["spec"]["claimRef"]["uid"]).is_none_or(|uid| uid == object::uid(claim))
}

/// Whether a volume satisfies the claim.
fn fits(volume: &Value, claim: &Value) -> bool {
    let (offer, wish) = (&volume["spec"], &claim["spec"]);
    let modes = |spec: &Value| spec["accessModes"].as_array().cloned().unwrap_or_default();
    let offered = modes(offer);
    offer["volumeMode"] == wish["volumeMode"]
        && text(&offer["volumeAttributesClassName"]) == text(&wish["volumeAttributesClassName"])
        && modes(wish).iter().all(|mode| offered.contains(mode))
        && Quantity::of(offer["capacity"]["storage"].as_str())
            >= Quantity::of(wish["resources"]["requests"]["storage"].as_str())
}

/// The class of a volume or claim; the deprecated annotation takes precedence.
fn class(object: &Value) -> Option<&str> {
    let annotated = &object["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"];
    annotated
        .as_str()
        .map_or_else(|| text(&object["spec"]["storageClassName"]), Some)
}

/// Writes what is missing, in upstream's order: the volume first, so that no claim is Bound to a volume that does not name it.
fn bind(volume: &Value, claim: &Value, access: &dyn Access) -> Result<(), Status> {
    let (name, uid) = (object::name(volume), object::uid(claim));
    let volume = edit(access, Target::of(VOLUMES, volume), |volume| {
        let (known, names_it) = (text(&volume["spec"]["claimRef"]["uid"]), is_for(volume, claim));
        let may_be_had = names_it || known == Some(uid) || volume["spec"]["claimRef"].is_null();
        if !may_be_had || (names_it && known.is_some()) {
            return false;
        }
        volume["spec"]["claimRef"] = json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": object::namespace(claim),
            "name": object::name(claim),
            "uid": uid,
            "resourceVersion": object::resource_version(claim),
        });
        if !names_it {
            annotate(volume, BOUND_BY_CONTROLLER);
        }
        true
    })?;
    // It may have been given to another claim in between.
    let Some(volume) = volume.filter(|volume| is_for(volume, claim)) else {
        return Ok(());
    };
    set_phase(&volume, "Bound", access)?;

    let claim = edit(access, Target::of(CLAIMS, claim), |claim| {
        let before = claim.clone();
        if claim["spec"]["volumeName"] != name {
            claim["spec"]["volumeName"] = name.into();
            annotate(claim, BOUND_BY_CONTROLLER);
        }
        annotate(claim, BIND_COMPLETED);
        *claim != before
    })?;
    let Some(claim) = claim else { return Ok(()) };
    let spec = &volume["spec"];
    let mut bound = json!({"phase": "Bound", "accessModes": spec["accessModes"]});
    // From here on other clients may change the claim.
    if claim["status"]["phase"] != "Bound" {
        bound["capacity"] = spec["capacity"].clone();
        bound["currentVolumeAttributesClassName"] = spec["volumeAttributesClassName"].clone();
    }
    set_status(CLAIMS, &claim, bound, access)
}

fn annotate(object: &mut Value, annotation: &str) {
    let annotations = object::map_in(object::metadata_mut(object), "annotations");
    annotations.entry(annotation).or_insert_with(|| "yes".into());
}

fn lose(claim: &Value, (reason, message): (&str, &str), access: &dyn Access) -> Result<(), Status> {
    if claim["status"]["phase"] == "Lost" {
        return Ok(());
    }
    set_status(CLAIMS, claim, without_volume("Lost"), access)?;
    access.event(claim, EventKind::Warning, reason, message);
    Ok(())
}

fn without_volume(phase: &str) -> Value {
    json!({"phase": phase, "accessModes": null, "capacity": null})
}

/// The message and reason of the previous phase do not apply to the next.
fn set_phase(volume: &Value, phase: &str, access: &dyn Access) -> Result<(), Status> {
    if volume["status"]["phase"] == phase {
        return Ok(());
    }
    set_status(VOLUMES, volume, json!({"phase": phase, "message": null}), access)
}

/// Updates these fields of a status if they differ; null removes one.
fn set_status(resource: &str, object: &Value, fields: Value, access: &dyn Access) -> Result<(), Status> {
    let mut status = object["status"].clone();
    for (name, value) in fields.as_object().into_iter().flatten() {
        match value.is_null() {
            true => drop(object::map(&mut status).remove(name)),
            false => status[&**name] = value.clone(),
        }
    }
    if status != object["status"] {
        let object = with_status(object, status);
        let (namespace, name) = (
            object::namespace(&object).to_owned(),
            object::name(&object).to_owned(),
        );
        access.update_status(resource, &namespace, &name, object)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
