//! A rollout in virtual time: the operator, the embedded cluster and its kubelet in one thread.

use std::time::Instant;

use jiff::Timestamp;
use serde_json::json;
use stateward_clock::Clock;
use stateward_cluster::{Cluster, Options};
use stateward_controller::Operator;
use stateward_kubelet::Kubelet;

use crate::fleet::Fleet;
use crate::row;

const TIMES: u32 = 20;

pub(crate) fn measure() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let clock = Clock::starting_at(Timestamp::constant(1_767_225_600, 0), 1.0);
        let cluster = Cluster::start(Options::at(clock.clone()));
        let _kubelet = Kubelet::new(cluster.lean_client("kubelet"), clock.clone())
            .heartbeat(None)
            .spawn();
        let fleet = Fleet::new(cluster.client("bench"), "default");
        fleet.define().await;
        let options = stateward_controller::Options {
            clock,
            namespaces: Vec::new(),
        };
        let operator = tokio::spawn(Operator::new(cluster.client("operator"), options).run());
        fleet.create_sets(0..1, 5).await;
        let steps = json!([{"setWeight": 20}, {"pause": {"duration": "1m"}}, {"setWeight": 60}]);
        fleet.create_rollouts(0..1, steps).await;
        fleet.rollouts_settled(0..1).await;
        let began = Instant::now();
        for version in 0..TIMES {
            fleet.roll(0..1, &format!("v{}", version + 2)).await;
            fleet.sets_settled(0..1).await;
            fleet.rollouts_settled(0..1).await;
        }
        let took = began.elapsed() / TIMES;
        operator.abort();
        row(
            "a simulated rollout of five pods",
            format!("{:.1} ms", took.as_secs_f64() * 1e3),
            "5 ms",
        );
    });
}
