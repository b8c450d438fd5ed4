//! `lint` agrees with the embedded API server about built-in kinds: what the server rejects is an error, what it accepts is not.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::world::World;

/// Valid objects of kinds that charts contain and whose fields the embedded server validates, with the paths to create them at.
fn objects() -> Vec<(&'static str, Value)> {
    let pod = json!({
        "metadata": {"labels": {"app": "db"}, "annotations": {"a/b": "c"}},
        "spec": {
            "terminationGracePeriodSeconds": 30, "serviceAccountName": "db", "hostNetwork": false,
            "securityContext": {"fsGroup": 1001, "fsGroupChangePolicy": "Always", "sysctls": [{"name": "a.b", "value": "1"}]},
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchExpressions": [
                    {"key": "app", "operator": "In", "values": ["db"]},
                ]}}},
            ]}},
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
            "initContainers": [{"name": "init", "image": "init:1", "command": ["sh"], "restartPolicy": "Always"}],
            "containers": [{
                "name": "db", "image": "db:1", "imagePullPolicy": "IfNotPresent", "args": ["--fast"],
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "db", "key": "b", "optional": true}}},
                ],
                "envFrom": [{"configMapRef": {"name": "db"}}],
                "ports": [{"name": "tcp", "containerPort": 5432, "protocol": "TCP"}],
                "livenessProbe": {"httpGet": {"path": "/", "port": "tcp", "httpHeaders": [{"name": "X", "value": "y"}]}, "periodSeconds": 5},
                "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"cpu": 1}},
                "securityContext": {"runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "config", "mountPath": "/config", "readOnly": true}],
            }],
            "volumes": [
                {"name": "config", "configMap": {"name": "db", "defaultMode": 420, "items": [{"key": "a", "path": "b"}]}},
                {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
            ],
        },
    });
    let metadata =
        json!({"name": "db", "labels": {"app": "db"}, "annotations": {"x": "y"}, "finalizers": ["a.b/c"]});
    let selector = json!({"matchLabels": {"app": "db"}});
    vec![
        (
            "/apis/apps/v1/namespaces/default/statefulsets",
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {
                "replicas": 5, "serviceName": "db", "selector": selector, "template": pod, "podManagementPolicy": "Parallel",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, "minReadySeconds": 3,
                "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}, "ordinals": {"start": 1},
                "volumeClaimTemplates": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {
                    "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "8Gi"}}, "storageClassName": "fast",
                }}],
            }}),
        ),
        (
            "/api/v1/namespaces/default/services",
            json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {
                "type": "ClusterIP", "selector": {"app": "db"}, "publishNotReadyAddresses": true, "sessionAffinity": "None",
                "ports": [{"name": "db", "port": 5432, "targetPort": "tcp", "protocol": "TCP"}],
            }}),
        ),
        (
            "/api/v1/namespaces/default/configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"},
                "binaryData": {"c": "aGk="}, "immutable": false}),
        ),
        (
            "/api/v1/namespaces/default/secrets",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {"a": "aGk="}, "stringData": {"b": "c"},
                "type": "Opaque"}),
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {
                "selector": selector, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
                "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{
                    "name": "web", "image": "web:1", "tty": true, "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
                    "startupProbe": {"exec": {"command": ["true"]}}, "readinessProbe": {"tcpSocket": {"port": 80}},
                }]}},
            }}),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
                "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ),
        (
            "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata,
                "spec": {"maxUnavailable": "50%", "selector": selector}}),
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "db"},
                "subjects": [{"kind": "ServiceAccount", "name": "db", "namespace": "default"}]}),
        ),
        (
            "/apis/batch/v1/namespaces/default/cronjobs",
            json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": {
                "schedule": "0 3 * * *", "concurrencyPolicy": "Forbid", "suspend": false, "jobTemplate": {"spec": {
                    "backoffLimit": 3, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
                }},
            }}),
        ),
    ]
}

/// All variants of an object with one change.
fn changed(object: &Value) -> Vec<Value> {
    let mut places = Vec::new();
    find_places(object, String::new(), &mut places);
    let others = [
        json!("text"),
        json!(""),
        json!(7),
        json!(0.5),
        json!(true),
        json!([]),
        json!({}),
        json!(null),
    ];
    let mut changed = vec![object.clone()];
    for place in places {
        for other in &others {
            let mut copy = object.clone();
            *copy.pointer_mut(&place).unwrap() = other.clone();
            changed.push(copy);
        }
        let (parent, name) = place.rsplit_once('/').unwrap();
        let name = name.replace("~1", "/");
        for renamed in [None, Some(format!("{name}x")), Some(name.to_uppercase())] {
            let mut copy = object.clone();
            if let Value::Object(fields) = copy.pointer_mut(parent).unwrap() {
                let value = fields.remove(&name).unwrap();
                fields.extend(renamed.map(|renamed| (renamed, value)));
                changed.push(copy);
            }
        }
    }
    changed
}

fn find_places(value: &Value, at: String, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => {
            let escaped = |name: &String| name.replace('/', "~1");
            fields
                .iter()
                .map(|(name, value)| (escaped(name), value))
                .collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(index, value)| (index.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    for (name, value) in inner {
        let place = format!("{at}/{name}");
        // The kind determines where an object is sent.
        if !["/apiVersion", "/kind"].contains(&place.as_str()) {
            found.push(place.clone());
            find_places(value, place, found);
        }
    }
}

/// Which of these have an error: each is a document on its own line.
async fn wrong(world: &World, objects: &[Value]) -> Vec<bool> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("objects.yaml");
    let lines: Vec<_> = objects.iter().map(|object| format!("--- {object}\n")).collect();
    std::fs::write(&file, lines.concat()).unwrap();
    let said = world.run(&format!("lint -o json {}", file.display())).await;
    let findings: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let lines: BTreeSet<_> = findings
        .iter()
        .filter(|finding| finding["severity"] == "error")
        .map(|finding| finding["line"].as_u64().unwrap())
        .collect();
    (1..=objects.len() as u64)
        .map(|line| lines.contains(&line))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn what_the_server_cannot_read_is_an_error_and_what_it_takes_is_none() {
    let world = World::bare();
    let (mut taken, mut unread, mut differ) = (0, 0, Vec::new());
    for (path, object) in objects() {
        let (code, body) = world.dry_run(path, &object).await;
        assert_eq!(code, 201, "{body}");
        let changed = changed(&object);
        let wrong = wrong(&world, &changed).await;
        for (object, is_wrong) in changed.iter().zip(wrong) {
            let (code, body) = world.dry_run(path, object).await;
            let agrees = match code {
                201 => {
                    taken += 1;
                    !is_wrong
                }
                400 => {
                    unread += 1;
                    is_wrong
                }
                // Only the server checks relations between fields.
                422 => true,
                other => panic!("{other}: {body}"),
            };
            if !agrees {
                differ.push(format!("{code} {body}\n  of {object}"));
            }
        }
    }
    assert!(
        differ.is_empty(),
        "{} differ:\n{}",
        differ.len(),
        differ.join("\n")
    );
    assert!(taken > 100 && unread > 1000, "{taken} taken, {unread} not read");
}
