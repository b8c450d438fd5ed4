//! Judges answers (rule 13).
//!
//! No data is not success. An answer without a value to judge is passed only to conditions that check for that explicitly, and is
//! otherwise an error, whatever the condition would evaluate to: `all` is true for an empty list, and NaN is above no limit. The
//! metric can set what it means. The same holds for an empty list inside the answer that a condition iterates over.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use stateward_api::Problem;
use stateward_api::analysis::validate::is_open;
use stateward_api::analysis::{Metric, Phase, RangeQuery, Reading, Unanswered};
use stateward_api::duration;

use super::reply::{Data, Reply};
use crate::expr::{self, Answer, Condition, Look, Moment};

/// The maximum age of an answer.
const FRESH: SignedDuration = SignedDuration::from_mins(5);

/// How many characters of an answer are shown.
const SHOWN: usize = 256;

/// Redacts secrets in a text. Conditions judge the original answer; users see the redacted one.
pub type Hide<'h> = &'h dyn Fn(&str) -> String;

/// The verdict on a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The phase.
    pub phase: Phase,
    /// Why.
    pub message: String,
}

/// An answer without a value to judge.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Void {
    /// No answer.
    Nil,
    /// An empty list or text.
    Empty,
    /// A document that contains only empty values.
    Hollow,
    /// An empty list in a document, at this path.
    Part(String),
    Nan,
    Infinite,
    Stale,
}

impl Void {
    fn of(reply: &Reply, now: Timestamp) -> Option<Self> {
        if reply
            .newest
            .is_some_and(|newest| now.duration_since(newest) >= FRESH)
        {
            return Some(Self::Stale);
        }
        let numbers = match &reply.data {
            Data::Nothing | Data::Document(Value::Null) => return Some(Self::Nil),
            Data::Number(number) => std::slice::from_ref(number),
            Data::Numbers(numbers) => numbers.as_slice(),
            Data::Document(Value::String(text)) | Data::Text(text) => return Self::of_text(text),
            Data::Document(Value::Array(items)) if items.is_empty() => return Some(Self::Empty),
            Data::Document(document) => return is_hollow(document).then_some(Self::Hollow),
        };
        if numbers.is_empty() {
            return Some(Self::Empty);
        }
        if numbers.iter().any(|number| number.is_nan()) {
            return Some(Self::Nan);
        }
        numbers
            .iter()
            .any(|number| number.is_infinite())
            .then_some(Self::Infinite)
    }

    /// `asFloat` reads such a text as a number.
    fn of_text(text: &str) -> Option<Self> {
        let word = text.trim().to_ascii_lowercase();
        match word.trim_start_matches(['+', '-']) {
            "" => word.is_empty().then_some(Self::Empty),
            "nan" => Some(Self::Nan),
            "inf" | "infinity" => Some(Self::Infinite),
            _ => None,
        }
    }

    /// An empty or invalid value that a condition encountered without checking for it.
    fn seen(look: &Look, source: &str) -> Option<Self> {
        let seen = [
            look.over_nothing.clone().map(Self::Part),
            look.nan.then_some(Self::Nan),
            look.infinite.then_some(Self::Infinite),
        ];
        seen.into_iter().flatten().find(|void| !void.is_asked_in(source))
    }

    /// What the metric's `answers` say about it.
    fn policy(&self, metric: &Metric) -> Option<Reading> {
        let policy = metric.answers.unwrap_or_default();
        match self {
            Self::Nil | Self::Empty | Self::Hollow | Self::Part(_) => policy.empty,
            Self::Nan => policy.nan,
            Self::Infinite => policy.infinite,
            Self::Stale => policy.stale,
        }
    }

    /// Whether a condition checks for it explicitly.
    fn is_asked_in(&self, source: &str) -> bool {
        const NIL: [&str; 5] = ["isNil", "default", "nil", "??", "?."];
        match self {
            Self::Nil => expr::mentions(source, &NIL) || expr::measures_result(source),
            Self::Empty => expr::measures_result(source),
            Self::Hollow => expr::mentions(source, &NIL) || expr::measures_any(source),
            // It is reported only if the condition does not use its length.
            Self::Part(_) => false,
            Self::Nan => expr::mentions(source, &["isNaN"]),
            Self::Infinite => expr::mentions(source, &["isInf"]),
            Self::Stale => false,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Nil | Self::Empty | Self::Hollow => "there is no data".into(),
            Self::Part(path) => format!("there is no data: {path} is empty"),
            Self::Nan => "the answer is NaN".into(),
            Self::Infinite => "the answer is infinite".into(),
            Self::Stale => "the answer is older than five minutes".into(),
        }
    }

