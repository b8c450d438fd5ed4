//! Fifty rollouts and a namespace whose users try to starve them, on a real plane: large responses, expensive conditions and patterns,
//! growing args, hosts that cannot be resolved, and templates that change all the time.

use std::time::{Duration, Instant};

use axum::routing::get;
use futures::future::join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use stateward_api::analysis::{AnalysisRun, AnalysisTemplate, INSTANCE, INSTANCE_LABEL};
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_kubelet::{Behaviour, Match};
use stateward_scenarios::harness::Backend;
use tokio::time::sleep;

use crate::fleet::Fleet;
use crate::process::Process;
use crate::row;

const SETS: usize = 50;
const ROUNDS: usize = 3;
const HOSTILE: &str = "hostile";

/// The memory limit of `deploy/install.yaml`, in MiB.
const LIMIT: u64 = 256;

pub(crate) async fn measure(real: &Backend) {
    let mut cluster = real.cluster("bench").await.unwrap();
    cluster.with_definitions().await.unwrap();
    cluster
        .pods()
        .program(Match::any(), Behaviour::ready_after(Duration::from_millis(500)));
    let client = cluster.client();
    let url = site().await;
    let fleet = Fleet::on_a_plane(client.clone(), cluster.namespace());
    let metric = json!({
        "name": "errors", "count": 1, "successCondition": "result.value < 0.05",
        "provider": {"web": {"url": format!("{url}good")}},
    });
    create::<AnalysisTemplate>(
        &client,
        cluster.namespace(),
        "checks",
        json!({"metrics": [metric]}),
    )
    .await;
    fleet.create_sets(0..SETS, 3).await;
    fleet.sets_settled(0..SETS).await;
    let operator = Process::start_for_all(cluster.kubeconfig().unwrap(), &["--allow-egress=127.0.0.1"]);
    let analysis = json!({"analysis": {"templates": [{"templateName": "checks"}]}});
    fleet
        .create_rollouts(0..SETS, json!([{"setWeight": 34}, analysis, {"setWeight": 67}]))
        .await;
    fleet.rollouts_settled(0..SETS).await;
    let mut version = 2;
    let mut rolled = async || {
        let mut took = Vec::new();
        for _ in 0..ROUNDS {
            let began = Instant::now();
            fleet.roll(0..SETS, &format!("v{version}")).await;
            fleet.sets_settled(0..SETS).await;
            fleet.rollouts_settled(0..SETS).await;
            took.push(began.elapsed().as_secs_f64());
            version += 1;
        }
        took.sort_by(f64::total_cmp);
        took[ROUNDS / 2]
    };
    let alone = rolled().await;
    let memory = operator.resident();
    let burnt = operator.cpu();
    let (made, is_made) = tokio::sync::oneshot::channel();
    let load = tokio::spawn(attack(client, url, made));
    is_made.await.unwrap();
    sleep(Duration::from_secs(10)).await;
    let began = Instant::now();
    let beside = rolled().await;
    row(
        &format!("{SETS} rollouts beside a hostile namespace, of the time without it"),
        format!("{:.2}", beside / alone),
        "1.50",
    );
    row("  without it", format!("{alone:.1} s"), "");
    row(
        "  memory, at most",
        format!("{} MiB", operator.most_resident()),
        format!("{LIMIT} MiB"),
    );
    row("  before that", format!("{memory} MiB"), "");
    let cores = (operator.cpu() - burnt).as_secs_f64() / (began.elapsed().as_secs_f64() + 10.0);
    row("  cores in use", format!("{cores:.2}"), "");
    load.abort();
    drop(operator);
    cluster.close().await.unwrap();
}

