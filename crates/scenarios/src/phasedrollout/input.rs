//! Invalid specs and the errors reported for them.

use kube::Api;
use kube::api::{DynamicObject, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use stateward_api::phasedrollout::PhasedRollout;

use super::{all_is_well, expect_checks, expect_out, expect_partition, guarded, one_pod_new, two_pods};
use crate::harness::{Cluster, Failure, Kind, Outcome};
use crate::scenarios;

scenarios![
    numbers_out_of_bounds_are_refused,
    an_address_that_is_none_is_refused,
    two_names_of_the_same_that_differ_are_refused,
    an_authority_for_a_certificate_that_is_not_looked_at_is_refused,
    what_is_not_given_is_filled_in,
    a_set_that_is_missing_is_waited_for,
    a_set_of_another_strategy_is_not_touched,
    a_set_that_gets_another_strategy_in_the_middle_stays_as_it_is,
    a_table_tells_where_a_rollout_stands,
    the_second_of_two_for_one_set_waits,
    a_rolloutplugin_and_a_phasedrollout_do_not_share_a_set,
    a_query_that_cannot_be_asked_moves_no_pod,
    an_address_that_the_operator_never_asks_moves_no_pod,
    a_slip_in_the_name_of_the_set_lets_go_of_none,
    numbers_of_a_status_that_somebody_has_written_harm_nobody,
];

/// The API server's answer to a manifest with `spec`.
async fn answer(cluster: &Cluster, spec: Value) -> Outcome<Result<Value, String>> {
    let mut manifest = PhasedRollout::manifest(cluster.namespace(), "db");
    json_patch::merge(&mut manifest["spec"], &spec);
    let resource = ApiResource::erase::<PhasedRollout>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), cluster.namespace(), &resource);
    let object: DynamicObject = serde_json::from_value(manifest).map_err(std::io::Error::other)?;
    let params = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    match api.create(&params, &object).await {
        Ok(created) => Ok(Ok(created.data)),
        Err(kube::Error::Api(status)) => Ok(Err(status.message.clone())),
        Err(error) => Err(Failure::from(std::io::Error::other(error))),
    }
}

async fn expect_refused(cluster: &Cluster, spec: Value, field: &str) -> Outcome {
    let said = answer(cluster, spec.clone()).await?;
    let refused = matches!(&said, Err(message) if message.contains(field));
    if refused {
        return Ok(());
    }
    Err(cluster.unmet(format!("{spec} is refused for {field}"), format!("{said:?}")))
}

async fn numbers_out_of_bounds_are_refused(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    for (check, field) in [
        (
            json!({"initialDelaySeconds": -1}),
            "spec.check.initialDelaySeconds",
        ),
        (json!({"periodSeconds": 0}), "spec.check.periodSeconds"),
        (json!({"maxTries": 0}), "spec.check.maxTries"),
        (json!({"successThreshold": 0}), "spec.check.successThreshold"),
        (json!({"query": {"expr": ""}}), "spec.check.query.expr"),
        (json!({"query": {"expr": " "}}), "spec.check.query.expr"),
        (
            json!({"query": {"secretRef": "Prom_Secret"}}),
            "spec.check.query.secretRef",
        ),
        (
            json!({"query": {"timeoutSeconds": 0}}),
            "spec.check.query.timeoutSeconds",
        ),
        (json!({"successOn": "Maybe"}), "spec.check.successOn"),
    ] {
        expect_refused(cluster, json!({ "check": check }), field).await?;
    }
    expect_refused(cluster, json!({"targetRef": ""}), "spec.targetRef").await?;
    expect_refused(cluster, json!({"failurePolicy": "Panic"}), "spec.failurePolicy").await
}

async fn an_address_that_is_none_is_refused(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    for url in [
        "",
        "ftp://prom:9090",
        "http:///path",
        "two words",
        ":9090",
        "://x",
        "http:/prom",
        "https:prom",
        "http://[::1",
        "prom:abc",
        "prom:65536",
        "http://prom:9090/api/v1/query",
    ] {
        let spec = json!({"check": {"query": {"url": url}}});
        expect_refused(cluster, spec, "spec.check.query.url").await?;
    }
    for url in [
        "prom:9000/xx",
        "prom",
        "http://prom:9090",
        "HTTPS://prom/x?y=z",
        "10.0.0.1:9090",
        "[::1]:9090",
        "http://me:pass@prom:65535",
    ] {
        let said = answer(cluster, json!({"check": {"query": {"url": url}}})).await?;
        cluster.expect(&format!("{url} is an address: {said:?}"), said.is_ok())?;
    }
    Ok(())
}

