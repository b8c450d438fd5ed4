//! The whole language: compares with Go's answers, and tests that nothing panics or hangs.

use jiff::Timestamp;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::Value as Json;

use super::format;
use super::value::{ListKind, MapKind};
use super::*;

/// Go's answers, from `cargo xtask generate conditions`.
const TABLES: [(&str, &str); 2] = [
    ("written", include_str!("golden/written.jsonl")),
    ("random", include_str!("golden/random.jsonl")),
];

/// Rows that differ on purpose.
const DIFFERENCES: &str = include_str!("golden/differences.txt");

fn now() -> Timestamp {
    "2026-11-16T06:00:00Z".parse().unwrap()
}

/// A row's outcome, in the format of the table.
fn outcome(answer: &Answer, expression: &str) -> String {
    let environment = Environment {
        result: Some(answer.shape().into()),
    };
    let Ok((program, _)) = Program::compile(expression, &environment) else {
        return "compile error".into();
    };
    match program.run(&answer.value, now()).map(|(value, _)| value) {
        Err(_) => "run error".into(),
        Ok(Value::Bool(bool)) => bool.to_string(),
        Ok(value) => {
            let text = format::text(&value, &mut budget::Budget::new()).unwrap();
            format!("{}: {text}", go_type(&value))
        }
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Nil => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int",
        Value::Long(_) => "int64",
        Value::Byte(_) => "uint8",
        Value::Float(_) => "float64",
        Value::Text(_) => "string",
        Value::Time(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::List(list) => match list.kind {
            ListKind::Any | ListKind::Absent => "[]interface {}",
            ListKind::Floats => "[]float64",
            ListKind::Ints => "[]int",
            ListKind::Texts => "[]string",
            ListKind::Pair => "[2]interface {}",
            ListKind::Pairs => "[][2]interface {}",
        },
        Value::Map(map) => match map.kind {
            MapKind::Fields => "map[string]interface {}",
            MapKind::Any => "map[interface {}]interface {}",
            MapKind::Groups => "map[interface {}][]interface {}",
        },
    }
}

fn answer_of(row: &Json) -> Answer {
    match (&row["result"], row["numbers"] == true) {
        (Json::Array(numbers), true) => Answer::numbers(numbers.iter().filter_map(Json::as_f64)),
        (result, _) => Answer::json(result),
    }
}

fn differences() -> Vec<&'static str> {
    DIFFERENCES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .collect()
}

