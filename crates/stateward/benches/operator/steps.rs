//! One rollout of ten steps on a real plane: the time from a Ready pod to the next step, and the total time.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use stateward_clock::Clock;
use stateward_kubelet::{Behaviour, Match};
use stateward_scenarios::harness::Backend;

use crate::fleet::Fleet;
use crate::process::Process;
use crate::row;

const TIMES: usize = 8;
const PODS: i32 = 10;
/// Faster than any database.
const POD_STARTS_IN: Duration = Duration::from_secs(1);

pub(crate) async fn measure(real: &Backend) {
    let mut cluster = real.cluster("bench").await.unwrap();
    cluster.with_definitions().await.unwrap();
    cluster
        .pods()
        .program(Match::any(), Behaviour::ready_after(POD_STARTS_IN));
    let fleet = Fleet::on_a_plane(cluster.client(), cluster.namespace());
    // Concurrently, so that they share the plane's load: `db0` is rolled out by Kubernetes, `db1` by the operator.
    fleet.create_sets(0..2, PODS).await;
    fleet.sets_settled(0..2).await;
    let steps: Vec<_> = (1..=10).map(|step| json!({"setWeight": step * 10})).collect();
    let _operator = Process::start(cluster.kubeconfig().unwrap(), cluster.namespace());
    fleet.create_rollouts(1..2, steps.into()).await;
    fleet.rollouts_settled(1..2).await;
    let began = Clock::wall().now();
    let mut ratios = Vec::new();
    for version in 0..TIMES {
        let tag = format!("v{}", version + 2);
        let rolled = async |number: usize| {
            let began = Instant::now();
            fleet.roll(number..number + 1, &tag).await;
            fleet.sets_settled(number..number + 1).await;
            began.elapsed().as_secs_f64()
        };
        let (native, ours) = tokio::join!(rolled(0), rolled(1));
        fleet.rollouts_settled(1..2).await;
        ratios.push(ours / native);
    }
    ratios.sort_by(f64::total_cmp);
    row(
        "ten steps without a pause, of the native rolling update",
        format!("{:.3}", ratios[ratios.len() / 2]),
        "1.10",
    );
    let log = std::env::var_os("STATEWARD_TEST_AUDIT_LOG");
    if let Some(log) = log.and_then(|log| std::fs::read_to_string(log).ok()) {
        let events: Vec<Value> = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .filter(|event: &Value| event["objectRef"]["namespace"] == cluster.namespace())
            .filter(|event| time(event, "requestReceivedTimestamp") > Some(began))
            .collect();
        report(&events);
    }
    cluster.close().await.unwrap();
}

fn report(events: &[Value]) {
    let mut latencies: Vec<_> = latencies(events);
    latencies.sort();
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    for (name, share) in [("p50", 0.5), ("p99", 0.99)] {
        row(
            &format!("pod Ready to the next partition write, {name}"),
            format!("{:.0} ms", at(share)),
            if share > 0.5 { "50 ms" } else { "" },
        );
    }
    let writes = events.iter().filter(|event| by_operator(event)).count();
    row(
        "writes of a rollout of ten steps",
        format!("{:.1}", writes as f64 / TIMES as f64),
        "30",
    );
}

/// The time from the write that makes a pod Ready to the request that releases the next one, from the server's audit log.
fn latencies(events: &[Value]) -> Vec<Duration> {
    let mut ready = None;
    let mut found = Vec::new();
    let mut events: Vec<_> = events.iter().collect();
    events.sort_by_key(|event| time(event, "requestReceivedTimestamp"));
    for event in events {
        let object = &event["objectRef"];
        let named = object["name"].as_str().unwrap_or_default();
        if object["resource"] == "pods" && named.starts_with("db1-") && makes_ready(event) {
            ready = time(event, "stageTimestamp");
        } else if object["resource"] == "statefulsets" && named == "db1" && by_operator(event) {
            let asked = time(event, "requestReceivedTimestamp");
            // The first request of a rollout follows the user, not a pod.
            let took = asked
                .zip(ready.take())
                .map(|(asked, ready)| asked.duration_since(ready));
            found.extend(took.map(|took| Duration::try_from(took).unwrap_or_default()));
        }
    }
    found
}

fn by_operator(event: &Value) -> bool {
    let agent = event["userAgent"].as_str().unwrap_or_default();
    agent.starts_with("stateward-operator")
}

fn makes_ready(event: &Value) -> bool {
    let conditions = event["requestObject"]["status"]["conditions"].as_array();
    conditions.is_some_and(|conditions| {
        conditions
            .iter()
            .any(|one| one["type"] == "Ready" && one["status"] == "True")
    })
}

fn time(event: &Value, field: &str) -> Option<Timestamp> {
    event[field].as_str()?.parse().ok()
}
