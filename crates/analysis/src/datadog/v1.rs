//! Version 1 of Datadog's API: the last point of a series counts.

use std::collections::BTreeMap;

use form_urlencoded::Serializer;
use jiff::Timestamp;
use serde::Deserialize;
use stateward_api::analysis::Datadog;
use stateward_core::analysis::{Data, Reply};

use super::Window;
use crate::ProviderError;
use crate::address::Address;
use crate::http::Request;
use crate::json;

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    series: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    /// Milliseconds and values.
    #[serde(default)]
    pointlist: Vec<(f64, Option<f64>)>,
}

pub(super) fn request(address: &Address, metric: &Datadog, window: &Window) -> Request {
    let mut url = address.join("/api/v1/query");
    let mut form = Serializer::new(String::new());
    form.append_pair("query", &metric.query)
        .append_pair("from", &window.from.as_second().to_string())
        .append_pair("to", &window.to.as_second().to_string());
    url.set_query(Some(&form.finish()));
    window.request(url)
}

/// The last point with a value: Datadog's newest bucket is often still empty.
pub(super) fn read(origin: &str, body: &[u8]) -> Result<Reply, ProviderError> {
    let answer: Answer = json::read(body, json::SAMPLES)
        .map_err(|unread| unread.of(origin, "Datadog's JSON with series and their pointlist"))?;
    let points = answer.series.into_iter().next().map(|it| it.pointlist);
    let last = points
        .unwrap_or_default()
        .into_iter()
        .rev()
        .find_map(|(time, value)| Some((time, value?)));
    Ok(Reply {
        data: last.map_or(Data::Nothing, |(_, value)| Data::Number(value)),
        newest: last.and_then(|(time, _)| timestamp(time)),
        series: None,
        notes: BTreeMap::new(),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "what does not fit is no time, and is refused"
)]
fn timestamp(milliseconds: f64) -> Option<Timestamp> {
    Timestamp::from_millisecond(milliseconds as i64).ok()
}
