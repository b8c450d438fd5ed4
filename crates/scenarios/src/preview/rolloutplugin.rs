//! The plan of a RolloutPlugin, and what then happens.

use serde_json::json;
use stateward_kubelet::{Behaviour, Match};
use stateward_preview::Outcome as Ending;

use super::{agrees, ends, planned, planned_to, since};
use crate::harness::{Cluster, Outcome};
use crate::rolloutplugin::paused_at;
use crate::scenarios;

scenarios![
    steps_and_pauses_go_as_planned,
    a_parallel_set_goes_as_planned,
    a_version_that_crashes_returns_as_planned,
    a_version_that_cannot_be_pulled_returns_as_planned,
    a_pod_that_runs_out_of_memory_returns_as_planned,
    a_pod_that_is_never_ready_is_waited_for_as_planned,
    pods_that_have_to_stay_ready_go_as_planned,
    a_change_without_an_operator_goes_as_planned_when_it_is_back,
    an_operator_that_is_away_in_a_pause_goes_on_as_planned,
    a_set_that_is_scaled_in_a_pause_goes_as_planned,
    an_abort_returns_pods_as_planned,
    the_rest_of_a_rollout_goes_as_planned,
    a_third_version_goes_as_planned,
    a_template_that_is_put_back_goes_as_planned,
    an_analysis_that_fails_returns_pods_as_planned,
];

async fn steps_and_pauses_go_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([
        {"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {"duration": "2s"}}, {"setWeight": 40},
    ]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let plan = planned(cluster, &db, &rollout, Vec::new(), &[]).await?;
    let before = since(cluster);
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    ends(cluster, &plan, Ending::Successful)?;
    agrees(cluster, &before, &plan)
}

async fn a_parallel_set_goes_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(4).parallel().start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {"duration": "1s"}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let plan = planned(cluster, &db, &rollout, Vec::new(), &[]).await?;
    let before = since(cluster);
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.expect_phase("Successful").await?;
    ends(cluster, &plan, Ending::Successful)?;
    agrees(cluster, &before, &plan)
}

async fn a_version_that_crashes_returns_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 34}, {"pause": {}}]))
        .spec(json!({"progressDeadlineAbort": true}))
        .start()
        .await?;
    let plan = planned(cluster, &db, &rollout, Vec::new(), &["image=crash"]).await?;
    let before = since(cluster);
    cluster
        .pods()
        .program(Match::image("example.com/db:v2"), Behaviour::crash_loop());
    db.set_image("v2").await?;
    rollout.expect_message("every pod is back").await?;
    ends(cluster, &plan, Ending::RolledBack)?;
    agrees(cluster, &before, &plan)
}

async fn a_version_that_cannot_be_pulled_returns_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 34}, {"pause": {}}]))
        .spec(json!({"progressDeadlineAbort": true}))
        .start()
        .await?;
    let plan = planned(cluster, &db, &rollout, Vec::new(), &["image=no-image"]).await?;
    let before = since(cluster);
    cluster
        .pods()
        .program(Match::image("example.com/db:v2"), Behaviour::image_pull_error());
    db.set_image("v2").await?;
    rollout.expect_message("every pod is back").await?;
    ends(cluster, &plan, Ending::RolledBack)?;
    agrees(cluster, &before, &plan)
}

/// Pods that are healthy on the new version roll back as well.
async fn a_pod_that_runs_out_of_memory_returns_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 34}, {"pause": {"duration": "1s"}}]))
        .spec(json!({"progressDeadlineAbort": true}))
        .start()
        .await?;
    let plan = planned(cluster, &db, &rollout, Vec::new(), &["pod=1:out-of-memory"]).await?;
    let before = since(cluster);
    let pods = Match::set("db").ordinal(1).with_image("example.com/db:v2");
    cluster.pods().program(pods, Behaviour::oom_killed());
    db.set_image("v2").await?;
    rollout.expect_message("every pod is back").await?;
    ends(cluster, &plan, Ending::RolledBack)?;
    agrees(cluster, &before, &plan)
}

async fn a_pod_that_is_never_ready_is_waited_for_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 34}]))
        .spec(json!({"progressDeadlineSeconds": 3, "progressDeadlineAbort": true}))
        .start()
        .await?;
    let plan = planned(cluster, &db, &rollout, Vec::new(), &["pod=1:never-ready"]).await?;
    let before = since(cluster);
    let pods = Match::set("db").ordinal(1).with_image("example.com/db:v2");
    cluster.pods().program(pods, Behaviour::never_ready());
    db.set_image("v2").await?;
    rollout.expect_message("every pod is back").await?;
    ends(cluster, &plan, Ending::RolledBack)?;
    agrees(cluster, &before, &plan)
}

