//! Wavefront: the point nearest to now of each series.
//!
//! The tokens are in the Secret `wavefront-api-tokens` of the run's namespace, each with its address as the key.

use std::collections::BTreeMap;
use std::time::Duration;

use ::http::header::AUTHORIZATION;
use form_urlencoded::Serializer;
use jiff::Timestamp;
use serde::Deserialize;
use stateward_api::analysis::Wavefront;
use stateward_core::analysis::{Data, Reply};

use crate::address::Address;
use crate::http::Request;
use crate::json;
use crate::providers::Providers;
use crate::said::shown;
use crate::secrets::Keys;
use crate::{MetricQuery, ProviderError, Redactor};

const AT: &str = "provider.wavefront";
const SECRET: &str = "wavefront-api-tokens";
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    timeseries: Vec<Series>,
    #[serde(default)]
    warnings: Option<String>,
    #[serde(default)]
    error_type: Option<String>,
    #[serde(default)]
    error_message: Option<String>,
}

#[derive(Deserialize)]
struct Series {
    /// Seconds and values.
    #[serde(default)]
    data: Vec<(f64, f64)>,
}

/// Queries Wavefront.
pub(crate) async fn query(
    providers: &Providers,
    metric: &Wavefront,
    query: &MetricQuery<'_>,
) -> Result<Reply, ProviderError> {
    let host = metric.address.trim();
    let field = format!("{AT}.address");
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if host.is_empty() || !host.chars().all(is_host) {
        let problem = "is not a host such as example.wavefront.com";
        return Err(ProviderError::bad_field(field, problem));
    }
    if metric.query.trim().is_empty() {
        return Err(ProviderError::bad_field(format!("{AT}.query"), "is empty"));
    }
    let keys = Keys::read(providers.secrets.as_ref(), "wavefront", query.namespace, SECRET).await?;
    let token = keys.need(host)?;
    query.redactor.add(token);

    let mut url = Address::parse(&field, &format!("https://{host}"))?.join("/api/v2/chart/api");
    url.set_query(Some(&form(&metric.query, query.now)));
    let request = Request::get(url, TIMEOUT)
        .secret(AUTHORIZATION, &format!("Bearer {token}"))
        .ok_or_else(|| ProviderError::bad_field(keys.field(host), "cannot be sent in a header"))?;
    let (now, redactor) = (query.now, query.redactor.clone());
    let read = move |origin: &str, body: &[u8]| read(origin, body, now, &redactor);
    providers.send(query, request, read).await
}

/// From now to now, one point, and from outside the window if it contains none.
fn form(query: &str, now: Timestamp) -> String {
    let now = (now.as_second() * 1000).to_string();
    Serializer::new(String::new())
        .append_pair("q", query)
        .append_pair("s", &now)
        .append_pair("e", &now)
        .append_pair("g", "s")
        .append_pair("p", "1")
        .append_pair("i", "true")
        .finish()
}

fn read(origin: &str, body: &[u8], now: Timestamp, redactor: &Redactor) -> Result<Reply, ProviderError> {
    let answer: Answer = json::read(body, json::SAMPLES)
        .map_err(|unread| unread.of(origin, "Wavefront's JSON with timeseries and their data"))?;
    let trouble = answer.error_message.or(answer.error_type);
    if let Some(said) = trouble.filter(|said| !said.is_empty()) {
        return Err(ProviderError::QueryFailed {
            origin: origin.to_owned(),
            said: shown(&said, redactor),
        });
    }
    let nearest: Vec<_> = answer
        .timeseries
        .iter()
        .filter_map(|series| nearest(&series.data, now))
        .collect();
    let mut notes = BTreeMap::new();
    if let Some(warnings) = answer.warnings.filter(|warnings| !warnings.is_empty()) {
        notes.insert("warnings".to_owned(), shown(&warnings, redactor));
    }
    if !nearest.is_empty() {
        let times: Vec<_> = nearest.iter().map(|(time, _)| *time).collect();
        let drifts: Vec<_> = times.iter().map(|time| time - now.as_second()).collect();
        notes.insert("timestamps".to_owned(), list(&times));
        notes.insert("drift".to_owned(), list(&drifts));
    }
    Ok(Reply {
        newest: nearest
            .iter()
            .filter_map(|(time, _)| Timestamp::from_second(*time).ok())
            .max(),
        data: match nearest.as_slice() {
            [] => Data::Nothing,
            [(_, value)] => Data::Number(*value),
            several => Data::Numbers(several.iter().map(|(_, value)| *value).collect()),
        },
        series: None,
        notes,
    })
}

/// The point nearest to a time, with its time in seconds.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "seconds of this age are exact in a float"
)]
fn nearest(points: &[(f64, f64)], now: Timestamp) -> Option<(i64, f64)> {
    let away = |point: &(f64, f64)| (point.0 - now.as_second() as f64).abs();
    let point = points
        .iter()
        .min_by(|one, other| away(one).total_cmp(&away(other)))?;
    Some((point.0 as i64, point.1))
}

/// One number, or several in brackets, at most a hundred.
fn list(numbers: &[i64]) -> String {
    match numbers {
        [one] => one.to_string(),
        several => {
            let texts: Vec<_> = several.iter().take(100).map(ToString::to_string).collect();
            format!("[{}]", texts.join(","))
        }
    }
}
