//! Protects claims that pods use, and volumes that claims use, from deletion.
//!
//! The server adds the finalizers at creation; the controllers here remove them once the object is being deleted and is not used, and
//! restore them on objects that lost them.

use crate::json::Value;

use super::edit::{Target, add_finalizer, edit, remove_finalizer};
use super::pod::{self, PODS};
use super::{Changed, Controller, Next, owner};
use crate::access::Access;
use crate::object;
use crate::status::Status;
use crate::store::Key;

pub(crate) const CLAIMS: &str = "persistentvolumeclaims";
pub(crate) const VOLUMES: &str = "persistentvolumes";
const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

pub(crate) struct ClaimProtectionController;

impl Controller for ClaimProtectionController {
    fn name(&self) -> &'static str {
        "pvc-protection-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[CLAIMS, PODS]
    }

    fn concerned(&self, change: &Changed, _access: &dyn Access) -> Vec<Key> {
        let Changed {
            resource,
            before,
            after,
        } = change;
        if &**resource == CLAIMS {
            return after
                .as_deref()
                .and_then(|claim| unprotected(claim, CLAIM_PROTECTION))
                .into_iter()
                .collect();
        }
        match (before.as_deref(), after.as_deref()) {
            (Some(gone), None) => claims_of(gone),
            // A running pod keeps its claims, so there is nothing to do.
            (_, Some(pod)) if !has_stopped(pod) && !pod::node(pod).is_empty() => Vec::new(),
            (_, Some(pod)) => claims_of(pod),
            (None, None) => Vec::new(),
        }
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let Some(claim) = access.get(CLAIMS, &key.namespace, &key.name) else {
            return Ok(Next::Wait);
        };
        let in_use = || {
            access
                .list(PODS, &key.namespace)
                .iter()
                .any(|pod| uses(pod, &claim))
        };
        protect(CLAIMS, &claim, CLAIM_PROTECTION, in_use, access)
    }
}

pub(crate) struct VolumeProtectionController;

impl Controller for VolumeProtectionController {
    fn name(&self) -> &'static str {
        "pv-protection-controller"
    }

    fn watches(&self) -> &'static [&'static str] {
        &[VOLUMES]
    }

    fn concerned(&self, change: &Changed, _access: &dyn Access) -> Vec<Key> {
        change
            .after
            .as_deref()
            .and_then(|volume| unprotected(volume, VOLUME_PROTECTION))
            .into_iter()
            .collect()
    }

    fn sync(&self, key: &Key, access: &dyn Access) -> Result<Next, Status> {
        let Some(volume) = access.get(VOLUMES, "", &key.name) else {
            return Ok(Next::Wait);
        };
        protect(
            VOLUMES,
            &volume,
            VOLUME_PROTECTION,
            || volume["status"]["phase"] == "Bound",
            access,
        )
    }
}

/// The key of an object that is being deleted and has the finalizer, or is not and lacks it.
fn unprotected(object: &Value, finalizer: &str) -> Option<Key> {
    let has = object::finalizers(object).any(|one| one == finalizer);
    (object::is_terminating(object) == has).then(|| Key::new(object::namespace(object), object::name(object)))
}

fn protect(
    resource: &str,
    object: &Value,
    finalizer: &str,
    in_use: impl FnOnce() -> bool,
    access: &dyn Access,
) -> Result<Next, Status> {
    if unprotected(object, finalizer).is_some() {
        let target = Target::of(resource, object);
        if !object::is_terminating(object) {
            edit(access, target, |object| add_finalizer(object, finalizer))?;
        } else if !in_use() {
            edit(access, target, |object| remove_finalizer(object, finalizer))?;
        }
    }
    Ok(Next::Wait)
}

/// The claims that a pod references.
fn claims_of(pod: &Value) -> Vec<Key> {
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let names = volumes.filter_map(|volume| claim_name(volume).or_else(|| ephemeral_claim_name(pod, volume)));
    names
        .map(|name| Key::new(object::namespace(pod), &name))
        .collect()
}

fn claim_name(volume: &Value) -> Option<String> {
    volume["persistentVolumeClaim"]["claimName"]
        .as_str()
        .map(str::to_owned)
}

/// The name of a claim that is created for one pod and deleted with it.
fn ephemeral_claim_name(pod: &Value, volume: &Value) -> Option<String> {
    (!volume["ephemeral"].is_null()).then(|| {
        format!(
            "{}-{}",
            object::name(pod),
            volume["name"].as_str().unwrap_or_default()
        )
    })
}

/// Whether a pod uses a claim. Finished pods do, too, as long as they exist; pods without a node do not.
fn uses(pod: &Value, claim: &Value) -> bool {
    let is_shut_down = object::is_terminating(pod) && pod["metadata"]["deletionGracePeriodSeconds"] == 0;
    let named = |name: Option<String>| name.is_some_and(|name| name == object::name(claim));
    let owns = || owner::is_controlled_by(claim, object::uid(pod));
    let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    !pod::node(pod).is_empty()
        && volumes.any(|volume| {
            named(claim_name(volume)) || (!is_shut_down && named(ephemeral_claim_name(pod, volume)) && owns())
        })
}

