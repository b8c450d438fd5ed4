//! The types in a rule, as far as a schema declares them.

use std::collections::BTreeMap;

use kube_cel::cel::common::ast::LiteralValue;

use crate::custom::cel::escaped;
use crate::custom::schema::Schema;

/// The type of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Null,
    Timestamp,
    Duration,
    List(Box<Type>),
    Map(Box<Type>),
    /// Fields, by their escaped names.
    Object(BTreeMap<String, Type>),
    Optional(Box<Type>),
    /// Known only at run time.
    Dyn,
}

/// The type of a schema; `None` if rules cannot access it.
pub(super) fn of_schema(schema: &Schema, resource: bool) -> Option<Type> {
    if schema.int_or_string {
        return Some(Type::Dyn);
    }
    Some(match schema.kind.as_str() {
        "array" => {
            let inner = schema.items.as_deref()?;
            Type::List(Box::new(of_schema(inner, inner.embedded)?))
        }
        "object" if schema.additional().is_some() => {
            let inner = schema.additional()?;
            Type::Map(Box::new(of_schema(inner, inner.embedded)?))
        }
        "object" => {
            let known = schema
                .properties
                .iter()
                .filter_map(|(name, inner)| Some((escaped(name)?, of_schema(inner, inner.embedded)?)));
            let mut fields: BTreeMap<_, _> = known.collect();
            if resource {
                let names = ["name", "generateName"].map(|name| (name.to_owned(), Type::String));
                fields.insert("metadata".into(), Type::Object(names.into()));
                fields.insert("apiVersion".into(), Type::String);
                fields.insert("kind".into(), Type::String);
            }
            Type::Object(fields)
        }
        "string" => match schema.format.as_str() {
            "byte" => Type::Bytes,
            "duration" => Type::Duration,
            "date" | "date-time" => Type::Timestamp,
            _ => Type::String,
        },
        "boolean" => Type::Bool,
        "number" => Type::Double,
        "integer" => Type::Int,
        _ => return None,
    })
}

/// The type of a literal.
pub(super) fn literal_type(literal: &LiteralValue) -> Type {
    match literal {
        LiteralValue::Boolean(_) => Type::Bool,
        LiteralValue::Bytes(_) => Type::Bytes,
        LiteralValue::Double(_) => Type::Double,
        LiteralValue::Int(_) => Type::Int,
        LiteralValue::Null => Type::Null,
        LiteralValue::String(_) => Type::String,
        LiteralValue::UInt(_) => Type::Uint,
    }
}

/// Whether an operator is defined for these two types.
pub(super) fn has_overload(operator: &str, left: &Type, right: &Type) -> bool {
    use Type::{Bool, Bytes, Double, Duration, Dyn, Int, List, Null, Optional, String, Timestamp, Uint};
    let numeric = |kind: &Type| matches!(kind, Int | Uint | Double);
    match (operator, left, right) {
        (_, Dyn | Optional(_), _) | (_, _, Dyn | Optional(_)) => true,
        ("==" | "!=", left, Null) | ("==" | "!=", Null, left) => {
            !matches!(left, Bool | Int | Uint | Double | String)
        }
        ("==" | "!=", List(left), List(right)) => has_overload("==", left, right),
        ("==" | "!=", left, right) => std::mem::discriminant(left) == std::mem::discriminant(right),
        ("<" | "<=" | ">" | ">=", left, right) if numeric(left) && numeric(right) => true,
        ("<" | "<=" | ">" | ">=", Bool | String | Bytes | Timestamp | Duration, right) => left == right,
        ("+", String | Bytes, right) => left == right,
        ("+", List(_), right) => matches!(right, List(_)),
        ("+", Timestamp, Duration) | ("+", Duration, Timestamp | Duration) => true,
        ("-", Timestamp, Timestamp | Duration) | ("-", Duration, Duration) => true,
        ("+" | "-" | "*" | "/", left, right) if numeric(left) => left == right,
        ("%", Int | Uint, right) => left == right,
        ("in", _, right) => matches!(right, List(_) | Type::Map(_)),
        _ => false,
    }
}

/// The compiler's name of a type.
pub(super) fn spelled(kind: &Type) -> String {
    match kind {
        Type::Bool => "bool".into(),
        Type::Int => "int".into(),
        Type::Uint => "uint".into(),
        Type::Double => "double".into(),
        Type::String => "string".into(),
        Type::Bytes => "bytes".into(),
        Type::Null => "null".into(),
        Type::Timestamp => "timestamp".into(),
        Type::Duration => "duration".into(),
        Type::List(inner) => format!("list({})", spelled(inner)),
        Type::Map(inner) => format!("map(string, {})", spelled(inner)),
        Type::Object(_) => "object".into(),
        Type::Optional(inner) => format!("optional_type({})", spelled(inner)),
        Type::Dyn => "dyn".into(),
    }
}
