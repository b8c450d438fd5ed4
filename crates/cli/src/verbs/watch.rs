//! `get --watch`: a row for every change, as with kubectl.

use std::collections::HashMap;

use futures::StreamExt;
use futures::stream::{BoxStream, select_all};
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::core::Status;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, DefaultBackoff, Event, watcher};

use crate::error::{self, Error};
use crate::exit::Exit;
use crate::look;
use crate::rollout::{Kind, parse};
use crate::session::Session;
use crate::unseen::Sets;
use crate::views::columns::Widths;
use crate::views::custom_columns::CustomColumns;
use crate::views::output::{Objects, Output, tidy};
use crate::views::table::{View, heading, row};

/// What is watched.
pub(crate) enum Watched {
    /// Rollouts of these kinds that were listed by name.
    Named(Vec<Kind>),
    /// Rollouts with these labels.
    Labelled {
        everywhere: bool,
        selector: Option<String>,
    },
    /// Rollouts of one kind with these labels.
    OfKind {
        kind: Kind,
        everywhere: bool,
        selector: Option<String>,
    },
}

impl Watched {
    /// Only these rollouts.
    pub(crate) fn named(objects: &[DynamicObject]) -> Self {
        let kinds = Kind::ALL.into_iter();
        Self::Named(
            kinds
                .filter(|kind| objects.iter().any(|object| look::kind(object) == *kind))
                .collect(),
        )
    }
}

