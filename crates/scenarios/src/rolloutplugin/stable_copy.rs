//! The copy of the stable template, and what a user who may write only the status can do with it (rule 4).

use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use stateward_core::stable_copy::COPY_OF;

use super::{paused_at, stands_at};
use crate::harness::{Cluster, Doing, Outcome, Rollout, Set};
use crate::scenarios;

scenarios![
    the_stable_template_is_kept_once_and_goes_with_its_object,
    who_may_only_write_the_status_does_not_choose_what_is_restored,
    a_copy_that_the_status_does_not_name_is_found_again,
    an_object_of_a_version_without_copies_gets_one_in_the_middle_of_a_rollout,
    a_copy_cannot_be_changed,
    a_copy_that_was_deleted_is_made_again_to_release_the_workload,
    who_may_only_write_the_status_has_no_copy_deleted,
];

fn revisions(cluster: &Cluster) -> Api<ControllerRevision> {
    Api::namespaced(cluster.client(), cluster.namespace())
}

/// The names of all copies and the image in each.
async fn copies(cluster: &Cluster) -> Outcome<Vec<(String, String)>> {
    let listed = revisions(cluster)
        .list(&ListParams::default().labels(COPY_OF))
        .await
        .doing("list the copies")?;
    let image = |copy: &ControllerRevision| {
        let data = copy.data.as_ref()?;
        let image = data.0.pointer("/spec/template/spec/containers/0/image")?;
        image.as_str()?.rsplit(':').next().map(str::to_owned)
    };
    let mut copies: Vec<_> = listed
        .iter()
        .map(|copy| (copy.name_any(), image(copy).unwrap_or_default()))
        .collect();
    copies.sort();
    Ok(copies)
}

async fn expect_one_copy(cluster: &Cluster, rollout: &Rollout<'_>, image: &str) -> Outcome<String> {
    let copies = copies(cluster).await?;
    let named = rollout
        .get()
        .await?
        .status
        .unwrap_or_default()
        .stable_template_copy;
    match copies.as_slice() {
        [(name, kept)] if kept == image && Some(name) == named.as_ref() => Ok(name.clone()),
        _ => Err(cluster.unmet(
            format!("one copy of the template of {image}, which the status names"),
            format!("{copies:?}, and {named:?} in the status"),
        )),
    }
}

/// Paused with every pod on the new version: Kubernetes has forgotten the stable one.
async fn at_full_weight(cluster: &Cluster) -> Outcome<(Set<'_>, Rollout<'_>)> {
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 100}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_images(["v2"; 3]).await?;
    Ok((db, rollout))
}

async fn the_stable_template_is_kept_once_and_goes_with_its_object(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 50}, {"pause": {}}]))
        .start()
        .await?;
    let first = expect_one_copy(cluster, &rollout, "v1").await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    expect_one_copy(cluster, &rollout, "v1").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    cluster
        .eventually("the former copy is deleted", |view| {
            if view.revisions.contains_key(&first) {
                Err(first.clone())
            } else {
                Ok(())
            }
        })
        .await?;
    let second = expect_one_copy(cluster, &rollout, "v2").await?;
    rollout.delete().await?;
    cluster
        .eventually("the copy goes with its object", |view| {
            if view.revisions.contains_key(&second) {
                Err(second.clone())
            } else {
                Ok(())
            }
        })
        .await
}

/// Such a user may steer the rollout: the abort counts. The restored template comes from the copy.
async fn who_may_only_write_the_status_does_not_choose_what_is_restored(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = at_full_weight(cluster).await?;
    let set = db.get().await?;
    let mut evil = json!(set.spec.map(|spec| spec.template));
    evil["spec"]["containers"][0]["image"] = json!("example.com/db:evil");
    evil["spec"]["serviceAccountName"] = json!("admin");
    evil["spec"]["volumes"] = json!([{"name": "host", "hostPath": {"path": "/"}}]);
    let hash = stateward_core::plan::Fingerprint::of(&stateward_core::revision::data(&evil));
    rollout
        .overwrite(json!({"stableTemplate": evil, "stableTemplateHash": hash.as_str(), "stableTemplateCopy": null, "abort": true}))
        .await?;
    rollout.expect_no_command().await?;
    rollout
        .expect_message("there is no copy of the stable template")
        .await?;
    db.expect_no_move().await?;
    let status = rollout.get().await?.status.unwrap_or_default();
    cluster.expect(
        "nothing is named as the copy",
        status.stable_template_copy.is_none(),
    )?;
    // With the record corrected the rollback ends on the stable version.
    let kept = copies(cluster).await?;
    cluster.expect(
        "the copy of v1 is still there",
        kept.len() == 1 && kept[0].1 == "v1",
    )?;
    let copy = revisions(cluster).get(&kept[0].0).await.doing("read the copy")?;
    let mut template = copy
        .data
        .map(|data| data.0["spec"]["template"].clone())
        .unwrap_or_default();
    template.as_object_mut().map(|fields| fields.remove("$patch"));
    let hash = stateward_core::plan::Fingerprint::of(&stateward_core::revision::data(&template));
    rollout
        .overwrite(json!({"stableTemplateHash": hash.as_str()}))
        .await?;
    rollout.expect_message("go on with another version").await?;
    db.expect_rest(["v1"; 3]).await
}

