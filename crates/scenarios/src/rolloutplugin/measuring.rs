//! When and how often metrics are measured, and what follows if they are not (rules 11, 13 and 17).

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use stateward_api::analysis::{
    AnalysisRun, AnalysisTemplate, ClusterAnalysisTemplate, INSTANCE, INSTANCE_LABEL, Phase,
};
use stateward_kubelet::{Behaviour, Match};

use super::analysis::{
    accompanied, analysed, analysis, expect_measured, expect_runs, job, metric, runs_api, template,
};
use crate::harness::{Cluster, Doing, Outcome};
use crate::scenarios;

scenarios![
    a_version_is_not_good_before_it_was_measured_beside_the_steps,
    a_version_that_cannot_be_measured_beside_the_steps_is_turned_down,
    a_run_that_is_ended_before_it_was_measured_opens_no_step,
    a_job_that_cannot_start_is_not_left_behind,
    a_job_without_a_place_says_what_it_waits_for,
    args_that_cannot_be_read_hold_the_rollout_before_anything_moves,
    labels_that_no_run_can_have_hold_the_rollout_before_anything_moves,
    a_spec_that_goes_wrong_does_not_hide_why_a_version_was_turned_down,
    a_number_that_is_too_large_is_refused,
    a_template_for_every_namespace_is_found,
    a_run_of_ones_own_is_kept_as_long_as_it_says,
    some_failures_are_allowed_until_enough_were_good_in_a_row,
    some_measurements_may_come_to_nothing,
];

async fn a_version_is_not_good_before_it_was_measured_beside_the_steps(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let late = json!([metric("errors", json!({"interval": "2s", "initialDelay": "15s"}))]);
    let (db, rollout) = accompanied(cluster, late).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote_full().await?;
    db.expect_images(["v2"; 3]).await?;
    rollout.expect_message("to have measured").await?;
    rollout.expect_phase("Successful").await?;
    let runs = expect_runs(cluster, &[Phase::Successful]).await?;
    let status = runs[0].status.clone().unwrap_or_default();
    cluster.expect("it was measured", status.metric_results[0].count > 0)
}

async fn a_version_that_cannot_be_measured_beside_the_steps_is_turned_down(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().is_silent_about("errors");
    let patient = json!([metric(
        "errors",
        json!({"interval": "2s", "consecutiveErrorLimit": 1})
    )]);
    let (db, rollout) = accompanied(cluster, patient).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote_full().await?;
    expect_runs(cluster, &[Phase::Error]).await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout
        .expect_message("2 errors in a row, 1 allowed")
        .await
        .map(drop)
}

