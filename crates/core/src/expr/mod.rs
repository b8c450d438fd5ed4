//! The language of conditions: `result[0] >= 0.95`.
//!
//! It is the language of Argo Rollouts, [expr](https://expr-lang.org) v1.17, parsed and evaluated here: conditions written for Argo
//! Rollouts give the same verdict, and errors are of the same kind. In flow a source and an [`Answer`]; out flows a bool, a time, or an
//! error with its position. The rows under `golden/` are the answers of the Go implementation, which a test replays;
//! `docs/design/conditions.md` lists the differences.
//!
//! Source becomes tokens (`lexer`), a tree (`parser`), checked code (`check`) that skips needless work (`simplify`), and with an answer a
//! value (`eval`). Everything is bounded: the length of the source, its nesting depth, the steps and the memory of an evaluation. Nothing
//! here waits, reads a clock or panics.

mod answer;
mod ast;
mod budget;
mod builtins;
mod check;
mod check_calls;
mod checked;
mod code;
mod error;
mod eval;
mod format;
mod lexer;
mod loops;
mod mentions;
mod operators;
mod parser;
mod pattern;
mod postfix;
mod rules;
mod shape;
mod simplify;
#[cfg(test)]
mod tests;
mod token;
mod value;
mod voids;

use jiff::Timestamp;

pub use answer::Answer;
pub use error::{CompileError, ExprError, Place, RunError, RunErrorKind};
pub use mentions::{measures_any, measures_result, mentions};
pub use shape::Shape;

pub(crate) use pattern::Pattern;

use budget::Fault;
use check::{Checked, Environment};
use checked::Checks;
use code::Code;
use error::Wrong;
use shape::Type;
use value::Value;
use voids::Voids;

/// Checks only the syntax of an expression.
pub fn parse(source: &str) -> Result<(), CompileError> {
    parser::parse(source)
        .map(|_| ())
        .map_err(|wrong| wrong.in_source(source))
}

/// A condition on an answer.
#[derive(Clone, Debug)]
pub struct Condition {
    program: Program,
    shape: Shape,
}

impl Condition {
    /// Compiles a condition for answers of one shape.
    pub fn compile(source: &str, shape: Shape) -> Result<Self, CompileError> {
        let environment = Environment {
            result: Some(shape.into()),
        };
        let (program, kind) = Program::compile(source, &environment)?;
        if kind != Type::Bool && !kind.is_unknown() {
            let message = format!("a condition is true or false, and this is {}", kind.name());
            return Err(Wrong::new(program.code.at, message).in_source(source));
        }
        Ok(Self { program, shape })
    }

    /// Whether some answer could satisfy it, as far as that is known without one: for checking manifests. Returns the size of its compiled
    /// patterns in bytes.
    ///
    /// Every reconcile checks the same conditions, so the result is cached.
    pub fn check(source: &str) -> Result<usize, CompileError> {
        static CHECKED: Checks = Checks::new();
        CHECKED.get(source, || {
            Self::compile(source, Shape::Unknown).map(|condition| condition.program.patterns)
        })
    }

    /// Whether it holds for `answer` at the time `now`.
    pub fn holds(&self, answer: &Answer, now: Timestamp) -> Result<bool, RunError> {
        Ok(self.look(answer, now)?.holds)
    }

    /// The same, with the empty lists and non-finite numbers found on the way.
    pub fn look(&self, answer: &Answer, now: Timestamp) -> Result<Look, RunError> {
        if answer.cut {
            let message = "the answer is nested deeper than 200 levels";
            return Err(self.program.error(RunErrorKind::Budget, 0, message));
        }
        if self.shape != Shape::Unknown && self.shape != answer.shape() {
            let message = "the answer is of another shape than the condition was compiled for";
            return Err(self.program.error(RunErrorKind::Shape, 0, message));
        }
        match self.program.run(&answer.value, now)? {
            (Value::Bool(holds), voids) => Ok(Look {
                holds,
                over_nothing: voids.unasked(&self.program.code),
                nan: voids.nan,
                infinite: voids.infinite,
            }),
            (other, _) => {
                let message = format!("a condition is true or false, and this is {}", other.name());
                Err(self
                    .program
                    .error(RunErrorKind::Outcome, self.program.code.at, &message))
            }
        }
    }
}

