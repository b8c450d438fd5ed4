//! Scenarios with a real Prometheus: the scenario provides what it scrapes.

use jiff::SignedDuration;
use serde_json::{Value, json};
use stateward_analysis::testing::{Exporter, PASSWORD, RealPrometheus, TestError, USERNAME};

use super::{Phased, expect_checks, expect_out, expect_partition, last_check};
use crate::harness::{Cluster, Failure, Outcome, Set};
use crate::scenarios;

scenarios![
    between_two_pods_a_real_prometheus_has_said_yes_often_enough,
    a_backup_that_runs_holds_the_next_pod,
    a_range_is_told_by_its_series_and_their_samples,
    whatever_keeps_prometheus_from_answering_is_told_apart,
];

/// The query that must return no data.
pub(super) const BACKUP: &str = "backup_running > 0";

/// A Prometheus that requires a password, and its scrape target.
pub(super) struct Sight {
    pub(super) prometheus: RealPrometheus,
    exporter: Exporter,
}

async fn sight(cluster: &mut Cluster) -> Outcome<Sight> {
    sight_by(cluster, async |exporter| {
        RealPrometheus::start_guarded(exporter).await
    })
    .await
}

/// The same, with the Prometheus started by `start`.
pub(super) async fn sight_by(
    cluster: &mut Cluster,
    start: impl AsyncFnOnce(&Exporter) -> Result<Option<RealPrometheus>, TestError>,
) -> Outcome<Sight> {
    let exporter = Exporter::start().await?;
    exporter.set("backup_running 0\n");
    let started = start(&exporter).await.map_err(std::io::Error::other)?;
    let Some(prometheus) = started else {
        return Err(Failure::NotHere("there is no prometheus in PATH".into()));
    };
    prometheus
        .has("backup_running")
        .await
        .map_err(std::io::Error::other)?;
    cluster.ask_providers();
    cluster.let_operator_read("prom-secret").await?;
    let keys = json!({"stringData": {"username": USERNAME, "password": format!("{PASSWORD}\n")}});
    cluster.create("secrets", "prom-secret", keys).await?;
    cluster.with_operator().await?;
    Ok(Sight { prometheus, exporter })
}

/// A set of three pods, each of which waits for three successes of this query.
pub(super) async fn phased<'c>(
    cluster: &'c Cluster,
    url: &str,
    check: Value,
) -> Outcome<(Set<'c>, Phased<'c>)> {
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let query = json!({"expr": BACKUP, "url": url, "secretRef": "prom-secret"});
    let rollout = cluster
        .phased("db")
        .check(json!({"successThreshold": 3, "query": query}))
        .check(check)
        .start()
        .await?;
    Ok((db, rollout))
}

/// S002-01 S002-04 S002-08: measured at Prometheus itself.
async fn between_two_pods_a_real_prometheus_has_said_yes_often_enough(cluster: &mut Cluster) -> Outcome {
    let Sight { prometheus, .. } = sight(cluster).await?;
    let without_scheme = prometheus.address().replace("http://", "");
    let (db, rollout) = phased(cluster, &without_scheme, json!({})).await?;
    db.set_image("v2").await?;
    let mut asked = Vec::new();
    for partition in [2, 1, 0] {
        expect_partition(&db, partition).await?;
        asked.push(prometheus.asked(BACKUP).len());
    }
    rollout.expect_phase("Updated").await?;
    db.expect_rest(["v2"; 3]).await?;
    let all = prometheus.asked(BACKUP);
    asked.push(all.len());
    let mut before = 0;
    for (pod, asked) in asked.into_iter().enumerate() {
        let gate = &all[before..asked];
        let period = SignedDuration::from_secs(1);
        let apart = gate.windows(2).all(|two| two[1].duration_since(two[0]) >= period);
        let what = format!("three questions a second apart at gate {pod}: {gate:?}");
        cluster.expect(&what, gate.len() >= 3 && apart)?;
        before = asked;
    }
    Ok(())
}

/// S002-06 S002-11
async fn a_backup_that_runs_holds_the_next_pod(cluster: &mut Cluster) -> Outcome {
    let sight = sight(cluster).await?;
    let (db, rollout) = phased(cluster, &sight.prometheus.address(), json!({})).await?;
    db.set_image("v2").await?;
    expect_partition(&db, 2).await?;
    sight.exporter.set("backup_running 1\n");
    let status = expect_checks(&rollout, "two failed checks", |checks| {
        checks.consecutive_failed_checks >= 2
    })
    .await?;
    let last = last_check(status);
    cluster.expect(
        "what was answered is told",
        last.answer == "1 series" && last.reason == "DataReturned",
    )?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    sight.exporter.set("backup_running 0\n");
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn a_range_is_told_by_its_series_and_their_samples(cluster: &mut Cluster) -> Outcome {
    let sight = sight(cluster).await?;
    let range = json!({"query": {"expr": "backup_running[30s]"}});
    let (db, rollout) = phased(cluster, &sight.prometheus.address(), range).await?;
    db.set_image("v2").await?;
    let status = expect_checks(&rollout, "two failed checks", |checks| {
        checks.consecutive_failed_checks >= 2
    })
    .await?;
    let last = last_check(status);
    let told = last.answer.starts_with("1 series with ") && last.answer.ends_with(" samples");
    cluster.expect(&format!("one series, not {}", last.answer), told)?;
    db.expect_rest(["v1"; 3]).await
}

/// Waits for a check that could not run for this reason and does not count.
pub(super) async fn expect_unasked(rollout: &Phased<'_>, reason: &str, part: &str) -> Outcome {
    expect_checks(rollout, &format!("{reason} with {part:?}"), |checks| {
        let last = checks.last_check.clone().unwrap_or_default();
        let told = last.reason == reason && last.verdict == "Error" && last.message.contains(part);
        told && checks.status == "PrometheusError" && checks.consecutive_successful_checks == 0
    })
    .await
    .map(drop)
}

async fn whatever_keeps_prometheus_from_answering_is_told_apart(cluster: &mut Cluster) -> Outcome {
    let Sight { prometheus, .. } = sight(cluster).await?;
    let url = prometheus.address();
    let wrong = json!({"query": {"expr": "backup_running >"}});
    let (db, rollout) = phased(cluster, &url, wrong).await?;
    db.set_image("v2").await?;
    expect_unasked(&rollout, "ClientStatus", "parse error").await?;
    let unnamed = json!({"check": {"query": {"expr": BACKUP, "secretRef": null}}});
    rollout.patch("say no name", unnamed).await?;
    expect_unasked(&rollout, "ClientStatus", "401").await?;
    let again = json!({"check": {"query": {"secretRef": "prom-secret"}}});
    drop(prometheus);
    rollout.patch("say a name", again).await?;
    expect_unasked(&rollout, "ConnectionRefused", "refused").await?;
    let nobody = json!({"check": {"query": {"url": "nobody.invalid:9090"}}});
    rollout.patch("ask nobody", nobody).await?;
    expect_unasked(&rollout, "NameNotResolved", "nobody.invalid").await?;
    let ourselves = json!({"check": {"query": {"url": "169.254.169.254"}}});
    rollout.patch("ask the metadata service", ourselves).await?;
    rollout
        .expect_message("spec.check.query.url: 169.254.169.254 is")
        .await?;
    db.expect_rest(["v1"; 3]).await
}
