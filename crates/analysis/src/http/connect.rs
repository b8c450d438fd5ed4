//! From a URL to a connection, past the guard.

use std::io;
use std::net::{IpAddr, SocketAddr};

use stateward_egress::NOT_LISTED;
use tokio::net::TcpStream;
use url::{Host, Url};

use super::{CONNECT, Http, Proxy};
use crate::AskError;
use crate::address::origin;

impl Http {
    /// Connects to an address of the URL's host. If only one of its addresses is refused, it is refused whole: names that are
    /// partly ours are made for mischief.
    pub(super) async fn connect(&self, namespace: &str, url: &Url) -> Result<TcpStream, AskError> {
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

    /// Connects to the proxy that the operator was started with, and has it connect to the host.
    async fn connect_through(
        &self,
        proxy: &Proxy,
        namespace: &str,
        url: &Url,
    ) -> Result<TcpStream, AskError> {
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

    fn check(&self, url: &Url, addresses: &[IpAddr]) -> Result<(), AskError> {
        for address in addresses {
            self.egress
                .check(*address)
                .map_err(|why| AskError::EgressRefused {
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

    /// A host that is an address by any spelling was read as one when the URL was.
    async fn addresses(&self, namespace: &str, url: &Url) -> Result<Vec<SocketAddr>, AskError> {
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

async fn dial(url: &Url, addresses: Vec<SocketAddr>) -> Result<TcpStream, AskError> {
    let mut failure = unresolved(url, "it has no addresses");
    for address in addresses {
        match tokio::time::timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Small requests, one each: nothing to wait for.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Ok(Err(error)) => failure = failed(url, &error),
            Err(_) => {
                failure = AskError::Timeout {
                    origin: origin(url),
                    seconds: CONNECT.as_secs(),
                }
            }
        }
    }
    Err(failure)
}

fn refused_name(url: &Url, why: &'static str) -> AskError {
    AskError::HostRefused {
        origin: origin(url),
        why,
    }
}

fn unresolved(url: &Url, why: &str) -> AskError {
    AskError::NameNotResolved {
        host: url.host_str().unwrap_or_default().to_owned(),
        why: why.to_owned(),
    }
}

/// What the resolver of the machine says, without what every message of it begins with.
fn in_words(error: &io::Error) -> String {
    let text = error.to_string().to_lowercase();
    let text = text.strip_prefix("failed to lookup address information: ");
    text.map_or_else(|| error.to_string().to_lowercase(), str::to_owned)
}

fn failed(url: &Url, error: &io::Error) -> AskError {
    let origin = origin(url);
    match error.kind() {
        io::ErrorKind::ConnectionRefused => AskError::ConnectionRefused { origin },
        kind => AskError::Connection {
            origin,
            what: kind.to_string(),
        },
    }
}
