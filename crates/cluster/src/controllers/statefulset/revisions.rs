//! ControllerRevisions: finds the one for the set's template, creates it, reuses an old one, and deletes the oldest.

use crate::json::{Value, json};
use stateward_core::revision;

use crate::access::Access;
use crate::controllers::owner::controller_reference;
use crate::object::{map, map_at};
use crate::selector::LabelSelector;
use crate::status::Status;

use super::claim::{adopt, still_there};
use super::error::{DEFAULT_BACKOFF, already_exists, doing, failure, retry_on_conflict};
use super::memory::{History, Seen};
use super::object::{Metadata, Pod, REVISIONS, Revision, Set, number, text};

/// The directive of a strategic merge patch.
const DIRECTIVE: &str = "$patch";

/// The revisions a sync works with.
pub(super) struct Chosen {
    pub(super) current: Revision,
    pub(super) update: Revision,
    pub(super) collisions: i32,
}

/// Adopts the orphans among these revisions, and returns whether there were any. A set that is being deleted cannot adopt, and its sync
/// ends here.
pub(super) fn adopt_orphans(access: &dyn Access, set: &Set, revisions: &[Revision]) -> Result<bool, Status> {
    let mut orphans = revisions
        .iter()
        .filter(|revision| revision.controller().is_none())
        .peekable();
    if orphans.peek().is_none() {
        return Ok(false);
    }
    still_there(access, set).map_err(|status| doing("cannot adopt revisions", status))?;
    for orphan in orphans {
        if !adopt(access, REVISIONS, set, orphan)? {
            return Err(failure(format!("revision {} is gone", orphan.name())));
        }
    }
    Ok(true)
}

/// The set's revisions and the orphans that it selects, oldest first: by number, then age, then name.
pub(super) fn list(access: &dyn Access, set: &Set, selector: &LabelSelector, seen: &Seen) -> History {
    let newest = access.newest(REVISIONS);
    if newest.is_some() && newest == seen.history.newest {
        return seen.history.clone();
    }
    let listed = access.list_claimable(REVISIONS, set.namespace(), set.uid());
    if seen.history.is_of(&listed) {
        return History {
            newest,
            ..seen.history.clone()
        };
    }
    let mut revisions: Vec<_> = listed.iter().cloned().map(Revision::new).collect();
    let (name, uid) = (set.name(), set.uid());
    let is_ours =
        |owner: &Value| owner["uid"] == uid && owner["name"] == name && owner["kind"] == "StatefulSet";
    revisions
        .retain(|revision| selector.matches(revision.labels()) && revision.controller().is_none_or(is_ours));
    revisions.sort_by(|a, b| {
        let by_number = a.number().cmp(&b.number());
        by_number.then_with(|| (a.created(), a.name()).cmp(&(b.created(), b.name())))
    });
    History {
        listed,
        newest,
        revisions: revisions.into(),
        found: None,
    }
}

