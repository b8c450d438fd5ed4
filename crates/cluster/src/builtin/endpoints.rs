//! Endpoints and EndpointSlices.

use crate::json::Value;

use super::fields::{each, fill, fill_text, items, same, text};
use super::problems::{At, Problems};

pub(super) fn default(object: &mut Value) {
    for port in each(object, "subsets").flat_map(|subset| each(subset, "ports")) {
        fill_text(port, "protocol", "TCP");
    }
}

pub(super) fn default_slice(object: &mut Value) {
    for port in each(object, "ports") {
        fill(port, "name", "");
        fill(port, "protocol", "TCP");
    }
}

/// A slice has no spec: everything but its metadata counts, and of that the labels.
pub(super) fn slice_changed(old: &Value, new: &Value) -> bool {
    ["addressType", "endpoints", "ports"]
        .iter()
        .any(|name| !same(&old[name], &new[name]))
        || !same(&old["metadata"]["labels"], &new["metadata"]["labels"])
}

/// Checks the basics of an EndpointSlice.
pub(super) fn validate_slice(object: &Value, problems: &mut Problems) {
    let allowed = ["FQDN", "IPv4", "IPv6"];
    problems.choice(&At::new("addressType"), text(object, "addressType"), &allowed);
    for (index, endpoint) in items(object, "endpoints").iter().enumerate() {
        if items(endpoint, "addresses").is_empty() {
            let at = At::new("endpoints");
            let at = at.index(index);
            let at = at.field("addresses");
            problems.required(&at, "must contain at least 1 address");
        }
    }
}
