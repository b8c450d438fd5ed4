//! The budgets of the embedded cluster, measured. Prints a table; asserts nothing.
//!
//! `cargo xtask bench cluster`, or with a number for fewer or more sets: `cargo xtask bench cluster -- 2000`. A name runs only that
//! measurement, for a profiler: `cargo xtask bench cluster -- rolling`

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark talks, and ends where it cannot go on"
)]

use std::time::Instant;

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::{Value, json};
use stateward_clock::Clock;
use stateward_cluster::{Cluster, Commits, Options};
use stateward_kubelet::Kubelet;

/// The released binaries use the same allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<_> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let sets: usize = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(10_000);
    let words: Vec<_> = arguments
        .iter()
        .filter(|word| word.parse::<usize>().is_err())
        .collect();
    let is_wanted = |what: &str| words.is_empty() || words.iter().any(|word| what.contains(word.as_str()));
    println!("{:<58} {:>14} {:>12}", "what", "measured", "budget");
    // First, while the tables of types and resources are not loaded yet.
    let what = "start to the first answer, without TLS";
    if is_wanted(what) {
        row(what, &format!("{:.1} ms", first_answer() * 1e3), "300 ms");
    }
    let what = "native 5-pod rolling update, virtual time";
    if is_wanted(what) {
        // The best of a few: other load on the machine only adds time.
        let best = |probe: &Value| {
            let rounds = (0..ROUNDS).map(|_| rolling_update(50, probe));
            format!("{:.2} ms", rounds.fold(f64::MAX, f64::min) * 1e3)
        };
        row(what, &best(&Value::Null), "3 ms");
        // Each pod is Running before it is Ready, which is another write.
        let probe = json!({"tcpSocket": {"port": 5432}});
        row("  the same with a readiness probe", &best(&probe), "");
    }
    let what = "watch event to a client in this process, p50";
    if is_wanted(what) {
        row(what, &format!("{:.1} µs", watch_latency() * 1e6), "50 µs");
    }
    let what = format!("{sets} sets of 3 pods settled");
    if is_wanted(&what) {
        let (seconds, before, after) = settle(sets);
        row(&what, &format!("{seconds:.1} s"), "60 s");
        let memory = format!("{} MiB", (after - before) / 1024 / 1024);
        row("  resident memory for that", &memory, "1536 MiB");
    }
}

fn row(what: &str, measured: &str, budget: &str) {
    println!("{what:<58} {measured:>14} {budget:>12}");
}

/// Seconds from the start to an answered request.
fn first_answer() -> f64 {
    let began = Instant::now();
    in_virtual_time(async {
        let (_cluster, client, _kubelet) = start();
        let sets: Api<StatefulSet> = Api::all(client);
        sets.list(&ListParams::default()).await.expect("a list");
    });
    began.elapsed().as_secs_f64()
}

/// Seconds of real time for one update of a five-pod set, the average of `times`. It watches the cluster's commits, so that no client of
/// the benchmark is measured with it.
fn rolling_update(times: usize, probe: &Value) -> f64 {
    in_virtual_time(async move {
        let (cluster, client, _kubelet) = start();
        let mut commits = cluster.commits();
        let sets: Api<StatefulSet> = Api::namespaced(client, "default");
        let containers = |version: usize| json!([{"name": "main", "image": format!("example.com/db:v{version}"), "readinessProbe": probe}]);
        let mut first = set("db", 5);
        if let Some(spec) = first.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()) {
            spec.containers = object(containers(1));
        }
        sets.create(&PostParams::default(), &first).await.expect("a set");
        converged(&mut commits).await;
        let began = Instant::now();
        for version in 0..times {
            let patch = Patch::Merge(
                json!({"spec": {"template": {"spec": {"containers": containers(version + 2)}}}}),
            );
            sets.patch("db", &PatchParams::default(), &patch)
                .await
                .expect("a patch");
            converged(&mut commits).await;
        }
        began.elapsed().as_secs_f64() / times as f64
    })
}

/// Seconds from the answer to a write to its arrival at a watch: the median of many.
fn watch_latency() -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let cluster = Cluster::start(Options::at(Clock::wall()));
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client("bench"), "default");
        let mut events = maps
            .watch(&WatchParams::default(), "0")
            .await
            .expect("a watch")
            .boxed();
        let mut samples = Vec::new();
        for number in 0..2000 {
            let map: ConfigMap = object(json!({"metadata": {"name": format!("c{number}")}}));
            maps.create(&PostParams::default(), &map)
                .await
                .expect("a config map");
            let written = Instant::now();
            loop {
                match events.try_next().await.expect("an event") {
                    Some(WatchEvent::Added(seen)) if seen.metadata.name == map.metadata.name => break,
                    Some(_) => {}
                    None => panic!("the watch ended"),
                }
            }
            samples.push(written.elapsed());
        }
        samples.sort();
        samples[samples.len() / 2].as_secs_f64()
    })
}

/// Seconds until `count` sets are settled, and resident bytes before and after.
fn settle(count: usize) -> (f64, u64, u64) {
    in_virtual_time(async move {
        let before = resident();
        let (_cluster, client, _kubelet) = start();
        let sets: Api<StatefulSet> = Api::namespaced(client.clone(), "default");
        let began = Instant::now();
        for number in 0..count {
            sets.create(&PostParams::default(), &set(&format!("db-{number}"), 3))
                .await
                .expect("a set");
        }
        let mut settled = std::collections::BTreeSet::new();
        let mut changes = watcher(sets, watcher::Config::default())
            .default_backoff()
            .applied_objects()
            .boxed();
        while settled.len() < count {
            let set = changes.try_next().await.expect("a watch").expect("a change");
            if ready(&set) == 3 {
                settled.insert(set.metadata.name);
            }
        }
        (began.elapsed().as_secs_f64(), before, resident())
    })
}

fn in_virtual_time<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    runtime.block_on(work)
}

fn start() -> (Cluster, Client, stateward_kubelet::Running) {
    let clock = Clock::starting_at(Timestamp::constant(1_767_225_600, 0), 1.0);
    let cluster = Cluster::start(Options::at(clock.clone()));
    let kubelet = Kubelet::new(cluster.lean_client("kubelet"), clock)
        .heartbeat(None)
        .spawn();
    let client = cluster.client("bench");
    (cluster, client, kubelet)
}

/// Waits until every pod of the only set runs its template and is Ready.
async fn converged(commits: &mut Commits) {
    while let Some(commit) = commits.recv().await {
        if &*commit.resource != "statefulsets.apps" {
            continue;
        }
        let status = |field: &str| commit.object.at(&["status", field]);
        let wanted = commit.object.at(&["spec", "replicas"]);
        if status("updatedReplicas") == wanted
            && status("readyReplicas") == wanted
            && status("observedGeneration") == commit.object.at(&["metadata", "generation"])
            && status("currentRevision") == status("updateRevision")
        {
            return;
        }
    }
}

fn ready(set: &StatefulSet) -> i32 {
    set.status
        .as_ref()
        .and_then(|status| status.ready_replicas)
        .unwrap_or(0)
}

fn set(name: &str, replicas: i32) -> StatefulSet {
    object(json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "example.com/db:v1"}]},
            },
        },
    }))
}

fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("an object")
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = status
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    pages * 4096
}
