//! Binds a claim to the volume that was made for it, as provisioners make them: with a `claimRef` that names the claim.
//!
//! Of upstream's volume controller only this. Nobody here chooses among free volumes, has one provisioned, or takes care of
//! those whose claim is gone.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::json::Value;

use super::claim_protection::{CLAIMS, VOLUMES};
use super::edit::{Target, edit, with_status};
use super::{Changed, Controller, Next};
use crate::access::Access;
use crate::object;
use crate::status::Status;
use crate::store::Key;
use crate::types::quantity::Quantity;

/// Its keys are volumes.
#[derive(Default)]
pub(crate) struct VolumeBinder {
    /// Claims that were not there when a volume for them was, and that volume.
    awaited: Mutex<BTreeSet<(Key, String)>>,
}

impl Controller for VolumeBinder {
    fn name(&self) -> &'static str {
        "persistentvolume-binder-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[CLAIMS, VOLUMES]
    }

    fn concerned(&self, change: &Changed, _access: &dyn Access) -> Vec<Key> {
        let Some(after) = change.after.as_deref().filter(|after| !is_bound(after)) else {
            return Vec::new();
        };
        let mut volumes = BTreeSet::new();
        if &*change.resource == VOLUMES {
            volumes.insert(object::name(after).to_owned());
        } else {
            volumes.extend(after["spec"]["volumeName"].as_str().map(str::to_owned));
            let claim = Key::new(object::namespace(after), object::name(after));
            volumes.extend(self.volumes_awaiting(&claim));
        }
        volumes.iter().map(|name| Key::new("", name)).collect()
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let volume = access.get(VOLUMES, "", &key.name);
        let Some(volume) = volume.filter(|volume| !object::is_terminating(volume)) else {
            return Ok(Next::Wait);
        };
        let Some(wanted) = claim_of(&volume) else {
            return Ok(Next::Wait);
        };
        match access.get(CLAIMS, &wanted.namespace, &wanted.name) {
            None => drop(self.awaited().insert((wanted, key.name.clone()))),
            Some(claim) if belong_together(&volume, &claim) => bind(&volume, &claim, access)?,
            Some(_) => {}
        }
        Ok(Next::Wait)
    }
}

impl VolumeBinder {
    fn awaited(&self) -> MutexGuard<'_, BTreeSet<(Key, String)>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The volumes that have waited for a claim, which is there now.
    fn volumes_awaiting(&self, claim: &Key) -> Vec<String> {
        let mut awaited = self.awaited();
        let here = awaited.extract_if(.., |(awaited, _)| awaited == claim);
        here.map(|(_, volume)| volume).collect()
    }
}

fn is_bound(object: &Value) -> bool {
    object["status"]["phase"] == "Bound"
}

/// The claim that a volume was made for.
fn claim_of(volume: &Value) -> Option<Key> {
    let claim = &volume["spec"]["claimRef"];
    Some(Key::new(claim["namespace"].as_str()?, claim["name"].as_str()?))
}

/// Whether the claim is the very one that the volume names, has no other volume, and can use this one.
fn belong_together(volume: &Value, claim: &Value) -> bool {
    let (offer, wish) = (&volume["spec"], &claim["spec"]);
    let is_none_or =
        |value: &Value, expected: &str| value.as_str().is_none_or(|text| ["", expected].contains(&text));
    let modes = |spec: &'_ Value| spec["accessModes"].as_array().cloned().unwrap_or_default();
    let offered = modes(offer);
    is_none_or(&offer["claimRef"]["uid"], object::uid(claim))
        && is_none_or(&wish["volumeName"], object::name(volume))
        && offer["volumeMode"] == wish["volumeMode"]
        && modes(wish).iter().all(|mode| offered.contains(mode))
        && Quantity::of(&offer["capacity"]["storage"])
            >= Quantity::of(&wish["resources"]["requests"]["storage"])
}

