//! Everything that an explanation is based on.

use futures::future::{join, join_all, join4};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::{Api, ResourceExt};
use stateward_api::analysis::AnalysisRun;
use stateward_client::{ObjectName, Objects};
use stateward_core::memory::Activity;

use crate::look::or_why;
use crate::rollout::Rollout;
use crate::session::Session;
use crate::stage::Stage;
use crate::views::pod_row::PodRow;

/// The objects that were read. Objects without read access are missing, and no conclusion is drawn from that.
pub(super) struct Facts {
    pub(super) rollout: Rollout,
    pub(super) set: Option<StatefulSet>,
    /// Why the StatefulSet cannot be read.
    pub(super) unread: Option<String>,
    /// By ordinal.
    pub(super) pods: Vec<Pod>,
    pub(super) runs: Vec<AnalysisRun>,
    /// Events of the rollout, oldest first.
    pub(super) events: Vec<Event>,
    /// Events of the StatefulSet.
    pub(super) set_events: Vec<Event>,
    /// Events of pods that are not Ready.
    pub(super) pod_events: Vec<Event>,
    /// Only during a rollback.
    pub(super) budgets: Vec<PodDisruptionBudget>,
    /// The claims of pods that are not scheduled yet.
    pub(super) claims: Vec<PersistentVolumeClaim>,
    /// The leases of operators.
    pub(super) leases: Vec<Lease>,
}

/// The default namespace and name of an operator's Lease.
const LEASE_NAMESPACE: &str = "stateward-system";
const LEASE: &str = "stateward";

/// The most pods to read events of: the first ones suffice.
const MOST_PODS: usize = 5;

impl Session<'_> {
    /// Reads everything around a rollout.
    pub(super) async fn facts(&self, rollout: Rollout) -> Facts {
        let workload = async {
            let set = self.set(&rollout).await;
            let (pods, events) = match &set {
                Ok(Some(set)) => join(self.pods(set), self.events_of(set.uid())).await,
                Ok(None) | Err(_) => (Ok(Vec::new()), Vec::new()),
            };
            let mut pods = pods.unwrap_or_default();
            pods.sort_by_key(|pod| PodRow::of(pod).map(|row| row.ordinal));
            let unready = pods.iter().filter(|pod| !is_ready(pod)).take(MOST_PODS);
            let told = join_all(unready.map(|pod| self.events_of(pod.uid()))).await;
            (set, pods, events, told.concat())
        };
        let (workload, runs, events, leases) = join4(
            workload,
            self.runs(&rollout),
            self.events_of(rollout.uid()),
            self.leases(),
        )
        .await;
        let (set, pods, set_events, pod_events) = workload;
        let (set, unread) = or_why(set);
        let returning = matches!(Stage::of(&rollout).activity, Activity::RollingBack(_));
        let homeless = pods.iter().any(|pod| !is_ready(pod) && node(pod).is_none());
        let budgets = async {
            if returning {
                self.all::<PodDisruptionBudget>().await
            } else {
                Vec::new()
            }
        };
        let claims = async {
            if homeless {
                self.all::<PersistentVolumeClaim>().await
            } else {
                Vec::new()
            }
        };
        let (budgets, claims) = join(budgets, claims).await;
        Facts {
            rollout,
            set,
            unread,
            pods,
            runs,
            events,
            set_events,
            pod_events,
            budgets,
            claims,
            leases,
        }
    }

    /// The leases of operators with the default name. Any user may create a Lease of that name in their own namespace, so the operator's
    /// namespace comes first.
    async fn leases(&self) -> Vec<Lease> {
        let own: Api<Lease> = Api::namespaced(self.client.clone(), LEASE_NAMESPACE);
        if let Ok(name) = ObjectName::new(LEASE)
            && let Ok(Some(lease)) = Objects::from(own).get(&name).await
        {
            return vec![lease];
        }
        let kind = ApiResource::erase::<Lease>(&());
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &kind);
        let of_operators = ListParams::default()
            .fields(&format!("metadata.name={LEASE}"))
            .labels("app.kubernetes.io/name=stateward");
        let listed = api.list(&of_operators).await;
        let leases = listed.map_or_else(|_| Vec::new(), |list| list.items);
        // An object that fails to deserialize must not hide the others.
        leases
            .into_iter()
            .filter_map(|lease| lease.try_parse().ok())
            .collect()
    }

    async fn all<K>(&self) -> Vec<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        let listed = api.list(&ListParams::default()).await;
        listed.map_or_else(|_| Vec::new(), |list| list.items)
    }
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    PodRow::of(pod).is_some_and(|row| row.is_ready())
}

pub(super) fn node(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}
