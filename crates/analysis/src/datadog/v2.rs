//! Version 2 of Datadog's API: one value, or one per group.
//!
//! The response has columns. The first number column counts; group columns name its rows. A grouped query yields a list even for a single
//! group, so that a condition does not depend on the number of groups.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use stateward_api::analysis::Datadog;
use stateward_core::analysis::{Data, Reply};

use super::Window;
use crate::address::Address;
use crate::http::Request;
use crate::json;
use crate::said::shown;
use crate::{ProviderError, Redactor};

/// The maximum length of a group's name in the metadata.
const NAMED: usize = 100;

/// The maximum number of groups in the metadata: the lowest half and the highest half, because either may be the bad ones.
const NOTED: usize = 100;

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    data: Body,
    /// The errors of the request, if there are no data.
    #[serde(default)]
    errors: Value,
}

#[derive(Default, Deserialize)]
struct Body {
    #[serde(default)]
    attributes: Attributes,
    #[serde(default)]
    errors: Value,
}

#[derive(Default, Deserialize)]
struct Attributes {
    #[serde(default)]
    columns: Vec<Column>,
}

#[derive(Deserialize)]
struct Column {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    values: Vec<Value>,
}

pub(super) fn request(address: &Address, metric: &Datadog, window: &Window) -> Request {
    let aggregator = match metric.aggregator.as_str() {
        "" => "last",
        given => given,
    };
    let query = |name: &str, query: &str| json!({"aggregator": aggregator, "data_source": "metrics", "name": name, "query": query});
    let queries: Vec<Value> = if metric.query.is_empty() {
        metric
            .queries
            .iter()
            .map(|(name, text)| query(name, text))
            .collect()
    } else {
        vec![query("query", &metric.query)]
    };
    let formulas: Vec<Value> = Some(&metric.formula)
        .filter(|formula| !formula.is_empty())
        .map(|formula| json!({"formula": formula}))
        .into_iter()
        .collect();
    let body = json!({"data": {"type": "scalar_request", "attributes": {
        "from": window.from.as_second() * 1000,
        "to": window.to.as_second() * 1000,
        "queries": queries,
        "formulas": formulas,
    }}});
    let url = address.join("/api/v2/query/scalar");
    Request::post(url, window.timeout, "application/json", body.to_string())
}

pub(super) fn read(origin: &str, body: &[u8], redactor: &Redactor) -> Result<Reply, ProviderError> {
    let malformed = |expected: &str| ProviderError::malformed(origin, expected);
    let answer: Answer = json::read(body, json::DOCUMENT)
        .map_err(|unread| unread.of(origin, "Datadog's JSON with columns of values"))?;
    for errors in [answer.data.errors, answer.errors] {
        let said = match errors {
            Value::String(text) => text,
            Value::Array(items) if !items.is_empty() => {
                let texts: Vec<_> = items.iter().filter_map(Value::as_str).collect();
                texts.join("; ")
            }
            _ => String::new(),
        };
        if !said.is_empty() {
            return Err(ProviderError::QueryFailed {
                origin: origin.to_owned(),
                said: shown(&said, redactor),
            });
        }
    }
    let columns = answer.data.attributes.columns;
    let groups: Vec<&Column> = columns.iter().filter(|it| it.kind == "group").collect();
    let numbers = columns
        .iter()
        .find(|it| it.kind.is_empty() || it.kind == "number");
    let (mut values, mut names) = (Vec::new(), Vec::new());
    for (row, value) in numbers.iter().flat_map(|it| &it.values).enumerate() {
        // No data for this group.
        if value.is_null() {
            continue;
        }
        values.push(value.as_f64().ok_or_else(|| malformed("made of numbers"))?);
        if !groups.is_empty() {
            names.push(name(&groups, row).ok_or_else(|| malformed("complete: a row has no group"))?);
        }
    }
    let mut notes = BTreeMap::new();
    let data = match (groups.is_empty(), values.first()) {
        (_, None) => Data::Nothing,
        (true, Some(value)) => Data::Number(*value),
        (false, Some(_)) => {
            note(&mut notes, names, &values, redactor);
            Data::Numbers(values)
        }
    };
    Ok(Reply {
        data,
        newest: None,
        series: None,
        notes,
    })
}

/// The values of all group columns in a row.
fn name(groups: &[&Column], row: usize) -> Option<String> {
    let mut parts = Vec::new();
    for column in groups {
        let tags = column
            .values
            .get(row)?
            .as_array()
            .filter(|tags| !tags.is_empty())?;
        for tag in tags {
            parts.push(tag.as_str()?);
        }
    }
    Some(parts.join(","))
}

fn note(notes: &mut BTreeMap<String, String>, names: Vec<String>, values: &[f64], redactor: &Redactor) {
    let mut groups: Vec<_> = names.into_iter().zip(values.iter().copied()).collect();
    if groups.len() > NOTED {
        groups.sort_by(|one, other| one.1.total_cmp(&other.1));
        groups.drain(NOTED / 2..groups.len() - NOTED / 2);
        notes.insert("groups_truncated".to_owned(), "true".to_owned());
    }
    let groups: Vec<_> = groups
        .iter()
        .map(|(name, value)| {
            let name: String = redactor.redact(name).chars().take(NAMED).collect();
            json!({"name": name, "value": value})
        })
        .collect();
    notes.insert("groups".to_owned(), Value::from(groups).to_string());
}
