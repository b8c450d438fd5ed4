//! The state of the live view, and its keys.

use std::collections::BTreeMap;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::ResourceExt;

use super::sights::{Sight, is_newer};
use crate::command::Command;
use crate::rollout::Rollout;
use crate::views::pod_row::PodRow;
use crate::views::runs;
use crate::views::style::Style;
use crate::views::tree::Picture;

/// The effect of a key.
pub(crate) enum Effect {
    /// Leaves this view.
    Leave,
    /// Ends the program.
    End,
    /// Sends this command for the rollout as it was when the user confirmed.
    Give(Command, Box<Rollout>),
}

/// A line of the timeline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Told {
    pub(crate) at: Option<Timestamp>,
    /// Orders events of the same second.
    version: u64,
    pub(crate) warning: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) times: i32,
}

/// The mode of the view.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mode {
    Looking,
    /// Waits for a confirmation.
    Asking {
        command: Command,
        seen: Box<Rollout>,
        effect: String,
    },
    Help,
}

/// The state of the view.
pub(crate) struct Board {
    pub(crate) picture: Picture,
    pods: BTreeMap<u32, (String, PodRow)>,
    events: BTreeMap<String, Told>,
    pub(crate) mode: Mode,
    /// The last message: of the operator, or about a key.
    pub(crate) said: Option<String>,
    /// When the connection was lost, and why.
    pub(crate) lost: Option<(Timestamp, String)>,
    /// Why the rollout may not be watched.
    pub(crate) unwatched: Option<String>,
    /// Why events may not be read.
    pub(crate) unseen_events: Option<String>,
    pub(crate) gone: bool,
    pub(crate) style: Style,
    pub(crate) program: String,
    /// The first visible line of the tree.
    pub(crate) scroll: usize,
    /// The largest scroll position, known after drawing.
    pub(crate) furthest: usize,
    /// The number of lines of a page, known after drawing.
    pub(crate) page: usize,
}

impl Board {
    pub(crate) fn new(rollout: Rollout, program: &str, style: Style) -> Self {
        Self {
            picture: Picture {
                rollout,
                set: None,
                unread: None,
                unseen_pods: None,
                pods: Vec::new(),
                runs: Vec::new(),
            },
            pods: BTreeMap::new(),
            events: BTreeMap::new(),
            mode: Mode::Looking,
            said: None,
            lost: None,
            unwatched: None,
            unseen_events: None,
            gone: false,
            style,
            program: program.to_owned(),
            scroll: 0,
            furthest: 0,
            page: 1,
        }
    }

    /// The timeline, latest first.
    pub(crate) fn timeline(&self) -> Vec<&Told> {
        let mut told: Vec<_> = self.events.values().collect();
        told.sort_by(|one, other| other.cmp(one));
        told
    }

    /// Processes what a watch has shown.
    pub(crate) fn see(&mut self, sight: Sight, now: Timestamp) {
        match sight {
            // The watch is at least as new as the answer to a read.
            Sight::Probed(None) => self.lost = None,
            Sight::Probed(Some(rollout)) if !is_newer(&rollout, &self.picture.rollout) => self.lost = None,
            Sight::Rollout(rollout) | Sight::Back(rollout) | Sight::Probed(Some(rollout)) => {
                self.lost = None;
                self.gone = false;
                let status = rollout.status.clone().unwrap_or_default();
                let concerned = runs::concerned(&status);
                self.picture
                    .runs
                    .retain(|run| concerned.contains(&run.name_any().as_str()));
                self.picture.rollout = *rollout;
            }
            Sight::Gone => {
                self.lost = None;
                self.gone = true;
            }
            Sight::Unwatched(why) => self.unwatched = Some(why),
            Sight::Lost(why) | Sight::StillLost(why) => {
                let since = self.lost.take().map_or(now, |(since, _)| since);
                self.lost = Some((since, why));
            }
            Sight::Set(set) => {
                self.picture.unread = None;
                self.picture.set = set.map(|set| *set);
            }
            Sight::Unread(why) => self.picture.unread = Some(why),
            Sight::UnseenPods(why) => self.picture.unseen_pods = Some(why),
            Sight::UnseenEvents(why) => self.unseen_events = Some(why),
            Sight::NoPods => self.pods.clear(),
            Sight::Pod(pod) => {
                self.picture.unseen_pods = None;
                let uid = pod.uid().unwrap_or_default();
                if let Some(row) = PodRow::of(&pod) {
                    self.pods.insert(row.ordinal, (uid, row));
                }
            }
            Sight::PodGone(name) => self.pods.retain(|_, (_, row)| row.name != name),
            Sight::Run(run) => {
                let name = run.name_any();
                self.picture.runs.retain(|known| known.name_any() != name);
                self.picture.runs.push(*run);
            }
            Sight::Event(event) => {
                self.unseen_events = None;
                self.events.insert(event.name_any(), told(&event));
            }
        }
        self.picture.pods = self.pods.values().map(|(_, row)| row.clone()).collect();
    }

