//! New Relic, with NRQL over its GraphQL API.
//!
//! The keys are in a Secret of the run's namespace, `newrelic` unless `profile` names another: `personal-api-key`, `account-id` and,
//! optionally, `region` (us, eu or staging) or `base-url-nerdgraph`.

use std::collections::BTreeMap;
use std::time::Duration;

use ::http::HeaderName;
use serde_json::{Value, json};
use stateward_api::analysis::NewRelic;
use stateward_core::analysis::{Data, Reply};

use crate::address::Address;
use crate::graphql;
use crate::http::Request;
use crate::providers::Providers;
use crate::secrets::Keys;
use crate::{MetricQuery, ProviderError, Redactor, timing};

const AT: &str = "provider.newRelic";

/// The time that the response may take in addition to the query.
const ON_TOP: Duration = Duration::from_secs(5);

const QUERY: &str = "query ($accountId: Int!, $query: Nrql!, $timeout: Seconds!) { actor { account(id: $accountId) { \
                     nrql(query: $query, timeout: $timeout) { results } } } }";

/// Queries New Relic.
pub(crate) async fn query(
    providers: &Providers,
    metric: &NewRelic,
    query: &MetricQuery<'_>,
) -> Result<Reply, ProviderError> {
    if metric.query.trim().is_empty() {
        return Err(ProviderError::bad_field(format!("{AT}.query"), "is empty"));
    }
    let timeout = timing::seconds(&format!("{AT}.timeout"), metric.timeout, 5)?;
    let profile = Some(metric.profile.as_str()).filter(|profile| !profile.is_empty());
    let secrets = providers.secrets.as_ref();
    let keys = Keys::read(
        secrets,
        "newRelic",
        query.namespace,
        profile.unwrap_or("newrelic"),
    )
    .await?;
    let key = keys.need("personal-api-key")?;
    query.redactor.add(key);
    let account: i64 = keys
        .need("account-id")?
        .parse()
        .map_err(|_| ProviderError::bad_field(keys.field("account-id"), "is not a whole number"))?;
    let address = address(&keys)?;

    let variables = json!({"accountId": account, "query": metric.query, "timeout": timeout.as_secs()});
    let body = json!({"query": QUERY, "variables": variables}).to_string();
    let request = Request::post(address.url.clone(), timeout + ON_TOP, "application/json", body)
        .secret(HeaderName::from_static("api-key"), key)
        .ok_or_else(|| {
            ProviderError::bad_field(keys.field("personal-api-key"), "cannot be sent in a header")
        })?;
    let redactor = query.redactor.clone();
    let read = move |origin: &str, body: &[u8]| read(origin, body, &redactor);
    let mut reply = providers.send(query, request, read).await?;
    let resolved = "ResolvedNewRelicQuery".to_owned();
    reply.notes.insert(resolved, metric.query.clone());
    Ok(reply)
}

fn read(origin: &str, body: &[u8], redactor: &Redactor) -> Result<Reply, ProviderError> {
    let mut data = graphql::data(origin, body, redactor)?;
    let results = match data.pointer_mut("/actor/account/nrql/results").map(Value::take) {
        Some(Value::Array(results)) => results,
        _ => return Err(ProviderError::malformed(origin, "New Relic's JSON with results")),
    };
    Ok(Reply {
        data: judge(results),
        newest: None,
        series: None,
        notes: BTreeMap::new(),
    })
}

fn address(keys: &Keys) -> Result<Address, ProviderError> {
    if let Some(given) = keys.find("base-url-nerdgraph") {
        return Address::parse(&keys.field("base-url-nerdgraph"), given);
    }
    let address = match keys.find("region").unwrap_or("us").to_lowercase().as_str() {
        "us" => "https://api.newrelic.com/graphql",
        "eu" => "https://api.eu.newrelic.com/graphql",
        "staging" => "https://staging-api.newrelic.com/graphql",
        _ => {
            return Err(ProviderError::bad_field(
                keys.field("region"),
                "is not us, eu or staging",
            ));
        }
    };
    Address::parse(&keys.field("region"), address)
}

/// A single result is the value, several are a list.
fn judge(mut results: Vec<Value>) -> Data {
    match results.len() {
        0 => Data::Nothing,
        1 => match results.remove(0) {
            Value::Object(fields) if fields.is_empty() => Data::Nothing,
            Value::Null => Data::Nothing,
            result => Data::Document(result),
        },
        _ => Data::Document(results.into()),
    }
}
