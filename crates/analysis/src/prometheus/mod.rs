//! Prometheus, and servers with the same API.
//!
//! A query is sent as a POST form, because queries can be long, and with GET if POST is not allowed, like Prometheus' own client.

mod answer;

use std::time::Duration;

use ::http::{HeaderMap, Method, StatusCode};
use form_urlencoded::Serializer;
use jiff::Timestamp;
use stateward_api::analysis::Prometheus;
use stateward_core::analysis::Reply;

use crate::address::Address;
use crate::auth::headers;
use crate::http::{Request, Response, Trust};
use crate::providers::Providers;
use crate::{MetricQuery, ProviderError, timing};

const AT: &str = "provider.prometheus";

/// Queries Prometheus.
pub(crate) async fn query(
    providers: &Providers,
    metric: &Prometheus,
    query: &MetricQuery<'_>,
) -> Result<Reply, ProviderError> {
    let field = format!("{AT}.address");
    let address = match (metric.address.trim(), providers.default_prometheus.as_deref()) {
        ("", Some(address)) => Address::parse("the operator's default address of Prometheus", address)?,
        ("", None) => {
            let problem = "is empty, and the operator has no default";
            return Err(ProviderError::bad_field(field, problem));
        }
        (address, _) => Address::parse(&field, address)?,
    };
    if metric.query.trim().is_empty() {
        return Err(ProviderError::bad_field(format!("{AT}.query"), "is empty"));
    }
    let call = ApiCall {
        address: &address,
        headers: headers(&format!("{AT}.headers"), &metric.headers, &address)?,
        trust: Trust::of(AT, metric.insecure, metric.ca_certificate.as_deref())?,
        timeout: timing::seconds(&format!("{AT}.timeout"), metric.timeout, 30)?,
        form: form(metric, query)?,
        path: if metric.range_query.is_some() {
            "/api/v1/query_range"
        } else {
            "/api/v1/query"
        },
    };
    let authenticated = providers.authenticated(query);
    let authentication = metric.authentication.as_ref();
    let sending = async {
        let response = authenticated.send(AT, authentication, call.post()).await?;
        match response.status {
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
                authenticated.send(AT, authentication, call.get()).await
            }
            _ => Ok(response),
        }
    };
    let response = timing::within(&address.url, call.timeout, sending).await?;
    let (secrets, redactor) = (secrets(metric), query.redactor.clone());
    let read =
        move |response: &Response| answer::read(response, &redactor.with(secrets.iter().map(String::as_str)));
    let mut reply = providers.read(query, response, read).await?;
    let resolved = "ResolvedPrometheusQuery".to_owned();
    reply.notes.insert(resolved, metric.query.clone());
    Ok(reply)
}

struct ApiCall<'q> {
    address: &'q Address,
    path: &'q str,
    form: String,
    headers: HeaderMap,
    trust: Trust,
    timeout: Duration,
}

impl ApiCall<'_> {
    fn post(&self) -> Request {
        let url = self.address.join(self.path);
        let content = "application/x-www-form-urlencoded";
        let mut request = Request::post(url, self.timeout, content, self.form.clone());
        request.headers.extend(self.headers.clone());
        request.trust = self.trust.clone();
        request
    }

    fn get(&self) -> Request {
        let mut request = self.post();
        request.method = Method::GET;
        request.asks_in_body = false;
        request.body.clear();
        request.headers.remove(::http::header::CONTENT_TYPE);
        let query = match request.url.query() {
            Some(own) => format!("{own}&{}", self.form),
            None => self.form.clone(),
        };
        request.url.set_query(Some(&query));
        request
    }
}

fn form(metric: &Prometheus, query: &MetricQuery<'_>) -> Result<String, ProviderError> {
    let mut form = Serializer::new(String::new());
    form.append_pair("query", &metric.query);
    if metric.range_query.is_none() {
        // The server's own time applies: for a time after its clock it would silently return incomplete data.
        return Ok(form.finish());
    }
    let bad = |problem: &str| ProviderError::bad_field(format!("{AT}.rangeQuery"), problem);
    let range = query
        .range
        .ok_or_else(|| bad("has not come to a start and an end"))?;
    if range.end < range.start {
        return Err(bad("ends before it starts"));
    }
    if !range.step.is_positive() {
        return Err(bad("has no step; it must be longer than 0, such as 1m"));
    }
    form.append_pair("start", &seconds(range.start));
    form.append_pair("end", &seconds(range.end));
    form.append_pair("step", &range.step.as_secs_f64().to_string());
    Ok(form.finish())
}

fn seconds(time: Timestamp) -> String {
    format!("{}.{:03}", time.as_second(), time.subsec_millisecond())
}

/// Text to redact if the server repeats it.
fn secrets(metric: &Prometheus) -> Vec<String> {
    let mut secrets: Vec<_> = metric.headers.iter().map(|it| it.value.clone()).collect();
    if let Some(authentication) = &metric.authentication {
        if let Some(basic) = &authentication.basic_auth {
            secrets.push(basic.password.clone());
            secrets.push(format!("{}:{}", basic.username, basic.password));
        }
        secrets.extend(authentication.oauth2.iter().map(|it| it.client_secret.clone()));
    }
    secrets
}
