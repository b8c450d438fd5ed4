//! Analysis by metrics and Jobs: in a step and in the background (rules 5, 13 and 17).

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use stateward_api::analysis::{AnalysisRun, AnalysisTemplate, INSTANCE, INSTANCE_LABEL, Phase};
use stateward_kubelet::{Behaviour, Match};

use crate::harness::{Cluster, Doing, Outcome, Rollout, Set};
use crate::scenarios;

scenarios![
    a_step_goes_on_when_its_measurements_are_good,
    a_canary_that_raises_the_error_rate_is_rolled_back,
    no_data_is_not_success,
    nobody_to_ask_ends_in_an_error_and_a_return,
    an_inconclusive_analysis_pauses_until_somebody_decides,
    an_analysis_beside_the_steps_aborts_at_any_of_them,
    an_analysis_beside_the_steps_ends_with_them,
    doubt_beside_the_steps_stops_them_until_somebody_decides,
    an_abort_ends_the_run_and_its_job,
    a_job_that_succeeds_opens_the_step_once,
    a_job_that_fails_turns_the_version_down,
    a_job_that_cannot_start_pauses_with_the_reason,
    a_job_that_asks_for_the_node_is_refused_before_anything_moves,
    a_run_whose_job_asks_for_the_node_ends_in_an_error,
    a_job_has_no_token_unless_it_names_a_service_account,
    an_operator_that_restarts_loses_no_measurement,
    a_run_that_was_deleted_is_made_again,
    a_run_of_somebody_else_is_left_alone,
    a_template_that_comes_later_is_found,
    a_template_that_goes_holds_the_rollout,
    only_so_many_runs_are_kept,
    args_reach_the_query,
];

/// A metric with `query`, and `patch` merged into it.
pub(super) fn metric(query: &str, patch: Value) -> Value {
    let mut metric = json!({
        "name": query, "successCondition": "result[0] < 0.05",
        "provider": {"prometheus": {"address": "http://prometheus:9090", "query": query}},
    });
    json_patch::merge(&mut metric, &patch);
    metric
}

pub(super) async fn template(cluster: &Cluster, name: &str, spec: Value) -> Outcome {
    cluster
        .create("analysistemplates", name, json!({ "spec": spec }))
        .await
}

pub(super) fn analysis(template: &str) -> Value {
    json!({"analysis": {"templates": [{"templateName": template}]}})
}

/// A set of three pods whose rollouts run an analysis of `metrics` between the first pod and the others.
pub(super) async fn analysed(cluster: &Cluster, metrics: Value) -> Outcome<(Set<'_>, Rollout<'_>)> {
    template(cluster, "checks", json!({ "metrics": metrics })).await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 40}, analysis("checks"), {"setWeight": 80}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    Ok((db, rollout))
}

/// The same with a background analysis; the steps are a pause after the first pod and one after the second.
pub(super) async fn accompanied(cluster: &Cluster, metrics: Value) -> Outcome<(Set<'_>, Rollout<'_>)> {
    template(cluster, "checks", json!({ "metrics": metrics })).await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 40}, {"pause": {}}, {"setWeight": 80}, {"pause": {}}]);
    let beside = json!({"startingStep": 1, "templates": [{"templateName": "checks"}]});
    let rollout = cluster
        .rollout("db")
        .spec(json!({"strategy": {"canary": {"steps": steps, "analysis": beside}}}))
        .start()
        .await?;
    Ok((db, rollout))
}

/// Waits until the runs are in these phases, oldest first.
pub(super) async fn expect_runs(cluster: &Cluster, expected: &[Phase]) -> Outcome<Vec<AnalysisRun>> {
    cluster
        .eventually(format!("runs {expected:?}"), |view| {
            let mut runs: Vec<_> = view.runs.values().cloned().collect();
            runs.sort_by_key(|run| {
                let created = run.metadata.creation_timestamp.as_ref().map(|time| time.0);
                (created, run.status.as_ref().and_then(|status| status.started_at))
            });
            let phases: Vec<_> = runs.iter().map(phase).collect();
            if phases == expected {
                Ok(runs)
            } else {
                Err(format!("{phases:?}"))
            }
        })
        .await
}

