//! A real Prometheus behind TLS, with a certificate of a private CA.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use stateward_analysis::testing::{Authority, PASSWORD, RealPrometheus};

use super::prometheus::{Sight, expect_unasked, phased, sight_by};
use super::{Phased, expect_checks, expect_out, expect_partition};
use crate::harness::{Cluster, Doing, Outcome};
use crate::scenarios;

scenarios![
    a_certificate_of_an_authority_that_is_given_is_trusted,
    a_certificate_that_nobody_is_to_look_at_is_taken,
    another_authority_counts_from_the_next_check,
    another_password_counts_from_the_next_check,
];

const NOT_TRUSTED: &str = "CertificateNotTrusted";
const UNKNOWN: &str = "no authority that is trusted here signed it; caCertificate names another one";

fn authority() -> Outcome<Authority> {
    Ok(Authority::new().map_err(std::io::Error::other)?)
}

/// A Prometheus that requires a password and TLS.
async fn sight(cluster: &mut Cluster, authority: &Authority) -> Outcome<Sight> {
    sight_by(cluster, async |exporter| {
        RealPrometheus::start_encrypted(exporter, authority).await
    })
    .await
}

fn trusting(authority: &Authority) -> Value {
    json!({"query": {"caCertificate": authority.pem()}})
}

async fn trust(rollout: &Phased<'_>, authority: &Authority) -> Outcome {
    let check = json!({"check": trusting(authority)});
    rollout.patch("trust an authority", check).await
}

async fn a_certificate_of_an_authority_that_is_given_is_trusted(cluster: &mut Cluster) -> Outcome {
    let authority = authority()?;
    let Sight { prometheus, .. } = sight(cluster, &authority).await?;
    let (db, rollout) = phased(cluster, &prometheus.address(), json!({})).await?;
    db.set_image("v2").await?;
    expect_unasked(&rollout, NOT_TRUSTED, UNKNOWN).await?;
    rollout.expect_event("PrometheusError", UNKNOWN).await?;
    trust(&rollout, &self::authority()?).await?;
    expect_unasked(&rollout, NOT_TRUSTED, UNKNOWN).await?;
    let no_pem = json!({"check": {"query": {"caCertificate": "trust me"}}});
    rollout.patch("trust what is no certificate", no_pem).await?;
    expect_unasked(&rollout, "BadField", "spec.check.query.caCertificate: is not PEM").await?;
    cluster.expect(
        "nobody got as far as a question",
        prometheus.asked(super::prometheus::BACKUP).is_empty(),
    )?;
    db.expect_rest(["v1"; 3]).await?;
    trust(&rollout, &authority).await?;
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn a_certificate_that_nobody_is_to_look_at_is_taken(cluster: &mut Cluster) -> Outcome {
    let Sight { prometheus, .. } = sight(cluster, &authority()?).await?;
    let anybody = json!({"query": {"insecureSkipVerify": true}});
    let (db, rollout) = phased(cluster, &prometheus.address(), anybody).await?;
    db.set_image("v2").await?;
    expect_partition(&db, 2).await?;
    let looking = json!({"check": {"query": {"insecureSkipVerify": null}}});
    rollout.patch("look at the certificate", looking).await?;
    expect_unasked(&rollout, NOT_TRUSTED, UNKNOWN).await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    let anybody = json!({"check": {"query": {"insecureSkipVerify": true}}});
    rollout.patch("do not look at it", anybody).await?;
    expect_out::<3>(&db, &rollout, "v2").await
}

/// Certificates are reissued during a rollout.
async fn another_authority_counts_from_the_next_check(cluster: &mut Cluster) -> Outcome {
    let (first, second) = (authority()?, authority()?);
    let Sight { prometheus, .. } = sight(cluster, &first).await?;
    let (db, rollout) = phased(cluster, &prometheus.address(), trusting(&first)).await?;
    db.set_image("v2").await?;
    expect_partition(&db, 2).await?;
    prometheus
        .show_certificate_of(&second)
        .map_err(std::io::Error::other)?;
    expect_unasked(&rollout, NOT_TRUSTED, UNKNOWN).await?;
    db.expect_rest(["v1", "v1", "v2"]).await?;
    trust(&rollout, &second).await?;
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn another_password_counts_from_the_next_check(cluster: &mut Cluster) -> Outcome {
    let authority = authority()?;
    let Sight { prometheus, .. } = sight(cluster, &authority).await?;
    let (db, rollout) = phased(cluster, &prometheus.address(), trusting(&authority)).await?;
    set_password(cluster, "stale").await?;
    db.set_image("v2").await?;
    expect_unasked(&rollout, "ClientStatus", "401").await?;
    let status = rollout.expect_phase("Rolling").await?;
    let told = format!("{status:?}");
    cluster.expect("the password is not told", !told.contains("stale"))?;
    db.expect_rest(["v1"; 3]).await?;
    set_password(cluster, PASSWORD).await?;
    expect_checks(&rollout, "a good check", |checks| {
        checks.consecutive_successful_checks > 0
    })
    .await?;
    expect_out::<3>(&db, &rollout, "v2").await
}

async fn set_password(cluster: &Cluster, password: &str) -> Outcome {
    cluster.note("change the password in secret prom-secret");
    let api: Api<Secret> = Api::namespaced(cluster.client(), cluster.namespace());
    let patch = Patch::Merge(json!({"stringData": {"password": password}}));
    api.patch("prom-secret", &PatchParams::default(), &patch)
        .await
        .doing("change the password")
        .map(drop)
}
