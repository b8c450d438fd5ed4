//! The types that functions accept and return, for the checks at compile time.

use super::Function;
use crate::expr::shape::Type;

/// The types that one argument may have.
#[derive(Clone, Copy, Debug)]
enum Want {
    Any,
    Text,
    Whole,
    Float,
    List,
    Floats,
    Texts,
}

impl Want {
    fn takes(self, kind: &Type) -> bool {
        match (self, kind) {
            (Self::Any, _) => true,
            (_, Type::Nil) => false,
            (_, kind) if kind.is_unknown() => true,
            (Self::Text, Type::Text) => true,
            (Self::Whole, kind) => kind.is_whole(),
            (Self::Float, kind) => kind.is_number(),
            (Self::List, Type::List(_)) => true,
            (Self::Floats, Type::Floats) => true,
            (Self::Texts, Type::Texts) => true,
            _ => false,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Any => "any value",
            Self::Text => "a string",
            Self::Whole => "a whole number",
            Self::Float => "a number",
            Self::List => "a list",
            Self::Floats => "a list of numbers",
            Self::Texts => "a list of strings",
        }
    }
}

/// The signatures of a function.
fn ways(function: Function) -> Option<(&'static [&'static [Want]], Type)> {
    use Function as F;
    use Want::{Any, Float, Floats, List, Text, Texts, Whole};
    Some(match function {
        F::AsInt => (&[&[Any]], Type::Long),
        F::AsFloat => (&[&[Any]], Type::Float),
        F::IsNaN | F::IsInf => (&[&[Float]], Type::Bool),
        F::IsNil => (&[&[Any]], Type::Bool),
        F::Default => (&[&[Any, Any]], Type::Any),
        F::Type | F::String | F::ToJson => (&[&[Any]], Type::Text),
        F::FromJson => (&[&[Text]], Type::Any),
        F::Duration => (&[&[Text]], Type::Duration),
        F::Trim | F::TrimPrefix | F::TrimSuffix => (&[&[Text], &[Text, Text]], Type::Text),
        F::Upper | F::Lower => (&[&[Text]], Type::Text),
        F::Split | F::SplitAfter => (&[&[Text, Text], &[Text, Text, Whole]], Type::Texts),
        F::Replace => (&[&[Text, Text, Text, Whole], &[Text, Text, Text]], Type::Text),
        F::Repeat => (&[&[Text, Whole]], Type::Text),
        F::Join => (&[&[Texts, Text], &[List, Text], &[Texts], &[List]], Type::Text),
        F::IndexOf | F::LastIndexOf => (&[&[Text, Text]], Type::Int),
        F::HasPrefix | F::HasSuffix => (&[&[Text, Text]], Type::Bool),
        F::Sort => (
            &[
                &[List, Text],
                &[Floats, Text],
                &[Texts, Text],
                &[List],
                &[Floats],
                &[Texts],
            ],
            Type::list(),
        ),
        F::BitAnd | F::BitOr | F::BitXor | F::BitNand | F::BitShl | F::BitShr | F::BitUshr => {
            (&[&[Whole, Whole]], Type::Int)
        }
        F::BitNot => (&[&[Whole]], Type::Int),
        _ => return None,
    })
}

/// The result type of a call of `function` with these arguments, or why it is invalid.
pub(crate) fn outcome(function: Function, name: &str, types: &[Type]) -> Result<Type, String> {
    if let Some((ways, gives)) = ways(function) {
        let fits = |way: &&&[Want]| {
            way.len() == types.len() && way.iter().zip(types).all(|(want, kind)| want.takes(kind))
        };
        if ways.iter().any(|way| fits(&way)) {
            return Ok(gives);
        }
        return Err(refusal(name, ways, types));
    }
    special(function, name, types)
}

