//! The objects that run the operator in a cluster.

use serde_json::{Value, json};
use stateward_controller::overlap::LEASE_NAMESPACE;
use stateward_controller::rbac;

/// The default image.
pub(super) const IMAGE: &str = concat!("ghcr.io/stateward/stateward:", env!("CARGO_PKG_VERSION"));

/// The name of the service account, the roles, the deployment and the Lease.
pub(crate) const NAME: &str = "stateward";

/// The name of the role for reading the API server's addresses. It is in a shared namespace, so it must not collide.
const ENDPOINTS: &str = "stateward-api-server-addresses";

/// All served definitions, or only those that Argo Rollouts does not install.
pub(super) fn definitions(beside_argo_rollouts: bool) -> Vec<Value> {
    let shared = stateward_api::analysis::definitions();
    let shared: Vec<_> = shared
        .into_iter()
        .map(|definition| definition.metadata.name)
        .collect();
    stateward_api::made_definitions()
        .into_iter()
        .filter(|definition| !beside_argo_rollouts || !shared.contains(&definition.metadata.name))
        .map(|definition| json!(definition))
        .collect()
}

/// The operator's own namespace, and that of its Lease wherever it runs. Other namespaces are shared: they are neither labelled nor part of
/// the manifests, so that deleting the manifests does not delete them.
pub(crate) const OWN_NAMESPACE: &str = LEASE_NAMESPACE;

pub(crate) fn own_namespace() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": OWN_NAMESPACE, "labels": {
            "app.kubernetes.io/name": NAME,
            "pod-security.kubernetes.io/enforce": "restricted",
        }},
    })
}

/// The permissions of the operator, and its service account or this user, who runs it outside the cluster.
pub(super) fn identity(namespace: &str, user: Option<&str>) -> Vec<Value> {
    let metadata = json!({"name": NAME, "namespace": namespace, "labels": labels()});
    // The namespace where API servers publish their addresses.
    let endpoints = json!({"name": ENDPOINTS, "namespace": "default", "labels": labels()});
    let cluster_wide = json!({"name": NAME, "labels": labels()});
    let (api, group) = ("rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io");
    let lease = json!({"name": NAME, "namespace": LEASE_NAMESPACE, "labels": labels()});
    let subjects = match user {
        None => json!([{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}]),
        Some(user) => json!([{"kind": "User", "apiGroup": group, "name": user}]),
    };
    // A binding of the same name would revoke the permissions of its current subject.
    let binding = |metadata: &Value| {
        let mut metadata = metadata.clone();
        if let (Some(user), Some(name)) = (user, metadata["name"].as_str()) {
            let user = user.replace(['/', '%'], "-");
            metadata["name"] = format!("{name}-{user}").into();
        }
        metadata
    };
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata});
    let objects = [
        json!({"apiVersion": api, "kind": "ClusterRole", "metadata": cluster_wide, "rules": rbac::rules()}),
        json!({
            "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": binding(&cluster_wide),
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": NAME}, "subjects": subjects,
        }),
        json!({"apiVersion": api, "kind": "Role", "metadata": lease, "rules": rbac::lease_rules(NAME)}),
        json!({
            "apiVersion": api, "kind": "RoleBinding", "metadata": binding(&lease),
            "roleRef": {"apiGroup": group, "kind": "Role", "name": NAME}, "subjects": subjects,
        }),
        json!({"apiVersion": api, "kind": "Role", "metadata": endpoints, "rules": rbac::endpoint_rules()}),
        json!({
            "apiVersion": api, "kind": "RoleBinding", "metadata": binding(&endpoints),
            "roleRef": {"apiGroup": group, "kind": "Role", "name": ENDPOINTS}, "subjects": subjects,
        }),
    ];
    let account = user.is_none().then_some(account);
    [own_namespace()]
        .into_iter()
        .chain(account)
        .chain(objects)
        .collect()
}

/// Two replicas, one of which leads.
pub(super) fn deployment(namespace: &str, image: &str) -> Value {
    let probe = |path: &str| json!({"httpGet": {"path": path, "port": "http"}});
    let container = json!({
        "name": "operator",
        "image": image,
        "args": [
            "operator",
            "--listen=0.0.0.0:8080",
            "--log-format=json",
        ],
        "env": [
            // A restarted container reacquires the Lease of its pod.
            {"name": "STATEWARD_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            // Metrics are not queried from the operator's node.
            {"name": "STATEWARD_NODE_ADDRESSES", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIPs"}}},
        ],
        "ports": [{"name": "http", "containerPort": 8080}],
        "livenessProbe": probe("/healthz"),
        "readinessProbe": probe("/readyz"),
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    });
    let spread = json!({
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels()},
    });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels()},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels()},
            "template": {
                "metadata": {"labels": labels(), "annotations": {
                    "prometheus.io/scrape": "true", "prometheus.io/port": "8080",
                }},
                "spec": {
                    "serviceAccountName": NAME,
                    // Longer than the last request and the release of the Lease take.
                    "terminationGracePeriodSeconds": 15,
                    "topologySpreadConstraints": [spread],
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": 65532, "runAsGroup": 65532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container],
                },
            },
        },
    })
}

/// Ingress to the operator's port, and egress to DNS and to anything but link-local addresses, where clouds serve metadata. The operator
/// must reach the API server and metric providers, whose addresses are not known here: narrow the policy where they are.
pub(super) fn network_policy(namespace: &str) -> Value {
    let dns = json!([{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]);
    let block = |cidr: &str, except: &[&str]| json!({"ipBlock": {"cidr": cidr, "except": except}});
    let elsewhere = [
        block("0.0.0.0/0", &["169.254.0.0/16"]),
        block("::/0", &["fe80::/10", "fd00:ec2::/32"]),
    ];
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels()},
        "spec": {
            "podSelector": {"matchLabels": labels()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"protocol": "TCP", "port": 8080}]}],
            "egress": [{"ports": dns}, {"to": elsewhere, "ports": [{"protocol": "TCP"}]}],
        },
    })
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "operator"})
}
