//! A preview as a picture: pods over time, in light and dark mode.

use std::fmt::{self, Write};

use crate::axis::Axis;
use crate::chart::{Mark, axis, end, grouped};
use crate::preview::{Preview, State, Version};
use crate::text::time;

const LEFT: f64 = 120.0;
const WIDTH: f64 = 960.0;
const TOP: f64 = 82.0;

/// The height of a line of what-ifs, and its maximum length.
const LINE: f64 = 17.0;
const LETTERS: usize = 130;

/// Colour never carries meaning alone: starting is hatched, a problem is crossed, stopping is hollow.
const STYLE: &str = "\
text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.quiet{fill:#59636e}
.line{stroke:#d1d9e0}.stable{fill:#8c959f}.replaced{fill:#0969da}.new{fill:#1a7f37}.starting{fill:url(#hatch)}
.unwell{fill:url(#cross)}.stopping{fill:none;stroke:#8c959f;stroke-dasharray:3 2}.person{fill:#8250df}
#hatch rect{fill:#bf8700}#hatch path{stroke:#fff8c5}#cross rect{fill:#cf222e}#cross path{stroke:#ffebe9}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.quiet{fill:#9198a1}.line{stroke:#3d444d}
.stable{fill:#656c76}.replaced{fill:#4493f8}.new{fill:#3fb950}.stopping{stroke:#9198a1}.person{fill:#ab7df8}#hatch rect{fill:#9e6a03}#cross rect{fill:#da3633}}";

const PATTERNS: &str = "<defs>\
<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><rect width=\"6\" height=\"6\"/><path d=\"M0 6 6 0\" stroke-width=\"1.5\"/></pattern>\
<pattern id=\"cross\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect width=\"8\" height=\"8\"/><path d=\"M1 1 7 7M7 1 1 7\" stroke-width=\"1.2\"/></pattern>\
</defs>";

/// Draws the picture. Readable in light and dark mode, and with a screen reader.
pub fn svg(preview: &Preview) -> String {
    let mut drawing = Drawing::new(preview);
    drawing.marks();
    drawing.people();
    drawing.pods();
    drawing.times();
    drawing.legend();
    drawing.done()
}

struct Drawing<'p> {
    preview: &'p Preview,
    axis: Axis,
    /// The height of a pod's row, and of the bar in it.
    row: f64,
    bar: f64,
    /// The what-ifs, line by line.
    supposed: Vec<String>,
    /// The top of the rows, and their bottom.
    top: f64,
    floor: f64,
    body: String,
}

impl<'p> Drawing<'p> {
    fn new(preview: &'p Preview) -> Self {
        let (row, bar) = if preview.pods.len() > 60 {
            (8.0, 6.0)
        } else {
            (24.0, 16.0)
        };
        let supposed = supposed(preview);
        let top = TOP + LINE * supposed.len() as f64;
        Self {
            preview,
            axis: axis(preview),
            row,
            bar,
            supposed,
            top,
            floor: top + row * preview.pods.len() as f64,
            body: String::new(),
        }
    }

    /// The x coordinate of a position on the time axis.
    fn x(&self, place: f64) -> f64 {
        LEFT + place * (WIDTH - LEFT - 20.0)
    }

    fn at(&self, moment: f64) -> f64 {
        self.x(self.axis.place(moment))
    }

    fn draw(&mut self, piece: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.body, "{piece}");
    }

    /// A line at each mark, with a label if there is room. If several begin at once, the last one counts from there.
    fn marks(&mut self) {
        let (above, floor) = (self.top - 10.0, self.floor);
        let groups = grouped(self.preview, |moment| self.at(moment), 2.0);
        let mut ends = groups.iter().skip(1).map(|(place, _)| *place).collect::<Vec<_>>();
        ends.push(WIDTH);
        for ((place, group), end) in groups.iter().zip(ends) {
            let words: Vec<_> = group.iter().map(|(_, mark)| self.words(mark)).collect();
            let told: Vec<_> = group
                .iter()
                .zip(&words)
                .map(|((moment, _), words)| escaped(&format!("{} {words}", time(*moment))))
                .collect();
            let told = told.join("; ");
            self.draw(format_args!(
                "<path class=\"line\" d=\"M{place:.1} {above:.1}V{floor:.1}\"><title>{told}</title></path>"
            ));
            let last = words.last().cloned().unwrap_or_default();
            let number = last.split_inclusive('.').next().unwrap_or_default().to_owned();
            // The approximate width of a letter.
            let fits = |label: &String| place + label.chars().count() as f64 * 6.5 + 6.0 < end;
            if let Some(label) = [words.join(", "), last, number].into_iter().find(fits) {
                let (x, y, label) = (place + 3.0, self.top - 4.0, escaped(&label));
                self.draw(format_args!(
                    "<text class=\"quiet\" x=\"{x:.1}\" y=\"{y:.1}\">{label}</text>"
                ));
            }
        }
    }

    fn words(&self, mark: &Mark) -> String {
        match mark {
            Mark::Step(step) => {
                let title = self.preview.steps.get(step - 1).map_or("", String::as_str);
                format!("{step}. {title}")
            }
            Mark::Rest => "the rest".to_owned(),
            Mark::Back => "every pod returns".to_owned(),
        }
    }

    /// The points at which a user is needed, and the commands.
    fn people(&mut self) {
        let y = self.top - 16.0;
        for person in &self.preview.people {
            let x = self.at(person.at);
            let title = escaped(&format!(
                "{} somebody is needed: {}",
                time(person.at),
                person.command
            ));
            self.draw(format_args!("{}", somebody(x, y, &title)));
        }
    }

    fn pods(&mut self) {
        let (row, bar) = (self.row, self.bar);
        for (index, lane) in self.preview.pods.iter().enumerate() {
            let y = self.top + row * index as f64 + (row - bar) / 2.0;
            let pod = escaped(&lane.pod);
            if row > 12.0 {
                let base = y + bar - 4.0;
                self.draw(format_args!("<text x=\"16\" y=\"{base:.1}\">{pod}</text>"));
            }
            for span in &lane.spans {
                let class = match (span.state, span.version) {
                    (State::Ready, Version::Stable) => "stable",
                    (State::Ready, Version::Replaced) => "replaced",
                    (State::Ready, Version::New) => "new",
                    (State::Starting, _) => "starting",
                    (State::Unwell, _) => "unwell",
                    (State::Stopping, _) => "stopping",
                };
                let from = self.at(span.from);
                let width = (self.x(end(span, self.preview, &self.axis)) - from).max(1.0);
                let (since, until) = (time(span.from), time(span.to));
                self.draw(format_args!(
                    "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{bar}\"><title>{pod} {class} from {since} to {until}</title></rect>"
                ));
            }
        }
    }

    /// The times that fit, and where time was shortened.
    fn times(&mut self) {
        let floor = self.floor;
        let mut free = 0.0;
        for moment in self.preview.entries.iter().map(|entry| entry.at) {
            let place = self.at(moment);
            if place < free || place > WIDTH - 40.0 {
                continue;
            }
            let (label, y) = (time(moment), floor + 18.0);
            self.draw(format_args!(
                "<path class=\"line\" d=\"M{place:.1} {floor:.1}v5\"/><text class=\"quiet\" x=\"{place:.1}\" y=\"{y:.1}\">{label}</text>"
            ));
            free = place + label.len() as f64 * 7.0 + 14.0;
        }
        for place in self.axis.breaks().to_vec() {
            let (x, y) = (self.x(place) - 5.0, floor + 4.0);
            self.draw(format_args!(
                "<path class=\"line\" d=\"M{x:.1} {y:.1}l4 -8m2 8l4 -8\"><title>shortened</title></path>"
            ));
        }
    }

    fn legend(&mut self) {
        let y = self.floor + 34.0;
        let words = ["stable", "replaced", "new", "starting", "stopping", "unwell"].into_iter();
        let words = words.filter(|word| *word != "replaced" || self.preview.replaces());
        let words: Vec<_> = words.collect();
        for (index, word) in words.iter().enumerate() {
            let x = LEFT + 90.0 * index as f64;
            let (text, base) = (x + 19.0, y + 10.0);
            self.draw(format_args!(
                "<rect class=\"{word}\" x=\"{x}\" y=\"{y:.1}\" width=\"14\" height=\"12\"/><text class=\"quiet\" x=\"{text}\" y=\"{base:.1}\">{word}</text>"
            ));
        }
        if !self.preview.people.is_empty() {
            let x = LEFT + 90.0 * words.len() as f64 + 6.0;
            let (text, base) = (x + 12.0, y + 10.0);
            let somebody = somebody(x, y + 12.0, "somebody is needed");
            self.draw(format_args!(
                "{somebody}<text class=\"quiet\" x=\"{text}\" y=\"{base:.1}\">somebody is needed</text>"
            ));
        }
    }

    /// Adds the header, with a description for screen readers.
    fn done(self) -> String {
        let Self {
            preview,
            body,
            supposed,
            ..
        } = self;
        let height = self.floor + 58.0;
        let title = escaped(&format!("{} rolls {}", preview.rollout, preview.workload));
        let told = escaped(&format!(
            "{:?} after {}, at most {} of {} pods unavailable",
            preview.outcome,
            time(preview.duration_seconds),
            preview.most_unavailable,
            preview.most_replicas()
        ));
        let lines: String = supposed
            .iter()
            .enumerate()
            .map(|(index, line)| {
                let y = 45.0 + LINE * (index + 1) as f64;
                format!(
                    "<text class=\"quiet\" x=\"16\" y=\"{y}\">{}</text>\n",
                    escaped(line)
                )
            })
            .collect();
        let label = escaped(
            &supposed
                .iter()
                .map(|line| format!("; {line}"))
                .collect::<String>(),
        );
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}: {told}{label}\">\n\
             <style>{STYLE}</style>{PATTERNS}\n\
             <text class=\"title\" x=\"16\" y=\"26\">{title}</text><text class=\"quiet\" x=\"16\" y=\"45\">{told}</text>\n\
             {lines}{body}</svg>\n"
        )
    }
}

/// A figure of a user, with a tooltip.
fn somebody(x: f64, y: f64, title: &str) -> String {
    let (left, head) = (x - 5.0, y - 8.5);
    format!(
        "<g class=\"person\"><title>{title}</title><circle cx=\"{x:.1}\" cy=\"{head:.1}\" r=\"3\"/><path d=\"M{left:.1} {y:.1}a5 5 0 0 1 10 0z\"/></g>"
    )
}

/// The what-ifs, wrapped into lines.
fn supposed(preview: &Preview) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for what_if in &preview.what_if {
        match lines.last_mut() {
            Some(line) if line.len() + what_if.len() + 2 <= LETTERS => {
                line.push_str(", ");
                line.push_str(what_if);
            }
            _ => lines.push(format!("what if {what_if}")),
        }
    }
    lines
}

/// Escapes text for an element or an attribute. It may come from a cluster, so control characters are removed, which XML cannot hold.
fn escaped(text: &str) -> String {
    stateward_terminal::plain(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
