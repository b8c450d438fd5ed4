//! `top`: all rollouts, to choose one from.

use std::collections::BTreeMap;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use futures::StreamExt;
use futures::stream::select_all;
use jiff::Timestamp;
use kube::runtime::watcher;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use super::paint::painted;
use super::terminal::Screen;
use super::{Ended, TICK};
use crate::access::Access;
use crate::error::Error;
use crate::exit::Exit;
use crate::look;
use crate::name::Name;
use crate::rollout::{Rollout, parse};
use crate::session::Session;
use crate::table::{View, table};
use crate::watch::{Watched, streams};

/// `top …`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The rollout to watch: NAME, rp/NAME, phased/NAME, or sts/NAME; without one, all are listed to choose from
    #[arg(add = crate::completion::rollout_names(), conflicts_with = "all_namespaces")]
    name: Option<Name>,
    /// Look in all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
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
        return Err(Error::Refused(format!(
            "top needs a terminal; for a pipe there is: {} get --watch",
            session.program
        )));
    }
    if let Some(name) = &args.name {
        let rollout = session.rollout(name).await?;
        return super::run(rollout, session).await;
    }
    // Whether there are any to be had at all is said before the screen is taken.
    session.list(args.all_namespaces, &Default::default()).await?;
    let mut choice = Choice::new(args.all_namespaces);
    let mut screen = Screen::enter()?;
    while let Some(rollout) = choose(&mut choice, &mut screen, session).await? {
        if let Some(namespace) = rollout.namespace() {
            session.namespace = namespace;
        }
        super::show(rollout, &mut screen, session).await?;
    }
    Ok(Exit::Done)
}

type Key = (String, &'static str, String);

/// What can be chosen.
struct Choice {
    everywhere: bool,
    rollouts: BTreeMap<Key, Rollout>,
    chosen: usize,
    lost: Option<String>,
}

/// What a key asks for.
enum Pressed {
    Leave,
    Open,
}

impl Choice {
    fn new(everywhere: bool) -> Self {
        Self {
            everywhere,
            rollouts: BTreeMap::new(),
            chosen: 0,
            lost: None,
        }
    }

    fn see(
        &mut self,
        kind: crate::rollout::Kind,
        change: watcher::Result<watcher::Event<kube::api::DynamicObject>>,
    ) {
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
            // That a kind is not served is no loss.
            Err(error) if crate::watch::is_final(&error) => return,
            Err(error) => {
                self.lost = Some(error.to_string());
                return;
            }
        };
        self.lost = None;
        let Ok(rollout) = parse(look::said(kind, object)) else {
            return;
        };
        let key = (
            rollout.namespace().unwrap_or_default(),
            kind.word(),
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

    fn draw(&self, frame: &mut Frame<'_>, style: crate::style::Style, now: Timestamp) {
        let [body, foot] = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
        let rollouts: Vec<_> = self.rollouts.values().cloned().collect();
        let first = rollouts.first().map(|rollout| rollout.kind);
        let view = View {
            namespaces: self.everywhere,
            kinds: rollouts.iter().any(|rollout| Some(rollout.kind) != first),
            wide: false,
        };
        let mut lines = if rollouts.is_empty() {
            vec![Line::raw("no rollouts found")]
        } else {
            let lines = table(&rollouts, view, style, now);
            lines.iter().map(|line| painted(line)).collect()
        };
        if let Some(line) = lines.get_mut(self.chosen + 1) {
            *line = std::mem::take(line).style(Style::new().add_modifier(Modifier::REVERSED));
        }
        // The heading stays, and the chosen one is in sight.
        let room = usize::from(body.height).saturating_sub(1).max(1);
        let skipped = (self.chosen + 1).saturating_sub(room);
        let shown = lines
            .iter()
            .take(1)
            .chain(lines.iter().skip(1 + skipped))
            .cloned()
            .collect::<Vec<_>>();
        frame.render_widget(ratatui::widgets::Paragraph::new(shown), body);
        let words = match &self.lost {
            Some(why) => format!("no connection, trying again: {why}"),
            None => "enter to watch one, arrows to choose, q to leave".to_owned(),
        };
        frame.render_widget(
            Line::styled(words, Style::new().add_modifier(Modifier::DIM)),
            foot,
        );
    }
}

/// Shows all until one is chosen; `None` when the user has seen enough.
async fn choose(
    choice: &mut Choice,
    screen: &mut Screen,
    session: &Session<'_>,
) -> Result<Option<Rollout>, Error> {
    let watched = Watched::Labelled {
        everywhere: choice.everywhere,
        selector: None,
    };
    let mut changes = select_all(streams(&watched, session));
    let mut ended = Ended::new()?;
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
            // A watch that is taken up where it broke off says nothing until something changes.
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
