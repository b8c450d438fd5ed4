//! What the watches show. All of them are taken up again when they break off; that the rollout's own has is told.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::core::Selector;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, DefaultBackoff, watch_object, watcher};
use kube::{Api, ResourceExt};
use stateward_api::analysis::AnalysisRun;

use crate::rollout::{Rollout, parse};
use crate::runs;
use crate::session::Session;

/// Something that was seen.
pub(crate) enum Sight {
    Rollout(Box<Rollout>),
    /// The rollout is gone.
    Gone,
    /// The connection is, for this reason.
    Lost(String),
    /// It still is.
    StillLost(String),
    /// It is there again.
    Back(Box<Rollout>),
    Set(Option<Box<StatefulSet>>),
    /// Begins a new list of pods.
    NoPods,
    Pod(Box<Pod>),
    PodGone(String),
    Run(Box<AnalysisRun>),
    Event(Box<Event>),
}

/// How often a lost connection is tried. A watch that is taken up where it broke off says nothing until something changes.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// All that is looked at.
pub(crate) struct Sights {
    streams: SelectAll<BoxStream<'static, Sight>>,
    /// Somebody looks whether the connection is there again.
    trying: bool,
    /// The labels of the pods that are watched.
    pods: Option<Selector>,
    /// The runs that are.
    runs: Vec<String>,
}

impl Sights {
    pub(crate) fn of(rollout: &Rollout, session: &Session<'_>) -> Self {
        let mut streams = SelectAll::new();
        let api = session.whole_rollouts(rollout.kind, false);
        let rollouts = watch_object(api, &rollout.name_any()).backoff(DefaultBackoff::default());
        streams.push(
            rollouts
                .filter_map(|seen| async {
                    Some(match seen {
                        // What cannot be read now may be in a moment.
                        Ok(Some(object)) => Sight::Rollout(Box::new(parse(object).ok()?)),
                        Ok(None) => Sight::Gone,
                        Err(error) => Sight::Lost(error.to_string()),
                    })
                })
                .boxed(),
        );
        if rollout.workload_kind == "StatefulSet" {
            let sets = watch_object(session.sets(), &rollout.workload).backoff(DefaultBackoff::default());
            let seen = sets.filter_map(|set| async { Some(Sight::Set(set.ok()?.map(Box::new))) });
            streams.push(seen.boxed());
        }
        let events: Api<Event> = Api::namespaced(session.client.clone(), &session.namespace);
        let about = format!("involvedObject.uid={}", rollout.uid().unwrap_or_default());
        let events = watcher(events, watcher::Config::default().fields(&about)).default_backoff();
        let told = events
            .applied_objects()
            .filter_map(|event| async { Some(Sight::Event(Box::new(event.ok()?))) });
        streams.push(told.boxed());
        Self {
            streams,
            trying: false,
            pods: None,
            runs: Vec::new(),
        }
    }

    /// The next one. Never ends.
    pub(crate) async fn next(&mut self) -> Sight {
        match self.streams.next().await {
            Some(sight) => sight,
            None => std::future::pending().await,
        }
    }

    /// Looks at what a sight speaks of, too.
    pub(crate) fn follow(&mut self, sight: &Sight, rollout: &Rollout, session: &Session<'_>) {
        match sight {
            Sight::Lost(_) if self.trying => {}
            Sight::Lost(_) | Sight::StillLost(_) => {
                self.trying = true;
                self.streams.push(try_again(rollout, session));
            }
            // All watches begin anew rather than when their patience is over.
            Sight::Back(rollout) => *self = Self::of(rollout, session),
            Sight::Set(Some(set)) => self.follow_pods(set, session),
            Sight::Rollout(rollout) => self.follow_runs(rollout, session),
            _ => {}
        }
    }

    fn follow_pods(&mut self, set: &StatefulSet, session: &Session<'_>) {
        let selector = set.spec.as_ref().map(|spec| spec.selector.clone());
        let selector: Option<Selector> = selector.and_then(|selector| selector.try_into().ok());
        // The selector of a set never changes.
        let (Some(selector), None) = (selector, &self.pods) else {
            return;
        };
        let api: Api<Pod> = Api::namespaced(session.client.clone(), &session.namespace);
        let config = watcher::Config::default().labels_from(&selector);
        self.pods = Some(selector);
        let pods = watcher(api, config).default_backoff();
        let seen = pods.filter_map(|event| async {
            Some(match event.ok()? {
                watcher::Event::Init => Sight::NoPods,
                watcher::Event::InitApply(pod) | watcher::Event::Apply(pod) => Sight::Pod(Box::new(pod)),
                watcher::Event::Delete(pod) => Sight::PodGone(pod.name_any()),
                watcher::Event::InitDone => return None,
            })
        });
        self.streams.push(seen.boxed());
    }

    fn follow_runs(&mut self, rollout: &Rollout, session: &Session<'_>) {
        let status = rollout.status.clone().unwrap_or_default();
        for name in runs::concerned(&status) {
            if self.runs.iter().any(|known| known == name) {
                continue;
            }
            self.runs.push(name.to_owned());
            let api: Api<AnalysisRun> = Api::namespaced(session.client.clone(), &session.namespace);
            let seen = watch_object(api, name)
                .backoff(DefaultBackoff::default())
                .filter_map(|run| async { Some(Sight::Run(Box::new(run.ok()??))) });
            self.streams.push(seen.boxed());
        }
    }
}

/// Looks in a moment whether the rollout can be read again.
fn try_again(rollout: &Rollout, session: &Session<'_>) -> BoxStream<'static, Sight> {
    let api = session.whole_rollouts(rollout.kind, false);
    let name = rollout.name_any();
    let found = async move {
        tokio::time::sleep(TRY_AGAIN).await;
        match api.get_opt(&name).await {
            Ok(Some(object)) => match parse(object) {
                Ok(rollout) => Sight::Back(Box::new(rollout)),
                Err(error) => Sight::StillLost(error.to_string()),
            },
            Ok(None) => Sight::Gone,
            Err(error) => Sight::StillLost(error.to_string()),
        }
    };
    futures::stream::once(found).boxed()
}
