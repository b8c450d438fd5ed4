//! What a user who may write only the status of rollouts can reach: the path of a rollout between its own two versions.

use std::time::Duration;

use http::HeaderValue;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use stateward_api::phasedrollout::{self, PhasedRollout};
use stateward_api::rolloutplugin::{self, RolloutPlugin};

use crate::harness::{Cluster, Doing, Outcome, Set};
use crate::phasedrollout::one_pod_new;
use crate::scenarios;

scenarios![
    who_may_write_the_status_reaches_nothing_else,
    who_may_write_the_status_of_a_phased_rollout_reaches_nothing_else,
];

const USER: &str = "steers-rollouts";

/// A text that must appear only in the status.
const EVIL: &str = "evil";

/// The rights of the guides' table for users who steer rollouts.
async fn grant(cluster: &Cluster, kind: &ApiResource) -> Outcome<Client> {
    let status = format!("{}/status", kind.plural);
    let role = json!({"rules": [
        {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": ["get"]},
        {"apiGroups": [kind.group], "resources": [status], "verbs": ["patch"]},
    ]});
    cluster.create("roles", USER, role).await?;
    let binding = json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": USER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER}],
    });
    cluster.create("rolebindings", USER, binding).await?;
    let inner = cluster.client();
    let service = tower::service_fn(move |mut request: http::Request<kube::client::Body>| {
        let headers = request.headers_mut();
        headers.insert("Impersonate-User", HeaderValue::from_static(USER));
        let inner = inner.clone();
        async move { inner.send(request).await }
    });
    Ok(Client::new(service, cluster.namespace()))
}

/// Values that are valid for a field of this schema and differ from its defaults.
fn values(schema: &JSONSchemaProps) -> Vec<Value> {
    match schema.type_.as_deref() {
        Some("string") if schema.format.as_deref() == Some("date-time") => {
            vec![json!("2020-01-01T00:00:00Z"), json!("2099-01-01T00:00:00Z")]
        }
        Some("string") => match &schema.enum_ {
            Some(allowed) => allowed.iter().map(|value| value.0.clone()).collect(),
            None => vec![json!(EVIL), json!("../../evil"), json!("db-1"), json!("")],
        },
        Some("integer") => vec![json!(-1), json!(0), json!(3), json!(i32::MAX)],
        Some("boolean") => vec![json!(true), json!(false)],
        Some("array") => match &schema.items {
            Some(JSONSchemaPropsOrArray::Schema(item)) => {
                let items = values(item);
                vec![json!([]), json!(items)]
            }
            _ => vec![json!([])],
        },
        Some("object") => {
            let fields = schema.properties.iter().flatten();
            let each: Vec<_> = fields.map(|(name, field)| (name, values(field))).collect();
            let most = each.iter().map(|(_, values)| values.len()).max().unwrap_or(0);
            let number = |index: usize| -> Value {
                let fields = each.iter().filter(|(_, values)| !values.is_empty());
                let fields =
                    fields.map(|(name, values)| ((*name).clone(), values[index % values.len()].clone()));
                Value::Object(fields.collect())
            };
            (0..most).map(number).collect()
        }
        _ => Vec::new(),
    }
}

/// Every field of the status with its values.
fn statuses(definition: &CustomResourceDefinition) -> Vec<Value> {
    let schema = definition.spec.versions[0].schema.clone();
    let schema = schema
        .and_then(|schema| schema.open_api_v3_schema)
        .unwrap_or_default();
    let status = schema.properties.and_then(|mut fields| fields.remove("status"));
    let fields = status.and_then(|status| status.properties).into_iter().flatten();
    let all = fields.flat_map(|(name, field)| {
        let values = values(&field).into_iter().chain([Value::Null]);
        values.map(|value| json!({ &name: value })).collect::<Vec<_>>()
    });
    all.collect()
}

