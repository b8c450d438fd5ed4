//! Where a metric may contain the value of a Secret: in headers, body, query and authentication.
//!
//! Anywhere else it would be shown, compared or resolved: hosts are sent to the DNS, paths are logged along the way, and a condition leaks
//! information with every measurement. It must not change the destination either: a password with `@evil.example/` before a host would.

use serde_json::Value;
use stateward_api::analysis::Metric;
use url::{Position, Url};

use crate::ProviderError;
use crate::address::Address;

/// What a field may contain.
enum Place {
    /// A secret as a whole or in part.
    Open,
    /// A secret in the query or the credentials of a URL.
    Address,
    Closed,
}

fn place(path: &str) -> Place {
    let inner = path
        .strip_prefix("provider.")
        .and_then(|rest| rest.split_once('.'));
    match inner.map_or("", |(_, field)| field) {
        "url" | "address" | "authentication.oauth2.tokenUrl" => Place::Address,
        "body" | "query" => Place::Open,
        field if field.starts_with("jsonBody") || field.starts_with("queries.") => Place::Open,
        field if field.starts_with("authentication.") => Place::Open,
        field if field.starts_with("headers[") && field.ends_with("].value") => Place::Open,
        _ => Place::Closed,
    }
}

/// Checks that the unresolved args of a metric, `{{args.token}}`, are only where a Secret's value may be.
pub fn check_secret_args(metric: &Metric) -> Result<(), ProviderError> {
    let json = serde_json::to_value(metric).unwrap_or_default();
    each_text(&json, String::new(), &mut |path, text| {
        let Some((arg, marked)) = marked(text) else {
            return Ok(());
        };
        let refused = |problem: &str| {
            let problem = format!(
                "{arg} comes from a Secret{problem}; a Secret's value is allowed in headers, body, query and authentication only"
            );
            Err(ProviderError::bad_field(path, problem))
        };
        match place(path) {
            Place::Open => Ok(()),
            Place::Closed => refused(""),
            Place::Address => match Address::parse(path, &marked) {
                Ok(address) if !destination(&address.url).contains(MARK) => Ok(()),
                _ => refused(" and is in the scheme, host, port or path"),
            },
        }
    })
}

/// Checks that the filled-in secrets have not changed the destination.
pub fn check_filled_args(metric: &Metric, filled: &Metric) -> Result<(), ProviderError> {
    let json = serde_json::to_value(metric).unwrap_or_default();
    let filled = serde_json::to_value(filled).unwrap_or_default();
    each_text(&json, String::new(), &mut |path, text| {
        let (Place::Address, Some((arg, marked))) = (place(path), marked(text)) else {
            return Ok(());
        };
        let pointer = format!("/{}", path.replace('.', "/"));
        let now = filled
            .pointer(&pointer)
            .and_then(Value::as_str)
            .unwrap_or_default();
        let meant = Address::parse(path, &marked)?;
        match Address::parse(path, now) {
            Ok(address) if destination(&address.url) == destination(&meant.url) => Ok(()),
            _ => Err(ProviderError::bad_field(
                path,
                format!("with the value of {arg} it is no URL, or one of another scheme, host, port or path"),
            )),
        }
    })
}

/// The placeholder for a secret in a URL. It is also valid in a host.
const MARK: &str = "s3cr3t-6e1f0c52";

/// A text with a placeholder for each arg, and the first arg; `None` if there are none.
fn marked(text: &str) -> Option<(&str, String)> {
    let (mut first, mut marked, mut rest) = (None, String::new(), text);
    while let Some(start) = rest.find("{{") {
        let Some(end) = rest[start..].find("}}") else {
            break;
        };
        let tag = &rest[start..start + end + 2];
        marked.push_str(&rest[..start]);
        if tag[2..end].trim().starts_with("args.") {
            first = first.or(Some(tag));
            marked.push_str(MARK);
        } else {
            marked.push_str(tag);
        }
        rest = &rest[start + end + 2..];
    }
    marked.push_str(rest);
    first.map(|first| (first, marked))
}

