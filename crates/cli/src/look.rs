//! Reading the cluster.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DynamicObject, ListParams};
use kube::core::Selector;
use kube::{Api, ResourceExt};
use stateward_api::analysis::AnalysisRun;

use crate::error::Error;
use crate::name::Name;
use crate::pod_row::PodRow;
use crate::rollout::{Kind, Rollout, parse};
use crate::runs;
use crate::session::Session;
use crate::tree::Picture;

impl Session<'_> {
    /// Rollouts of a kind with every field that the server has, also those that the types leave out.
    pub(crate) fn whole_rollouts(&self, kind: Kind, everywhere: bool) -> Api<DynamicObject> {
        let resource = kind.resource();
        if everywhere {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
        }
    }

    /// One of them; of the kind that the name says, or of the only kind that has one of that name.
    pub async fn whole_rollout(&self, name: &Name) -> Result<DynamicObject, Error> {
        let mut found = Vec::new();
        for kind in name.kinds() {
            let api = self.whole_rollouts(*kind, false);
            let object = api.get_opt(name.as_str()).await;
            let object = object.map_err(Error::api(format!("read {} {name}", kind.word())))?;
            found.extend(object.map(|object| (*kind, object)));
        }
        let mut found = found.into_iter();
        match (found.next(), found.next()) {
            (Some((_, object)), None) => Ok(object),
            (None, _) => Err(self.missing(name).await),
            (Some((one, _)), Some((other, _))) => Err(Error::Refused(format!(
                "there is a {} {name} and a {} {name}; say which: {}/{name} or {}/{name}",
                one.word(),
                other.word(),
                one.short(),
                other.short()
            ))),
        }
    }

    /// One of them, as the types know it.
    pub(crate) async fn rollout(&self, name: &Name) -> Result<Rollout, Error> {
        parse(self.whole_rollout(name).await?)
    }

    /// Why there is none of this name: perhaps the server knows no such kind at all.
    async fn missing(&self, name: &Name) -> Error {
        let some = ListParams::default().limit(1);
        for kind in name.kinds() {
            match self.whole_rollouts(*kind, false).list(&some).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                _ => return self.not_found(name),
            }
        }
        Error::Unserved
    }

    pub(crate) fn not_found(&self, name: &Name) -> Error {
        Error::NotFound {
            name: name.title(),
            namespace: self.namespace.clone(),
            program: self.program.to_owned(),
        }
    }

    /// The set that a rollout is about. `None` where it is not there, or not ours to read.
    pub(crate) async fn set(&self, rollout: &Rollout) -> Option<StatefulSet> {
        if rollout.workload_kind != "StatefulSet" {
            return None;
        }
        self.sets().get_opt(&rollout.workload).await.ok().flatten()
    }

    pub(crate) fn sets(&self) -> Api<StatefulSet> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A rollout with all that hangs on it.
    pub(crate) async fn picture(&self, rollout: Rollout) -> Result<Picture, Error> {
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
    async fn runs(&self, rollout: &Rollout) -> Vec<AnalysisRun> {
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
