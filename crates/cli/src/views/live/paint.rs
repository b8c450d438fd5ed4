//! Converts lines to the screen's styles. Text from the cluster is sanitized here.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use stateward_terminal::Charset;

/// A line with the marks of [`crate::views::style::Style`].
pub(crate) fn painted(text: &str, charset: Charset) -> Line<'static> {
    let spans = stateward_terminal::spans(text, charset).into_iter();
    let spans = spans.map(|(code, text)| match code {
        Some(code) => Span::styled(text, style(&code)),
        None => Span::raw(text),
    });
    Line::from(spans.collect::<Vec<_>>())
}

/// Wraps a line to this width between words, with further lines indented.
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
        // A word that is too long is split.
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
    use stateward_terminal::paint;

    #[test]
    fn colours_survive_and_nothing_else_is_lost() {
        let paused = paint("33", "Paused");
        let line = painted(
            &format!("rolloutplugin/db   {paused}   step 2 of 4"),
            Charset::Unicode,
        );
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
        assert_eq!(painted("plain", Charset::Unicode).spans.len(), 1);
    }

    #[rstest]
    #[case("short", 20, &["short"])]
    #[case("  message: pod db-4 is broken", 16, &["  message: pod", "    db-4 is", "    broken"])]
    #[case("a-word-that-fits-nowhere", 10, &["a-word-tha", "  t-fits-n", "  owhere"])]
    #[case("", 10, &[""])]
    #[case("nothing is so narrow", 1, &["n", "o", "t", "h", "i", "n", "g", "i", "s", "s", "o", "n", "a", "r", "r", "o", "w"])]
    fn a_line_is_broken_between_words(#[case] text: &str, #[case] width: usize, #[case] expected: &[&str]) {
        let pieces = wrapped(&painted(text, Charset::Unicode), width);
        let pieces: Vec<_> = pieces.iter().map(ToString::to_string).collect();
        assert_eq!(pieces, expected);
    }

    #[test]
    fn colours_survive_a_break() {
        let pieces = wrapped(
            &painted(
                &format!("it is {} now", paint("31", "very broken")),
                Charset::Unicode,
            ),
            12,
        );
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