/// Creates all hostile objects, signals that, then changes templates until it is dropped.
async fn attack(client: Client, url: String, made: tokio::sync::oneshot::Sender<()>) {
    let namespace = serde_json::from_value::<Namespace>(json!({"metadata": {"name": HOSTILE}})).unwrap();
    Api::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
    let run = async |name: String, metric: Value, args: Value| {
        create::<AnalysisRun>(
            &client,
            HOSTILE,
            &name,
            json!({"metrics": [metric], "args": args}),
        )
        .await;
    };
    let each = |provider: Value, condition: &str| {
        json!({
            "name": "m", "interval": "1s", "count": 1000, "failureLimit": 1000, "consecutiveErrorLimit": 1000,
            "successCondition": condition, "provider": provider,
        })
    };
    for number in 0..20 {
        // 6: an arg that is repeated as often as a text allows.
        let growing = "{{args.a}}".repeat(3_000);
        let args = json!([{"name": "a", "value": "x".repeat(60_000)}]);
        run(
            format!("args-{number}"),
            each(json!({"prometheus": {"query": growing}}), "true"),
            args,
        )
        .await;
        // 8: patterns on a large text.
        let matches = ["(a|b)*c$", "(a+)+$", "(.*a){12}", "[^c]{200}"]
            .map(|pattern| format!("result matches {pattern:?}"));
        let web = json!({"web": {"url": format!("{url}text")}});
        run(
            format!("conditions-{number}"),
            each(web, &matches.join(" || ")),
            json!([]),
        )
        .await;
        // 10: a response of many small values.
        let web = json!({"web": {"url": format!("{url}objects")}});
        run(
            format!("answers-{number}"),
            each(web, "len(result) > 0"),
            json!([]),
        )
        .await;
    }
    // 9: hosts that do not exist.
    for number in 0..100 {
        let web = json!({"web": {"url": format!("http://h{number}.invalid/")}});
        let mut metric = each(web, "true");
        metric["interval"] = json!("10s");
        run(format!("hosts-{number}"), metric, json!([])).await;
    }
    // 11: the maximum number of replicas, each a step. The scheduler ignores their pods, so there is only one.
    let huge = json!({
        "replicas": 5_000, "serviceName": "huge", "selector": {"matchLabels": {"app": "huge"}},
        "template": {
            "metadata": {"labels": {"app": "huge"}},
            "spec": {"schedulerName": "none", "containers": [{"name": "main", "image": "example.com/db:v1"}]},
        },
    });
    create::<StatefulSet>(&client, HOSTILE, "huge", huge.clone()).await;
    let query = json!({"expr": "up", "url": "127.0.0.1:1"});
    let target = json!({"targetRef": "huge", "check": {"query": query}});
    create::<PhasedRollout>(&client, HOSTILE, "huge", target).await;
    // Responses that cannot be parsed: too deep, and as many values as possible in few bytes.
    let deep = (0..1_000).fold(json!(1), |inner, _| json!([inner]));
    let fat = json!(vec![json!({"": 0}); 180_000]);
    for (number, value) in (0..20).flat_map(|number| [(number, &deep), (number + 20, &fat)]) {
        let spec = json!({
            "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "none"},
            "plugin": {"name": "statefulset", "config": {"a": value}}, "strategy": {"canary": {}},
        });
        create::<RolloutPlugin>(&client, HOSTILE, &format!("unreadable-{number}"), spec).await;
    }
    let env: Vec<_> = (0..60_000)
        .map(|number| json!({"name": format!("E{number}")}))
        .collect();
    let mut fat = huge.clone();
    fat["replicas"] = json!(0);
    fat["template"]["spec"]["containers"][0]["env"] = json!(env);
    create::<StatefulSet>(&client, HOSTILE, "fat", fat).await;
    // 7: patterns close to the limit, in templates that change.
    for number in 0..3 {
        let name = format!("patterns-{number}");
        create::<AnalysisTemplate>(&client, HOSTILE, &name, patterns(0)).await;
        let step = json!({"analysis": {"templates": [{"templateName": name}]}});
        let spec = json!({
            "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "none"},
            "plugin": {"name": "statefulset"},
            "strategy": {"canary": {"steps": vec![step; 100]}},
        });
        create::<RolloutPlugin>(&client, HOSTILE, &name, spec).await;
    }
    let _ = made.send(());
    let templates: Api<AnalysisTemplate> = Api::namespaced(client.clone(), HOSTILE);
    for round in 1.. {
        let changes = (0..3).map(|number| {
            let (templates, patch) = (templates.clone(), Patch::Merge(json!({"spec": patterns(round)})));
            async move {
                let name = format!("patterns-{number}");
                templates.patch(&name, &PatchParams::default(), &patch).await
            }
        });
        join_all(changes).await;
        sleep(Duration::from_millis(200)).await;
    }
}

/// A template with as many patterns as allowed, each nearly as large as their total limit.
fn patterns(round: usize) -> Value {
    let metric = json!({"name": "errors", "provider": {"prometheus": {"query": format!("up{round}")}}});
    let dry: Vec<_> = (0..100)
        .map(|index| json!({"metricName": format!("^([a-z]{{20}}|errors{index}|errors)")}))
        .collect();
    json!({"metrics": [metric], "dryRun": dry, "measurementRetention": []})
}

async fn create<K: kube::Resource<DynamicType = ()>>(
    client: &Client,
    namespace: &str,
    name: &str,
    spec: Value,
) {
    let resource = ApiResource::erase::<K>(&());
    let object = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": {"name": name, "labels": {INSTANCE_LABEL: INSTANCE}}, "spec": spec,
    });
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    let request = kube::core::Request::new(api.resource_url());
    let request = request.create(&PostParams::default(), object.to_string().into_bytes());
    // The response may be one that cannot be parsed.
    client.request_text(request.unwrap()).await.unwrap();
}

/// A web server with responses of every kind.
async fn site() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let text = "ab".repeat(256 * 1024 - 1);
    let objects = format!("[{}{{}}]", r#"{"":0},"#.repeat(70_000));
    let json = [("content-type", "application/json")];
    let router = axum::Router::new()
        .route("/good", get(async || r#"{"value": 0.01}"#))
        .route("/text", get(async || text))
        .route("/objects", get(async move || (json, objects)));
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/")
}
