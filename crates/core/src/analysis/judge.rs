//! What an answer means (rule 13).
//!
//! No data is not success. An answer that has nothing to judge goes to the conditions only where one of them asks about just
//! that, or where the metric says what to make of it; otherwise it is an error, however the conditions would read it: of an
//! empty list `all` is true, and NaN is above no limit.

use jiff::{SignedDuration, Timestamp};
use stateward_api::Problem;
use stateward_api::analysis::validate::is_open;
use stateward_api::analysis::{Metric, Phase, RangeQuery, Reading, Unanswered};
use stateward_api::duration;

use super::reply::{Data, Reply};
use crate::expr::{self, Answer, Condition, Moment};

/// How old an answer may be.
const FRESH: SignedDuration = SignedDuration::from_mins(5);

/// How much of an answer is shown.
const SHOWN: usize = 256;

/// What a measurement comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Where it stands.
    pub phase: Phase,
    /// Why.
    pub message: String,
}

/// An answer with nothing to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Void {
    Empty,
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
            Data::Nothing => return Some(Self::Empty),
            Data::Number(number) => std::slice::from_ref(number),
            Data::Numbers(numbers) => numbers.as_slice(),
            Data::Document(document) => {
                let empty = document.is_null() || document.as_array().is_some_and(Vec::is_empty);
                return empty.then_some(Self::Empty);
            }
            Data::Text(text) => return text.trim().is_empty().then_some(Self::Empty),
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

    /// What the metric makes of it.
    fn reading(self, metric: &Metric) -> Reading {
        let policy = metric.answers.unwrap_or_default();
        let (said, words): (_, &[&str]) = match self {
            Self::Empty => (policy.empty, &["isNil", "default", "nil", "??"]),
            Self::Nan => (policy.nan, &["isNaN"]),
            Self::Infinite => (policy.infinite, &["isInf"]),
            Self::Stale => (policy.stale, &[]),
        };
        said.unwrap_or_else(|| {
            let asks = |source: &str| {
                expr::mentions(source, words) || (self == Self::Empty && expr::measures_result(source))
            };
            if conditions(metric).any(|(_, source)| asks(source)) {
                Reading::Judge
            } else {
                Reading::Error
            }
        })
    }

    fn words(self) -> &'static str {
        match self {
            Self::Empty => "there is no data",
            Self::Nan => "the answer is NaN",
            Self::Infinite => "the answer is infinite",
            Self::Stale => "the answer is older than five minutes",
        }
    }

    /// How to say what to make of it.
    fn remedy(self) -> &'static str {
        match self {
            Self::Empty => {
                "ask about it in the condition (len(result) == 0 || …), or set answers.empty of the metric"
            }
            Self::Nan => "ask about it in the condition (isNaN(…) || …), or set answers.nan of the metric",
            Self::Infinite => {
                "ask about it in the condition (isInf(…) || …), or set answers.infinite of the metric"
            }
            Self::Stale => "set answers.stale of the metric if that is all right",
        }
    }
}

/// What an answer to a metric means.
pub fn judge(metric: &Metric, reply: &Reply, now: Timestamp) -> Judgement {
    if let Some(void) = Void::of(reply, now) {
        let words = void.words();
        let (phase, message) = match void.reading(metric) {
            Reading::Judge => return verdict(metric, reply, now),
            Reading::Error => (Phase::Error, format!("{words}; {}", void.remedy())),
            Reading::Failed => (Phase::Failed, words.into()),
            Reading::Inconclusive => (Phase::Inconclusive, words.into()),
            Reading::Successful => (Phase::Successful, words.into()),
        };
        return Judgement { phase, message };
    }
    verdict(metric, reply, now)
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

/// What the conditions say.
fn verdict(metric: &Metric, reply: &Reply, now: Timestamp) -> Judgement {
    let answer = answer(&reply.data);
    let mut held = [None, None];
    for (slot, (field, source)) in held.iter_mut().zip(both(metric)) {
        let Some(source) = source else { continue };
        match expr::holds(source, &answer, now) {
            Ok(holds) => *slot = Some((field, source, holds)),
            Err(error) => {
                return Judgement {
                    phase: Phase::Error,
                    message: format!("{field} {source:?} cannot be judged: {}", first_line(&error)),
                };
            }
        }
    }
    let shown = || cut(&value(&reply.data));
    let says = |(field, source, holds): (&str, &str, bool)| {
        let word = if holds { "holds" } else { "does not hold" };
        format!("{field} {source:?} {word} of {}", shown())
    };
    let (phase, message) = match held {
        [None, None] => (Phase::Successful, String::new()),
        [_, Some(failure)] if failure.2 => (Phase::Failed, says(failure)),
        [Some(success), None] if !success.2 => (Phase::Failed, says(success)),
        [Some(success), Some(_)] if !success.2 => (
            Phase::Inconclusive,
            format!("neither condition holds of {}", shown()),
        ),
        _ => (Phase::Successful, String::new()),
    };
    Judgement { phase, message }
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

/// An answer as a measurement shows it.
pub fn value(data: &Data) -> String {
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
        Data::Nothing => "[]".into(),
        Data::Number(one) => number(one),
        Data::Numbers(numbers) => {
            let numbers: Vec<_> = numbers.iter().map(number).collect();
            cut(&format!("[{}]", numbers.join(",")))
        }
        Data::Document(document) => cut(&document.to_string()),
        Data::Text(text) => cut(text),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The snippet below it is for terminals.
fn first_line(error: &expr::ExprError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
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
    let mut problems = Vec::new();
    let mut problem = |field: String, message: String| problems.push(Problem { field, message });
    for (index, metric) in metrics.iter().enumerate() {
        for (field, source) in conditions(metric).filter(|(_, source)| !is_open(source)) {
            if let Err(error) = Condition::check(source) {
                let message = format!("{source:?} is no condition: {}: {}", error.place, error.message);
                problem(format!("{path}[{index}].{field}"), message);
            }
        }
        let prometheus = metric.provider.prometheus.as_ref();
        let Some(query) = prometheus.and_then(|prometheus| prometheus.range_query.as_ref()) else {
            continue;
        };
        let field = |name: &str| format!("{path}[{index}].provider.prometheus.rangeQuery.{name}");
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
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

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
            notes: std::collections::BTreeMap::new(),
        }
    }

    fn phase(patch: Value, data: Data) -> Phase {
        judge(&metric(patch), &reply(data), NOW).phase
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
        let judgement = judge(&metric, &old, NOW);
        assert_eq!(judgement.phase, Phase::Error);
        assert!(judgement.message.contains("five minutes"));
    }

    #[test]
    fn a_failure_says_which_condition_and_of_what() {
        let metric = metric(json!({"successCondition": "result[0] >= 0.95"}));
        let judgement = judge(&metric, &reply(Data::Numbers(vec![0.5, f64::INFINITY])), NOW);
        assert_eq!(judgement.phase, Phase::Error);
        let judgement = judge(&metric, &reply(Data::Numbers(vec![0.5])), NOW);
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
