//! The functions that expressions can call.
//!
//! [`outcome`] checks the types of arguments at compile time; [`call`] runs a function. Both follow Go's expr exactly, including calls that
//! it accepts at compile time only to fail at run time.

mod lists;
mod maps;
mod numbers;
mod signature;
mod strings;
mod time;

pub(super) use signature::{method_exists, method_outcome, outcome};
pub(super) use time::{call_method, format_duration};

use super::budget::{Budget, Fault};
use super::value::Value;

/// A part of a call that is evaluated for every element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Value,
    Predicate,
    OptionalPredicate,
    OptionalValue,
}

impl Part {
    pub(super) fn optional(self) -> bool {
        matches!(self, Self::OptionalPredicate | Self::OptionalValue)
    }
}

const FOR_EACH: &[Part] = &[Part::Value, Part::Predicate];
const MAYBE_FOR_EACH: &[Part] = &[Part::Value, Part::OptionalPredicate];
const FOR_EACH_AND_MORE: &[Part] = &[Part::Value, Part::Predicate, Part::OptionalValue];

/// The functions with a predicate or another part that is evaluated for every element.
const LOOPS: [(&str, &[Part]); 15] = [
    ("all", FOR_EACH),
    ("none", FOR_EACH),
    ("any", FOR_EACH),
    ("one", FOR_EACH),
    ("filter", FOR_EACH),
    ("map", FOR_EACH),
    ("count", MAYBE_FOR_EACH),
    ("sum", MAYBE_FOR_EACH),
    ("find", FOR_EACH),
    ("findIndex", FOR_EACH),
    ("findLast", FOR_EACH),
    ("findLastIndex", FOR_EACH),
    ("groupBy", FOR_EACH),
    ("sortBy", FOR_EACH_AND_MORE),
    ("reduce", FOR_EACH_AND_MORE),
];

/// A function of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    // From Argo Rollouts.
    AsInt,
    AsFloat,
    IsNaN,
    IsInf,
    IsNil,
    Default,
    // Built in.
    Len,
    Type,
    Abs,
    Ceil,
    Floor,
    Round,
    Int,
    Float,
    String,
    Trim,
    TrimPrefix,
    TrimSuffix,
    Upper,
    Lower,
    Split,
    SplitAfter,
    Replace,
    Repeat,
    Join,
    IndexOf,
    LastIndexOf,
    HasPrefix,
    HasSuffix,
    Max,
    Min,
    Mean,
    Median,
    ToJson,
    FromJson,
    Now,
    Duration,
    Date,
    First,
    Last,
    Get,
    Take,
    Keys,
    Values,
    ToPairs,
    FromPairs,
    Reverse,
    Uniq,
    Concat,
    Flatten,
    Sort,
    BitAnd,
    BitOr,
    BitXor,
    BitNand,
    BitShl,
    BitShr,
    BitUshr,
    BitNot,
}

const FUNCTIONS: [(&str, Function); 53] = [
    ("len", Function::Len),
    ("type", Function::Type),
    ("abs", Function::Abs),
    ("ceil", Function::Ceil),
    ("floor", Function::Floor),
    ("round", Function::Round),
    ("int", Function::Int),
    ("float", Function::Float),
    ("string", Function::String),
    ("trim", Function::Trim),
    ("trimPrefix", Function::TrimPrefix),
    ("trimSuffix", Function::TrimSuffix),
    ("upper", Function::Upper),
    ("lower", Function::Lower),
    ("split", Function::Split),
    ("splitAfter", Function::SplitAfter),
    ("replace", Function::Replace),
    ("repeat", Function::Repeat),
    ("join", Function::Join),
    ("indexOf", Function::IndexOf),
    ("lastIndexOf", Function::LastIndexOf),
    ("hasPrefix", Function::HasPrefix),
    ("hasSuffix", Function::HasSuffix),
    ("max", Function::Max),
    ("min", Function::Min),
    ("mean", Function::Mean),
    ("median", Function::Median),
    ("toJSON", Function::ToJson),
    ("fromJSON", Function::FromJson),
    ("now", Function::Now),
    ("duration", Function::Duration),
    ("date", Function::Date),
    ("first", Function::First),
    ("last", Function::Last),
    ("get", Function::Get),
    ("take", Function::Take),
    ("keys", Function::Keys),
    ("values", Function::Values),
    ("toPairs", Function::ToPairs),
    ("fromPairs", Function::FromPairs),
    ("reverse", Function::Reverse),
    ("uniq", Function::Uniq),
    ("concat", Function::Concat),
    ("flatten", Function::Flatten),
    ("sort", Function::Sort),
    ("bitand", Function::BitAnd),
    ("bitor", Function::BitOr),
    ("bitxor", Function::BitXor),
    ("bitnand", Function::BitNand),
    ("bitshl", Function::BitShl),
    ("bitshr", Function::BitShr),
    ("bitushr", Function::BitUshr),
    ("bitnot", Function::BitNot),
];

