//! Evaluates code with an answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::ast::Binary;
use super::budget::{Budget, Fault};
use super::builtins::{self, Function, Surroundings};
use super::code::{Code, Op, Strict};
use super::loops::Scope;
use super::operators;
use super::pattern::Pattern;
use super::value::{Key, ListKind, MapKind, Value};
use super::voids::{Voids, is_nan};

/// Why an evaluation stopped.
#[derive(Debug)]
pub(super) enum Stop {
    /// An optional member is missing: the chain it is in is nil.
    Missing,
    /// An error at that character of the source.
    Fault(usize, Fault),
}

/// Adds a position to a fault.
pub(super) trait At<T> {
    fn at(self, at: usize) -> Result<T, Stop>;
}

impl<T> At<T> for Result<T, Fault> {
    fn at(self, at: usize) -> Result<T, Stop> {
        self.map_err(|fault| Stop::Fault(at, fault))
    }
}

/// Evaluates `code`, and reports empty lists and non-finite numbers on the way.
pub(super) fn evaluate(
    code: &Code,
    variables: usize,
    result: &Value,
    now: Timestamp,
) -> Result<(Value, Voids), (usize, Fault)> {
    let mut evaluation = Evaluation {
        around: Surroundings { result, now },
        budget: Budget::new(),
        variables: vec![Value::Nil; variables],
        scopes: Vec::new(),
        last_pattern: None,
        voids: Voids::default(),
    };
    let value = evaluation.value(code).map_err(|stop| match stop {
        Stop::Fault(at, fault) => (at, fault),
        // A chain handles all of these, and only chains produce them.
        Stop::Missing => (code.at, Fault::value("a member is missing")),
    })?;
    Ok((value, evaluation.voids))
}

pub(super) struct Evaluation<'a> {
    around: Surroundings<'a>,
    pub(super) budget: Budget,
    variables: Vec<Value>,
    pub(super) scopes: Vec<Scope>,
    /// A dynamic pattern is often the same for every element.
    last_pattern: Option<(Arc<str>, Pattern)>,
    pub(super) voids: Voids,
}

