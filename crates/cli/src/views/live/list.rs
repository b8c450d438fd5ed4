//! `top`: a list of all rollouts, to select one.

use std::collections::BTreeMap;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::stream::select_all;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::runtime::watcher;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::paint::{painted, wrapped};
use super::sights::{ANSWERS_WITHIN, PROBE_EVERY, silence};
use super::terminal::Screen;
use super::{Ended, Left, TICK};
use crate::error::Error;
use crate::exit::Exit;
use crate::input::access::Access;
use crate::input::name::Name;
use crate::look;
use crate::rollout::{Kind, Rollout, parse};
use crate::session::Session;
use crate::verbs::watch::{Watched, is_unserved, refusal, streams};
use crate::views::table::{View, table_within};

/// `top …`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The rollout to watch: NAME, rp/NAME, phased/NAME, or sts/NAME; default: select one from a list
    #[arg(add = crate::verbs::completion::rollout_names(), conflicts_with_all = ["all_namespaces", "selector"])]
    name: Option<Name>,
    /// Look in all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only rollouts with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    #[command(flatten)]
    access: Access,
}

impl Args {
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }
}

pub(crate) async fn run(args: Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    if !session.terminal {
        let name = args.name.map_or_else(String::new, |name| format!(" {name}"));
        return Err(Error::Refused(format!(
            "top needs a terminal that can be drawn on; elsewhere there is: {} get{name} --watch",
            session.program
        )));
    }
    if let Some(name) = &args.name {
        let rollout = session.rollout(name).await?;
        return super::run(rollout, session).await;
    }
    // Report denied access before the screen is taken.
    let mut params = ListParams::default();
    params.label_selector.clone_from(&args.selector);
    session.list(args.all_namespaces, &params).await?;
    let mut choice = Choice::new(args.all_namespaces);
    choice.selector = args.selector;
    let mut screen = Screen::enter()?;
    while let Some(rollout) = choose(&mut choice, &mut screen, session).await? {
        if let Some(namespace) = rollout.namespace() {
            session.namespace = namespace;
        }
        if super::show(rollout, &mut screen, session).await? == Left::Ended {
            break;
        }
    }
    Ok(Exit::Done)
}

/// The order of `get`: by kind, namespace and name.
type Key = (usize, String, String);

/// The state of the list.
struct Choice {
    everywhere: bool,
    selector: Option<String>,
    rollouts: BTreeMap<Key, Rollout>,
    chosen: usize,
    lost: Option<String>,
    /// The kinds that may not be watched, and why.
    unwatched: Option<String>,
}

/// The effect of a key.
enum Pressed {
    Leave,
    Open,
}

impl Choice {
    fn new(everywhere: bool) -> Self {
        Self {
            everywhere,
            selector: None,
            rollouts: BTreeMap::new(),
            chosen: 0,
            lost: None,
            unwatched: None,
        }
    }

    fn see(&mut self, kind: Kind, change: watcher::Result<watcher::Event<kube::api::DynamicObject>>) {
        let (object, gone) = match change {
            Ok(watcher::Event::Apply(object) | watcher::Event::InitApply(object)) => (object, false),
            Ok(watcher::Event::Delete(object)) => (object, true),
            Ok(watcher::Event::Init) => {
                self.rollouts.retain(|_, rollout| rollout.kind != kind);
                return;
            }
            Ok(watcher::Event::InitDone) => {
                self.lost = None;
                return;
            }
            // A kind that is not served is not an error.
            Err(error) if is_unserved(&error) => return,
            Err(error) => {
                match refusal(&error) {
                    Some(why) => self.unwatched = Some(format!("{}s may not be watched: {why}", kind.word())),
                    None => self.lost = Some(crate::error::lost(&error)),
                }
                return;
            }
        };
        self.lost = None;
        let Ok(rollout) = parse(look::said(kind, object)) else {
            return;
        };
        let rank = Kind::ALL.iter().position(|known| *known == kind);
        let key = (
            rank.unwrap_or_default(),
            rollout.namespace().unwrap_or_default(),
            rollout.name_any(),
        );
        if gone {
            self.rollouts.remove(&key);
        } else {
            self.rollouts.insert(key, rollout);
        }
    }

    fn press(&mut self, key: KeyEvent) -> Option<Pressed> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let last = self.rollouts.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Some(Pressed::Leave);
            }
            KeyCode::Char('q') | KeyCode::Esc => return Some(Pressed::Leave),
            KeyCode::Enter => return Some(Pressed::Open),
            KeyCode::Down | KeyCode::Char('j') => self.chosen += 1,
            KeyCode::Up | KeyCode::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Home | KeyCode::Char('g') => self.chosen = 0,
            KeyCode::End | KeyCode::Char('G') => self.chosen = last,
            _ => {}
        }
        self.chosen = self.chosen.min(last);
        None
    }

    fn draw(&self, frame: &mut Frame<'_>, style: crate::views::style::Style, now: Timestamp) {
        let words = match (&self.lost, &self.unwatched) {
            (Some(why), _) => format!("no connection, trying again: {why}"),
            (None, Some(why)) => format!("what is shown may be old: {why}"),
            (None, None) => "enter to watch one, arrows to choose, q to leave".to_owned(),
        };
        let words = wrapped(
            &painted(&words, style.charset()),
            usize::from(frame.area().width.max(1)),
        );
        let below = Constraint::Length(words.len() as u16);
        let [body, foot] = Layout::vertical([Constraint::Min(1), below]).areas(frame.area());
        let rollouts: Vec<_> = self.rollouts.values().cloned().collect();
        let first = rollouts.first().map(|rollout| rollout.kind);
        let view = View {
            namespaces: self.everywhere,
            kinds: rollouts.iter().any(|rollout| Some(rollout.kind) != first),
            wide: false,
            program: "",
        };
        let mut lines = if rollouts.is_empty() {
            vec![Line::raw("no rollouts found")]
        } else {
            let lines = table_within(usize::from(body.width), &rollouts, view, style, now);
            lines.iter().map(|line| painted(line, style.charset())).collect()
        };
        if let Some(line) = lines.get_mut(self.chosen + 1) {
            *line = std::mem::take(line).style(Style::new().add_modifier(Modifier::REVERSED));
        }
        // The heading stays, and the selected row is visible.
        let room = usize::from(body.height).saturating_sub(1).max(1);
        let skipped = (self.chosen + 1).saturating_sub(room);
        let shown = lines
            .iter()
            .take(1)
            .chain(lines.iter().skip(1 + skipped))
            .cloned()
            .collect::<Vec<_>>();
        frame.render_widget(ratatui::widgets::Paragraph::new(shown), body);
        let dim = Style::new().add_modifier(Modifier::DIM);
        frame.render_widget(ratatui::widgets::Paragraph::new(words).style(dim), foot);
    }
}

