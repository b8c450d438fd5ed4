//! Claims: what a pod leaves behind and finds again.

use serde_json::json;

use crate::harness::{Cluster, Outcome};
use crate::scenarios;

scenarios![
    a_pod_finds_its_claim_again_after_an_update,
    claims_outlive_a_scale_down_by_default,
    a_retention_policy_deletes_the_claims_of_a_scale_down,
    a_volume_goes_with_its_claim,
];

async fn a_pod_finds_its_claim_again_after_an_update(cluster: &mut Cluster) -> Outcome {
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .claim("data")
        .start()
        .await?;
    let before = cluster.claims().await?;
    db.set_image("v2").await?;
    db.expect_images(["v2", "v2"]).await?;
    db.expect_ready().await?;
    let after = cluster.claims().await?;
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
    let before = cluster.claims().await?;
    db.scale(1).await?;
    db.expect_images(["v1"]).await?;
    db.scale(2).await?;
    db.expect_ready().await?;
    let after = cluster.claims().await?;
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

async fn a_volume_goes_with_its_claim(cluster: &mut Cluster) -> Outcome {
    let retention =
        json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Retain"}});
    let db = cluster
        .statefulset("db")
        .replicas(1)
        .claim("data")
        .spec(retention)
        .start()
        .await?;
    let volumes = cluster.look(|view| {
        let specs = view.claims.values().filter_map(|claim| claim.spec.as_ref());
        specs
            .filter_map(|spec| spec.volume_name.clone())
            .collect::<Vec<_>>()
    });
    let [volume] = volumes.as_slice() else {
        return Err(cluster.unmet("one bound claim", format!("{volumes:?}")));
    };
    db.scale(0).await?;
    cluster.expect_no_volume(volume).await
}
