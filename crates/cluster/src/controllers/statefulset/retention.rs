//! The owners of a claim, which decide when the garbage collector deletes it.

use crate::json::Value;

use super::object::{Metadata, Pod, Set};
use crate::controllers::owner::controller_reference;

/// The set's retention policy, applied to one claim.
pub(super) struct Retention<'r> {
    set: Owner<'r>,
    pod: Owner<'r>,
    policy: Policy,
    /// Whether the pod is outside the ordinals of the set.
    condemned: bool,
}

struct Owner<'r> {
    api_version: &'static str,
    kind: &'static str,
    name: &'r str,
    uid: &'r str,
}

#[derive(Clone, Copy)]
struct Policy {
    delete_with_set: bool,
    delete_when_scaled: bool,
}

/// The required controller of a claim.
#[derive(PartialEq)]
enum Wanted {
    Nobody,
    Set,
    Pod,
}

impl<'r> Retention<'r> {
    pub(super) fn new(set: &'r Set, pod: &'r Pod) -> Self {
        Self {
            set: Owner {
                api_version: "apps/v1",
                kind: "StatefulSet",
                name: set.name(),
                uid: set.uid(),
            },
            pod: Owner {
                api_version: "v1",
                kind: "Pod",
                name: pod.name(),
                uid: pod.uid(),
            },
            policy: Policy::of(set),
            condemned: pod
                .ordinal()
                .is_none_or(|ordinal| set.ordinals().index(ordinal).is_none()),
        }
    }

    fn wanted(&self) -> Wanted {
        let Policy {
            delete_with_set,
            delete_when_scaled,
        } = self.policy;
        match (delete_when_scaled && self.condemned, delete_with_set) {
            (true, _) => Wanted::Pod,
            (false, true) => Wanted::Set,
            (false, false) => Wanted::Nobody,
        }
    }

    /// Whether the garbage collector will delete a claim: it belongs to an earlier pod of the same name. Such a claim must not be given to
    /// a new pod.
    pub(super) fn is_stale(&self, claim: &Value) -> bool {
        self.policy.delete_when_scaled && self.pod.is_outdated_in(claim)
    }

    /// Whether a controller that is neither the set nor the pod owns the claim. If everything is retained, that does not matter.
    pub(super) fn has_other_controller(&self, claim: &Value) -> bool {
        let Policy {
            delete_with_set,
            delete_when_scaled,
        } = self.policy;
        (delete_with_set || delete_when_scaled)
            && claim.owners().iter().any(|owner| {
                match [&self.set, &self.pod]
                    .into_iter()
                    .find(|us| us.is_named_by(owner))
                {
                    Some(us) => owner["uid"] != us.uid,
                    None => owner["controller"] == true,
                }
            })
    }

    /// Whether the claim's owners are correct, or not ours to change.
    pub(super) fn is_kept_by(&self, claim: &Value) -> bool {
        if self.set.is_outdated_in(claim) || self.pod.is_outdated_in(claim) {
            return true;
        }
        let (set, pod) = (self.set.owns(claim), self.pod.owns(claim));
        if self.has_other_controller(claim) {
            return !set && !pod;
        }
        let half_ours = claim.owners().iter().any(|owner| {
            (owner["uid"] == self.set.uid || owner["uid"] == self.pod.uid) && owner["controller"] != true
        });
        let wanted = self.wanted();
        !half_ours && set == (wanted == Wanted::Set) && pod == (wanted == Wanted::Pod)
    }

    /// The owners that the claim should have. With another controller present, our references are removed and none is added.
    pub(super) fn owners(&self, claim: &Value, set: &Set, pod: &Pod) -> Vec<Value> {
        let foreign = |owner: &&Value| !self.set.is_named_by(owner) && !self.pod.is_named_by(owner);
        let mut owners: Vec<_> = claim.owners().iter().filter(foreign).cloned().collect();
        if self.has_other_controller(claim) {
            return owners;
        }
        let add = match self.wanted() {
            Wanted::Nobody => None,
            Wanted::Set => Some(controller_reference(set, self.set.api_version, self.set.kind)),
            Wanted::Pod => Some(controller_reference(pod, self.pod.api_version, self.pod.kind)),
        };
        owners.extend(add.filter(|add| owners.iter().all(|owner| owner["uid"] != add["uid"])));
        owners
    }
}

impl Policy {
    fn of(set: &Set) -> Self {
        let policy = set.retention();
        Self {
            delete_with_set: policy["whenDeleted"] == "Delete",
            delete_when_scaled: policy["whenScaled"] == "Delete",
        }
    }
}

impl Owner<'_> {
    fn is_named_by(&self, owner: &Value) -> bool {
        owner["apiVersion"] == self.api_version && owner["kind"] == self.kind && owner["name"] == self.name
    }

    fn owns(&self, claim: &Value) -> bool {
        claim.owners().iter().any(|owner| owner["uid"] == self.uid)
    }

    /// Whether the claim names an earlier owner of this name.
    fn is_outdated_in(&self, claim: &Value) -> bool {
        claim
            .owners()
            .iter()
            .find(|owner| self.is_named_by(owner))
            .is_some_and(|owner| owner["uid"] != self.uid)
    }
}
