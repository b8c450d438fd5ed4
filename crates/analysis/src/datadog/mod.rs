//! Datadog, with version 1 or 2 of its API.
//!
//! The keys are in a Secret of the run's namespace, `datadog` unless `secretRef` names another: `api-key`, `app-key` and, for sites
//! other than the default, `address`.

mod v1;
mod v2;

use std::time::Duration;

use ::http::HeaderName;
use jiff::{SignedDuration, Timestamp};
use stateward_api::analysis::Datadog;
use stateward_core::analysis::Reply;

use crate::address::Address;
use crate::http::Request;
use crate::providers::Providers;
use crate::secrets::Keys;
use crate::{MetricQuery, ProviderError, timing};

const AT: &str = "provider.datadog";
const ADDRESS: &str = "https://api.datadoghq.com";

/// Queries Datadog.
pub(crate) async fn query(
    providers: &Providers,
    metric: &Datadog,
    query: &MetricQuery<'_>,
) -> Result<Reply, ProviderError> {
    let version = version(metric)?;
    check(metric, version)?;
    let back = SignedDuration::from_mins(5);
    let back = timing::duration(&format!("{AT}.interval"), metric.interval.as_deref(), back)?;
    let timeout = timing::wait(
        &format!("{AT}.requestTimeout"),
        metric.request_timeout.as_deref(),
        10,
    )?;
    let name = metric.secret_ref.as_ref().map(|it| it.name.as_str());
    let name = name.filter(|name| !name.is_empty()).unwrap_or("datadog");
    let secrets = providers.secrets.as_ref();
    let keys = Keys::read(secrets, "datadog", query.namespace, name).await?;
    let (api, app) = (keys.need("api-key")?, keys.need("app-key")?);
    query.redactor.add(api);
    query.redactor.add(app);
    let address = Address::parse(&keys.field("address"), keys.find("address").unwrap_or(ADDRESS))?;

    let window = Window {
        from: query.now.checked_sub(back).unwrap_or(Timestamp::MIN),
        to: query.now,
        timeout,
    };
    let request = match version {
        Version::V1 => v1::request(&address, metric, &window),
        Version::V2 => v2::request(&address, metric, &window),
    };
    let unfit = |key| ProviderError::bad_field(keys.field(key), "cannot be sent in a header");
    let request = request
        .secret(HeaderName::from_static("dd-api-key"), api)
        .ok_or_else(|| unfit("api-key"))?
        .secret(HeaderName::from_static("dd-application-key"), app)
        .ok_or_else(|| unfit("app-key"))?;
    let redactor = query.redactor.clone();
    let read = move |origin: &str, body: &[u8]| match version {
        Version::V1 => v1::read(origin, body),
        Version::V2 => v2::read(origin, body, &redactor),
    };
    providers.send(query, request, read).await
}

/// The time range of a query, and its timeout.
struct Window {
    from: Timestamp,
    to: Timestamp,
    timeout: Duration,
}

impl Window {
    fn request(&self, url: url::Url) -> Request {
        Request::get(url, self.timeout)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Version {
    V1,
    V2,
}

fn version(metric: &Datadog) -> Result<Version, ProviderError> {
    match metric
        .api_version
        .as_deref()
        .unwrap_or("v1")
        .to_lowercase()
        .as_str()
    {
        "v1" | "" => Ok(Version::V1),
        "v2" => Ok(Version::V2),
        other => Err(ProviderError::bad_field(
            format!("{AT}.apiVersion"),
            format!("{other:?} is not v1 or v2"),
        )),
    }
}

/// Rejects ambiguous queries.
fn check(metric: &Datadog, version: Version) -> Result<(), ProviderError> {
    let bad = |field: &str, problem: &str| Err(ProviderError::bad_field(format!("{AT}.{field}"), problem));
    if metric.query.is_empty() && metric.queries.is_empty() {
        return bad("query", "and queries are empty; there must be one to ask");
    }
    if !metric.query.is_empty() && !metric.queries.is_empty() {
        return bad("queries", "and query are given; one or the other is asked");
    }
    if version == Version::V1 {
        if metric.query.is_empty() {
            return bad("queries", "go with apiVersion v2; v1 takes one query");
        }
        if !metric.aggregator.is_empty() {
            return bad("aggregator", "goes with apiVersion v2");
        }
    }
    if !metric.formula.is_empty() && metric.queries.is_empty() {
        return bad("formula", "goes with queries");
    }
    if metric.formula.is_empty() && metric.queries.len() > 1 {
        return bad("formula", "is missing; it says what to make of several queries");
    }
    Ok(())
}