impl Evaluation<'_> {
    /// Every level of an expression is a recursive call of this, so operations that need much stack are elsewhere.
    pub(super) fn value(&mut self, code: &Code) -> Result<Value, Stop> {
        let at = code.at;
        self.budget.steps(1).at(at)?;
        match &code.op {
            Op::Constant(value) => Ok(value.clone()),
            Op::Result => Ok(self.around.result.clone()),
            Op::Variable(slot) => Ok(self.variable(*slot)),
            Op::Item => self.item(at),
            Op::Index | Op::Accumulated => Ok(self.pointer(&code.op)),
            Op::Not(operand) => self.not(operand),
            Op::Negate(operand) => self.negate(at, operand),
            Op::And(left, right) => self.logic(left, right, false),
            Op::Or(left, right) => self.logic(left, right, true),
            Op::Coalesce(left, right) => self.coalesce(left, right),
            Op::Binary(Binary::Matches, left, right) => self.matches(at, left, right),
            Op::Binary(operator, left, right) => self.binary(at, *operator, left, right),
            Op::Equal {
                left,
                right,
                strict,
                negated,
            } => self.equal(at, left, right, *strict, *negated),
            Op::Comparisons(first, rest) => self.comparisons(at, first, rest),
            Op::Matches(operand, _)
            | Op::InNumbers(operand, _)
            | Op::InTexts(operand, _)
            | Op::InRange(operand, _, _) => self.test(at, operand, &code.op),
            Op::Chain(inner) => self.chain(inner),
            Op::Member { base, key, optional } => self.member(at, base, key, *optional),
            Op::Slice { base, from, to } => self.slice(at, base, from.as_deref(), to.as_deref()),
            Op::Call(function, arguments) => self.call(at, *function, arguments),
            Op::Method {
                base,
                name,
                optional,
                arguments,
            } => self.method(at, base, name, *optional, arguments),
            Op::Loop(inner) => self.loop_over(at, inner),
            Op::Sum(codes) => self.sum_of(at, codes),
            Op::Let(slot, value, body) => self.variable_in(*slot, value, body),
            Op::Sequence(codes) => self.sequence(codes),
            Op::If(condition, then, otherwise) => self.if_else(condition, then.as_deref(), otherwise),
            Op::List(codes) => self.list_of(at, codes),
            Op::Map(pairs) => self.map(at, pairs),
            Op::Broken(message) => Err(Stop::Fault(at, Fault::value(&**message))),
        }
    }

    fn variable(&self, slot: usize) -> Value {
        self.variables.get(slot).cloned().unwrap_or(Value::Nil)
    }

    fn pointer(&self, op: &Op) -> Value {
        match (op, self.scopes.last()) {
            (Op::Index, Some(scope)) => Value::Int(scope.index as i64),
            (_, Some(scope)) => scope.accumulated.clone(),
            (_, None) => Value::Nil,
        }
    }

    fn not(&mut self, operand: &Code) -> Result<Value, Stop> {
        Ok(Value::Bool(!self.bool(operand)?))
    }

    fn negate(&mut self, at: usize, operand: &Code) -> Result<Value, Stop> {
        let value = self.value(operand)?;
        operators::negate(&value).at(at)
    }

    /// Evaluates the right side unless the left one is `enough`.
    fn logic(&mut self, left: &Code, right: &Code, enough: bool) -> Result<Value, Stop> {
        if self.bool(left)? == enough {
            return Ok(Value::Bool(enough));
        }
        self.value(right)
    }

    fn coalesce(&mut self, left: &Code, right: &Code) -> Result<Value, Stop> {
        let value = self.value(left)?;
        if value.is_nil() {
            return self.value(right);
        }
        Ok(value)
    }

    fn binary(&mut self, at: usize, operator: Binary, left: &Code, right: &Code) -> Result<Value, Stop> {
        let list = right;
        let left = self.value(left)?;
        let right = self.value(right)?;
        if operator == Binary::In {
            self.voids.look(list, &right);
        }
        let value = operators::binary(operator, &left, &right, &mut self.budget).at(at)?;
        self.voids.nan |= is_nan(&value);
        Ok(value)
    }

    fn equal(
        &mut self,
        at: usize,
        left: &Code,
        right: &Code,
        strict: Strict,
        negated: bool,
    ) -> Result<Value, Stop> {
        let left = self.value(left)?;
        let right = self.value(right)?;
        let equal = self.are_equal(&left, &right, strict).at(at)?;
        Ok(Value::Bool(equal != negated))
    }

    /// Tests one value against a constant.
    fn test(&mut self, at: usize, operand: &Code, op: &Op) -> Result<Value, Stop> {
        let value = self.value(operand)?;
        self.passes(&value, op).at(at)
    }

    fn passes(&mut self, value: &Value, op: &Op) -> Result<Value, Fault> {
        Ok(Value::Bool(match (op, value) {
            (Op::Matches(_, pattern), value) => return self.matches_pattern(value, pattern),
            (Op::InNumbers(_, set), Value::Int(int)) => set.contains(int),
            // Go looks up the zero value of the keys for nil.
            (Op::InNumbers(_, set), Value::Nil) => set.contains(&0),
            (Op::InTexts(_, set), Value::Text(text)) => {
                self.budget.look_at(text.len())?;
                set.contains(text)
            }
            (Op::InTexts(_, set), Value::Nil) => set.contains(""),
            (Op::InRange(_, from, to), value) => {
                operators::compare(Binary::MoreOrEqual, value, &Value::Int(*from), &mut self.budget)?
                    && operators::compare(Binary::LessOrEqual, value, &Value::Int(*to), &mut self.budget)?
            }
            (_, other) => {
                return Err(Fault::value(format!("{} cannot be in this list", other.name())));
            }
        }))
    }

    fn chain(&mut self, inner: &Code) -> Result<Value, Stop> {
        match self.value(inner) {
            Err(Stop::Missing) => Ok(Value::Nil),
            Ok(value) if value.is_nil() => Ok(Value::Nil),
            other => other,
        }
    }

    fn member(&mut self, at: usize, base: &Code, key: &Code, optional: bool) -> Result<Value, Stop> {
        let base = self.value(base)?;
        if optional && base.is_nil() {
            return Err(Stop::Missing);
        }
        let code = key;
        let key = self.value(code)?;
        if let Value::Text(name) = &key {
            self.budget.look_at(name.len()).at(at)?;
        }
        let is_name = matches!(code.constant(), Some(Value::Text(_)));
        operators::fetch(&base, &key)
            .map_err(|fault| if is_name { fault.of_source() } else { fault })
            .at(at)
    }

    fn call(&mut self, at: usize, function: Function, arguments: &[Code]) -> Result<Value, Stop> {
        let codes = arguments;
        let arguments = self.values(codes)?;
        self.budget.texts(&arguments).at(at)?;
        let value = builtins::call(function, &arguments, &self.around, &mut self.budget).at(at)?;
        self.voids.called(function, codes, &arguments, &value);
        Ok(value)
    }

    fn method(
        &mut self,
        at: usize,
        base: &Code,
        name: &str,
        optional: bool,
        arguments: &[Code],
    ) -> Result<Value, Stop> {
        let arguments = self.values(arguments)?;
        let base = self.value(base)?;
        if optional && base.is_nil() {
            return Err(Stop::Missing);
        }
        self.budget.texts(&arguments).at(at)?;
        builtins::call_method(&base, name, &arguments).at(at)
    }

    fn sum_of(&mut self, at: usize, codes: &[Code]) -> Result<Value, Stop> {
        let mut from_end = self.values(codes)?.into_iter().rev();
        let mut sum = from_end.next().unwrap_or(Value::Int(0));
        for value in from_end {
            sum = operators::add(&value, &sum, &mut self.budget).at(at)?;
        }
        Ok(sum)
    }

    fn variable_in(&mut self, slot: usize, value: &Code, body: &Code) -> Result<Value, Stop> {
        self.voids.name(slot, value);
        let value = self.value(value)?;
        if let Some(place) = self.variables.get_mut(slot) {
            *place = value;
        }
        self.value(body)
    }

    fn sequence(&mut self, codes: &[Code]) -> Result<Value, Stop> {
        let mut last = Value::Nil;
        for code in codes {
            last = self.value(code)?;
        }
        Ok(last)
    }

    fn if_else(&mut self, condition: &Code, then: Option<&Code>, otherwise: &Code) -> Result<Value, Stop> {
        match (self.bool(condition)?, then) {
            (true, Some(then)) => self.value(then),
            (true, None) => Ok(Value::Bool(true)),
            (false, _) => self.value(otherwise),
        }
    }

    fn list_of(&mut self, at: usize, codes: &[Code]) -> Result<Value, Stop> {
        self.budget.elements(codes.len()).at(at)?;
        let values = self.values(codes)?;
        self.list(at, values)
    }

    /// A list of anything.
    pub(super) fn list(&mut self, at: usize, items: Vec<Value>) -> Result<Value, Stop> {
        Value::list(ListKind::Any, items)
            .ok_or_else(Fault::too_deep)
            .at(at)
    }

    fn values(&mut self, codes: &[Code]) -> Result<Vec<Value>, Stop> {
        codes.iter().map(|code| self.value(code)).collect()
    }

    pub(super) fn bool(&mut self, code: &Code) -> Result<bool, Stop> {
        match self.value(code)? {
            Value::Bool(bool) => Ok(bool),
            other => Err(Stop::Fault(
                code.at,
                Fault::value(format!("this has to be a bool, and it is {}", other.name())),
            )),
        }
    }

    fn are_equal(&mut self, left: &Value, right: &Value, strict: Strict) -> Result<bool, Fault> {
        match (strict, left, right) {
            (Strict::No, _, _) => operators::equal(left, right, &mut self.budget),
            (Strict::Ints, Value::Int(a), Value::Int(b)) => Ok(a == b),
            (Strict::Texts, Value::Text(a), Value::Text(b)) => {
                self.budget.look_at(a.len().min(b.len()))?;
                Ok(a == b)
            }
            (Strict::Ints | Strict::Texts, _, _) => Err(operators::no_meaning(Binary::Equal, left, right)),
        }
    }

    fn comparisons(&mut self, at: usize, first: &Code, rest: &[(Binary, Code)]) -> Result<Value, Stop> {
        let mut before = self.value(first)?;
        for (operator, code) in rest {
            let value = self.value(code)?;
            if !operators::compare(*operator, &before, &value, &mut self.budget).at(at)? {
                return Ok(Value::Bool(false));
            }
            before = value;
        }
        Ok(Value::Bool(true))
    }

    fn matches(&mut self, at: usize, left: &Code, right: &Code) -> Result<Value, Stop> {
        let (left, right) = (self.value(left)?, self.value(right)?);
        if left.is_nil() || right.is_nil() {
            return Ok(Value::Bool(false));
        }
        let Value::Text(source) = &right else {
            return Err(Stop::Fault(
                at,
                operators::no_meaning(Binary::Matches, &left, &right),
            ));
        };
        let pattern = match self.last_pattern.take() {
            Some((known, pattern)) if known == *source => pattern,
            _ => {
                self.budget.steps(Pattern::COST).at(at)?;
                let pattern = Pattern::new(source).map_err(|wrong| {
                    let without_values = match wrong.is_size() {
                        true => "the regular expression is too large",
                        false => "the text is not a regular expression",
                    };
                    Fault::showing(wrong.into_message(), without_values)
                });
                let pattern = pattern.at(at)?;
                self.budget.steps(pattern.size() / 4).at(at)?;
                pattern
            }
        };
        let outcome = self.matches_pattern(&left, &pattern).at(at);
        self.last_pattern = Some((source.clone(), pattern));
        outcome
    }

    fn matches_pattern(&mut self, value: &Value, pattern: &Pattern) -> Result<Value, Fault> {
        match value {
            Value::Text(text) => {
                self.budget.steps(pattern.cost(text.len()))?;
                Ok(Value::Bool(pattern.is_match(text)))
            }
            value if value.is_nil() => Ok(Value::Bool(false)),
            other => Err(Fault::value(format!(
                "matches looks at a string, and this is {}",
                other.name()
            ))),
        }
    }

    fn slice(
        &mut self,
        at: usize,
        base: &Code,
        from: Option<&Code>,
        to: Option<&Code>,
    ) -> Result<Value, Stop> {
        let base = self.value(base)?;
        let to = match to {
            Some(to) => self.value(to)?,
            None => Value::Int(i64::MAX),
        };
        let from = match from {
            Some(from) => self.value(from)?,
            None => Value::Int(0),
        };
        operators::slice(&base, &from, &to, &mut self.budget).at(at)
    }

    fn map(&mut self, at: usize, pairs: &[(Code, Code)]) -> Result<Value, Stop> {
        self.budget.elements(pairs.len()).at(at)?;
        let mut entries = BTreeMap::new();
        for (key, value) in pairs {
            let (key, value) = (self.value(key)?, self.value(value)?);
            let Value::Text(key) = key else {
                return Err(Stop::Fault(
                    at,
                    Fault::value(format!(
                        "the keys of a map are strings, and this is {}",
                        key.name()
                    )),
                ));
            };
            // Of two pairs with the same key the first one counts.
            entries.entry(Key::Text(key)).or_insert(value);
        }
        Value::map(MapKind::Fields, entries)
            .ok_or_else(Fault::too_deep)
            .at(at)
    }
}