    /// Tells the user how to handle it.
    fn remedy(&self) -> String {
        let ask = |how: &str, field: &str| {
            format!("ask about it in the condition ({how}), or set answers.{field} of the metric")
        };
        match self {
            Self::Nil => ask("default(result, …)", "empty"),
            Self::Empty => ask("len(result) == 0 || …", "empty"),
            Self::Hollow => ask("len(result.…) == 0 || …", "empty"),
            Self::Part(path) => ask(&format!("len({path}) == 0 || …"), "empty"),
            Self::Nan => ask("isNaN(…) || …", "nan"),
            Self::Infinite => ask("isInf(…) || …", "infinite"),
            Self::Stale => "set answers.stale of the metric if that is all right".into(),
        }
    }

    /// The verdict if no condition checks for it.
    fn judgement(&self, reading: Option<Reading>) -> Judgement {
        let words = self.words();
        let (phase, message) = match reading {
            Some(Reading::Failed) => (Phase::Failed, words),
            Some(Reading::Inconclusive) => (Phase::Inconclusive, words),
            Some(Reading::Successful) => (Phase::Successful, words),
            Some(Reading::Error | Reading::Judge) | None => {
                (Phase::Error, format!("{words}; {}", self.remedy()))
            }
        };
        Judgement { phase, message }
    }
}

/// Whether a document contains only empty values.
fn is_hollow(document: &Value) -> bool {
    match document {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.iter().all(is_hollow),
        Value::Object(fields) => fields.values().all(is_hollow),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Judges the answer to a metric.
pub fn judge(metric: &Metric, reply: &Reply, now: Timestamp, hide: Hide<'_>) -> Judgement {
    let void = Void::of(reply, now);
    let policy = void.as_ref().and_then(|void| void.policy(metric));
    match (void, policy) {
        (Some(void), Some(reading)) if reading != Reading::Judge => void.judgement(policy),
        // All conditions are evaluated.
        (_, Some(_)) => verdict(metric, reply, now, None, hide),
        (void, None) => verdict(metric, reply, now, void, hide),
    }
}

/// Judges a missing answer to a metric.
pub fn unanswered(metric: &Metric, in_time: bool, why: String) -> Judgement {
    let policy = metric.answers.unwrap_or_default();
    let said = if in_time { policy.error } else { policy.timeout };
    let phase = match said.unwrap_or(Unanswered::Error) {
        Unanswered::Error => Phase::Error,
        Unanswered::Failed => Phase::Failed,
        Unanswered::Inconclusive => Phase::Inconclusive,
    };
    Judgement { phase, message: why }
}

/// The result of a condition.
enum Said<'m> {
    /// The condition is not set.
    Absent,
    /// It does not check for the missing value.
    Unasked,
    /// It was evaluated.
    Heard(&'static str, &'m str, Look),
}

/// The verdict of the conditions. If the answer is `void`, only those that check for that are evaluated.
fn verdict(metric: &Metric, reply: &Reply, now: Timestamp, void: Option<Void>, hide: Hide<'_>) -> Judgement {
    let answer = answer(&reply.data);
    let look = |field: &'static str, source: &str| {
        expr::look(source, &answer, now).map_err(|error| Judgement {
            phase: Phase::Error,
            message: format!(
                "{field} {:?} cannot be judged: {}",
                hide(source),
                why(&error, &reply.data)
            ),
        })
    };
    let mut said = [Said::Absent, Said::Absent];
    for (slot, (field, source)) in said.iter_mut().zip(both(metric)) {
        let Some(source) = source else { continue };
        *slot = if void.as_ref().is_none_or(|void| void.is_asked_in(source)) {
            match look(field, source) {
                Ok(look) => Said::Heard(field, source, look),
                Err(judgement) => return judgement,
            }
        } else {
            Said::Unasked
        };
    }
    let shown = || value(&reply.data, hide);
    let says = |field: &str, source: &str, holds: bool| {
        let word = if holds { "holds" } else { "does not hold" };
        format!("{field} {:?} {word} of {}", hide(source), shown())
    };
    let of_void = || void.clone().unwrap_or(Void::Nil).judgement(None);
    let judgement = |phase: Phase, message: String| Judgement { phase, message };
    // A success must be based on actual values.
    let good = |source: &str, look: &Look| match Void::seen(look, source) {
        Some(seen) => match seen.policy(metric) {
            Some(Reading::Successful | Reading::Judge) => judgement(Phase::Successful, String::new()),
            policy => seen.judgement(policy),
        },
        None => judgement(Phase::Successful, String::new()),
    };
    match &said {
        [_, Said::Heard(field, source, look)] if look.holds => {
            judgement(Phase::Failed, says(field, source, true))
        }
        [Said::Heard(field, source, look), Said::Absent] if !look.holds => {
            judgement(Phase::Failed, says(field, source, false))
        }
        [Said::Heard(_, _, success), Said::Heard(..)] if !success.holds => judgement(
            Phase::Inconclusive,
            format!("neither condition holds of {}", shown()),
        ),
        [Said::Heard(_, source, success), Said::Unasked] if success.holds => {
            // The success condition checks for the missing value. The failure condition may still hold.
            let failure = metric.failure_condition.as_deref().unwrap_or_default();
            match look("failureCondition", failure) {
                Ok(failure) if !failure.holds => good(source, success),
                Ok(_) => of_void(),
                Err(judgement) => judgement,
            }
        }
        [Said::Heard(_, source, success), Said::Absent | Said::Heard(..)] => good(source, success),
        [Said::Absent, Said::Heard(_, source, failure)] => good(source, failure),
        [Said::Absent, Said::Absent] if void.is_none() => judgement(Phase::Successful, String::new()),
        [Said::Heard(..) | Said::Unasked | Said::Absent, _] => of_void(),
    }
}

