//! InfluxDB, with Flux queries.
//!
//! The keys are in a Secret of the run's namespace, `influxdb` unless `profile` names another: `address`, `authToken` and `org`.

mod csv;

use std::collections::BTreeMap;
use std::time::Duration;

use ::http::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use form_urlencoded::Serializer;
use serde_json::Value;
use stateward_api::analysis::InfluxDb;
use stateward_core::analysis::{Data, Reply};

use crate::address::Address;
use crate::http::Request;
use crate::json;
use crate::providers::Providers;
use crate::said::shown;
use crate::secrets::Keys;
use crate::{MetricQuery, ProviderError, Redactor};

const AT: &str = "provider.influxdb";
const TIMEOUT: Duration = Duration::from_secs(30);

/// Queries InfluxDB.
pub(crate) async fn query(
    providers: &Providers,
    metric: &InfluxDb,
    query: &MetricQuery<'_>,
) -> Result<Reply, ProviderError> {
    if metric.query.trim().is_empty() {
        return Err(ProviderError::bad_field(format!("{AT}.query"), "is empty"));
    }
    let profile = Some(metric.profile.as_str()).filter(|profile| !profile.is_empty());
    let secrets = providers.secrets.as_ref();
    let keys = Keys::read(
        secrets,
        "influxdb",
        query.namespace,
        profile.unwrap_or("influxdb"),
    )
    .await?;
    let (token, org) = (keys.need("authToken")?, keys.need("org")?);
    query.redactor.add(token);
    let address = Address::parse(&keys.field("address"), keys.need("address")?)?;

    let mut url = address.join("/api/v2/query");
    url.set_query(Some(
        &Serializer::new(String::new()).append_pair("org", org).finish(),
    ));
    let dialect = serde_json::json!({
        "annotations": ["datatype", "group", "default"], "delimiter": ",", "header": true,
    });
    let body = serde_json::json!({"query": metric.query, "type": "flux", "dialect": dialect}).to_string();
    let mut request = Request::post(url, TIMEOUT, "application/json", body)
        .secret(AUTHORIZATION, &format!("Token {token}"))
        .ok_or_else(|| ProviderError::bad_field(keys.field("authToken"), "cannot be sent in a header"))?;
    request
        .headers
        .insert(ACCEPT, HeaderValue::from_static("application/csv"));
    let redactor = query.redactor.clone();
    let read = move |origin: &str, body: &[u8]| read(origin, body, &redactor);
    providers.send(query, request, read).await
}

fn read(origin: &str, body: &[u8], redactor: &Redactor) -> Result<Reply, ProviderError> {
    let values = csv::values(body).map_err(|trouble| match trouble {
        csv::Trouble::Said(said) => ProviderError::QueryFailed {
            origin: origin.to_owned(),
            said: shown(&said, redactor),
        },
        csv::Trouble::TooMany => ProviderError::too_complex(origin, json::DOCUMENT),
        csv::Trouble::Malformed => ProviderError::malformed(origin, "annotated CSV as Flux gives it"),
    })?;
    Ok(Reply {
        data: judge(values),
        newest: None,
        series: None,
        notes: BTreeMap::new(),
    })
}

/// Numbers if all values are, otherwise a list.
fn judge(values: Vec<Value>) -> Data {
    let numbers: Option<Vec<f64>> = values.iter().map(Value::as_f64).collect();
    match numbers {
        Some(numbers) => Data::Numbers(numbers),
        None => Data::Document(values.into()),
    }
}
