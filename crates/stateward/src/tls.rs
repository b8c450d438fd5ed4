//! TLS for a loopback server: a certificate authority created at every start, trusted only by the kubeconfig.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::serve::Listener;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The certificate of a server and the authority that clients trust.
pub(crate) struct Identity {
    pub(crate) config: Arc<ServerConfig>,
    /// The authority, in PEM format.
    pub(crate) authority: String,
}

impl Identity {
    /// Creates an authority and a certificate for loopback.
    pub(crate) fn for_loopback() -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new()).context("cannot name an authority")?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "stateward cluster");
        let authority =
            CertifiedIssuer::self_signed(params, KeyPair::generate()?).context("cannot make an authority")?;

        let names = ["127.0.0.1", "::1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
        let mut params = CertificateParams::new(names).context("cannot name a certificate")?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params
            .signed_by(&key, &authority)
            .context("cannot sign a certificate")?;

        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .context("cannot use the certificate")?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self {
            config: Arc::new(config),
            authority: authority.pem(),
        })
    }
}

/// Accepts TLS connections. Handshakes run concurrently, so a slow client does not block others.
pub(crate) struct TlsListener {
    address: SocketAddr,
    ready: tokio::sync::mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
}

/// The timeout of a handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// The most connections that wait to be served.
const BACKLOG: usize = 64;

impl TlsListener {
    pub(crate) fn new(listener: TcpListener, identity: &Identity) -> Result<Self> {
        let address = listener.local_addr().context("a listener without address")?;
        let acceptor = TlsAcceptor::from(identity.config.clone());
        let (sender, ready) = tokio::sync::mpsc::channel(BACKLOG);
        tokio::spawn(async move {
            let mut listener = listener;
            while !sender.is_closed() {
                // axum's accept, which retries on errors such as too many open files.
                let (stream, peer) = Listener::accept(&mut listener).await;
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                tokio::spawn(async move {
                    match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                        Ok(Ok(stream)) => drop(sender.send((stream, peer)).await),
                        Ok(Err(error)) => tracing::debug!(%peer, %error, "TLS handshake failed"),
                        Err(_) => tracing::debug!(%peer, "TLS handshake took too long"),
                    }
                });
            }
        });
        Ok(Self { address, ready })
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.ready.recv().await {
            Some(accepted) => accepted,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        Ok(self.address)
    }
}
