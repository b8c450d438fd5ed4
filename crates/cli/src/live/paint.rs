//! Lines with our own escape sequences, as the screen wants them.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// A line as [`crate::style::Style`] has painted it.
pub(crate) fn painted(text: &str) -> Line<'static> {
    let mut spans = Vec::new();
    let mut rest = text;
    while let Some((plain, after)) = rest.split_once("\x1b[") {
        spans.push(Span::raw(plain.to_owned()));
        let Some((code, after)) = after.split_once('m') else {
            rest = after;
            continue;
        };
        let (inside, after) = after.split_once("\x1b[0m").unwrap_or((after, ""));
        spans.push(Span::styled(inside.to_owned(), style(code)));
        rest = after;
    }
    spans.push(Span::raw(rest.to_owned()));
    spans.retain(|span| !span.content.is_empty());
    Line::from(spans)
}

/// The line in pieces of this width, broken between words. Those that follow stand a little further in.
pub(crate) fn wrapped(line: &Line<'_>, width: usize) -> Vec<Line<'static>> {
    let symbols: Vec<_> = line.styled_graphemes(Style::new()).collect();
    let blank = |at: usize| symbols.get(at).is_none_or(|symbol| symbol.symbol == " ");
    let indent = (0..symbols.len()).take_while(|at| blank(*at)).count();
    let indent = (indent + 2).min(width / 2);
    let piece = |from: usize, to: usize| {
        let mut spans = vec![Span::raw(if from == 0 {
            String::new()
        } else {
            " ".repeat(indent)
        })];
        for symbol in &symbols[from..to] {
            match spans.last_mut() {
                Some(last) if last.style == symbol.style => last.content.to_mut().push_str(symbol.symbol),
                _ => spans.push(Span::styled(symbol.symbol.to_owned(), symbol.style)),
            }
        }
        spans.retain(|span| !span.content.is_empty());
        Line::from(spans)
    };
    let (mut pieces, mut from) = (Vec::new(), 0);
    loop {
        let room = if from == 0 { width } else { width - indent }.max(1);
        if symbols.len() - from <= room {
            pieces.push(piece(from, symbols.len()));
            return pieces;
        }
        // A word that fits nowhere is cut.
        let end = (from + 1..=from + room).rev().find(|at| blank(*at));
        let end = end
            .filter(|end| (from..*end).any(|at| !blank(at)))
            .unwrap_or(from + room);
        pieces.push(piece(from, end));
        from = (end..symbols.len())
            .find(|at| !blank(*at))
            .unwrap_or(symbols.len());
    }
}

fn style(code: &str) -> Style {
    match code {
        "1" => Style::new().add_modifier(Modifier::BOLD),
        "31" => Style::new().fg(Color::Red),
        "32" => Style::new().fg(Color::Green),
        "33" => Style::new().fg(Color::Yellow),
        "36" => Style::new().fg(Color::Cyan),
        _ => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn colours_survive_and_nothing_else_is_lost() {
        let line = painted("rolloutplugin/db   \x1b[33mPaused\x1b[0m   step 2 of 4");
        let spans: Vec<_> = line
            .spans
            .iter()
            .map(|span| (span.content.as_ref(), span.style.fg))
            .collect();
        assert_eq!(
            spans,
            [
                ("rolloutplugin/db   ", None),
                ("Paused", Some(Color::Yellow)),
                ("   step 2 of 4", None)
            ]
        );
        assert_eq!(painted("plain").spans.len(), 1);
        assert_eq!(painted("\x1b[31mopen").to_string(), "open");
    }

    #[rstest]
    #[case("short", 20, &["short"])]
    #[case("  message: pod db-4 is broken", 16, &["  message: pod", "    db-4 is", "    broken"])]
    #[case("a-word-that-fits-nowhere", 10, &["a-word-tha", "  t-fits-n", "  owhere"])]
    #[case("", 10, &[""])]
    #[case("nothing is so narrow", 1, &["n", "o", "t", "h", "i", "n", "g", "i", "s", "s", "o", "n", "a", "r", "r", "o", "w"])]
    fn a_line_is_broken_between_words(#[case] text: &str, #[case] width: usize, #[case] expected: &[&str]) {
        let pieces = wrapped(&painted(text), width);
        let pieces: Vec<_> = pieces.iter().map(ToString::to_string).collect();
        assert_eq!(pieces, expected);
    }

    #[test]
    fn colours_survive_a_break() {
        let pieces = wrapped(&painted("it is \x1b[31mvery broken\x1b[0m now"), 12);
        let spans: Vec<_> = pieces[1]
            .spans
            .iter()
            .map(|span| (span.content.as_ref(), span.style.fg))
            .collect();
        assert_eq!(
            spans,
            [("  ", None), ("broken", Some(Color::Red)), (" now", None)]
        );
    }
}
