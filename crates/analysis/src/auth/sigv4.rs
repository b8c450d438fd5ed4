//! AWS Signature Version 4, for Amazon Managed Service for Prometheus.
//!
//! A hundred lines, tested with the vectors that AWS publishes: the crate for it depends on most of AWS's SDK.
//!
//! The keys are the operator's, so only requests to that service are signed. A signature is valid for one host, one minute and one
//! request.

use std::fmt;

use ::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use ::http::{HeaderMap, HeaderName, HeaderValue};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::Url;

use super::Aws;
use crate::ProviderError;
use crate::http::{Request, Trust, authority};

/// AWS keys.
#[derive(Clone)]
pub struct AwsCredentials {
    /// The ID of the access key.
    pub access_key_id: String,
    /// The secret access key.
    pub secret_access_key: String,
    /// The session token of temporary keys.
    pub session_token: Option<String>,
}

impl AwsCredentials {
    /// From `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, as `variable` returns them; `None` without the first two.
    /// The binary passes its environment, because nothing here reads it.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let given = |name: &str| variable(name).filter(|value| !value.is_empty());
        Some(Self {
            access_key_id: given("AWS_ACCESS_KEY_ID")?,
            secret_access_key: given("AWS_SECRET_ACCESS_KEY")?,
            session_token: given("AWS_SESSION_TOKEN"),
        })
    }
}

impl fmt::Debug for AwsCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsCredentials(..)")
    }
}

/// Signs a query to Prometheus. `at` is the path of `authentication`.
pub(super) fn sign_for_prometheus(
    at: &str,
    request: &mut Request,
    region: &str,
    keys: Aws<'_>,
    namespace: &str,
    now: Timestamp,
) -> Result<(), ProviderError> {
    let bad = |problem: &str| ProviderError::bad_field(format!("{at}.sigv4"), problem);
    if !is_managed_prometheus(&request.url, region) {
        return Err(bad(
            "signs for Amazon Managed Service for Prometheus only, at https://aps-workspaces.REGION.amazonaws.com of the region it names",
        ));
    }
    // A user who chooses the trusted certificates can impersonate the service.
    if !matches!(request.trust, Trust::System) {
        return Err(bad("does not go with insecure or caCertificate"));
    }
    let keys = match keys {
        Aws::Keys(keys) => keys,
        Aws::None => {
            return Err(bad(
                "needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment of the operator",
            ));
        }
        Aws::Elsewhere => {
            return Err(bad(&format!(
                "is not open to namespace {namespace}; an administrator can allow it with the operator's flag --aws-signing-namespace {namespace}"
            )));
        }
    };
    sign(request, keys, region, "aps", now).ok_or_else(|| bad("cannot be made of these keys"))
}

/// The hosts of the service in one region, by full name: also FIPS, IPv6, China, and private endpoints.
fn is_managed_prometheus(url: &Url, region: &str) -> bool {
    let is_word = |word: &str| {
        (1..=63).contains(&word.len())
            && word
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    let host = url.host_str().unwrap_or_default();
    let public = ["aps-workspaces", "aps-workspaces-fips"].iter().any(|service| {
        ["amazonaws.com", "amazonaws.com.cn", "api.aws"]
            .iter()
            .any(|domain| host == format!("{service}.{region}.{domain}"))
    });
    let private = host.strip_prefix("vpce-").and_then(|rest| rest.split_once('.'));
    let private = private.is_some_and(|(id, rest)| {
        is_word(id) && rest == format!("aps-workspaces.{region}.vpce.amazonaws.com")
    });
    url.scheme() == "https" && url.port().is_none() && is_word(region) && (public || private)
}

/// `None` for keys that are not valid in a header.
fn sign(
    request: &mut Request,
    keys: &AwsCredentials,
    region: &str,
    service: &str,
    now: Timestamp,
) -> Option<()> {
    let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
    let day = time.split_once('T')?.0;
    let mut put = |name: &'static str, value: &str| {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        request.headers.insert(HeaderName::from_static(name), value);
        Some(())
    };
    put("x-amz-date", &time)?;
    if let Some(token) = &keys.session_token {
        put("x-amz-security-token", token)?;
    }

    let (names, lines) = signed_headers(&request.headers, &request.url);
    let canonical = format!(
        "{}\n{}\n{}\n{lines}\n{names}\n{}",
        request.method,
        canonical_path(&request.url),
        canonical_query(&request.url),
        hex(digest(&SHA256, &request.body).as_ref()),
    );
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let to_sign = format!(
        "AWS4-HMAC-SHA256\n{time}\n{scope}\n{}",
        hex(digest(&SHA256, canonical.as_bytes()).as_ref())
    );
    let mut key = format!("AWS4{}", keys.secret_access_key).into_bytes();
    for part in [day, region, service, "aws4_request"] {
        key = seal(&key, part);
    }
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={}",
        keys.access_key_id,
        hex(&seal(&key, &to_sign)),
    );
    let mut value = HeaderValue::from_str(&authorization).ok()?;
    value.set_sensitive(true);
    request.headers.insert(AUTHORIZATION, value);
    Some(())
}

