//! The Lease and the namespaces of an operator.

use anyhow::{Context, Result};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use serde_json::json;
use stateward_client::{ObjectName, Objects};
use stateward_controller::overlap::{
    LEASE_NAMESPACE, OtherLeader, Scope, other_leader, other_leader_appears,
};

use crate::install::own_namespace;

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The Lease of the operator, and the namespaces that it manages.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) scope: Scope,
    /// Whether the operator runs in a pod of the cluster, for several tenants.
    pub(super) in_pod: bool,
}

impl Place {
    /// Creates the default namespace of the Lease if it is missing: an operator outside the cluster may run before `stateward install`.
    /// Without access to namespaces, it is assumed to exist.
    pub(super) async fn create_namespace(&self, client: &Client) -> Result<()> {
        if self.namespace != LEASE_NAMESPACE {
            return Ok(());
        }
        let namespaces = Objects::<Namespace>::of_cluster(client);
        match namespaces.get(&ObjectName::new(LEASE_NAMESPACE)?).await {
            Ok(None) => {}
            Ok(Some(_)) | Err(kube::Error::Api(_)) => return Ok(()),
            Err(error) => return Err(error).context("cannot look for the namespace of the lease"),
        }
        let mut namespace = own_namespace();
        // Like `kubectl create --save-config`, so that the manifests of `stateward install` can be applied later.
        namespace["metadata"]["annotations"] = json!({LAST_APPLIED: namespace.to_string()});
        let namespace: Namespace = serde_json::from_value(namespace)?;
        match namespaces.create(&namespace).await {
            Ok(_) => tracing::info!(namespace = LEASE_NAMESPACE, "created, for the lease"),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => {
                return Err(error).with_context(|| {
                    format!(
                        "namespace {LEASE_NAMESPACE} does not exist, and cannot be created for the lease; create it, or name another \
                         with --lease-namespace"
                    )
                });
            }
        }
        Ok(())
    }

    /// Another leader that manages the same namespaces.
    pub(super) async fn other_leader(
        &self,
        client: &Client,
        now: Timestamp,
    ) -> kube::Result<Option<OtherLeader>> {
        let own = (self.namespace.as_str(), self.name.as_str());
        other_leader(client, own, &self.scope, self.in_pod, now).await
    }

    /// Waits for another leader to appear. Only an operator outside a pod checks this: one that serves several tenants does not trust their
    /// Leases.
    pub(super) async fn other_leader_appears(&self, client: &Client) -> OtherLeader {
        if self.in_pod {
            return std::future::pending().await;
        }
        other_leader_appears(client, (&self.namespace, &self.name), &self.scope).await
    }
}
