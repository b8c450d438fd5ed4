//! The metric provider addresses that templates contain.

use super::{Authentication, Metric};

/// The addresses of a metric that are not in a Secret, with their fields below `provider`.
pub fn addresses(metric: &Metric) -> Vec<(&'static str, &str)> {
    let provider = &metric.provider;
    let prometheus = provider.prometheus.as_ref();
    let web = provider.web.as_ref();
    let found = [
        ("prometheus.address", prometheus.map(|it| it.address.as_str())),
        (
            "prometheus.authentication.oauth2.tokenUrl",
            prometheus.and_then(|it| token_url(it.authentication.as_ref())),
        ),
        ("web.url", web.map(|it| it.url.as_str())),
        (
            "web.authentication.oauth2.tokenUrl",
            web.and_then(|it| token_url(it.authentication.as_ref())),
        ),
        (
            "graphite.address",
            provider.graphite.as_ref().map(|it| it.address.as_str()),
        ),
        (
            "wavefront.address",
            provider.wavefront.as_ref().map(|it| it.address.as_str()),
        ),
        (
            "skywalking.address",
            provider.skywalking.as_ref().map(|it| it.address.as_str()),
        ),
    ];
    found
        .into_iter()
        .filter_map(|(field, address)| Some((field, address?)))
        .collect()
}

fn token_url(authentication: Option<&Authentication>) -> Option<&str> {
    let oauth2 = authentication?.oauth2.as_ref()?;
    Some(oauth2.token_url.as_str())
}

/// The host of a URL, or of a host with a port, as written; `None` if it contains an unresolved arg.
pub fn host(url: &str) -> Option<&str> {
    let host = written_host(url);
    (!host.contains("{{")).then_some(host)
}

/// Like [`host`], but keeps unresolved args.
pub fn written_host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let end = match host.find(']') {
        Some(end) if host.starts_with('[') => end + 1,
        _ => host.find(':').unwrap_or(host.len()),
    };
    &host[..end]
}
