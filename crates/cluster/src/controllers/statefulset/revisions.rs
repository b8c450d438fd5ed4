//! ControllerRevisions: finding the one for the set's template, making it, putting an old one back to use, and
//! forgetting the oldest.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stateward_core::revision;

use crate::access::Access;
use crate::controllers::owner::controller_reference;
use crate::object::{map, map_at};
use crate::selector::LabelSelector;
use crate::status::Status;

use super::claim::{adopt, still_there};
use super::error::{DEFAULT_BACKOFF, already_exists, doing, failure, retry_on_conflict};
use super::object::{Metadata, Pod, REVISIONS, Revision, Set, number, text};

/// The revisions a sync works with.
pub(super) struct Chosen {
    pub(super) current: Revision,
    pub(super) update: Revision,
    pub(super) collisions: i32,
}

/// Takes orphaned revisions that match under the set. A set that is being deleted cannot, and its sync ends here.
pub(super) fn adopt_orphans(access: &dyn Access, set: &Set, selector: &LabelSelector) -> Result<(), Status> {
    let mut orphans = list(access, set, selector);
    orphans.retain(|revision| revision.controller().is_none());
    if orphans.is_empty() {
        return Ok(());
    }
    still_there(access, set).map_err(|status| doing("cannot adopt revisions", status))?;
    for orphan in &orphans {
        if !adopt(access, REVISIONS, set, orphan)? {
            return Err(failure(format!("revision {} is gone", orphan.name())));
        }
    }
    Ok(())
}

/// The set's revisions and the orphans it selects, oldest first: by number, then age, then name.
pub(super) fn list(access: &dyn Access, set: &Set, selector: &LabelSelector) -> Vec<Revision> {
    let mut revisions: Vec<_> = access
        .list_claimable(REVISIONS, set.namespace(), set.uid())
        .into_iter()
        .map(Revision::new)
        .collect();
    revisions.retain(|revision| {
        selector.matches(revision.labels())
            && (revision.controller().is_none() || revision.is_controlled_by(set))
    });
    revisions.sort_by(|a, b| (a.number(), a.created(), a.name()).cmp(&(b.number(), b.created(), b.name())));
    revisions
}

/// The revision of the set's template, and the one it had before. Makes or renumbers a revision when it has to.
pub(super) fn choose(access: &dyn Access, set: &Set, history: &[Revision]) -> Result<Chosen, Status> {
    let mut collisions = i32::try_from(number(&set.status()["collisionCount"])).unwrap_or_default();
    let data = Data::of(set)?;
    let next = history
        .last()
        .map_or(1, |newest| newest.number().saturating_add(1));

    let newest_equal = history.iter().rposition(|revision| *revision.data() == data.json);
    let update = match newest_equal.zip(history.len().checked_sub(1)) {
        Some((equal, newest)) if equal == newest => history[newest].clone(),
        Some((equal, _)) => renumber(access, &history[equal], next)?,
        None => match history.last().filter(|newest| restores(newest, set)) {
            Some(newest) => newest.clone(),
            None => create(access, set, &data, next, &mut collisions)?,
        },
    };

    // The name in the status is all that says which revision is current. When the object is gone, the update revision
    // takes its place: the canary is promoted without a word.
    let named = text(&set.status()["currentRevision"]);
    let current = history
        .iter()
        .find(|revision| revision.name() == named)
        .unwrap_or(&update)
        .clone();
    Ok(Chosen {
        current,
        update,
        collisions,
    })
}

/// Deletes the oldest revisions beyond the limit that nothing uses. `chosen` is none when choosing failed: then only
/// pods protect a revision, and the current one may go.
pub(super) fn truncate(
    access: &dyn Access,
    set: &Set,
    pods: &[Pod],
    history: &[Revision],
    chosen: Option<&Chosen>,
) -> Result<(), Status> {
    let mut live: BTreeSet<&str> = pods.iter().map(Pod::revision).collect();
    live.extend(
        chosen
            .iter()
            .flat_map(|chosen| [chosen.current.name(), chosen.update.name()]),
    );
    let unused: Vec<_> = history
        .iter()
        .filter(|revision| !live.contains(revision.name()))
        .collect();
    let Some(limit) = set.history_limit() else {
        return Ok(());
    };
    let excess = unused.len().saturating_sub(limit);
    for revision in unused.into_iter().take(excess) {
        access.delete(REVISIONS, set.namespace(), revision.name(), json!({}))?;
    }
    Ok(())
}

