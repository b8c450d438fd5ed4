//! The order of a list after a strategic merge: the patch's items in the order of the patch, the rest in the order of the live list,
//! interleaved as far as the live list determines it.

use crate::json::Value;

use super::error::PatchError;
use crate::go;

/// The merge key of the items; empty for a list of scalars.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub(super) key: &'a str,
    /// Whether the items are maps.
    pub(super) maps: bool,
}

impl Order<'_> {
    /// Merges the patch's items with those that only the server has.
    pub(super) fn arrange(
        self,
        named: Vec<Value>,
        rest: Vec<Value>,
        patch: &[Value],
        live: &[Value],
    ) -> Result<Vec<Value>, PatchError> {
        let named = self.sort(named, patch)?;
        let rest = self.sort(rest, live)?;
        let place = |item: &Value| self.position(live, item);
        let mut named = named.into_iter().map(|item| (place(&item), item)).peekable();
        let mut rest = rest.into_iter().map(|item| (place(&item), item)).peekable();
        let mut out = Vec::new();
        loop {
            let take_rest = match (rest.peek(), named.peek()) {
                (None, None) => return Ok(out),
                (Some(_), None) => true,
                (None, Some(_)) => false,
                // An item that is not in the live list goes first.
                (Some((ours, _)), Some((theirs, _))) => {
                    ours.zip(*theirs).is_some_and(|(ours, theirs)| ours < theirs)
                }
            };
            let next = if take_rest { rest.next() } else { named.next() };
            out.extend(next.map(|(_, item)| item));
        }
    }

    fn sort(self, items: Vec<Value>, order: &[Value]) -> Result<Vec<Value>, PatchError> {
        let (mut kept, mut deleted) = (items, Vec::new());
        if self.maps {
            for item in kept.iter().chain(order) {
                key_of(item, self.key)?;
            }
            (deleted, kept) = kept.into_iter().partition(is_deletion);
        }
        // An insertion sort, because upstream's comparison is not a total order: an item that is not in `order` is less than every other,
        // and must end up where an insertion sort puts it.
        let mut sorted: Vec<(Option<usize>, Value)> = Vec::with_capacity(kept.len());
        for item in kept {
            let place = self.position(order, &item);
            let is_less = |other: &(Option<usize>, Value)| {
                place.zip(other.0).is_none_or(|(ours, theirs)| ours < theirs)
            };
            let at = sorted
                .iter()
                .rposition(|other| !is_less(other))
                .map_or(0, |at| at + 1);
            sorted.insert(at, (place, item));
        }
        let mut out: Vec<_> = sorted.into_iter().map(|(_, item)| item).collect();
        out.append(&mut deleted);
        Ok(out)
    }

    fn position(self, order: &[Value], item: &Value) -> Option<usize> {
        if !self.maps {
            return order.iter().position(|other| other == item);
        }
        let wanted = item.get(self.key);
        order.iter().position(|other| other.get(self.key) == wanted)
    }
}

/// Splits `items` into those that are in `by` and the others.
pub(super) fn split(
    items: Vec<Value>,
    by: &[Value],
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    if key.is_empty() {
        return Ok(items.into_iter().partition(|item| by.contains(item)));
    }
    let (mut named, mut rest) = (Vec::new(), Vec::new());
    for item in items {
        match find(by, key, key_of(&item, key)?)? {
            Some(_) => named.push(item),
            None => rest.push(item),
        }
    }
    Ok((named, rest))
}

/// The live list as upstream leaves it after merging `patch` into it. Go deletes in place, so copies of the last items stay at its end
/// until new items overwrite them, and this list then orders the result.
pub(super) fn left_behind(live: &[Value], patch: &[Value], key: &str) -> Result<Vec<Value>, PatchError> {
    let (mut items, mut length) = (live.to_vec(), live.len());
    for item in patch.iter().filter(|item| is_deletion(item)) {
        let Some(value) = item.get(key) else { continue };
        while let Some(index) = find(&items[..length], key, value)? {
            for next in index + 1..length {
                items[next - 1] = items[next].clone();
            }
            length -= 1;
        }
    }
    let is_replaced = patch
        .iter()
        .any(|item| item.get("$patch").is_some_and(|directive| directive == "replace"));
    for item in patch
        .iter()
        .filter(|item| item.get("$patch").is_none() && !is_replaced)
    {
        let Some(value) = item.get(key) else { continue };
        if length < items.len() && find(&items[..length], key, value)?.is_none() {
            items[length] = item.clone();
            length += 1;
        }
    }
    Ok(items)
}

/// Whether an item of a patch has `$patch: delete`.
pub(super) fn is_deletion(item: &Value) -> bool {
    item.get("$patch").is_some_and(|directive| directive == "delete")
}

/// The value of an item's key.
pub(super) fn key_of<'v>(item: &'v Value, key: &str) -> Result<&'v Value, PatchError> {
    match item {
        Value::Object(fields) => fields.get(key).ok_or_else(|| no_key(item, key)),
        other => Err(expected(&Value::Object(crate::json::Map::new()), other)),
    }
}

/// The first item whose key has this value.
pub(super) fn find(items: &[Value], key: &str, value: &Value) -> Result<Option<usize>, PatchError> {
    for (index, item) in items.iter().enumerate() {
        let Value::Object(fields) = item else {
            return Err(PatchError::Internal(format!(
                "value for key {index} is not a map"
            )));
        };
        if fields.get(key) == Some(value) {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

pub(super) fn no_key(item: &Value, key: &str) -> PatchError {
    PatchError::Internal(format!(
        "map: {} does not contain declared merge key: {key}",
        go::plain(item)
    ))
}

pub(super) fn expected(wanted: &Value, found: &Value) -> PatchError {
    let (wanted, found) = (go::type_name(wanted), go::type_name(found));
    PatchError::Internal(format!("expected a {wanted}, but received a {found}"))
}