fn phase(run: &AnalysisRun) -> Phase {
    run.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

/// Waits until the first metric of a run has this many measurements.
pub(super) async fn expect_measured(cluster: &Cluster, times: i32) -> Outcome {
    cluster
        .eventually(format!("{times} measurements"), |view| {
            let counts = view.runs.values().map(|run| {
                let status = run.status.clone().unwrap_or_default();
                status.metric_results.first().map_or(0, |result| result.count)
            });
            match counts.max() {
                Some(count) if count >= times => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
}

pub(super) fn runs_api(cluster: &Cluster) -> Api<AnalysisRun> {
    Api::namespaced(cluster.client(), cluster.namespace())
}

async fn a_step_goes_on_when_its_measurements_are_good(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let three = json!([metric("errors", json!({"interval": "2s", "count": 3}))]);
    let (db, rollout) = analysed(cluster, three).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Progressing").await?;
    expect_runs(cluster, &[Phase::Running]).await?;
    db.expect_images(["v1", "v1", "v2"]).await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    let runs = expect_runs(cluster, &[Phase::Successful]).await?;
    let status = runs[0].status.clone().unwrap_or_default();
    cluster.expect("three measurements", status.metric_results[0].count == 3)?;
    cluster.expect("each was asked for once", cluster.metrics().asked("errors") >= 3)?;
    let owners = runs[0].owner_references();
    cluster.expect(
        "one owner",
        owners.len() == 1 && owners[0].kind == "RolloutPlugin",
    )?;
    let labels = runs[0].labels();
    let label = |key: &str| labels.get(key).map(String::as_str);
    let labelled = (label("rollout-type"), label("step-index")) == (Some("Step"), Some("1"));
    cluster.expect("the labels of a step", labelled)
}

async fn a_canary_that_raises_the_error_rate_is_rolled_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let checks = json!([metric(
        "errors",
        json!({"interval": "2s", "count": 5, "failureLimit": 1})
    )]);
    let (db, rollout) = analysed(cluster, checks).await?;
    db.set_image("v2").await?;
    expect_measured(cluster, 1).await?;
    cluster.metrics().says("errors", [0.2]);
    expect_runs(cluster, &[Phase::Failed]).await?;
    db.expect_rest(["v1"; 3]).await?;
    let status = rollout.expect_phase("Failed").await?;
    let reason = status.aborted_reason.unwrap_or_default();
    cluster.expect(
        "the reason names the metric and its last value",
        reason.contains("2 failed, 1 allowed") && reason.contains("does not hold of [0.2]"),
    )?;
    rollout.expect_event("RolloutAborted", "errors").await
}

async fn no_data_is_not_success(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    // For a condition that does not check for it, no series means no series above the limit.
    let careless = json!({
        "successCondition": null, "failureCondition": "any(result, # > 0.05)", "consecutiveErrorLimit": 0,
    });
    let (db, rollout) = analysed(cluster, json!([metric("errors", careless)])).await?;
    db.set_image("v2").await?;
    expect_runs(cluster, &[Phase::Error]).await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_message("there is no data").await.map(drop)
}

async fn nobody_to_ask_ends_in_an_error_and_a_return(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().is_silent_about("errors");
    let twice = json!([metric("errors", json!({"consecutiveErrorLimit": 1}))]);
    let (db, rollout) = analysed(cluster, twice).await?;
    db.set_image("v2").await?;
    let runs = expect_runs(cluster, &[Phase::Error]).await?;
    let status = runs[0].status.clone().unwrap_or_default();
    cluster.expect("it was asked twice", status.metric_results[0].error == 2)?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_message("connection refused").await.map(drop)
}

async fn an_inconclusive_analysis_pauses_until_somebody_decides(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.07]);
    let unsure = json!([metric("errors", json!({"failureCondition": "result[0] > 0.1"}))]);
    let (db, rollout) = analysed(cluster, unsure).await?;
    db.set_image("v2").await?;
    let status = rollout.expect_step(1, "Paused").await?;
    let reasons: Vec<_> = status
        .pause_conditions
        .iter()
        .map(|pause| pause.reason.as_str())
        .collect();
    cluster.expect("the reason of the pause", reasons == ["InconclusiveAnalysisRun"])?;
    rollout
        .expect_event("AnalysisRunInconclusive", "neither condition")
        .await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    rollout.promote().await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    expect_runs(cluster, &[Phase::Inconclusive]).await.map(drop)
}

async fn an_analysis_beside_the_steps_aborts_at_any_of_them(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let (db, rollout) = accompanied(cluster, json!([metric("errors", json!({"interval": "2s"}))])).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_step(3, "Paused").await?;
    expect_runs(cluster, &[Phase::Running]).await?;
    cluster.metrics().says("errors", [0.9]);
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_phase("Failed").await?;
    let runs = expect_runs(cluster, &[Phase::Failed]).await?;
    let kind = runs[0].labels().get("rollout-type").map(String::as_str);
    cluster.expect("the label of one beside the steps", kind == Some("Background"))
}

async fn an_analysis_beside_the_steps_ends_with_them(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let (db, rollout) = accompanied(cluster, json!([metric("errors", json!({"interval": "2s"}))])).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    expect_measured(cluster, 1).await?;
    rollout.promote_full().await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    let runs = expect_runs(cluster, &[Phase::Successful]).await?;
    cluster.expect("it was told to end", runs[0].spec.terminate)
}

async fn doubt_beside_the_steps_stops_them_until_somebody_decides(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let unsure = json!({"interval": "2s", "failureCondition": "result[0] > 0.1"});
    let (db, rollout) = accompanied(cluster, json!([metric("errors", unsure)])).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    expect_measured(cluster, 1).await?;
    cluster.metrics().says("errors", [0.07]);
    rollout.expect_message("inconclusive").await?;
    rollout.promote().await?;
    // The inconclusive run is resolved; the step's pause still stands.
    rollout.expect_message("step 2 of 4: paused").await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    rollout.promote().await?;
    rollout.expect_step(3, "Paused").await?;
    rollout.promote().await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await.map(drop)
}

/// A metric that is a Job whose pod runs this image.
pub(super) fn job(image: &str, patch: Value) -> Value {
    let pod = json!({
        "restartPolicy": "Never", "schedulerName": crate::harness::SCHEDULER,
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "check", "image": image}],
    });
    let mut metric = json!({
        "name": "smoke", "provider": {"job": {"spec": {"backoffLimit": 0, "template": {"spec": pod}}}},
    });
    json_patch::merge(&mut metric, &patch);
    metric
}

