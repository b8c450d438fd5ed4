//! SkyWalking, with its GraphQL API. The query may use the variable `$duration`.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use stateward_api::analysis::SkyWalking;
use stateward_core::analysis::{Data, Reply};

use crate::address::Address;
use crate::graphql;
use crate::http::Request;
use crate::providers::Providers;
use crate::{MetricQuery, ProviderError, Redactor, timing};

const AT: &str = "provider.skywalking";
const TIMEOUT: Duration = Duration::from_secs(30);

/// Queries SkyWalking.
pub(crate) async fn query(
    providers: &Providers,
    metric: &SkyWalking,
    query: &MetricQuery<'_>,
) -> Result<Reply, ProviderError> {
    let address = Address::parse(&format!("{AT}.address"), &metric.address)?;
    if metric.query.trim().is_empty() {
        return Err(ProviderError::bad_field(format!("{AT}.query"), "is empty"));
    }
    let back = SignedDuration::from_mins(5);
    let back = timing::duration(&format!("{AT}.interval"), metric.interval.as_deref(), back)?;
    let start = query.now.checked_sub(back).unwrap_or(Timestamp::MIN);
    let minute = |time: Timestamp| time.strftime("%Y-%m-%d %H%M").to_string();
    let duration = json!({"start": minute(start), "end": minute(query.now), "step": "MINUTE"});
    let body = json!({"query": metric.query, "variables": {"duration": duration}}).to_string();
    let mut request = Request::post(address.join("/graphql"), TIMEOUT, "application/json", body);
    address.let_in(&mut request.headers);
    let redactor = query.redactor.clone();
    let read = move |origin: &str, body: &[u8]| read(origin, body, &redactor);
    providers.send(query, request, read).await
}

fn read(origin: &str, body: &[u8], redactor: &Redactor) -> Result<Reply, ProviderError> {
    Ok(Reply {
        data: match graphql::data(origin, body, redactor)? {
            Value::Null => Data::Nothing,
            data => Data::Document(data),
        },
        newest: None,
        series: None,
        notes: BTreeMap::new(),
    })
}
