//! Functions of lists.

use super::{Function, argument};
use crate::expr::budget::{Budget, Fault};
use crate::expr::loops::sort;
use crate::expr::operators;
use crate::expr::value::{ListKind, Value};

/// The length.
pub(super) fn len(arguments: &[Value]) -> Result<Value, Fault> {
    let length = match argument(arguments, 0) {
        Value::List(list) => list.items.len(),
        Value::Map(map) => map.entries.len(),
        Value::Text(text) => text.chars().count(),
        other => return Err(wrong("a list, a map or a string", other)),
    };
    Ok(Value::Int(length as i64))
}

fn wrong(wanted: &str, value: &Value) -> Fault {
    Fault::value(format!("this takes {wanted}, and it is given {}", value.name()))
}

fn items(value: &Value) -> Result<&[Value], Fault> {
    match value {
        Value::List(list) => Ok(&list.items),
        other => Err(wrong("a list", other)),
    }
}

fn list(items: Vec<Value>) -> Result<Value, Fault> {
    Value::list(ListKind::Any, items).ok_or_else(Fault::too_deep)
}

/// Calls a function of lists.
pub(super) fn call(function: Function, arguments: &[Value], budget: &mut Budget) -> Result<Value, Fault> {
    use Function as F;
    let first = argument(arguments, 0);
    match function {
        // A missing element is no error.
        F::First => Ok(operators::fetch(first, &Value::Int(0)).unwrap_or(Value::Nil)),
        F::Last => Ok(operators::fetch(first, &Value::Int(-1)).unwrap_or(Value::Nil)),
        F::Get => get(first, argument(arguments, 1)),
        F::Take => take(first, argument(arguments, 1), budget),
        F::Reverse => {
            let items = items(first)?;
            budget.elements(items.len())?;
            list(items.iter().rev().cloned().collect())
        }
        F::Uniq => {
            let mut kept: Vec<Value> = Vec::new();
            'items: for item in items(first)? {
                for known in &kept {
                    if operators::equal(item, known, budget)? {
                        continue 'items;
                    }
                }
                kept.push(item.clone());
            }
            budget.elements(kept.len())?;
            list(kept)
        }
        F::Concat => {
            let mut all = Vec::new();
            for argument in arguments {
                let items = items(argument)?;
                budget.elements(items.len())?;
                all.extend_from_slice(items);
            }
            match all.is_empty() {
                true => Ok(Value::absent()),
                false => list(all),
            }
        }
        F::Flatten => {
            let mut flat = Vec::new();
            flatten(items(first)?, &mut flat, budget)?;
            budget.elements(flat.len())?;
            list(flat)
        }
        _ => sorted(first, arguments.get(1), budget),
    }
}

fn get(base: &Value, key: &Value) -> Result<Value, Fault> {
    match base {
        Value::Nil => Ok(Value::Nil),
        Value::List(_) | Value::Text(_) => {
            if key.index().is_none() {
                return Err(wrong("a whole number", key));
            }
            Ok(operators::fetch(base, key).unwrap_or(Value::Nil))
        }
        Value::Map(map) => {
            let key = operators::key_for(map, key)?;
            Ok(map.entries.get(&key).cloned().unwrap_or(Value::Nil))
        }
        // Times have no public fields.
        Value::Time(_) if !matches!(key, Value::Text(_)) => Err(wrong("a string", key)),
        _ => Ok(Value::Nil),
    }
}

fn take(from: &Value, count: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    let all = items(from)?;
    let count = match count {
        Value::Int(count) | Value::Long(count) | Value::Duration(count) => *count,
        other => return Err(wrong("a whole number", other)),
    };
    let Ok(count) = usize::try_from(count) else {
        return Err(Fault::showing(
            format!("{count} elements cannot be taken"),
            "a negative number of elements cannot be taken",
        ));
    };
    let count = count.min(all.len());
    budget.steps(count / 4)?;
    let kind = match from {
        Value::List(list) if list.kind == ListKind::Pair => {
            return Err(Fault::value("nothing can be taken from a pair"));
        }
        Value::List(list) => list.kind,
        _ => ListKind::Any,
    };
    Value::list(kind, all[..count].to_vec()).ok_or_else(Fault::too_deep)
}

fn flatten(items: &[Value], flat: &mut Vec<Value>, budget: &mut Budget) -> Result<(), Fault> {
    for item in items {
        budget.steps(1)?;
        match item {
            Value::List(list) => flatten(&list.items, flat, budget)?,
            other => flat.push(other.clone()),
        }
    }
    Ok(())
}

fn sorted(value: &Value, order: Option<&Value>, budget: &mut Budget) -> Result<Value, Fault> {
    let items = match value {
        Value::List(list) if !matches!(list.kind, ListKind::Pair | ListKind::Pairs) => Some(&list.items),
        // Go returns an empty list for elements that it cannot sort.
        _ => None,
    };
    let descending = match order {
        None => false,
        Some(Value::Text(order)) if &**order == "asc" => false,
        Some(Value::Text(order)) if &**order == "desc" => true,
        Some(_) => return Err(Fault::value("the order of sort() is \"asc\" or \"desc\"")),
    };
    let Some(items) = items else {
        return Ok(Value::absent());
    };
    budget.elements(items.len())?;
    let pairs = items.iter().map(|item| (item.clone(), ())).collect();
    let sorted = sort(pairs, descending, budget)?;
    list(sorted.into_iter().map(|(item, ())| item).collect())
}