fn both(metric: &Metric) -> [(&'static str, Option<&str>); 2] {
    let given = |condition: &'_ Option<String>| condition.as_ref().is_some_and(|text| !text.is_empty());
    [
        (
            "successCondition",
            metric
                .success_condition
                .as_deref()
                .filter(|_| given(&metric.success_condition)),
        ),
        (
            "failureCondition",
            metric
                .failure_condition
                .as_deref()
                .filter(|_| given(&metric.failure_condition)),
        ),
    ]
}

fn conditions(metric: &Metric) -> impl Iterator<Item = (&'static str, &str)> {
    both(metric)
        .into_iter()
        .filter_map(|(field, source)| Some((field, source?)))
}

fn answer(data: &Data) -> Answer {
    match data {
        Data::Nothing => Answer::none(),
        Data::Number(number) => Answer::number(*number),
        Data::Numbers(numbers) => Answer::numbers(numbers.iter().copied()),
        Data::Document(document) => Answer::json(document),
        Data::Text(text) => Answer::text(text),
    }
}

/// An answer as a measurement shows it: numbers, scalars, and short JSON. Of other text and of long JSON only the size is shown: it
/// could be any page.
pub fn value(data: &Data, hide: Hide<'_>) -> String {
    let short = |text: &str| text.chars().nth(SHOWN).is_none();
    match data {
        Data::Text(text) => format!("text, {} bytes", text.len()),
        Data::Document(Value::String(text)) if short(text) => cut(&hide(text)),
        Data::Document(Value::String(text)) => format!("text, {} bytes", text.len()),
        Data::Document(document) => {
            let text = document.to_string();
            if short(&text) {
                cut(&hide(&text))
            } else {
                format!("JSON, {} bytes", text.len())
            }
        }
        // Redacted before it is cut: half a secret is still a secret.
        Data::Nothing | Data::Number(_) | Data::Numbers(_) => cut(&hide(&numbers(data))),
    }
}

fn numbers(data: &Data) -> String {
    let number = |number: &f64| {
        if number.is_infinite() {
            if *number > 0.0 {
                "+Inf".into()
            } else {
                "-Inf".into()
            }
        } else {
            number.to_string()
        }
    };
    match data {
        Data::Number(one) => number(one),
        Data::Numbers(numbers) => {
            // Each number takes at least a digit and a comma, so no more than this can be shown.
            let numbers: Vec<_> = numbers.iter().take(SHOWN).map(number).collect();
            format!("[{}]", numbers.join(","))
        }
        Data::Nothing | Data::Document(_) | Data::Text(_) => "[]".into(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Why a condition cannot be evaluated. For a document or a text the error is not shown: redaction finds whole secrets, not parts of them.
fn why(error: &expr::ExprError, data: &Data) -> String {
    match (error, data) {
        (expr::ExprError::Run(error), Data::Document(_) | Data::Text(_)) => {
            format!("{}: {}", error.place, error.without_values)
        }
        (expr::ExprError::Run(error), Data::Nothing | Data::Number(_) | Data::Numbers(_)) => {
            format!("{}: {}", error.place, error.message)
        }
        // It quotes only the source.
        (expr::ExprError::Compile(error), _) => format!("{}: {}", error.place, error.message),
    }
}

/// A range of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The start.
    pub start: Timestamp,
    /// The end.
    pub end: Timestamp,
    /// The distance between two values.
    pub step: SignedDuration,
}

/// Evaluates the expressions of a range query at `now`.
pub fn range(query: &RangeQuery, now: Timestamp) -> Result<Range, String> {
    let moment = |field: &str, source: &str| {
        let moment =
            Moment::compile(source).map_err(|error| format!("rangeQuery.{field}: {}", error.message));
        moment?
            .at(now)
            .map_err(|error| format!("rangeQuery.{field}: {}", error.message))
    };
    let (start, end) = (moment("start", &query.start)?, moment("end", &query.end)?);
    if start >= end {
        return Err("rangeQuery.start is not before rangeQuery.end".into());
    }
    Ok(Range {
        start,
        end,
        step: step(query).ok_or("rangeQuery.step is not a duration such as 1m")?,
    })
}

fn step(query: &RangeQuery) -> Option<SignedDuration> {
    duration::go(&query.step).filter(|step| *step > SignedDuration::ZERO)
}

/// All problems of the expressions of the metrics at `path`. Expressions with unresolved args are skipped.
pub fn problems(metrics: &[Metric], path: &str) -> Vec<Problem> {
    let mut room = PATTERNS;
    let metrics = metrics.iter().enumerate();
    metrics
        .flat_map(|(index, metric)| metric_problems(metric, &format!("{path}[{index}]"), &mut room))
        .collect()
}

/// How many bytes the compiled patterns in all conditions of a run may take.
pub const PATTERNS: usize = 4 * 1024 * 1024;

/// The problems of the metric at `path`. Its patterns reduce `room`, the bytes that are left for the patterns of the run.
pub fn metric_problems(metric: &Metric, path: &str, room: &mut usize) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut problem = |field: String, message: String| problems.push(Problem { field, message });
    for (field, source) in conditions(metric).filter(|(_, source)| !is_open(source)) {
        match Condition::check(source) {
            Ok(bytes) if bytes > *room => {
                let message = "the patterns in the conditions of all metrics are too large together";
                problem(format!("{path}.{field}"), message.into());
            }
            Ok(bytes) => *room -= bytes,
            Err(error) => {
                let message = format!("{source:?} is no condition: {}: {}", error.place, error.message);
                problem(format!("{path}.{field}"), message);
            }
        }
    }
    let prometheus = metric.provider.prometheus.as_ref();
    let Some(query) = prometheus.and_then(|prometheus| prometheus.range_query.as_ref()) else {
        return problems;
    };
    let field = |name: &str| format!("{path}.provider.prometheus.rangeQuery.{name}");
    for (name, source) in [("start", &query.start), ("end", &query.end)] {
        if !is_open(source)
            && let Err(error) = Moment::compile(source)
        {
            let message = format!("{source:?} is no time: {}: {}", error.place, error.message);
            problem(field(name), message);
        }
    }
    if !is_open(&query.step) && step(query).is_none() {
        problem(
            field("step"),
            format!("{:?} is not a duration such as 30s or 1m", query.step),
        );
    }
    problems
}

#[cfg(test)]
mod tests;
