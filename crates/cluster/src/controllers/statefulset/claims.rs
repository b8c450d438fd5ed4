//! PersistentVolumeClaims: created before their pod; only their owners are updated, and they are never deleted here.

use std::sync::Arc;

use crate::json::Value;

use crate::access::EventKind;
use crate::object::{map, map_at, map_in};
use crate::status::Status;

use super::claim::with_owners;
use super::error::{all_of, already_exists, doing, failure};
use super::object::{CLAIMS, Metadata, Pod, Set};
use super::ordinal::Ordinal;
use super::retention::Retention;
use super::round::Round;

/// The name of the claim for one pod.
pub(super) fn name(set: &Set, template: &Value, ordinal: Ordinal) -> String {
    format!("{}-{}-{ordinal}", template.name(), set.name())
}

/// The set's claim templates; of two with the same name the last counts.
pub(super) fn templates(set: &Set) -> impl Iterator<Item = &Value> {
    let all = set.claim_templates();
    all.iter().enumerate().filter_map(|(index, template)| {
        let later = all
            .iter()
            .skip(index + 1)
            .any(|later| later.name() == template.name());
        (!later).then_some(template)
    })
}

/// The claim from a template: with the set's selector labels over the template's own.
fn build(set: &Set, template: &Value, ordinal: Ordinal) -> Value {
    let mut claim = template.clone();
    map(&mut claim).insert("apiVersion".into(), "v1".into());
    map(&mut claim).insert("kind".into(), "PersistentVolumeClaim".into());
    let metadata = map_at(&mut claim, "metadata");
    metadata.insert("name".into(), name(set, template, ordinal).into());
    metadata.insert("namespace".into(), set.namespace().into());
    if let Some(selected) = set.selector()["matchLabels"].as_object() {
        let labels = map_in(metadata, "labels");
        labels.extend(selected.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
    claim
}

impl Round<'_> {
    fn claim(&self, template: &Value, ordinal: Ordinal) -> Option<Arc<Value>> {
        self.access
            .get(CLAIMS, self.set.namespace(), &name(self.set, template, ordinal))
    }

    /// Whether the garbage collector will delete this pod's claim, because it belongs to an earlier pod of that name.
    pub(super) fn has_stale_claim(&self, ordinal: Ordinal, pod: &Pod) -> bool {
        let retention = Retention::new(self.set, pod);
        let claims = templates(self.set).filter_map(|template| self.claim(template, ordinal));
        claims.into_iter().any(|claim| retention.is_stale(&claim))
    }

    /// Creates the missing claims. One that is being deleted is an error: its pod would bind to it.
    pub(super) fn create_claims(&self, ordinal: Ordinal, pod: &Pod) -> Result<(), Status> {
        let mut errors = Vec::new();
        for template in templates(self.set) {
            let name = name(self.set, template, ordinal);
            match self.claim(template, ordinal) {
                Some(claim) if claim.is_terminating() => {
                    errors.push(failure(format!("pvc {name} is being deleted")))
                }
                Some(_) => {}
                None => {
                    let claim = build(self.set, template, ordinal);
                    let created = self.access.create(CLAIMS, self.set.namespace(), claim);
                    self.tell_of_claim(&name, pod, created.as_ref().err());
                    errors.extend(
                        created
                            .err()
                            .map(|status| doing(&format!("failed to create PVC {name}"), status)),
                    );
                }
            }
        }
        all_of(errors)
    }

    /// Whether every existing claim has the owners that the retention policy requires.
    pub(super) fn claims_are_kept(&self, ordinal: Ordinal, pod: &Pod) -> bool {
        let templates = self.set.claim_templates();
        if templates.is_empty() {
            return true;
        }
        let retention = Retention::new(self.set, pod);
        let mut claims = templates
            .iter()
            .filter_map(|template| self.claim(template, ordinal));
        claims.all(|claim| retention.is_kept_by(&claim))
    }

    /// Sets the claims' owners as the retention policy requires.
    pub(super) fn keep_claims(&self, ordinal: Ordinal, pod: &Pod) -> Result<(), Status> {
        let retention = Retention::new(self.set, pod);
        for template in self.set.claim_templates() {
            let Some(claim) = self.claim(template, ordinal) else {
                continue;
            };
            if retention.has_other_controller(&claim) {
                let message = format!(
                    "PersistentVolumeClaim {} has a conflicting OwnerReference that acts as a manging controller, \
                     the retention policy is ignored for this claim",
                    claim.name()
                );
                self.access
                    .event(self.set, EventKind::Warning, "ConflictingController", &message);
            }
            if !retention.is_kept_by(&claim) {
                let owned = with_owners(&claim, retention.owners(&claim, self.set, pod));
                let updated = self
                    .access
                    .update(CLAIMS, self.set.namespace(), claim.name(), owned);
                updated.map_err(|status| {
                    doing(
                        &format!(
                            "could not update claim {} for delete policy ownerRefs",
                            claim.name()
                        ),
                        status,
                    )
                })?;
            }
        }
        Ok(())
    }

    fn tell_of_claim(&self, claim: &str, pod: &Pod, error: Option<&Status>) {
        let (pod, set) = (pod.name(), self.set.name());
        match error {
            None => {
                let message = format!("Create Claim {claim} Pod {pod} in StatefulSet {set} success");
                self.access
                    .event(self.set, EventKind::Normal, "SuccessfulCreate", &message);
            }
            Some(status) if already_exists(status) => {}
            Some(status) => {
                let message =
                    format!("Create Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {status}");
                self.access
                    .event(self.set, EventKind::Warning, "FailedCreate", &message);
            }
        }
    }
}
