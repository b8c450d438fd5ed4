//! LimitRanges and ResourceQuotas.

use crate::json::{Value, json};

use super::fields::{each, entries, fill, made, part, set, text};
use crate::types::quantity::round_list;

const LISTS: [&str; 5] = ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"];

pub(super) fn default_range(object: &mut Value) {
    let Some(spec) = made(object, "spec") else { return };
    for limit in each(spec, "limits") {
        if text(limit, "type") == "Container" {
            // A default limit is the maximum; a default request is that limit, or the minimum.
            fill_from(limit, "default", "max");
            fill_from(limit, "defaultRequest", "default");
            fill_from(limit, "defaultRequest", "min");
        }
        for list in LISTS {
            round_list(limit.get_mut(list));
        }
    }
}

fn fill_from(limit: &mut Value, list: &str, source: &str) {
    let amounts: Vec<_> = entries(limit, source)
        .map(|(name, amount)| (name.to_owned(), amount.clone()))
        .collect();
    for (name, amount) in amounts {
        if let Some(list) = made(limit, list) {
            fill(list, &name, amount);
        }
    }
}

pub(super) fn default_quota(object: &mut Value) {
    if let Some(spec) = part(object, "spec") {
        round_list(spec.get_mut("hard"));
    }
    if let Some(status) = part(object, "status") {
        round_list(status.get_mut("hard"));
        round_list(status.get_mut("used"));
    }
}

pub(super) fn prepare_create_quota(object: &mut Value) {
    set(object, "status", json!({}));
}
