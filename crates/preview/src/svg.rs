//! A preview to look at: pods over time, in light and in dark.

use std::fmt::{self, Write};

use crate::axis::Axis;
use crate::chart::{Mark, axis, end, marks};
use crate::preview::{Preview, State, Version};
use crate::text::time;

const LEFT: f64 = 120.0;
const WIDTH: f64 = 960.0;
const TOP: f64 = 78.0;

/// Colour never says anything alone: what starts is hatched, what is unwell is crossed, what stops is hollow.
const STYLE: &str = "\
text{font:12px ui-sans-serif,system-ui,sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.quiet{fill:#59636e}
.line{stroke:#d1d9e0}.stable{fill:#8c959f}.replaced{fill:#0969da}.new{fill:#1a7f37}.starting{fill:url(#hatch)}
.unwell{fill:url(#cross)}.stopping{fill:none;stroke:#8c959f;stroke-dasharray:3 2}
#hatch rect{fill:#bf8700}#hatch path{stroke:#fff8c5}#cross rect{fill:#cf222e}#cross path{stroke:#ffebe9}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.quiet{fill:#9198a1}.line{stroke:#3d444d}
.stable{fill:#656c76}.replaced{fill:#4493f8}.new{fill:#3fb950}.stopping{stroke:#9198a1}#hatch rect{fill:#9e6a03}#cross rect{fill:#da3633}}";

const PATTERNS: &str = "<defs>\
<pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><rect width=\"6\" height=\"6\"/><path d=\"M0 6 6 0\" stroke-width=\"1.5\"/></pattern>\
<pattern id=\"cross\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect width=\"8\" height=\"8\"/><path d=\"M1 1 7 7M7 1 1 7\" stroke-width=\"1.2\"/></pattern>\
</defs>";

/// A picture. Readable in light and dark, and by those who cannot see it.
pub fn svg(preview: &Preview) -> String {
    let mut drawing = Drawing::new(preview);
    drawing.marks();
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
    /// Where the rows end.
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
        Self {
            preview,
            axis: axis(preview),
            row,
            bar,
            floor: TOP + row * preview.pods.len() as f64,
            body: String::new(),
        }
    }

    /// Where a place on the line of time is.
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

    /// A line where each begins, and its words where there is room.
    fn marks(&mut self) {
        let (top, floor) = (TOP - 10.0, self.floor);
        let mut free = 0.0;
        for (moment, mark) in marks(self.preview) {
            let place = self.at(moment);
            let label = match mark {
                Mark::Step(step) => {
                    let title = self.preview.steps.get(step - 1).map_or("", String::as_str);
                    format!("{step}. {title}")
                }
                Mark::Rest => "the rest".to_owned(),
                Mark::Back => "every pod returns".to_owned(),
            };
            let label = escaped(&label);
            let when = time(moment);
            self.draw(format_args!(
                "<path class=\"line\" d=\"M{place:.1} {top:.1}V{floor:.1}\"><title>{when} {label}</title></path>"
            ));
            // About as wide as letters are.
            let wide = label.chars().count() as f64 * 6.5 + 8.0;
            if place >= free && place + wide < WIDTH {
                let (x, y) = (place + 3.0, TOP - 4.0);
                self.draw(format_args!(
                    "<text class=\"quiet\" x=\"{x:.1}\" y=\"{y:.1}\">{label}</text>"
                ));
                free = place + wide;
            }
        }
    }

    fn pods(&mut self) {
        let (row, bar) = (self.row, self.bar);
        for (index, lane) in self.preview.pods.iter().enumerate() {
            let y = TOP + row * index as f64 + (row - bar) / 2.0;
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

    /// Where there is room for them, and where time was shortened.
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
        for (index, word) in words.collect::<Vec<_>>().into_iter().enumerate() {
            let x = LEFT + 90.0 * index as f64;
            let (text, base) = (x + 19.0, y + 10.0);
            self.draw(format_args!(
                "<rect class=\"{word}\" x=\"{x}\" y=\"{y:.1}\" width=\"14\" height=\"12\"/><text class=\"quiet\" x=\"{text}\" y=\"{base:.1}\">{word}</text>"
            ));
        }
    }

    /// With a head, for those who see it and for those who do not.
    fn done(self) -> String {
        let Self { preview, body, .. } = self;
        let height = self.floor + 58.0;
        let title = escaped(&format!("{} rolls {}", preview.rollout, preview.workload));
        let told = escaped(&format!(
            "{:?} after {}, at most {} of {} pods unavailable",
            preview.outcome,
            time(preview.duration_seconds),
            preview.most_unavailable,
            preview.replicas
        ));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}: {told}\">\n\
             <style>{STYLE}</style>{PATTERNS}\n\
             <text class=\"title\" x=\"16\" y=\"26\">{title}</text><text class=\"quiet\" x=\"16\" y=\"45\">{told}</text>\n\
             {body}</svg>\n"
        )
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