async fn a_run_that_is_ended_before_it_was_measured_opens_no_step(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let late = json!([metric("errors", json!({"initialDelay": "1h"}))]);
    let (db, rollout) = analysed(cluster, late).await?;
    db.set_image("v2").await?;
    let run = expect_runs(cluster, &[Phase::Running]).await?.remove(0);
    let end = Patch::Merge(json!({"spec": {"terminate": true}}));
    runs_api(cluster)
        .patch(&run.name_any(), &PatchParams::default(), &end)
        .await
        .doing("end a run")?;
    expect_runs(cluster, &[Phase::Inconclusive]).await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.expect_message("ended before it was measured").await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

async fn a_job_that_cannot_start_is_not_left_behind(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster
        .pods()
        .program(Match::image("smoke:gone"), Behaviour::image_pull_error());
    let (db, rollout) = analysed(cluster, json!([job("smoke:gone", json!({}))])).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    let run = expect_runs(cluster, &[Phase::Inconclusive]).await?.remove(0);
    let jobs: Api<Job> = Api::namespaced(cluster.client(), cluster.namespace());
    let name = format!("{}-smoke-1", run.name_any());
    let gone = await_condition(jobs, &name, |job: Option<&Job>| {
        job.is_none_or(|job| job.metadata.deletion_timestamp.is_some())
    });
    let gone = tokio::time::timeout(cluster.patience(), gone).await;
    cluster.expect("its Job goes", matches!(gone, Ok(Ok(_))))?;
    let runs = expect_runs(cluster, &[Phase::Inconclusive]).await?;
    let message = runs[0].status.clone().unwrap_or_default().message;
    cluster.expect("the verdict stays", message.contains("ImagePullBackOff"))
}

async fn a_job_without_a_place_says_what_it_waits_for(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster
        .pods()
        .program(Match::image("smoke:homeless"), Behaviour::unschedulable());
    let (db, rollout) = analysed(cluster, json!([job("smoke:homeless", json!({}))])).await?;
    db.set_image("v2").await?;
    expect_runs(cluster, &[Phase::Running]).await?;
    rollout.expect_message("has no place to run").await?;
    rollout.abort().await?;
    db.expect_rest(["v1"; 3]).await?;
    expect_runs(cluster, &[Phase::Inconclusive]).await.map(drop)
}

async fn args_that_cannot_be_read_hold_the_rollout_before_anything_moves(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let spec = json!({"metrics": [metric("errors", json!({}))], "args": [{"name": "which"}]});
    template(cluster, "checks", spec).await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = |source: Value| {
        let args = json!([{"name": "which", "valueFrom": source}]);
        json!([{"setWeight": 40}, {"analysis": {"templates": [{"templateName": "checks"}], "args": args}}])
    };
    let newest = steps(json!({"podTemplateHashValue": "Newest"}));
    let rollout = cluster.rollout("db").steps(newest).create().await?;
    let field = "spec.strategy.canary.steps[1].analysis.args[0].valueFrom.podTemplateHashValue";
    rollout.expect_condition("InvalidSpec", "True", field).await?;
    let label = json!({"fieldRef": {"fieldPath": "metadata.labels['nope']"}});
    let unlabelled = json!({"strategy": {"canary": {"steps": steps(label)}}});
    rollout
        .patch("read a label that is not there", unlabelled)
        .await?;
    rollout
        .expect_condition("InvalidSpec", "True", "metadata.labels['nope']")
        .await?;
    db.expect_rest(["v1"; 3]).await
}

async fn labels_that_no_run_can_have_hold_the_rollout_before_anything_moves(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_operator().await?;
    template(
        cluster,
        "checks",
        json!({"metrics": [metric("errors", json!({}))]}),
    )
    .await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let metadata = json!({"labels": {"team": "the database people"}});
    let analysis = json!({"templates": [{"templateName": "checks"}], "analysisRunMetadata": metadata});
    let steps = json!([{"setWeight": 40}, {"analysis": analysis}]);
    let rollout = cluster.rollout("db").steps(steps).create().await?;
    rollout
        .expect_condition("InvalidSpec", "True", "is no value of the label team")
        .await?;
    db.expect_rest(["v1"; 3]).await
}

async fn a_spec_that_goes_wrong_does_not_hide_why_a_version_was_turned_down(
    cluster: &mut Cluster,
) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let (db, rollout) = accompanied(cluster, json!([metric("errors", json!({"interval": "2s"}))])).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    expect_measured(cluster, 1).await?;
    let api: Api<AnalysisTemplate> = Api::namespaced(cluster.client(), cluster.namespace());
    api.delete("checks", &DeleteParams::default())
        .await
        .doing("delete a template")?;
    rollout
        .expect_condition("InvalidSpec", "True", "there is no AnalysisTemplate")
        .await?;
    cluster.metrics().says("errors", [0.9]);
    db.expect_rest(["v1"; 3]).await?;
    rollout
        .eventually("both are told".to_owned(), |status| {
            let message = status.message.clone();
            let told = [
                "there is no AnalysisTemplate",
                "1 failed, 0 allowed",
                "was rejected",
            ];
            if told.iter().all(|part| message.contains(part)) && !message.contains("returning") {
                Ok(())
            } else {
                Err(message)
            }
        })
        .await
}

async fn a_number_that_is_too_large_is_refused(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let large = json!({"interval": "1m", "count": 3_000_000_000_i64});
    let refused = template(cluster, "checks", json!({"metrics": [metric("errors", large)]})).await;
    cluster.expect("a number of more than 32 bits is refused", refused.is_err())?;
    let text = json!({"interval": "1m", "count": "{{args.count}}"});
    template(cluster, "checks", json!({"metrics": [metric("errors", text)]})).await?;
    let steps = json!([{"setWeight": 40}, {"pause": {"duration": 3_000_000_000_i64}}]);
    let refused = cluster.rollout("db").steps(steps).create().await;
    cluster.expect("and so is a duration", refused.is_err())
}

