//! `status --watch`: watches several rollouts at once, each until its end or the requested phase.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::runtime::watcher::{self, watch_object};
use kube::runtime::{WatchStreamExt, watcher::DefaultBackoff};
use stateward_client::{ObjectName, Objects};

use crate::error::{self, Error};
use crate::exit::Exit;
use crate::input::name::Name;
use crate::input::target::Targets;
use crate::rollout::{Rollout, parse};
use crate::session::Session;
use crate::verbs::watch::is_final;

use super::until::Until;
use super::{Verdict, reason};

/// Watches the rollouts until the timeout.
pub(super) async fn run(
    targets: &Targets,
    until: Option<Until>,
    timeout: Option<Duration>,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let mut courses = Vec::new();
    let Some(timeout) = timeout else {
        return watch(targets, until, &mut courses, session).await;
    };
    if let Ok(ended) = tokio::time::timeout(timeout, watch(targets, until, &mut courses, session)).await {
        return ended;
    }
    let open: Vec<_> = courses.iter().filter(|course| course.exit.is_none()).collect();
    let late = match open.as_slice() {
        [] => format!(
            "the API server has not said within {timeout:?} where {} stands",
            targets.title()
        ),
        [one] => match until {
            Some(until) => format!("{} was not {} within {timeout:?}", one.title, until.word()),
            None => format!("{} has not ended within {timeout:?}", one.title),
        },
        several => {
            let titles: Vec<_> = several.iter().map(|course| course.title.as_str()).collect();
            let titles = titles.join(" and ");
            match until {
                Some(until) => format!("{titles} were not {} within {timeout:?}", until.word()),
                None => format!("{titles} have not ended within {timeout:?}"),
            }
        }
    };
    let late = Error::Late(late);
    if courses.len() < 2 {
        return Err(late);
    }
    session.complain(&late);
    let exits = courses.iter().map(|course| course.exit.unwrap_or(Exit::Timeout));
    Ok(Exit::worst(&exits.collect::<Vec<_>>()))
}

/// A watched rollout.
struct Course {
    name: Name,
    title: String,
    rollout: Option<Box<Rollout>>,
    /// The StatefulSet, or why it cannot be read.
    set: Option<Result<Option<Box<StatefulSet>>, String>>,
    /// The phase to wait for; without one, until the rollout ends.
    until: Option<Until>,
    /// The head of the last line, and its full message.
    said: (String, String),
    /// The watch is being restarted.
    lost: bool,
    /// How the rollout ended.
    exit: Option<Exit>,
}

impl Course {
    fn new(name: &Name, title: String, until: Option<Until>, exit: Option<Exit>) -> Self {
        Self {
            name: name.clone(),
            title,
            until,
            rollout: None,
            set: None,
            said: Default::default(),
            lost: false,
            exit,
        }
    }

    /// Processes and reports a change.
    fn take(&mut self, sight: Sight, session: &mut Session<'_>) -> Result<(), Error> {
        match sight {
            Sight::Set(seen) => self.set = Some(seen),
            Sight::Rollout(Ok(Some(seen))) => (self.rollout, self.lost) = (Some(seen), false),
            Sight::Rollout(Ok(None)) => return Err(session.not_found(&self.name)),
            Sight::Rollout(Err(error)) if is_final(&error) => {
                return Err(Error::Watch {
                    what: self.title.clone(),
                    why: error::lost(&error),
                });
            }
            Sight::Rollout(Err(error)) => {
                if !self.lost {
                    session.say(&format!(
                        "the watch of {} was lost and is taken up again: {}",
                        self.title,
                        error::lost(&error)
                    ));
                }
                self.lost = true;
            }
        }
        let (Some(rollout), Some(set)) = (&self.rollout, &self.set) else {
            return Ok(());
        };
        let (set, unread) = match set {
            Ok(set) => (set.as_deref(), None),
            Err(why) => (None, Some(why.as_str())),
        };
        let verdict = Verdict::of(rollout, set, unread, session.program);
        let (head, message) = &self.said;
        if (head, message) != (&verdict.head, &verdict.message) {
            let message = reason::once(&verdict.message, message);
            session.print(&format!("{}{message}", verdict.head))?;
            self.said = (verdict.head.clone(), verdict.message.clone());
        }
        self.exit = match self.until {
            Some(until) => until.end(&verdict, unread, &self.title).transpose()?,
            None => verdict.ended.then_some(verdict.exit),
        };
        Ok(())
    }
}