fn seal(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The names of the signed headers, and a line for each. Headers that proxies may change are not signed.
fn signed_headers(headers: &HeaderMap, url: &Url) -> (String, String) {
    let mut signed = vec![(HOST.as_str(), authority(url))];
    for (name, value) in headers {
        if name == CONTENT_TYPE || name.as_str().starts_with("x-amz-") {
            let words: Vec<_> = value.to_str().unwrap_or_default().split_whitespace().collect();
            signed.push((name.as_str(), words.join(" ")));
        }
    }
    signed.sort();
    let names: Vec<_> = signed.iter().map(|(name, _)| *name).collect();
    let lines = signed.iter().map(|(name, value)| format!("{name}:{value}\n"));
    (names.join(";"), lines.collect())
}

const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
const UNRESERVED_OR_SLASH: &AsciiSet = &UNRESERVED.remove(b'/');

/// The encoded path of the URL is encoded once more, except for the slashes.
fn canonical_path(url: &Url) -> String {
    utf8_percent_encode(url.path(), UNRESERVED_OR_SLASH).to_string()
}

fn canonical_query(url: &Url) -> String {
    let encoded = |text: &str| {
        let plain = text.replace('+', " ");
        let plain = percent_decode_str(&plain).decode_utf8_lossy().into_owned();
        utf8_percent_encode(&plain, UNRESERVED).to_string()
    };
    let mut pairs: Vec<_> = url
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (encoded(name), encoded(value)))
        .collect();
    pairs.sort();
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::http::Method;
    use rstest::rstest;
    use std::time::Duration;

    fn keys() -> AwsCredentials {
        AwsCredentials {
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
            session_token: None,
        }
    }

    fn request(method: &str, url: &str, content_type: Option<&'static str>, body: &'static str) -> Request {
        let mut request = Request::get(url.parse().unwrap(), Duration::from_secs(1));
        request.method = Method::from_bytes(method.as_bytes()).unwrap();
        request.body = body.into();
        if let Some(content_type) = content_type {
            request
                .headers
                .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        request
    }

    fn signed(mut request: Request, service: &str) -> String {
        let now = "2015-08-30T12:36:00Z".parse().unwrap();
        sign(&mut request, &keys(), "us-east-1", service, now).unwrap();
        request.headers[AUTHORIZATION].to_str().unwrap().to_owned()
    }

    /// AWS's own: get-vanilla, get-vanilla-query-order-key-case, post-vanilla, post-x-www-form-urlencoded, and the example of
    /// its guide.
    #[rstest]
    #[case(
        "GET",
        "https://example.amazonaws.com/",
        None,
        "",
        "service",
        "host;x-amz-date",
        "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
    )]
    #[case(
        "GET",
        "https://example.amazonaws.com/?Param2=value2&Param1=value1",
        None,
        "",
        "service",
        "host;x-amz-date",
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
    )]
    #[case(
        "POST",
        "https://example.amazonaws.com/",
        None,
        "",
        "service",
        "host;x-amz-date",
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
    )]
    #[case(
        "POST",
        "https://example.amazonaws.com/",
        Some("application/x-www-form-urlencoded"),
        "Param1=value1",
        "service",
        "content-type;host;x-amz-date",
        "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"
    )]
    #[case(
        "GET",
        "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
        Some("application/x-www-form-urlencoded; charset=utf-8"),
        "",
        "iam",
        "content-type;host;x-amz-date",
        "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    )]
    fn the_vectors_of_aws_hold(
        #[case] method: &str,
        #[case] url: &str,
        #[case] content_type: Option<&'static str>,
        #[case] body: &'static str,
        #[case] service: &str,
        #[case] names: &str,
        #[case] signature: &str,
    ) {
        assert_eq!(
            signed(request(method, url, content_type, body), service),
            format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/{service}/aws4_request, \
                 SignedHeaders={names}, Signature={signature}"
            )
        );
    }

    #[rstest]
    #[case("https://aps-workspaces.eu-west-1.amazonaws.com/workspaces/ws-1", true)]
    #[case("https://aps-workspaces-fips.eu-west-1.amazonaws.com/workspaces/ws-1", true)]
    #[case("https://aps-workspaces.eu-west-1.api.aws/workspaces/ws-1", true)]
    #[case(
        "https://vpce-1-x.aps-workspaces.eu-west-1.vpce.amazonaws.com/workspaces/ws-1",
        true
    )]
    #[case("https://aps-workspaces.eu-west-1.amazonaws.com.cn/workspaces/ws-1", true)]
    #[case("https://aps-workspaces.us-east-1.amazonaws.com/workspaces/ws-1", false)]
    #[case("https://aps-workspaces.eu-west-1.amazonaws.com:8443/", false)]
    #[case("https://aps-workspaces.eu-west-1.amazonaws.com.evil.example/", false)]
    #[case("https://aps-workspaces.eu-west-1.elb.amazonaws.com/", false)]
    #[case("https://aps-workspaces.s3.eu-west-1.amazonaws.com/", false)]
    #[case("https://x.aps-workspaces.eu-west-1.amazonaws.com/", false)]
    #[case("https://x.aps-workspaces.eu-west-1.vpce.amazonaws.com/", false)]
    #[case("https://vpce-1.x.aps-workspaces.eu-west-1.vpce.amazonaws.com/", false)]
    #[case("https://evil.example/aps-workspaces.amazonaws.com", false)]
    #[case("https://s3.amazonaws.com/", false)]
    #[case("http://aps-workspaces.eu-west-1.amazonaws.com/", false)]
    fn only_managed_prometheus_gets_a_signature(#[case] url: &str, #[case] expected: bool) {
        assert_eq!(
            is_managed_prometheus(&url.parse().unwrap(), "eu-west-1"),
            expected
        );
    }

    #[rstest]
    #[case("")]
    #[case("s3.eu-west-1")]
    #[case("EU-west-1")]
    #[case("eu-west-1/../..")]
    fn what_is_no_region_gets_no_signature(#[case] region: &str) {
        let url = format!("https://aps-workspaces.{region}.amazonaws.com/");
        let signs = url.parse().is_ok_and(|url| is_managed_prometheus(&url, region));
        assert!(!signs);
    }
}
