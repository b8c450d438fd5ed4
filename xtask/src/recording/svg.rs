//! Draws frames of a screen as an animated SVG: a film of adjacent frames, of which one is visible at a time.
//!
//! The colours are fixed, on a dark background, so that it looks the same on light and dark pages. Viewers without animation, or with
//! reduced motion, show the last frame.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::terminal::{COLUMNS, Frame, Look, ROWS, Row};

/// How long the last frame is shown.
const REST: Duration = Duration::from_secs(6);

/// The width of a character, in hundredths of a pixel, and the height of a line.
const ADVANCE: u32 = 843;
const LINE: u32 = 19;

/// The margin around the text.
const MARGIN: u32 = 16;

/// The terminal's sixteen colours, readable on the background.
const COLOURS: [&str; 16] = [
    "#6e7681", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#c9d1d9", "#6e7681",
    "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc",
];

/// Draws the film, with this description.
pub(super) fn draw(title: &str, frames: &[Frame]) -> String {
    let width = MARGIN * 2 + u32::from(COLUMNS) * ADVANCE / 100;
    let height = MARGIN * 2 + u32::from(ROWS) * LINE;
    let mut ids: BTreeMap<&Row, usize> = BTreeMap::new();
    for row in frames.iter().flat_map(|frame| &frame.rows) {
        let next = ids.len();
        if !row.is_empty() {
            ids.entry(row).or_insert(next);
        }
    }
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" role=\"img\" xml:space=\"preserve\" \
         aria-label=\"{title}\">\n<title>{title}</title>\n<style>\n{}</style>\n<defs>\n",
        style(frames, width),
        title = escaped(title),
    );
    for (row, id) in &ids {
        line(&mut svg, *id, row);
    }
    let _ = writeln!(
        svg,
        "<clipPath id=\"screen\"><rect width=\"{width}\" height=\"{height}\"/></clipPath>\n</defs>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"#0d1117\"/>\n\
         <g clip-path=\"url(#screen)\"><g class=\"film\">"
    );
    for (number, frame) in frames.iter().enumerate() {
        let _ = write!(svg, "<g transform=\"translate({})\">", number * width as usize);
        for (row, y) in frame
            .rows
            .iter()
            .zip((MARGIN + LINE - 5..).step_by(LINE as usize))
        {
            if let Some(id) = ids.get(row) {
                let _ = write!(svg, "<use href=\"#r{id}\" y=\"{y}\"/>");
            }
        }
        svg.push_str("</g>\n");
    }
    svg.push_str("</g></g>\n</svg>\n");
    svg
}

fn style(frames: &[Frame], width: u32) -> String {
    let end = frames.last().map(|frame| frame.at).unwrap_or_default() + REST;
    let mut style = String::from(
        "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,\"Liberation Mono\",monospace;fill:#c9d1d9}\n\
         .b{font-weight:bold}.d{opacity:.7}\n",
    );
    for (number, colour) in COLOURS.iter().enumerate() {
        let _ = write!(style, ".c{number}{{fill:{colour}}}");
    }
    let last = frames.len().saturating_sub(1) * width as usize;
    let _ = writeln!(
        style,
        "\n.film{{transform:translateX(-{last}px)}}\n@media (prefers-reduced-motion:no-preference){{.film{{animation:film \
         {:.1}s step-end infinite}}}}",
        end.as_secs_f64()
    );
    style.push_str("@keyframes film{");
    for (number, frame) in frames.iter().enumerate() {
        let share = frame.at.as_secs_f64() / end.as_secs_f64() * 100.0;
        let _ = write!(
            style,
            "{share:.2}%{{transform:translateX(-{}px)}}",
            number * width as usize
        );
    }
    let _ = writeln!(style, "100%{{transform:translateX(-{last}px)}}}}");
    style
}

/// Defines a line of the screen, for use in every frame that shows it.
fn line(svg: &mut String, id: usize, row: &Row) {
    let _ = write!(svg, "<text id=\"r{id}\">");
    for piece in row {
        let x = f64::from(MARGIN) + f64::from(u32::from(piece.column) * ADVANCE) / 100.0;
        // Browsers collapse spaces even if told not to.
        let text = escaped(&piece.text).replace(' ', "\u{a0}");
        let _ = write!(svg, "<tspan x=\"{x:.1}\"{}>{text}</tspan>", class(piece.look));
    }
    svg.push_str("</text>\n");
}

fn class(look: Look) -> String {
    let mut classes = Vec::new();
    if let Some(colour) = look.colour {
        classes.push(format!("c{colour}"));
    }
    if look.bold {
        classes.push("b".into());
    }
    if look.dim {
        classes.push("d".into());
    }
    if classes.is_empty() {
        String::new()
    } else {
        format!(" class=\"{}\"", classes.join(" "))
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::terminal::Piece;

    #[test]
    fn a_line_is_drawn_once_and_shown_in_every_frame_that_has_it() {
        let piece = |text: &str, colour| Piece {
            column: 2,
            text: text.into(),
            look: Look {
                colour,
                ..Look::default()
            },
        };
        let (a, b) = (vec![piece("a < b", None)], vec![piece("good", Some(2))]);
        let frames = [
            Frame {
                at: Duration::ZERO,
                rows: vec![a.clone()],
            },
            Frame {
                at: Duration::from_secs(6),
                rows: vec![a, b],
            },
        ];
        let drawn = draw("a \"film\"", &frames);
        assert_eq!(drawn.matches("a\u{a0}&lt;\u{a0}b").count(), 1, "{drawn}");
        assert_eq!(drawn.matches("<use ").count(), 3, "{drawn}");
        assert!(drawn.contains("aria-label=\"a &quot;film&quot;\""), "{drawn}");
        assert!(drawn.contains("film 12.0s step-end infinite"), "{drawn}");
        assert!(drawn.contains("50.00%{transform:translateX(-942px)}"), "{drawn}");
        assert!(drawn.contains("class=\"c2\">good"), "{drawn}");
    }
}
