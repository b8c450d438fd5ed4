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

/// Rule 13: each of these would be a success to a condition that does not check for it.
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

/// Rule 13: a check in one condition does not count for the other.
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

/// Rule 13: an empty or missing value inside an answer is not a success either.
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
#[case(Data::Document(json!("abc")), "asFloat(result) > 1", "the text is not a number")]
#[case(Data::Document(json!("abc".repeat(100))), "asFloat(result) > 1", "the text is not a number")]
#[case(Data::Text("x".into()), "asFloat('abc') > 1", "the text is not a number")]
#[case(Data::Document(json!({"a": null, "b": 1})), "result.a.b == 1", "nil has no field b")]
#[case(Data::Document(json!({"a": [1]})), "result.a[3] == 1", "there is no such element in the list; len() tells how many there are")]
#[case(
    Data::Number(7.0),
    "asFloat(string(result) + 'x') > 1",
    r#""7x" is not a number"#
)]
fn an_error_quotes_numbers_and_the_condition_only(
    #[case] data: Data,
    #[case] condition: &str,
    #[case] expected: &str,
) {
    let metric = metric(json!({"successCondition": condition}));
    let message = judge(&metric, &reply(data), NOW, &str::to_owned).message;
    assert!(message.ends_with(expected), "{message}");
}

/// Whatever a condition computes, fails at or reports, the page is not shown.
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
        "fromBase64(result) == 'x'",
        "fromJSON('5')[result] == 1",
        "fromJSON('5')?.[result] == 1",
        "get(fromJSON('5'), result) == 1",
        "'x' matches ('[[:' + result[6:12] + ':]]')",
        "'x' matches ('(?' + result[6:12] + ')')",
        "'x' matches ('[' + result[6:12] + 'b-a]')",
        "'x' matches ('[' + result[6:7] + '-a]')",
        "'x' matches (result[6:12] + '(')",
        "'x' matches ('\\\\' + result[0:12])",
        "int(result[6:12]) == 1",
        "float(result[6:12]) == 1",
        "duration(result[6:12]) == duration('1s')",
        "date(result[6:12]) == now()",
        "[1][result[6]] == 1",
        "join([1, result], '') == 'x'",
        "fromPairs([[result, 1, 2]]) == 1",
        "date('2026-01-31').Format(result) == 1"
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
    // `s` is byte 115.
    for part in ["html", "s3cr3t", "'s'", "115"] {
        assert!(!message.contains(part), "{message}");
    }
}

/// A computed number can be a part of the answer, too.
#[rstest]
fn no_message_shows_a_number_of_an_answer(
    #[values(
        "[1][asInt(result.v)] == 1",
        "result.list[asInt(result.v)] == 1",
        "(1..asInt(result.v))[9999] == 1",
        "repeat('x', asInt(result.v))[9999] == 1",
        "take([1], -asInt(result.v)) == [1]",
        "repeat('x', -asInt(result.v)) == 'x'",
        "bitshl(1, -asInt(result.v)) == 1",
        "join(concat(map(1..4711, 'x'), [1]), '') == 'x'",
        "fromPairs([1..asInt(result.v)]) == 1",
        "fromJSON(repeat(' ', asInt(result.v) - 1) + 'x') == 1",
        "fromJSON('5')[result.v[0:4]] == 1",
        "int(result.v[0:4] + 'x') == 1"
    )]
    condition: &str,
) {
    let metric = metric(json!({"successCondition": condition}));
    let document = Data::Document(json!({"v": "4711", "list": [1]}));
    let judgement = judge(&metric, &reply(document), NOW, &str::to_owned);
    assert_eq!(judgement.phase, Phase::Error, "{}", judgement.message);
    let message = judgement.message.replace(&format!("{condition:?}"), "");
    assert!(!message.contains("4711"), "{message}");
}

/// Rule 13
#[rstest]
#[case(json!({}), true, Phase::Error)]
#[case(json!({}), false, Phase::Error)]
#[case(json!({"answers": {"timeout": "Failed"}}), false, Phase::Failed)]
#[case(json!({"answers": {"timeout": "Failed"}}), true, Phase::Error)]
#[case(json!({"answers": {"error": "Inconclusive"}}), true, Phase::Inconclusive)]
#[case(json!({"answers": {"error": "Inconclusive"}}), false, Phase::Error)]
fn no_answer_counts_as_the_metric_says(#[case] patch: Value, #[case] in_time: bool, #[case] expected: Phase) {
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
