//! The owner graph, by uid.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::json::Value;

use crate::controllers::edit::Target;
use crate::controllers::owner;
use crate::object;

/// Every observed object, and every dependent under each of its owners, whether those were observed or not.
#[derive(Default)]
pub(super) struct Graph {
    nodes: HashMap<String, Node>,
    dependents: HashMap<String, BTreeSet<String>>,
}

struct Node {
    identity: Identity,
    owners: Vec<Reference>,
    deleting_dependents: bool,
}

/// The coordinates of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Identity {
    pub(super) resource: Arc<str>,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// A reference to an owner.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reference {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) blocks: bool,
}

/// The consequences of a change.
#[derive(Default)]
pub(super) struct Seen {
    /// Objects to check.
    pub(super) to_check: Vec<String>,
    /// References into another namespace.
    pub(super) strays: Vec<Stray>,
}

/// An object that names an owner in another namespace.
pub(super) struct Stray {
    pub(super) dependent: Identity,
    pub(super) reference: Reference,
}

impl Identity {
    pub(super) fn target<'a>(&'a self, uid: &'a str) -> Target<'a> {
        Target {
            resource: &self.resource,
            namespace: &self.namespace,
            name: &self.name,
            uid,
        }
    }

    /// Whether a reference with this object's uid is otherwise correct.
    pub(super) fn fits(&self, reference: &Reference) -> bool {
        let Self {
            api_version,
            kind,
            name,
            ..
        } = self;
        (api_version, kind, name) == (&reference.api_version, &reference.kind, &reference.name)
    }

    /// Whether this object cannot own `dependent` because of its namespace.
    fn is_out_of_reach_of(&self, dependent: &Self) -> bool {
        !self.namespace.is_empty() && self.namespace != dependent.namespace
    }
}

impl Reference {
    pub(super) fn read(reference: &Value) -> Self {
        let text = |field: &str| reference[field].as_str().unwrap_or_default().to_owned();
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            uid: text("uid"),
            blocks: reference["blockOwnerDeletion"] == true,
        }
    }
}

impl Node {
    /// Whether the recorded parts of an object are unchanged, as in most writes.
    fn still_is(&self, resource: &Arc<str>, object: &Value) -> bool {
        let Identity {
            resource: known,
            api_version,
            kind,
            namespace,
            name,
        } = &self.identity;
        resource == known
            && object["apiVersion"] == api_version.as_str()
            && object["kind"] == kind.as_str()
            && object::namespace(object) == namespace
            && object::name(object) == name
            && self.deleting_dependents == is_deleting_dependents(object)
            && self.owners.iter().eq(owner::owners(object))
    }
}

fn is_deleting_dependents(object: &Value) -> bool {
    object::is_terminating(object) && object::finalizers(object).any(|one| one == super::FOREGROUND)
}

/// Whether the reference was read from this value.
impl PartialEq<Value> for Reference {
    fn eq(&self, reference: &Value) -> bool {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let Self {
            api_version,
            kind,
            name,
            uid,
            blocks,
        } = self;
        uid == text("uid")
            && name == text("name")
            && kind == text("kind")
            && api_version == text("apiVersion")
            && *blocks == (reference["blockOwnerDeletion"] == true)
    }
}

impl Graph {
    /// Records an object.
    pub(super) fn see(&mut self, resource: &Arc<str>, object: &Value) -> Seen {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let uid = object::uid(object);
        let is_news = self
            .nodes
            .get(uid)
            .is_none_or(|node| !node.still_is(resource, object));
        if uid.is_empty() || !is_news {
            return Seen::default();
        }
        let uid = uid.to_owned();
        let identity = Identity {
            resource: resource.clone(),
            api_version: text("apiVersion"),
            kind: text("kind"),
            namespace: object::namespace(object).to_owned(),
            name: object::name(object).to_owned(),
        };
        let owners: Vec<_> = owner::owners(object).map(Reference::read).collect();
        let deleting_dependents = is_deleting_dependents(object);
        let node = Node {
            identity: identity.clone(),
            owners: owners.clone(),
            deleting_dependents,
        };
        let before = self.nodes.insert(uid.clone(), node);
        let mut seen = Seen::default();
        if before.is_none() {
            self.check_dependents(&uid, &identity, &mut seen);
        }
        self.relate(
            &uid,
            &identity,
            before.map(|node| node.owners).unwrap_or_default(),
            owners,
            &mut seen,
        );
        seen
    }

