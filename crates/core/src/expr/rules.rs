//! The types of operators and members.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ast::{Binary, Node, Syntax};
use super::builtins;
use super::code::{Code, Op};
use super::error::Wrong;
use super::shape::Type;
use super::value::Value;

/// The result type of an operator for these types; `None` if it is not defined.
pub(super) fn outcome(operator: Binary, l: &Type, r: &Type) -> Option<Type> {
    use Type::{Bool, Duration, Float, Int, Text, Time, Unknown};
    // The type of one side is unknown, and the other one is valid.
    let maybe = |good: &dyn Fn(&Type) -> bool| {
        l.is_unknown() && (r.is_unknown() || good(r)) || r.is_unknown() && good(l)
    };
    let promoted = || if *l == Float || *r == Float { Float } else { Int };
    let numbers = l.is_number() && r.is_number();
    let ordered = |kind: &Type| kind.is_number() || matches!(kind, Text | Time | Duration);
    match operator {
        Binary::Equal | Binary::NotEqual => l.comparable(r).then_some(Bool),
        Binary::Or | Binary::And => {
            (*l == Bool && *r == Bool || maybe(&|kind| *kind == Bool)).then_some(Bool)
        }
        Binary::Less | Binary::More | Binary::LessOrEqual | Binary::MoreOrEqual => {
            (numbers || l == r && ordered(l) || maybe(&ordered)).then_some(Bool)
        }
        Binary::Subtract => match (l, r) {
            _ if numbers => Some(promoted()),
            (Time, Time) | (Duration, Duration) => Some(Duration),
            (Time, Duration) => Some(Time),
            _ => maybe(&|kind| kind.is_number() || matches!(kind, Time | Duration)).then_some(Unknown),
        },
        Binary::Add => match (l, r) {
            _ if numbers => Some(promoted()),
            (Text, Text) => Some(Text),
            (Time, Duration) | (Duration, Time) => Some(Time),
            (Duration, Duration) => Some(Duration),
            _ => maybe(&ordered).then_some(Unknown),
        },
        Binary::Multiply => match (l, r) {
            _ if numbers => Some(promoted()),
            (Duration, Duration) => Some(Duration),
            (Duration, other) | (other, Duration) if other.is_number() => Some(Duration),
            _ => maybe(&|kind| kind.is_number() || *kind == Duration).then_some(Unknown),
        },
        Binary::Divide | Binary::Power => (numbers || maybe(&Type::is_number)).then_some(Float),
        Binary::Modulo => (l.is_whole() && r.is_whole() || maybe(&Type::is_whole)).then_some(Int),
        Binary::Range => {
            (l.is_whole() && r.is_whole() || maybe(&Type::is_whole)).then(|| Type::List(Box::new(Int)))
        }
        Binary::Matches | Binary::Contains | Binary::StartsWith | Binary::EndsWith => {
            (*l == Text && *r == Text || maybe(&|kind| *kind == Text)).then_some(Bool)
        }
        Binary::Coalesce => Some(match (l, r) {
            (Type::Nil, other) | (other, Type::Nil) => other.clone(),
            _ if r.fits(l) => l.clone(),
            _ => Unknown,
        }),
        Binary::In => Some(Bool),
    }
}

/// Whether `in` is defined for `l` in `r`.
pub(super) fn check_in(at: usize, l: &Type, r: &Type) -> Result<(), Wrong> {
    let wrong = |message: String| Err(Wrong::new(at, message));
    if r.is_unknown() {
        return Ok(());
    }
    if *r == Type::Time && (*l == Type::Text || l.is_unknown()) {
        return Ok(());
    }
    if r.is_map() {
        let key = if *r == Type::Fields { Type::Text } else { Type::Any };
        if !l.is_unknown() && !l.fits(&key) {
            return wrong(format!("a map has strings as keys, and this is {}", l.name()));
        }
        return Ok(());
    }
    if r.is_list() {
        if !l.comparable(&r.element()) {
            return wrong(format!(
                "{} cannot be in a list whose elements are each {}",
                l.name(),
                r.element().name()
            ));
        }
        return Ok(());
    }
    if l.is_unknown() && *r == Type::Text {
        return Ok(());
    }
    wrong(format!("in looks into a list or a map, and this is {}", r.name()))
}

/// Go turns lists of constants into sets, which compare keys and not values.
pub(super) fn in_op(left: Code, l: &Type, right: Code) -> Op {
    let left = Box::new(left);
    if let Op::List(codes) = &right.op
        && !codes.is_empty()
    {
        let numbers: Option<BTreeSet<i64>> = codes.iter().map(Code::int).collect();
        if let Some(numbers) = numbers.filter(|_| *l == Type::Int) {
            return Op::InNumbers(left, numbers);
        }
        let texts: Option<BTreeSet<Arc<str>>> = codes
            .iter()
            .map(|code| match code.constant() {
                Some(Value::Text(text)) => Some(text.clone()),
                _ => None,
            })
            .collect();
        if let Some(texts) = texts {
            return Op::InTexts(left, texts);
        }
    }
    if let Op::Binary(Binary::Range, from, to) = &right.op
        && *l == Type::Int
        && let (Some(from), Some(to)) = (bound(from), bound(to))
    {
        return Op::InRange(left, from, to);
    }
    Op::Binary(Binary::In, left, Box::new(right))
}

/// A range bound, if it is a number literal.
fn bound(code: &Code) -> Option<i64> {
    match &code.op {
        Op::Negate(inner) => inner.int().map(i64::wrapping_neg),
        _ => code.int(),
    }
}

/// The type of the member `key` of a value of type `b`.
pub(super) fn member_type(key: &Node, b: &Type, k: &Type) -> Result<Type, Wrong> {
    if b.is_unknown() {
        return Ok(Type::Unknown);
    }
    let field = match &key.syntax {
        Syntax::Text(name) => Some(name),
        _ => None,
    };
    if let Some(name) = field
        && matches!(b, Type::Time | Type::Duration)
        && builtins::method_exists(b, name)
    {
        return Err(Wrong::new(
            key.at,
            format!("a function as a value is not supported; call it: {name}()"),
        ));
    }
    if b.is_map() {
        let wanted = if *b == Type::Fields { Type::Text } else { Type::Any };
        if !k.fits(&wanted) && !k.is_unknown() {
            return Err(Wrong::new(
                key.at,
                format!("a map is asked by a string, and this is {}", k.name()),
            ));
        }
        return Ok(b.element());
    }
    if b.is_list() {
        if !k.is_whole() && !k.is_unknown() {
            return Err(Wrong::new(
                key.at,
                format!("a list is asked by a whole number, and this is {}", k.name()),
            ));
        }
        return Ok(b.element());
    }
    Err(Wrong::new(
        key.at,
        match field {
            Some(name) => format!("{} has no field {name}", b.name()),
            None => format!(
                "only lists and maps can be asked for an element, and this is {}",
                b.name()
            ),
        },
    ))
}
