//! The revisions of a StatefulSet, as `kubectl rollout history` numbers them.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{DynamicObject, ListParams};
use kube::core::Selector;
use kube::{Api, ResourceExt};
use serde_json::Value;

use crate::error::Error;
use crate::session::Session;
use crate::workload::without_nulls;

/// A revision of a StatefulSet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Revision {
    /// Increasing; a revision that is used again gets a new number.
    pub(crate) number: i64,
    pub(crate) name: String,
    pub(crate) created: Option<Timestamp>,
    /// `kubernetes.io/change-cause`
    pub(crate) cause: Option<String>,
    pub(crate) template: Value,
}

const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";

impl Revision {
    fn of(revision: &ControllerRevision) -> Self {
        let data = revision.data.as_ref().map(|data| &data.0);
        let template = data.and_then(|data| data.pointer("/spec/template"));
        let mut template = template.map(without_nulls).unwrap_or_default();
        if let Value::Object(fields) = &mut template {
            fields.remove("$patch");
        }
        Self {
            number: revision.revision,
            name: revision.name_any(),
            created: revision.metadata.creation_timestamp.as_ref().map(|time| time.0),
            cause: revision.annotations().get(CHANGE_CAUSE).cloned(),
            template,
        }
    }

    /// The images of its containers, init containers last.
    pub(crate) fn images(&self) -> Vec<String> {
        images(&self.template)
    }

    /// `revision 3 (db-6fcd48db58)`
    pub(crate) fn title(&self) -> String {
        format!("revision {} ({})", self.number, self.name)
    }
}

/// Parses a revision number.
pub(crate) fn number(text: &str) -> Result<i64, String> {
    let number = text.parse().ok().filter(|number| *number >= 0);
    number.ok_or_else(|| "it takes a number of the history, such as 3; see: stateward history NAME".into())
}

/// The images of a template's containers.
pub(crate) fn images(template: &Value) -> Vec<String> {
    let list = |field: &str| {
        template
            .pointer(&format!("/spec/{field}"))
            .and_then(Value::as_array)
    };
    let containers = list("containers").into_iter().flatten();
    let initial = list("initContainers").into_iter().flatten();
    let image = |container: &Value| container.get("image")?.as_str().map(str::to_owned);
    containers.chain(initial).filter_map(image).collect()
}

impl Session<'_> {
    /// The revisions of a StatefulSet, oldest first.
    pub(crate) async fn revisions(&self, set: &DynamicObject) -> Result<Vec<Revision>, Error> {
        let api: Api<ControllerRevision> = Api::namespaced(self.client.clone(), &self.namespace);
        let selector = set.data.pointer("/spec/selector").cloned().unwrap_or_default();
        let selector: LabelSelector = serde_json::from_value(selector).unwrap_or_default();
        let selector: Selector = selector.try_into().unwrap_or_default();
        let params = ListParams::default().labels_from(&selector);
        let listed = api
            .list(&params)
            .await
            .map_err(Error::api(format!("list the revisions of {}", set.name_any())))?;
        let owned = |revision: &&ControllerRevision| {
            let mut owners = revision.owner_references().iter();
            owners.any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
        };
        let mut revisions: Vec<_> = listed.iter().filter(owned).map(Revision::of).collect();
        revisions.sort_by_key(|revision| revision.number);
        Ok(revisions)
    }
}