async fn two_names_of_the_same_that_differ_are_refused(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let both = json!({"skipCheck": true, "standardRollingUpdate": false});
    expect_refused(cluster, both, "two names of the same").await?;
    let same = json!({"skipCheck": true, "standardRollingUpdate": true});
    let said = answer(cluster, same).await?;
    cluster.expect("the same twice is fine", said.is_ok())
}

async fn an_authority_for_a_certificate_that_is_not_looked_at_is_refused(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let both = json!({"check": {"query": {"insecureSkipVerify": true, "caCertificate": "PEM"}}});
    expect_refused(cluster, both, "spec.check.query").await?;
    let one = json!({"check": {"query": {"insecureSkipVerify": false, "caCertificate": "PEM"}}});
    let said = answer(cluster, one).await?;
    cluster.expect("one of the two is fine", said.is_ok())
}

async fn what_is_not_given_is_filled_in(cluster: &mut Cluster) -> Outcome {
    cluster.with_definitions().await?;
    let bare =
        json!({"check": {"initialDelaySeconds": null, "periodSeconds": null, "successThreshold": null}});
    let said = answer(cluster, bare).await?.unwrap_or_default();
    let check = &said["spec"]["check"];
    let filled = [
        &check["initialDelaySeconds"],
        &check["periodSeconds"],
        &check["successThreshold"],
    ];
    cluster.expect(&format!("60, 60 and 3, not {filled:?}"), filled == [60, 60, 3])
}

async fn a_set_that_is_missing_is_waited_for(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let rollout = cluster.phased("db").create().await?;
    rollout.expect_phase("ErrorSTSNotFound").await?;
    rollout
        .expect_condition("Ready", "False", "waiting for StatefulSet db")
        .await?;
    rollout
        .expect_condition("Updated", "Unknown", "ErrorSTSNotFound")
        .await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    rollout.expect_phase("Updated").await?;
    expect_partition(&db, 2).await
}

/// S002-02
async fn a_set_of_another_strategy_is_not_touched(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
    let db = cluster
        .statefulset("db")
        .replicas(2)
        .spec(on_delete)
        .start()
        .await?;
    let rollout = cluster.phased("db").create().await?;
    rollout.expect_phase("ErrorCannotManage").await?;
    rollout
        .expect_condition("Ready", "False", "only RollingUpdate")
        .await?;
    rollout
        .expect_condition("Updated", "Unknown", "ErrorCannotManage")
        .await?;
    let set = db.get().await?;
    cluster.expect("it bears no claim of ours", set.metadata.annotations.is_none())?;
    let rolling = json!({"updateStrategy": {"type": "RollingUpdate"}});
    db.patch("let it be rolled", rolling).await?;
    rollout.expect_phase("Updated").await?;
    expect_partition(&db, 2).await
}

/// S002-02: also if the strategy changes during a rollout.
async fn a_set_that_gets_another_strategy_in_the_middle_stays_as_it_is(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    let on_delete = json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}});
    db.patch("leave it to whoever deletes pods", on_delete).await?;
    rollout.expect_phase("ErrorCannotManage").await?;
    rollout.promote_full().await?;
    rollout
        .expect_event("CommandRefused", "there is no workload to act on")
        .await?;
    all_is_well(cluster);
    db.expect_no_move().await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    let before = cluster.pod_changes();
    let rolling = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}});
    db.patch("let it be rolled again", rolling).await?;
    expect_out::<3>(&db, &rollout, "v2").await?;
    db.expect_one_down_at_most(before)
}

