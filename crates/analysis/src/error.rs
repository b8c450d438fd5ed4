//! Errors of metric queries.

use std::net::IpAddr;

/// Why a query has no answer. Contains no secret, header value or body.
///
/// An `origin` is a scheme, a host and a port: messages contain no paths, queries or user names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProviderError {
    /// The operator does not connect to this address.
    #[error(
        "{origin} is at {address}, {why}, and is not dialled; an administrator of the operator can allow it with --allow-egress {address}"
    )]
    EgressRefused {
        /// The origin of the query.
        origin: String,
        /// The resolved address.
        address: IpAddr,
        /// What kind of address that is, such as `a loopback address`.
        why: &'static str,
    },
    /// The operator does not connect to this host.
    #[error("{origin} {}, and is not dialled", stateward_egress::as_predicate(why))]
    HostRefused {
        /// The origin of the query.
        origin: String,
        /// The reason, such as `is not listed in --egress-only` or `a loopback address`.
        why: &'static str,
    },
    /// The name could not be resolved.
    #[error("{host}: the name was not resolved: {why}")]
    NameNotResolved {
        /// The name.
        host: String,
        /// The reason.
        why: String,
    },
    /// The connection was refused.
    #[error("{origin}: connection refused")]
    ConnectionRefused {
        /// The origin of the query.
        origin: String,
    },
    /// The connection failed or was lost.
    #[error("{origin}: {what}")]
    Connection {
        /// The origin of the query.
        origin: String,
        /// What happened.
        what: String,
    },
    /// The certificate is not trusted.
    #[error("{origin}: its certificate is not trusted: {why}")]
    CertificateNotTrusted {
        /// The origin of the query.
        origin: String,
        /// The reason.
        why: String,
    },
    /// Another TLS error.
    #[error("{origin}: TLS failed: {why}")]
    Tls {
        /// The origin of the query.
        origin: String,
        /// The reason.
        why: String,
    },
    /// No answer within the timeout.
    #[error("{origin}: no answer within {seconds} s")]
    Timeout {
        /// The origin of the query.
        origin: String,
        /// The timeout.
        seconds: u64,
    },
    /// The server returned an error status.
    #[error("{origin}: answered with status {status}{}", said.as_ref().map(|said| format!(": {said}")).unwrap_or_default())]
    Status {
        /// The origin of the query.
        origin: String,
        /// The status.
        status: u16,
        /// Prometheus' error type and message, shortened. Never a body.
        said: Option<String>,
    },
    /// The provider accepted the request, but the query failed.
    #[error("{origin}: answered with an error: {said}")]
    QueryFailed {
        /// The origin of the query.
        origin: String,
        /// The provider's error message, shortened. Never a body.
        said: String,
    },
    /// The response has an unexpected format.
    #[error("{origin}: the answer is not {expected}")]
    Malformed {
        /// The origin of the query.
        origin: String,
        /// What was expected.
        expected: String,
    },
    /// The response is too large.
    #[error("{origin}: the answer is longer than {limit} bytes")]
    TooLarge {
        /// The origin of the query.
        origin: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The response has too many values.
    #[error("{origin}: the answer has more than {limit} values")]
    TooComplex {
        /// The origin of the query.
        origin: String,
        /// The maximum number of values.
        limit: usize,
    },
    /// The server redirected too often.
    #[error("{origin}: redirected more than {limit} times")]
    TooManyRedirects {
        /// The origin of the first request.
        origin: String,
        /// The maximum number of redirects.
        limit: usize,
    },
    /// The server redirected to a destination that is not followed.
    #[error("{origin}: redirected {whither}")]
    RedirectRefused {
        /// The origin that redirected.
        origin: String,
        /// The destination, and why it is not followed.
        whither: &'static str,
    },
    /// The Secret does not exist.
    #[error("secret {namespace}/{name} does not exist; it holds the keys for {provider}")]
    SecretMissing {
        /// The run's namespace.
        namespace: String,
        /// The Secret's name.
        name: String,
        /// The provider that needs it.
        provider: &'static str,
    },
    /// The Secret lacks a key.
    #[error("secret {namespace}/{name} has no key {key}, or it is empty, no text or longer than 16 KiB")]
    SecretKeyMissing {
        /// The run's namespace.
        namespace: String,
        /// The Secret's name.
        name: String,
        /// The missing key.
        key: String,
    },
    /// The Secret cannot be read.
    #[error("secret {namespace}/{name} cannot be read: {why}")]
    SecretUnreadable {
        /// The run's namespace.
        namespace: String,
        /// The Secret's name.
        name: String,
        /// The reason.
        why: String,
    },
    /// A field of the metric is invalid.
    #[error("{field}: {problem}")]
    BadField {
        /// The path of the field below the metric: `provider.web.url`.
        field: String,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// The provider is not supported here.
    #[error("provider.{provider}: {why}")]
    NotServed {
        /// The field of the provider.
        provider: &'static str,
        /// The reason.
        why: &'static str,
    },
}

impl ProviderError {
    /// A stable identifier for tools.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::EgressRefused { .. } | Self::HostRefused { .. } => "EgressRefused",
            Self::NameNotResolved { .. } => "NameNotResolved",
            Self::ConnectionRefused { .. } => "ConnectionRefused",
            Self::Connection { .. } => "Connection",
            Self::CertificateNotTrusted { .. } => "CertificateNotTrusted",
            Self::Tls { .. } => "Tls",
            Self::Timeout { .. } => "Timeout",
            Self::Status { status, .. } if *status < 400 => "UnexpectedStatus",
            Self::Status { status, .. } if *status < 500 => "ClientStatus",
            Self::Status { .. } => "ServerStatus",
            Self::QueryFailed { .. } => "QueryFailed",
            Self::Malformed { .. } => "Malformed",
            Self::TooLarge { .. } => "TooLarge",
            Self::TooComplex { .. } => "TooComplex",
            Self::TooManyRedirects { .. } => "TooManyRedirects",
            Self::RedirectRefused { .. } => "RedirectRefused",
            Self::SecretMissing { .. } => "SecretMissing",
            Self::SecretKeyMissing { .. } => "SecretKeyMissing",
            Self::SecretUnreadable { .. } => "SecretUnreadable",
            Self::BadField { .. } => "BadField",
            Self::NotServed { .. } => "NotServed",
        }
    }

    pub(crate) fn bad_field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::BadField {
            field: field.into(),
            problem: problem.into(),
        }
    }

    pub(crate) fn too_complex(origin: impl Into<String>, limit: usize) -> Self {
        Self::TooComplex {
            origin: origin.into(),
            limit,
        }
    }

    pub(crate) fn malformed(origin: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Malformed {
            origin: origin.into(),
            expected: expected.into(),
        }
    }
}
