//! What the operator does for RolloutPlugins, on every control plane.

mod abort;
mod analysis;
mod commands;
mod contested;
mod deadlines;
mod faults;
mod foreign;
mod forged;
mod guard;
mod input;
mod limits;
mod measuring;
mod names;
mod prometheus;
mod pulling;
mod returning;
mod revisions;
mod scaling;
mod seed;
mod stable_copy;
mod status;
mod status_rights;
mod steps;
mod unreadable;
mod web;

use serde_json::json;

use crate::harness::{Cluster, Outcome, Rollout, Scenario, Set, partition};

/// All scenarios that run everywhere.
pub fn all() -> Vec<Scenario> {
    [
        abort::all(),
        analysis::all(),
        commands::all(),
        contested::all(),
        deadlines::all(),
        foreign::all(),
        guard::all(),
        input::all(),
        measuring::all(),
        returning::all(),
        revisions::all(),
        scaling::all(),
        seed::all(),
        stable_copy::all(),
        status::all(),
        steps::all(),
    ]
    .concat()
}

/// Scenarios in which a tenant attacks or the network fails. They are not simulated: the invariants assume that no other client writes the
/// status of rollouts.
pub fn hostile() -> Vec<Scenario> {
    [
        faults::all(),
        forged::all(),
        limits::all(),
        names::all(),
        status_rights::all(),
        unreadable::all(),
    ]
    .concat()
}

/// Scenarios that check a transient state, which a fault can outlast: they are not simulated.
pub fn momentary() -> Vec<Scenario> {
    pulling::all()
}

/// Scenarios that query a real Prometheus or a web server.
pub fn live() -> Vec<Scenario> {
    let all = [prometheus::all(), web::all()].concat();
    all.into_iter().map(Scenario::live).collect()
}

/// A set of `replicas` pods whose rollout from v1 to v2 is paused at `weight`.
pub(crate) async fn paused_at(
    cluster: &Cluster,
    replicas: i32,
    weight: i32,
) -> Outcome<(Set<'_>, Rollout<'_>)> {
    let db = cluster.statefulset("db").replicas(replicas).start().await?;
    let steps = json!([{"setWeight": weight}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    Ok((db, rollout))
}

/// Waits until the partition is set and the controller has observed it: until then the controller still acts on the previous one.
async fn stands_at(db: &Set<'_>, expected: i32) -> Outcome {
    db.eventually(format!("partition {expected}, observed"), |set, _| {
        let observed = set.status.as_ref().and_then(|status| status.observed_generation);
        match partition(set) {
            Some(partition) if partition == expected && observed >= set.metadata.generation => Ok(()),
            other => Err(format!("partition {other:?}, generation {observed:?} observed")),
        }
    })
    .await
}