#[rstest]
#[case(0)]
#[case(1)]
fn conditions_answer_as_in_go(#[case] table: usize) {
    let (name, rows) = TABLES[table];
    let differences = differences();
    let (mut rows_seen, mut wrong) = (0, Vec::new());
    for row in rows.lines() {
        let row: Json = serde_json::from_str(row).unwrap();
        let (expression, expected) = (
            row["expression"].as_str().unwrap(),
            row["outcome"].as_str().unwrap(),
        );
        let found = outcome(&answer_of(&row), expression);
        rows_seen += 1;
        if found != expected && !differences.contains(&expression) {
            wrong.push(format!(
                "{}: {expression}\n    Go: {expected}\n  ours: {found}",
                row["result"]
            ));
        }
    }
    assert!(rows_seen > 300, "{name} has {rows_seen} rows");
    assert!(
        wrong.is_empty(),
        "{} of {rows_seen} rows of {name} differ\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn every_difference_that_is_written_down_is_one() {
    let rows: Vec<Json> = TABLES
        .iter()
        .flat_map(|(_, rows)| rows.lines())
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    for difference in differences() {
        let differs = rows.iter().any(|row| {
            row["expression"] == difference && row["outcome"] != outcome(&answer_of(row), difference)
        });
        assert!(differs, "{difference} is answered as in Go, or not asked");
    }
}

fn condition(source: &str, json: &Json) -> Result<bool, ExprError> {
    holds(source, &Answer::json(json), now())
}

#[rstest]
#[case("result > 'a'", 1, 8, "> has no meaning between a number and a string")]
#[case("result ==", 1, 10, "expected a value, found the end")]
#[case("true &&\n  foo", 2, 3, "there is no foo here; known are result, asInt")]
#[case("result + 1", 1, 8, "a condition is true or false, and this is a number")]
#[case("upper(1) == ''", 1, 1, "it is called as upper(a string)")]
#[case("date('a', 'b') < now()", 1, 1, "is not supported")]
#[case("'a' matches '('", 1, 13, "is not a regular expression")]
#[case("'a' matches '(' + 'b'", 1, 17, "is not a regular expression")]
fn a_condition_that_cannot_be_is_refused_with_its_place(
    #[case] source: &str,
    #[case] line: usize,
    #[case] column: usize,
    #[case] message: &str,
) {
    let error = Condition::compile(source, Shape::Number).unwrap_err();
    assert!(error.message.contains(message), "{}", error.message);
    assert_eq!((error.place.line, error.place.column), (line, column), "{error}");
}

#[test]
fn an_error_shows_the_line_and_marks_the_column() {
    let error = Condition::compile("result[0] >= 'a'", Shape::Numbers).unwrap_err();
    assert_eq!(
        error.to_string(),
        "1:11: >= has no meaning between a number and a string\n  result[0] >= 'a'\n            ^"
    );
}

#[rstest]
#[case("result[0] > 1", serde_json::json!([]), "there is no element 0 in a list of 0", RunErrorKind::Value)]
#[case("result.a > 1", serde_json::json!({}), "> has no meaning between nil and a whole number", RunErrorKind::Value)]
#[case("result.a", serde_json::json!({"a": "yes"}), "a condition is true or false", RunErrorKind::Outcome)]
#[case(
    "len(1..2000000) > 1",
    Json::Null,
    "more than 1 million elements",
    RunErrorKind::Budget
)]
#[case(
    "let l = 1..999; none(l, any(l, any(l, # == 1000)))",
    Json::Null,
    "10 million steps",
    RunErrorKind::Budget
)]
#[case(
    "len(reduce(1..60, #acc + #acc, 'x')) > 1",
    Json::Null,
    "16 MiB of text",
    RunErrorKind::Budget
)]
#[case(
    "reduce(1..9999, [#acc], []) == nil",
    Json::Null,
    "200 levels",
    RunErrorKind::Budget
)]
#[case(
    "string(reduce(1..60, [#acc, #acc], [])) == ''",
    Json::Null,
    "10 million steps",
    RunErrorKind::Budget
)]
#[case(
    "any(1..9999, 'a' matches string(#))",
    Json::Null,
    "10 million steps",
    RunErrorKind::Budget
)]
fn a_condition_that_fails_with_an_answer_says_why(
    #[case] source: &str,
    #[case] answer: Json,
    #[case] message: &str,
    #[case] kind: RunErrorKind,
) {
    let Err(ExprError::Run(error)) = condition(source, &answer) else {
        panic!("{source} did not fail");
    };
    assert!(error.message.contains(message), "{}", error.message);
    assert_eq!(error.kind, kind);
}

/// Every function that reads a text is charged for its length, even if it returns no text: otherwise a loop would be free.
#[rstest]
#[case("result matches 'x$'")]
#[case("result matches '(a|b)*a(a|b){500}c'")]
#[case("result matches string(len('abc')) + '(a|b)*a(a|b){500}c'")]
#[case("result contains 'x'")]
#[case("result contains result + 'x'")]
#[case("'x' contains result")]
#[case("result startsWith result")]
#[case("result endsWith result")]
#[case("result < result")]
#[case("result == result")]
#[case("result != result")]
#[case("result in [result]")]
#[case("result in {a: 1}")]
#[case("result in ['a', 'b']")]
#[case("{a: 1}[result] == nil")]
#[case("get({a: 1}, result) == nil")]
#[case("len(result) == 0")]
#[case("len(trim(result)) == 0")]
#[case("len(trim(result, 'x')) == 0")]
#[case("trim('x', result) == ''")]
#[case("trimPrefix('x', result) == ''")]
#[case("trimSuffix('x', result) == ''")]
#[case("len(upper(result)) == 0")]
#[case("len(lower(result)) == 0")]
#[case("len(split(result, 'x')) == 0")]
#[case("len(split('x', result)) == 0")]
#[case("len(splitAfter('x', result)) == 0")]
#[case("len(replace(result, 'x', 'y')) == 0")]
#[case("len(replace('x', result, 'y')) == 0")]
#[case("len(join([result])) == 0")]
#[case("len(join(['x'], result)) == 0")]
#[case("indexOf(result, 'x') == 0")]
#[case("indexOf('x', result) == 0")]
#[case("lastIndexOf('x', result) == 0")]
#[case("hasPrefix('x', result)")]
#[case("hasSuffix('x', result)")]
#[case("len(toJSON(result)) == 0")]
#[case("len(string(result)) == 0")]
#[case("len(result[1:]) == 0")]
#[case("len(groupBy([result], #)) == 0")]
#[case("len(fromPairs([[result, 1]])) == 0")]
#[case("len(sort([result, result])) == 0")]
#[case("len(uniq([result, result])) == 0")]
#[case("type(result) == ''")]
fn whatever_looks_at_a_text_is_charged_for_its_length(#[case] condition: &str) {
    // 400 times 500 kB: charging each read exhausts the budget of steps or of text.
    let text = Json::String("ab".repeat(250_000));
    let source = format!("none(1..400, ({condition}) && # < 0)");
    let Err(ExprError::Run(error)) = holds(&source, &Answer::json(&text), now()) else {
        panic!("{condition} is not charged");
    };
    assert_eq!(error.kind, RunErrorKind::Budget, "{}", error.message);
}

