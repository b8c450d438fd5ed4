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
}
