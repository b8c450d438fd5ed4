//! The status of a StatefulSet, and where it misleads.

use stateward_kubelet::{Behaviour, Match};

use crate::harness::{Cluster, Failure, Outcome};
use crate::scenarios;

scenarios![a_third_template_over_a_broken_second_one_survives_a_count_of_minus_one];

/// With every pod on the second revision and none on the first, the controller counts `currentReplicas` down to -1 when it replaces one
/// (k/k#75498). The API server rejects that status; the rollout continues anyway.
async fn a_third_template_over_a_broken_second_one_survives_a_count_of_minus_one(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.needs_max_unavailable_off().await?;
    let db = cluster.statefulset("db").replicas(2).parallel().start().await?;
    cluster.pods().program(
        Match::image("example.com/db:v2").ordinal(0),
        Behaviour::never_ready(),
    );
    db.set_image("v2").await?;
    db.expect_images(["v2", "v2"]).await?;
    db.eventually(
        "every pod on the second revision, one of them not Ready",
        |set, _| {
            let status = set.status.clone().unwrap_or_default();
            if status.updated_replicas == Some(2) && status.ready_replicas == Some(1) {
                Ok(())
            } else {
                Err(format!("{status:?}"))
            }
        },
    )
    .await?;

    db.set_image("v3").await?;
    db.expect_images(["v3", "v3"]).await?;
    db.expect_ready().await?;
    db.eventually("the third revision current", |set, _| {
        let status = set.status.clone().unwrap_or_default();
        if status.current_revision == status.update_revision && status.current_replicas == Some(2) {
            Ok(())
        } else {
            Err(format!("{status:?}"))
        }
    })
    .await?;

    let Some(writes) = cluster.writes()? else {
        return Err(Failure::NotHere(
            "it went well, but without an audit log the refused status cannot be seen".to_owned(),
        ));
    };
    let refused = writes.iter().any(|write| {
        write.resource == "statefulsets/status"
            && write.code == 422
            && write.body["status"]["currentReplicas"] == -1
    });
    if refused {
        Ok(())
    } else {
        Err(cluster.unmet("a status refused with 422", "none in the audit log"))
    }
}
