//! What the watches show. All watches are restarted on errors; a loss of the rollout's own watch is reported.

use std::time::Duration;

use futures::stream::{self, BoxStream, SelectAll};
use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::DynamicObject;
use kube::core::Selector;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, DefaultBackoff, watch_object, watcher};
use kube::{Api, ResourceExt};
use stateward_api::analysis::AnalysisRun;
use stateward_client::{ObjectName, Objects};

use crate::error;
use crate::rollout::{Rollout, parse};
use crate::session::Session;
use crate::verbs::watch::refusal;
use crate::views::runs;

/// A change seen by a watch.
pub(crate) enum Sight {
    Rollout(Box<Rollout>),
    /// The rollout was deleted.
    Gone,
    /// The rollout may not be watched, for this reason, and is polled.
    Unwatched(String),
    /// The server answered; the rollout, if it could be read.
    Probed(Option<Box<Rollout>>),
    /// The connection was lost, for this reason.
    Lost(String),
    /// The connection is still lost.
    StillLost(String),
    /// The connection was restored.
    Back(Box<Rollout>),
    Set(Option<Box<StatefulSet>>),
    /// The StatefulSet may not be watched, for this reason.
    Unread(String),
    /// A new list of pods starts.
    NoPods,
    Pod(Box<Pod>),
    PodGone(String),
    /// Pods may not be watched, for this reason.
    UnseenPods(String),
    /// Events may not be watched, for this reason.
    UnseenEvents(String),
    Run(Box<AnalysisRun>),
    Event(Box<Event>),
}

/// How often to retry a lost connection. A watch that resumed reports nothing until something changes.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How often to poll a rollout that may not be watched.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// How often to probe the server: a watch does not detect a connection that hangs.
pub(super) const PROBE_EVERY: Duration = Duration::from_secs(10);

/// The timeout of a probe.
pub(super) const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// The watches of a view.
pub(crate) struct Sights {
    streams: SelectAll<BoxStream<'static, Sight>>,
    /// A lost connection is being retried.
    trying: bool,
    /// The selector of the watched pods.
    pods: Option<Selector>,
    /// The watched analysis runs.
    runs: Vec<String>,
}

impl Sights {
    pub(crate) fn of(rollout: &Rollout, session: &Session<'_>) -> Self {
        let mut streams = SelectAll::new();
        let api = session.whole_rollouts(rollout.kind, false);
        let rollouts = watch_object(api, &rollout.name_any()).backoff(DefaultBackoff::default());
        let looks = looks(rollout, session);
        let seen = rollouts.filter_map(|seen| async {
            Some(match seen {
                // An object that cannot be read now may be readable later.
                Ok(Some(object)) => Sight::Rollout(Box::new(parse(object).ok()?)),
                Ok(None) => Sight::Gone,
                Err(error) => match refusal(&error) {
                    Some(why) => Sight::Unwatched(why),
                    None => Sight::Lost(error::lost(&error)),
                },
            })
        });
        streams.push(until_refused(seen).chain(looks).boxed());
        streams.push(probe(rollout, session));
        if rollout.workload_kind == "StatefulSet" {
            let sets = watch_object(session.sets(), &rollout.workload).backoff(DefaultBackoff::default());
            let workload = rollout.workload.clone();
            let seen = sets.filter_map(move |set| {
                std::future::ready(match set {
                    Ok(set) => Some(Sight::Set(set.map(Box::new))),
                    Err(error) => refusal(&error)
                        .map(|why| Sight::Unread(format!("cannot watch statefulset {workload}: {why}"))),
                })
            });
            streams.push(seen.boxed());
        }
        let events: Api<Event> = Api::namespaced(session.client.clone(), &session.namespace);
        let about = format!("involvedObject.uid={}", rollout.uid().unwrap_or_default());
        let events = watcher(events, watcher::Config::default().fields(&about)).default_backoff();
        let told = events.applied_objects().filter_map(|event| async {
            match event {
                Ok(event) => Some(Sight::Event(Box::new(event))),
                Err(error) => refusal(&error).map(Sight::UnseenEvents),
            }
        });
        streams.push(told.boxed());
        Self {
            streams,
            trying: false,
            pods: None,
            runs: Vec::new(),
        }
    }

