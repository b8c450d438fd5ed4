//! Addresses as users write them.

use ::http::HeaderMap;
use ::http::header::{AUTHORIZATION, HeaderValue};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::percent_decode_str;
use url::{Position, Url};

use crate::ProviderError;

/// An address, and the credentials in it.
#[derive(Clone)]
pub(crate) struct Address {
    /// The URL without the credentials.
    pub(crate) url: Url,
    userinfo: Option<HeaderValue>,
}

impl Address {
    /// Parses an address; `field` names it in messages. The default scheme is `http`: `prometheus:9090/prefix`.
    pub(crate) fn parse(field: &str, text: &str) -> Result<Self, ProviderError> {
        let text = text.trim();
        let bad = |problem: &str| ProviderError::bad_field(field, problem);
        if text.is_empty() {
            return Err(bad("is empty"));
        }
        let url = if text.contains("://") {
            Url::parse(text)
        } else {
            Url::parse(&format!("http://{text}"))
        };
        // Without the text, which may contain a password even if it is not a URL.
        let mut url = url.map_err(|error| bad(&format!("is not a URL: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(&format!("is {}; http and https are spoken", url.scheme())));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(bad("has no host"));
        }
        let userinfo = (!url.username().is_empty() || url.password().is_some()).then(|| {
            let decoded = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
            basic(
                &decoded(url.username()),
                &decoded(url.password().unwrap_or_default()),
            )
        });
        // These only fail for URLs without a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.set_fragment(None);
        Ok(Self { url, userinfo })
    }

    /// The address with a path appended.
    pub(crate) fn join(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}{path}"));
        url
    }

    /// Sends the credentials of the address, like other HTTP clients.
    pub(crate) fn let_in(&self, headers: &mut HeaderMap) {
        if let Some(value) = &self.userinfo {
            headers.entry(AUTHORIZATION).or_insert_with(|| value.clone());
        }
    }
}

/// The part of an address that messages may contain: `https://prometheus:9090`.
pub(crate) fn origin(url: &Url) -> String {
    let host = &url[Position::BeforeHost..Position::AfterPort];
    format!("{}://{host}", url.scheme())
}

/// Basic authentication.
pub(crate) fn basic(username: &str, password: &str) -> HeaderValue {
    let token = STANDARD.encode(format!("{username}:{password}"));
    // Base64 is always a valid header value; the fallback is rejected by the server, which is better than a panic.
    let mut value =
        HeaderValue::from_str(&format!("Basic {token}")).unwrap_or_else(|_| HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("http://prometheus:9090", "http://prometheus:9090/api/v1/query")]
    #[case("http://prometheus:9090/", "http://prometheus:9090/api/v1/query")]
    #[case("https://thanos/a/b/", "https://thanos/a/b/api/v1/query")]
    #[case("prom:9000/xx", "http://prom:9000/xx/api/v1/query")]
    #[case("10.0.0.7:9090", "http://10.0.0.7:9090/api/v1/query")]
    #[case("[fd00::7]:9090", "http://[fd00::7]:9090/api/v1/query")]
    fn an_address_may_lack_its_scheme_and_have_a_path(#[case] text: &str, #[case] expected: &str) {
        let address = Address::parse("provider.prometheus.address", text).unwrap();
        assert_eq!(address.join("/api/v1/query").as_str(), expected);
    }

    #[rstest]
    #[case("", "provider.web.url: is empty")]
    #[case("file:///etc/passwd", "provider.web.url: is file; http and https are spoken")]
    #[case("gopher://x/", "provider.web.url: is gopher; http and https are spoken")]
    #[case("http://:pw@", "provider.web.url: is not a URL: empty host")]
    #[case("http://[::1", "provider.web.url: is not a URL: invalid IPv6 address")]
    #[case(
        "http://[fe80::1%25eth0]/",
        "provider.web.url: is not a URL: invalid IPv6 address"
    )]
    #[case("http://host:99999/", "provider.web.url: is not a URL: invalid port number")]
    fn what_is_no_address_is_told(#[case] text: &str, #[case] expected: &str) {
        let error = Address::parse("provider.web.url", text).err().unwrap();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn a_name_and_a_password_go_to_the_header_and_nowhere_else() {
        let address = Address::parse("provider.web.url", "https://me:p%40ss@host/x?y#z").unwrap();
        assert_eq!(address.url.as_str(), "https://host/x?y");
        let mut headers = HeaderMap::new();
        address.let_in(&mut headers);
        assert_eq!(headers[AUTHORIZATION], "Basic bWU6cEBzcw==");
        assert_eq!(format!("{headers:?}"), r#"{"authorization": Sensitive}"#);
    }
}