fn refusal(name: &str, ways: &[&[Want]], types: &[Type]) -> String {
    let signatures: Vec<String> = ways
        .iter()
        .map(|way| {
            let wants: Vec<_> = way.iter().map(|want| want.name()).collect();
            format!("{name}({})", wants.join(", "))
        })
        .collect();
    let given: Vec<_> = types.iter().map(Type::name).collect();
    format!(
        "{name}({}) has no meaning; it is called as {}",
        given.join(", "),
        signatures.join(" or ")
    )
}

fn special(function: Function, name: &str, types: &[Type]) -> Result<Type, String> {
    use Function as F;
    let count = |least: usize, most: usize| -> Result<(), String> {
        if (least..=most).contains(&types.len()) {
            return Ok(());
        }
        let wanted = match (least, most) {
            (_, usize::MAX) => format!("at least {least}"),
            _ if least == most => least.to_string(),
            _ => format!("{least} to {most}"),
        };
        Err(format!(
            "{name}() takes {wanted} arguments, and there are {}",
            types.len()
        ))
    };
    let wrong =
        |wanted: &str, kind: &Type| Err(format!("{name}() takes {wanted}, and this is {}", kind.name()));
    let number_like = |kind: &Type| kind.is_number() || *kind == Type::Duration;
    match function {
        F::Now => count(0, 0).map(|()| Type::Time),
        F::Date => match types {
            [] | [_, _, _, _, _, ..] => count(1, 1).map(|()| Type::Time),
            [_] => Ok(Type::Time),
            _ => Err("date() with a layout or a time zone is not supported; write the time as in \"2026-01-31T12:00:00Z\"".into()),
        },
        F::Max | F::Min | F::Mean | F::Median => {
            count(1, usize::MAX)?;
            for kind in types {
                if kind.is_unknown() || kind.is_list() {
                    return Ok(Type::Any);
                }
                if !number_like(kind) {
                    return wrong("numbers and lists of numbers", kind);
                }
            }
            Ok(types[0].clone())
        }
        F::Concat => {
            count(1, usize::MAX)?;
            match types.iter().find(|kind| !kind.is_list() && !kind.is_unknown()) {
                Some(kind) => wrong("lists", kind),
                None => Ok(Type::list()),
            }
        }
        F::Take => {
            count(2, 2)?;
            match types {
                [list, _] if !list.is_list() && !list.is_unknown() => wrong("a list", list),
                [_, n] if !n.is_whole() && *n != Type::Duration && !n.is_unknown() => wrong("a whole number", n),
                _ => Ok(types[0].plain()),
            }
        }
        F::Get => {
            count(2, 2)?;
            get(name, &types[0], &types[1])
        }
        _ => {
            count(1, 1)?;
            of_one(function, name, &types[0])
        }
    }
}

fn get(name: &str, base: &Type, key: &Type) -> Result<Type, String> {
    let (wanted, good) = if base.is_unknown() {
        return Ok(Type::Unknown);
    } else if base.is_list() {
        ("a whole number", key.is_whole())
    } else if base.is_map() {
        let wanted = if *base == Type::Fields {
            Type::Text
        } else {
            Type::Any
        };
        ("a string", key.fits(&wanted))
    } else {
        return Err(format!(
            "{name}() asks a list or a map, and this is {}",
            base.name()
        ));
    };
    if good || key.is_unknown() {
        return Ok(base.element());
    }
    Err(format!(
        "{name}() asks {} for {wanted}, and this is {}",
        base.name(),
        key.name()
    ))
}

fn of_one(function: Function, name: &str, kind: &Type) -> Result<Type, String> {
    use Function as F;
    let number_like = kind.is_number() || *kind == Type::Duration;
    let (wanted, good, gives) = match function {
        F::Len => (
            "a list, a map or a string",
            kind.is_list() || kind.is_map() || *kind == Type::Text,
            Type::Int,
        ),
        F::Abs => ("a number", number_like, kind.clone()),
        F::Ceil | F::Floor | F::Round => ("a number", number_like, Type::Float),
        F::Int => (
            "a number or a string",
            number_like || *kind == Type::Text,
            Type::Int,
        ),
        F::Float => (
            "a number or a string",
            number_like || *kind == Type::Text,
            Type::Float,
        ),
        F::First | F::Last => ("a list", kind.is_list(), kind.plain().element()),
        F::Keys | F::Values | F::ToPairs => ("a map", kind.is_map(), Type::list()),
        F::FromPairs => ("a list of pairs", kind.is_list(), Type::AnyMap),
        // The remaining functions: reverse, uniq and flatten.
        _ => ("a list", kind.is_list(), Type::list()),
    };
    if kind.is_unknown() {
        return Ok(match function {
            F::First | F::Last | F::Abs => Type::Any,
            _ => gives,
        });
    }
    if good {
        return Ok(gives);
    }
    Err(format!("{name}() takes {wanted}, and this is {}", kind.name()))
}