    /// Objects that referenced this one before it was observed may have wrong coordinates.
    fn check_dependents(&self, uid: &str, identity: &Identity, seen: &mut Seen) {
        for dependent in self.dependents(uid) {
            let Some(node) = self.nodes.get(&dependent) else {
                continue;
            };
            let Some(reference) = node.owners.iter().find(|owner| owner.uid == uid) else {
                continue;
            };
            if identity.is_out_of_reach_of(&node.identity) {
                seen.strays.push(Stray {
                    dependent: node.identity.clone(),
                    reference: reference.clone(),
                });
            } else if identity.fits(reference) {
                continue;
            }
            seen.to_check.push(dependent);
        }
    }

    fn relate(
        &mut self,
        uid: &str,
        identity: &Identity,
        old: Vec<Reference>,
        new: Vec<Reference>,
        seen: &mut Seen,
    ) {
        if old == new {
            return;
        }
        let by_uid = |references: Vec<Reference>| -> BTreeMap<_, _> {
            references
                .into_iter()
                .map(|reference| (reference.uid.clone(), reference))
                .collect()
        };
        let (old, new) = (by_uid(old), by_uid(new));
        for (owner, reference) in &old {
            // An owner that waited for this object may proceed.
            if reference.blocks && !new.get(owner).is_some_and(|reference| reference.blocks) {
                seen.to_check
                    .extend(self.nodes.contains_key(owner).then(|| owner.clone()));
            }
            if !new.contains_key(owner) {
                self.forget_dependent(owner, uid);
            }
        }
        let mut is_doubtful = false;
        for (owner, reference) in new.into_iter().filter(|(owner, _)| !old.contains_key(owner)) {
            self.dependents
                .entry(owner.clone())
                .or_default()
                .insert(uid.to_owned());
            match self.nodes.get(&owner) {
                Some(node) if node.identity.is_out_of_reach_of(identity) => {
                    seen.strays.push(Stray {
                        dependent: identity.clone(),
                        reference,
                    });
                    is_doubtful = true;
                }
                Some(node) => is_doubtful |= !node.identity.fits(&reference),
                None => is_doubtful = true,
            }
        }
        seen.to_check.extend(is_doubtful.then(|| uid.to_owned()));
    }

    /// Records that an object is gone. Returns its dependents and the owners that waited for it, to be checked.
    pub(super) fn remove(&mut self, uid: &str) -> Vec<String> {
        let Some(Node { owners, .. }) = self.nodes.remove(uid) else {
            return Vec::new();
        };
        let mut to_check = self.dependents(uid);
        for Reference { uid: owner, .. } in owners {
            self.forget_dependent(&owner, uid);
            if self.is_deleting_dependents(&owner) {
                to_check.push(owner);
            }
        }
        to_check
    }

    fn forget_dependent(&mut self, owner: &str, dependent: &str) {
        if let Some(dependents) = self.dependents.get_mut(owner) {
            dependents.remove(dependent);
            if dependents.is_empty() {
                self.dependents.remove(owner);
            }
        }
    }

    pub(super) fn identity(&self, uid: &str) -> Option<&Identity> {
        self.nodes.get(uid).map(|node| &node.identity)
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<String> {
        self.dependents.get(uid).into_iter().flatten().cloned().collect()
    }

    pub(super) fn has_dependents(&self, uid: &str) -> bool {
        self.dependents.contains_key(uid)
    }

    pub(super) fn has_dependent_deleting_dependents(&self, uid: &str) -> bool {
        self.dependents
            .get(uid)
            .into_iter()
            .flatten()
            .any(|dependent| self.is_deleting_dependents(dependent))
    }

    /// The dependents that an owner waits for.
    pub(super) fn blocking_dependents(&self, uid: &str) -> Vec<String> {
        let blocks = |dependent: &&String| {
            let node = self.nodes.get(*dependent);
            node.is_some_and(|node| node.owners.iter().any(|owner| owner.uid == uid && owner.blocks))
        };
        self.dependents
            .get(uid)
            .into_iter()
            .flatten()
            .filter(blocks)
            .cloned()
            .collect()
    }

    /// Whether an object waits for the deletion of its dependents.
    pub(super) fn is_deleting_dependents(&self, uid: &str) -> bool {
        self.nodes.get(uid).is_some_and(|node| node.deleting_dependents)
    }
}
