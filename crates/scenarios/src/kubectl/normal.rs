//! Normalises what may differ between two runs of the same commands.
//!
//! Times, ages, UIDs, versions, generated names, addresses. kubectl draws the columns, not the server, and their width follows from all
//! that: runs of spaces inside a line become two.

use std::sync::LazyLock;

use regex::Regex;

/// A pattern and its replacement.
struct Rule(Regex, &'static str);

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let rules = [
        (r"https?://(127\.0\.0\.1|localhost):\d+", "<server>"),
        (r"127\.0\.0\.1:\d+", "<server>"),
        (
            r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            "<uid>",
        ),
        (
            r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)",
            "<time>",
        ),
        (
            r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}",
            "<time>",
        ),
        // File names and times in the output of diff(1).
        (r"(/[\w.-]+)*/(LIVE|MERGED)-\d+", "<dir>/$2"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}", "<time>"),
        (r#"(resourceVersion(\\?")?: ?\\?")\d+"#, "$1<version>"),
        (r"(Resource Version: +)\d+", "$1<version>"),
        (r"(containerd://)[0-9a-f]{64}", "$1<container>"),
        // The prefix of kubectl's log lines: day, time, process.
        (r"(?m)^([IWE])\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ ", "$1<time> "),
        // kubectl's cache logs a watch that its own deadline cut short only at some moments.
        (r"(?m)^I<time> reflector\.go:\d+\] .*very short watch.*\n?", ""),
        // At its deadline two parts of kubectl race to report it.
        (
            r#"(?m)^E<time> reflector\.go:\d+\] "Failed to watch" err="context deadline exceeded".*\n?"#,
            "",
        ),
        // The real control plane of the testbed is one program, and names its controllers after its argument.
        (
            r"(?m)(^|[^\w-])controller-manager\b",
            "${1}kube-controller-manager",
        ),
        (r"\b10\.\d+\.\d+\.\d+\b", "<ip>"),
        // The suffix of generateName has neither vowels nor digits that look like letters.
        (
            r"\b([a-z0-9][a-z0-9.-]*)-[bcdfghjklmnpqrstvwxz2456789]{5}\b",
            "$1-<random>",
        ),
        (r"\b([a-z0-9][a-z0-9.-]*)\.[0-9a-f]{16}\b", "$1.<random>"),
        // Milli-CPUs look like minutes: mark them here, and remove the mark below.
        (r"((?i)\bcpu:?\s+\d+)m\b", "${1}\u{1}m"),
        (r"(\d)m( \(\d+%\))", "${1}\u{1}m$2"),
        // An age as kubectl writes it, alone in its column.
        (
            r"(?m)(^|\s|\()(\d{1,3}(ms|us|µs|s)|\d{1,3}[mhdy](\d{1,2}[smhd])?)( ago)?($|[\s),])",
            "$1<age>$5$6",
        ),
        (r"\x01", ""),
        (r"(?m)[ \t]+$", ""),
    ];
    // The patterns are constants, and the tests below use every one of them.
    let rule = |(pattern, instead)| Regex::new(pattern).ok().map(|pattern| Rule(pattern, instead));
    rules.into_iter().filter_map(rule).collect()
});

/// Replaces what may differ.
pub(super) fn normal(text: &str) -> String {
    let mut text = text.to_owned();
    // Adjacent columns share the space between them, so one pass misses every other age.
    for Rule(pattern, instead) in RULES.iter().chain(RULES.iter()) {
        text = pattern.replace_all(&text, *instead).into_owned();
    }
    let lines: Vec<_> = text.lines().map(narrow).collect();
    lines.join("\n")
}

/// A line with its columns narrowed. Its indentation stays, also after the marks of diff(1).
fn narrow(line: &str) -> String {
    let inside = |c: char| c != ' ' && c != '+' && c != '-';
    let (indentation, rest) = line.split_at(line.find(inside).unwrap_or(line.len()));
    let mut narrow = indentation.to_owned();
    let mut spaces = 0;
    for c in rest.chars() {
        spaces = if c == ' ' { spaces + 1 } else { 0 };
        if spaces <= 2 {
            narrow.push(c);
        }
    }
    narrow
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("db-0   1/1   Running   0   3s", "db-0  1/1  Running  0  <age>")]
    #[case(
        "db-0   1/1   Running   2 (5s ago)   3m12s   10.0.0.12",
        "db-0  1/1  Running  2 (<age> ago)  <age>  <ip>"
    )]
    #[case(
        "Normal  Created  5s (x2 over 7s)  kubelet",
        "Normal  Created  <age> (x2 over <age>)  kubelet"
    )]
    #[case("hello-7xk2p   0/1   Completed", "hello-<random>  0/1  Completed")]
    #[case("db-7d9f8c6b5f is a revision", "db-7d9f8c6b5f is a revision")]
    #[case("uid: 8f14e45f-ceea-467f-ab6c-1f0d0a1e2b3c", "uid: <uid>")]
    #[case(
        "  creationTimestamp: \"2025-11-15T18:33:00Z\"",
        "  creationTimestamp: \"<time>\""
    )]
    #[case("Start Time:   Sat, 15 Nov 2025 18:33:00 +0000", "Start Time:  <time>")]
    #[case("  resourceVersion: \"512\"", "  resourceVersion: \"<version>\"")]
    #[case("\"resourceVersion\": \"512\"", "\"resourceVersion\": \"<version>\"")]
    #[case(
        "Unable to connect to https://127.0.0.1:4242/api",
        "Unable to connect to <server>/api"
    )]
    #[case(
        "diff -u -N /tmp/LIVE-123/v1.x /tmp/a/MERGED-77/v1.x",
        "diff -u -N <dir>/LIVE/v1.x <dir>/MERGED/v1.x"
    )]
    #[case("db-0.18783d5e1c2a3b4c", "db-0.<random>")]
    #[case("cpu:\t100m", "cpu:\t100m")]
    #[case("db-0   100m (0%)   0 (0%)   3s", "db-0  100m (0%)  0 (0%)  <age>")]
    #[case("kubernetes   ClusterIP   104m", "kubernetes  ClusterIP  <age>")]
    #[case("  cpu      200m (0%)   0 (0%)", "  cpu  200m (0%)  0 (0%)")]
    #[case("+      value: info", "+      value: info")]
    #[case(r#"{\"resourceVersion\":\"12\"}"#, r#"{\"resourceVersion\":\"<version>\"}"#)]
    #[case(
        "W1115 18:46:50.233452   27722 diff.go:723] changing",
        "W<time> diff.go:723] changing"
    )]
    #[case(
        "E1115 18:46:50.233452   27 reflector.go:227] \"Failed to watch\" err=\"context deadline exceeded\" x\nerror: y",
        "error: y"
    )]
    #[case("    manager: controller-manager", "    manager: kube-controller-manager")]
    fn only_what_may_differ_is_replaced(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(normal(text), expected);
    }
}