/// The revision of the set's template, and the current one. Creates or renumbers a revision if needed.
pub(super) fn choose(access: &dyn Access, set: &Set, history: &mut History) -> Result<Chosen, Status> {
    let newest_equal = match &history.found {
        Some((template, found)) if template.shares(set.template()) => *found,
        _ => {
            let found = newest_equal(set, &history.revisions)?;
            history.found = Some((set.template().clone(), found));
            found
        }
    };
    let history = &history.revisions;
    let mut collisions = i32::try_from(number(&set.status()["collisionCount"])).unwrap_or_default();
    let next = history
        .last()
        .map_or(1, |newest| newest.number().saturating_add(1));

    let update = match newest_equal.zip(history.len().checked_sub(1)) {
        Some((equal, newest)) if equal == newest => history[newest].clone(),
        Some((equal, _)) => renumber(access, &history[equal], next)?,
        None => match history.last().filter(|newest| restores(newest, set)) {
            Some(newest) => newest.clone(),
            None => create(access, set, &Data::of(set)?, next, &mut collisions)?,
        },
    };

    // Only the name in the status tells which revision is current. If the object is gone, the update revision takes its place: the canary
    // is promoted silently.
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

/// Deletes the oldest unused revisions beyond the limit. `chosen` is `None` if choosing failed: then only pods protect a revision, and the
/// current one may be deleted.
pub(super) fn truncate(
    access: &dyn Access,
    set: &Set,
    pods: &[Pod],
    history: &[Revision],
    chosen: Option<&Chosen>,
) -> Result<(), Status> {
    let Some(limit) = set.history_limit().filter(|limit| *limit < history.len()) else {
        return Ok(());
    };
    let is_used = |name: &str| {
        chosen.is_some_and(|chosen| [chosen.current.name(), chosen.update.name()].contains(&name))
            || pods.iter().any(|pod| pod.revision() == name)
    };
    let unused = || history.iter().filter(|revision| !is_used(revision.name()));
    let excess = unused().count().saturating_sub(limit);
    for revision in unused().take(excess) {
        access.delete(REVISIONS, set.namespace(), revision.name(), json!({}))?;
    }
    Ok(())
}

/// The newest of these revisions with the set's template.
fn newest_equal(set: &Set, history: &[Revision]) -> Result<Option<usize>, Status> {
    let template = set.template();
    if reads_back_as_written(template) {
        return Ok(history
            .iter()
            .rposition(|revision| replaces(revision.data(), template)));
    }
    let data = Data::of(set)?;
    Ok(history.iter().rposition(|revision| *revision.data() == data.json))
}

/// Whether a value is unchanged by a round trip through Go, in which every number is a float.
fn reads_back_as_written(value: &Value) -> bool {
    const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
    match value {
        Value::Number(number) => number
            .as_i64()
            .is_some_and(|number| number.unsigned_abs() < EXACT),
        Value::Array(items) => items.iter().all(reads_back_as_written),
        Value::Object(fields) => fields.values().all(reads_back_as_written),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// Whether a revision's data is exactly the patch that sets this template.
fn replaces(data: &Value, template: &Value) -> bool {
    let only = |value: &Value, field: &str| {
        value
            .as_object()
            .is_some_and(|fields| fields.len() == 1 && fields.contains_key(field))
    };
    let held = &data["spec"]["template"];
    only(data, "spec")
        && only(&data["spec"], "template")
        && held[DIRECTIVE] == "replace"
        && is_same_template(held, template)
}

/// Whether two templates are equal, except for the patch directive in the first.
fn is_same_template(held: &Value, template: &Value) -> bool {
    let (Some(held), Some(template)) = (held.as_object(), template.as_object()) else {
        return held == template;
    };
    held.iter().filter(|(field, _)| *field != DIRECTIVE).eq(template)
}

/// The pod template of a revision, still with its patch directive.
pub(super) fn template<'r>(set: &'r Set, revision: &'r Revision) -> Result<&'r Value, Status> {
    let data = revision.data();
    if !data.is_object() && !data.is_null() {
        return Err(failure(format!(
            "revision {} holds no patch of a StatefulSet",
            revision.name()
        )));
    }
    // The data is a patch of the set. Kubernetes writes only patches that replace the whole template.
    match &data["spec"]["template"] {
        Value::Null => Ok(set.template()),
        template => Ok(template),
    }
}

/// The data of a revision for the set's template, as bytes to hash and as JSON to store and compare.
struct Data {
    bytes: String,
    json: Value,
}

impl Data {
    fn of(set: &Set) -> Result<Self, Status> {
        let bytes = revision::data(&set.template().into());
        let json = serde_json::from_str(&bytes)
            .map_err(|error| failure(format!("template of StatefulSet {}: {error}", set.name())))?;
        Ok(Self { bytes, json })
    }
}

/// Whether restoring this revision would change nothing, although its bytes differ (gate StatefulSetSemanticRevisionComparison). Upstream
/// also applies defaults first, for revisions of an older Kubernetes.
fn restores(revision: &Revision, set: &Set) -> bool {
    template(set, revision).is_ok_and(|template| is_same_template(template, set.template()))
}

/// Reuses an old revision: a rollback creates no new object, it gives the old one the newest number.
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

/// Creates a revision. If other data has taken its name, the collision count is increased, and with it the hash changes, until a name is
/// free.
fn create(
    access: &dyn Access,
    set: &Set,
    data: &Data,
    number: i64,
    collisions: &mut i32,
) -> Result<Revision, Status> {
    // The label keeps the hash of the first attempt, even if the name has a later one.
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
        let name = revision::RevisionName::of(set.name(), &set.template().into(), *collisions);
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
