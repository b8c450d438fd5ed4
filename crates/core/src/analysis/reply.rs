//! What a provider of metrics said.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

/// What a provider said.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What conditions judge.
    pub data: Data,
    /// The age of what was said, by its newest value, where the provider tells.
    pub newest: Option<Timestamp>,
    /// How many series the numbers are samples of, where the provider tells.
    pub series: Option<usize>,
    /// What to note beside the measurement: nothing that must not be seen.
    pub notes: BTreeMap<String, String>,
}

/// What conditions judge.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Nothing at all.
    Nothing,
    /// One number, which may be NaN.
    Number(f64),
    /// Numbers, as the series of a query give.
    Numbers(Vec<f64>),
    /// A document.
    Document(Value),
    /// Text that is no document.
    Text(String),
}
