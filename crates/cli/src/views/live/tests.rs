//! The content of the screen, and the effect of keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use rstest::rstest;
use serde_json::json;

use super::board::{Board, Effect, Mode};
use super::draw::draw;
use super::sights::Sight;
use crate::command::Command;
use crate::fixtures::{NOW, at_rest, paused, set};
use crate::rollout::Rollout;
use crate::views::style::Style;

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn board(rollout: Rollout) -> Board {
    board_of(rollout, Style::default())
}

fn board_of(rollout: Rollout, style: Style) -> Board {
    let mut board = Board::new(rollout, "stateward", style);
    board.see(Sight::Set(Some(Box::new(set("db", 4)))), now());
    for (ordinal, revision) in ["db-1", "db-1", "db-1", "db-1", "db-2"].iter().enumerate() {
        let pod = json!({
            "metadata": {
                "name": format!("db-{ordinal}"), "uid": format!("u-{ordinal}"),
                "creationTimestamp": "2026-01-01T00:05:00Z",
                "labels": {"controller-revision-hash": revision},
            },
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        board.see(Sight::Pod(Box::new(serde_json::from_value(pod).unwrap())), now());
    }
    board
}

fn event(name: &str, at: &str, reason: &str) -> Sight {
    let event = json!({
        "metadata": {"name": name, "resourceVersion": name},
        "involvedObject": {}, "reason": reason, "message": format!("{reason} it is"),
        "lastTimestamp": at, "type": "Normal",
    });
    Sight::Event(Box::new(serde_json::from_value(event).unwrap()))
}

fn screen(board: &mut Board, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, board, now())).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(usize::from(width));
    let row = |cells: &[ratatui::buffer::Cell]| {
        let text: String = cells.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.trim_end().to_owned()
    };
    rows.map(row).collect::<Vec<_>>().join("\n")
}

fn press(board: &mut Board, key: char) -> Option<Effect> {
    board.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE))
}

#[test]
fn a_rollout_fills_the_screen_with_its_tree_and_what_happened() {
    let mut board = board(paused());
    board.see(event("1", "2026-01-01T00:06:00Z", "RolloutStarted"), now());
    board.see(event("3", "2026-01-01T00:06:50Z", "RolloutPaused"), now());
    board.see(event("2", "2026-01-01T00:06:50Z", "StepReached"), now());
    assert_eq!(
        screen(&mut board, 76, 20),
        "\
rolloutplugin/db   Paused   step 2 of 4, 20% to db-2, for 3m10s
  step 2 of 4: paused; go on with: stateward promote db --revision db-2
├─ steps
│  ├─ ✓ setWeight 20
│  ├─ ▶ pause until promoted, for 3m10s
│  ├─ · setWeight 60
│  └─ · pause 5m
└─ statefulset/db   partition 4, 5 of 5 ready, stable db-1, new db-2
   ├─ pod/db-0   db-1   stable   Ready   0 restarts   5m
   ├─ pod/db-1   db-1   stable   Ready   0 restarts   5m
   ├─ pod/db-2   db-1   stable   Ready   0 restarts   5m
   ├─ pod/db-3   db-1   stable   Ready   0 restarts   5m
   └─ pod/db-4   db-2   new      Ready   0 restarts   5m

── events ──────────────────────────────────────────────────────────────────
 3m10s  RolloutPaused  RolloutPaused it is
 3m10s  StepReached  StepReached it is
    4m  RolloutStarted  RolloutStarted it is

p promote  a abort  s pause  r retry  ? help  q leave"
    );
}

#[test]
fn a_small_screen_scrolls() {
    let mut board = board(paused());
    let small = screen(&mut board, 40, 8);
    assert!(small.contains("   18 more lines"), "{small}");
    press(&mut board, 'G');
    let end = screen(&mut board, 40, 8);
    assert!(end.contains("pod/db-4"), "{end}");
    assert!(!end.contains("more lines"), "{end}");
    press(&mut board, 'j');
    assert_eq!(screen(&mut board, 40, 8), end, "there is nothing below");
    press(&mut board, 'g');
    assert_eq!(screen(&mut board, 40, 8), small);
    // The smallest screen must not panic.
    screen(&mut board, 1, 1);
}

#[test]
fn a_command_is_confirmed_and_bound_to_what_was_seen() {
    let mut board = board(paused());
    assert!(press(&mut board, 'p').is_none());
    let asked = screen(&mut board, 90, 20);
    assert!(
        asked.ends_with(
            "db leaves the pause of step 2 of 4; step 3 of 4 is next: 60% to db-2\n\
             promote? y to go ahead, any other key to leave it"
        ),
        "{asked}"
    );
    // Another revision arrives during the question.
    let mut later = paused();
    later.status.as_mut().unwrap().updated_revision = Some("db-3".into());
    board.see(Sight::Rollout(Box::new(later)), now());
    let Some(Effect::Give(Command::Promote, seen)) = press(&mut board, 'y') else {
        panic!("nothing is given");
    };
    assert_eq!(*seen, paused());
}