/// Writes what is missing, in upstream's order: the volume first, so that no claim says it is bound to one that does not know.
fn bind(volume: &Value, claim: &Value, access: &dyn Access) -> Result<(), Status> {
    let (name, uid) = (object::name(volume), object::uid(claim));
    let bound = edit(access, Target::of(VOLUMES, volume), |volume| {
        let claimed = &mut volume["spec"]["claimRef"];
        let changed = claimed["uid"] != uid;
        if changed {
            claimed["apiVersion"] = "v1".into();
            claimed["kind"] = "PersistentVolumeClaim".into();
            claimed["uid"] = uid.into();
            claimed["resourceVersion"] = object::resource_version(claim).into();
        }
        changed
    })?;
    let Some(volume) = bound else { return Ok(()) };
    if !is_bound(&volume) {
        let mut status = volume["status"].clone();
        status["phase"] = "Bound".into();
        access.update_status(VOLUMES, "", name, with_status(&volume, status))?;
    }

    let bound = edit(access, Target::of(CLAIMS, claim), |claim| {
        let before = claim.clone();
        let mut annotations = vec!["pv.kubernetes.io/bind-completed"];
        if claim["spec"]["volumeName"] != name {
            claim["spec"]["volumeName"] = name.into();
            annotations.push("pv.kubernetes.io/bound-by-controller");
        }
        for annotation in annotations {
            object::map_in(object::metadata_mut(claim), "annotations")
                .insert(annotation.into(), "yes".into());
        }
        *claim != before
    })?;
    let Some(claim) = bound else { return Ok(()) };
    let mut status = claim["status"].clone();
    status["phase"] = "Bound".into();
    status["accessModes"] = volume["spec"]["accessModes"].clone();
    status["capacity"] = volume["spec"]["capacity"].clone();
    if status != claim["status"] {
        access.update_status(
            CLAIMS,
            object::namespace(&claim),
            object::name(&claim),
            with_status(&claim, status),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::controllers::fake::Lab;
    use crate::json::json;

    fn lab() -> Lab {
        Lab::new(vec![Box::new(VolumeBinder::default())])
    }

    fn volume(claim: Value) -> Value {
        json!({
            "metadata": {"name": "disk"},
            "spec": {"claimRef": claim, "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"]},
            "status": {"phase": "Pending"},
        })
    }

    fn claim() -> Value {
        json!({
            "metadata": {"name": "data", "namespace": "n"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2048Mi"}}},
            "status": {"phase": "Pending"},
        })
    }

    fn phases(lab: &Lab) -> (Value, Value) {
        let phase = |resource, namespace, name| {
            lab.fake.get(resource, namespace, name).unwrap()["status"]["phase"].clone()
        };
        (phase(VOLUMES, "", "disk"), phase(CLAIMS, "n", "data"))
    }

    #[test]
    fn a_claim_is_bound_to_the_volume_that_was_made_for_it() {
        let mut lab = lab();
        let uid = object::uid(&lab.fake.put(CLAIMS, claim())).to_owned();
        lab.fake.put(
            VOLUMES,
            volume(json!({"namespace": "n", "name": "data", "uid": uid})),
        );
        lab.settle();
        assert_eq!(phases(&lab), ("Bound".into(), "Bound".into()));
        let claim = lab.fake.get(CLAIMS, "n", "data").unwrap();
        assert_eq!(claim["spec"]["volumeName"], "disk");
        assert_eq!(
            claim["metadata"]["annotations"],
            json!({"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"})
        );
        assert_eq!(
            claim["status"],
            json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}})
        );
    }

    #[test]
    fn a_claim_that_comes_after_its_volume_is_bound_too_and_the_volume_knows_it() {
        let mut lab = lab();
        lab.fake
            .put(VOLUMES, volume(json!({"namespace": "n", "name": "data"})));
        lab.settle();
        let uid = object::uid(&lab.fake.put(CLAIMS, claim())).to_owned();
        lab.settle();
        assert_eq!(phases(&lab), ("Bound".into(), "Bound".into()));
        assert_eq!(
            lab.fake.get(VOLUMES, "", "disk").unwrap()["spec"]["claimRef"]["uid"],
            uid
        );
    }

    #[rstest]
    #[case::an_earlier_claim(json!({"claimRef": {"namespace": "n", "name": "data", "uid": "before"}}), json!({}))]
    #[case::too_small(json!({"capacity": {"storage": "1Gi"}}), json!({}))]
    #[case::other_access(json!({}), json!({"accessModes": ["ReadWriteMany"]}))]
    #[case::other_mode(json!({"volumeMode": "Block"}), json!({"volumeMode": "Filesystem"}))]
    #[case::another_volume_named(json!({}), json!({"volumeName": "other"}))]
    #[case::nobodys(json!({"claimRef": null}), json!({}))]
    fn a_volume_that_is_not_for_the_claim_is_left_alone(#[case] offer: Value, #[case] wish: Value) {
        let with = |mut object: Value, changes: &Value| {
            for (field, value) in changes.as_object().unwrap() {
                object["spec"][&**field] = value.clone();
            }
            object
        };
        let mut lab = lab();
        lab.fake.put(CLAIMS, with(claim(), &wish));
        lab.fake.put(
            VOLUMES,
            with(volume(json!({"namespace": "n", "name": "data"})), &offer),
        );
        lab.settle();
        assert_eq!(phases(&lab), ("Pending".into(), "Pending".into()));
    }

    #[test]
    fn what_was_left_half_done_is_done_when_it_can_be() {
        let mut lab = lab();
        lab.fake.put(CLAIMS, claim());
        lab.fake
            .refuse("update", CLAIMS, "data", Status::bad_request("not now"));
        lab.fake
            .put(VOLUMES, volume(json!({"namespace": "n", "name": "data"})));
        lab.settle();
        assert_eq!(phases(&lab), ("Bound".into(), "Pending".into()));

        lab.fake.relent();
        lab.seconds(10);
        assert_eq!(phases(&lab), ("Bound".into(), "Bound".into()));
    }
}
