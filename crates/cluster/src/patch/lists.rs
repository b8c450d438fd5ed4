//! Merges two lists in a strategic merge.

use crate::json::Value;

use super::error::PatchError;
use super::order::{Order, find, is_deletion, no_key, split};
use super::strategic::{DIRECTIVE, merge_fields, unknown_directive};
use super::strategy::Field;
use crate::go;

/// Merges two lists of one field as its type defines; a list of deletions always merges.
pub(super) fn merge_list(
    old: Vec<Value>,
    new: Vec<Value>,
    list: Field<'_>,
    deletes: bool,
) -> Result<Vec<Value>, PatchError> {
    if !list.merges() && !deletes {
        return Ok(new);
    }
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    let maps = holds_maps(&old, &new)?;
    if !maps && deletes {
        return Ok(old.into_iter().filter(|item| !new.contains(item)).collect());
    }
    let order = Order {
        key: list.key(),
        maps,
    };
    let (old, new) = if maps {
        obey_directives(old, new, list)?
    } else {
        (old, new)
    };
    let merged = if maps {
        merge_items(old.clone(), &new, list)?
    } else {
        without_duplicates(old.iter().chain(&new).cloned().collect())
    };
    // Most patches list the same items or some of them, in order.
    let is_complete = merged.len() == old.len() || merged.len() == new.len();
    if maps && is_complete && are_in_order(&merged, &new, list.key()) {
        debug_assert!({
            let (named, rest) = split(merged.clone(), &new, list.key())?;
            order.arrange(named, rest, &new, &old)? == merged
        });
        return Ok(merged);
    }
    let (named, rest) = split(merged, &new, list.key())?;
    order.arrange(named, rest, &new, &old)
}

/// Whether a patch lists some of the items in order, without duplicates.
fn are_in_order(items: &[Value], patch: &[Value], key: &str) -> bool {
    let mut named = patch.iter().map(|item| item.get(key)).peekable();
    let mut met = Vec::with_capacity(items.len());
    let are_plain = items.iter().all(|item| {
        let value = item.get(key);
        let is_plain = value.is_some() && !met.contains(&value) && !is_deletion(item);
        met.push(value);
        named.next_if_eq(&value);
        is_plain
    });
    are_plain && named.next().is_none()
}

/// Executes the `$patch` directives of items, and removes those items from the patch.
fn obey_directives(
    mut old: Vec<Value>,
    patch: Vec<Value>,
    list: Field<'_>,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let key = list.key();
    if key.is_empty() {
        return Err(PatchError::Internal(
            "cannot merge lists without merge key for struct".to_owned(),
        ));
    }
    let (mut kept, mut replaces) = (Vec::new(), false);
    for item in patch {
        match item.get(DIRECTIVE).cloned() {
            None => kept.push(item),
            Some(directive) if directive == "delete" => {
                let value = item.get(key).ok_or_else(|| no_key(&item, key))?;
                while let Some(index) = find(&old, key, value)? {
                    old.remove(index);
                }
            }
            Some(directive) if directive == "replace" => replaces = true,
            Some(directive) if directive == "merge" => {
                return Err(PatchError::Internal(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            Some(directive) => return Err(unknown_directive(&directive, &item)),
        }
    }
    Ok(if replaces { (kept, Vec::new()) } else { (old, kept) })
}

/// Merges items with the same key and appends the others.
fn merge_items(mut items: Vec<Value>, patch: &[Value], list: Field<'_>) -> Result<Vec<Value>, PatchError> {
    for item in patch {
        let value = item.get(list.key()).ok_or_else(|| no_key(item, list.key()))?;
        match (find(&items, list.key(), value)?, item) {
            (Some(index), Value::Object(fields)) => {
                let live = items[index].as_object().cloned().unwrap_or_default();
                items[index] = Value::Object(merge_fields(live, fields.clone(), list.shape.element())?);
            }
            // Upstream adds a new item as it is, directives and all.
            _ => items.push(item.clone()),
        }
    }
    Ok(items)
}

/// Upstream fills the hole that a duplicate leaves with the last item.
fn without_duplicates(mut items: Vec<Value>) -> Vec<Value> {
    let mut first = 0;
    while first < items.len() {
        let mut other = first + 1;
        while other < items.len() {
            if items[first] == items[other] {
                items.swap_remove(other);
            } else {
                other += 1;
            }
        }
        first += 1;
    }
    items
}

/// Whether the items of both lists are maps. They must all have the same Go type.
pub(super) fn holds_maps(old: &[Value], new: &[Value]) -> Result<bool, PatchError> {
    let mut items = old.iter().chain(new);
    let first = items
        .next()
        .ok_or_else(|| PatchError::Internal("no elements in any of the given slices".to_owned()))?;
    if first.is_array() {
        return Err(PatchError::DoesNotApply(
            "lists of lists are not supported".to_owned(),
        ));
    }
    if first.is_null() || items.any(|item| go::type_name(item) != go::type_name(first)) {
        let lists = format!("[{} {}]", go::plain_list(old), go::plain_list(new));
        return Err(PatchError::Internal(format!(
            "list element types are not identical: {lists}"
        )));
    }
    Ok(first.is_object())
}
