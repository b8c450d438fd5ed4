//! Prometheus, and whatever answers like one.
//!
//! A query goes as a form by POST, because queries can be long, and by GET where POST is not allowed, as Prometheus' own client
//! does it.

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
use crate::{AskError, Question, timing};

const AT: &str = "provider.prometheus";

/// Asks a Prometheus.
pub(crate) async fn ask(
    providers: &Providers,
    metric: &Prometheus,
    question: &Question<'_>,
) -> Result<Reply, AskError> {
    let field = format!("{AT}.address");
    let address = match (metric.address.trim(), providers.default_prometheus.as_deref()) {
        ("", Some(address)) => Address::parse("the operator's default address of Prometheus", address)?,
        ("", None) => {
            let problem = "is empty, and the operator has no default";
            return Err(AskError::bad_field(field, problem));
        }
        (address, _) => Address::parse(&field, address)?,
    };
    if metric.query.trim().is_empty() {
        return Err(AskError::bad_field(format!("{AT}.query"), "is empty"));
    }
    let query = Query {
        address: &address,
        headers: headers(&format!("{AT}.headers"), &metric.headers, &address)?,
        trust: Trust::of(AT, metric.insecure, metric.ca_certificate.as_deref())?,
        timeout: timing::seconds(&format!("{AT}.timeout"), metric.timeout, 30)?,
        form: form(metric, question)?,
        path: if metric.range_query.is_some() {
            "/api/v1/query_range"
        } else {
            "/api/v1/query"
        },
    };
    let doors = providers.doors(question);
    let authentication = metric.authentication.as_ref();
    let sending = async {
        let response = doors.send(AT, authentication, query.post()).await?;
        match response.status {
            StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => {
                doors.send(AT, authentication, query.get()).await
            }
            _ => Ok(response),
        }
    };
    let response = timing::within(&address.url, query.timeout, sending).await?;
    let (secrets, veil) = (secrets(metric), question.veil.clone());
    let read =
        move |response: &Response| answer::read(response, &veil.with(secrets.iter().map(String::as_str)));
    let mut reply = providers.read(question, response, read).await?;
    let resolved = "ResolvedPrometheusQuery".to_owned();
    reply.notes.insert(resolved, metric.query.clone());
    Ok(reply)
}

struct Query<'q> {
    address: &'q Address,
    path: &'q str,
    form: String,
    headers: HeaderMap,
    trust: Trust,
    timeout: Duration,
}

impl Query<'_> {
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

fn form(metric: &Prometheus, question: &Question<'_>) -> Result<String, AskError> {
    let mut form = Serializer::new(String::new());
    form.append_pair("query", &metric.query);
    if metric.range_query.is_none() {
        // The moment is the server's own: asked about one that is ahead of its clock, it answers as if nothing were wrong.
        return Ok(form.finish());
    }
    let bad = |problem: &str| AskError::bad_field(format!("{AT}.rangeQuery"), problem);
    let range = question
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

/// What must not be shown, should the server repeat it.
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
