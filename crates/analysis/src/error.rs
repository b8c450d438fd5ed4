//! Why there is no answer.

use std::net::IpAddr;

/// Why there is no answer. Nothing in here is a secret, a header's value or a body.
///
/// An `origin` is a scheme, a host and a port: paths, queries and user names stay out of messages.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The operator does not connect there.
    #[error(
        "{origin} is at {address}, {why}, and is not dialled; whoever runs the operator can open it with --allow-egress {address}"
    )]
    EgressRefused {
        /// Whom to ask.
        origin: String,
        /// Where that is.
        address: IpAddr,
        /// What kind of address that is, such as `a loopback address`.
        why: &'static str,
    },
    /// The operator does not connect to that name.
    #[error("{origin} {}, and is not dialled", stateward_egress::as_predicate(why))]
    HostRefused {
        /// Whom to ask.
        origin: String,
        /// Why not, such as `is not listed in --egress-only` or `a loopback address`.
        why: &'static str,
    },
    /// The name has no address.
    #[error("{host}: the name was not resolved: {why}")]
    NameNotResolved {
        /// The name.
        host: String,
        /// Why not.
        why: String,
    },
    /// Nobody listens there.
    #[error("{origin}: connection refused")]
    ConnectionRefused {
        /// Whom to ask.
        origin: String,
    },
    /// The connection was not made, or broke.
    #[error("{origin}: {what}")]
    Connection {
        /// Whom to ask.
        origin: String,
        /// What happened to it.
        what: String,
    },
    /// The certificate is not one to trust.
    #[error("{origin}: its certificate is not trusted: {why}")]
    CertificateNotTrusted {
        /// Whom to ask.
        origin: String,
        /// Why not.
        why: String,
    },
    /// TLS went wrong some other way.
    #[error("{origin}: TLS failed: {why}")]
    Tls {
        /// Whom to ask.
        origin: String,
        /// How.
        why: String,
    },
    /// There was no answer in time.
    #[error("{origin}: no answer within {seconds} s")]
    Timeout {
        /// Whom to ask.
        origin: String,
        /// How long that was.
        seconds: u64,
    },
    /// The answer is a refusal.
    #[error("{origin}: answered with status {status}{}", said.as_ref().map(|said| format!(": {said}")).unwrap_or_default())]
    Status {
        /// Who was asked.
        origin: String,
        /// The status.
        status: u16,
        /// What Prometheus said about it in its own field: the type of the error and its text, shortened. Never a body.
        said: Option<String>,
    },
    /// The provider took the request and did not like the query.
    #[error("{origin}: answered with an error: {said}")]
    QueryFailed {
        /// Who was asked.
        origin: String,
        /// What it said in the field for that, shortened. Never a body.
        said: String,
    },
    /// The answer is not what it should be.
    #[error("{origin}: the answer is not {expected}")]
    Malformed {
        /// Who was asked.
        origin: String,
        /// What was expected.
        expected: String,
    },
    /// The answer is longer than is read.
    #[error("{origin}: the answer is longer than {limit} bytes")]
    TooLarge {
        /// Who was asked.
        origin: String,
        /// How much is read.
        limit: usize,
    },
    /// The answer has more values than are read.
    #[error("{origin}: the answer has more than {limit} values")]
    TooComplex {
        /// Who was asked.
        origin: String,
        /// How many are read.
        limit: usize,
    },
    /// The answer sends us on and on.
    #[error("{origin}: redirected more than {limit} times")]
    TooManyRedirects {
        /// Who was asked first.
        origin: String,
        /// How often is followed.
        limit: usize,
    },
    /// The answer sends us where we do not go.
    #[error("{origin}: redirected {whither}")]
    RedirectRefused {
        /// Who sent us on.
        origin: String,
        /// Where to, and why that is not followed.
        whither: &'static str,
    },
    /// There is no such Secret.
    #[error("secret {namespace}/{name} does not exist; it holds the keys for {provider}")]
    SecretMissing {
        /// The run's namespace.
        namespace: String,
        /// The Secret's name.
        name: String,
        /// For whom.
        provider: &'static str,
    },
    /// The Secret lacks a key.
    #[error("secret {namespace}/{name} has no key {key}, or it is empty, no text or longer than 16 KiB")]
    SecretKeyMissing {
        /// The run's namespace.
        namespace: String,
        /// The Secret's name.
        name: String,
        /// What it lacks.
        key: String,
    },
    /// The Secret cannot be read.
    #[error("secret {namespace}/{name} cannot be read: {why}")]
    SecretUnreadable {
        /// The run's namespace.
        namespace: String,
        /// The Secret's name.
        name: String,
        /// Why not.
        why: String,
    },
    /// A field of the metric cannot be used.
    #[error("{field}: {problem}")]
    BadField {
        /// Which, below the metric: `provider.web.url`.
        field: String,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// Nobody here can be asked that.
    #[error("provider.{provider}: {why}")]
    NotServed {
        /// The field of the provider.
        provider: &'static str,
        /// Why not.
        why: &'static str,
    },
}

impl AskError {
    /// A word for machines that stays when messages change.
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