async fn a_job_that_succeeds_opens_the_step_once(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let passes = Behaviour::exits(0, Duration::from_secs(1));
    cluster.pods().program(Match::image("smoke:good"), passes);
    let (db, rollout) = analysed(cluster, json!([job("smoke:good", json!({}))])).await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    let runs = expect_runs(cluster, &[Phase::Successful]).await?;
    let jobs = cluster.names("jobs").await?;
    let expected = [format!("{}-smoke-1", runs[0].name_any())];
    cluster.expect("one Job, of the run", jobs == expected)
}

async fn a_job_that_fails_turns_the_version_down(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let fails = Behaviour::exits(3, Duration::from_secs(1));
    cluster.pods().program(Match::image("smoke:bad"), fails);
    let (db, rollout) = analysed(cluster, json!([job("smoke:bad", json!({}))])).await?;
    db.set_image("v2").await?;
    expect_runs(cluster, &[Phase::Failed]).await?;
    db.expect_rest(["v1"; 3]).await?;
    rollout.expect_message("BackoffLimitExceeded").await.map(drop)
}

async fn a_job_that_cannot_start_pauses_with_the_reason(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster
        .pods()
        .program(Match::image("smoke:gone"), Behaviour::image_pull_error());
    let (db, rollout) = analysed(cluster, json!([job("smoke:gone", json!({}))])).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.expect_message("ImagePullBackOff").await?;
    expect_runs(cluster, &[Phase::Inconclusive]).await?;
    db.expect_rest(["v1", "v1", "v2"]).await
}

/// A Job whose pod names its node.
fn job_of_the_node() -> Value {
    let pod = json!({"hostNetwork": true, "volumes": [{"name": "node", "hostPath": {"path": "/"}}]});
    let patch =
        json!({"consecutiveErrorLimit": 0, "provider": {"job": {"spec": {"template": {"spec": pod}}}}});
    job("smoke:good", patch)
}

async fn a_job_that_asks_for_the_node_is_refused_before_anything_moves(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    template(cluster, "checks", json!({"metrics": [job_of_the_node()]})).await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 40}, analysis("checks")]);
    let rollout = cluster.rollout("db").steps(steps).create().await?;
    let words = "AnalysisTemplate checks: metrics[0].provider.job.spec.template.spec.hostNetwork: true is not allowed";
    rollout.expect_condition("InvalidSpec", "True", words).await?;
    db.expect_rest(["v1"; 3]).await
}

