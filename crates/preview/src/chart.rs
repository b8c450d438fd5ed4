//! A text chart of pods over time.

use crate::axis::Axis;
use crate::preview::{Happening, Lane, Preview, Span, State, Version};
use crate::text::Look;

/// The label before the steps.
const HEADING: &str = "step";

/// Sets with more pods than this get no chart.
const MOST: usize = 40;

/// The time axis of a preview: the time of every event, and a stretch after the last.
pub(crate) fn axis(preview: &Preview) -> Axis {
    let spans = preview.pods.iter().flat_map(|lane| &lane.spans);
    let moments = spans.flat_map(|span| [span.from, span.to]);
    let entries = preview.entries.iter().map(|entry| entry.at);
    Axis::through(moments.chain(entries)).and_on(TAIL)
}

/// The share of the axis that shows the final state.
const TAIL: f64 = 0.06;

/// Where a span ends on the axis: the last one extends to the end.
pub(crate) fn end(span: &Span, preview: &Preview, axis: &Axis) -> f64 {
    if span.to >= preview.duration_seconds {
        1.0
    } else {
        axis.place(span.to)
    }
}

/// A turning point of the rollout.
pub(crate) enum Mark {
    /// A step begins, counted from 1.
    Step(usize),
    /// All steps are done.
    Rest,
    /// The rollout begins to roll back.
    Back,
}

/// The turning points, in order.
fn marks(preview: &Preview) -> Vec<(f64, Mark)> {
    let marks = preview.entries.iter().filter_map(|entry| match entry.what {
        Happening::Step { step, .. } => Some((entry.at, Mark::Step(step))),
        Happening::StepsDone => Some((entry.at, Mark::Rest)),
        Happening::Returns { .. } => Some((entry.at, Mark::Back)),
        _ => None,
    });
    marks.collect()
}

/// Marks at the same position, in order, with the last of their positions. `near` is how far apart they may be.
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

/// The step numbers over the columns of the chart. If several begin at once, the last one counts from there.
fn ruler(preview: &Preview, axis: &Axis, width: usize) -> String {
    let column = |moment: f64| (axis.place(moment) * width as f64).floor().min(width as f64);
    let groups = grouped(preview, column, 0.0);
    let mut ruler = vec![' '; width + 4];
    let mut end = ruler.len() + 1;
    // From the end, so that an earlier mark never hides a later one.
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

/// The chart line by line, with a legend. Empty for a set too large to draw.
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
        // Even the shortest span stays visible.
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
