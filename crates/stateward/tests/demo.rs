//! `stateward demo` as a user runs it, in a pipe.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it"
)]

use std::process::{Command, Output};

use rstest::rstest;

fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_stateward"))
        .arg("demo")
        .args(arguments)
        .output()
        .unwrap()
}

/// Without what differs from run to run: the times.
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
        "rolloutplugin.argoproj.io/db promoted",
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
            "stateward operator for real: the operator, on the cluster of your kubeconfig",
            "stateward demo --speed 2 this again, slowly",
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
        format!("stateward: --speed: {speed} is not between 0 and 100\n")
    );
}