#[test]
fn any_other_key_leaves_it() {
    let mut board = board(paused());
    press(&mut board, 'a');
    assert!(matches!(
        board.mode,
        Mode::Asking {
            command: Command::Abort,
            ..
        }
    ));
    assert!(press(&mut board, 'q').is_none(), "it is an answer here");
    assert_eq!(board.said.as_deref(), Some("abort: nothing was changed"));
    assert!(matches!(press(&mut board, 'q'), Some(Effect::Leave)));
}

#[test]
fn a_key_leaves_one_rollout_and_ctrl_c_leaves_all() {
    let mut board = board(paused());
    assert!(matches!(press(&mut board, 'q'), Some(Effect::Leave)));
    let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert!(matches!(board.press(ctrl_c), Some(Effect::End)));
    press(&mut board, 'p');
    assert!(
        matches!(board.press(ctrl_c), Some(Effect::End)),
        "also where something is asked"
    );
}

#[test]
fn what_makes_no_sense_is_not_asked() {
    let mut board = board(at_rest());
    assert!(press(&mut board, 'p').is_none());
    assert_eq!(board.mode, Mode::Looking);
    let said = board.said.clone().unwrap();
    assert!(said.contains("has no rollout in progress"), "{said}");
}

#[test]
fn a_lost_connection_is_told_until_it_is_back() {
    let mut board = board(paused());
    let since: Timestamp = "2026-01-01T00:09:48Z".parse().unwrap();
    board.see(Sight::Lost("refused".into()), since);
    board.see(Sight::Lost("refused again".into()), now());
    let lost = screen(&mut board, 120, 20);
    assert!(
        lost.starts_with(
            "no connection for 12s, trying again; what is shown is what was seen last: refused again"
        ),
        "{lost}"
    );
    assert!(lost.contains("pod/db-4"), "{lost}");
    board.see(Sight::StillLost("refused".into()), now());
    assert!(screen(&mut board, 120, 20).starts_with("no connection for 12s"));
    board.see(Sight::Back(Box::new(paused())), now());
    assert!(screen(&mut board, 120, 20).starts_with("rolloutplugin/db   Paused"));
    board.see(Sight::Gone, now());
    assert!(screen(&mut board, 120, 20).starts_with("rolloutplugin db is gone"));
}

#[test]
fn a_set_that_may_not_be_watched_is_told_until_it_may() {
    let mut board = board(paused());
    board.see(Sight::Unread("you may not".into()), now());
    let told = "whether its latest change was looked at is not known: you may not";
    assert!(screen(&mut board, 120, 20).contains(told));
    board.see(Sight::Set(Some(Box::new(set("db", 4)))), now());
    assert!(!screen(&mut board, 120, 20).contains(told));
}

/// A truncated command is no longer bound to its revision.
#[test]
fn an_event_is_shown_as_a_whole_or_not_at_all() {
    let mut board = board(paused());
    let long = |name: &str| {
        let event = json!({
            "metadata": {"name": name, "resourceVersion": name}, "involvedObject": {}, "reason": "RolloutPaused",
            "message": "db-2: paused; go on with: kubectl stateward promote db -n prod --revision db-2",
            "lastTimestamp": "2026-01-01T00:07:00Z", "type": "Normal",
        });
        Sight::Event(Box::new(serde_json::from_value(event).unwrap()))
    };
    for name in ["1", "2", "3", "4", "5"] {
        board.see(long(name), now());
    }
    for height in 10..40 {
        let shown = screen(&mut board, 50, height);
        let timeline = shown.split_once("events").map_or("", |(_, timeline)| timeline);
        let (said, whole) = (
            timeline.matches("RolloutPaused"),
            timeline.matches("--revision db-2"),
        );
        let cut = timeline.contains("more lines");
        assert_eq!(said.count(), whole.count() + usize::from(cut), "{shown}");
    }
    assert!(screen(&mut board, 50, 30).matches("--revision db-2").count() > 3);
}

