//! Ten thousand StatefulSets on the embedded cluster in a separate process, and an operator that starts afterwards.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;
use tokio::time::sleep;

use crate::fleet::Fleet;
use crate::process::Process;
use crate::row;

/// A tenth of them first, to see whether the time per StatefulSet is constant.
const SMALLER: usize = 10;
const GLANCE: Duration = Duration::from_millis(20);

pub(crate) async fn measure(sets: usize) {
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    let (_cluster, _talk) = cluster(&kubeconfig);
    let fleet = Fleet::new(connect(&kubeconfig).await, "default");
    fleet.define().await;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let mut known = 0;
    for count in [sets / SMALLER, sets] {
        fleet.create_sets(known..count, 3).await;
        fleet.sets_settled(0..count).await;
        let operator = Process::start(&kubeconfig, "default");
        fleet.create_rollouts(known..count, steps.clone()).await;
        fleet.rollouts_settled(0..count).await;
        drop(operator);
        known = count;
        cold_start(&kubeconfig, count).await;
    }
}

async fn cold_start(kubeconfig: &std::path::Path, count: usize) {
    let began = Instant::now();
    let operator = Process::start(kubeconfig, "default");
    while operator.metric("stateward_reconcile_duration_seconds_count") < Some(count as f64) {
        sleep(GLANCE).await;
    }
    let took = began.elapsed().as_secs_f64();
    row(
        &format!("an operator starts beside {count} sets: every one had its turn"),
        format!("{took:.2} s"),
        "10 s",
    );
    row(
        "  on a core, for one set",
        format!("{:.0} µs", operator.cpu().as_secs_f64() / count as f64 * 1e6),
        "the same",
    );
    row(
        "  resident memory",
        format!("{} MiB", operator.resident()),
        "150 MiB",
    );
}

/// A client for a kubeconfig.
pub(crate) async fn connect(kubeconfig: &std::path::Path) -> Client {
    let config = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default())
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

/// Starts `stateward cluster` and waits until it serves.
pub(crate) fn cluster(kubeconfig: &std::path::Path) -> (Killed, impl BufRead) {
    let mut process = Command::new(env!("CARGO_BIN_EXE_stateward"))
        .args(["cluster", "--plain", "--kubeconfig"])
        .arg(kubeconfig)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut talk = BufReader::new(process.stderr.take().unwrap());
    let mut first = String::new();
    talk.read_line(&mut first).unwrap();
    (Killed(process), talk)
}

/// A process that is killed when it is dropped.
pub(crate) struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