/// The destination of a URL, without its query.
fn destination(url: &Url) -> &str {
    &url[..Position::AfterPath]
}

fn each_text(
    json: &Value,
    path: String,
    check: &mut dyn FnMut(&str, &str) -> Result<(), ProviderError>,
) -> Result<(), ProviderError> {
    match json {
        Value::String(text) => check(&path, text),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(index, item)| each_text(item, format!("{path}[{index}]"), check)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, field)| {
            let dot = if path.is_empty() { "" } else { "." };
            each_text(field, format!("{path}{dot}{name}"), check)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn metric(patch: &Value) -> Metric {
        let mut metric = json!({"name": "m", "provider": {}});
        let fields = metric.as_object_mut().unwrap();
        fields.extend(patch.as_object().unwrap().clone());
        serde_json::from_value(metric).unwrap()
    }

    #[rstest]
    #[case(json!({"web": {"url": "http://web/x?token={{args.s}}&a=b"}}))]
    #[case(json!({"web": {"url": "http://me:{{ args.s }}@web:80/x"}}))]
    #[case(json!({"web": {"url": "web:9090?{{args.s}}"}}))]
    #[case(json!({"web": {"url": "http://web", "headers": [{"key": "a", "value": "Bearer {{args.s}}"}]}}))]
    #[case(json!({"web": {"url": "http://web", "method": "POST", "body": "{{args.s}}"}}))]
    #[case(json!({"web": {"url": "http://web", "method": "POST", "jsonBody": {"a": [{"b": "{{args.s}}"}]}}}))]
    #[case(json!({"web": {"url": "http://web", "authentication": {"basicAuth": {"username": "{{args.s}}", "password": "{{args.s}}"}}}}))]
    #[case(json!({"web": {"url": "http://web", "authentication": {"oauth2": {"tokenUrl": "http://t/?k={{args.s}}", "clientId": "i", "clientSecret": "{{args.s}}"}}}}))]
    #[case(json!({"prometheus": {"address": "http://p", "query": "up{a='{{args.s}}'}", "headers": [{"key": "a", "value": "{{args.s}}"}]}}))]
    #[case(json!({"datadog": {"query": "{{args.s}}"}}))]
    #[case(json!({"datadog": {"queries": {"a": "{{args.s}}"}}}))]
    #[case(json!({"newRelic": {"query": "{{args.s}}"}}))]
    #[case(json!({"influxdb": {"query": "{{args.s}}"}}))]
    #[case(json!({"wavefront": {"address": "w", "query": "{{args.s}}"}}))]
    #[case(json!({"graphite": {"address": "http://g", "query": "{{args.s}}"}}))]
    #[case(json!({"skywalking": {"address": "http://s", "query": "{{args.s}}"}}))]
    #[case(json!({"web": {"url": "http://{{ $labels.a }}/"}}))]
    fn a_secret_may_stand_in_headers_body_query_and_authentication(#[case] provider: Value) {
        assert_eq!(check_secret_args(&metric(&json!({"provider": provider}))), Ok(()));
    }

    #[rstest]
    #[case("provider.web.url", json!({"provider": {"web": {"url": "http://{{args.s}}/"}}}))]
    #[case("provider.web.url", json!({"provider": {"web": {"url": "http://{{args.s}}.example.com/"}}}))]
    #[case("provider.web.url", json!({"provider": {"web": {"url": "{{args.s}}://web/"}}}))]
    #[case("provider.web.url", json!({"provider": {"web": {"url": "{{args.s}}"}}}))]
    #[case("provider.web.url", json!({"provider": {"web": {"url": "http://web:{{args.s}}/"}}}))]
    #[case("provider.web.url", json!({"provider": {"web": {"url": "http://web/{{args.s}}"}}}))]
    #[case("provider.web.url", json!({"provider": {"web": {"url": "http://web/{{args.s}}?a=b"}}}))]
    #[case("provider.web.jsonPath", json!({"provider": {"web": {"url": "http://web", "jsonPath": "{$.{{args.s}}}"}}}))]
    #[case("provider.web.method", json!({"provider": {"web": {"url": "http://web", "method": "{{args.s}}"}}}))]
    #[case("provider.web.caCertificate", json!({"provider": {"web": {"url": "http://web", "caCertificate": "{{args.s}}"}}}))]
    #[case("provider.web.headers[0].key", json!({"provider": {"web": {"url": "http://web", "headers": [{"key": "{{args.s}}", "value": "v"}]}}}))]
    #[case("provider.web.authentication.oauth2.tokenUrl", json!({"provider": {"web": {"url": "http://web", "authentication": {"oauth2": {"tokenUrl": "http://{{args.s}}/"}}}}}))]
    #[case("provider.prometheus.address", json!({"provider": {"prometheus": {"address": "{{args.s}}:9090", "query": "up"}}}))]
    #[case("provider.prometheus.address", json!({"provider": {"prometheus": {"address": "http://p/{{args.s}}", "query": "up"}}}))]
    #[case("provider.graphite.address", json!({"provider": {"graphite": {"address": "http://{{args.s}}", "query": "q"}}}))]
    #[case("provider.skywalking.address", json!({"provider": {"skywalking": {"address": "http://{{args.s}}", "query": "q"}}}))]
    #[case("provider.wavefront.address", json!({"provider": {"wavefront": {"address": "{{args.s}}", "query": "q"}}}))]
    #[case("provider.newRelic.profile", json!({"provider": {"newRelic": {"profile": "{{args.s}}", "query": "q"}}}))]
    #[case("provider.influxdb.profile", json!({"provider": {"influxdb": {"profile": "{{args.s}}", "query": "q"}}}))]
    #[case("provider.datadog.secretRef.name", json!({"provider": {"datadog": {"secretRef": {"name": "{{args.s}}"}, "query": "q"}}}))]
    #[case("successCondition", json!({"successCondition": "result == '{{args.s}}'", "provider": {"web": {"url": "http://web"}}}))]
    #[case("failureCondition", json!({"failureCondition": "result == '{{args.s}}'", "provider": {"web": {"url": "http://web"}}}))]
    #[case("interval", json!({"interval": "{{args.s}}", "provider": {"web": {"url": "http://web"}}}))]
    #[case("name", json!({"name": "{{args.s}}", "provider": {"web": {"url": "http://web"}}}))]
    fn a_secret_stands_nowhere_else(#[case] field: &str, #[case] patch: Value) {
        let error = check_secret_args(&metric(&patch)).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("{field}: {{{{args.s}}}} comes from a Secret")),
            "{error}"
        );
        assert!(
            error.ends_with("; a Secret's value is allowed in headers, body, query and authentication only"),
            "{error}"
        );
    }

    #[rstest]
    #[case("http://me:{{args.s}}@web/x", "hunter2", true)]
    #[case("http://web/x?k={{args.s}}", "hunter2&b=c", true)]
    #[case("http://web/x?k={{args.s}}", "/../@evil", true)]
    #[case("http://me:{{args.s}}@web/x", "@evil.example/", false)]
    #[case("http://me:{{args.s}}@web/x", "x@evil.example/?", false)]
    #[case("http://me:{{args.s}}@web/x", "x@evil.example#", false)]
    #[case("http://{{args.s}}@web/x", "evil.example/", false)]
    #[case("{{args.s}}@web/x", "https://me", false)]
    fn whatever_a_secret_is_it_does_not_decide_who_is_asked(
        #[case] url: &str,
        #[case] secret: &str,
        #[case] same: bool,
    ) {
        let open = metric(&json!({"provider": {"web": {"url": url}}}));
        assert_eq!(check_secret_args(&open), Ok(()));
        let filled = metric(&json!({"provider": {"web": {"url": url.replace("{{args.s}}", secret)}}}));
        let checked = check_filled_args(&open, &filled);
        assert_eq!(checked.is_ok(), same, "{checked:?}");
        if let Err(error) = checked {
            assert!(!error.to_string().contains("evil"), "{error}");
        }
    }
}