async fn a_run_whose_job_asks_for_the_node_ends_in_an_error(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let run =
        json!({"metadata": {"labels": {INSTANCE_LABEL: INSTANCE}}, "spec": {"metrics": [job_of_the_node()]}});
    cluster.create("analysisruns", "own", run).await?;
    let runs = expect_runs(cluster, &[Phase::Error]).await?;
    let results = runs[0].status.iter().flat_map(|status| &status.metric_results);
    let mut measurements = results.flat_map(|result| &result.measurements);
    let refused = measurements.any(|measurement| {
        let message = &measurement.message;
        message.starts_with("provider.job.spec.template.spec.hostNetwork: true is not allowed")
            && message.contains("--analysis-jobs=any")
    });
    cluster.expect("the field and the flag are named", refused)?;
    cluster.expect("no Job", cluster.names("jobs").await?.is_empty())
}

async fn a_job_has_no_token_unless_it_names_a_service_account(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let passes = Behaviour::exits(0, Duration::from_secs(1));
    cluster.pods().program(Match::image("smoke:good"), passes);
    let named = json!({"name": "named", "provider": {"job": {"spec": {"template": {"spec": {"serviceAccountName": "default"}}}}}});
    let metrics = json!([job("smoke:good", json!({})), job("smoke:good", named)]);
    let (db, _rollout) = analysed(cluster, metrics).await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await?;
    let runs = expect_runs(cluster, &[Phase::Successful]).await?;
    let jobs: Api<Job> = Api::namespaced(cluster.client(), cluster.namespace());
    for (metric, expected) in [("smoke", Some(false)), ("named", None)] {
        let job = jobs.get(&format!("{}-{metric}-1", runs[0].name_any())).await;
        let job = job.doing("read the Job")?;
        let pod = job.spec.and_then(|spec| spec.template.spec).unwrap_or_default();
        cluster.expect(
            &format!("{expected:?} for {metric}"),
            pod.automount_service_account_token == expected,
        )?;
    }
    Ok(())
}

async fn an_abort_ends_the_run_and_its_job(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let endless = Behaviour::exits(0, Duration::from_secs(3600));
    cluster.pods().program(Match::image("smoke:endless"), endless);
    let (db, rollout) = analysed(cluster, json!([job("smoke:endless", json!({}))])).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Progressing").await?;
    expect_runs(cluster, &[Phase::Running]).await?;
    rollout.abort().await?;
    db.expect_rest(["v1"; 3]).await?;
    let runs = expect_runs(cluster, &[Phase::Inconclusive]).await?;
    let message = runs[0].status.clone().unwrap_or_default().message;
    cluster.expect(
        "the run says that it was ended",
        message == "metric smoke: ended before it was measured",
    )?;
    let left = cluster.names("jobs").await?;
    cluster.expect("no Job goes on", left.is_empty())
}

async fn an_operator_that_restarts_loses_no_measurement(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let checks = json!([
        metric("errors", json!({"interval": "5s", "count": 4})),
        job("smoke:slow", json!({})),
    ]);
    let passes = Behaviour::exits(0, Duration::from_secs(12));
    cluster.pods().program(Match::image("smoke:slow"), passes);
    let (db, rollout) = analysed(cluster, checks).await?;
    db.set_image("v2").await?;
    for measured in [1, 2] {
        expect_measured(cluster, measured).await?;
        cluster.start_operator();
    }
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    let runs = expect_runs(cluster, &[Phase::Successful]).await?;
    let status = runs[0].status.clone().unwrap_or_default();
    cluster.expect("four measurements, no more", status.metric_results[0].count == 4)?;
    cluster.expect("one Job", cluster.names("jobs").await?.len() == 1)
}

async fn a_run_that_was_deleted_is_made_again(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let slow = json!([metric("errors", json!({"interval": "10s", "count": 2}))]);
    let (db, rollout) = analysed(cluster, slow).await?;
    db.set_image("v2").await?;
    let first = expect_runs(cluster, &[Phase::Running]).await?.remove(0);
    expect_measured(cluster, 1).await?;
    runs_api(cluster)
        .delete(&first.name_any(), &DeleteParams::default())
        .await
        .doing("delete a run")?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    let second = expect_runs(cluster, &[Phase::Successful]).await?.remove(0);
    cluster.expect(
        "another run of the same name",
        second.name_any() == first.name_any(),
    )?;
    cluster.expect("not the same one", second.uid() != first.uid())
}

async fn a_run_of_somebody_else_is_left_alone(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let (db, rollout) = analysed(cluster, json!([metric("errors", json!({}))])).await?;
    let theirs = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "metadata": {"name": "theirs"},
        "spec": {"metrics": [metric("theirs", json!({}))]},
    });
    let theirs: AnalysisRun = serde_json::from_value(theirs)
        .map_err(kube::Error::SerdeError)
        .doing("read a run")?;
    runs_api(cluster)
        .create(&PostParams::default(), &theirs)
        .await
        .doing("create a run")?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await?;
    let theirs = runs_api(cluster).get("theirs").await.doing("read a run")?;
    cluster.expect("it was not measured", theirs.status.is_none())?;
    cluster.expect("nobody was asked for it", cluster.metrics().asked("theirs") == 0)
}

