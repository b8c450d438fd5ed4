//! Watches of one namespace, kept as a view that expectations wait on.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, future};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use stateward_api::analysis::AnalysisRun;
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rollout::RolloutStatus;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_client::DeserializeGuard;
use stateward_clock::Clock;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::pod::PodRow;
use super::rollout::partition;
use super::timeline::Timeline;

/// The objects of one namespace, by name, as the watches last showed them.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// StatefulSets.
    pub sets: BTreeMap<String, StatefulSet>,
    /// Pods.
    pub pods: BTreeMap<String, PodRow>,
    /// Every pod that ever existed, as it first appeared, in that order.
    pub births: Vec<PodRow>,
    /// Every change of a pod, by name, in watch order; `None` when it was deleted.
    pub pod_changes: Vec<(String, Option<PodRow>)>,
    /// Every partition that a set has had, by the set's name, in that order.
    pub partitions: Vec<(String, i32)>,
    /// ControllerRevisions.
    pub revisions: BTreeMap<String, ControllerRevision>,
    /// PersistentVolumeClaims.
    pub claims: BTreeMap<String, PersistentVolumeClaim>,
    /// RolloutPlugins, where an operator runs.
    pub rollouts: BTreeMap<String, RolloutPlugin>,
    /// PhasedRollouts, where an operator runs.
    pub phased: BTreeMap<String, PhasedRollout>,
    /// AnalysisRuns.
    pub runs: BTreeMap<String, AnalysisRun>,
    /// Events.
    pub events: BTreeMap<String, Event>,
}

/// Keeps a [`View`] and a time line of one namespace until it is dropped.
pub(crate) struct Observer {
    shared: Arc<Shared>,
    watches: JoinSet<()>,
}

struct Shared {
    clock: Clock,
    seen: Mutex<Seen>,
    changed: watch::Sender<()>,
}

struct Seen {
    view: View,
    timeline: Timeline,
}

impl Observer {
    pub(crate) fn start(client: &Client, namespace: &str, clock: Clock) -> Self {
        let timeline = Timeline::starting(clock.now());
        let seen = Mutex::new(Seen {
            view: View::default(),
            timeline,
        });
        let shared = Arc::new(Shared {
            clock,
            seen,
            changed: watch::Sender::new(()),
        });

        let mut watches = JoinSet::new();
        watches.spawn(follow::<Pod>(
            client.clone(),
            namespace.to_owned(),
            shared.clone(),
            |seen, now, change| {
                let before = seen.view.pods.get(change.name()).cloned();
                let after = change.object().map(PodRow::of);
                seen.timeline.note_pod(now, before.as_ref(), after.as_ref());
                if let Some(born) = after
                    .as_ref()
                    .filter(|after| before.as_ref().is_none_or(|before| before.uid != after.uid))
                {
                    seen.view.births.push(born.clone());
                }
                let name = change.name().to_owned();
                seen.view.pod_changes.push((name, after.clone()));
                replace(&mut seen.view.pods, change.name(), after);
            },
        ));
        watches.spawn(follow::<StatefulSet>(
            client.clone(),
            namespace.to_owned(),
            shared.clone(),
            |seen, now, change| {
                let before = seen.view.sets.get(change.name()).map(describe_set);
                let after = change.object().map(describe_set);
                if before != after {
                    seen.timeline.note(
                        now,
                        format!("{} {}", change.name(), after.as_deref().unwrap_or("gone")),
                    );
                }
                let was = seen.view.sets.get(change.name()).and_then(partition);
                let is = change.object().and_then(partition);
                if let Some(is) = is.filter(|is| Some(*is) != was) {
                    seen.view.partitions.push((change.name().to_owned(), is));
                }
                replace(&mut seen.view.sets, change.name(), change.object().cloned());
            },
        ));
        watches.spawn(follow::<ControllerRevision>(
            client.clone(),
            namespace.to_owned(),
            shared.clone(),
            |seen, _, change| {
                replace(&mut seen.view.revisions, change.name(), change.object().cloned());
            },
        ));
        watches.spawn(follow::<PersistentVolumeClaim>(
            client.clone(),
            namespace.to_owned(),
            shared.clone(),
            |seen, _, change| {
                replace(&mut seen.view.claims, change.name(), change.object().cloned());
            },
        ));
        Self { shared, watches }
    }

