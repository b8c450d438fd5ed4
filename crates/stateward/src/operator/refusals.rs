//! Addresses that metrics are never queried from: those of the API server and of the operator's node.
//!
//! The author of a template must not reach them through the operator.

use std::net::IpAddr;
use std::time::Duration;

use kube::Client;
use stateward_analysis::{Cidr, Refusals};
use stateward_controller::endpoints;
use tokio::time::{sleep, timeout};

const API_SERVER: &str = "an address of the API server";
const NODE: &str = "an address of the operator's node";

/// How often to refresh the addresses of the API servers.
const EVERY: Duration = Duration::from_secs(300);
/// The timeout of a refresh.
const ONE_LOOK: Duration = Duration::from_secs(10);

/// The refused addresses, and how to refresh them.
#[derive(Clone)]
pub(super) struct Watch {
    client: Client,
    /// The address of the client configuration and that of the API server's Service: names or addresses.
    hosts: Vec<String>,
    pub(super) refusals: Refusals,
}

impl Watch {
    /// Refuses the node's addresses at once, and those `hosts` that are addresses.
    pub(super) fn new(client: Client, hosts: Vec<String>, node: Vec<Cidr>) -> Self {
        let refusals = Refusals::default();
        refusals.replace(NODE, node);
        let watch = Self {
            client,
            hosts,
            refusals,
        };
        watch.refusals.replace(API_SERVER, watch.literal());
        watch
    }

    fn literal(&self) -> Vec<Cidr> {
        self.hosts.iter().filter_map(|host| host.parse().ok()).collect()
    }

    /// Refreshes once. Access to the EndpointSlice may be missing and a name may fail to resolve; addresses known before then stay refused.
    pub(super) async fn look(&self) {
        let mut found = self.literal();
        let mut complete = true;
        for host in self.hosts.iter().filter(|host| host.parse::<Cidr>().is_err()) {
            match timeout(ONE_LOOK, tokio::net::lookup_host((host.as_str(), 443))).await {
                Ok(Ok(addresses)) => found.extend(addresses.map(|address| range(address.ip()))),
                Ok(Err(_)) | Err(_) => complete = false,
            }
        }
        match timeout(ONE_LOOK, endpoints::api_servers(&self.client)).await {
            Ok(Ok(addresses)) => found.extend(addresses.into_iter().map(range)),
            Ok(Err(error)) => {
                tracing::debug!(%error, "cannot read the EndpointSlice of the API server");
                complete = false;
            }
            Err(_) => complete = false,
        }
        if complete {
            self.refusals.replace(API_SERVER, found);
        } else {
            self.refusals.add(API_SERVER, found);
        }
    }

    /// Refreshes forever.
    pub(super) async fn keep_looking(&self) {
        loop {
            sleep(EVERY).await;
            self.look().await;
        }
    }
}

fn range(address: IpAddr) -> Cidr {
    address.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::client::Body;
    use serde_json::{Value, json};
    use std::sync::{Arc, Mutex};

    /// A client of an API server with this response.
    fn answering(answer: &Arc<Mutex<(u16, Value)>>) -> Client {
        let answer = answer.clone();
        let service = tower::service_fn(move |_: http::Request<Body>| {
            let (code, body) = answer.lock().unwrap().clone();
            let answer = http::Response::builder().status(code);
            let answer = answer.body(Body::from(body.to_string().into_bytes()));
            async { answer }
        });
        Client::new(service, "default")
    }

    fn slice(addresses: &[&str]) -> (u16, Value) {
        let slice = json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "kubernetes"},
            "addressType": "IPv4", "endpoints": [{"addresses": addresses}],
        });
        (200, slice)
    }

    #[tokio::test]
    async fn the_api_servers_and_the_node_are_refused_and_what_cannot_be_learned_forgets_none() {
        let answer = Arc::new(Mutex::new(slice(&["10.0.0.1", "10.0.0.2"])));
        let node = vec!["10.1.0.1".parse().unwrap()];
        let watch = Watch::new(answering(&answer), vec!["10.96.0.1".into()], node);
        let found = |address: &str| watch.refusals.find(address.parse().unwrap());
        assert_eq!(
            (found("10.96.0.1"), found("10.1.0.1"), found("10.0.0.1")),
            (Some(API_SERVER), Some(NODE), None)
        );
        watch.look().await;
        assert_eq!(
            (found("10.0.0.1"), found("10.0.0.2")),
            (Some(API_SERVER), Some(API_SERVER))
        );
        let forbidden = json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden"});
        *answer.lock().unwrap() = (403, forbidden);
        watch.look().await;
        assert_eq!(found("10.0.0.1"), Some(API_SERVER), "a refusal made it forget");
        *answer.lock().unwrap() = slice(&["10.0.0.3"]);
        watch.look().await;
        assert_eq!(
            (
                found("10.0.0.1"),
                found("10.0.0.3"),
                found("10.96.0.1"),
                found("10.1.0.1")
            ),
            (None, Some(API_SERVER), Some(API_SERVER), Some(NODE))
        );
    }
}