    /// Records that a command was sent.
    pub(crate) fn gave(&mut self, command: Command) {
        self.said = Some(format!("{}: waiting for the operator", command.verb()));
    }

    /// Records the answer to a command.
    pub(crate) fn hear(&mut self, answer: String) {
        self.said = Some(answer);
    }

    /// Handles a key.
    pub(crate) fn press(&mut self, key: KeyEvent) -> Option<Effect> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Some(Effect::End);
        }
        match std::mem::replace(&mut self.mode, Mode::Looking) {
            Mode::Asking { command, seen, .. } => match key.code {
                KeyCode::Char('y' | 'Y') => return Some(Effect::Give(command, seen)),
                _ => self.said = Some(format!("{}: nothing was changed", command.verb())),
            },
            Mode::Help => {}
            Mode::Looking => return self.look(key.code),
        }
        None
    }

    fn look(&mut self, key: KeyCode) -> Option<Effect> {
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Some(Effect::Leave),
            KeyCode::Char('p') => self.ask(Command::Promote),
            KeyCode::Char('P') => self.ask(Command::PromoteFull { force: false }),
            KeyCode::Char('n') => self.ask(Command::Skip),
            KeyCode::Char('a') => self.ask(Command::Abort),
            KeyCode::Char('r') => self.ask(Command::Retry),
            KeyCode::Char('s') if self.picture.rollout.paused => self.ask(Command::Resume),
            KeyCode::Char('s') => self.ask(Command::Pause),
            KeyCode::Char('?' | 'h') => self.mode = Mode::Help,
            KeyCode::Down | KeyCode::Char('j') => self.scroll += 1,
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll += self.page,
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(self.page),
            KeyCode::Home | KeyCode::Char('g') => self.scroll = 0,
            KeyCode::End | KeyCode::Char('G') => self.scroll = self.furthest,
            _ => {}
        }
        self.scroll = self.scroll.min(self.furthest);
        None
    }

    /// Asks for confirmation, or says why the command does not apply.
    fn ask(&mut self, command: Command) {
        let rollout = &self.picture.rollout;
        if let Err(why) = command.objection(rollout, &self.program) {
            self.said = Some(why);
            return;
        }
        self.said = None;
        self.mode = Mode::Asking {
            command,
            effect: command.effect(rollout, &self.program),
            seen: Box::new(rollout.clone()),
        };
    }
}

fn told(event: &Event) -> Told {
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let at = last.or_else(|| event.event_time.as_ref().map(|time| time.0));
    Told {
        at: at.or_else(|| event.creation_timestamp().map(|time| time.0)),
        version: event
            .resource_version()
            .and_then(|version| version.parse().ok())
            .unwrap_or(0),
        warning: event.type_.as_deref() == Some("Warning"),
        reason: event.reason.clone().unwrap_or_default(),
        message: event.message.clone().unwrap_or_default(),
        times: event.count.unwrap_or(1),
    }
}
