//! Draws the live view.

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Clear, Paragraph};
use stateward_terminal::Charset;

use super::board::{Board, Mode, Told};
use super::paint::{painted, wrapped};
use super::sights::LOOK_AGAIN;
use crate::views::table::age;

/// The maximum height of the timeline, which also takes at most a third of the screen.
const TIMELINE: u16 = 10;

const KEYS: [(&str, &str); 11] = [
    ("p", "promote: end the pause, or pass the gate"),
    ("n", "skip the current step, whatever it waits for"),
    ("P", "promote fully: skip all remaining steps"),
    ("a", "abort: return every pod to the stable version"),
    ("r", "retry what was rejected"),
    ("s", "pause, and resume"),
    ("j k, arrows", "scroll"),
    ("space, page keys", "scroll by a page"),
    ("g G, home, end", "to the beginning, to the end"),
    ("?", "these words"),
    ("q, esc", "leave"),
];

/// Draws the whole view.
pub(crate) fn draw(frame: &mut Frame<'_>, board: &mut Board, now: Timestamp) {
    let whole = frame.area();
    let told = timeline(board, whole.width, now);
    let (trouble, mut foot) = (trouble(board, whole.width, now), foot(board, whole.width));
    // The question is at the end of the foot, and must be visible.
    let room = usize::from(whole.height.saturating_sub(1).max(1));
    foot.drain(..foot.len().saturating_sub(room));
    // The question must be visible, whatever else fits.
    let spare = usize::from(whole.height).saturating_sub(trouble.len() + foot.len() + 1);
    let room = TIMELINE.min(whole.height / 3).min(spare as u16);
    let told = fitting(told, usize::from(room.saturating_sub(1)));
    let timeline = (told.len() as u16 + 1).min(room);
    let [head, tree, events, below] = Layout::vertical([
        Constraint::Length(trouble.len() as u16),
        Constraint::Min(1),
        Constraint::Length(timeline),
        Constraint::Length(foot.len() as u16),
    ])
    .areas(whole);
    frame.render_widget(Paragraph::new(trouble), head);
    draw_tree(frame, board, tree, now);
    draw_timeline(frame, board, told, events);
    frame.render_widget(Paragraph::new(foot), below);
    if board.mode == Mode::Help {
        draw_help(frame, whole);
    }
}

/// Why the screen may be out of date.
fn trouble(board: &Board, width: u16, now: Timestamp) -> Vec<Line<'static>> {
    let title = board.picture.rollout.title();
    let words = match (&board.lost, board.gone, &board.unwatched) {
        (Some((since, why)), ..) => format!(
            "no connection for {}, trying again; what is shown is what was seen last: {why}",
            age(Some(*since), now)
        ),
        (None, true, _) => format!("{title} is gone"),
        (None, false, Some(why)) => {
            format!("{title} may not be watched and is read every {LOOK_AGAIN:?}: {why}")
        }
        (None, false, None) => return Vec::new(),
    };
    let style = Style::new().add_modifier(Modifier::REVERSED);
    folded(words, width, board.style.charset())
        .into_iter()
        .map(|line| line.style(style))
        .collect()
}

/// Wraps text.
fn folded(words: String, width: u16, charset: Charset) -> Vec<Line<'static>> {
    wrapped(&painted(&words, charset), usize::from(width.max(1)))
}

fn draw_tree(frame: &mut Frame<'_>, board: &mut Board, area: Rect, now: Timestamp) {
    let lines = board.picture.draw(board.style, now, &board.program);
    let width = usize::from(area.width);
    let lines: Vec<_> = lines
        .iter()
        .flat_map(|line| wrapped(&painted(line, board.style.charset()), width))
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

/// The wrapped events, latest first.
fn timeline(board: &Board, width: u16, now: Timestamp) -> Vec<Vec<Line<'static>>> {
    let charset = board.style.charset();
    let line = |told: &&Told| {
        let times = if told.times > 1 {
            format!(" ({} times)", told.times)
        } else {
            String::new()
        };
        let mut reason = painted(&told.reason, charset);
        if told.warning {
            reason = reason.patch_style(Style::new().add_modifier(Modifier::BOLD));
        }
        let mut line = painted(&format!("{:>6}  ", age(told.at, now)), charset);
        let bold = reason.style;
        line.spans
            .extend(reason.spans.into_iter().map(|span| span.patch_style(bold)));
        line.spans
            .extend(painted(&format!("  {}{times}", told.message), charset).spans);
        wrapped(&line, usize::from(width.max(1)))
    };
    let unseen = board.unseen_events.iter();
    let unseen = unseen.map(|why| folded(format!("        events cannot be seen: {why}"), width, charset));
    unseen.chain(board.timeline().iter().map(line)).collect()
}

