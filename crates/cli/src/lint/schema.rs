//! What the server checks by itself: types, limits, and fields that it does not know.

use serde_json::Value;
use stateward_api::Problem;

/// Everything in `value` that the schema of its kind does not allow. What belongs to every object is taken as it is.
pub(super) fn problems(schema: &Value, value: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    let fields = value.as_object().into_iter().flatten();
    for (name, value) in fields {
        match schema.pointer(&format!("/properties/{name}")) {
            // The server leaves it out where it has a place of its own, and checks it where it has not.
            _ if name == "status" => {}
            Some(schema) if name != "metadata" => check(schema, value, name, &mut problems),
            _ if ["apiVersion", "kind", "metadata"].contains(&name.as_str()) => {}
            _ => problems.push(unknown(schema, name, name)),
        }
    }
    required(schema, value, "", &mut problems);
    problems
}

fn check(schema: &Value, value: &Value, path: &str, problems: &mut Vec<Problem>) {
    let problem = |message: String| Problem {
        field: path.to_owned(),
        message,
    };
    if value.is_null() {
        // The server takes it for not given.
        return;
    }
    if schema["x-kubernetes-int-or-string"] == true {
        if !(value.is_i64() || value.is_string()) {
            problems.push(problem(format!("{value} is not a whole number or a text")));
            return;
        }
    } else if let Some(wanted) = schema["type"].as_str()
        && !is_a(wanted, value)
    {
        problems.push(problem(format!("{} is not {}", shown(value), article(wanted))));
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let allowed: Vec<_> = allowed.iter().map(ToString::to_string).collect();
        problems.push(problem(format!("{value} is not one of {}", allowed.join(", "))));
    }
    limits(schema, value, path, problems);
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check(&schema["items"], item, &format!("{path}[{index}]"), problems);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let inner = format!("{path}.{name}");
                let known = schema["properties"].get(name);
                let any = &schema["additionalProperties"];
                match known {
                    Some(schema) => check(schema, value, &inner, problems),
                    None if any.is_object() => check(any, value, &inner, problems),
                    None if any == true || schema["x-kubernetes-preserve-unknown-fields"] == true => {}
                    None if schema.is_null() => {}
                    None => problems.push(unknown(schema, name, &inner)),
                }
            }
            required(schema, value, path, problems);
        }
        _ => {}
    }
}

fn limits(schema: &Value, value: &Value, path: &str, problems: &mut Vec<Problem>) {
    let mut problem = |message: String| {
        problems.push(Problem {
            field: path.to_owned(),
            message,
        });
    };
    let length = match value {
        Value::String(text) => Some(("Length", text.chars().count())),
        Value::Array(items) => Some(("Items", items.len())),
        _ => None,
    };
    if let Some((what, length)) = length {
        let limit = |least: &str| schema[format!("{least}{what}")].as_u64();
        let unit = if what == "Length" { "characters" } else { "items" };
        if let Some(least) = limit("min").filter(|least| (length as u64) < *least) {
            problem(format!("has {length} {unit}; {least} is the least"));
        }
        if let Some(most) = limit("max").filter(|most| length as u64 > *most) {
            problem(format!("has {length} {unit}; {most} is the most"));
        }
    }
    let (least, most) = (schema["minimum"].as_f64(), schema["maximum"].as_f64());
    let Some(number) = value.as_f64() else {
        return;
    };
    match (least, most) {
        (Some(least), Some(most)) if number < least || number > most => {
            problem(format!("{value} is not between {least} and {most}"));
        }
        (Some(least), None) if number < least => problem(format!("{value} is less than {least}")),
        (None, Some(most)) if number > most => problem(format!("{value} is more than {most}")),
        _ => {}
    }
}

fn required(schema: &Value, value: &Value, path: &str, problems: &mut Vec<Problem>) {
    for name in schema["required"].as_array().into_iter().flatten() {
        let Some(name) = name.as_str() else {
            continue;
        };
        if value.get(name).is_none_or(Value::is_null) {
            let dot = if path.is_empty() { "" } else { "." };
            problems.push(Problem {
                field: format!("{path}{dot}{name}"),
                message: "is missing".into(),
            });
        }
    }
}

/// A field that is not known, with the one that may have been meant.
fn unknown(schema: &Value, name: &str, path: &str) -> Problem {
    let known = schema["properties"].as_object().into_iter().flatten();
    let near = known
        .map(|(known, _)| (distance(&known.to_lowercase(), &name.to_lowercase()), known))
        .min();
    let hint = match near {
        Some((distance, near)) if distance <= 2 => format!("; did you mean {near}"),
        _ => String::new(),
    };
    Problem {
        field: path.to_owned(),
        message: format!("is not known{hint}"),
    }
}

/// How many letters have to be changed, added or left out.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut corner = row[0];
        row[0] = index + 1;
        for (column, theirs) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != *theirs);
            corner = row[column + 1];
            row[column + 1] = changed.min(corner + 1).min(row[column] + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

fn is_a(wanted: &str, value: &Value) -> bool {
    match wanted {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => true,
    }
}

fn article(wanted: &str) -> &str {
    match wanted {
        "object" => "a set of fields",
        "array" => "a list",
        "string" => "a text; put it in quotes",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        other => other,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a set of fields".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case("setweight", "setWeight", 0)]
    #[case("steps", "step", 1)]
    #[case("abc", "xyz", 3)]
    #[case("", "ab", 2)]
    fn letters_are_counted(#[case] one: &str, #[case] other: &str, #[case] expected: usize) {
        assert_eq!(distance(one, &other.to_lowercase()), expected);
    }

    #[rstest]
    #[case(json!({"spec": {"n": 3}}), &[])]
    #[case(json!({"spec": {"n": "3"}}), &["spec.n: \"3\" is not a whole number"])]
    #[case(json!({"spec": {"n": 300}}), &["spec.n: 300 is not between 0 and 100"])]
    #[case(json!({"spec": {"N": 3}}), &["spec.N: is not known; did you mean n", "spec.n: is missing"])]
    #[case(json!({"spec": {"n": 1, "list": [1, "a"]}}), &["spec.list[0]: 1 is not a text; put it in quotes"])]
    #[case(json!({"spec": {"n": 1, "any": {"thing": 1}, "when": "5m"}}), &[])]
    #[case(json!({"spec": {"n": 1, "when": true}}), &["spec.when: true is not a whole number or a text"])]
    #[case(json!({"spec": {"n": null}}), &["spec.n: is missing"])]
    #[case(json!({}), &["spec: is missing"])]
    #[case(json!({"spec": {"n": 1}, "sepc": {}, "status": {"x": 1}, "metadata": {"y": 1}}), &["sepc: is not known; did you mean spec"])]
    fn a_schema_is_held_against_an_object(#[case] value: Value, #[case] expected: &[&str]) {
        let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": {
            "type": "object", "required": ["n"], "properties": {
                "n": {"type": "integer", "minimum": 0, "maximum": 100},
                "list": {"type": "array", "items": {"type": "string"}},
                "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "when": {"x-kubernetes-int-or-string": true},
            },
        }}});
        let told: Vec<_> = problems(&schema, &value)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(told, expected);
    }
}
