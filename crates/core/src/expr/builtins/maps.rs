//! Functions of maps.
//!
//! Go gives the entries of a map in any order; here they are in the order of their keys.

use std::collections::BTreeMap;

use super::{Function, argument};
use crate::expr::budget::{Budget, Fault};
use crate::expr::operators;
use crate::expr::value::{ListKind, MapKind, Value};

/// Calls a function of maps.
pub(super) fn call(function: Function, arguments: &[Value], budget: &mut Budget) -> Result<Value, Fault> {
    let value = argument(arguments, 0);
    if function == Function::FromPairs {
        return from_pairs(value, budget);
    }
    let Value::Map(map) = value else {
        return Err(Fault::value(format!(
            "this takes a map, and it is given {}",
            value.name()
        )));
    };
    budget.elements(map.entries.len())?;
    let (kind, items) = match function {
        Function::Keys => (ListKind::Any, map.entries.keys().map(|key| key.value()).collect()),
        Function::Values => (ListKind::Any, map.entries.values().cloned().collect()),
        _ => {
            let pairs: Option<Vec<_>> = map
                .entries
                .iter()
                .map(|(key, value)| Value::list(ListKind::Pair, vec![key.value(), value.clone()]))
                .collect();
            (ListKind::Pairs, pairs.ok_or_else(Fault::too_deep)?)
        }
    };
    Value::list(kind, items).ok_or_else(Fault::too_deep)
}

fn from_pairs(value: &Value, budget: &mut Budget) -> Result<Value, Fault> {
    let Value::List(list) = value else {
        return Err(Fault::value(format!(
            "fromPairs() takes a list of pairs, and it is given {}",
            value.name()
        )));
    };
    budget.elements(list.items.len())?;
    let mut entries = BTreeMap::new();
    for item in &list.items {
        let Value::List(pair) = item else {
            return Err(Fault::value(format!(
                "a pair is a list of two, and this is {}",
                item.name()
            )));
        };
        let [key, value] = pair.items.as_slice() else {
            return Err(Fault::showing(
                format!(
                    "a pair is a list of two, and this is a list of {}",
                    pair.items.len()
                ),
                "a pair is a list of two, and this is a list of another length",
            ));
        };
        if let Value::Text(name) = key {
            budget.look_at(name.len())?;
        }
        entries.insert(operators::key_of(key)?, value.clone());
    }
    Value::map(MapKind::Any, entries).ok_or_else(Fault::too_deep)
}
