//! The state of a demo's cluster as its watches have shown it. No change is skipped.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use futures::stream::{BoxStream, StreamExt, select_all};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject};
use kube::core::TypeMeta;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, Event, watcher};
use kube::{Api, Resource, ResourceExt};
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rollout::RolloutStatus;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_cli::Style;

use super::scene::{NAMESPACE, Scene};

/// The fields of a pod that the story needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) version: String,
    pub(super) uid: String,
    pub(super) ready: bool,
    pub(super) reason: Option<String>,
}

enum Change {
    Pod(Box<Event<Pod>>),
    Set(Box<Event<StatefulSet>>),
    Rollout(Box<Event<DynamicObject>>),
}

/// The observed state.
pub(super) struct Sight {
    changes: BoxStream<'static, Result<Change>>,
    pub(super) pods: BTreeMap<String, Seen>,
    /// The complete pods, to be drawn.
    whole_pods: BTreeMap<String, Pod>,
    set: Option<StatefulSet>,
    rollout: Option<DynamicObject>,
    pub(super) status: RolloutStatus,
    pub(super) partition: Option<i32>,
    /// The lowest number of Ready pods since this was last reset.
    pub(super) fewest_ready: usize,
}

impl Sight {
    pub(super) fn new(scene: &Scene) -> Self {
        let pods: Api<Pod> = Api::namespaced(scene.client.clone(), NAMESPACE);
        let config = Config::default;
        let changes = select_all([
            watcher(pods, config())
                .map(|event| {
                    Ok(Change::Pod(Box::new(
                        event.context("the watch of the pods has failed")?,
                    )))
                })
                .boxed(),
            watcher(scene.sets(), config())
                .map(|event| {
                    Ok(Change::Set(Box::new(
                        event.context("the watch of the set has failed")?,
                    )))
                })
                .boxed(),
            rollouts::<RolloutPlugin>(scene),
            rollouts::<PhasedRollout>(scene),
        ]);
        Self {
            changes: changes.boxed(),
            pods: BTreeMap::new(),
            whole_pods: BTreeMap::new(),
            set: None,
            rollout: None,
            status: RolloutStatus::default(),
            partition: None,
            fewest_ready: 0,
        }
    }

    /// Processes one more change.
    pub(super) async fn look(&mut self) -> Result<()> {
        let change = self.changes.next().await.context("the watches have ended")??;
        match change {
            Change::Pod(event) => match *event {
                Event::Apply(pod) | Event::InitApply(pod) => {
                    self.pods.insert(pod.name_any(), seen(&pod));
                    self.whole_pods.insert(pod.name_any(), pod);
                }
                Event::Delete(pod) => {
                    self.pods.remove(&pod.name_any());
                    self.whole_pods.remove(&pod.name_any());
                }
                Event::Init | Event::InitDone => {}
            },
            Change::Set(event) => {
                if let Event::Apply(set) | Event::InitApply(set) = *event {
                    self.partition = partition(&set);
                    self.set = Some(set);
                }
            }
            Change::Rollout(event) => {
                if let Event::Apply(rollout) | Event::InitApply(rollout) = *event {
                    let status = rollout.data.get("status").cloned().unwrap_or_default();
                    self.status = serde_json::from_value(status).unwrap_or_default();
                    self.rollout = Some(rollout);
                }
            }
        }
        self.fewest_ready = self.fewest_ready.min(self.ready());
        Ok(())
    }

    /// The current state of the rollout, if there is one.
    pub(super) fn picture(&self, style: Style, now: Timestamp, program: &str) -> Vec<String> {
        let Some(rollout) = self.rollout.clone() else {
            return Vec::new();
        };
        let pods: Vec<_> = self.whole_pods.values().cloned().collect();
        stateward_cli::tree(rollout, self.set.clone(), &pods, style, now, program).unwrap_or_default()
    }

    pub(super) fn ready(&self) -> usize {
        self.pods.values().filter(|pod| pod.ready).count()
    }

    /// Whether a pod is Ready on a version.
    pub(super) fn runs(&self, pod: &str, version: &str) -> bool {
        let pod = self.pods.get(pod);
        pod.is_some_and(|pod| pod.ready && pod.version == version)
    }

    /// The versions of the pods, by ordinal: `1.0 1.0 2.0`.
    pub(super) fn versions(&self) -> Vec<&str> {
        self.pods.values().map(|pod| pod.version.as_str()).collect()
    }

    /// The state as text, for a timeout.
    pub(super) fn in_words(&self) -> String {
        let pods: Vec<String> = self
            .pods
            .iter()
            .map(|(name, pod)| {
                let state = if pod.ready { "Ready" } else { "not Ready" };
                format!("{name} {} {state}", pod.version)
            })
            .collect();
        let RolloutStatus { phase, message, .. } = &self.status;
        format!(
            "the rollout is {phase:?} ({message}), partition {:?}, pods: {}",
            self.partition,
            pods.join(", ")
        )
    }
}

fn rollouts<K: Resource<DynamicType = ()>>(scene: &Scene) -> BoxStream<'static, Result<Change>> {
    let resource = ApiResource::erase::<K>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(scene.client.clone(), NAMESPACE, &resource);
    let types = TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    };
    watcher(api, Config::default())
        // Listed objects lack their type.
        .modify(move |object| object.types = Some(types.clone()))
        .map(|event| {
            let event = event.context("the watch of the rollout has failed")?;
            Ok(Change::Rollout(Box::new(event)))
        })
        .boxed()
}

fn seen(pod: &Pod) -> Seen {
    let status = pod.status.as_ref();
    let condition = |kind: &str| {
        let mut conditions = status
            .and_then(|status| status.conditions.as_ref())
            .into_iter()
            .flatten();
        conditions.any(|condition| condition.type_ == kind && condition.status == "True")
    };
    let containers = status.and_then(|status| status.container_statuses.as_ref());
    let reason = containers.into_iter().flatten().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        waiting.reason.clone()
    });
    let image = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.containers.first()?.image.clone());
    let image = image.unwrap_or_default();
    Seen {
        version: image.rsplit(':').next().unwrap_or_default().to_owned(),
        uid: pod.uid().unwrap_or_default(),
        ready: condition("Ready") && pod.metadata.deletion_timestamp.is_none(),
        reason,
    }
}

fn partition(set: &StatefulSet) -> Option<i32> {
    let strategy = set.spec.as_ref()?.update_strategy.as_ref()?;
    strategy.rolling_update.as_ref()?.partition
}
