//! `stateward demo` as a user runs it, in a pipe and in a terminal.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use rstest::rstest;

fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stateward"))
        .arg0("stateward")
        .arg("demo")
        .args(arguments)
        .output()
        .unwrap()
}

/// Removes the times, which differ in every run.
fn without_times(text: &str) -> String {
    let is_time = |word: &str| {
        let digits = word.trim_end_matches(['s', 'm', 'h']);
        let digits = digits.replace(['m', 'h'], "");
        !digits.is_empty() && digits.len() < word.len() && digits.chars().all(|c| c.is_ascii_digit())
    };
    let line = |line: &str| {
        let words = line.split_whitespace().filter(|word| !is_time(word));
        words.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn it_tells_its_story_in_plain_lines_and_ends_by_itself() {
    let ended = demo(&["--speed", "30"]);
    let (out, talk) = (
        String::from_utf8(ended.stdout).unwrap(),
        String::from_utf8(ended.stderr).unwrap(),
    );
    assert_eq!((ended.status.code(), talk.as_str()), (Some(0), ""), "{out}");
    assert!(!out.contains('\x1b') && !out.contains('\r'), "{out}");
    let told = without_times(&out);
    for line in [
        "$ kubectl set image statefulset/db db=db:2.0",
        "pod db-4 is Ready on 2.0",
        "$ stateward promote db",
        "rolloutplugin.argoproj.io/db promoted by kubernetes-admin",
        "pod db-0 is Ready on 2.0",
        "pod db-4 crashes, is started again, crashes: CrashLoopBackOff",
        "pod db-4 is Ready on 2.0 again",
    ] {
        assert!(
            told.lines().any(|told| told == line),
            "{line:?} is not in:\n{told}"
        );
    }
    let farewell: Vec<_> = told.lines().rev().take(2).collect();
    assert_eq!(
        farewell,
        [
            "stateward plan --help what your own rollout would do, before it does",
            "stateward demo --scenario phased one pod at a time, with Prometheus asked before each",
        ],
        "{told}"
    );
}

#[rstest]
#[case("0")]
#[case("-1")]
#[case("NaN")]
#[case("1000")]
fn a_speed_that_cannot_be_is_refused(#[case] speed: &str) {
    let ended = demo(&[&format!("--speed={speed}")]);
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(ended.stderr).unwrap(),
        format!("stateward: --speed: {speed} must be more than 0 and at most 100\n")
    );
}

#[rstest]
#[case(
    "phased",
    "every pod runs the new version, checked before each of them and after the last"
)]
#[case(
    "scale",
    "seven pods run the new version: no gate was skipped, and scaling promoted nothing"
)]
#[case("operator-killed", "back again: step 2 of 3, the pause, is not skipped")]
fn other_stories_are_told_to_their_end(#[case] scenario: &str, #[case] line: &str) {
    let ended = demo(&["--speed", "30", "--scenario", scenario]);
    let (out, talk) = (
        String::from_utf8(ended.stdout).unwrap(),
        String::from_utf8(ended.stderr).unwrap(),
    );
    assert_eq!((ended.status.code(), talk.as_str()), (Some(0), ""), "{out}");
    let told = without_times(&out);
    assert!(
        told.lines().any(|told| told == line),
        "{line:?} is not in:\n{told}"
    );
    assert!(
        !told.contains("the same stage"),
        "another one is set for --interactive:\n{told}"
    );
}

#[test]
fn an_unknown_story_is_refused_with_those_there_are() {
    let ended = demo(&["--scenario", "happy"]);
    assert_eq!(ended.status.code(), Some(1));
    let talk = String::from_utf8(ended.stderr).unwrap();
    assert!(
        talk.contains("[possible values: versions, phased, scale, operator-killed]"),
        "{talk}"
    );
}

/// The cluster keeps running, for the user's own kubectl.
#[test]
fn the_stage_can_be_kept_for_the_users_own_kubectl() {
    let dir = tempfile::tempdir().unwrap();
    let mut stage = Command::new(env!("CARGO_BIN_EXE_stateward"))
        .args(["demo", "--interactive"])
        .current_dir(dir.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let talk = BufReader::new(stage.stderr.take().unwrap());
    let mut told = Vec::new();
    for line in talk.lines() {
        let line = line.unwrap();
        let last = line == "stop with Ctrl-C";
        told.push(line);
        if last {
            break;
        }
    }
    assert!(
        told[0].starts_with("an embedded Kubernetes serves on https://127.0.0.1:"),
        "{told:?}"
    );
    let kubeconfig = dir.path().join("stateward.kubeconfig");
    let status = Command::new(env!("CARGO_BIN_EXE_stateward"))
        .args(["status", "db", "--watch", "--timeout", "2m", "--kubeconfig"])
        .arg(&kubeconfig)
        .output()
        .unwrap();
    assert_eq!(status.status.code(), Some(0), "{status:?}");
    let pid = rustix::process::Pid::from_child(&stage);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert!(stage.wait().unwrap().success());
    assert!(
        !kubeconfig.exists(),
        "a kubeconfig that leads nowhere is worse than none"
    );
}

/// One Ctrl-C suffices, even after a command of the story that installs its own handlers, and while the terminal is asked for its cursor
/// position.
#[rstest]
#[case::before_any_command("they are Ready", false)]
#[case::after_one("rolloutplugin.argoproj.io/db promoted by kubernetes-admin", false)]
#[case::before_the_cursor_is_told("they are Ready", true)]
fn ctrl_c_ends_the_story_and_gives_the_terminal_back(#[case] after: &str, #[case] when_asked: bool) {
    let size = PtySize {
        rows: 50,
        cols: 110,
        ..PtySize::default()
    };
    let pty = native_pty_system().openpty(size).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_stateward"));
    command.arg("demo");
    command.env("TERM", "xterm-256color");
    command.env_remove("CI");
    let before = pty.master.get_termios();
    let mut child = pty.slave.spawn_command(command).unwrap();
    drop(pty.slave);
    let mut output = pty.master.try_clone_reader().unwrap();
    let mut keys = pty.master.take_writer().unwrap();
    let (rows, cols) = (size.rows.try_into().unwrap(), size.cols.try_into().unwrap());
    let mut screen = vt100::Parser::new(rows, cols, 0);
    let (mut hidden, mut pressed, mut bytes, mut unread) = (false, false, [0_u8; 4096], Vec::<u8>::new());
    // Linux reports the closed other end as an error.
    while let Ok(count @ 1..) = output.read(&mut bytes) {
        screen.process(&bytes[..count]);
        hidden |= screen.screen().hide_cursor();
        unread.extend(&bytes[..count]);
        let asked = unread.windows(4).rposition(|asked| asked == b"\x1b[6n");
        if !pressed && screen.screen().contents().contains(after) && (asked.is_some() || !when_asked) {
            keys.write_all(b"\x03").unwrap();
            pressed = true;
        }
        // A terminal answers a request for its cursor position.
        if asked.is_some() {
            keys.write_all(b"\x1b[1;1R").unwrap();
        }
        unread.drain(..asked.map_or(unread.len().saturating_sub(3), |at| at + 4));
    }
    let ended = child.wait().unwrap();
    let contents = screen.screen().contents();
    assert!(hidden && pressed, "{contents}");
    assert_eq!(ended.exit_code(), 130, "{contents}");
    assert!(!screen.screen().hide_cursor(), "{contents}");
    assert_eq!(pty.master.get_termios(), before, "keys are the terminal's again");
}