/// Checks after a while whether the server still answers; returns the error if not.
async fn probe(everywhere: bool, session: &Session<'_>) -> Option<String> {
    tokio::time::sleep(PROBE_EVERY).await;
    let one = ListParams::default().limit(1);
    match tokio::time::timeout(ANSWERS_WITHIN, session.list(everywhere, &one)).await {
        Ok(Err(Error::Unreachable(why))) => Some(why),
        // A refusal is an answer.
        Ok(_) => None,
        Err(_) => Some(silence()),
    }
}

/// Shows all rollouts until one is selected; `None` if the user quits.
async fn choose(
    choice: &mut Choice,
    screen: &mut Screen,
    session: &Session<'_>,
) -> Result<Option<Rollout>, Error> {
    let watched = Watched::Labelled {
        everywhere: choice.everywhere,
        selector: choice.selector.clone(),
    };
    let mut changes = select_all(streams(&watched, session));
    let mut ended = Ended::new()?;
    let mut probed = probe(choice.everywhere, session).boxed_local();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        let now = session.clock.now();
        screen.draw(|frame| choice.draw(frame, session.style, now))?;
        tokio::select! {
            Some((kind, change)) = changes.next() => choice.see(kind, change),
            event = screen.next() => match event {
                Some(Event::Key(key)) => match choice.press(key) {
                    Some(Pressed::Leave) => return Ok(None),
                    Some(Pressed::Open) => {
                        if let Some(rollout) = choice.rollouts.values().nth(choice.chosen) {
                            return Ok(Some(rollout.clone()));
                        }
                    }
                    None => {}
                },
                Some(_) => {}
                None => return Ok(None),
            },
            () = ended.wait() => return Ok(None),
            lost = &mut probed => {
                choice.lost = lost.or(choice.lost.take());
                probed = probe(choice.everywhere, session).boxed_local();
            }
            // A watch that resumed reports nothing until something changes.
            _ = ticks.tick() => if choice.lost.is_some() {
                let any = Default::default();
                let listed = tokio::time::timeout(TICK, session.list(choice.everywhere, &any)).await;
                if let Ok(Ok(_)) = listed {
                    choice.lost = None;
                    changes = select_all(streams(&watched, session));
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::NOW;
    use kube::api::DynamicObject;
    use kube::core::Status;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    fn object(kind: Kind, name: &str) -> DynamicObject {
        let spec = match kind {
            Kind::RolloutPlugin => json!({
                "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": name},
                "plugin": {"name": "statefulset"}, "strategy": {"canary": {"steps": []}},
            }),
            Kind::PhasedRollout => {
                json!({"targetRef": name, "check": {"query": {"expr": "up", "url": "prom"}}})
            }
        };
        let metadata = json!({"name": name, "namespace": "prod", "creationTimestamp": NOW});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn screen(choice: &Choice, width: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, 6)).unwrap();
        let now = NOW.parse().unwrap();
        terminal
            .draw(|frame| choice.draw(frame, crate::views::style::Style::default(), now))
            .unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn kinds_come_in_the_order_of_get_and_columns_are_there_or_not() {
        let mut choice = Choice::new(false);
        for (kind, name) in [(Kind::PhasedRollout, "a"), (Kind::RolloutPlugin, "b")] {
            choice.see(kind, Ok(watcher::Event::Apply(object(kind, name))));
        }
        let shown = screen(&choice, 60);
        let at = |name: &str| shown.find(name).unwrap();
        assert!(at("rolloutplugin/b") < at("phasedrollout/a"), "{shown}");
        assert!(!shown.contains("REP") && !shown.contains("AG"), "{shown}");
    }

    #[test]
    fn what_may_not_be_watched_is_no_lost_connection() {
        let refused = |code| {
            let status = Status::failure("you may not", "Forbidden").with_code(code);
            Err(watcher::Error::WatchStartFailed(kube::Error::Api(status.boxed())))
        };
        let mut choice = Choice::new(false);
        choice.see(Kind::PhasedRollout, refused(404));
        assert!(screen(&choice, 90).contains("enter to watch one"));
        choice.see(Kind::PhasedRollout, refused(403));
        let shown = screen(&choice, 90);
        assert!(
            shown.contains("what is shown may be old: phasedrollouts may not be watched: you may not"),
            "{shown}"
        );
    }
}
