//! A preview as text.

use crate::chart::chart;
use crate::preview::{Entry, Happening, Outcome, Preview, Version};

/// The presentation.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Use escape sequences for colour.
    pub colour: bool,
    /// Use only ASCII characters.
    pub ascii: bool,
    /// The width of the terminal in columns.
    pub width: usize,
}

/// More pods than this that become Ready one after the other share a line.
const UNFOLDED: usize = 6;

/// The preview line by line, safe for a terminal: names and messages may come from a cluster.
pub fn text(preview: &Preview, look: Look) -> Vec<String> {
    let charset = stateward_terminal::Charset::of(look.ascii);
    let lines = marked(preview, look);
    lines
        .iter()
        .map(|line| stateward_terminal::line(line, charset))
        .collect()
}

fn marked(preview: &Preview, look: Look) -> Vec<String> {
    let mut lines = vec![format!(
        "{} rolls {} ({}) through {}",
        preview.rollout,
        preview.workload,
        counted(preview.replicas as usize, "pod"),
        counted(preview.steps.len(), "step")
    )];
    lines.extend(preview.assumptions.iter().map(|line| format!("  {line}")));
    lines.extend(preview.what_if.iter().map(|line| format!("  what if {line}")));
    lines.push(String::new());
    lines.extend(timeline(preview));
    let chart = chart(preview, look);
    if !chart.is_empty() {
        lines.push(String::new());
        lines.extend(chart);
    }
    lines.push(String::new());
    lines.extend(summary(preview));
    lines
}

/// `1 pod`, `5 pods`
fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// `6m2s`
pub(crate) fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    let parts = [(whole / 3600, "h"), (whole / 60 % 60, "m"), (whole % 60, "s")];
    let text: String = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    if text.is_empty() { "0s".into() } else { text }
}

fn timeline(preview: &Preview) -> Vec<String> {
    let mut lines = Vec::new();
    // The chart shows that pods stop; the text lists when they become Ready.
    let told: Vec<&Entry> = preview
        .entries
        .iter()
        .filter(|entry| !matches!(entry.what, Happening::PodStops { .. }))
        .collect();
    let moves = |entry: &Entry| {
        matches!(
            entry.what,
            Happening::PodStops { .. } | Happening::PodReady { .. }
        )
    };
    let still_from = preview.entries.iter().rposition(moves).map_or(0, |last| last + 1);
    let still = &preview.entries[still_from..];
    for group in told.chunk_by(|one, other| is_alike(&one.what, &other.what)) {
        match (group, group.len() > UNFOLDED) {
            ([first, .., last], true) => {
                if let (Happening::PodReady { pod, version }, Happening::PodReady { pod: to, .. }) =
                    (&first.what, &last.what)
                {
                    let count = group.len();
                    let words = format!("{pod} to {to} are Ready on {}, {count} in all", word(*version));
                    lines.push(line(last.at, &format!("  {words}")));
                }
            }
            _ => lines.extend(group.iter().map(|entry| {
                let (indent, mut words) = describe(&entry.what, preview);
                let guards = matches!(entry.what, Happening::Partition { from, to } if from < to);
                if guards && still.iter().any(|later| std::ptr::eq(later, *entry)) {
                    words.push_str(": no pod moves any more");
                }
                line(entry.at, &format!("{}{words}", if indent { "  " } else { "" }))
            })),
        }
    }
    lines
}

fn is_alike(one: &Happening, other: &Happening) -> bool {
    match (one, other) {
        (Happening::PodReady { version: one, .. }, Happening::PodReady { version: other, .. }) => {
            one == other
        }
        _ => false,
    }
}

fn line(at: f64, words: &str) -> String {
    format!("{:>9}  {words}", time(at))
}

fn word(version: Version) -> &'static str {
    match version {
        Version::Stable => "the stable version",
        Version::Replaced => "the version it replaces",
        Version::New => "the new version",
    }
}

/// Describes an event, and whether it belongs to the step before it.
fn describe(what: &Happening, preview: &Preview) -> (bool, String) {
    let steps = preview.steps.len();
    match what {
        Happening::Step { step, title } => (false, format!("step {step} of {steps}: {title}")),
        Happening::StepsDone => (false, "all steps are done, the remaining pods follow".into()),
        Happening::Partition { from, to } => (true, format!("partition {from} to {to}")),
        Happening::Scaled { from, to } => (true, format!("scaled from {from} to {to}")),
        Happening::PodStops { pod, version } => (true, format!("{pod} stops, {}", word(*version))),
        Happening::PodReady { pod, version } => (true, format!("{pod} is Ready on {}", word(*version))),
        Happening::PodUnwell { pod, version, reason } => {
            (true, format!("{pod} is unwell on {}: {reason}", word(*version)))
        }
        Happening::Analysed { of, verdict } => (true, format!("analysis {of}: {verdict}")),
        Happening::Waits { command } => (true, format!("waits for a person: {command}")),
        Happening::Done { what_if } => (true, format!("> {what_if}")),
        Happening::Returns { reason } => (false, format!("goes back: {reason}")),
        Happening::Fails { reason } => (false, format!("fails: {reason}")),
        Happening::Ends { outcome } => (false, format!("ends: {}", ending(*outcome, preview))),
    }
}

fn ending(outcome: Outcome, preview: &Preview) -> String {
    let message = &preview.message;
    let empty = preview.replicas_at_the_end() == 0;
    match outcome {
        Outcome::Successful if empty => "there are no pods; those to come would run the new version".into(),
        Outcome::RolledBack if empty => {
            "there are no pods; those to come would run the stable version".into()
        }
        Outcome::Successful => "every pod runs the new version".into(),
        Outcome::RolledBack => "every pod runs the stable version again".into(),
        Outcome::Held => "it stays where it is until somebody decides".into(),
        Outcome::Waiting => "nobody comes, and it stays where it is".into(),
        Outcome::Stuck => format!("it goes no further: {message}"),
    }
}

fn summary(preview: &Preview) -> Vec<String> {
    let people = preview.people.len();
    let waited = preview.waited_for_people_seconds;
    let takes = time(preview.duration_seconds);
    let takes = match (people, waited > 0.0) {
        (0, _) => takes,
        (_, true) => format!("{takes}, of which people take {}", time(waited)),
        (_, false) => format!("{takes}, and the time that people take"),
    };
    let needed: Vec<_> = preview
        .people
        .iter()
        .map(|person| match person.step {
            Some(step) if step > preview.steps.len() => format!("after the last step: {}", person.command),
            Some(step) => format!("step {step}: {}", person.command),
            None => person.command.clone(),
        })
        .collect();
    let needed = if needed.is_empty() {
        "none".to_owned()
    } else {
        needed.join("; ")
    };
    vec![
        format!("outcome      {:?}", preview.outcome),
        format!("duration     {takes}"),
        format!(
            "unavailable  {} of {} at most",
            preview.most_unavailable,
            counted(preview.most_replicas() as usize, "pod")
        ),
        format!("people       {needed}"),
    ]
}
