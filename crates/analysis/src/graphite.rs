//! Graphite: the values of the first series that a target gives.

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
use crate::{AskError, Question};

const AT: &str = "provider.graphite";
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Target {
    #[serde(default)]
    datapoints: Vec<(Figure, Figure)>,
}

/// Asks a Graphite. The query is what stands behind the `?` of its render API, `target=...&from=-5min`, and may have white
/// space in it for reading.
pub(crate) async fn ask(
    providers: &Providers,
    metric: &Graphite,
    question: &Question<'_>,
) -> Result<Reply, AskError> {
    let address = Address::parse(&format!("{AT}.address"), &metric.address)?;
    let query: String = metric.query.split_whitespace().collect();
    if query.is_empty() {
        return Err(AskError::bad_field(format!("{AT}.query"), "is empty"));
    }
    let mut url = address.join("/render");
    url.set_query(Some(&form(&query)));
    let mut request = Request::get(url, TIMEOUT);
    address.let_in(&mut request.headers);
    providers.send(question, request, read).await
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

fn read(origin: &str, body: &[u8]) -> Result<Reply, AskError> {
    let targets: Vec<Target> = json::read(body, json::SAMPLES)
        .map_err(|unread| unread.of(origin, "Graphite's JSON with targets and their datapoints"))?;
    let (mut numbers, mut newest) = (Vec::new(), None);
    // Series beyond the first have no say, as Argo Rollouts has it.
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
