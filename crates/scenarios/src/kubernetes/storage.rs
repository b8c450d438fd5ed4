//! Claims: what a pod leaves behind and finds again.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::harness::{Cluster, Doing, Outcome};
use crate::scenarios;

scenarios![
    a_pod_finds_its_claim_again_after_an_update,
    claims_outlive_a_scale_down_by_default,
    a_retention_policy_deletes_the_claims_of_a_scale_down,
];

async fn a_pod_finds_its_claim_again_after_an_update(cluster: &mut Cluster) -> Outcome {
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .claim("data")
        .start()
        .await?;
    let before = claims(cluster).await?;
    db.set_image("v2").await?;
    db.expect_images(["v2", "v2"]).await?;
    db.expect_ready().await?;
    let after = claims(cluster).await?;
    if before != after || before.len() != 2 {
        return Err(cluster.unmet(format!("the claims {before:?}"), format!("{after:?}")));
    }
    Ok(())
}

async fn claims_outlive_a_scale_down_by_default(cluster: &mut Cluster) -> Outcome {
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .claim("data")
        .start()
        .await?;
    let before = claims(cluster).await?;
    db.scale(1).await?;
    db.expect_images(["v1"]).await?;
    db.scale(2).await?;
    db.expect_ready().await?;
    let after = claims(cluster).await?;
    if before != after || before.len() != 2 {
        return Err(cluster.unmet(format!("the claims {before:?}"), format!("{after:?}")));
    }
    Ok(())
}

async fn a_retention_policy_deletes_the_claims_of_a_scale_down(cluster: &mut Cluster) -> Outcome {
    let retention =
        json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Retain"}});
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .claim("data")
        .spec(retention)
        .start()
        .await?;
    db.scale(1).await?;
    db.expect_images(["v1"]).await?;
    cluster
        .eventually("only the claim of db-0", |view| {
            let names: Vec<_> = view.claims.keys().map(String::as_str).collect();
            if names == ["data-db-0"] {
                Ok(())
            } else {
                Err(format!("{names:?}"))
            }
        })
        .await
}

/// The claims that the API server has now: names with UIDs.
async fn claims(cluster: &Cluster) -> Outcome<Vec<(String, Option<String>)>> {
    let api = Api::<PersistentVolumeClaim>::namespaced(cluster.client(), cluster.namespace());
    let claims = api.list(&Default::default()).await.doing("list claims")?;
    Ok(claims
        .into_iter()
        .map(|claim| (claim.name_any(), claim.metadata.uid))
        .collect())
}