async fn a_template_that_comes_later_is_found(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 40}, analysis("checks")]);
    let rollout = cluster.rollout("db").steps(steps).create().await?;
    rollout
        .expect_condition("InvalidSpec", "True", "there is no AnalysisTemplate checks")
        .await?;
    let endless = json!([metric("errors", json!({"interval": "1m"}))]);
    template(cluster, "checks", json!({ "metrics": endless })).await?;
    rollout
        .expect_condition("InvalidSpec", "True", "a step would never end")
        .await?;
    let api: Api<AnalysisTemplate> = Api::namespaced(cluster.client(), cluster.namespace());
    api.delete("checks", &DeleteParams::default())
        .await
        .doing("delete a template")?;
    template(
        cluster,
        "checks",
        json!({"metrics": [metric("errors", json!({}))]}),
    )
    .await?;
    rollout.expect_phase("Successful").await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await.map(drop)
}

async fn a_template_that_goes_holds_the_rollout(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let slow = json!([metric("errors", json!({"interval": "10s", "count": 2}))]);
    let (db, rollout) = analysed(cluster, slow.clone()).await?;
    db.set_image("v2").await?;
    expect_runs(cluster, &[Phase::Running]).await?;
    let api: Api<AnalysisTemplate> = Api::namespaced(cluster.client(), cluster.namespace());
    api.delete("checks", &DeleteParams::default())
        .await
        .doing("delete a template")?;
    rollout
        .expect_condition("Stalled", "True", "there is no AnalysisTemplate")
        .await?;
    expect_runs(cluster, &[Phase::Successful]).await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    template(cluster, "checks", json!({ "metrics": slow })).await?;
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await.map(drop)
}

async fn only_so_many_runs_are_kept(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.metrics().says("errors", [0.01]);
    let (db, rollout) = analysed(cluster, json!([metric("errors", json!({}))])).await?;
    let limits = json!({"analysis": {"successfulRunHistoryLimit": 1, "unsuccessfulRunHistoryLimit": 1}});
    rollout.patch("keep one run of each outcome", limits).await?;
    for version in ["v2", "v3"] {
        db.set_image(version).await?;
        db.expect_rest([version; 3]).await?;
        rollout.expect_phase("Successful").await?;
    }
    cluster.metrics().says("errors", [0.9]);
    let mut failed = String::new();
    for version in ["v4", "v5"] {
        db.set_image(version).await?;
        failed = cluster
            .eventually("a successful run, and another one that failed", |view| {
                let mut runs: Vec<_> = view.runs.values().collect();
                runs.sort_by_key(|run| phase(run));
                let phases: Vec<_> = runs.iter().map(|run| phase(run)).collect();
                let kept = phases == [Phase::Successful, Phase::Failed];
                let last = runs.last().map(|run| run.name_any()).unwrap_or_default();
                if kept && last != failed {
                    Ok(last)
                } else {
                    Err(format!("{phases:?}, {last}"))
                }
            })
            .await?;
        db.expect_rest(["v3"; 3]).await?;
    }
    Ok(())
}

async fn args_reach_the_query(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let query = r#"errors{revision="{{args.revision}}",team="{{args.team}}"} > {{args.limit}}"#;
    let named = metric(query, json!({"name": "errors"}));
    let spec = json!({
        "metrics": [named],
        "args": [{"name": "revision"}, {"name": "team"}, {"name": "limit", "value": "3"}],
    });
    template(cluster, "checks", spec).await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let args = json!([
        {"name": "revision", "valueFrom": {"podTemplateHashValue": "Latest"}},
        {"name": "team", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ]);
    let steps = json!([
        {"setWeight": 40},
        {"analysis": {"templates": [{"templateName": "checks"}], "args": args}},
    ]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    let set = db
        .eventually("the new revision".to_owned(), |set, _| {
            let status = set.status.clone().unwrap_or_default();
            match (status.update_revision, status.current_revision) {
                (Some(update), Some(current)) if update != current => Ok(update),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
    let asked = format!(r#"errors{{revision="{set}",team="db"}} > 3"#);
    cluster.metrics().says(&asked, [0.01]);
    db.expect_rest(["v2"; 3]).await?;
    rollout.expect_phase("Successful").await.map(drop)
}
