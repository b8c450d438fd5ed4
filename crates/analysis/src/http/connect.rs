//! Connects to a URL, if egress rules allow it.

use std::io;
use std::net::{IpAddr, SocketAddr};

use stateward_egress::NOT_LISTED;
use tokio::net::TcpStream;
use url::{Host, Url};

use super::{CONNECT, Http, Proxy};
use crate::ProviderError;
use crate::address::origin;

impl Http {
    /// Connects to an address of the URL's host. If one of its addresses is refused, the host is refused: a name that resolves to both
    /// internal and external addresses is suspicious.
    pub(super) async fn connect(&self, namespace: &str, url: &Url) -> Result<TcpStream, ProviderError> {
        match &self.proxy {
            Some(proxy) => self.connect_through(proxy, namespace, url).await,
            None => {
                let addresses = self.addresses(namespace, url).await?;
                let ips: Vec<_> = addresses.iter().map(SocketAddr::ip).collect();
                self.check(url, &ips)?;
                dial(url, addresses).await
            }
        }
    }

    /// Connects to the operator's proxy, and has it connect to the host.
    async fn connect_through(
        &self,
        proxy: &Proxy,
        namespace: &str,
        url: &Url,
    ) -> Result<TcpStream, ProviderError> {
        let literal: Vec<IpAddr> = match url.host() {
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            Some(Host::Domain(name)) => {
                let checked = self.egress.check_name(name);
                checked.map_err(|why| refused_name(url, why))?;
                Vec::new()
            }
            None => Vec::new(),
        };
        self.check(url, &literal)?;
        let connecting = async {
            let addresses = self.addresses(namespace, &proxy.url).await?;
            dial(&proxy.url, addresses).await
        };
        let connected = connecting.await;
        let mut stream =
            connected.map_err(|error| proxy.failed(url, &format!("cannot be reached ({error})")))?;
        if url.scheme() == "https" {
            proxy.tunnel(&mut stream, url).await?;
        }
        Ok(stream)
    }

    fn check(&self, url: &Url, addresses: &[IpAddr]) -> Result<(), ProviderError> {
        for address in addresses {
            self.egress
                .check(*address)
                .map_err(|why| ProviderError::EgressRefused {
                    origin: origin(url),
                    address: *address,
                    why,
                })?;
        }
        let name = match url.host() {
            Some(Host::Domain(name)) => Some(name),
            _ => None,
        };
        if self.egress.lists(name, addresses) {
            Ok(())
        } else {
            Err(refused_name(url, NOT_LISTED))
        }
    }

    /// The URL parser has already normalized hosts that are addresses in any notation.
    async fn addresses(&self, namespace: &str, url: &Url) -> Result<Vec<SocketAddr>, ProviderError> {
        let port = url.port_or_known_default().unwrap_or(80);
        match url.host() {
            Some(Host::Ipv4(address)) => Ok(vec![(address, port).into()]),
            Some(Host::Ipv6(address)) => Ok(vec![(address, port).into()]),
            Some(Host::Domain(name)) => self
                .lookups
                .resolve(namespace, name, port)
                .await
                .map_err(|error| unresolved(url, &in_words(&error))),
            None => Err(unresolved(url, "the address has no host")),
        }
    }
}

async fn dial(url: &Url, addresses: Vec<SocketAddr>) -> Result<TcpStream, ProviderError> {
    let mut failure = unresolved(url, "it has no addresses");
    for address in addresses {
        match tokio::time::timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // One small request per connection: do not delay it.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => failure = failed(url, &error),
            Err(_) => {
                failure = ProviderError::Timeout {
                    origin: origin(url),
                    seconds: CONNECT.as_secs(),
                }
            }
        }
    }
    Err(failure)
}

fn refused_name(url: &Url, why: &'static str) -> ProviderError {
    ProviderError::HostRefused {
        origin: origin(url),
        why,
    }
}

fn unresolved(url: &Url, why: &str) -> ProviderError {
    ProviderError::NameNotResolved {
        host: url.host_str().unwrap_or_default().to_owned(),
        why: why.to_owned(),
    }
}

/// The message of the system resolver, without its constant prefix.
fn in_words(error: &io::Error) -> String {
    let text = error.to_string().to_lowercase();
    let text = text.strip_prefix("failed to lookup address information: ");
    text.map_or_else(|| error.to_string().to_lowercase(), str::to_owned)
}

fn failed(url: &Url, error: &io::Error) -> ProviderError {
    let origin = origin(url);
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ProviderError::ConnectionRefused { origin },
        kind => ProviderError::Connection {
            origin,
            what: kind.to_string(),
        },
    }
}