async fn who_may_write_the_status_reaches_nothing_else(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 40}, {"pause": {}}, {"setWeight": 80}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    let kind = ApiResource::erase::<RolloutPlugin>(&());
    write_every_status(cluster, &kind, &rolloutplugin::definition()).await?;
    rollout.delete().await?;
    cluster
        .eventually("the rollout goes", |view| match view.rollouts.get("db") {
            Some(rollout) => Err(format!("{:?}", rollout.metadata.finalizers)),
            None => Ok(()),
        })
        .await?;
    expect_nothing_else(cluster, &db, &kind).await
}

async fn who_may_write_the_status_of_a_phased_rollout_reaches_nothing_else(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    let kind = ApiResource::erase::<PhasedRollout>(&());
    write_every_status(cluster, &kind, &phasedrollout::definition()).await?;
    rollout.delete().await?;
    cluster
        .eventually("the rollout goes", |view| match view.phased.get("db") {
            Some(rollout) => Err(format!("{:?}", rollout.metadata.finalizers)),
            None => Ok(()),
        })
        .await?;
    expect_nothing_else(cluster, &db, &kind).await
}

/// Writes every field of the status of the object `db`, as a user who may do nothing else.
async fn write_every_status(
    cluster: &Cluster,
    kind: &ApiResource,
    definition: &CustomResourceDefinition,
) -> Outcome {
    let client = grant(cluster, kind).await?;
    let rollouts: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), kind);
    let params = PatchParams::default();
    if cluster.has_access_control() {
        let image = json!({"spec": {"template": {"metadata": {"annotations": {"a": EVIL}}}}});
        let sets: Api<StatefulSet> = Api::default_namespaced(client);
        let refused = [
            sets.patch("db", &params, &Patch::Merge(image)).await.err(),
            rollouts
                .patch("db", &params, &Patch::Merge(json!({"spec": {"paused": true}})))
                .await
                .err(),
        ];
        let is_forbidden = |error: &Option<kube::Error>| matches!(error, Some(kube::Error::Api(status)) if status.code == 403);
        cluster.expect("no other rights", refused.iter().all(is_forbidden))?;
    }
    let statuses = statuses(definition);
    cluster.expect("every field of the status", statuses.len() > 100)?;
    for status in statuses {
        cluster.note(&format!("write the status {status}"));
        let patch = Patch::Merge(json!({ "status": status }));
        match rollouts.patch_status("db", &params, &patch).await {
            Ok(_) => {}
            Err(kube::Error::Api(refusal)) if refusal.code == 422 => {}
            Err(error) => return Err(error).doing(format!("write the status {status}")),
        }
        // Give the operator time to act on it.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Checks that pods ran one of the two versions, and that only the usual objects of the rollout of `db` were written.
async fn expect_nothing_else(cluster: &Cluster, db: &Set<'_>, kind: &ApiResource) -> Outcome {
    let set = json!(db.get().await?);
    cluster.expect("the set has none of it", !set.to_string().contains(EVIL))?;
    let known = |image: &str| image == "v1" || image == "v2";
    let mut strange = db.births();
    strange.retain(|pod| !known(&pod.image));
    if !strange.is_empty() {
        return Err(cluster.unmet("pods of v1 and v2", format!("{strange:?}")));
    }
    let plural = kind.plural.as_str();
    for write in cluster.operator_writes()? {
        let (resource, subresource) = match write.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource)),
            None => (write.resource.as_str(), None),
        };
        let own = match resource {
            "statefulsets" => write.name == "db",
            "pods" => write.name.starts_with("db-"),
            "controllerrevisions" | "events" => true,
            resource => resource == plural && write.name == "db",
        };
        let shown = resource == "events" || resource == plural && subresource == Some("status");
        if !own || !shown && write.body.to_string().contains(EVIL) {
            return Err(cluster.unmet("nothing but the rollout's own way", format!("{write:?}")));
        }
    }
    Ok(())
}
