//! One sync's view of its set, and its operations on single pods: create, correct, delete, and record events.

use crate::json::{Value, json};
use jiff::{SignedDuration, Timestamp};

use crate::access::{Access, EventKind};
use crate::controllers::pod::PODS;
use crate::status::Status;

use super::Gates;
use super::error::{DEFAULT_BACKOFF, already_exists, retry_on_conflict};
use super::object::{Metadata, Pod, Set};
use super::ordinal::Ordinal;
use super::pod;
use super::revisions::Chosen;

/// The state that one sync has read and decided before it changes a pod.
pub(super) struct Round<'a> {
    pub(super) access: &'a dyn Access,
    pub(super) set: &'a Set,
    pub(super) chosen: &'a Chosen,
    /// The template of the current revision.
    pub(super) current: &'a Value,
    /// The template of the update revision.
    pub(super) update: &'a Value,
    pub(super) gates: Gates,
    pub(super) now: Timestamp,
}

impl Round<'_> {
    pub(super) fn min_ready(&self) -> SignedDuration {
        self.set.min_ready()
    }

    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        pod.is_available(self.min_ready(), self.now)
    }

    /// Whether a pod counts as unavailable: a terminating one does, even if it is Ready.
    pub(super) fn is_unavailable(&self, pod: &Pod) -> bool {
        !self.is_available(pod) || pod.is_terminating()
    }

    /// Builds the pod to create at an index.
    pub(super) fn build(&self, index: usize) -> Pod {
        let ordinal = self.set.ordinals().at(index);
        if self.starts_on_current(index) {
            pod::build(self.set, self.current, self.chosen.current.name(), ordinal)
        } else {
            pod::build(self.set, self.update, self.chosen.update.name(), ordinal)
        }
    }

    /// Whether a pod is created on the current revision. Without a `rollingUpdate` block the count in the last status decides.
    fn starts_on_current(&self, index: usize) -> bool {
        let stays = match self.set.rolling_update() {
            Some(rolling) => rolling.partition,
            None if self.set.updates_by_rolling() => self.set.status()["currentReplicas"]
                .as_u64()
                .and_then(|count| count.try_into().ok())
                .unwrap_or(0),
            None => 0,
        };
        index < stays
    }

    /// Creates a pod after its claims. If it already exists, no event is recorded and the sync is retried.
    pub(super) fn create(&self, ordinal: Ordinal, pod: &Pod) -> Result<(), Status> {
        if let Err(status) = self.create_claims(ordinal, pod) {
            self.tell("Create", pod, Some(&status));
            return Err(status);
        }
        let created = self
            .access
            .create(PODS, self.set.namespace(), (**pod).clone())
            .map(drop);
        if let Err(status) = &created
            && already_exists(status)
        {
            return created;
        }
        self.keep_claims_or_tell(ordinal, pod)?;
        self.tell("Create", pod, created.as_ref().err());
        created
    }

    /// Creates the claims that a pending pod waits for.
    pub(super) fn create_missing_claims(&self, ordinal: Ordinal, pod: &Pod) -> Result<(), Status> {
        self.create_claims(ordinal, pod)?;
        self.keep_claims_or_tell(ordinal, pod)
    }

    fn keep_claims_or_tell(&self, ordinal: Ordinal, pod: &Pod) -> Result<(), Status> {
        self.keep_claims(ordinal, pod)
            .inspect_err(|status| self.tell("Update", pod, Some(status)))
    }

    /// Restores a pod's identity, storage and claims. If only the claims were wrong, the pod is written all the same, unchanged.
    pub(super) fn put_right(&self, ordinal: Ordinal, pod: &Pod) -> Result<(), Status> {
        let mut pod = pod.clone();
        let mut attempted = false;
        let done = retry_on_conflict(DEFAULT_BACKOFF, || {
            self.try_to_put_right(ordinal, &mut pod, &mut attempted)
        });
        if attempted {
            self.tell("Update", &pod, done.as_ref().err());
        }
        done
    }

    fn try_to_put_right(&self, ordinal: Ordinal, pod: &mut Pod, attempted: &mut bool) -> Result<(), Status> {
        let mut object = (**pod).clone();
        let mut consistent = true;
        if !pod::has_identity(self.set, ordinal, &object) {
            pod::put_identity(self.set, ordinal, &mut object);
            consistent = false;
        }
        if !pod::has_storage(self.set, ordinal, &object) {
            pod::put_storage(self.set, ordinal, &mut object);
            consistent = false;
            *pod = Pod::new(object);
            self.create_claims(ordinal, pod)
                .inspect_err(|status| self.tell("Update", pod, Some(status)))?;
        } else {
            *pod = Pod::new(object);
        }
        if !self.claims_are_kept(ordinal, pod) {
            self.keep_claims_or_tell(ordinal, pod)?;
            consistent = false;
        }
        if consistent {
            return Ok(());
        }
        *attempted = true;
        let updated = self
            .access
            .update(PODS, self.set.namespace(), pod.name(), (**pod).clone());
        if updated.is_err()
            && let Some(now) = self.access.get(PODS, self.set.namespace(), pod.name())
        {
            *pod = Pod::new(now);
        }
        updated.map(drop)
    }

    /// Deletes a pod by name. A missing one counts as deleted.
    pub(super) fn delete(&self, pod: &Pod) -> Result<(), Status> {
        match self
            .access
            .delete(PODS, self.set.namespace(), pod.name(), json!({}))
        {
            Err(status) if !status.is_not_found() => {
                self.tell("Delete", pod, Some(&status));
                Err(status)
            }
            _ => {
                self.tell("Delete", pod, None);
                Ok(())
            }
        }
    }

    fn tell(&self, verb: &str, pod: &Pod, error: Option<&Status>) {
        let about = format!("{verb} Pod {} in StatefulSet {}", pod.name(), self.set.name());
        match error {
            None => {
                let message = format!("{about} successful");
                self.access.event(
                    self.set,
                    EventKind::Normal,
                    &format!("Successful{verb}"),
                    &message,
                );
            }
            Some(status) => {
                let message = format!("{about} failed error: {status}");
                self.access
                    .event(self.set, EventKind::Warning, &format!("Failed{verb}"), &message);
            }
        }
    }
}