/// The events that fit completely: the end of an event may bind a command to its revision. If not even the latest one fits, it says how
/// much is missing.
fn fitting(events: Vec<Vec<Line<'static>>>, height: usize) -> Vec<Line<'static>> {
    if let Some(latest) = events.first()
        && latest.len() > height
        && height > 1
    {
        let missing = latest.len() - (height - 1);
        let more = Line::raw(format!("   {missing} more lines"));
        return latest.iter().take(height - 1).cloned().chain([more]).collect();
    }
    let mut room = height;
    let whole = events.into_iter().map_while(|lines| {
        room = room.checked_sub(lines.len())?;
        Some(lines)
    });
    whole.flatten().collect()
}

fn draw_timeline(frame: &mut Frame<'_>, board: &Board, told: Vec<Line<'static>>, area: Rect) {
    let mut lines = vec![Line::styled(
        rule("events", area.width, board.style.ascii),
        Style::new().add_modifier(Modifier::DIM),
    )];
    lines.extend(told);
    frame.render_widget(Paragraph::new(lines), area);
}

fn rule(title: &str, width: u16, ascii: bool) -> String {
    let stroke = if ascii { "-" } else { "─" };
    let rest = usize::from(width).saturating_sub(title.len() + 4);
    format!("{0}{0} {title} {1}", stroke, stroke.repeat(rest))
}

/// The last message or question, and the keys.
fn foot(board: &Board, width: u16) -> Vec<Line<'static>> {
    let charset = board.style.charset();
    let (said, keys, style) = match &board.mode {
        Mode::Asking { effect, command, .. } => {
            let question = format!("{}? y to go ahead, any other key to leave it", command.verb());
            (
                effect.clone(),
                folded(question, width, charset),
                Modifier::BOLD | Modifier::REVERSED,
            )
        }
        Mode::Looking | Mode::Help => {
            let hold = if board.picture.rollout.paused {
                "resume"
            } else {
                "pause"
            };
            (
                board.said.clone().unwrap_or_default(),
                keys(hold, width),
                Modifier::DIM,
            )
        }
    };
    let mut lines = folded(said, width, charset);
    lines.extend(
        keys.into_iter()
            .map(|line| line.style(Style::new().add_modifier(style))),
    );
    lines
}

/// The keys with their labels.
fn keys(hold: &str, width: u16) -> Vec<Line<'static>> {
    let hold = format!("s {hold}");
    let mut lines: Vec<String> = Vec::new();
    for key in ["p promote", "a abort", &hold, "r retry", "? help", "q leave"] {
        match lines.last_mut() {
            Some(line) if line.len() + 2 + key.len() <= usize::from(width) => {
                line.push_str("  ");
                line.push_str(key);
            }
            _ => lines.push(key.to_owned()),
        }
    }
    lines.into_iter().map(Line::raw).collect()
}

/// Draws the help over the view; if there is little space, over all of it.
fn draw_help(frame: &mut Frame<'_>, whole: Rect) {
    let width = 68.min(whole.width);
    let line = |(key, words): &(&str, &str)| folded(format!(" {key:16}  {words} "), width, Charset::Ascii);
    let lines: Vec<Line<'_>> = KEYS.iter().flat_map(line).collect();
    let height = (lines.len() as u16).min(whole.height);
    let area = Rect {
        x: 2.min(whole.width - width),
        y: 1.min(whole.height - height),
        width,
        height,
    };
    frame.render_widget(Clear, area);
    let style = Style::new().add_modifier(Modifier::REVERSED);
    frame.render_widget(Paragraph::new(lines).style(style), area);
}
