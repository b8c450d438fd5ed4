//! A hundred concurrent rollouts among five hundred, on a real plane, and what the operator does when nothing changes.

use std::time::{Duration, Instant};

use serde_json::json;
use stateward_kubelet::{Behaviour, Match};
use stateward_scenarios::harness::Backend;
use tokio::time::sleep;

use crate::fleet::Fleet;
use crate::process::Process;
use crate::row;

const SETS: usize = 500;
const AT_ONCE: usize = 100;
const IDLE: Duration = Duration::from_secs(20);

pub(crate) async fn measure(real: &Backend) {
    let mut cluster = real.cluster("bench").await.unwrap();
    cluster.with_definitions().await.unwrap();
    cluster
        .pods()
        .program(Match::any(), Behaviour::ready_after(Duration::from_secs(1)));
    let fleet = Fleet::on_a_plane(cluster.client(), cluster.namespace());
    fleet.create_sets(0..SETS, 3).await;
    fleet.sets_settled(0..SETS).await;
    let rolled = async |tag: &str| {
        let began = Instant::now();
        fleet.roll(0..AT_ONCE, tag).await;
        fleet.sets_settled(0..AT_ONCE).await;
        began.elapsed().as_secs_f64()
    };
    let native = rolled("v2").await;
    let operator = Process::start(cluster.kubeconfig().unwrap(), cluster.namespace());
    let steps = json!([{"setWeight": 34}, {"setWeight": 67}]);
    fleet.create_rollouts(0..SETS, steps).await;
    fleet.rollouts_settled(0..SETS).await;
    let ours = rolled("v3").await;
    fleet.rollouts_settled(0..AT_ONCE).await;
    row(
        &format!("{AT_ONCE} rollouts at once among {SETS}, of native rolling updates"),
        format!("{:.2}", ours / native),
        "1.20",
    );
    row("  native", format!("{native:.1} s"), "");
    sleep(Duration::from_secs(2)).await;
    let (before, written) = (operator.cpu(), writes(&cluster));
    sleep(IDLE).await;
    let share = (operator.cpu() - before).as_secs_f64() / IDLE.as_secs_f64();
    row("  then idle: of a core", format!("{:.2} %", share * 100.0), "1 %");
    row("  and writes", writes(&cluster) - written, "0");
    drop(operator);
    cluster.close().await.unwrap();
}

fn writes(cluster: &stateward_scenarios::harness::Cluster) -> usize {
    let writes = cluster.writes().unwrap().unwrap_or_default();
    let ours = writes
        .iter()
        .filter(|write| write.agent.starts_with("stateward-operator"));
    ours.count()
}