    /// The next change. Never ends.
    pub(crate) async fn next(&mut self) -> Sight {
        match self.streams.next().await {
            Some(sight) => sight,
            None => std::future::pending().await,
        }
    }

    /// Watches the objects that a change refers to.
    pub(crate) fn follow(&mut self, sight: &Sight, rollout: &Rollout, session: &Session<'_>) {
        match sight {
            Sight::Lost(_) if self.trying => {}
            Sight::Lost(_) | Sight::StillLost(_) => {
                self.trying = true;
                self.streams.push(try_again(rollout, session));
            }
            // Restart all watches instead of waiting for their backoff.
            Sight::Back(rollout) => *self = Self::of(rollout, session),
            // A watch that missed a change hangs.
            Sight::Probed(Some(probed)) if is_newer(probed, rollout) => *self = Self::of(probed, session),
            Sight::Probed(_) => self.streams.push(probe(rollout, session)),
            Sight::Set(Some(set)) => self.follow_pods(set, session),
            Sight::Rollout(rollout) => self.follow_runs(rollout, session),
            _ => {}
        }
    }

    fn follow_pods(&mut self, set: &StatefulSet, session: &Session<'_>) {
        let selector = set.spec.as_ref().map(|spec| spec.selector.clone());
        let selector: Option<Selector> = selector.and_then(|selector| selector.try_into().ok());
        // The selector of a StatefulSet is immutable.
        let (Some(selector), None) = (selector, &self.pods) else {
            return;
        };
        let api: Api<Pod> = Api::namespaced(session.client.clone(), &session.namespace);
        let config = watcher::Config::default().labels_from(&selector);
        self.pods = Some(selector);
        let pods = watcher(api, config).default_backoff();
        let seen = pods.filter_map(|event| async {
            let event = match event {
                Ok(event) => event,
                Err(error) => return refusal(&error).map(Sight::UnseenPods),
            };
            Some(match event {
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

/// The API and the name of a rollout; `None` for an invalid name.
fn named(rollout: &Rollout, session: &Session<'_>) -> (Objects<DynamicObject>, Option<ObjectName>) {
    let api = session.whole_rollouts(rollout.kind, false).into();
    (api, ObjectName::new(rollout.name_any()).ok())
}

async fn read(
    api: &Objects<DynamicObject>,
    name: Option<&ObjectName>,
) -> kube::Result<Option<DynamicObject>> {
    match name {
        Some(name) => api.get(name).await,
        None => Ok(None),
    }
}

/// Retries to read the rollout after a moment.
fn try_again(rollout: &Rollout, session: &Session<'_>) -> BoxStream<'static, Sight> {
    let (api, name) = named(rollout, session);
    let found = async move {
        tokio::time::sleep(TRY_AGAIN).await;
        match tokio::time::timeout(ANSWERS_WITHIN, read(&api, name.as_ref())).await {
            Ok(Ok(Some(object))) => match parse(object) {
                Ok(rollout) => Sight::Back(Box::new(rollout)),
                Err(error) => Sight::StillLost(error.to_string()),
            },
            Ok(Ok(None)) => Sight::Gone,
            Ok(Err(error)) => Sight::StillLost(error::lost(&error)),
            Err(_) => Sight::StillLost(silence()),
        }
    };
    stream::once(found).boxed()
}

/// Checks after a while whether the server still answers.
fn probe(rollout: &Rollout, session: &Session<'_>) -> BoxStream<'static, Sight> {
    let (api, name) = named(rollout, session);
    let answered = async move {
        tokio::time::sleep(PROBE_EVERY).await;
        match tokio::time::timeout(ANSWERS_WITHIN, read(&api, name.as_ref())).await {
            Ok(Ok(found)) => Sight::Probed(found.and_then(|object| parse(object).ok()).map(Box::new)),
            // A refusal is an answer.
            Ok(Err(kube::Error::Api(_))) => Sight::Probed(None),
            Ok(Err(error)) => Sight::Lost(error::lost(&error)),
            Err(_) => Sight::Lost(silence()),
        }
    };
    stream::once(answered).boxed()
}

pub(super) fn silence() -> String {
    format!("the API server has not answered within {ANSWERS_WITHIN:?}")
}

/// Polls, for a user who may read the rollout but not watch it.
fn looks(rollout: &Rollout, session: &Session<'_>) -> impl Stream<Item = Sight> + use<> {
    let (api, name) = named(rollout, session);
    let look = move |()| {
        let (api, name) = (api.clone(), name.clone());
        async move {
            tokio::time::sleep(LOOK_AGAIN).await;
            let seen = match tokio::time::timeout(ANSWERS_WITHIN, read(&api, name.as_ref())).await {
                Ok(Ok(Some(object))) => parse(object)
                    .ok()
                    .map(|rollout| Sight::Rollout(Box::new(rollout))),
                Ok(Ok(None)) => Some(Sight::Gone),
                Ok(Err(error)) => Some(Sight::Lost(error::lost(&error))),
                Err(_) => Some(Sight::Lost(silence())),
            };
            Some((seen, ()))
        }
    };
    stream::unfold((), look).filter_map(std::future::ready)
}

/// Ends with the reason when a retry cannot help.
fn until_refused(seen: impl Stream<Item = Sight>) -> impl Stream<Item = Sight> {
    let mut over = false;
    seen.take_while(move |sight| {
        let go_on = !over;
        over = matches!(sight, Sight::Unwatched(_));
        std::future::ready(go_on)
    })
}

/// Whether the first is a later version of the same object.
pub(super) fn is_newer(one: &Rollout, other: &Rollout) -> bool {
    let version = |rollout: &Rollout| {
        rollout
            .resource_version()
            .and_then(|version| version.parse::<u64>().ok())
    };
    version(one) > version(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, paused, plugin};
    use crate::views::style::Style;
    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;
    use stateward_clock::Clock;
    use std::convert::Infallible;

    /// The changes of a rollout with this server.
    async fn seen<F>(answer: impl Fn(Request<Body>) -> F + Clone + Send + 'static, count: usize) -> Vec<Sight>
    where
        F: Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
    {
        let (mut out, mut talk) = (Vec::new(), Vec::new());
        let session = Session {
            user: None,
            client: Client::new(tower::service_fn(answer), "prod"),
            namespace: "prod".into(),
            clock: Clock::starting_at(NOW.parse().unwrap(), 1.0),
            program: "stateward",
            style: Style::default(),
            terminal: true,
            out: &mut out,
            talk: &mut talk,
        };
        let mut sights = Sights::of(&paused(), &session);
        let mut seen = Vec::new();
        while seen.len() < count {
            let sight = sights.next().await;
            sights.follow(&sight, &paused(), &session);
            if !matches!(sight, Sight::Unread(_) | Sight::UnseenEvents(_)) {
                seen.push(sight);
            }
        }
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_nothing_is_lost() {
        let seen = seen(|_| std::future::pending(), 2).await;
        let silent = "the API server has not answered within 5s";
        assert!(matches!(&seen[0], Sight::Lost(why) if why == silent));
        assert!(matches!(&seen[1], Sight::StillLost(why) if why == silent));
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_not_be_watched_is_read_now_and_then() {
        let answer = |request: Request<Body>| async move {
            let (code, body) = if request.uri().path().ends_with("/rolloutplugins/db") {
                (200, json!(plugin("db", json!(paused().status))))
            } else {
                let message = "somebody may not watch";
                (
                    403,
                    json!({"kind": "Status", "status": "Failure", "code": 403, "message": message}),
                )
            };
            let body = Body::from(body.to_string().into_bytes());
            Ok(Response::builder().status(code).body(body).unwrap())
        };
        let seen = seen(answer, 3).await;
        assert!(matches!(&seen[0], Sight::Unwatched(why) if why == "somebody may not watch"));
        assert!(matches!(&seen[1], Sight::Rollout(_)));
        // The server is probed nevertheless.
        assert!(matches!(&seen[2], Sight::Rollout(_) | Sight::Probed(Some(_))));
    }
}
