//! Keeps a copy of each rollout's stable template in a ControllerRevision (rule 4); [`stable_copy`] defines its form.
//!
//! The copy is created before the status names it, so a status never names a missing copy; after a crash in between, the next
//! attempt finds the copy. There is one copy for each object: those of former stable versions are deleted, so that a user who may
//! only write the status cannot choose among them.

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::{Value, json};
use stateward_client::{ObjectName, Objects};
use stateward_core::memory::Stable;
use stateward_core::stable_copy::{self, COPY_OF, Owner};
use stateward_plugin::{Snapshot, Target};

use crate::error::Error;
use crate::kind::Rollout;
use crate::reconcile::Context;

/// Creates the copy of a new stable template. Returns its name.
pub(crate) async fn keep<K: Rollout>(
    object: &K,
    stable: &Stable,
    target: &Target,
    context: &Context<K>,
) -> Result<String, Error> {
    let Some(template) = find(stable, target, context).await? else {
        return Err(Error::NoTemplate(stable.revision.to_string()));
    };
    create(object, &template, context).await
}

/// Recovers the copy of a stable template that the status does not name: because an earlier operator version kept the template in
/// the status, or because a user has removed the name. `None` if there is none that can be trusted.
///
/// The template comes from the workload's own revisions, never from the status. Once an object has a copy, no other is created for
/// the same stable version: a missing name then means that the status was edited.
pub(crate) async fn recover<K: Rollout>(
    object: &K,
    stable: &Stable,
    target: &Target,
    context: &Context<K>,
) -> Result<Option<String>, Error> {
    let there = list(object, context).await?;
    if there.is_empty() {
        return match find(stable, target, context).await? {
            Some(template) => create(object, &template, context).await.map(Some),
            None => Ok(None),
        };
    }
    let is_stable = |copy: &&ControllerRevision| is_copy_of(copy, stable, object, context);
    Ok(there.iter().find(is_stable).map(ResourceExt::name_any))
}

/// Reads the stable template from its copy.
pub(crate) async fn read<K: Rollout>(
    object: &K,
    stable: Option<&Stable>,
    context: &Context<K>,
) -> Result<Snapshot, Error> {
    let revision = || {
        stable
            .map(|stable| stable.revision.to_string())
            .unwrap_or_default()
    };
    let owner = owner(object);
    let mut templates = list(object, context)
        .await?
        .into_iter()
        .filter_map(|copy| stable_copy::template(&json!(copy), &owner))
        .map(Snapshot);
    let found = templates.find(|template| {
        stable.is_some_and(|stable| context.plugin.fingerprint(template) == stable.template)
    });
    found.ok_or_else(|| Error::NoTemplate(revision()))
}

/// Deletes every copy except the one that the status names, and returns whether it did. If that copy does not exist, or is not of the
/// stable template, the status was edited, and another copy may be the one that a rollback needs.
pub(crate) async fn delete_former<K: Rollout>(
    object: &K,
    named: Option<&str>,
    stable: Option<&Stable>,
    context: &Context<K>,
) -> Result<bool, Error> {
    let (Some(named), Some(stable)) = (named, stable) else {
        return Ok(false);
    };
    let there = list(object, context).await?;
    let (kept, former): (Vec<_>, Vec<_>) = there.iter().partition(|copy| copy.name_any() == named);
    if !kept.iter().any(|copy| is_copy_of(copy, stable, object, context)) {
        return Ok(false);
    }
    for copy in former {
        delete(object, copy, context).await?;
    }
    Ok(true)
}

/// Whether a copy is complete, and of this stable template.
fn is_copy_of<K: Rollout>(
    copy: &ControllerRevision,
    stable: &Stable,
    object: &K,
    context: &Context<K>,
) -> bool {
    let template = stable_copy::template(&json!(copy), &owner(object));
    template.is_some_and(|template| context.plugin.fingerprint(&Snapshot(template)) == stable.template)
}

async fn delete<K: Rollout>(
    object: &K,
    copy: &ControllerRevision,
    context: &Context<K>,
) -> Result<bool, Error> {
    copies(object, context)?
        .delete(&ObjectName::new(copy.name_any())?, copy.uid())
        .await
        .map_err(Error::api("cannot delete the copy of a former stable template"))
}

/// The template of a stable version in the workload: the current one, or that of its revision.
async fn find<K: Rollout>(
    stable: &Stable,
    target: &Target,
    context: &Context<K>,
) -> Result<Option<Value>, Error> {
    for revision in [None, Some(stable.revision.as_str())] {
        let template = context.plugin.snapshot(target, revision).await?;
        let right = template.filter(|template| context.plugin.fingerprint(template) == stable.template);
        if let Some(Snapshot(template)) = right {
            return Ok(Some(template));
        }
    }
    Ok(None)
}

async fn create<K: Rollout>(object: &K, template: &Value, context: &Context<K>) -> Result<String, Error> {
    let owner = owner(object);
    let name = stable_copy::name(&owner, template);
    let manifest = stable_copy::manifest(&owner, &object.namespace().unwrap_or_default(), template);
    let Ok(copy) = serde_json::from_value::<ControllerRevision>(manifest) else {
        return Err(Error::NoTemplate(name));
    };
    let copies = copies(object, context)?;
    match copies.create(&copy).await {
        Ok(_) => Ok(name),
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
            let there = copies.get(&ObjectName::new(&name)?).await;
            let there = there.map_err(Error::api("cannot read the copy of the stable template"))?;
            let whole = |there: &ControllerRevision| {
                there.metadata.deletion_timestamp.is_none()
                    && stable_copy::template(&json!(there), &owner).is_some()
            };
            if there.is_some_and(|there| whole(&there)) {
                Ok(name)
            } else {
                Err(Error::NameTaken(name))
            }
        }
        Err(error) => Err(Error::api("cannot keep a copy of the stable template")(error)),
    }
}

/// The object's copies, without those that are being deleted.
async fn list<K: Rollout>(object: &K, context: &Context<K>) -> Result<Vec<ControllerRevision>, Error> {
    let owner = owner(object);
    let params = ListParams::default().labels(&format!("{COPY_OF}={}", owner.uid));
    // Anyone who may create StatefulSets can make Kubernetes create revisions with this label.
    let ours = |copy: &ControllerRevision| {
        copy.metadata.deletion_timestamp.is_none() && stable_copy::is_of(&json!(copy), &owner)
    };
    copies(object, context)?
        .list_wanted(&params, ours)
        .await
        .map_err(Error::api("cannot list the copies of the stable template"))
}

fn copies<K: Rollout>(object: &K, context: &Context<K>) -> Result<Objects<ControllerRevision>, Error> {
    Ok(Objects::in_namespace_of(&context.client, object)?)
}

fn owner<K: Rollout>(object: &K) -> Owner {
    Owner {
        api_version: K::api_version(&()).into_owned(),
        kind: K::kind(&()).into_owned(),
        name: object.name_any(),
        uid: object.uid().unwrap_or_default(),
    }
}
