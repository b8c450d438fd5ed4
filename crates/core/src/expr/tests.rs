//! The whole language: what Go answers, and that nothing panics or hangs.

use jiff::Timestamp;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::Value as Json;

use super::format;
use super::value::{ListKind, MapKind};
use super::*;

/// What Go answers, by `cargo xtask generate conditions`.
const TABLES: [(&str, &str); 2] = [
    ("written", include_str!("golden/written.jsonl")),
    ("random", include_str!("golden/random.jsonl")),
];

/// Rows where we answer otherwise, on purpose.
const DIFFERENCES: &str = include_str!("golden/differences.txt");

fn now() -> Timestamp {
    "2026-11-16T06:00:00Z".parse().unwrap()
}

/// A row's outcome, as the table writes it.
fn outcome(answer: &Answer, expression: &str) -> String {
    let environment = Environment {
        result: Some(answer.shape().into()),
    };
    let Ok((program, _)) = Program::compile(expression, &environment) else {
        return "compile error".into();
    };
    match program.run(&answer.value, now()) {
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

#[rstest]
#[case(0)]
#[case(1)]
fn conditions_answer_as_in_go(#[case] table: usize) {
    let (name, rows) = TABLES[table];
    let differences: Vec<&str> = DIFFERENCES
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("//"))
        .collect();
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