/// A pod counts once it has been Ready for `minReadySeconds`, and the next one goes only then.
async fn pods_that_have_to_stay_ready_go_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster
        .statefulset("db")
        .replicas(4)
        .min_ready_seconds(2)
        .start()
        .await?;
    let steps = json!([{"setWeight": 25}, {"pause": {}}, {"setWeight": 75}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let plan = planned(cluster, &db, &rollout, Vec::new(), &[]).await?;
    let before = since(cluster);
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    ends(cluster, &plan, Ending::Successful)?;
    agrees(cluster, &before, &plan)
}

async fn a_change_without_an_operator_goes_as_planned_when_it_is_back(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let plan = planned(cluster, &db, &rollout, Vec::new(), &["operator-down=5m"]).await?;
    let before = since(cluster);
    cluster.stop_operator();
    db.set_image("v2").await?;
    db.expect_no_move().await?;
    cluster.start_operator();
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    ends(cluster, &plan, Ending::Successful)?;
    agrees(cluster, &before, &plan)
}

/// Commands sent meanwhile wait for the operator.
async fn an_operator_that_is_away_in_a_pause_goes_on_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let what_ifs = ["operator-down=5m@step2", "people=1m"];
    let plan = planned(cluster, &db, &rollout, Vec::new(), &what_ifs).await?;
    let before = since(cluster);
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    cluster.stop_operator();
    rollout.promote().await?;
    db.expect_no_move().await?;
    cluster.start_operator();
    rollout.expect_step(3, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    ends(cluster, &plan, Ending::Successful)?;
    agrees(cluster, &before, &plan)
}

/// Down, because up is a race: if Kubernetes is faster than the operator it creates the added pod on the new version, and the operator
/// rolls it back.
async fn a_set_that_is_scaled_in_a_pause_goes_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(5).start().await?;
    let steps = json!([{"setWeight": 40}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let what_ifs = ["scale=4@step2", "people=10m"];
    let plan = planned(cluster, &db, &rollout, Vec::new(), &what_ifs).await?;
    let before = since(cluster);
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.scale(4).await?;
    db.expect_rest(["v1", "v1", "v1", "v2"]).await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    ends(cluster, &plan, Ending::Successful)?;
    agrees(cluster, &before, &plan)
}

async fn an_abort_returns_pods_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(4).start().await?;
    let steps = json!([{"setWeight": 50}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let plan = planned(
        cluster,
        &db,
        &rollout,
        Vec::new(),
        &["abort@step2", "people=never"],
    )
    .await?;
    let before = since(cluster);
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.abort().await?;
    rollout.expect_message("every pod is back").await?;
    ends(cluster, &plan, Ending::RolledBack)?;
    agrees(cluster, &before, &plan)
}

async fn the_rest_of_a_rollout_goes_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(4).start().await?;
    let steps = json!([{"setWeight": 25}, {"pause": {}}, {"setWeight": 75}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    db.expect_rest(["v1", "v1", "v1", "v2"]).await?;
    let plan = planned(cluster, &db, &rollout, Vec::new(), &[]).await?;
    let before = since(cluster);
    rollout.promote().await?;
    rollout.expect_step(3, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    ends(cluster, &plan, Ending::Successful)?;
    agrees(cluster, &before, &plan)
}

async fn an_analysis_that_fails_returns_pods_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let spec = json!({"metrics": [{
        "name": "errors", "successCondition": "result[0] < 0.05",
        "provider": {"prometheus": {"address": "http://prometheus:9090", "query": "errors"}},
    }]});
    cluster
        .create("analysistemplates", "errors", json!({"spec": spec}))
        .await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"analysis": {"templates": [{"templateName": "errors"}]}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let template = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate",
        "metadata": {"name": "errors"}, "spec": spec,
    });
    let plan = planned(cluster, &db, &rollout, vec![template], &["metric=fails@step2"]).await?;
    let before = since(cluster);
    cluster.metrics().says("errors", [0.5]);
    db.set_image("v2").await?;
    rollout.expect_message("every pod is back").await?;
    ends(cluster, &plan, Ending::RolledBack)?;
    agrees(cluster, &before, &plan)
}

async fn a_third_version_goes_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 40).await?;
    let plan = planned_to(cluster, &db, &rollout, "v3", Vec::new(), &[]).await?;
    let before = since(cluster);
    db.set_image("v3").await?;
    rollout.expect_step(0, "Progressing").await?;
    rollout.expect_step(1, "Paused").await?;
    rollout.promote().await?;
    rollout.expect_phase("Successful").await?;
    ends(cluster, &plan, Ending::Successful)?;
    agrees(cluster, &before, &plan)
}

async fn a_template_that_is_put_back_goes_as_planned(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = paused_at(cluster, 5, 40).await?;
    let plan = planned_to(cluster, &db, &rollout, "v1", Vec::new(), &[]).await?;
    let before = since(cluster);
    db.set_image("v1").await?;
    rollout
        .expect_event("RollbackCompleted", "every pod is back")
        .await?;
    rollout.expect_phase("Successful").await?;
    ends(cluster, &plan, Ending::RolledBack)?;
    agrees(cluster, &before, &plan)
}
