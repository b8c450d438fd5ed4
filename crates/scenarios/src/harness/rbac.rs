//! The operator of the scenarios has exactly the rights of the shipped role, and uses all of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stateward_clock::Clock;
use stateward_controller::endpoints;
use stateward_controller::lease::{Election, Timing};
use stateward_controller::overlap::{Scope, other_leader};
use stateward_controller::rbac::{endpoint_rules, lease_rules, rules};
use tokio::time::{Instant, sleep, timeout};

use super::audit::{Access, accesses};

/// The operator's account and the namespace of its lease.
const NAMESPACE: &str = "stateward-system";
const NAME: &str = "stateward";

/// How long a grant or a line of the audit log may take to appear.
const PATIENCE: Duration = Duration::from_secs(20);
const GLANCE: Duration = Duration::from_millis(100);

/// Grants the operator its role, as `admin`, and waits until the grant takes effect.
pub(crate) async fn grant(admin: &Client, operator: &Client) -> Result<()> {
    let subjects = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}]);
    let to = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": NAME});
    apply::<Namespace>(Api::all(admin.clone()), NAMESPACE, json!({})).await?;
    let role = json!({"rules": lease_rules(NAME)});
    apply::<Role>(Api::namespaced(admin.clone(), NAMESPACE), NAME, role).await?;
    let binding = json!({"roleRef": to("Role"), "subjects": subjects});
    apply::<RoleBinding>(Api::namespaced(admin.clone(), NAMESPACE), NAME, binding).await?;
    let role = json!({"rules": endpoint_rules()});
    apply::<Role>(Api::namespaced(admin.clone(), "default"), NAME, role).await?;
    let binding = json!({"roleRef": to("Role"), "subjects": subjects});
    apply::<RoleBinding>(Api::namespaced(admin.clone(), "default"), NAME, binding).await?;
    apply::<ClusterRole>(Api::all(admin.clone()), NAME, json!({"rules": rules()})).await?;
    let binding = json!({"roleRef": to("ClusterRole"), "subjects": subjects});
    apply::<ClusterRoleBinding>(Api::all(admin.clone()), NAME, binding).await?;
    // The authorizer reads grants from a watch. Review access instead of trying: a forbidden attempt would appear in the audit log.
    let reviews: Api<SelfSubjectAccessReview> = Api::all(operator.clone());
    let question: SelfSubjectAccessReview = serde_json::from_value(json!({"spec": {"resourceAttributes": {
        "group": "apps", "resource": "statefulsets", "verb": "patch",
    }}}))?;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let answer = reviews.create(&PostParams::default(), &question).await?;
        if answer.status.is_some_and(|status| status.allowed) {
            return Ok(());
        }
        sleep(GLANCE).await;
    }
    bail!("the operator's role does not take effect")
}

async fn apply<K>(api: Api<K>, name: &str, mut object: Value) -> Result<()>
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Serialize,
{
    object["apiVersion"] = K::api_version(&()).into();
    object["kind"] = K::kind(&()).into();
    object["metadata"] = json!({"name": name});
    let params = PatchParams::apply("stateward-scenarios").force();
    api.patch(name, &params, &Patch::Apply(object))
        .await
        .with_context(|| format!("cannot apply {} {name}", K::kind(&())))?;
    Ok(())
}

/// Runs a leader election between two operators; every scenario has only one operator.
pub(crate) async fn elect(operator: &Client) -> Result<()> {
    let timing = Timing::of(Duration::from_secs(3));
    let election = |who: &str| Election::new(operator.clone(), NAMESPACE, NAME, who, timing, Clock::wall());
    let (mut first, mut second) = (election("first"), election("second"));
    let fence = first.win().await;
    // Long enough for one to renew the lease and for the other to watch it.
    let both = async { tokio::join!(first.hold(&fence), second.win()) };
    if timeout(timing.lease, both).await.is_ok() {
        bail!("a leader that lives was deposed");
    }
    first.release().await;
    timeout(PATIENCE, second.win())
        .await
        .context("a lease that was released is not to be had")?;
    second.release().await;
    let scope = Scope::default();
    other_leader(operator, (NAMESPACE, NAME), &scope, true, Clock::wall().now())
        .await
        .context("cannot look for other leaders")?;
    Ok(())
}

/// Looks up the API servers' addresses, as the binary does before it queries metrics.
pub(crate) async fn find_api_servers(operator: &Client) -> Result<()> {
    let found = endpoints::api_servers(operator).await?;
    if found.is_empty() {
        bail!("the EndpointSlice of the API server has no addresses");
    }
    Ok(())
}

/// Expects that the audit log shows no forbidden request of the operator and at least one use of every verb in its role.
pub(crate) async fn expect_used_to_the_full(log: &Path) -> Result<()> {
    let user = format!("system:serviceaccount:{NAMESPACE}:{NAME}");
    let granted = granted_accesses([rules(), lease_rules(NAME), endpoint_rules()].concat());
    let began = Instant::now();
    loop {
        let made = accesses(log, &user).with_context(|| format!("cannot read {}", log.display()))?;
        let refused: Vec<_> = made.iter().filter(|access| !access.allowed).map(told).collect();
        if !refused.is_empty() {
            bail!(
                "refused to the operator: {}; grant them in crates/controller/src/rbac.rs",
                refused.join(", ")
            );
        }
        let unused: Vec<_> = granted.difference(&made).map(told).collect();
        if unused.is_empty() {
            return Ok(());
        }
        // The API server logs a watch when it ends.
        if began.elapsed() > PATIENCE {
            bail!(
                "granted to the operator and used by no scenario: {}; take them out of crates/controller/src/rbac.rs",
                unused.join(", ")
            );
        }
        sleep(GLANCE).await;
    }
}

fn told(access: &Access) -> String {
    let Access {
        group,
        resource,
        verb,
        ..
    } = access;
    format!("{verb} {resource}.{group}")
        .trim_end_matches('.')
        .to_owned()
}

fn granted_accesses(rules: Vec<PolicyRule>) -> BTreeSet<Access> {
    let mut all = BTreeSet::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                all.extend(rule.verbs.iter().map(|verb| Access {
                    group: group.clone(),
                    resource: resource.clone(),
                    verb: verb.clone(),
                    allowed: true,
                }));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(verb: &str, resource: &str, decision: &str) -> String {
        let event = json!({
            "user": {"username": "system:serviceaccount:stateward-system:stateward"}, "verb": verb,
            "objectRef": {"apiGroup": "apps", "resource": resource},
            "annotations": {"authorization.k8s.io/decision": decision},
        });
        event.to_string() + "\n"
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_and_a_right_that_nobody_used_are_both_named() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("audit.log");
        std::fs::write(&log, line("list", "statefulsets", "allow")).unwrap();
        let unused = expect_used_to_the_full(&log).await.unwrap_err().to_string();
        assert!(unused.contains("create pods/eviction,"), "{unused}");
        assert!(!unused.contains("list statefulsets.apps"), "{unused}");

        std::fs::write(&log, line("update", "deployments", "forbid")).unwrap();
        let refused = expect_used_to_the_full(&log).await.unwrap_err().to_string();
        assert!(
            refused.contains("refused to the operator: update deployments.apps;"),
            "{refused}"
        );
    }
}