/// Whether no container of a pod is running.
fn has_stopped(pod: &Value) -> bool {
    let fields = [
        "initContainerStatuses",
        "containerStatuses",
        "ephemeralContainerStatuses",
    ];
    let mut statuses = fields
        .iter()
        .filter_map(|field| pod["status"][field].as_array())
        .flatten();
    let idle = |status: &Value| {
        ["terminated", "waiting"]
            .iter()
            .any(|state| !status["state"][state].is_null())
    };
    pod::is_terminal(pod) || (object::is_terminating(pod) && statuses.all(idle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::fake::Lab;
    use crate::json::json;

    fn lab() -> Lab {
        Lab::new(vec![
            Box::new(ClaimProtectionController),
            Box::new(VolumeProtectionController),
        ])
    }

    fn claim(name: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "n", "finalizers": [CLAIM_PROTECTION]}})
    }

    fn pod(node: &str, volume: Value) -> Value {
        json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"nodeName": node, "volumes": [volume]}})
    }

    #[test]
    fn a_claim_stays_until_the_pod_that_uses_it_is_gone() {
        let mut lab = lab();
        lab.fake.put(CLAIMS, claim("data"));
        lab.fake.put(
            PODS,
            pod("node", json!({"persistentVolumeClaim": {"claimName": "data"}})),
        );
        lab.fake.delete(CLAIMS, "n", "data", json!({})).unwrap();
        lab.settle();
        assert_eq!(lab.fake.names(CLAIMS, "n"), ["data"]);

        lab.fake.end_pod("n", "p", 0);
        lab.settle();
        assert_eq!(
            lab.fake.names(CLAIMS, "n"),
            ["data"],
            "an ended pod still keeps its claim"
        );

        lab.fake.remove(PODS, "n", "p");
        lab.settle();
        assert_eq!(lab.fake.names(CLAIMS, "n"), [] as [&str; 0]);
    }

    #[test]
    fn a_pod_without_a_node_keeps_no_claim() {
        let mut lab = lab();
        lab.fake.put(CLAIMS, claim("data"));
        lab.fake.put(
            PODS,
            pod("", json!({"persistentVolumeClaim": {"claimName": "data"}})),
        );
        lab.fake.delete(CLAIMS, "n", "data", json!({})).unwrap();
        lab.settle();
        assert_eq!(lab.fake.names(CLAIMS, "n"), [] as [&str; 0]);
    }

    #[test]
    fn an_ephemeral_claim_is_kept_by_its_own_pod_only() {
        let mut lab = lab();
        let owner = lab
            .fake
            .put(PODS, pod("node", json!({"name": "v", "ephemeral": {}})));
        let mut own = claim("p-v");
        own["metadata"]["ownerReferences"] = json!([owner::controller_reference(&owner, "v1", "Pod")]);
        lab.fake.put(CLAIMS, own);
        lab.fake.delete(CLAIMS, "n", "p-v", json!({})).unwrap();
        lab.settle();
        assert_eq!(lab.fake.names(CLAIMS, "n"), ["p-v"]);

        lab.fake.remove(CLAIMS, "n", "p-v");
        lab.fake.put(CLAIMS, claim("p-v"));
        lab.fake.delete(CLAIMS, "n", "p-v", json!({})).unwrap();
        lab.settle();
        assert_eq!(lab.fake.names(CLAIMS, "n"), [] as [&str; 0]);
    }

    #[test]
    fn a_finalizer_that_is_missing_comes_back() {
        let mut lab = lab();
        lab.fake
            .put(CLAIMS, json!({"metadata": {"name": "data", "namespace": "n"}}));
        lab.fake.put(VOLUMES, json!({"metadata": {"name": "disk"}}));
        lab.settle();
        let finalizers = |object: &Value| object["metadata"]["finalizers"].clone();
        assert_eq!(
            finalizers(&lab.fake.get(CLAIMS, "n", "data").unwrap()),
            json!([CLAIM_PROTECTION])
        );
        assert_eq!(
            finalizers(&lab.fake.get(VOLUMES, "", "disk").unwrap()),
            json!([VOLUME_PROTECTION])
        );
    }

    #[test]
    fn a_bound_volume_stays_until_it_is_released() {
        let mut lab = lab();
        let volume = json!({"metadata": {"name": "disk", "finalizers": [VOLUME_PROTECTION]}, "status": {"phase": "Bound"}});
        lab.fake.put(VOLUMES, volume);
        lab.fake.delete(VOLUMES, "", "disk", json!({})).unwrap();
        lab.settle();
        assert_eq!(lab.fake.names(VOLUMES, ""), ["disk"]);

        lab.fake.change(VOLUMES, "", "disk", |volume| {
            volume["status"]["phase"] = "Released".into()
        });
        lab.settle();
        assert_eq!(lab.fake.names(VOLUMES, ""), [] as [&str; 0]);
    }
}