    /// Watches rollouts too, once the API server serves them.
    pub(crate) fn follow_rollouts(&mut self, client: &Client, namespace: &str) {
        self.watches.spawn(follow::<RolloutPlugin>(
            client.clone(),
            namespace.to_owned(),
            self.shared.clone(),
            |seen, now, change| {
                let describe = |object: &RolloutPlugin| describe_rollout(object.status.as_ref());
                let before = seen.view.rollouts.get(change.name()).map(describe);
                let after = change.object().map(describe);
                if before != after {
                    let after = after.as_deref().unwrap_or("gone");
                    seen.timeline
                        .note(now, format!("rollout {} {after}", change.name()));
                }
                replace(&mut seen.view.rollouts, change.name(), change.object().cloned());
            },
        ));
        self.watches.spawn(follow::<PhasedRollout>(
            client.clone(),
            namespace.to_owned(),
            self.shared.clone(),
            |seen, now, change| {
                let describe = |object: &PhasedRollout| {
                    let checks = object
                        .status
                        .as_ref()
                        .and_then(|status| status.rolling_pod_status.clone());
                    let checks = checks.map_or_else(String::new, |checks| {
                        format!(
                            "; {} partition {}, checks {} good {} bad",
                            checks.status,
                            checks.partition,
                            checks.consecutive_successful_checks,
                            checks.consecutive_failed_checks
                        )
                    });
                    describe_rollout(object.status.as_ref().map(|status| &status.rollout)) + &checks
                };
                let before = seen.view.phased.get(change.name()).map(describe);
                let after = change.object().map(describe);
                if before != after {
                    let after = after.as_deref().unwrap_or("gone");
                    seen.timeline
                        .note(now, format!("phased {} {after}", change.name()));
                }
                replace(&mut seen.view.phased, change.name(), change.object().cloned());
            },
        ));
        self.watches.spawn(follow::<AnalysisRun>(
            client.clone(),
            namespace.to_owned(),
            self.shared.clone(),
            |seen, now, change| {
                let before = seen.view.runs.get(change.name()).map(describe_run);
                let after = change.object().map(describe_run);
                if before != after {
                    let after = after.as_deref().unwrap_or("gone");
                    seen.timeline.note(now, format!("run {} {after}", change.name()));
                }
                replace(&mut seen.view.runs, change.name(), change.object().cloned());
            },
        ));
        self.watches.spawn(follow::<Event>(
            client.clone(),
            namespace.to_owned(),
            self.shared.clone(),
            |seen, now, change| {
                let Some(event) = change.object() else {
                    return;
                };
                if let Some("RolloutPlugin" | "PhasedRollout") = event.involved_object.kind.as_deref() {
                    let told = (event.reason.as_deref(), event.message.as_deref());
                    let (reason, message) = (told.0.unwrap_or_default(), told.1.unwrap_or_default());
                    seen.timeline.note(now, format!("event {reason}: {message}"));
                    replace(&mut seen.view.events, change.name(), Some(event.clone()));
                }
            },
        ));
    }

    /// Adds a line to the time line, such as an action of the scenario.
    pub(crate) fn note(&self, happening: impl Into<String>) {
        let now = self.shared.clock.now();
        self.shared.seen().timeline.note(now, happening);
    }

    pub(crate) fn timeline(&self) -> String {
        self.shared.seen().timeline.to_string()
    }

    /// A receiver that wakes at every change of the view.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changed.subscribe()
    }

    /// Reads the current view.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&View) -> T) -> T {
        look(&self.shared.seen().view)
    }
}

impl Shared {
    /// A panic while holding the lock has already failed the scenario; what was recorded until then is still worth reporting.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock()
    }
}

/// One object as a watch showed it, or its deletion.
enum Change<K> {
    Is(String, Box<K>),
    Gone(String),
}

impl<K> Change<K> {
    fn name(&self) -> &str {
        match self {
            Self::Is(name, _) | Self::Gone(name) => name,
        }
    }

    fn object(&self) -> Option<&K> {
        match self {
            Self::Is(_, object) => Some(object),
            Self::Gone(_) => None,
        }
    }
}

/// `None` for an object that failed to deserialize.
fn valid<K>(event: watcher::Event<DeserializeGuard<K>>) -> Option<watcher::Event<K>> {
    Some(match event {
        watcher::Event::Apply(DeserializeGuard::Valid(object)) => watcher::Event::Apply(object),
        watcher::Event::Delete(DeserializeGuard::Valid(object)) => watcher::Event::Delete(object),
        watcher::Event::InitApply(DeserializeGuard::Valid(object)) => watcher::Event::InitApply(object),
        watcher::Event::Init => watcher::Event::Init,
        watcher::Event::InitDone => watcher::Event::InitDone,
        _ => return None,
    })
}

