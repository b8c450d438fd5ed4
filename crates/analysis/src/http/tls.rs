//! TLS and its trusted certificate authorities.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Url;

use crate::ProviderError;
use crate::address::origin;

/// The certificates to trust.
#[derive(Clone, Debug, Default)]
pub(crate) enum Trust {
    /// The system's authorities.
    #[default]
    System,
    /// Only these authorities.
    Only(Vec<CertificateDer<'static>>),
    /// Any certificate, as the metric requests.
    Anybody,
}

impl Trust {
    /// From the fields of a metric; `at` is the provider's path.
    pub(crate) fn of(at: &str, insecure: bool, authority: Option<&str>) -> Result<Self, ProviderError> {
        let authority = authority.filter(|pem| !pem.trim().is_empty());
        match (insecure, authority) {
            (true, Some(_)) => Err(ProviderError::bad_field(
                format!("{at}.caCertificate"),
                "and insecure are given; a certificate is checked or it is not",
            )),
            (true, None) => Ok(Self::Anybody),
            (false, None) => Ok(Self::System),
            (false, Some(pem)) => certificates(pem).map(Self::Only).ok_or_else(|| {
                ProviderError::bad_field(
                    format!("{at}.caCertificate"),
                    "is not PEM with a certificate of an authority",
                )
            }),
        }
    }
}

/// The certificates; `None` if there are none, or one is invalid.
fn certificates(pem: &str) -> Option<Vec<CertificateDer<'static>>> {
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .ok()?;
    store(&certificates).filter(|store| !store.is_empty())?;
    Some(certificates)
}

fn store(certificates: &[CertificateDer<'static>]) -> Option<RootCertStore> {
    let mut store = RootCertStore::empty();
    for certificate in certificates {
        store.add(certificate.clone()).ok()?;
    }
    Some(store)
}

/// The system's authorities, loaded on first use, and those configured for the operator.
#[derive(Default)]
pub(super) struct Trusts {
    extra: Vec<CertificateDer<'static>>,
    system: OnceLock<Arc<ClientConfig>>,
}

impl Trusts {
    pub(super) fn with(mut self, pem: &str) -> Option<Self> {
        self.extra.extend(certificates(pem)?);
        self.system = OnceLock::new();
        Some(self)
    }

    /// Adds TLS to a connection if the URL requires it.
    pub(super) async fn wrap(
        &self,
        stream: TcpStream,
        url: &Url,
        trust: &Trust,
    ) -> Result<Stream, ProviderError> {
        if url.scheme() != "https" {
            return Ok(Stream::Plain(stream));
        }
        let no_tls = |why: &str| ProviderError::Tls {
            origin: origin(url),
            why: why.to_owned(),
        };
        let config = self
            .config(trust)
            .ok_or_else(|| no_tls("it cannot be set up here"))?;
        // Addresses have brackets in a URL and none in a certificate.
        let name = url.host_str().unwrap_or_default();
        let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(|_| no_tls("no certificate can have that name"))?;
        match TlsConnector::from(config).connect(name, stream).await {
            Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
            Err(error) => Err(failed(url, &error)),
        }
    }

    fn config(&self, trust: &Trust) -> Option<Arc<ClientConfig>> {
        match trust {
            Trust::System => {
                if let Some(config) = self.system.get() {
                    return Some(config.clone());
                }
                let mut store = store(&self.extra)?;
                // Invalid system certificates are ignored, like in other clients.
                store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                let config = Arc::new(verifying(store)?);
                Some(self.system.get_or_init(|| config).clone())
            }
            Trust::Only(authorities) => Some(Arc::new(verifying(store(authorities)?)?)),
            Trust::Anybody => Some(Arc::new(trusting_anybody()?)),
        }
    }
}

fn verifying(store: RootCertStore) -> Option<ClientConfig> {
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(store)
        .with_no_client_auth();
    Some(config)
}

fn trusting_anybody() -> Option<ClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    Some(
        ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .ok()?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
            .with_no_client_auth(),
    )
}

/// Accepts any certificate; the server must still have its key.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn failed(url: &Url, error: &io::Error) -> ProviderError {
    let origin = origin(url);
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner {
        Some(rustls::Error::InvalidCertificate(why)) => ProviderError::CertificateNotTrusted {
            origin,
            why: in_words(why),
        },
        Some(other) => ProviderError::Tls {
            origin,
            why: other.to_string(),
        },
        None => ProviderError::Tls {
            origin,
            why: error.kind().to_string(),
        },
    }
}

fn in_words(error: &CertificateError) -> String {
    match error {
        // The latter if another authority has the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "no authority that is trusted here signed it; caCertificate names another one".to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired".to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it is not valid yet".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it is for another name".to_owned()
        }
        other => other.to_string(),
    }
}

/// A connection, with or without TLS.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
