//! From a name to its addresses.

use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;

/// Resolves names.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// Every address of a host, with the port to connect to there.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// Resolves names as this machine does.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}
