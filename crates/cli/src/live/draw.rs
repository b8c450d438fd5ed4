//! How the live view looks.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Wrap};

use super::board::{Board, Mode, Told};
use super::paint::{painted, wrapped};
use crate::table::age;

/// The timeline takes no more lines than this, and no more than a third of the screen.
const TIMELINE: u16 = 10;

const KEYS: [(&str, &str); 10] = [
    ("p", "promote: end the pause, or pass the gate"),
    ("P", "promote fully: skip all remaining steps"),
    ("a", "abort: return every pod to the stable version"),
    ("r", "retry what was turned down"),
    ("s", "pause, and resume"),
    ("j k, arrows", "scroll"),
    ("space, page keys", "scroll by a page"),
    ("g G, home, end", "to the beginning, to the end"),
    ("?", "these words"),
    ("q, esc", "leave"),
];

/// Draws everything.
pub(crate) fn draw(frame: &mut Frame<'_>, board: &mut Board, now: Timestamp) {
    let whole = frame.area();
    let told = board.timeline().len() as u16;
    let timeline = (told + 1).min(TIMELINE).min(whole.height / 3);
    let [head, tree, events, foot] = Layout::vertical([
        Constraint::Length(u16::from(board.lost.is_some() || board.gone)),
        Constraint::Min(1),
        Constraint::Length(timeline),
        Constraint::Length(2),
    ])
    .areas(whole);
    draw_trouble(frame, board, head, now);
    draw_tree(frame, board, tree, now);
    draw_timeline(frame, board, events, now);
    draw_foot(frame, board, foot);
    if board.mode == Mode::Help {
        draw_help(frame, whole);
    }
}

/// What keeps the screen from being true.
fn draw_trouble(frame: &mut Frame<'_>, board: &Board, area: Rect, now: Timestamp) {
    let words = match (&board.lost, board.gone) {
        (Some((since, why)), _) => format!(
            "no connection for {}, trying again; what is shown is what was seen last: {why}",
            age(Some(*since), now)
        ),
        (None, true) => format!("{} is gone", board.picture.rollout.title()),
        (None, false) => return,
    };
    frame.render_widget(
        Line::styled(words, Style::new().add_modifier(Modifier::REVERSED)),
        area,
    );
}

fn draw_tree(frame: &mut Frame<'_>, board: &mut Board, area: Rect, now: Timestamp) {
    let lines = board.picture.draw(board.style, now);
    let width = usize::from(area.width);
    let lines: Vec<_> = lines
        .iter()
        .flat_map(|line| wrapped(&painted(line), width))
        .collect();
    let height = usize::from(area.height);
    board.page = height.max(1);
    board.furthest = lines.len().saturating_sub(height);
    board.scroll = board.scroll.min(board.furthest);
    let below = board.furthest - board.scroll;
    let mut shown: Vec<_> = lines.into_iter().skip(board.scroll).take(height).collect();
    if below > 0
        && let Some(last) = shown.last_mut()
    {
        *last = Line::raw(format!("   {} more lines", below + 1));
    }
    frame.render_widget(Paragraph::new(shown), area);
}

fn draw_timeline(frame: &mut Frame<'_>, board: &Board, area: Rect, now: Timestamp) {
    let line = |told: &&Told| {
        let times = if told.times > 1 {
            format!(" ({} times)", told.times)
        } else {
            String::new()
        };
        let reason = if told.warning {
            Span::styled(told.reason.clone(), Style::new().add_modifier(Modifier::BOLD))
        } else {
            Span::raw(told.reason.clone())
        };
        Line::from(vec![
            Span::raw(format!("{:>6}  ", age(told.at, now))),
            reason,
            Span::raw(format!("  {}{times}", told.message)),
        ])
    };
    let mut lines = vec![Line::styled(
        rule("events", area.width, board.style.ascii),
        Style::new().add_modifier(Modifier::DIM),
    )];
    let width = usize::from(area.width);
    lines.extend(
        board
            .timeline()
            .iter()
            .flat_map(|told| wrapped(&line(told), width)),
    );
    frame.render_widget(Paragraph::new(lines), area);
}

fn rule(title: &str, width: u16, ascii: bool) -> String {
    let stroke = if ascii { "-" } else { "─" };
    let rest = usize::from(width).saturating_sub(title.len() + 4);
    format!("{0}{0} {title} {1}", stroke, stroke.repeat(rest))
}

fn draw_foot(frame: &mut Frame<'_>, board: &Board, area: Rect) {
    let [said, keys] = Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area);
    match &board.mode {
        Mode::Asking { effect, command, .. } => {
            frame.render_widget(Line::raw(effect.clone()), said);
            let question = format!("{}? y to go ahead, any other key to leave it", command.verb());
            let style = Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED);
            frame.render_widget(Line::styled(question, style), keys);
        }
        Mode::Looking | Mode::Help => {
            frame.render_widget(Line::raw(board.said.clone().unwrap_or_default()), said);
            let hold = if board.picture.rollout.paused {
                "resume"
            } else {
                "pause"
            };
            let words = format!("p promote  a abort  s {hold}  r retry  ? help  q leave");
            frame.render_widget(
                Line::styled(words, Style::new().add_modifier(Modifier::DIM)),
                keys,
            );
        }
    }
}

fn draw_help(frame: &mut Frame<'_>, whole: Rect) {
    let lines: Vec<Line<'_>> = KEYS
        .iter()
        .map(|(key, words)| Line::raw(format!(" {key:16}  {words} ")))
        .collect();
    let area = Rect {
        x: 2.min(whole.width),
        y: 1.min(whole.height),
        width: 68.min(whole.width.saturating_sub(2)),
        height: (lines.len() as u16).min(whole.height.saturating_sub(1)),
    };
    frame.render_widget(Clear, area);
    let style = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(
        Paragraph::new(lines).wrap(Wrap { trim: false }).style(style),
        area,
    );
}
