//! Selectors of lists, watches and controllers.
//!
//! In flows the text of a query parameter or a `LabelSelector` of an object; out flows a matcher. Invalid input is rejected with the real
//! server's message.
//!
//! - `label`: requirements on labels, and how they match.
//! - `parse`: their query syntax.
//! - `field`: requirements on fields.

mod field;
mod label;
mod parse;

use crate::json::Value;

pub(crate) use field::FieldSelector;
pub(crate) use label::LabelSelector;

/// An invalid selector. The API answers with 400 and this text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SelectorError(pub(crate) String);

/// The query syntax of an object's `LabelSelector`; empty if it is not valid.
pub(crate) fn from_label_selector(selector: &Value) -> String {
    LabelSelector::of(selector)
        .map(|selector| selector.to_string())
        .unwrap_or_default()
}

/// Whether an object's `LabelSelector` selects these labels. An absent or invalid one selects nothing.
pub(crate) fn label_selector_matches(selector: &Value, labels: &Value) -> bool {
    LabelSelector::of(selector).is_ok_and(|selector| selector.matches(labels))
}
