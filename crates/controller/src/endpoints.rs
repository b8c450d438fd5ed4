//! The addresses of the API server.

use std::net::IpAddr;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client};

/// The EndpointSlice in which every API server of a cluster registers its address.
pub(crate) const NAMESPACE: &str = "default";
pub(crate) const NAME: &str = "kubernetes";

/// The addresses of the API servers themselves, behind any load balancer. None if there is no such slice.
#[expect(clippy::disallowed_methods, reason = "the name is a constant")]
pub async fn api_servers(client: &Client) -> kube::Result<Vec<IpAddr>> {
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
    let slice = slices.get_opt(NAME).await?;
    let endpoints = slice.and_then(|slice| slice.endpoints).unwrap_or_default();
    let addresses = endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
    Ok(addresses.filter_map(|address| address.parse().ok()).collect())
}
