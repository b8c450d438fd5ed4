//! Works around bugs of the `cel` crate: in the expression before it runs, and in two functions.
//!
//! The crate fails on an optional selection of a missing field, forgets that selecting from an optional gives an optional, and counts the
//! bytes of a text. It also lacks `type` and `dyn`.

use std::sync::Arc;

use kube_cel::KubeCelExt;
use kube_cel::cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue};
use kube_cel::cel::extractors::This;
use kube_cel::cel::parser::Expression;
use kube_cel::cel::{Context, ExecutionError, Value as Cel};

const OPTIONAL_SELECT: &str = "_?._";
const OPTIONAL_INDEX: &str = "_[?_]";

/// The functions that rules may call.
pub(super) fn functions() -> Context<'static> {
    let mut context = Context::default().with_all();
    for name in [
        "int",
        "uint",
        "double",
        "bool",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
    ] {
        context.add_variable_from_value(name, name);
    }
    context.add_function("type", |value: Cel| -> Result<Cel, ExecutionError> {
        Ok(type_name(&value).into())
    });
    context.add_function("dyn", |value: Cel| -> Result<Cel, ExecutionError> { Ok(value) });
    context.add_function("size", |This(value): This<Cel>| -> Result<i64, ExecutionError> {
        size(&value)
    });
    context
}

fn type_name(value: &Cel) -> &'static str {
    match value {
        Cel::List(_) => "list",
        Cel::Map(_) => "map",
        Cel::Int(_) => "int",
        Cel::UInt(_) => "uint",
        Cel::Float(_) => "double",
        Cel::String(_) => "string",
        Cel::Bytes(_) => "bytes",
        Cel::Bool(_) => "bool",
        Cel::Null => "null_type",
        _ => "dyn",
    }
}

fn size(value: &Cel) -> Result<i64, ExecutionError> {
    let size = match value {
        Cel::String(text) => text.chars().count(),
        Cel::Bytes(bytes) => bytes.len(),
        Cel::List(items) => items.len(),
        Cel::Map(map) => map.map.len(),
        _ => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(i64::try_from(size).unwrap_or(i64::MAX))
}

/// The same expression with optional selections that the crate can evaluate.
pub(super) fn mended(mut expression: Expression) -> Expression {
    mend(&mut expression);
    expression
}

fn mend(expression: &mut Expression) {
    match &mut expression.expr {
        Expr::Call(call) => {
            call.target.iter_mut().for_each(|target| mend(target));
            call.args.iter_mut().for_each(mend);
            if call.func_name == OPTIONAL_SELECT {
                call.func_name = OPTIONAL_INDEX.to_owned();
            }
        }
        Expr::Select(select) => {
            mend(&mut select.operand);
            if is_optional(&select.operand) && !select.test {
                let operand = std::mem::take(&mut *select.operand);
                let field = LiteralValue::String(select.field.as_str().into());
                let field = Expression {
                    id: expression.id,
                    expr: Expr::Literal(field),
                };
                let func_name = OPTIONAL_INDEX.to_owned();
                expression.expr = Expr::Call(CallExpr {
                    func_name,
                    target: None,
                    args: vec![operand, field],
                });
            }
        }
        Expr::Comprehension(comprehension) => {
            let parts = [
                &mut comprehension.iter_range,
                &mut comprehension.accu_init,
                &mut comprehension.loop_cond,
                &mut comprehension.loop_step,
                &mut comprehension.result,
            ];
            parts.into_iter().for_each(mend);
        }
        Expr::List(list) => list.elements.iter_mut().for_each(mend),
        Expr::Map(map) => map
            .entries
            .iter_mut()
            .for_each(|entry| mend_entry(&mut entry.expr)),
        Expr::Struct(made) => made
            .entries
            .iter_mut()
            .for_each(|entry| mend_entry(&mut entry.expr)),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
}

fn mend_entry(entry: &mut EntryExpr) {
    match entry {
        EntryExpr::MapEntry(entry) => {
            mend(&mut entry.key);
            mend(&mut entry.value);
        }
        EntryExpr::StructField(field) => mend(&mut field.value),
    }
}

fn is_optional(expression: &Expression) -> bool {
    matches!(&expression.expr, Expr::Call(call) if call.func_name == OPTIONAL_INDEX)
}

/// An error with cel-go's message; `None` if no function takes such arguments.
pub(super) fn worded(error: &ExecutionError) -> Option<String> {
    Some(match error {
        ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
        ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
        ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
        ExecutionError::Overflow(..) => "integer overflow".to_owned(),
        ExecutionError::IndexOutOfBounds(Cel::Int(index)) => format!("index out of bounds: {index}"),
        ExecutionError::FunctionError { message, .. } => function_worded(message),
        ExecutionError::NoSuchOverload
        | ExecutionError::ValuesNotComparable(..)
        | ExecutionError::UnsupportedUnaryOperator(..)
        | ExecutionError::UnsupportedBinaryOperator(..)
        | ExecutionError::UnexpectedType { .. } => return None,
        other => other.to_string(),
    })
}

/// The functions' own messages, if they differ.
fn function_worded(message: &str) -> String {
    if let Some(index) = message
        .strip_prefix("start index ")
        .and_then(|rest| rest.split(' ').next())
    {
        return format!("index out of range: {index}");
    }
    if let Some(function) = message
        .strip_prefix("cannot call ")
        .and_then(|rest| rest.strip_suffix(" on empty list"))
    {
        return format!("{function} called on empty list");
    }
    if message.starts_with("no numeric value in ") {
        let pattern = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$";
        return format!("quantities must match the regular expression '{pattern}'");
    }
    message.to_owned()
}

/// The crate's representation of an optional value.
pub(super) fn optional(value: Option<Cel>) -> Cel {
    use kube_cel::cel::objects::OptionalValue;
    Cel::Opaque(Arc::new(
        value.map_or_else(OptionalValue::none, OptionalValue::of),
    ))
}