/// The kind, namespace and name of a rollout.
type Key = (&'static str, String, String);

/// The last row shown for each rollout.
type Shown = HashMap<Key, String>;

/// Shows the rollouts, and a row for every change from then on. Returns only on an error.
pub(crate) async fn rows(
    objects: Vec<DynamicObject>,
    sets: &Sets,
    watched: &Watched,
    view: View<'_>,
    output: Option<&Output>,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let mut widths = Widths::default();
    let mut shown = Shown::new();
    let mut lines = match chosen(output) {
        Some(chosen) => vec![chosen.heading()],
        None => vec![heading(view), widest(view)],
    };
    for object in &objects {
        lines.push(match chosen(output) {
            Some(chosen) => chosen.row(&tidy(object.clone())),
            None => cells(object, sets, view, session)?,
        });
    }
    lines.iter().for_each(|line| widths.fit(line));
    if is_in_rows(output) && !objects.is_empty() {
        session.print(&widths.set(&lines[0]))?;
    }
    let mut headed = !objects.is_empty();
    // By name, even if only the StatefulSet was named.
    let named: Option<Vec<Key>> = match watched {
        Watched::Named(_) => Some(objects.iter().map(key).collect()),
        Watched::Labelled { .. } | Watched::OfKind { .. } => None,
    };
    for object in objects {
        show(object, sets, view, output, &mut widths, &mut shown, session)?;
    }
    // Later changes are written by an operator that has seen the StatefulSet.
    let sets = &Sets::default();
    let changes = streams(watched, session);
    let kinds = changes.len();
    let mut changes = select_all(changes);
    let (mut refusals, mut lost) = (0, false);
    while let Some((kind, change)) = changes.next().await {
        let (object, gone) = match change {
            Ok(Event::Apply(object) | Event::InitApply(object)) => (look::said(kind, object), false),
            Ok(Event::Delete(object)) => (look::said(kind, object), true),
            Ok(Event::Init | Event::InitDone) => {
                lost = false;
                continue;
            }
            Err(error) if is_final(&error) => {
                refusals += 1;
                // One of the kinds may not be served, or access to it may be denied.
                if refusals == kinds {
                    return Err(Error::Watch {
                        what: "rollouts".into(),
                        why: error::lost(&error),
                    });
                }
                continue;
            }
            Err(error) => {
                if !lost {
                    session.say(&format!(
                        "the watch was lost and is taken up again: {}",
                        error::lost(&error)
                    ));
                }
                lost = true;
                continue;
            }
        };
        if named.as_ref().is_some_and(|named| !named.contains(&key(&object))) {
            continue;
        }
        if gone {
            shown.remove(&key(&object));
            session.say(&format!("{}/{} was deleted", kind.word(), object.name_any()));
            continue;
        }
        if is_in_rows(output) && !headed {
            headed = true;
            session.print(&widths.set(&lines[0]))?;
        }
        show(object, sets, view, output, &mut widths, &mut shown, session)?;
    }
    Ok(Exit::Error)
}

/// Whether the output is rows under a heading.
fn is_in_rows(output: Option<&Output>) -> bool {
    matches!(output, None | Some(Output::Wide | Output::Columns(_)))
}

/// The columns that the user selected.
fn chosen(output: Option<&Output>) -> Option<&CustomColumns> {
    match output {
        Some(Output::Columns(chosen)) => Some(chosen),
        _ => None,
    }
}

/// A row with the longest possible words, so that columns keep their positions.
fn widest(view: View<'_>) -> Vec<String> {
    let mut cells = vec![String::new(), "Progressing".into(), "10/10".into()];
    if view.namespaces {
        cells.insert(0, String::new());
    }
    cells
}

fn key(object: &DynamicObject) -> Key {
    (
        look::kind(object).word(),
        object.namespace().unwrap_or_default(),
        object.name_any(),
    )
}

fn cells(
    object: &DynamicObject,
    sets: &Sets,
    view: View<'_>,
    session: &Session<'_>,
) -> Result<Vec<String>, Error> {
    let rollout = parse(object.clone())?;
    Ok(row(
        &rollout,
        sets.of(&rollout),
        view,
        session.style,
        session.clock.now(),
    ))
}

/// Shows an object, unless nothing visible has changed.
fn show(
    object: DynamicObject,
    sets: &Sets,
    view: View<'_>,
    output: Option<&Output>,
    widths: &mut Widths,
    shown: &mut Shown,
    session: &mut Session<'_>,
) -> Result<(), Error> {
    let key = key(&object);
    if let Some(chosen) = chosen(output) {
        let cells = chosen.row(&tidy(object));
        let content = cells.join("\t");
        if shown.insert(key, content.clone()).as_ref() != Some(&content) {
            widths.fit(&cells);
            session.print(&widths.set(&cells))?;
        }
        return Ok(());
    }
    let rollout = parse(object.clone())?;
    let plain = matches!(output, None | Some(Output::Wide));
    // Without the age, which always changes.
    let content = if plain {
        let created = rollout.metadata.creation_timestamp.as_ref().map(|time| time.0);
        row(
            &rollout,
            sets.of(&rollout),
            view,
            session.style,
            created.unwrap_or_default(),
        )
        .concat()
    } else {
        object.resource_version().unwrap_or_default()
    };
    if shown.insert(key, content.clone()).as_ref() == Some(&content) {
        return Ok(());
    }
    if !plain {
        return Objects::One(Box::new(object)).print(output, session).map(drop);
    }
    let cells = row(
        &rollout,
        sets.of(&rollout),
        view,
        session.style,
        session.clock.now(),
    );
    widths.fit(&cells);
    session.print(&widths.set(&cells))
}

type Changes = BoxStream<'static, (Kind, Result<Event<DynamicObject>, watcher::Error>)>;

/// The changes of every kind; the stream of a kind ends if access is denied.
pub(crate) fn streams(watched: &Watched, session: &Session<'_>) -> Vec<Changes> {
    let (kinds, everywhere, selector) = match watched {
        Watched::Named(kinds) => (kinds.as_slice(), false, None),
        Watched::Labelled { everywhere, selector } => (&Kind::ALL[..], *everywhere, selector.as_deref()),
        Watched::OfKind {
            kind,
            everywhere,
            selector,
        } => (std::slice::from_ref(kind), *everywhere, selector.as_deref()),
    };
    let stream = |kind: Kind| {
        let config = watcher::Config {
            label_selector: selector.map(str::to_owned),
            ..watcher::Config::default()
        };
        let api = session.whole_rollouts(kind, everywhere);
        let changes = watcher(api, config).backoff(DefaultBackoff::default());
        let mut over = false;
        let until_refused = changes.take_while(move |change| {
            let go_on = !over;
            over = matches!(change, Err(error) if is_final(error));
            std::future::ready(go_on)
        });
        until_refused.map(move |change| (kind, change)).boxed()
    };
    kinds.iter().copied().map(stream).collect()
}

/// Whether a retry cannot help.
pub(crate) fn is_final(error: &watcher::Error) -> bool {
    refused(error).is_some()
}

/// Whether the server does not serve the kind.
pub(crate) fn is_unserved(error: &watcher::Error) -> bool {
    refused(error).is_some_and(|status| status.code == 404)
}

/// The server's message if a retry cannot help.
pub(crate) fn refusal(error: &watcher::Error) -> Option<String> {
    let status = refused(error)?;
    Some(if status.message.is_empty() {
        error.to_string()
    } else {
        status.message.clone()
    })
}

fn refused(error: &watcher::Error) -> Option<&Status> {
    let status = match error {
        watcher::Error::WatchError(status) => Some(status),
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status),
        _ => None,
    };
    status
        .map(|status| &**status)
        .filter(|status| matches!(status.code, 401 | 403 | 404))
}
