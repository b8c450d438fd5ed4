//! Graphite: the values of the first series of a target.

use std::collections::BTreeMap;
use std::time::Duration;

use form_urlencoded::Serializer;
use jiff::Timestamp;
use serde::Deserialize;
use stateward_api::analysis::Graphite;
use stateward_core::analysis::{Data, Reply};

use crate::address::Address;
use crate::http::Request;
use crate::json::{self, Figure};
use crate::providers::Providers;
use crate::{MetricQuery, ProviderError};

const AT: &str = "provider.graphite";
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Target {
    #[serde(default)]
    datapoints: Vec<(Figure, Figure)>,
}

/// Queries Graphite. The query is the part after the `?` of its render API, `target=...&from=-5min`, and may contain white space for
/// readability.
pub(crate) async fn query(
    providers: &Providers,
    metric: &Graphite,
    query: &MetricQuery<'_>,
) -> Result<Reply, ProviderError> {
    let address = Address::parse(&format!("{AT}.address"), &metric.address)?;
    let target: String = metric.query.split_whitespace().collect();
    if target.is_empty() {
        return Err(ProviderError::bad_field(format!("{AT}.query"), "is empty"));
    }
    let mut url = address.join("/render");
    url.set_query(Some(&form(&target)));
    let mut request = Request::get(url, TIMEOUT);
    address.let_in(&mut request.headers);
    providers.send(query, request, read).await
}

fn form(query: &str) -> String {
    let mut form = Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name != "format" {
            form.append_pair(&name, &value);
        }
    }
    form.append_pair("format", "json");
    form.finish()
}

fn read(origin: &str, body: &[u8]) -> Result<Reply, ProviderError> {
    let targets: Vec<Target> = json::read(body, json::SAMPLES)
        .map_err(|unread| unread.of(origin, "Graphite's JSON with targets and their datapoints"))?;
    let (mut numbers, mut newest) = (Vec::new(), None);
    // Further series do not count, as in Argo Rollouts.
    for (Figure(value), Figure(time)) in targets
        .into_iter()
        .next()
        .into_iter()
        .flat_map(|it| it.datapoints)
    {
        let Some(value) = value else { continue };
        numbers.push(value);
        newest = newest.max(time.and_then(timestamp));
    }
    Ok(Reply {
        data: Data::Numbers(numbers),
        newest,
        series: None,
        notes: BTreeMap::new(),
    })
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "what does not fit is no time, and is refused"
)]
fn timestamp(seconds: f64) -> Option<Timestamp> {
    Timestamp::from_second(seconds.round() as i64).ok()
}