/// The same for lists, by their elements.
#[rstest]
#[case("len(join(result)) == 0")]
#[case("len(reverse(result)) == 0")]
#[case("len(concat(result, result)) == 0")]
#[case("len(flatten(result)) == 0")]
#[case("len(sort(result)) == 0")]
#[case("len(take(result, 9999)) == 0")]
#[case("len(result[1:]) == 0")]
#[case("len(uniq(result)) == 0")]
#[case("len(toJSON(result)) == 0")]
#[case("result == result")]
#[case("'y' in result")]
#[case("median(map(result, 1)) == 0")]
#[case("max(map(result, 1)) == 0")]
#[case("len(fromPairs(map(result, [#, 1]))) == 0")]
fn whatever_looks_at_a_list_is_charged_for_its_elements(#[case] condition: &str) {
    let list: Json = (0..10_000).map(|_| Json::String(String::new())).collect();
    let source = format!("none(1..9000, ({condition}) && # < 0)");
    let Err(ExprError::Run(error)) = holds(&source, &Answer::json(&list), now()) else {
        panic!("{condition} is not charged");
    };
    assert_eq!(error.kind, RunErrorKind::Budget, "{}", error.message);
}

/// Four of these on 1 MB took longer than a lease lasts.
#[test]
fn a_pattern_is_charged_text_length_times_program_size() {
    let text = Json::String("ab".repeat(500_000));
    let Err(ExprError::Run(error)) = condition("result matches '(a|b)*a(a|b){500}c'", &text) else {
        panic!("it is not charged");
    };
    assert_eq!(error.kind, RunErrorKind::Budget);
    assert!(error.message.contains("10 million steps"), "{}", error.message);
    // Patterns that become an automaton stay cheap.
    for pattern in [
        "error",
        ".*error.*",
        "(?i)connection refused|timeout|deadline exceeded",
    ] {
        assert_eq!(
            condition(&format!("result matches '{pattern}'"), &text),
            Ok(false)
        );
    }
}

#[test]
fn the_patterns_of_an_expression_are_bounded_together() {
    let large = "'[a-z]{900}'";
    let one = format!("result matches {large}");
    assert!(Condition::check(&one).is_ok_and(|bytes| bytes > 20_000));
    let source = vec![one; 100].join(" || ");
    let error = Condition::check(&source).unwrap_err();
    assert!(error.message.contains("too large together"), "{}", error.message);
}

