//! `status --watch`: shows a long reason only in the first line that has it.

use std::borrow::Cow;

use crate::views::hint::without_commands;

/// Shorter reasons are repeated, so that a line can be read on its own.
const LONG: usize = 60;

/// Replaces a reason that the previous line had.
const SAME: &str = "…";

/// A message without the long reasons of the previous message: those in brackets, and the one at the end.
pub(super) fn once<'m>(message: &'m str, before: &str) -> Cow<'m, str> {
    let (body, former) = (without_commands(message), without_commands(before));
    let commands = &message[body.len()..];
    let same = if body == former {
        ""
    } else {
        same_end(body, former)
    };
    let body = &body[..body.len() - same.len()];
    let mut shown = String::new();
    let mut rest = body;
    while let Some(group) = brackets(rest) {
        let (open, close) = (group.start, group.end);
        let reason = &rest[open + 1..close - 1];
        if is_long(reason) && before.contains(&rest[open..close]) {
            shown += &format!("{}({SAME})", &rest[..open]);
            rest = &rest[close..];
        } else {
            // A reason may contain a longer one.
            shown += &rest[..=open];
            rest = &rest[open + 1..];
        }
    }
    shown += rest;
    if !same.is_empty() {
        shown += SAME;
    }
    if shown == message[..message.len() - commands.len()] {
        return Cow::Borrowed(message);
    }
    Cow::Owned(shown + commands)
}

fn is_long(reason: &str) -> bool {
    reason.chars().count() >= LONG
}

/// The longest common end after a colon. Empty if it is short.
fn same_end<'m>(body: &'m str, former: &str) -> &'m str {
    let ends = body
        .match_indices(": ")
        .map(|(at, colon)| &body[at + colon.len()..]);
    let same = |end: &&str| former.strip_suffix(end).is_some_and(|head| head.ends_with(": "));
    let mut ends = ends.filter(same);
    ends.next().filter(|end| is_long(end)).unwrap_or_default()
}

/// The first closed brackets and their content.
fn brackets(text: &str) -> Option<std::ops::Range<usize>> {
    text.match_indices('(').find_map(|(open, _)| {
        let mut depth = 0;
        let close = text[open..].char_indices().find_map(|(at, c)| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            (depth == 0).then_some(open + at + 1)
        });
        close.map(|close| open..close)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const WHY: &str =
        "pod db-4 is broken on db-2: ErrImagePull (Back-off pulling image \"example.com/db:v2\": not found)";
    const ADDRESS: &str = "http://prometheus:9090 is at 127.0.0.1, a loopback address, and is not dialled; open it with --allow-egress";

    fn returning(why: &str, there: u32) -> String {
        format!("db-2 was rejected ({why}): returning every pod to db-1, {there} of 5 are there")
    }

    fn checked(count: u32, then: &str) -> String {
        format!("pod 1 of 2: {count} in a row did not succeed, the last: {ADDRESS}{then}")
    }

    #[rstest]
    #[case::in_brackets(
        returning(WHY, 4),
        returning(WHY, 3),
        "db-2 was rejected (…): returning every pod to db-1, 4 of 5 are there"
    )]
    #[case::at_the_end(
        checked(2, ""),
        checked(1, ""),
        "pod 1 of 2: 2 in a row did not succeed, the last: …"
    )]
    #[case::before_commands(
        checked(2, "; go on with: stateward promote db"),
        checked(1, ""),
        "pod 1 of 2: 2 in a row did not succeed, the last: …; go on with: stateward promote db"
    )]
    fn a_long_reason_that_has_not_changed_is_printed_once(
        #[case] message: String,
        #[case] before: String,
        #[case] expected: &str,
    ) {
        assert_eq!(once(&message, &before), expected);
    }

    #[rstest]
    #[case::the_first("", &returning(WHY, 4))]
    #[case::another(&returning("aborted by alice because the new version answers with errors in one of three cases", 4), &returning(WHY, 4))]
    #[case::a_short_one(&returning("aborted by alice", 3), &returning("aborted by alice", 4))]
    #[case::what_is_waited_for(
        "step 1 of 4: waiting for pod db-4 to run db-2",
        "step 2 of 4: waiting for pod db-4 to run db-2"
    )]
    #[case::open_brackets("one (two", "three (two")]
    fn what_is_new_or_short_is_printed(#[case] before: &str, #[case] message: &str) {
        assert_eq!(once(message, before), message);
    }
}