/// The methods of times, with their argument and result types.
const TIME: [(&str, &[Type], Type); 18] = [
    ("Unix", &[], Type::Long),
    ("UnixMilli", &[], Type::Long),
    ("UnixMicro", &[], Type::Long),
    ("UnixNano", &[], Type::Long),
    ("Year", &[], Type::Int),
    ("Day", &[], Type::Int),
    ("YearDay", &[], Type::Int),
    ("Hour", &[], Type::Int),
    ("Minute", &[], Type::Int),
    ("Second", &[], Type::Int),
    ("Nanosecond", &[], Type::Int),
    ("IsZero", &[], Type::Bool),
    ("UTC", &[], Type::Time),
    ("Add", &[Type::Duration], Type::Time),
    ("Sub", &[Type::Time], Type::Duration),
    ("After", &[Type::Time], Type::Bool),
    ("Before", &[Type::Time], Type::Bool),
    ("Equal", &[Type::Time], Type::Bool),
];

/// The methods of durations.
const DURATION: [(&str, &[Type], Type); 8] = [
    ("Hours", &[], Type::Float),
    ("Minutes", &[], Type::Float),
    ("Seconds", &[], Type::Float),
    ("Milliseconds", &[], Type::Long),
    ("Microseconds", &[], Type::Long),
    ("Nanoseconds", &[], Type::Long),
    ("String", &[], Type::Text),
    ("Abs", &[], Type::Duration),
];

/// Methods of Go's times and durations that are rejected here.
const REFUSED: [&str; 21] = [
    "AddDate",
    "AppendFormat",
    "Clock",
    "Compare",
    "Date",
    "Format",
    "GoString",
    "ISOWeek",
    "In",
    "IsDST",
    "Local",
    "Location",
    "MarshalJSON",
    "MarshalText",
    "Month",
    "Round",
    "String",
    "Truncate",
    "Weekday",
    "Zone",
    "ZoneBounds",
];

fn methods(kind: &Type) -> &'static [(&'static str, &'static [Type], Type)] {
    match kind {
        Type::Time => &TIME,
        Type::Duration => &DURATION,
        _ => &[],
    }
}

/// Whether times or durations have this method.
pub(crate) fn method_exists(kind: &Type, name: &str) -> bool {
    methods(kind).iter().any(|(known, _, _)| *known == name) || REFUSED.contains(&name)
}

/// The result type of a method call, or why it is invalid.
pub(crate) fn method_outcome(kind: &Type, name: &str, types: &[Type]) -> Result<Type, String> {
    let Some((_, wants, gives)) = methods(kind).iter().find(|(known, _, _)| *known == name) else {
        let known: Vec<_> = methods(kind).iter().map(|(known, _, _)| *known).collect();
        return Err(match known.is_empty() {
            true => format!("{} has no method {name}()", kind.name()),
            false => format!(
                "the method {name}() of {} is not supported; known are {}",
                kind.name(),
                known.join(", ")
            ),
        });
    };
    let fits = wants.len() == types.len()
        && wants
            .iter()
            .zip(types)
            .all(|(want, kind)| want == kind || kind.is_unknown());
    if fits {
        return Ok(gives.clone());
    }
    let wants: Vec<_> = wants.iter().map(Type::name).collect();
    Err(format!("the method is called as {name}({})", wants.join(", ")))
}
