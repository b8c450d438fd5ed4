//! ControllerRevisions: their names, their numbers, and the loss of one.

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use stateward_core::revision::{self, RevisionName};

use crate::harness::{Cluster, Doing, Outcome};
use crate::scenarios;

scenarios![
    revision_names_are_what_we_compute,
    a_taken_name_raises_the_collision_count,
    a_template_put_back_reuses_its_revision,
    a_scale_makes_no_revision,
    deleting_the_current_revision_promotes_the_canary,
    old_revisions_are_kept_up_to_the_limit,
];

/// Each of these templates could be serialised in more than one way.
async fn revision_names_are_what_we_compute(cluster: &mut Cluster) -> Outcome {
    let templates = [
        (
            "html",
            json!({"metadata": {"annotations": {"note": "<a href=\"x\">&amp;</a>"}}}),
        ),
        (
            "separators",
            json!({"metadata": {"annotations": {"note": "line\u{2028}paragraph\u{2029}tab\there"}}}),
        ),
        (
            "control",
            json!({"metadata": {"annotations": {"note": "bell\u{7} back\u{8} feed\u{c} \u{7f} größe 😀"}}}),
        ),
        (
            "numbers",
            json!({"spec": {"securityContext": {"runAsUser": 2_147_483_647, "fsGroup": 0}, "terminationGracePeriodSeconds": 0}}),
        ),
        (
            "resources",
            json!({"spec": {"containers": [{"name": "main", "image": "example.com/db", "resources": {"requests": {"cpu": "1500m", "memory": "0.5Gi"}}, "ports": [{"containerPort": 5432}], "env": [{"name": "EMPTY", "value": ""}, {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}]}]}}),
        ),
        (
            "probes",
            json!({"spec": {"containers": [{"name": "main", "image": "example.com/db:latest", "readinessProbe": {"tcpSocket": {"port": "sql"}}, "livenessProbe": {"httpGet": {"path": "/live?a=1&b=2", "port": 80}}, "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}]}}),
        ),
        (
            "volumes",
            json!({"spec": {"volumes": [{"name": "config", "configMap": {"name": "c"}}, {"name": "secret", "secret": {"secretName": "s"}}, {"name": "tmp", "emptyDir": {}}, {"name": "down", "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}}]}}),
        ),
        (
            "scheduling",
            json!({"spec": {"tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}], "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}], "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": {"topologyKey": "host", "labelSelector": {}}}]}}}}),
        ),
    ];
    for (name, template) in templates {
        let set = cluster
            .statefulset(name)
            .replicas(1)
            .spec(json!({"template": template}))
            .create()
            .await?;
        let status = set.expect_observed().await?.status.unwrap_or_default();
        let expected = RevisionName::of(
            name,
            &template_of(&set.get().await?),
            status.collision_count.unwrap_or(0),
        );
        if status.update_revision.as_deref() != Some(expected.as_str()) {
            let data = stored_data(cluster, status.update_revision.as_deref().unwrap_or_default()).await?;
            return Err(cluster.unmet(
                format!(
                    "revision {expected} of {}",
                    revision::data(&template_of(&set.get().await?))
                ),
                format!("{:?} of {data}", status.update_revision),
            ));
        }
    }
    Ok(())
}

async fn a_taken_name_raises_the_collision_count(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(1).start().await?;
    let mut next = template_of(&db.get().await?);
    next["spec"]["containers"][0]["image"] = "example.com/db:v2".into();
    let (taken, free) = (RevisionName::of("db", &next, 0), RevisionName::of("db", &next, 1));
    let squatter =
        json!({"metadata": {"name": taken.as_str()}, "data": {"not": "a template"}, "revision": 7});
    let squatter = serde_json::from_value(squatter)
        .map_err(kube::Error::SerdeError)
        .doing("name a revision")?;
    revisions(cluster)
        .create(&PostParams::default(), &squatter)
        .await
        .doing("take the name of the next revision")?;

    db.set_image("v2").await?;
    db.eventually(format!("{free} after one collision"), |set, _| {
        let status = set.status.clone().unwrap_or_default();
        if status.update_revision.as_deref() == Some(free.as_str()) && status.collision_count == Some(1) {
            Ok(())
        } else {
            Err(format!(
                "{:?} after {:?} collisions",
                status.update_revision, status.collision_count
            ))
        }
    })
    .await
}

async fn a_template_put_back_reuses_its_revision(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(1).start().await?;
    let first = update_revision(&db.expect_observed().await?);
    db.set_image("v2").await?;
    db.expect_images(["v2"]).await?;
    db.expect_ready().await?;

    db.set_image("v1").await?;
    let back = update_revision(&db.expect_observed().await?);
    if back != first {
        return Err(cluster.unmet(format!("{first} again"), back));
    }
    let number = cluster
        .eventually("its number raised above the other's", |view| {
            match view.revisions.get(&first) {
                Some(revision) if revision.revision == 3 => Ok(revision.revision),
                other => Err(format!("{:?}", other.map(|revision| revision.revision))),
            }
        })
        .await?;
    let all = cluster.look(|view| view.revisions.len());
    if (number, all) != (3, 2) {
        return Err(cluster.unmet("two revisions", format!("{all}")));
    }
    Ok(())
}

async fn a_scale_makes_no_revision(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(1).start().await?;
    db.scale(2).await?;
    db.expect_ready().await?;
    let all = revisions(cluster)
        .list(&Default::default())
        .await
        .doing("list revisions")?
        .items
        .len();
    if all != 1 {
        return Err(cluster.unmet("one revision", format!("{all}")));
    }
    Ok(())
}

/// Once the object that `status.currentRevision` names is gone, the controller takes the update revision for the current one: why we keep
/// our own copy of the stable template.
async fn deleting_the_current_revision_promotes_the_canary(cluster: &mut Cluster) -> Outcome {
    let db = cluster.statefulset("db").replicas(3).partition(2).start().await?;
    db.set_image("v2").await?;
    db.expect_images(["v1", "v1", "v2"]).await?;
    db.expect_ready().await?;

    let current = db
        .get()
        .await?
        .status
        .and_then(|status| status.current_revision)
        .unwrap_or_default();
    revisions(cluster)
        .delete(&current, &DeleteParams::default())
        .await
        .doing("delete the current revision")?;
    db.delete_pod(0).await?;
    db.expect_images(["v2", "v1", "v2"]).await
}

async fn old_revisions_are_kept_up_to_the_limit(cluster: &mut Cluster) -> Outcome {
    let db = cluster
        .statefulset("db")
        .replicas(1)
        .spec(json!({"revisionHistoryLimit": 1}))
        .start()
        .await?;
    for tag in ["v2", "v3", "v4"] {
        db.set_image(tag).await?;
        db.expect_images([tag]).await?;
        db.expect_ready().await?;
    }
    cluster
        .eventually("the current revision and one old one", |view| {
            let mut numbers: Vec<_> = view
                .revisions
                .values()
                .map(|revision| revision.revision)
                .collect();
            numbers.sort_unstable();
            if numbers == [3, 4] {
                Ok(())
            } else {
                Err(format!("{numbers:?}"))
            }
        })
        .await
}

fn revisions(cluster: &Cluster) -> Api<ControllerRevision> {
    Api::namespaced(cluster.client(), cluster.namespace())
}

fn update_revision(set: &StatefulSet) -> String {
    set.status
        .as_ref()
        .and_then(|status| status.update_revision.clone())
        .unwrap_or_default()
}

fn template_of(set: &StatefulSet) -> Value {
    set.spec
        .as_ref()
        .and_then(|spec| serde_json::to_value(&spec.template).ok())
        .unwrap_or_default()
}

async fn stored_data(cluster: &Cluster, name: &str) -> Outcome<String> {
    let revision = revisions(cluster)
        .get(name)
        .await
        .doing(format!("get revision {name}"))?;
    Ok(format!("{}: {:?}", revision.name_any(), revision.data))
}
