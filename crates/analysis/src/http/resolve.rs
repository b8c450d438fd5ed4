//! From a name to its addresses.
//!
//! Names are resolved by `getaddrinfo`, which honours `/etc/hosts`, `resolv.conf` with its search domains, and whatever else the
//! machine has. It blocks a thread and cannot be called off: a lookup whose question was given up long ago still holds its thread.
//! So the permit for a lookup is given back when the lookup has ended, not when the question has, and a namespace that asks for
//! names that hang uses up its own permits only. An async resolver was weighed: it would bring a second reading of `resolv.conf`
//! and `/etc/hosts` that could differ from the one kubectl and the rest of the operator use, for the same guarantee.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;

use crate::limit::NamespaceLimit;

/// How many lookups of one namespace, and of all, may be under way. Far below the 512 threads of tokio's blocking pool, which
/// the client for the API server shares.
const PER_NAMESPACE: usize = 8;
const TOTAL: usize = 64;

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

    /// Resolves a name for a namespace. The lookup is a task of its own: it keeps its permit when nobody waits for it any more.
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
