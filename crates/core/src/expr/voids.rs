//! Records the empty lists and non-finite numbers of an evaluation: `all` is true for an empty list, and NaN exceeds no limit.
//!
//! Only lists of the answer count. A list that the condition computed, such as the result of a filter, may be empty.

use std::collections::BTreeMap;

use super::builtins::Function;
use super::code::{Code, Op};
use super::value::Value;

/// The findings of an evaluation.
#[derive(Debug, Default)]
pub(super) struct Voids {
    /// The paths of empty lists.
    empty: Vec<String>,
    /// Whether it used NaN.
    pub(super) nan: bool,
    /// Whether a text was converted to infinity.
    pub(super) infinite: bool,
    /// The paths of the values of variables.
    named: BTreeMap<usize, String>,
}

impl Voids {
    /// Records a list that is iterated over.
    pub(super) fn look(&mut self, code: &Code, value: &Value) {
        let empty = match value {
            Value::List(list) => list.items.is_empty(),
            Value::Map(map) => map.entries.is_empty(),
            Value::Text(text) => text.is_empty(),
            _ => false,
        };
        if empty && let Some(path) = self.path(code) {
            // A loop may visit the same list repeatedly.
            if !self.empty.contains(&path) {
                self.empty.push(path);
            }
        }
    }

    /// Records the arguments and the result of a call.
    pub(super) fn called(&mut self, function: Function, codes: &[Code], arguments: &[Value], value: &Value) {
        // These test for such values and do not compute with them.
        let asks = matches!(
            function,
            Function::Len | Function::IsNil | Function::Default | Function::Type
        );
        for (code, argument) in codes.iter().zip(arguments) {
            if !asks && matches!(argument, Value::List(_) | Value::Map(_)) {
                self.look(code, argument);
            }
        }
        let of_text = arguments
            .iter()
            .any(|argument| matches!(argument, Value::Text(_)));
        self.nan |= is_nan(value);
        self.infinite |= of_text && matches!(value, Value::Float(float) if float.is_infinite());
    }

    /// Records the path of a variable's value.
    pub(super) fn name(&mut self, slot: usize, code: &Code) {
        if let Some(path) = self.path(code) {
            self.named.insert(slot, path);
        }
    }

    /// The first list that was empty and whose length the expression does not use.
    pub(super) fn unasked(&self, code: &Code) -> Option<String> {
        if self.empty.is_empty() {
            return None;
        }
        let mut asked = Vec::new();
        self.measured(&mut code.clone(), &mut asked);
        let mut unasked = self.empty.iter().filter(|path| !asked.contains(path));
        unasked.next().cloned()
    }

    fn measured(&self, code: &mut Code, found: &mut Vec<String>) {
        if let Op::Call(Function::Len, arguments) = &code.op {
            found.extend(arguments.iter().filter_map(|argument| self.path(argument)));
        }
        code.each_below(&mut |below| self.measured(below, found));
    }

    /// `result.data.errors`, or `#.errors` in a loop; `None` for what is not an unchanged part of the answer.
    fn path(&self, code: &Code) -> Option<String> {
        match &code.op {
            Op::Result => Some("result".into()),
            Op::Item => Some("#".into()),
            Op::Variable(slot) => self.named.get(slot).cloned(),
            Op::Chain(inner) => self.path(inner),
            Op::Member { base, key, .. } => {
                let base = self.path(base)?;
                Some(match key.constant() {
                    Some(Value::Text(name)) => format!("{base}.{name}"),
                    Some(Value::Int(index)) => format!("{base}[{index}]"),
                    _ => format!("{base}[…]"),
                })
            }
            _ => None,
        }
    }
}

pub(super) fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Float(float) if float.is_nan())
}

#[cfg(test)]
mod tests {
    use crate::expr::{Answer, look};
    use jiff::Timestamp;
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case("all(result.errors, # < 5)", Some("result.errors"))]
    #[case("none(result.data.errors, # < 5)", Some("result.data.errors"))]
    #[case("len(filter(result.errors, # < 5)) == 0", Some("result.errors"))]
    #[case("result.errors | all(# < 5)", Some("result.errors"))]
    #[case("let errors = result.errors; all(errors, # < 5)", Some("result.errors"))]
    #[case("all(result.pods, all(#.errors, # < 5))", Some("#.errors"))]
    #[case("mean(result.errors) < 5", Some("result.errors"))]
    #[case("sum(result.errors) < 5", Some("result.errors"))]
    #[case("not (\"fatal\" in result.errors)", Some("result.errors"))]
    #[case("len(result.errors) == 0", None)]
    #[case("len(result.errors) == 0 || all(result.errors, # < 5)", None)]
    #[case("len(result.pods) > 0 && all(result.errors, # < 5)", Some("result.errors"))]
    #[case("all(filter(result.pods, #.name == \"x\"), #.name == \"y\")", None)]
    #[case("result.status == \"ok\" || all(result.errors, # < 5)", None)]
    fn a_list_of_the_answer_that_is_empty_is_noticed(#[case] source: &str, #[case] expected: Option<&str>) {
        let answer = json!({
            "status": "ok", "errors": [], "data": {"errors": []}, "pods": [{"name": "a", "errors": []}],
        });
        let seen = look(source, &Answer::json(&answer), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(seen.over_nothing.as_deref(), expected, "{source}");
    }

    #[rstest]
    #[case("asFloat(result.nan) > 5", (true, false))]
    #[case("!(float(result.nan) > 5)", (true, false))]
    #[case("asFloat(result.inf) > 5", (false, true))]
    #[case("result.errors / result.total > 0.05", (true, false))]
    #[case("asFloat(result.number) > 5", (false, false))]
    fn a_number_that_is_none_is_noticed(#[case] source: &str, #[case] expected: (bool, bool)) {
        let answer = json!({"nan": "NaN", "inf": "+Inf", "number": "7", "errors": 0, "total": 0});
        let seen = look(source, &Answer::json(&answer), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((seen.nan, seen.infinite), expected, "{source}");
    }
}