async fn a_template_for_every_namespace_is_found(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let name = format!("checks-{}", cluster.namespace());
    let template = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "ClusterAnalysisTemplate", "metadata": {"name": name},
        "spec": {"metrics": [metric("errors", json!({}))]},
    });
    let template: ClusterAnalysisTemplate = serde_json::from_value(template)
        .map_err(kube::Error::SerdeError)
        .doing("read a template")?;
    let api: Api<ClusterAnalysisTemplate> = Api::all(cluster.client());
    api.create(&PostParams::default(), &template)
        .await
        .doing("create a template")?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let of_all = json!({"analysis": {"templates": [{"templateName": name, "clusterScope": true}]}});
    let of_none = analysis(&name);
    let steps = json!([{"setWeight": 40}, of_none]);
    let rollout = cluster.rollout("db").steps(steps).create().await?;
    rollout
        .expect_condition("InvalidSpec", "True", "there is no AnalysisTemplate")
        .await?;
    let steps = json!({"strategy": {"canary": {"steps": [{"setWeight": 40}, of_all]}}});
    rollout.patch("mean the one of all", steps).await?;
    rollout.expect_phase("Successful").await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    expect_runs(cluster, &[Phase::Successful]).await?;
    api.delete(&name, &DeleteParams::default())
        .await
        .doing("delete a template")
        .map(drop)
}

async fn a_run_of_ones_own_is_kept_as_long_as_it_says(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let often = json!({"interval": "1s", "count": 4, "initialDelay": "2s"});
    let run = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
        "metadata": {"name": "own", "labels": {INSTANCE_LABEL: INSTANCE}},
        "spec": {
            "metrics": [metric("errors", often)],
            "measurementRetention": [{"metricName": "err.*", "limit": 2}],
            "ttlStrategy": {"secondsAfterCompletion": 3600, "secondsAfterSuccess": 5},
        },
    });
    let run: AnalysisRun = serde_json::from_value(run)
        .map_err(kube::Error::SerdeError)
        .doing("read a run")?;
    runs_api(cluster)
        .create(&PostParams::default(), &run)
        .await
        .doing("create a run")?;
    let run = expect_runs(cluster, &[Phase::Successful]).await?.remove(0);
    let status = run.status.clone().unwrap_or_default();
    let result = &status.metric_results[0];
    let kept = (result.count, result.measurements.len());
    cluster.expect("four were made and two are kept", kept == (4, 2))?;
    let first = status.started_at.zip(result.measurements[0].started_at);
    let late = first.is_some_and(|(begun, first)| first.duration_since(begun).as_secs() >= 2);
    cluster.expect("none was made before its time", late)?;
    let uid = run.uid().unwrap_or_default();
    let gone = await_condition(runs_api(cluster), "own", conditions::is_deleted(&uid));
    let gone = tokio::time::timeout(cluster.patience() + Duration::from_secs(5), gone).await;
    cluster.expect("it goes when its time is over", matches!(gone, Ok(Ok(_))))
}

async fn some_failures_are_allowed_until_enough_were_good_in_a_row(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.9]);
    let stubborn = json!({"interval": "1s", "failureLimit": -1, "consecutiveSuccessLimit": 2});
    let (db, rollout) = analysed(cluster, json!([metric("errors", stubborn)])).await?;
    db.set_image("v2").await?;
    expect_measured(cluster, 2).await?;
    db.expect_images(["v1", "v1", "v2"]).await?;
    cluster.metrics().says("errors", [0.01]);
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    let runs = expect_runs(cluster, &[Phase::Successful]).await?;
    let result = runs[0]
        .status
        .clone()
        .unwrap_or_default()
        .metric_results
        .remove(0);
    let counts = (result.failed >= 2, result.consecutive_success);
    cluster.expect("two in a row after two that failed", counts == (true, 2))
}

async fn some_measurements_may_come_to_nothing(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.07]);
    let unsure = json!({
        "interval": "5s", "count": 3, "inconclusiveLimit": 1, "failureCondition": "result[0] > 0.1",
    });
    let (db, rollout) = analysed(cluster, json!([metric("errors", unsure)])).await?;
    db.set_image("v2").await?;
    expect_measured(cluster, 1).await?;
    cluster.metrics().says("errors", [0.01]);
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    let runs = expect_runs(cluster, &[Phase::Successful]).await?;
    let result = runs[0]
        .status
        .clone()
        .unwrap_or_default()
        .metric_results
        .remove(0);
    let counts = (result.count, result.inconclusive, result.successful);
    cluster.expect("one of three came to nothing", counts == (3, 1, 2))
}
