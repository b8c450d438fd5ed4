//! The answer of a metric provider.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

/// The answer of a metric provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The data that conditions judge.
    pub data: Data,
    /// The time of the newest value, if the provider reports one.
    pub newest: Option<Timestamp>,
    /// How many series the numbers are samples of, if the provider reports it.
    pub series: Option<usize>,
    /// Metadata to record with the measurement; it must not contain secrets.
    pub notes: BTreeMap<String, String>,
}

/// The data that conditions judge.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// No data.
    Nothing,
    /// One number, which may be NaN.
    Number(f64),
    /// One number for each series of a query.
    Numbers(Vec<f64>),
    /// A JSON document.
    Document(Value),
    /// Text that is not JSON.
    Text(String),
}