/// A question must be readable in full.
#[test]
fn what_is_asked_said_and_lost_can_be_read_on_a_narrow_screen() {
    let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut board = board(paused());
    press(&mut board, 'p');
    for (width, height) in [(80, 24), (50, 16), (40, 10)] {
        let asked = one_line(screen(&mut board, width, height));
        let question = "db leaves the pause of step 2 of 4; step 3 of 4 is next: 60% to db-2 \
            promote? y to go ahead, any other key to leave it";
        assert!(asked.ends_with(question), "{asked}");
    }
    let tiny = one_line(screen(&mut board, 20, 5));
    assert!(
        tiny.ends_with("y to go ahead, any other key to leave it"),
        "{tiny}"
    );
    press(&mut board, 'n');
    board.see(
        Sight::Lost("the API server has not answered within 5s".into()),
        now(),
    );
    let lost = screen(&mut board, 40, 16);
    assert!(
        lost.ends_with("p promote  a abort  s pause  r retry\n? help  q leave"),
        "{lost}"
    );
    assert!(one_line(lost).contains("has not answered within 5s"));
    press(&mut board, '?');
    let help = one_line(screen(&mut board, 50, 16));
    for words in ["return every pod to the stable version", "q, esc leave"] {
        assert!(help.contains(words), "{help}");
    }
}

#[test]
fn what_may_not_be_watched_is_told_with_the_reason() {
    let mut board = board(paused());
    board.see(Sight::Unwatched("you may not".into()), now());
    let told = screen(&mut board, 120, 20);
    assert!(
        told.starts_with("rolloutplugin db may not be watched and is read every 5s: you may not"),
        "{told}"
    );
}

#[test]
fn pods_and_events_that_may_not_be_seen_are_told() {
    let mut board = board(paused());
    board.see(Sight::NoPods, now());
    board.see(Sight::UnseenPods("you may not list pods".into()), now());
    board.see(Sight::UnseenEvents("you may not list events".into()), now());
    let shown = screen(&mut board, 120, 24);
    assert!(
        shown.contains("its pods cannot be seen: you may not list pods"),
        "{shown}"
    );
    assert!(
        shown.contains("events cannot be seen: you may not list events"),
        "{shown}"
    );
}

#[test]
fn pods_come_and_go() {
    let mut board = board(paused());
    board.see(Sight::PodGone("db-4".into()), now());
    assert!(!screen(&mut board, 120, 20).contains("pod/db-4"));
    board.see(Sight::NoPods, now());
    assert!(!screen(&mut board, 120, 20).contains("pod/db-0"));
}

#[test]
fn help_covers_the_screen_and_any_key_ends_it() {
    let mut board = board(paused());
    press(&mut board, '?');
    assert!(screen(&mut board, 90, 20).contains("skip all remaining steps"));
    press(&mut board, 'x');
    assert!(!screen(&mut board, 90, 20).contains("skip all remaining steps"));
}

/// An escape sequence, C1, a carriage return, bidirectional controls, a letter that is C1 on a terminal without UTF-8.
const HOSTILE: &str = "\x1b[7mPWN\u{9b}2J\r\u{202e}\u{2066}\u{7f}\u{db}31m\nnext";

#[rstest]
fn no_control_character_of_a_cluster_is_drawn(#[values(false, true)] ascii: bool) {
    let style = Style {
        ascii,
        ..Style::default()
    };
    let mut rollout = paused();
    rollout.status.get_or_insert_default().message = format!("message {HOSTILE}");
    let mut board = board_of(rollout, style);
    let told = json!({
        "metadata": {"name": "1", "resourceVersion": "1"}, "involvedObject": {}, "reason": format!("Reason{HOSTILE}"),
        "message": format!("event {HOSTILE}"), "lastTimestamp": "2026-01-01T00:06:00Z", "type": "Warning",
    });
    board.see(
        Sight::Event(Box::new(serde_json::from_value(told).unwrap())),
        now(),
    );
    board.said = Some(format!("said {HOSTILE}"));
    board.lost = Some((now(), format!("lost {HOSTILE}")));
    board.unseen_events = Some(format!("unseen {HOSTILE}"));
    let shown = screen(&mut board, 160, 40);
    let unsafe_ones: Vec<_> = shown
        .chars()
        .filter(|c| (stateward_terminal::is_unsafe(*c) || ascii && !c.is_ascii()) && *c != '\n')
        .collect();
    assert!(unsafe_ones.is_empty(), "{unsafe_ones:?} in {shown}");
    for place in ["message", "Reason", "event", "said", "lost", "unseen"] {
        let mark = if ascii { '?' } else { '\u{FFFD}' };
        let shown = shown.replace(&format!("Reason{mark}"), &format!("Reason {mark}"));
        assert!(
            shown.contains(&format!("{place} {mark}[7mPWN{mark}2J")),
            "{place} in {shown}"
        );
    }
}
