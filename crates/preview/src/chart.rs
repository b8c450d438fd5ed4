//! Pods over time, in letters.

use crate::axis::Axis;
use crate::preview::{Happening, Lane, Preview, Span, State, Version};
use crate::text::Look;

/// What stands before the steps.
const HEADING: &str = "step";

/// More pods than this are not drawn one by one.
const MOST: usize = 40;

/// The line of time of a preview: every moment at which something happens, and a while after the last.
pub(crate) fn axis(preview: &Preview) -> Axis {
    let spans = preview.pods.iter().flat_map(|lane| &lane.spans);
    let moments = spans.flat_map(|span| [span.from, span.to]);
    let entries = preview.entries.iter().map(|entry| entry.at);
    Axis::through(moments.chain(entries)).and_on(TAIL)
}

/// The share of the line that shows how it stays in the end.
const TAIL: f64 = 0.06;

/// Where a span ends on the line: the last one goes on.
pub(crate) fn end(span: &Span, preview: &Preview, axis: &Axis) -> f64 {
    if span.to >= preview.duration_seconds {
        1.0
    } else {
        axis.place(span.to)
    }
}

/// A moment at which the rollout takes another course.
pub(crate) enum Mark {
    /// A step begins, counted from 1.
    Step(usize),
    /// All steps are done.
    Rest,
    /// It turns round.
    Back,
}

/// These moments, in order.
fn marks(preview: &Preview) -> Vec<(f64, Mark)> {
    let marks = preview.entries.iter().filter_map(|entry| match entry.what {
        Happening::Step { step, .. } => Some((entry.at, Mark::Step(step))),
        Happening::StepsDone => Some((entry.at, Mark::Rest)),
        Happening::Returns { .. } => Some((entry.at, Mark::Back)),
        _ => None,
    });
    marks.collect()
}

/// Moments that fall on the same place, in order, with the last of these places. `near` is how far apart they may be and still do.
pub(crate) fn grouped(
    preview: &Preview,
    place: impl Fn(f64) -> f64,
    near: f64,
) -> Vec<(f64, Vec<(f64, Mark)>)> {
    let mut groups: Vec<(f64, Vec<(f64, Mark)>)> = Vec::new();
    for (moment, mark) in marks(preview) {
        let at = place(moment);
        match groups.last_mut() {
            Some((last, group)) if at - *last <= near => {
                *last = at;
                group.push((moment, mark));
            }
            _ => groups.push((at, vec![(moment, mark)])),
        }
    }
    groups
}

/// The steps over the columns of the chart. Where several begin at once, the last is what holds from there.
fn ruler(preview: &Preview, axis: &Axis, width: usize) -> String {
    let column = |moment: f64| (axis.place(moment) * width as f64).floor().min(width as f64);
    let groups = grouped(preview, column, 0.0);
    let mut ruler = vec![' '; width + 4];
    let mut end = ruler.len() + 1;
    // From the end: what comes later is never hidden by what came before.
    for (at, group) in groups.iter().rev() {
        let at = *at as usize;
        let labels: Vec<_> = group
            .iter()
            .map(|(_, mark)| match mark {
                Mark::Step(step) => step.to_string(),
                Mark::Rest => "rest".to_owned(),
                Mark::Back => "back".to_owned(),
            })
            .collect();
        let last = labels.last().cloned().unwrap_or_default();
        let fits = |label: &String| at + label.len() < end;
        let Some(label) = [labels.join(","), last].into_iter().find(fits) else {
            continue;
        };
        for (cell, letter) in ruler.iter_mut().skip(at).zip(label.chars()) {
            *cell = letter;
        }
        end = at;
    }
    ruler.into_iter().collect::<String>().trim_end().to_owned()
}

/// The glyph of a pod.
fn glyph(version: Version, state: State, look: Look) -> char {
    let (unicode, ascii) = match (state, version) {
        (State::Ready, Version::Stable) => ('░', '-'),
        (State::Ready, Version::Replaced) => ('▓', '%'),
        (State::Ready, Version::New) => ('█', '#'),
        (State::Starting, _) => ('▒', '+'),
        (State::Unwell, _) => ('✗', 'x'),
        (State::Stopping, _) => ('·', '.'),
    };
    if look.ascii { ascii } else { unicode }
}

fn colour(glyph: char) -> Option<&'static str> {
    match glyph {
        '█' | '#' => Some("32"),
        '▓' | '%' => Some("36"),
        '▒' | '+' => Some("33"),
        '✗' | 'x' => Some("31"),
        _ => None,
    }
}

/// Line by line, with a legend. Nothing for a set too large to draw.
pub(crate) fn chart(preview: &Preview, look: Look) -> Vec<String> {
    if preview.pods.is_empty() || preview.pods.len() > MOST {
        return Vec::new();
    }
    let names = preview.pods.iter().map(|lane| lane.pod.len());
    let names = names.chain([HEADING.len()]).max().unwrap_or_default();
    let width = look.width.saturating_sub(names + 5).clamp(20, 160);
    let axis = axis(preview);
    let column = |place: f64| ((place * width as f64) as usize).min(width);
    let mut lines = vec![format!("  {HEADING:names$}  {}", ruler(preview, &axis, width))];
    for lane in &preview.pods {
        let ends = |span: &Span| (column(axis.place(span.from)), column(end(span, preview, &axis)));
        let cells = row(lane, width, &ends, look);
        lines.push(format!("  {:names$}  {}", lane.pod, painted(&cells, look)));
    }
    let legend = [
        (Version::Stable, State::Ready, "stable"),
        (Version::Replaced, State::Ready, "replaced"),
        (Version::New, State::Ready, "new"),
        (Version::New, State::Starting, "starting"),
        (Version::New, State::Stopping, "stopping"),
        (Version::New, State::Unwell, "unwell"),
    ];
    let legend: Vec<_> = legend
        .into_iter()
        .filter(|(version, ..)| *version != Version::Replaced || preview.replaces())
        .map(|(version, state, word)| {
            let cell = glyph(version, state, look);
            format!("{} {word}", painted(&[cell], look))
        })
        .collect();
    lines.push(format!("  {:names$}  {}", "", legend.join("   ")));
    if !axis.breaks().is_empty() {
        lines.push(format!("  {:names$}  long waits are shortened", ""));
    }
    lines
}

fn row(lane: &Lane, width: usize, ends: &dyn Fn(&Span) -> (usize, usize), look: Look) -> Vec<char> {
    let mut cells = vec![' '; width];
    for span in &lane.spans {
        let (from, to) = ends(span);
        // However short, it is seen.
        let from = from.min(width - 1);
        let to = to.max(from + 1);
        cells[from..to].fill(glyph(span.version, span.state, look));
    }
    cells
}

fn painted(cells: &[char], look: Look) -> String {
    if !look.colour {
        return cells.iter().collect::<String>().trim_end().to_owned();
    }
    let mut line = String::new();
    for run in cells.chunk_by(|one, other| one == other) {
        let text: String = run.iter().collect();
        match run.first().and_then(|cell| colour(*cell)) {
            Some(code) => line.push_str(&stateward_terminal::paint(code, &text)),
            None => line.push_str(&text),
        }
    }
    line.trim_end().to_owned()
}
