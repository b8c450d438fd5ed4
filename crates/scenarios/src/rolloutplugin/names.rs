//! Names that would turn a request into a different one, in every field that names an object: no request leaves the namespace.

use std::time::Duration;

use serde_json::{Value, json};
use stateward_api::analysis::{INSTANCE, INSTANCE_LABEL};
use stateward_api::names::HOSTILE_NAMES;
use stateward_kubelet::{Behaviour, Match};

use super::analysis::job;
use crate::harness::{Cluster, Failure, Outcome};
use crate::scenarios;

scenarios![no_name_makes_a_request_leave_the_namespace];

/// An object with a hostile name in some field.
struct Hostile {
    plural: &'static str,
    prefix: &'static str,
    object: fn(&str) -> Value,
}

/// A run of our operator with this metric and these args.
fn run(mut metric: Value, args: Value) -> Value {
    metric["consecutiveErrorLimit"] = json!(0);
    json!({"metadata": {"labels": {INSTANCE_LABEL: INSTANCE}}, "spec": {"metrics": [metric], "args": args}})
}

fn rollout(workload: &str, steps: Value) -> Value {
    json!({"spec": {
        "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": workload},
        "plugin": {"name": "statefulset"}, "strategy": {"canary": {"steps": steps}},
    }})
}

fn phased(target: &str, secret: Option<&str>) -> Value {
    let query = json!({"expr": "up", "url": "http://127.0.0.1:1", "secretRef": secret});
    json!({"spec": {"targetRef": target, "check": {"query": query}}})
}

fn web() -> Value {
    json!({"web": {"url": "http://127.0.0.1:1", "headers": [{"key": "a", "value": "{{args.token}}"}]}})
}

fn smoke(name: &str) -> Value {
    job("smoke:good", json!({ "name": name }))
}

const FIELDS: [Hostile; 10] = [
    Hostile {
        plural: "rolloutplugins",
        prefix: "workload",
        object: |name| rollout(name, json!([])),
    },
    Hostile {
        plural: "rolloutplugins",
        prefix: "template",
        object: |name| {
            rollout(
                "none",
                json!([{"analysis": {"templates": [{"templateName": name}]}}]),
            )
        },
    },
    Hostile {
        plural: "phasedrollouts",
        prefix: "target",
        object: |name| phased(name, None),
    },
    Hostile {
        plural: "phasedrollouts",
        prefix: "query-secret",
        object: |name| phased("none", Some(name)),
    },
    Hostile {
        plural: "analysistemplates",
        prefix: "taken-in",
        object: |name| json!({"spec": {"templates": [{"templateName": name}]}}),
    },
    Hostile {
        plural: "analysisruns",
        prefix: "arg",
        object: |name| {
            let secret = json!({"secretKeyRef": {"name": name, "key": "token"}});
            run(
                json!({"name": "m", "provider": web()}),
                json!([{"name": "token", "valueFrom": secret}]),
            )
        },
    },
    Hostile {
        plural: "analysisruns",
        prefix: "datadog",
        object: |name| {
            let datadog = json!({"query": "q", "secretRef": {"name": name, "namespaced": true}});
            run(json!({"name": "m", "provider": {"datadog": datadog}}), json!([]))
        },
    },
    Hostile {
        plural: "analysisruns",
        prefix: "newrelic",
        object: |name| {
            let newrelic = json!({"query": "q", "profile": name});
            run(
                json!({"name": "m", "provider": {"newRelic": newrelic}}),
                json!([]),
            )
        },
    },
    Hostile {
        plural: "analysisruns",
        prefix: "metric",
        object: |name| run(smoke(name), json!([])),
    },
    // As if a measurement were in progress.
    Hostile {
        plural: "analysisruns",
        prefix: "job",
        object: |name| {
            let mut run = run(smoke("m"), json!([]));
            let begun = "2026-01-01T00:00:00Z";
            let measurement = json!({"phase": "Running", "startedAt": begun, "metadata": {"job-name": name}});
            run["status"] = json!({
                "phase": "Running", "startedAt": begun,
                "metricResults": [{"name": "m", "phase": "Running", "measurements": [measurement]}],
            });
            run
        },
    },
];

/// Whether a request targets this namespace or cluster-scoped objects, and names at most one object.
fn stays(path: &str, namespace: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
    };
    let parts: Vec<_> = path.trim_start_matches('/').split('/').collect();
    let below = match parts.as_slice() {
        ["api", "v1", below @ ..] | ["apis", _, _, below @ ..] => below,
        _ => return false,
    };
    match below {
        ["namespaces", here, plural @ ..] => {
            *here == namespace && (1..=3).contains(&plural.len()) && plural.iter().all(|part| is_part(part))
        }
        [plural] => *plural == "clusteranalysistemplates",
        _ => false,
    }
}

async fn no_name_makes_a_request_leave_the_namespace(cluster: &mut Cluster) -> Outcome {
    cluster.ask_providers();
    let passes = Behaviour::exits(0, Duration::from_secs(1));
    cluster.pods().program(Match::image("smoke:good"), passes);
    // The default Secrets, used if no name is given.
    for secret in ["datadog", "newrelic"] {
        cluster.let_operator_read(secret).await?;
    }
    cluster.with_operator().await?;
    let mut made = Vec::new();
    for field in FIELDS {
        for (index, hostile) in HOSTILE_NAMES.iter().enumerate() {
            let name = format!("{}-{index}", field.prefix);
            match cluster.create(field.plural, &name, (field.object)(hostile)).await {
                Ok(()) => made.push((field.plural, name)),
                // The API server itself rejects it.
                Err(Failure::Request { source, .. }) if matches!(&*source, kube::Error::Api(status) if matches!(status.code, 400 | 422)) =>
                    {}
                Err(other) => return Err(other),
            }
        }
    }
    cluster.expect("some were taken by the server", made.len() > 50)?;
    cluster
        .eventually("each has had its turn", |view| {
            let is_late = |(plural, name): &&(&str, String)| match *plural {
                "rolloutplugins" => view
                    .rollouts
                    .get(name)
                    .is_none_or(|rollout| rollout.status.is_none()),
                "phasedrollouts" => view
                    .phased
                    .get(name)
                    .is_none_or(|rollout| rollout.status.is_none()),
                "analysisruns" => {
                    let run = view.runs.get(name);
                    let status = run.and_then(|run| run.status.as_ref());
                    status.is_none_or(|status| !status.phase.is_over())
                }
                _ => false,
            };
            let late: Vec<_> = made.iter().filter(is_late).collect();
            if late.is_empty() {
                Ok(())
            } else {
                Err(format!("{late:?}"))
            }
        })
        .await?;
    let paths = cluster.operator_paths();
    let own = format!("/namespaces/{}/analysisruns/", cluster.namespace());
    cluster.expect(
        "the runs were written to",
        paths.iter().any(|path| path.contains(&own)),
    )?;
    let strays: Vec<_> = paths
        .iter()
        .filter(|path| !stays(path, cluster.namespace()))
        .collect();
    if !strays.is_empty() {
        return Err(cluster.unmet("requests for this namespace", format!("{strays:#?}")));
    }
    Ok(())
}
