//! What an answer means (rule 13).
//!
//! No data is not success. An answer that has nothing to judge goes to the conditions that ask about just that, and is an error
//! where the one that would make it good does not, however it would read it: of an empty list `all` is true, and NaN is above
//! no limit. The metric may say what to make of it. The same holds for a list in the answer that is empty where a condition
//! goes through it.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use stateward_api::Problem;
use stateward_api::analysis::validate::is_open;
use stateward_api::analysis::{Metric, Phase, RangeQuery, Reading, Unanswered};
use stateward_api::duration;

use super::reply::{Data, Reply};
use crate::expr::{self, Answer, Condition, Look, Moment};

/// How old an answer may be.
const FRESH: SignedDuration = SignedDuration::from_mins(5);

/// How much of an answer is shown.
const SHOWN: usize = 256;

/// Takes out of a text what nobody may read. Conditions judge what was answered; people are shown this.
pub type Hide<'h> = &'h dyn Fn(&str) -> String;

/// What a measurement comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Where it stands.
    pub phase: Phase,
    /// Why.
    pub message: String,
}

/// An answer with nothing to judge.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Void {
    /// Nothing at all.
    Nil,
    /// An empty list or text.
    Empty,
    /// A document in which nothing but empty things stand.
    Hollow,
    /// A list in a document, at this path.
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

    /// A text that reads as a number is one to `asFloat`.
    fn of_text(text: &str) -> Option<Self> {
        let word = text.trim().to_ascii_lowercase();
        match word.trim_start_matches(['+', '-']) {
            "" => word.is_empty().then_some(Self::Empty),
            "nan" => Some(Self::Nan),
            "inf" | "infinity" => Some(Self::Infinite),
            _ => None,
        }
    }

    /// What a condition came past although it does not ask about it.
    fn seen(look: &Look, source: &str) -> Option<Self> {
        let seen = [
            look.over_nothing.clone().map(Self::Part),
            look.nan.then_some(Self::Nan),
            look.infinite.then_some(Self::Infinite),
        ];
        seen.into_iter().flatten().find(|void| !void.is_asked_in(source))
    }

    /// What the metric says of it.
    fn policy(&self, metric: &Metric) -> Option<Reading> {
        let policy = metric.answers.unwrap_or_default();
        match self {
            Self::Nil | Self::Empty | Self::Hollow | Self::Part(_) => policy.empty,
            Self::Nan => policy.nan,
            Self::Infinite => policy.infinite,
            Self::Stale => policy.stale,
        }
    }

    /// Whether a condition asks about just that.
    fn is_asked_in(&self, source: &str) -> bool {
        const NIL: [&str; 5] = ["isNil", "default", "nil", "??", "?."];
        match self {
            Self::Nil => expr::mentions(source, &NIL) || expr::measures_result(source),
            Self::Empty => expr::measures_result(source),
            Self::Hollow => expr::mentions(source, &NIL) || expr::measures_any(source),
            // Whoever found it has looked for its length.
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

    /// How to say what to make of it.
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

    /// What it comes to where no condition says.
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

/// Whether nothing but empty things stand in a document.
fn is_hollow(document: &Value) -> bool {
    match document {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.iter().all(is_hollow),
        Value::Object(fields) => fields.values().all(is_hollow),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// What an answer to a metric means.
pub fn judge(metric: &Metric, reply: &Reply, now: Timestamp, hide: Hide<'_>) -> Judgement {
    let void = Void::of(reply, now);
    let policy = void.as_ref().and_then(|void| void.policy(metric));
    match (void, policy) {
        (Some(void), Some(reading)) if reading != Reading::Judge => void.judgement(policy),
        // Every condition is asked.
        (_, Some(_)) => verdict(metric, reply, now, None, hide),
        (void, None) => verdict(metric, reply, now, void, hide),
    }
}

/// What it means that there is no answer to a metric.
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

/// What there is to a condition.
enum Said<'m> {
    /// It is not given.
    Absent,
    /// It does not ask about what there is to judge.
    Unasked,
    /// It was looked at.
    Heard(&'static str, &'m str, Look),
}

/// What the conditions say. Where the answer is `void`, those that ask about it.
fn verdict(metric: &Metric, reply: &Reply, now: Timestamp, void: Option<Void>, hide: Hide<'_>) -> Judgement {
    let answer = answer(&reply.data);
    let look = |field: &'static str, source: &str| {
        expr::look(source, &answer, now).map_err(|error| Judgement {
            phase: Phase::Error,
            message: format!(
                "{field} {:?} cannot be judged: {}",
                hide(source),
                why(&error, source, &reply.data)
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
    // What makes an answer good has to have something to go by.
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
            // That it is good was asked for. The other one may say no all the same.
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

/// An answer as a measurement shows it: numbers, scalars, and JSON that is short. Of text that is no JSON, and of JSON that is long,
/// only the size is shown: it may be anybody's page.
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
        // Before it is cut short: half a secret is one too.
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
            // Each has a digit and a comma: no more than these can be shown.
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

/// Why a condition cannot be judged. What the error quotes of the answer is left out where the answer itself is not shown.
fn why(error: &expr::ExprError, source: &str, data: &Data) -> String {
    // The snippet below it is for terminals.
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let quotes_answer = |quoted: &str, is_cut: bool| match data {
        Data::Text(_) => !source.contains(quoted),
        Data::Document(_) => !source.contains(quoted) && (is_cut || quoted.chars().nth(SHOWN).is_some()),
        Data::Nothing | Data::Number(_) | Data::Numbers(_) => false,
    };
    if matches!(error, expr::ExprError::Compile(_)) {
        return line.to_owned();
    }
    let (mut shown, mut rest) = (String::new(), line);
    while let Some((before, from)) = rest.split_once('"') {
        let end = closing_quote(from);
        let quoted = &from[..end];
        shown.push_str(before);
        let after = from.get(end + 1..).unwrap_or_default();
        let cut = after.strip_prefix('…');
        if quotes_answer(quoted, cut.is_some()) {
            shown.push_str("the text");
            rest = cut.unwrap_or(after);
        } else {
            shown.push_str(&rest[before.len()..(before.len() + end + 2).min(rest.len())]);
            rest = after;
        }
    }
    shown + rest
}

/// Where the quote ends that a text begins in: at its end, if nowhere before.
fn closing_quote(text: &str) -> usize {
    let mut escaped = false;
    let closes = |c: char| {
        let closes = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        closes
    };
    text.find(closes).unwrap_or(text.len())
}

/// A range of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// From when.
    pub start: Timestamp,
    /// To when.
    pub end: Timestamp,
    /// The distance of two values.
    pub step: SignedDuration,
}

/// What the expressions of a range query come to when it is `now`.
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

/// Everything that is wrong with the expressions of the metrics at `path`. What waits for its args is passed over.
pub fn problems(metrics: &[Metric], path: &str) -> Vec<Problem> {
    let mut room = PATTERNS;
    let metrics = metrics.iter().enumerate();
    metrics
        .flat_map(|(index, metric)| metric_problems(metric, &format!("{path}[{index}]"), &mut room))
        .collect()
}

/// Bytes that the patterns in all conditions of a run may take when they are compiled.
pub const PATTERNS: usize = 4 * 1024 * 1024;

/// The same of the metric at `path`, whose patterns take of the `room` that there is for those of its run.
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
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn metric(patch: Value) -> Metric {
        let mut metric = json!({"name": "errors", "provider": {"prometheus": {"query": "up"}}});
        json_patch::merge(&mut metric, &patch);
        serde_json::from_value(metric).unwrap()
    }

    fn reply(data: Data) -> Reply {
        Reply {
            data,
            newest: Some(NOW),
            series: None,
            notes: std::collections::BTreeMap::new(),
        }
    }

    fn phase(patch: Value, data: Data) -> Phase {
        judge(&metric(patch), &reply(data), NOW, &str::to_owned).phase
    }

    #[rstest]
    #[case(json!({"successCondition": "result[0] >= 0.95"}), 0.97, Phase::Successful)]
    #[case(json!({"successCondition": "result[0] >= 0.95"}), 0.5, Phase::Failed)]
    #[case(json!({"failureCondition": "result[0] > 0.05"}), 0.01, Phase::Successful)]
    #[case(json!({"failureCondition": "result[0] > 0.05"}), 0.1, Phase::Failed)]
    #[case(json!({"successCondition": "result[0] < 1", "failureCondition": "result[0] > 5"}), 3.0, Phase::Inconclusive)]
    #[case(json!({"successCondition": "result[0] < 9", "failureCondition": "result[0] > 5"}), 7.0, Phase::Failed)]
    #[case(json!({}), 7.0, Phase::Successful)]
    #[case(json!({"successCondition": "result[7] < 1"}), 7.0, Phase::Error)]
    #[case(json!({"successCondition": "result[0]"}), 7.0, Phase::Error)]
    fn conditions_judge_as_argos_do(#[case] patch: Value, #[case] number: f64, #[case] expected: Phase) {
        assert_eq!(phase(patch, Data::Numbers(vec![number])), expected);
    }

    /// Rule 13: each of these would be a success to a condition that does not ask about it.
    #[rstest]
    #[case::empty(Data::Numbers(vec![]))]
    #[case::nothing(Data::Nothing)]
    #[case::null(Data::Document(Value::Null))]
    #[case::nan(Data::Numbers(vec![1.0, f64::NAN]))]
    #[case::infinite(Data::Numbers(vec![f64::NEG_INFINITY]))]
    #[case::hollow(Data::Document(json!({})))]
    #[case::hollow_deep_down(Data::Document(json!({"data": {"errors": [], "name": ""}, "at": null})))]
    #[case::hollow_list(Data::Document(json!([[], {}])))]
    #[case::text_nan(Data::Text("NaN".into()))]
    #[case::text_infinite(Data::Text("+Inf".into()))]
    fn no_data_is_no_success(
        #[case] data: Data,
        #[values(
            json!({"failureCondition": "any(result, # > 5)"}),
            json!({"successCondition": "all(result, !(# > 5))"}),
            json!({"successCondition": "len(filter(result, # > 5)) == 0"}),
            json!({"successCondition": "count(result, # > 5) == 0"}),
            json!({}),
        )]
        patch: Value,
    ) {
        assert_eq!(phase(patch, data), Phase::Error);
    }

    #[rstest]
    #[case(json!({"successCondition": "len(result) == 0 || result[0] < 5"}), Data::Numbers(vec![]), Phase::Successful)]
    #[case(json!({"successCondition": "isNaN(result[0]) || result[0] < 5"}), Data::Numbers(vec![f64::NAN]), Phase::Successful)]
    #[case(json!({"failureCondition": "isNaN(result[0])"}), Data::Numbers(vec![f64::NAN]), Phase::Failed)]
    #[case(json!({"successCondition": "default(result, 0) < 5"}), Data::Nothing, Phase::Successful)]
    #[case(json!({"successCondition": "result == nil"}), Data::Nothing, Phase::Successful)]
    #[case(json!({"successCondition": "isNaN(asFloat(result)) || asFloat(result) < 5"}), Data::Text("NaN".into()), Phase::Successful)]
    #[case(json!({"successCondition": "len(result.items) == 0"}), Data::Document(json!({"items": []})), Phase::Successful)]
    #[case(json!({"successCondition": "(result.count ?? 0) < 5"}), Data::Document(json!({})), Phase::Successful)]
    #[case(json!({"successCondition": "result[0] < 5", "answers": {"empty": "Successful"}}), Data::Numbers(vec![]), Phase::Successful)]
    #[case(json!({"successCondition": "result[0] < 5", "answers": {"nan": "Inconclusive"}}), Data::Numbers(vec![f64::NAN]), Phase::Inconclusive)]
    #[case(json!({"successCondition": "len(result) == 0", "answers": {"empty": "Failed"}}), Data::Numbers(vec![]), Phase::Failed)]
    fn whoever_says_what_to_make_of_it_is_heard(
        #[case] patch: Value,
        #[case] data: Data,
        #[case] expected: Phase,
    ) {
        assert_eq!(phase(patch, data), expected);
    }

    const GOOD: &str = "all(result, # < 5)";
    const BAD: &str = "any(result, # > 9)";
    const ASKS_IF_GOOD: &str = "len(result) == 0 || result[0] < 5";
    const ASKS_IF_BAD: &str = "len(result) > 3 || any(result, # > 9)";

    /// Rule 13: a condition asks for itself and for no other.
    #[rstest]
    #[case::the_other_one_asks(GOOD, ASKS_IF_BAD, Phase::Error)]
    #[case::the_other_one_asks_and_holds(GOOD, "len(result) == 0", Phase::Failed)]
    #[case::the_good_one_asks(ASKS_IF_GOOD, BAD, Phase::Successful)]
    #[case::the_good_one_asks_and_the_other_cannot_tell(ASKS_IF_GOOD, "result[0] > 9", Phase::Error)]
    #[case::the_good_one_asks_and_the_other_says_no(ASKS_IF_GOOD, "none(result, # < 9)", Phase::Error)]
    #[case::the_good_one_asks_and_does_not_hold("len(result) > 0", BAD, Phase::Error)]
    #[case::both_ask(ASKS_IF_GOOD, ASKS_IF_BAD, Phase::Successful)]
    #[case::neither_holds("len(result) > 0", ASKS_IF_BAD, Phase::Inconclusive)]
    #[case::nil_is_no_empty_list("result != nil && all(result, # < 5)", "", Phase::Error)]
    #[case::nor_is_default("default(result, 0) != 0", "", Phase::Error)]
    fn a_condition_asks_for_itself(#[case] success: &str, #[case] failure: &str, #[case] expected: Phase) {
        let patch = json!({"successCondition": success, "failureCondition": failure});
        assert_eq!(phase(patch, Data::Numbers(vec![])), expected);
    }

    /// Rule 13: what is empty or none somewhere in an answer makes nothing good either.
    #[rstest]
    #[case(json!({"successCondition": "all(result.errors, # < 5)"}), Phase::Error)]
    #[case(json!({"failureCondition": "any(result.errors, # > 5)"}), Phase::Error)]
    #[case(json!({"successCondition": "len(result.errors) == 0"}), Phase::Successful)]
    #[case(json!({"successCondition": "result.status == 'up'", "failureCondition": "any(result.errors, # > 5)"}), Phase::Successful)]
    #[case(json!({"successCondition": "none(result.errors, # > 5)", "answers": {"empty": "Successful"}}), Phase::Successful)]
    #[case(json!({"successCondition": "none(result.errors, # > 5)", "answers": {"empty": "Inconclusive"}}), Phase::Inconclusive)]
    #[case(json!({"failureCondition": "none(result.errors, # < 5)"}), Phase::Failed)]
    #[case(json!({"failureCondition": "asFloat(result.rate) > 5"}), Phase::Error)]
    #[case(json!({"successCondition": "asFloat(result.rate) < 5"}), Phase::Failed)]
    #[case(json!({"failureCondition": "!isNaN(asFloat(result.rate)) && asFloat(result.rate) > 5"}), Phase::Successful)]
    #[case(json!({"successCondition": "asFloat(result.max) > 5"}), Phase::Error)]
    #[case(json!({"failureCondition": "result.failed / result.all > 0.05"}), Phase::Error)]
    fn nothing_in_a_part_of_an_answer_is_no_success(#[case] patch: Value, #[case] expected: Phase) {
        let document = json!({
            "status": "up", "errors": [], "rate": "NaN", "max": "+Inf", "failed": 0, "all": 0,
        });
        assert_eq!(phase(patch, Data::Document(document)), expected);
    }

    #[test]
    fn what_is_hidden_is_judged_and_not_shown() {
        let hide = |text: &str| text.replace("ok", "*****");
        let metric = metric(json!({"successCondition": "result.status == \"ok\""}));
        let answer = |status: &str| reply(Data::Document(json!({"status": status})));
        assert_eq!(judge(&metric, &answer("ok"), NOW, &hide).phase, Phase::Successful);
        let failed = judge(&metric, &answer("not ok"), NOW, &hide);
        assert_eq!(failed.phase, Phase::Failed);
        assert!(!failed.message.contains("ok"), "{}", failed.message);
        assert_eq!(value(&answer("ok").data, &hide), r#"{"status":"*****"}"#);
        let long = Data::Document(json!(format!("{}ok", "x".repeat(SHOWN - 2))));
        assert!(
            !value(&long, &hide).contains('o'),
            "half of it is not shown either"
        );
    }

    const PAGE: &str = "<html>s3cr3t</html>";

    #[rstest]
    #[case(Data::Nothing, "[]")]
    #[case(Data::Number(0.25), "0.25")]
    #[case(Data::Number(f64::NEG_INFINITY), "-Inf")]
    #[case(Data::Numbers(vec![0.5, f64::INFINITY]), "[0.5,+Inf]")]
    #[case(Data::Document(json!(true)), "true")]
    #[case(Data::Document(json!("up")), "up")]
    #[case(Data::Document(json!({"status": "up"})), r#"{"status":"up"}"#)]
    #[case(Data::Document(json!([1, "x"])), r#"[1,"x"]"#)]
    #[case(Data::Document(json!({"page": PAGE.repeat(20)})), "JSON, 391 bytes")]
    #[case(Data::Document(json!(PAGE.repeat(20))), "text, 380 bytes")]
    #[case(Data::Text(PAGE.into()), "text, 19 bytes")]
    #[case(Data::Text("up".into()), "text, 2 bytes")]
    #[case(Data::Text(String::new()), "text, 0 bytes")]
    fn of_an_answer_scalars_and_short_json_are_shown(#[case] data: Data, #[case] expected: &str) {
        assert_eq!(value(&data, &str::to_owned), expected);
    }

    #[test]
    fn many_numbers_are_cut_short() {
        let shown = value(&Data::Numbers(vec![1.0; 100_000]), &str::to_owned);
        assert_eq!(shown.chars().count(), SHOWN + 1);
        assert!(shown.starts_with("[1,1,") && shown.ends_with('…'), "{shown}");
    }

    #[rstest]
    #[case(Data::Text("a\"b".into()), "asFloat(result) > 1", "the text is not a number")]
    #[case(Data::Document(json!("abc")), "asFloat(result) > 1", r#""abc" is not a number"#)]
    #[case(Data::Document(json!("abc".repeat(100))), "asFloat(result) > 1", "the text is not a number")]
    #[case(Data::Text("x".into()), "asFloat('abc') > 1", r#""abc" is not a number"#)]
    fn an_error_quotes_what_is_shown_anyway(
        #[case] data: Data,
        #[case] condition: &str,
        #[case] expected: &str,
    ) {
        let metric = metric(json!({"successCondition": condition}));
        let message = judge(&metric, &reply(data), NOW, &str::to_owned).message;
        assert!(message.ends_with(expected), "{message}");
    }

    /// Whatever a condition makes of it, fails at, or says, the page stays out.
    #[rstest]
    fn no_message_shows_a_text_that_is_no_json(
        #[values(
            "result == 'x'",
            "result matches 's3cr3t$'",
            "result.a == 1",
            "result[0] == 1",
            "result",
            "result + 1 == 2",
            "asFloat(result) > 1",
            "asInt(result) > 1",
            "fromJSON(result).a == 1",
            "int(result) > 1",
            "float(result) > 1",
            "date(result) > now()",
            "duration(result) > duration('1s')",
            "toJSON(result) == 1",
            "result > 1",
            "-result == 1",
            "result in [1]",
            "result ? true : false",
            "map(result, #)[0] == 1",
            "{'a': 1}[result] == 1",
            "fromBase64(result) == 'x'"
        )]
        condition: &str,
        #[values("successCondition", "failureCondition")] field: &str,
    ) {
        let metric = metric(json!({field: condition}));
        let judgement = judge(&metric, &reply(Data::Text(PAGE.into())), NOW, &str::to_owned);
        let message = judgement
            .message
            .replace(condition, "")
            .replace(&format!("{condition:?}"), "");
        assert!(
            !message.contains("html") && !message.contains("s3cr3t"),
            "{message}"
        );
    }

    /// Rule 13
    #[rstest]
    #[case(json!({}), true, Phase::Error)]
    #[case(json!({}), false, Phase::Error)]
    #[case(json!({"answers": {"timeout": "Failed"}}), false, Phase::Failed)]
    #[case(json!({"answers": {"timeout": "Failed"}}), true, Phase::Error)]
    #[case(json!({"answers": {"error": "Inconclusive"}}), true, Phase::Inconclusive)]
    #[case(json!({"answers": {"error": "Inconclusive"}}), false, Phase::Error)]
    fn no_answer_counts_as_the_metric_says(
        #[case] patch: Value,
        #[case] in_time: bool,
        #[case] expected: Phase,
    ) {
        let judgement = unanswered(&metric(patch), in_time, "connection refused".into());
        assert_eq!(judgement.phase, expected);
    }

    #[test]
    fn an_old_answer_is_an_error() {
        let metric = metric(json!({"successCondition": "result[0] < 5"}));
        let mut old = reply(Data::Numbers(vec![1.0]));
        old.newest = Some(NOW - SignedDuration::from_mins(6));
        let judgement = judge(&metric, &old, NOW, &str::to_owned);
        assert_eq!(judgement.phase, Phase::Error);
        assert!(judgement.message.contains("five minutes"));
    }

    #[test]
    fn a_failure_says_which_condition_and_of_what() {
        let metric = metric(json!({"successCondition": "result[0] >= 0.95"}));
        let judgement = judge(
            &metric,
            &reply(Data::Numbers(vec![0.5, f64::INFINITY])),
            NOW,
            &str::to_owned,
        );
        assert_eq!(judgement.phase, Phase::Error);
        let judgement = judge(&metric, &reply(Data::Numbers(vec![0.5])), NOW, &str::to_owned);
        assert_eq!(
            judgement.message,
            r#"successCondition "result[0] >= 0.95" does not hold of [0.5]"#
        );
    }

    #[test]
    fn a_range_is_counted_from_now() {
        let query = RangeQuery {
            start: r#"now() - duration("5m")"#.into(),
            end: "now()".into(),
            step: "1m".into(),
        };
        let range = range(&query, NOW).unwrap();
        assert_eq!(
            range.end.duration_since(range.start),
            SignedDuration::from_mins(5)
        );
    }

    #[test]
    fn what_is_no_expression_is_told_before_it_runs() {
        let query = json!({"start": "yesterday", "end": "now()", "step": "x"});
        let metrics = [metric(json!({
            "successCondition": "result[0] >=", "failureCondition": "{{args.condition}}",
            "provider": {"prometheus": {"rangeQuery": query}},
        }))];
        let told: Vec<_> = problems(&metrics, "metrics")
            .into_iter()
            .map(|problem| problem.field)
            .collect();
        assert_eq!(
            told,
            [
                "metrics[0].successCondition",
                "metrics[0].provider.prometheus.rangeQuery.start",
                "metrics[0].provider.prometheus.rangeQuery.step"
            ]
        );
    }
}