/// Records every change of one kind in one namespace.
async fn follow<K>(
    client: Client,
    namespace: String,
    shared: Arc<Shared>,
    mut apply: impl FnMut(&mut Seen, jiff::Timestamp, &Change<K>),
) where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let api: Api<DeserializeGuard<K>> = Api::namespaced(client, &namespace);
    let events = watcher(api, watcher::Config::default()).default_backoff();
    // Skips objects that fail to deserialize: no scenario looks at them.
    let mut events = events
        .try_filter_map(|event| future::ready(Ok(valid(event))))
        .boxed();
    // After a relist, an object that is no longer in the list was deleted while the watch was interrupted.
    let mut known: Vec<String> = Vec::new();
    let mut listed: Vec<String> = Vec::new();
    while let Some(event) = events.next().await {
        let changes = match event {
            Ok(watcher::Event::Init) => {
                listed.clear();
                Vec::new()
            }
            Ok(watcher::Event::InitApply(object)) => {
                listed.push(object.name_any());
                vec![Change::Is(object.name_any(), Box::new(object))]
            }
            Ok(watcher::Event::InitDone) => {
                let lost = known
                    .iter()
                    .filter(|name| !listed.contains(name))
                    .cloned()
                    .map(Change::Gone)
                    .collect();
                known = std::mem::take(&mut listed);
                lost
            }
            Ok(watcher::Event::Apply(object)) => {
                let name = object.name_any();
                if !known.contains(&name) {
                    known.push(name.clone());
                }
                vec![Change::Is(name, Box::new(object))]
            }
            Ok(watcher::Event::Delete(object)) => {
                let name = object.name_any();
                known.retain(|one| *one != name);
                vec![Change::Gone(name)]
            }
            // The watcher restarts by itself.
            Err(_) => Vec::new(),
        };
        for change in changes {
            apply(&mut shared.seen(), shared.clock.now(), &change);
        }
        shared.changed.send_replace(());
    }
}

fn replace<T>(map: &mut BTreeMap<String, T>, name: &str, value: Option<T>) {
    match value {
        Some(value) => {
            map.insert(name.to_owned(), value);
        }
        None => {
            map.remove(name);
        }
    }
}

/// One line of the time line for a StatefulSet.
fn describe_set(set: &StatefulSet) -> String {
    let spec = set.spec.as_ref();
    let partition = spec
        .and_then(|spec| spec.update_strategy.as_ref()?.rolling_update.as_ref()?.partition)
        .map_or("none".to_owned(), |partition| partition.to_string());
    let status = set.status.as_ref();
    let count = |count: Option<i32>| count.unwrap_or(0);
    format!(
        "set: generation {} observed {}, replicas {}, partition {partition}; status replicas {} ready {} available {} current {} updated {}, {} -> {}",
        set.metadata.generation.unwrap_or(0),
        status.and_then(|status| status.observed_generation).unwrap_or(0),
        count(spec.and_then(|spec| spec.replicas)),
        status.map_or(0, |status| status.replicas),
        count(status.and_then(|status| status.ready_replicas)),
        count(status.and_then(|status| status.available_replicas)),
        count(status.and_then(|status| status.current_replicas)),
        count(status.and_then(|status| status.updated_replicas)),
        status
            .and_then(|status| status.current_revision.as_deref())
            .unwrap_or("?"),
        status
            .and_then(|status| status.update_revision.as_deref())
            .unwrap_or("?"),
    )
}

fn describe_run(run: &AnalysisRun) -> String {
    let status = run.status.clone().unwrap_or_default();
    let results = status.metric_results.iter();
    let counts: Vec<_> = results
        .map(|result| {
            format!(
                "{} {:?} after {}",
                result.name,
                result.phase,
                result.count.saturating_add(result.error)
            )
        })
        .collect();
    format!("{:?} ({}): {}", status.phase, counts.join(", "), status.message)
}

fn describe_rollout(status: Option<&RolloutStatus>) -> String {
    match status {
        Some(status) => format!(
            "{} at step {}: {}",
            status.phase,
            status
                .current_step_index
                .map_or_else(|| "-".to_owned(), |step| step.to_string()),
            status.message
        ),
        None => "without a status".to_owned(),
    }
}
