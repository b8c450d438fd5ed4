//! Resolves names to addresses.
//!
//! Names are resolved by `getaddrinfo`, which honours `/etc/hosts`, `resolv.conf` with its search domains, and the machine's other sources.
//! It blocks a thread and cannot be cancelled: a lookup whose query has timed out still occupies its thread. Therefore a permit is
//! released when the lookup ends, not when the query does, and a namespace whose lookups hang only uses up its own permits. An async
//! resolver would give the same guarantee, but its reading of `resolv.conf` and `/etc/hosts` could differ from the one of kubectl and of
//! the rest of the operator.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;

use crate::limit::NamespaceLimit;

/// The maximum number of concurrent lookups of one namespace, and in total. Far below the 512 threads of tokio's blocking pool, which the
/// API client shares.
const PER_NAMESPACE: usize = 8;
const TOTAL: usize = 64;

/// Resolves names.
#[async_trait]
pub trait Resolve: Send + Sync {
    /// All addresses of a host, with the port.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// The system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolve for SystemResolver {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// Lookups, with a limit per namespace.
pub(super) struct Lookups {
    resolver: Arc<dyn Resolve>,
    limit: NamespaceLimit,
}

impl Lookups {
    pub(super) fn new(resolver: impl Resolve + 'static) -> Self {
        Self {
            resolver: Arc::new(resolver),
            limit: NamespaceLimit::new(PER_NAMESPACE, TOTAL),
        }
    }

    /// Resolves a name for a namespace. The lookup is a task that keeps its permit even if its query was cancelled.
    pub(super) async fn resolve(
        &self,
        namespace: &str,
        host: &str,
        port: u16,
    ) -> io::Result<Vec<SocketAddr>> {
        let permit = self.limit.acquire(namespace).await;
        let (resolver, host) = (self.resolver.clone(), host.to_owned());
        let lookup = tokio::spawn(async move {
            let found = resolver.resolve(&host, port).await;
            drop(permit);
            found
        });
        lookup.await.map_err(io::Error::other)?
    }
}
