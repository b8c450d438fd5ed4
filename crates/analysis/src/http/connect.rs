//! From a URL to a connection, past the guard.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpStream;
use url::{Host, Url};

use super::{CONNECT, Resolve};
use crate::address::origin;
use crate::{AskError, Egress};

/// Connects to an address of the URL's host. If only one of its addresses is refused, it is refused whole: names that are
/// partly ours are made for mischief.
pub(super) async fn connect(
    url: &Url,
    egress: &Egress,
    resolver: &dyn Resolve,
) -> Result<TcpStream, AskError> {
    let addresses = addresses(url, resolver).await?;
    for address in &addresses {
        egress
            .check(address.ip())
            .map_err(|why| AskError::EgressRefused {
                origin: origin(url),
                address: address.ip(),
                why,
            })?;
    }
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

/// A host that is an address by any spelling was read as one when the URL was.
async fn addresses(url: &Url, resolver: &dyn Resolve) -> Result<Vec<SocketAddr>, AskError> {
    let port = url.port_or_known_default().unwrap_or(80);
    match url.host() {
        Some(Host::Ipv4(address)) => Ok(vec![(address, port).into()]),
        Some(Host::Ipv6(address)) => Ok(vec![(address, port).into()]),
        Some(Host::Domain(name)) => resolver
            .resolve(name, port)
            .await
            .map_err(|error| unresolved(url, &in_words(&error))),
        None => Err(unresolved(url, "the address has no host")),
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
