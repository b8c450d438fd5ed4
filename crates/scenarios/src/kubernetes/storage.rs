//! PersistentVolumeClaims: a recreated pod finds the claim of its predecessor.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use stateward_kubelet::ClaimBehaviour;

use crate::harness::{Cluster, Doing, Outcome, SetBuilder};
use crate::scenarios;

scenarios![
    a_pod_finds_its_claim_again_after_an_update,
    claims_outlive_a_scale_down_by_default,
    a_retention_policy_deletes_the_claims_of_a_scale_down,
    a_volume_goes_with_its_claim,
    a_kubelet_that_dies_leaves_no_claim_waiting_and_no_volume_behind,
    a_claim_gets_the_volume_that_was_made_for_it_by_hand,
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
    let db = with_claims_that_go(cluster).replicas(2).start().await?;
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
    let db = with_claims_that_go(cluster).replicas(1).start().await?;
    let volumes = volumes(cluster);
    let [volume] = volumes.as_slice() else {
        return Err(cluster.unmet("one bound claim", format!("{volumes:?}")));
    };
    db.scale(0).await?;
    cluster.expect_no_volume(volume).await
}

/// Both if it dies before it has created the volumes, and before it has seen the deletion of their claims.
async fn a_kubelet_that_dies_leaves_no_claim_waiting_and_no_volume_behind(cluster: &mut Cluster) -> Outcome {
    with_claims_that_go(cluster).replicas(2).create().await?;
    cluster.restart_kubelet();
    cluster.existing("db").expect_ready().await?;
    let volumes = volumes(cluster);
    cluster.expect("two claims are bound", volumes.len() == 2)?;
    cluster.existing("db").scale(0).await?;
    cluster.restart_kubelet();
    for volume in volumes {
        cluster.expect_no_volume(&volume).await?;
    }
    Ok(())
}

fn with_claims_that_go(cluster: &Cluster) -> SetBuilder<'_> {
    let retention =
        json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete", "whenDeleted": "Retain"}});
    cluster.statefulset("db").claim("data").spec(retention)
}

/// The volumes that claims are bound to.
fn volumes(cluster: &Cluster) -> Vec<String> {
    cluster.look(|view| {
        let specs = view.claims.values().filter_map(|claim| claim.spec.as_ref());
        specs.filter_map(|spec| spec.volume_name.clone()).collect()
    })
}

/// Also the second time, when the first claim of that name could not use it. Once that claim is deleted, the volume is Released.
async fn a_claim_gets_the_volume_that_was_made_for_it_by_hand(cluster: &mut Cluster) -> Outcome {
    cluster.pods().claims(ClaimBehaviour::NeverProvision);
    let volume = format!("{}-disk", cluster.namespace());
    let made = json!({
        "metadata": {"name": volume},
        "spec": {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/disk"},
            "claimRef": {"namespace": cluster.namespace(), "name": "data"},
        },
    });
    let made = serde_json::from_value(made)
        .map_err(kube::Error::SerdeError)
        .doing("read a volume")?;
    let volumes = Api::<PersistentVolume>::all(cluster.client());
    let created = volumes.create(&PostParams::default(), &made).await;
    created.doing("create a volume")?;
    // It is cluster-scoped, so nothing deletes it after the scenario.
    let outcome = hand_over(cluster, &volume).await;
    let deleted = volumes.delete(&volume, &DeleteParams::default()).await;
    outcome?;
    deleted.doing("delete the volume")?;
    cluster.expect_no_volume(&volume).await
}

async fn hand_over(cluster: &Cluster, volume: &str) -> Outcome {
    let claims = Api::<PersistentVolumeClaim>::namespaced(cluster.client(), cluster.namespace());
    for (wish, phase) in [("5Gi", "Available"), ("1Gi", "Bound")] {
        let claim = json!({
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": wish}}},
        });
        let claim = serde_json::from_value(claim)
            .map_err(kube::Error::SerdeError)
            .doing("read a claim")?;
        let created = claims.create(&PostParams::default(), &claim).await;
        created.doing("create a claim")?;
        expect_phase(cluster, volume, phase).await?;
        let expected = (phase == "Bound").then_some(volume);
        cluster
            .eventually(format!("a claim of {wish} has {expected:?}"), |view| {
                let claim = view.claims.get("data").ok_or("there is none")?;
                match claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref()) {
                    seen if seen == expected => Ok(()),
                    seen => Err(format!("it has {seen:?}")),
                }
            })
            .await?;
        let deleted = claims.delete("data", &DeleteParams::default()).await;
        deleted.doing("delete the claim")?;
        cluster
            .eventually("no claim", |view| match view.claims.is_empty() {
                true => Ok(()),
                false => Err("there is one".to_owned()),
            })
            .await?;
    }
    expect_phase(cluster, volume, "Released").await
}

async fn expect_phase(cluster: &Cluster, volume: &str, phase: &str) -> Outcome {
    let expected = format!("volume {volume} is {phase}");
    let phase_of = |volume: &PersistentVolume| volume.status.as_ref()?.phase.clone();
    cluster
        .expect_volume(volume, &expected, |volume| {
            volume.and_then(phase_of).as_deref() == Some(phase)
        })
        .await
}
