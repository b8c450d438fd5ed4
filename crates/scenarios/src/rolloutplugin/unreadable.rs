//! Objects that the operator cannot deserialize, or rejects because of their size: none of them blocks another.

use http::Request;
use serde_json::{Value, json};
use stateward_api::analysis::{INSTANCE, INSTANCE_LABEL};
use stateward_api::rolloutplugin::RolloutPlugin;

use super::analysis::{analysis, metric, template};
use crate::harness::{Cluster, Doing, Failure, Outcome, Rollout};
use crate::scenarios;

scenarios![
    objects_that_cannot_be_read_hide_no_other,
    a_template_of_too_many_values_is_refused_until_it_is_smaller,
    a_counter_at_its_maximum_ends_a_run_and_nothing_else,
    a_time_that_nobody_can_read_is_refused,
];

/// A value with this nesting depth. The embedded cluster rejects more than 127 levels, as a JSON parser with a limit does.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!({ "f:a": inner }))
}

/// The API path of our kinds.
const OURS: &str = "/apis/argoproj.io/v1alpha1";

/// Creates or changes an object in the scenario's namespace without reading the answer. Returns whether the server accepted it.
async fn send(cluster: &Cluster, method: &str, group: &str, rest: &str, body: &Value) -> Outcome<bool> {
    cluster.note(&format!("{method} {rest}"));
    let content = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(format!("{group}/namespaces/{}/{rest}", cluster.namespace()))
        .header("content-type", content)
        .body(body.to_string().into_bytes())
        .map_err(kube::Error::HttpError)
        .doing("make a request")?;
    match cluster.client().request_text(request).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(refusal)) if refusal.code == 400 => Ok(false),
        Err(error) => Err(error).doing(format!("{method} {rest}")),
    }
}

/// An object of one of our kinds.
fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": kind,
        "metadata": {"name": name, "labels": {INSTANCE_LABEL: INSTANCE}}, "spec": spec,
    })
}

fn rollout(config: &Value) -> Value {
    json!({
        "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "none"},
        "plugin": {"name": "statefulset", "config": {"a": config}}, "strategy": {"canary": {}},
    })
}

fn web(body: &Value) -> Value {
    let web = json!({"url": "http://127.0.0.1:1/", "method": "POST", "jsonBody": body});
    json!({"metrics": [metric("errors", json!({"provider": {"prometheus": null, "web": web}}))]})
}

async fn objects_that_cannot_be_read_hide_no_other(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    template(cluster, "good", json!({"metrics": [metric("errors", json!({}))]})).await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let good = cluster.rollout("db").start().await?;
    let many = json!(vec![0; 20_000]);
    for (name, value) in [("deep", nested(500)), ("fat", many)] {
        let objects = [
            ("rolloutplugins", object("RolloutPlugin", name, &rollout(&value))),
            (
                "analysistemplates",
                object("AnalysisTemplate", name, &web(&value)),
            ),
            ("analysisruns", object("AnalysisRun", name, &web(&value))),
        ];
        let mut taken = false;
        for (plural, object) in objects {
            taken = send(cluster, "POST", OURS, plural, &object).await?;
        }
        cluster.expect(
            "the server takes them",
            taken || name == "deep" && !cluster.has_access_control(),
        )?;
        if taken {
            let why = match name {
                "deep" => "spec: values are nested more than 120 levels deep",
                _ => "spec: it has more than 20000 values",
            };
            let unreadable = Rollout::<RolloutPlugin>::new(cluster, name);
            unreadable.expect_event("InvalidObject", why).await?;
        }
    }
    let fields = json!({"f:metadata": {"f:annotations": nested(500)}});
    let managed = json!([{
        "manager": "deep", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": fields,
    }]);
    let managed = json!({"metadata": {"managedFields": managed}});
    send(cluster, "PATCH", "/apis/apps/v1", "statefulsets/db", &managed).await?;
    send(cluster, "PATCH", "/api/v1", "pods/db-0", &managed).await?;
    // Lists and watches both continue.
    db.set_image("v2").await?;
    db.expect_images(["v2"; 2]).await?;
    good.expect_phase("Successful").await?;
    cluster.stop_operator();
    cluster.start_operator();
    db.set_image("v3").await?;
    db.expect_images(["v3"; 2]).await?;
    good.expect_phase("Successful").await?;

    let steps = json!([{"setWeight": 50}, analysis("fat")]);
    let cache = cluster.statefulset("cache").replicas(1).start().await?;
    let concerned = cluster.rollout("cache").steps(steps).create().await?;
    let why = "AnalysisTemplate fat cannot be read: spec: it has more than 20000 values";
    concerned.expect_condition("InvalidSpec", "True", why).await?;
    cache.expect_rest(["v1"]).await
}