/// 1 MiB of `{"":0},` became 220 MB.
#[test]
fn json_in_a_text_is_bounded_by_what_it_becomes() {
    let text = Json::String(format!("[{}0]", r#"{"":0},"#.repeat(100_000)));
    let Err(ExprError::Run(error)) = condition("len(fromJSON(result)) > 0", &text) else {
        panic!("it is not charged");
    };
    assert_eq!(error.kind, RunErrorKind::Budget);
    let small = Json::String(format!("[{}0]", r#"{"":0},"#.repeat(1_000)));
    assert_eq!(condition("len(fromJSON(result)) > 0", &small), Ok(true));
}

#[test]
fn an_empty_list_that_is_looked_at_again_and_again_is_noted_once() {
    let answer = Answer::json(&serde_json::json!({"a": [], "b": []}));
    let source = "none(1..100000, any(result.a, true) || any(result.b, true))";
    let found = look(source, &answer, now()).unwrap();
    assert_eq!(found.over_nothing.as_deref(), Some("result.a"));
}

#[test]
fn a_long_answer_is_not_repeated_in_a_message() {
    let text = Json::String("x".repeat(100_000));
    for condition_of in [
        "asFloat(result) > 1",
        "asInt(result) > 1",
        "duration(result) > duration('1s')",
        "date(result) > now()",
    ] {
        let error = condition(condition_of, &text).unwrap_err();
        assert!(error.to_string().len() < 400, "{}", error.to_string().len());
    }
}

#[test]
fn a_condition_is_for_answers_of_its_shape() {
    let condition = Condition::compile("result > 1", Shape::Number).unwrap();
    assert_eq!(condition.holds(&Answer::number(2.0), now()), Ok(true));
    let error = condition.holds(&Answer::text("2"), now()).unwrap_err();
    assert_eq!(error.kind, RunErrorKind::Shape);
}

#[rstest]
#[case("result > 1", true)]
#[case("result[0] > 1 && result.a == 'b'", true)]
#[case("(result ? 1 : 2) == 'a'", false)]
#[case("1 + 'a' == result", false)]
#[case("result >", false)]
#[case("results > 1", false)]
fn a_condition_can_be_checked_without_an_answer(#[case] source: &str, #[case] good: bool) {
    assert_eq!(Condition::check(source).is_ok(), good);
}

#[test]
fn syntax_alone_can_be_checked() {
    assert!(parse("unknown(1) + 'a'").is_ok());
    assert!(parse("unknown(1 + 'a'").is_err());
}

#[rstest]
#[case("now()", "2026-11-16T06:00:00Z")]
#[case("now() - duration('5m')", "2026-11-16T05:55:00Z")]
#[case("date('2026-01-31') + 2 * duration('1h')", "2026-01-31T02:00:00Z")]
fn a_moment_depends_on_now(#[case] source: &str, #[case] expected: &str) {
    let expected: Timestamp = expected.parse().unwrap();
    assert_eq!(Moment::compile(source).unwrap().at(now()), Ok(expected));
}

#[rstest]
#[case("duration('5m')", "this has to be a time such as now()")]
#[case("result", "there is no result here; known are isNaN")]
#[case("now() -", "expected a value")]
fn what_is_no_moment_is_refused(#[case] source: &str, #[case] message: &str) {
    let error = Moment::compile(source).unwrap_err();
    assert!(error.message.contains(message), "{}", error.message);
}

#[test]
fn what_is_too_long_or_too_deep_is_refused() {
    for source in [
        "1 + ".repeat(9_000) + "1",
        "(".repeat(5_000),
        "[".repeat(5_000),
        "-".repeat(5_000) + "1",
        "1 + ".repeat(1_000) + "1",
        "result".to_owned() + &".a".repeat(1_000),
        "true ? 1 : ".repeat(1_000) + "2",
        "if true { 1 } else ".repeat(500) + "{ 2 }",
        "(true ?: ".repeat(500) + "true" + &")".repeat(500),
        "let a = 1; ".repeat(500) + "a",
    ] {
        assert!(Condition::check(&source).is_err());
    }
}

#[test]
fn an_answer_nested_too_deep_decides_nothing() {
    let deep = (0..300).fold(Json::Null, |inner, _| Json::Array(vec![inner]));
    let answer = Answer::json(&deep);
    let error = Condition::compile("true", Shape::Unknown)
        .unwrap()
        .holds(&answer, now())
        .unwrap_err();
    assert_eq!(error.kind, RunErrorKind::Budget);
}

/// Every source must end without a panic.
fn survives(source: &str) {
    let answers = [
        Answer::none(),
        Answer::number(f64::NAN),
        Answer::text("é"),
        Answer::numbers([0.5, f64::INFINITY]),
        Answer::json(&serde_json::json!({"a": [1, {"b": null}], "é": "x"})),
        Answer::json(&serde_json::json!([[], {}, "a", 1e300, -1])),
    ];
    let _ = Moment::compile(source).map(|moment| moment.at(now()));
    for answer in answers {
        if let Err(error) = holds(source, &answer, now()) {
            assert!(!error.to_string().is_empty());
        }
    }
}

/// A token of the language.
fn word() -> impl Strategy<Value = String> {
    let words = "result # . ?. ?? ? : , ; ( ) [ ] { } + - * / % ** ^ .. == != < > <= >= && || ! not in and or matches \
                 contains startsWith endsWith let x = if else | :: #index #acc #. nil true false 0 1 -1 2.5 1e308 \
                 9223372036854775807 0x7f 'a' 'é' '' '5m' '[' `b` $env a b len( all( any( none( one( filter( map( count( sum( \
                 find( findIndex( findLast( findLastIndex( groupBy( sortBy( reduce( type( abs( ceil( floor( round( int( \
                 float( string( trim( trimPrefix( split( splitAfter( replace( repeat( join( indexOf( lastIndexOf( max( min( \
                 mean( median( toJSON( fromJSON( now() duration( date( first( last( get( take( keys( values( toPairs( \
                 fromPairs( reverse( uniq( concat( flatten( sort( bitshl( bitnot( asInt( asFloat( isNaN( isNil( default( \
                 1..9 [1,2] {a:1} [0:1] [-1] .Unix() .Add( .Hours()";
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    proptest::sample::select(words)
}

/// A row of the tables.
fn known_condition() -> impl Strategy<Value = String> {
    let sources: Vec<String> = TABLES
        .iter()
        .flat_map(|(_, rows)| rows.lines())
        .map(|row| {
            serde_json::from_str::<Json>(row).unwrap()["expression"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .filter(|source| !source.is_empty())
        .collect();
    proptest::sample::select(sources)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_text_makes_it_panic(source in "\\PC{0,60}") {
        survives(&source);
    }

    #[test]
    fn no_heap_of_words_makes_it_panic(words in proptest::collection::vec(word(), 0..25)) {
        survives(&words.join(" "));
    }

    #[test]
    fn no_slip_of_the_pen_makes_it_panic(
        source in known_condition(),
        other in known_condition(),
        at in any::<proptest::sample::Index>(),
        cut in 0..6_usize,
        inserted in word(),
    ) {
        let mut characters: Vec<char> = source.chars().collect();
        let at = at.index(characters.len());
        let end = (at + cut).min(characters.len());
        characters.splice(at..end, inserted.chars());
        survives(&characters.into_iter().collect::<String>());
        survives(&format!("{source} == ({other})"));
        survives(&source.replacen("result", &format!("({other})"), 1));
    }

    #[test]
    fn numbers_are_compared_as_floats(number: f64, limit: f64) {
        let answer = Answer::numbers([number]);
        let source = format!("result[0] >= asFloat('{limit:e}')");
        prop_assert_eq!(holds(&source, &answer, now()), Ok(number >= limit));
    }
}

#[rstest]
#[case("all([1], ", "true", ")")]
#[case("map([1], {", "1", "})")]
#[case("(", "true", ")")]
#[case("[", "1", "]")]
#[case("{a: ", "1", "}")]
#[case("not ", "true", "")]
#[case("if true { ", "true", " } else { false }")]
#[case("len(", "result", ")")]
#[case("result[", "0", "]")]
#[case("1 + (", "1", ")")]
#[case("true && ", "true", "")]
#[case("", "result", ".a")]
#[case("true && (true ? ", "true", " : false)")]
fn the_deepest_expression_that_is_let_through_leaves_the_stack_whole(
    #[case] open: &str,
    #[case] inside: &str,
    #[case] close: &str,
) {
    let source = |levels: usize| open.repeat(levels) + inside + &close.repeat(levels);
    let deepest = (1..200)
        .take_while(|levels| parse(&source(*levels)).is_ok())
        .count();
    assert!((15..200).contains(&deepest), "{deepest} levels");
    survives(&source(deepest));
    survives(&source(deepest + 1));
}