async fn a_copy_that_the_status_does_not_name_is_found_again(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = at_full_weight(cluster).await?;
    let name = expect_one_copy(cluster, &rollout, "v1").await?;
    rollout.overwrite(json!({"stableTemplateCopy": null})).await?;
    rollout
        .eventually("the copy is named again", |status| {
            if status.stable_template_copy.as_ref() == Some(&name) {
                Ok(())
            } else {
                Err(format!("{:?}", status.stable_template_copy))
            }
        })
        .await?;
    rollout
        .overwrite(json!({"stableTemplateCopy": "../../../etc"}))
        .await?;
    rollout.abort().await?;
    rollout.expect_message("go on with another version").await?;
    db.expect_rest(["v1"; 3]).await
}

/// An earlier version of the operator kept the template in the status. The operator takes it from the set's own revisions instead.
async fn an_object_of_a_version_without_copies_gets_one_in_the_middle_of_a_rollout(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = at_full_weight(cluster).await?;
    let name = expect_one_copy(cluster, &rollout, "v1").await?;
    cluster.stop_operator();
    revisions(cluster)
        .delete(&name, &DeleteParams::default())
        .await
        .doing("delete the copy")?;
    rollout.overwrite(json!({"stableTemplateCopy": null})).await?;
    cluster.start_operator();
    rollout
        .eventually("a copy is made", |status| {
            if status.stable_template_copy.as_ref() == Some(&name) {
                Ok(())
            } else {
                Err(format!("{:?}", status.stable_template_copy))
            }
        })
        .await?;
    expect_one_copy(cluster, &rollout, "v1").await?;
    rollout.abort().await?;
    rollout.expect_message("go on with another version").await?;
    db.expect_rest(["v1"; 3]).await
}

/// Not even by a user who may write ControllerRevisions.
async fn a_copy_cannot_be_changed(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.statefulset("db").replicas(1).start().await?;
    let rollout = cluster.rollout("db").steps(json!([])).start().await?;
    let name = expect_one_copy(cluster, &rollout, "v1").await?;
    let image = json!({"data": {"spec": {"template": {"spec": {"containers": []}}}}});
    let patched = revisions(cluster)
        .patch(&name, &PatchParams::default(), &Patch::Merge(image))
        .await;
    match patched {
        Err(kube::Error::Api(status)) if status.code == 422 => Ok(()),
        other => Err(cluster.unmet("a refusal", format!("{other:?}"))),
    }
}

/// Otherwise the guard would stay, and silently hold back every later change.
async fn a_copy_that_was_deleted_is_made_again_to_release_the_workload(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 3, 34).await?;
    let name = expect_one_copy(cluster, &rollout, "v1").await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    revisions(cluster)
        .delete(&name, &DeleteParams::default())
        .await
        .doing("delete the copy")?;
    rollout.delete().await?;
    rollout.expect_gone().await?;
    stands_at(&db, 0).await?;
    db.expect_rest(["v1"; 3]).await?;
    db.set_image("v3").await?;
    db.expect_rest(["v3"; 3]).await
}

/// Neither by naming another copy nor by requesting the deletion of former ones.
async fn who_may_only_write_the_status_has_no_copy_deleted(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = at_full_weight(cluster).await?;
    let name = expect_one_copy(cluster, &rollout, "v1").await?;
    for named in [json!("another"), json!(null)] {
        rollout
            .overwrite(json!({"stableTemplateCopy": named, "formerTemplateCopies": true}))
            .await?;
        db.expect_no_move().await?;
        let kept = copies(cluster).await?;
        cluster.expect(
            &format!("the copy of v1 is still there: {kept:?}"),
            kept == [(name.clone(), "v1".to_owned())],
        )?;
    }
    rollout.abort().await?;
    rollout.expect_message("go on with another version").await?;
    db.expect_rest(["v1"; 3]).await
}