/// The pod template that a revision holds.
pub(super) fn template(set: &Set, revision: &Revision) -> Result<Value, Status> {
    let data = revision.data();
    if !data.is_object() && !data.is_null() {
        return Err(failure(format!(
            "revision {} holds no patch of a StatefulSet",
            revision.name()
        )));
    }
    // The data is a patch of the set. Kubernetes only ever writes ones that replace the whole template.
    let mut template = data["spec"]["template"].clone();
    if template.is_null() {
        return Ok(set.template().clone());
    }
    map(&mut template).remove("$patch");
    Ok(template)
}

/// What a revision of the set's template holds, as bytes to hash and as JSON to store and compare.
struct Data {
    bytes: String,
    json: Value,
}

impl Data {
    fn of(set: &Set) -> Result<Self, Status> {
        let bytes = revision::data(set.template());
        let json = serde_json::from_str(&bytes)
            .map_err(|error| failure(format!("template of StatefulSet {}: {error}", set.name())))?;
        Ok(Self { bytes, json })
    }
}

/// Whether putting this revision back would change nothing, although its bytes differ (gate
/// StatefulSetSemanticRevisionComparison). Upstream also applies defaults first, for revisions of an older Kubernetes.
fn restores(revision: &Revision, set: &Set) -> bool {
    template(set, revision).is_ok_and(|template| template == *set.template())
}

/// Puts an old revision to use again: a rollback makes no new object, it gives the old one the newest number.
fn renumber(access: &dyn Access, revision: &Revision, number: i64) -> Result<Revision, Status> {
    let mut object = (**revision).clone();
    let (namespace, name) = (revision.namespace(), revision.name());
    let updated = retry_on_conflict(DEFAULT_BACKOFF, || {
        map(&mut object).insert("revision".into(), number.into());
        access
            .update(REVISIONS, namespace, name, object.clone())
            .inspect_err(|_| {
                if let Some(now) = access.get(REVISIONS, namespace, name) {
                    object = (*now).clone();
                }
            })
    })?;
    Ok(Revision::new(updated))
}

/// Makes a revision. A name that other data has taken raises the collision count, and with it the hash, until one is
/// free.
fn create(
    access: &dyn Access,
    set: &Set,
    data: &Data,
    number: i64,
    collisions: &mut i32,
) -> Result<Revision, Status> {
    // The label keeps the hash of the first try, also when the name gets a later one.
    let mut labels = set.template()["metadata"]["labels"].clone();
    map(&mut labels).insert(
        "controller.kubernetes.io/hash".into(),
        revision::hash(&data.bytes, *collisions).into(),
    );
    let mut object = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"labels": labels, "ownerReferences": [controller_reference(set, "apps/v1", "StatefulSet")]},
        "data": data.json,
        "revision": number,
    });
    if set.annotations().is_object() {
        map_at(&mut object, "metadata").insert("annotations".into(), set.annotations().clone());
    }
    loop {
        let name = revision::RevisionName::of(set.name(), set.template(), *collisions);
        map_at(&mut object, "metadata").insert("name".into(), name.as_str().into());
        match access.create(REVISIONS, set.namespace(), object.clone()) {
            Err(status) if already_exists(&status) => {
                let there = access
                    .get(REVISIONS, set.namespace(), name.as_str())
                    .ok_or(status)?;
                if there["data"] == data.json {
                    return Ok(Revision::new(there));
                }
                *collisions = collisions.wrapping_add(1);
            }
            done => return done.map(Revision::new),
        }
    }
}
