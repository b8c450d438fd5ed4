//! Reads from the cluster.

use futures::future::{join, join_all};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DynamicObject, ListParams};
use kube::core::{Selector, TypeMeta};
use kube::{Api, ResourceExt};
use serde_json::json;
use stateward_api::analysis::AnalysisRun;
use stateward_client::{ObjectName, Objects};

use crate::error::{self, Error};
use crate::input::name::Name;
use crate::rollout::{INVALID, Kind, Rollout, parse};
use crate::session::Session;
use crate::views::invocation;
use crate::views::pod_row::PodRow;
use crate::views::runs;
use crate::views::tree::Picture;

impl Session<'_> {
    /// Rollouts of a kind with all fields of the server, including those that the types omit.
    pub(crate) fn whole_rollouts(&self, kind: Kind, everywhere: bool) -> Api<DynamicObject> {
        let resource = kind.resource();
        if everywhere {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
        }
    }

    /// One rollout, of the kind in the name or of the only kind with that name.
    pub async fn whole_rollout(&self, name: &Name) -> Result<DynamicObject, Error> {
        if name.is_of_a_set() {
            return self.whole_rollout_of_set(name).await;
        }
        let looks = name.kinds().iter().map(|kind| async move {
            let doing = Error::api(format!("read {} {name}", kind.word()));
            let rollouts = Objects::from(self.whole_rollouts(*kind, false));
            let object = match ObjectName::new(name.as_str()) {
                Ok(name) => rollouts.get(&name).await.map_err(doing),
                Err(invalid) => Err(invalid.into()),
            };
            (*kind, object)
        });
        let (mut found, mut unseen) = (Vec::new(), Vec::new());
        for (kind, look) in join_all(looks).await {
            match look {
                Ok(object) => found.extend(object.map(|object| (kind, object))),
                // A kind that is not served or not readable does not count if another kind has the name.
                Err(error) if name.kinds().len() > 1 && error.is_about_the_kind() => {
                    unseen.push((kind, error));
                }
                Err(error) => return Err(error),
            }
        }
        let mut found = found.into_iter();
        match (found.next(), found.next()) {
            (Some((_, object)), None) => Ok(object),
            (None, _) => Err(self.missing_among(name, unseen).await),
            (Some((one, _)), Some((other, _))) => Err(Error::Refused(format!(
                "there is a {} {name} and a {} {name}; say which: {}/{name} or {}/{name}",
                one.word(),
                other.word(),
                one.short(),
                other.short()
            ))),
        }
    }

    /// The rollout of a StatefulSet.
    async fn whole_rollout_of_set(&self, name: &Name) -> Result<DynamicObject, Error> {
        let rollouts = self.list(false, &ListParams::default()).await?;
        let of_the_set = rollouts.into_iter().filter(|object| {
            parse(object.clone()).is_ok_and(|rollout| {
                rollout.workload_kind == "StatefulSet" && rollout.workload == name.as_str()
            })
        });
        let mut found: Vec<_> = of_the_set.collect();
        match (found.pop(), found.is_empty()) {
            (Some(object), true) => Ok(object),
            (None, _) => Err(Error::Unmanaged {
                name: name.title(),
                namespace: self.namespace.clone(),
                program: self.here().into_owned(),
            }),
            (Some(last), false) => {
                let names: Vec<_> = found.iter().chain([&last]).map(full_name).collect();
                Err(Error::Refused(format!(
                    "{} is meant by more than one: {}; say which",
                    name.title(),
                    names.join(", ")
                )))
            }
        }
    }

    /// The rollouts of every served kind.
    pub(crate) async fn list(
        &self,
        everywhere: bool,
        params: &ListParams,
    ) -> Result<Vec<DynamicObject>, Error> {
        self.list_of(&Kind::ALL, everywhere, params).await
    }

    /// The rollouts of these kinds.
    pub(crate) async fn list_of(
        &self,
        kinds: &[Kind],
        everywhere: bool,
        params: &ListParams,
    ) -> Result<Vec<DynamicObject>, Error> {
        let lists = kinds.iter().map(|&kind| async move {
            let listed = Objects::from(self.whole_rollouts(kind, everywhere))
                .list_guarded(params)
                .await;
            let listed = listed.map_err(Error::api(format!("list {}s", kind.word())));
            (kind, listed)
        });
        let (mut objects, mut served, mut unserved, mut refused) = (Vec::new(), None, 0, None);
        for (kind, listed) in join_all(lists).await {
            match listed {
                Ok(list) => {
                    served = Some(kind);
                    let list = list.into_iter().map(|object| object.unwrap_or_else(invalid));
                    objects.extend(list.map(|object| said(kind, object)));
                }
                Err(Error::Unserved) => unserved += 1,
                Err(error) if error.is_about_the_kind() => refused = refused.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        // A list without the rollouts of one kind would pass as complete.
        match (refused, served) {
            (Some(error), Some(kind)) => {
                return Err(Error::Refused(format!(
                    "{error}; those of the other kind are shown with: {} get {}",
                    self.here(),
                    kind.short()
                )));
            }
            (Some(error), None) => return Err(error),
            (None, _) => {}
        }
        if unserved == kinds.len() {
            return Err(Error::Unserved);
        }
        Ok(objects)
    }

    /// One rollout, typed.
    pub(crate) async fn rollout(&self, name: &Name) -> Result<Rollout, Error> {
        parse(self.whole_rollout(name).await?)
    }

    /// The error for a name that was not found, where some kinds could not be read.
    async fn missing_among(&self, name: &Name, mut unseen: Vec<(Kind, Error)>) -> Error {
        unseen.retain(|(_, error)| !matches!(error, Error::Unserved));
        if unseen.is_empty() {
            return self.missing(name).await;
        }
        let kinds = unseen.iter().map(|(kind, _)| format!("{}s", kind.word()));
        let kinds = kinds.collect::<Vec<_>>().join(" and ");
        let why = unseen.iter().map(|(_, error)| error.to_string());
        let why = why.collect::<Vec<_>>().join("; ");
        let seen = Kind::ALL
            .into_iter()
            .filter(|kind| unseen.iter().all(|(unseen, _)| unseen != kind))
            .map(|kind| format!("; there is no {} {name}", kind.word()));
        let shorts = Kind::ALL.map(|kind| format!("{}/{name}", kind.short()));
        Error::Refused(format!(
            "{kinds} of namespace {} could not be looked at ({why}){}; a kind alone is looked at with: {}",
            self.namespace,
            seen.collect::<String>(),
            shorts.join(" or ")
        ))
    }

    /// The error for a name that was not found: the kind may not be served.
    async fn missing(&self, name: &Name) -> Error {
        match self.list(false, &ListParams::default()).await {
            Err(Error::Unserved) => Error::Unserved,
            Ok(there) => self.not_found_among(name, &there),
            Err(_) => self.not_found(name),
        }
    }

    pub(crate) fn not_found(&self, name: &Name) -> Error {
        self.not_found_among(name, &[])
    }

    /// Suggests names with the same prefix; a name is never guessed.
    fn not_found_among(&self, name: &Name, there: &[DynamicObject]) -> Error {
        let alike = there.iter().filter(|object| {
            name.kinds().contains(&Kind::of(object.types.as_ref()))
                && object.name_any().starts_with(name.as_str())
        });
        let alike: Vec<_> = alike.map(ResourceExt::name_any).collect();
        Error::NotFound {
            name: name.title(),
            namespace: self.namespace.clone(),
            hint: if alike.is_empty() {
                format!(
                    "see what is with: {} get -A",
                    invocation::everywhere(self.program)
                )
            } else {
                format!("there is {}", alike.join(", "))
            },
        }
    }

    /// The StatefulSet of a rollout; `None` if it does not exist. One that cannot be read is an error, because it may have a change that no
    /// operator has seen.
    pub(crate) async fn set(&self, rollout: &Rollout) -> Result<Option<StatefulSet>, Error> {
        if rollout.workload_kind != "StatefulSet" {
            return Ok(None);
        }
        // No object can have such a name, and the request would address something else.
        let Ok(name) = ObjectName::new(&rollout.workload) else {
            return Ok(None);
        };
        let read = Objects::from(self.sets()).get(&name).await;
        read.map_err(Error::api(format!("read statefulset {}", rollout.workload)))
    }

    pub(crate) fn sets(&self) -> Api<StatefulSet> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// A rollout with its StatefulSet, pods and analysis runs.
    pub(crate) async fn picture(&self, rollout: Rollout) -> Result<Picture, Error> {
        let workload = async {
            let set = self.set(&rollout).await;
            let pods = match &set {
                Ok(Some(set)) => self.pod_rows(set).await,
                Ok(None) | Err(_) => Ok(Vec::new()),
            };
            (set, pods)
        };
        let ((set, pods), runs) = join(workload, self.runs(&rollout)).await;
        let (set, unread) = or_why(set);
        let (pods, unseen_pods) = match pods {
            Ok(pods) => (pods, None),
            // Denied access to the pods must not hide the rest.
            Err(Error::Api { source, .. }) => (Vec::new(), Some(error::words(&source))),
            Err(error) => return Err(error),
        };
        Ok(Picture {
            rollout,
            set,
            unread,
            pods,
            unseen_pods,
            runs,
        })
    }

    /// The analysis runs that a rollout waits for, or that decided its result. Empty if they cannot be read.
    pub(crate) async fn runs(&self, rollout: &Rollout) -> Vec<AnalysisRun> {
        let api: Api<AnalysisRun> = Api::namespaced(self.client.clone(), &self.namespace);
        let api = &Objects::from(api);
        let status = rollout.status.clone().unwrap_or_default();
        let looks = runs::concerned(&status)
            .into_iter()
            .filter_map(|name| ObjectName::new(name).ok())
            .map(|name| async move { api.get(&name).await });
        let seen = join_all(looks).await;
        seen.into_iter().filter_map(|run| run.ok().flatten()).collect()
    }

    async fn pod_rows(&self, set: &StatefulSet) -> Result<Vec<PodRow>, Error> {
        let pods = self.pods(set).await?;
        let mut rows: Vec<PodRow> = pods.iter().filter_map(PodRow::of).collect();
        rows.sort_by_key(|pod| pod.ordinal);
        Ok(rows)
    }

    /// The pods of a StatefulSet.
    pub(crate) async fn pods(&self, set: &StatefulSet) -> Result<Vec<Pod>, Error> {
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
        let owned = |pod: &Pod| {
            let mut owners = pod.owner_references().iter();
            owners.any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
        };
        Ok(pods.items.into_iter().filter(owned).collect())
    }
}

/// A placeholder for an object that failed to deserialize, so that it is listed with the others.
fn invalid(metadata: ObjectMeta, why: String) -> DynamicObject {
    DynamicObject {
        types: None,
        metadata,
        data: json!({ INVALID: why }),
    }
}

/// The StatefulSet, or why it cannot be read.
pub(crate) fn or_why(set: Result<Option<StatefulSet>, Error>) -> (Option<StatefulSet>, Option<String>) {
    match set {
        Ok(set) => (set, None),
        Err(error) => (None, Some(error.to_string())),
    }
}

/// Sets the type of a listed object, which the server omits.
pub(crate) fn said(kind: Kind, mut object: DynamicObject) -> DynamicObject {
    let resource = kind.resource();
    object.types.get_or_insert(TypeMeta {
        api_version: resource.api_version,
        kind: resource.kind,
    });
    object
}

pub(crate) fn kind(object: &DynamicObject) -> Kind {
    Kind::of(object.types.as_ref())
}

/// `rolloutplugin.argoproj.io/db`
fn full_name(object: &DynamicObject) -> String {
    kind(object).full_name(&object.name_any())
}