/// Functions of Go's expr that are rejected here.
const REFUSED: [&str; 3] = ["toBase64", "fromBase64", "timezone"];

/// The arguments of a function that is evaluated for every element.
pub(super) fn parts(name: &str) -> Option<(&'static str, &'static [Part])> {
    LOOPS.into_iter().find(|(known, _)| *known == name)
}

/// The name of a function of values.
pub(super) fn known(name: &str) -> Option<&'static str> {
    FUNCTIONS
        .into_iter()
        .map(|(known, _)| known)
        .chain(REFUSED)
        .find(|known| *known == name)
}

/// The function of values with that name.
pub(super) fn function(name: &str) -> Option<Function> {
    FUNCTIONS
        .into_iter()
        .find(|(known, _)| *known == name)
        .map(|(_, function)| function)
}

/// Whether any built-in function has that name.
pub(super) fn exists(name: &str) -> bool {
    parts(name).is_some() || known(name).is_some()
}

/// The inputs of a function besides its arguments.
pub(super) struct Surroundings<'a> {
    pub(super) result: &'a Value,
    pub(super) now: jiff::Timestamp,
}

/// Calls a function.
pub(super) fn call(
    function: Function,
    arguments: &[Value],
    around: &Surroundings<'_>,
    budget: &mut Budget,
) -> Result<Value, Fault> {
    use Function as F;
    match function {
        F::AsInt
        | F::AsFloat
        | F::IsNaN
        | F::IsInf
        | F::Abs
        | F::Ceil
        | F::Floor
        | F::Round
        | F::Int
        | F::Float => numbers::convert(function, arguments),
        F::Max | F::Min | F::Mean | F::Median => numbers::aggregate(function, arguments, budget),
        F::BitAnd | F::BitOr | F::BitXor | F::BitNand | F::BitShl | F::BitShr | F::BitUshr | F::BitNot => {
            numbers::bits(function, arguments)
        }
        // These two read the answer, whatever their arguments.
        F::IsNil => Ok(Value::Bool(around.result.is_nil())),
        F::Default if around.result.is_nil() => Ok(arguments.get(1).cloned().unwrap_or(Value::Nil)),
        F::Default => Ok(around.result.clone()),
        F::Len => lists::len(arguments),
        F::Type | F::String | F::ToJson | F::FromJson => strings::convert(function, arguments, budget),
        F::Trim
        | F::TrimPrefix
        | F::TrimSuffix
        | F::Upper
        | F::Lower
        | F::Split
        | F::SplitAfter
        | F::Replace
        | F::Repeat
        | F::Join
        | F::IndexOf
        | F::LastIndexOf
        | F::HasPrefix
        | F::HasSuffix => strings::edit(function, arguments, budget),
        F::Now => Ok(time::now(around.now)),
        F::Duration => time::duration(arguments),
        F::Date => time::date(arguments),
        F::First | F::Last | F::Get | F::Take | F::Reverse | F::Uniq | F::Concat | F::Flatten | F::Sort => {
            lists::call(function, arguments, budget)
        }
        F::Keys | F::Values | F::ToPairs | F::FromPairs => maps::call(function, arguments, budget),
    }
}

/// The beginning of a text, for a message: an answer may be long.
fn quoted(text: &str) -> String {
    const SHOWN: usize = 64;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The argument with this index; the checks guarantee that it exists.
fn argument(arguments: &[Value], index: usize) -> &Value {
    arguments.get(index).unwrap_or(&Value::Nil)
}

/// The argument with this index as a string.
fn text(arguments: &[Value], index: usize) -> Result<&str, Fault> {
    match argument(arguments, index) {
        Value::Text(text) => Ok(text),
        other => Err(Fault::value(format!(
            "argument {} has to be a string, and it is {}",
            index + 1,
            other.name()
        ))),
    }
}