async fn a_template_of_too_many_values_is_refused_until_it_is_smaller(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(2).start().await?;
    let rollout = cluster.rollout("db").start().await?;
    let env = |count: usize| -> Value {
        let env: Vec<_> = (0..count)
            .map(|number| json!({"name": format!("E{number}")}))
            .collect();
        let containers = json!([{"name": "main", "image": "example.com/db:v1", "env": env}]);
        json!({"spec": {"template": {"spec": {"containers": containers}}}})
    };
    let (group, path) = ("/apis/apps/v1", "statefulsets/db");
    let taken = send(cluster, "PATCH", group, path, &env(5_100)).await?;
    cluster.expect("the server takes it", taken)?;
    let words = "spec.template of StatefulSet db has more than 50000 values";
    rollout.expect_condition("Stalled", "True", words).await?;
    rollout.expect_event("WorkloadUnfit", words).await?;
    send(cluster, "PATCH", group, path, &env(0)).await?;
    rollout.expect_phase("Successful").await?;
    db.expect_rest(["v1"; 2]).await
}

/// An AnalysisRun has no status subresource, so its author can write its counters.
async fn a_counter_at_its_maximum_ends_a_run_and_nothing_else(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let provider = json!({"prometheus": null, "web": {"url": "http://127.0.0.1:1/"}});
    let endless = metric("errors", json!({"provider": provider, "interval": "1s"}));
    let counters = [
        "count",
        "error",
        "consecutiveError",
        "successful",
        "failed",
        "inconclusive",
    ];
    let mut result = json!({"name": "errors", "phase": "Running"});
    for counter in counters {
        result[counter] = json!(i32::MAX);
    }
    let mut run = object("AnalysisRun", "own", &json!({"metrics": [endless]}));
    run["status"] = json!({"phase": "Running", "metricResults": [result]});
    send(cluster, "POST", OURS, "analysisruns", &run).await?;
    cluster
        .eventually("the run ends", |view| {
            let status = view.runs.get("own").and_then(|run| run.status.clone());
            match status {
                Some(status) if status.phase.is_over() => Ok(()),
                status => Err(format!("{status:?}")),
            }
        })
        .await?;
    let db = cluster.statefulset("db").replicas(1).start().await?;
    cluster.rollout("db").start().await?;
    db.expect_rest(["v1"]).await
}

/// One such time in a status would make the whole object fail to deserialize, and block an abort.
async fn a_time_that_nobody_can_read_is_refused(cluster: &mut Cluster) -> Outcome {
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(1).start().await?;
    let rollout = cluster.rollout("db").start().await?;
    for time in [
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00Z",
        "2026-01-01T00:00:00+99:99",
        "2026-01-01T00:00:00.0000000000Z",
    ] {
        let status = json!({"abortedAt": time});
        match rollout.overwrite(status).await {
            Err(Failure::Request { source, .. }) if source.to_string().contains("status.abortedAt") => {}
            other => return Err(cluster.unmet(format!("{time} is refused"), format!("{other:?}"))),
        }
    }
    rollout
        .overwrite(json!({"abortedAt": "2026-01-01T00:00:00.123456789+01:00"}))
        .await?;
    db.set_image("v2").await?;
    db.expect_rest(["v2"]).await?;
    rollout.expect_phase("Successful").await.map(drop)
}
