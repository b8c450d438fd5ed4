use proptest::prelude::*;
use rstest::rstest;

use super::*;

#[rstest]
#[case::colour("\x1b[31mred\x1b[0m", "\u{FFFD}[31mred\u{FFFD}[0m")]
#[case::title("\x1b]0;title\x07", "\u{FFFD}]0;title\u{FFFD}")]
#[case::csi_of_c1("\u{9b}2J", "\u{FFFD}2J")]
#[case::carriage_return("good\rbad", "good\u{FFFD}bad")]
#[case::backspace("a\u{8}b", "a\u{FFFD}b")]
#[case::delete("a\u{7f}b", "a\u{FFFD}b")]
#[case::right_to_left("a\u{202e}b", "a\u{FFFD}b")]
#[case::isolate("\u{2066}a\u{2069}", "\u{FFFD}a\u{FFFD}")]
#[case::mark("\u{200f}\u{061c}", "\u{FFFD}\u{FFFD}")]
#[case::separators("a\u{2028}b\u{2029}c", "a\u{FFFD}b\u{FFFD}c")]
#[case::tags("\u{e0041}", "\u{FFFD}")]
#[case::no_characters("a\u{fffe}b\u{ffff}", "a\u{FFFD}b\u{FFFD}")]
#[case::line_end("one\n\ttwo", "one  two")]
#[case::letters("für 数据 👩\u{200d}💻", "für 数据 👩\u{200d}💻")]
fn what_a_terminal_would_interpret_is_replaced(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(line(text, Charset::Unicode), expected);
    assert_eq!(plain(text), expected);
    assert_eq!(
        spans(text, Charset::Unicode)
            .into_iter()
            .map(|(_, text)| text)
            .collect::<String>(),
        expected
    );
    assert_eq!(width(text), expected.chars().count());
}

#[test]
fn our_own_styles_are_written_and_take_no_room() {
    let painted = format!("a {} b", paint("32", "Ready"));
    assert_eq!(line(&painted, Charset::Unicode), "a \x1b[32mReady\x1b[0m b");
    assert_eq!(width(&painted), 9);
    assert_eq!(
        spans(&painted, Charset::Unicode),
        [
            (None, "a ".to_owned()),
            (Some("32".to_owned()), "Ready".to_owned()),
            (None, " b".to_owned())
        ]
    );
}

#[test]
fn nothing_but_ascii_is_written_where_a_terminal_has_nothing_else() {
    // In UTF-8 the second letter ends with 0x9b, which is a control sequence introducer in Latin-1.
    let text = "aś\u{202e}";
    assert_eq!(line(text, Charset::Ascii), "a??");
    assert_eq!(spans(text, Charset::Ascii), [(None, "a??".to_owned())]);
    assert_eq!(document("aÛ\n\tb\u{202e}", Charset::Ascii), "a?\n\tb?");
    assert_eq!(json("\"aÛ👩\"", Charset::Ascii), r#""a\u00db\ud83d\udc69""#);
}

#[test]
fn line_ends_and_tabs_of_a_document_stay() {
    assert_eq!(
        document("a: 1\n\tb: \u{202e}\x1b\r\n", Charset::Unicode),
        "a: 1\n\tb: \u{FFFD}\u{FFFD}\u{FFFD}\n"
    );
}

#[test]
fn json_keeps_its_data() {
    let text = "{\n\t\"a\u{9b}\": \"\u{202e}\u{e0041}ü\"\r\n}";
    assert_eq!(
        json(text, Charset::Unicode),
        "{\n\t\"a\\u009b\": \"\\u202e\\udb40\\udc41ü\"\r\n}"
    );
}

proptest! {
    #[test]
    fn nothing_unsafe_is_ever_written(text in "\\PC*|[\\x00-\\u{9f}\\u{200e}-\\u{2070}\\u{e000}-\\u{f8ff}]*") {
        for written in [line(&text, Charset::Unicode), plain(&text).into_owned()] {
            prop_assert!(!written.chars().any(is_unsafe), "{written:?}");
            prop_assert_eq!(written.chars().count(), width(&text));
        }
        prop_assert!(line(&text, Charset::Ascii).is_ascii());
        prop_assert!(document(&text, Charset::Ascii).is_ascii());
        prop_assert!(json(&text, Charset::Ascii).is_ascii());
        prop_assert!(spans(&text, Charset::Ascii).iter().all(|(_, text)| text.is_ascii()));
        prop_assert!(!document(&text, Charset::Unicode).chars().any(|c| is_unsafe(c) && c != '\n' && c != '\t'));
    }
}
