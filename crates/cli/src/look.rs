//! Reading the cluster.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::Selector;
use kube::{Api, ResourceExt};
use stateward_api::analysis::AnalysisRun;
use stateward_api::rolloutplugin::RolloutPlugin;

use crate::error::Error;
use crate::name::Name;
use crate::pod_row::PodRow;
use crate::runs;
use crate::session::Session;
use crate::tree::Picture;

impl Session<'_> {
    /// RolloutPlugins, as the types know them.
    pub(crate) fn rollouts(&self) -> Api<RolloutPlugin> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// RolloutPlugins with every field that the server has, also those that the types leave out.
    pub(crate) fn whole_rollouts(&self, everywhere: bool) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<RolloutPlugin>(&());
        if everywhere {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
        }
    }

    /// One of them.
    pub(crate) async fn whole_rollout(&self, name: &Name) -> Result<DynamicObject, Error> {
        let api = self.whole_rollouts(false);
        let object = api
            .get_opt(name.as_str())
            .await
            .map_err(Error::api(format!("read rolloutplugin {name}")))?;
        match object {
            Some(object) => Ok(object),
            None => Err(self.missing(name).await),
        }
    }

    /// One of them, as the types know it.
    pub(crate) async fn rollout(&self, name: &Name) -> Result<RolloutPlugin, Error> {
        parse(self.whole_rollout(name).await?)
    }

    /// Why there is none of this name: perhaps the server knows no such kind at all.
    async fn missing(&self, name: &Name) -> Error {
        let some = ListParams::default().limit(1);
        match self.whole_rollouts(false).list(&some).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Error::Unserved,
            _ => self.not_found(name),
        }
    }

    pub(crate) fn not_found(&self, name: &Name) -> Error {
        Error::NotFound {
            name: name.to_string(),
            namespace: self.namespace.clone(),
            program: self.program.to_owned(),
        }
    }

    /// The set that a rollout is about. `None` where it is not there, or not ours to read.
    pub(crate) async fn set(&self, rollout: &RolloutPlugin) -> Option<StatefulSet> {
        if rollout.spec.workload_ref.kind != "StatefulSet" {
            return None;
        }
        self.sets()
            .get_opt(&rollout.spec.workload_ref.name)
            .await
            .ok()
            .flatten()
    }

    pub(crate) fn sets(&self) -> Api<StatefulSet> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A rollout with all that hangs on it.
    pub(crate) async fn picture(&self, rollout: RolloutPlugin) -> Result<Picture, Error> {
        let set = self.set(&rollout).await;
        let pods = match &set {
            Some(set) => self.pods(set).await?,
            None => Vec::new(),
        };
        let runs = self.runs(&rollout).await;
        Ok(Picture {
            rollout,
            set,
            pods,
            runs,
        })
    }

    /// The runs of analysis that a rollout waits for, or that decided about it. None, where they are not ours to read.
    async fn runs(&self, rollout: &RolloutPlugin) -> Vec<AnalysisRun> {
        let api: Api<AnalysisRun> = Api::namespaced(self.client.clone(), &self.namespace);
        let mut runs = Vec::new();
        let status = rollout.status.clone().unwrap_or_default();
        for name in runs::concerned(&status) {
            runs.extend(api.get_opt(name).await.ok().flatten());
        }
        runs
    }

    async fn pods(&self, set: &StatefulSet) -> Result<Vec<PodRow>, Error> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
        let selector = set.spec.as_ref().map(|spec| spec.selector.clone());
        let selector: Option<Selector> = selector.and_then(|selector| selector.try_into().ok());
        let Some(selector) = selector else {
            return Ok(Vec::new());
        };
        let params = ListParams::default().labels_from(&selector);
        let pods = api
            .list(&params)
            .await
            .map_err(Error::api(format!("list the pods of {}", set.name_any())))?;
        let owned = |pod: &&Pod| {
            let mut owners = pod.owner_references().iter();
            owners.any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
        };
        let mut rows: Vec<PodRow> = pods.iter().filter(owned).filter_map(PodRow::of).collect();
        rows.sort_by_key(|pod| pod.ordinal);
        Ok(rows)
    }
}

/// As the types know it.
pub(crate) fn parse(object: DynamicObject) -> Result<RolloutPlugin, Error> {
    let name = object.name_any();
    object.try_parse().map_err(|error| {
        Error::Refused(format!(
            "rolloutplugin {name} is not one that this release understands: {error}"
        ))
    })
}