/// What `kubectl get phasedrollouts` shows.
async fn a_table_tells_where_a_rollout_stands(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (_db, rollout) = one_pod_new(cluster).await?;
    let shown = rollout.columns().await?;
    let expected = [
        ("Name", json!("db")),
        ("Target", json!("db")),
        ("Phase", json!("Rolling")),
        ("Reason", json!("RolloutAnalyzing")),
        ("Partition", json!(2)),
        ("Rolling-Pod", json!("WaitForChecks")),
        ("Checks", json!(0)),
    ]
    .map(|(name, cell)| (name.to_owned(), cell));
    cluster.expect(&format!("{shown:?}"), shown == expected)
}

async fn the_second_of_two_for_one_set_waits(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, first) = guarded(cluster).await?;
    let second = cluster.phased("db").named("second").create().await?;
    second.expect_phase("ErrorCannotManage").await?;
    second
        .expect_message("already managed by PhasedRollout db")
        .await?;
    first.expect_phase("Updated").await?;
    first.delete().await?;
    first.expect_gone().await?;
    second.expect_phase("Updated").await?;
    expect_partition(&db, 3).await
}

async fn a_rolloutplugin_and_a_phasedrollout_do_not_share_a_set(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, first) = guarded(cluster).await?;
    let second = cluster.rollout("db").create().await?;
    second.expect_phase("Failed").await?;
    second
        .expect_message("already managed by PhasedRollout db")
        .await?;
    cluster.start_operator();
    db.set_image("v2").await?;
    first.expect_phase("Updated").await?;
    db.expect_rest(["v2"; 3]).await?;
    second
        .expect_message("already managed by PhasedRollout db")
        .await
        .map(drop)
}

async fn a_query_that_cannot_be_asked_moves_no_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    cluster.let_operator_read("prom-secret").await?;
    let (db, rollout) = two_pods(cluster, json!({"query": {"secretRef": "prom-secret"}})).await?;
    db.set_image("v2").await?;
    let told = "there is no Secret prom-secret";
    expect_checks(&rollout, told, |checks| {
        let last = checks.last_check.clone().unwrap_or_default();
        checks.status == "PrometheusError" && last.reason == "SecretError" && last.message.contains(told)
    })
    .await?;
    db.expect_rest(["v1"; 2]).await?;
    cluster
        .create(
            "secrets",
            "prom-secret",
            json!({"stringData": {"token": "token"}}),
        )
        .await?;
    expect_out::<2>(&db, &rollout, "v2").await
}

/// A query that can never succeed is an invalid spec, not a check that fails after the first pod.
async fn an_address_that_the_operator_never_asks_moves_no_pod(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let metadata_service = json!({"query": {"url": "http://169.254.169.254:9090/prom"}});
    let rollout = cluster.phased("db").check(metadata_service).create().await?;
    rollout
        .expect_condition("InvalidSpec", "True", "spec.check.query.url: 169.254.169.254 is")
        .await?;
    expect_partition(&db, 2).await?;
    db.set_image("v2").await?;
    db.expect_observed().await?;
    db.expect_no_move().await?;
    db.expect_rest(["v1"; 2]).await
}

async fn a_slip_in_the_name_of_the_set_lets_go_of_none(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = guarded(cluster).await?;
    expect_partition(&db, 3).await?;
    rollout.patch("slip", json!({"targetRef": "d b"})).await?;
    rollout.expect_message("spec.targetRef").await?;
    db.set_image("v2").await?;
    db.expect_rest(["v1"; 3]).await?;
    expect_partition(&db, 3).await?;
    rollout.patch("put it right", json!({"targetRef": "db"})).await?;
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn numbers_of_a_status_that_somebody_has_written_harm_nobody(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let (db, rollout) = one_pod_new(cluster).await?;
    let most = json!({"consecutiveFailedChecks": i32::MAX, "totalFailedChecks": i32::MAX});
    rollout.overwrite(json!({"rollingPodStatus": most})).await?;
    let before = expect_checks(&rollout, "some checks", |_| true).await?;
    let before = before
        .rolling_pod_status
        .and_then(|checks| checks.last_check_time);
    expect_checks(&rollout, "another check, and no more to count", |checks| {
        checks.last_check_time > before && checks.total_failed_checks == i32::MAX
    })
    .await?;
    all_is_well(cluster);
    expect_out::<3>(&db, &rollout, "v2").await
}