/// The result of a condition for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether it holds.
    pub holds: bool,
    /// The path of an empty list in the answer that the condition iterated over without using its length.
    pub over_nothing: Option<String>,
    /// Whether it used NaN.
    pub nan: bool,
    /// Whether it converted a text to infinity.
    pub infinite: bool,
}

/// Compiles and evaluates a condition at once, as Argo Rollouts does for every measurement.
pub fn look(source: &str, answer: &Answer, now: Timestamp) -> Result<Look, ExprError> {
    Ok(Condition::compile(source, answer.shape())?.look(answer, now)?)
}

/// The same as [`look`], for callers that need only the verdict.
pub fn holds(source: &str, answer: &Answer, now: Timestamp) -> Result<bool, ExprError> {
    Ok(look(source, answer, now)?.holds)
}

/// A time relative to the current time: `now() - duration("5m")`.
#[derive(Clone, Debug)]
pub struct Moment {
    program: Program,
}

impl Moment {
    /// Compiles an expression that returns a time.
    pub fn compile(source: &str) -> Result<Self, CompileError> {
        let (program, kind) = Program::compile(source, &Environment { result: None })?;
        if kind != Type::Time && !kind.is_unknown() {
            let message = format!("this has to be a time such as now(), and it is {}", kind.name());
            return Err(Wrong::new(program.code.at, message).in_source(source));
        }
        Ok(Self { program })
    }

    /// The time, evaluated at `now`.
    pub fn at(&self, now: Timestamp) -> Result<Timestamp, RunError> {
        match self.program.run(&Value::Nil, now)? {
            (Value::Time(time), _) => Ok(time.at),
            (other, _) => {
                let message = format!("this has to be a time such as now(), and it is {}", other.name());
                Err(self
                    .program
                    .error(RunErrorKind::Outcome, self.program.code.at, &message))
            }
        }
    }
}

/// A compiled expression.
#[derive(Clone, Debug)]
struct Program {
    source: String,
    code: Code,
    variables: usize,
    /// The size of its compiled patterns in bytes.
    patterns: usize,
}

impl Program {
    fn compile(source: &str, environment: &Environment) -> Result<(Self, Type), CompileError> {
        let compiled = parser::parse(source)
            .and_then(|node| check::check(&node, environment))
            .and_then(|checked| {
                let Checked {
                    code,
                    kind,
                    variables,
                } = checked;
                let (code, patterns) = simplify::simplify(code)?;
                Ok((code, patterns, kind, variables))
            });
        let (code, patterns, kind, variables) = compiled.map_err(|wrong| wrong.in_source(source))?;
        let source = source.to_owned();
        let program = Self {
            source,
            code,
            variables,
            patterns,
        };
        Ok((program, kind))
    }

    fn run(&self, result: &Value, now: Timestamp) -> Result<(Value, Voids), RunError> {
        eval::evaluate(&self.code, self.variables, result, now).map_err(|(at, fault)| match fault {
            Fault::Value {
                message,
                without_values,
            } => {
                let error = self.error(RunErrorKind::Value, at, &message);
                RunError {
                    without_values: without_values.map_or(message, str::to_owned),
                    ..error
                }
            }
            Fault::Budget(message) => self.error(RunErrorKind::Budget, at, message),
        })
    }

    /// An error whose message contains no part of the values.
    fn error(&self, kind: RunErrorKind, at: usize, message: &str) -> RunError {
        RunError {
            kind,
            message: message.to_owned(),
            without_values: message.to_owned(),
            place: Place::of(&self.source, at),
        }
    }
}