/// Watches until every rollout has ended. An error of one rollout is reported and does not stop the others.
async fn watch(
    targets: &Targets,
    until: Option<Until>,
    courses: &mut Vec<Course>,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let names = session.names(targets).await?;
    let looks = join_all(names.iter().map(|name| session.rollout(name))).await;
    let (mut watched, mut met) = (Vec::new(), HashSet::new());
    for (name, look) in names.iter().zip(looks) {
        match look {
            // A rollout that is named twice, perhaps by its StatefulSet, is watched once.
            Ok(rollout) if !met.insert(rollout.uid()) => {}
            Ok(rollout) => {
                let at = courses.len();
                watched.push(sights(session, &rollout).map(move |sight| (at, sight)).boxed());
                courses.push(Course::new(name, rollout.title(), until, None));
            }
            Err(error) if names.len() == 1 => return Err(error),
            Err(error) => {
                session.complain(&error);
                courses.push(Course::new(name, name.title(), until, Some(error.exit())));
            }
        }
    }
    let mut watched = stream::select_all(watched);
    while courses.iter().any(|course| course.exit.is_none()) {
        let Some((at, sight)) = watched.next().await else {
            return Ok(Exit::Error);
        };
        let course = &mut courses[at];
        if course.exit.is_some() {
            continue;
        }
        match course.take(sight, session) {
            Ok(()) => {}
            Err(error) if names.len() == 1 || error.is_nobody_listening() => return Err(error),
            Err(error) => {
                session.complain(&error);
                course.exit = Some(error.exit());
            }
        }
    }
    let exits: Vec<_> = courses.iter().filter_map(|course| course.exit).collect();
    Ok(Exit::worst(&exits))
}

/// A change seen by a watch.
enum Sight {
    Rollout(Result<Option<Box<Rollout>>, watcher::Error>),
    /// The StatefulSet, or why it cannot be read.
    Set(Result<Option<Box<StatefulSet>>, String>),
}

fn sights(session: &Session<'_>, rollout: &Rollout) -> impl Stream<Item = Sight> + use<> {
    let api = session.whole_rollouts(rollout.kind, false);
    let rollouts = watch_object(api, &rollout.name_any())
        .backoff(DefaultBackoff::default())
        // An object that cannot be read now may be readable later.
        .filter_map(|seen| async {
            Some(Sight::Rollout(match seen {
                Ok(Some(object)) => Ok(Some(Box::new(parse(object).ok()?))),
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            }))
        });
    let sets: BoxStream<'static, Sight> = if rollout.workload_kind == "StatefulSet" {
        let (sets, name) = (session.sets(), rollout.workload.clone());
        let watched = watch_object(sets.clone(), &name).backoff(DefaultBackoff::default());
        // A lost connection is retried; a denied watch is not.
        let watched = watched
            .take_while(|set| std::future::ready(!matches!(set, Err(error) if is_final(error))))
            .filter_map(|set| std::future::ready(set.ok()))
            .map(|set| Sight::Set(Ok(set.map(Box::new))));
        watched.chain(looks(sets.into(), name)).boxed()
    } else {
        stream::iter([Sight::Set(Ok(None))])
            .chain(stream::pending())
            .boxed()
    };
    stream::select(rollouts, sets)
}

/// How often to read a StatefulSet that may not be watched.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// For a user who may read the StatefulSet but not watch it.
fn looks(sets: Objects<StatefulSet>, name: String) -> impl Stream<Item = Sight> {
    let look = move |again: bool| {
        let (sets, name) = (sets.clone(), name.clone());
        async move {
            if again {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            let seen = loop {
                let Ok(checked) = ObjectName::new(&name) else {
                    break Ok(None);
                };
                let read = sets.get(&checked).await;
                match read.map_err(Error::api(format!("read statefulset {name}"))) {
                    Ok(set) => break Ok(set.map(Box::new)),
                    // A lost connection says nothing about the StatefulSet.
                    Err(Error::Unreachable(_)) => tokio::time::sleep(LOOK_AGAIN).await,
                    Err(error) => break Err(error.to_string()),
                }
            };
            Some((Sight::Set(seen), true))
        }
    };
    stream::unfold(false, look)
}
