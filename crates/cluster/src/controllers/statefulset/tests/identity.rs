//! The construction of a pod, and what the controller restores after an external change.

use crate::json::json;
use rstest::rstest;

use super::build::{claim, revision, revision_of};
use super::*;
use crate::status::{About, Status};

#[test]
fn a_pod_is_made_from_the_template_and_its_place() {
    let lab = Lab::new().with(set("db").claim("data").claim("logs"));
    lab.edit(|spec| {
        spec["template"]["metadata"] = json!({
            "labels": {"app": "db", "apps.kubernetes.io/pod-index": "template's"},
            "annotations": {"note": "hello"},
            "finalizers": ["example.com/hold"],
            "name": "ignored",
        });
        spec["template"]["spec"]["hostname"] = "own".into();
        spec["template"]["spec"]["subdomain"] = "own".into();
        spec["template"]["spec"]["volumes"] =
            json!([{"name": "tmp", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]);
    });
    lab.sync().unwrap();
    let pod = lab.object("pods", "db-0");
    let mut metadata = pod["metadata"].clone();
    for given_by_the_server in ["uid", "resourceVersion", "creationTimestamp"] {
        metadata.as_object_mut().unwrap().remove(given_by_the_server);
    }
    assert_eq!(
        metadata,
        json!({
            "name": "db-0",
            "generateName": "db-",
            "namespace": "lab",
            "labels": {
                "app": "db",
                "statefulset.kubernetes.io/pod-name": "db-0",
                "apps.kubernetes.io/pod-index": "0",
                "controller-revision-hash": lab.status("updateRevision"),
            },
            "annotations": {"note": "hello"},
            "finalizers": ["example.com/hold"],
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-of-db",
                "controller": true, "blockOwnerDeletion": true,
            }],
        })
    );
    assert_eq!(
        pod["spec"],
        json!({
            "containers": [{"name": "main", "image": "v1"}],
            "hostname": "db-0",
            "subdomain": "svc",
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}},
                {"name": "logs", "persistentVolumeClaim": {"claimName": "logs-db-0"}},
                {"name": "tmp", "emptyDir": {}},
            ],
        })
    );
}

#[test]
fn a_set_without_a_service_takes_the_subdomain_away() {
    let lab = Lab::new().with(set("db").spec("serviceName", "".into()));
    lab.edit(|spec| spec["template"]["spec"]["subdomain"] = "own".into());
    lab.sync().unwrap();
    assert!(lab.object("pods", "db-0")["spec"].get("subdomain").is_none());
}

#[test]
fn the_template_is_the_revisions_and_the_rest_the_sets() {
    let lab = Lab::settled(set("db").replicas(2).partition(2));
    lab.edit(|spec| {
        spec["template"] = build::template("v2");
        spec["serviceName"] = "new".into();
    });
    lab.remove("pods", "db-0");
    lab.settle();
    let pod = lab.object("pods", "db-0");
    assert_eq!(pod["spec"]["containers"][0]["image"], "v1");
    assert_eq!(pod["spec"]["subdomain"], "new");
}

#[test]
fn a_lost_name_label_is_put_back() {
    let lab = Lab::settled(set("db"));
    lab.change("pods", "db-0", |pod| {
        pod["metadata"]["labels"] = json!({"app": "db"})
    });
    lab.change("pods", "db-0", |pod| {
        pod["metadata"]["labels"]["controller-revision-hash"] = revision_of("v1").into()
    });
    assert_eq!(lab.synced(), ["update pods db-0"]);
    assert_eq!(
        lab.events(),
        ["SuccessfulUpdate: Update Pod db-0 in StatefulSet db successful"]
    );
    let labels = &lab.object("pods", "db-0")["metadata"]["labels"];
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "db-0");
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "0");
}

#[test]
fn a_lost_index_label_is_not_missed() {
    let lab = Lab::settled(set("db"));
    lab.change("pods", "db-0", |pod| {
        pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] = "x".into()
    });
    assert_eq!(lab.synced(), [] as [&str; 0]);
}

#[test]
fn a_pod_that_does_not_mount_its_claim_is_put_right() {
    let lab = Lab::settled(set("db").claim("data"));
    lab.change("pods", "db-0", |pod| {
        pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] = "x".into()
    });
    lab.remove("persistentvolumeclaims", "data-db-0");
    assert_eq!(
        lab.synced(),
        ["create persistentvolumeclaims data-db-0", "update pods db-0"]
    );
}

#[test]
fn a_pod_is_put_right_against_other_writers_four_times() {
    let about = About {
        group: "",
        plural: "pods",
        kind: "Pod",
        name: "db-0",
    };
    let lab = Lab::new()
        .with(set("db").current("v1"))
        .with(revision("v1", 1))
        .with(
            pod("db", 0)
                .ready()
                .label("statefulset.kubernetes.io/pod-name", "x"),
        )
        .refuse("update pods db-0", Status::modified(about));
    assert_eq!(lab.sync().unwrap_err().reason, "Conflict");
    assert_eq!(
        lab.writes()
            .iter()
            .filter(|write| *write == "update pods db-0")
            .count(),
        4
    );
    let events = lab.events();
    assert_eq!(events.len(), 1);
    assert!(
        events[0].starts_with("Warning FailedUpdate: Update Pod db-0 in StatefulSet db failed error: "),
        "{events:?}"
    );
}

#[rstest]
#[case::none(None, json!({"app": "db"}))]
#[case::over_the_templates_own(Some(json!({"app": "x", "vol": "v"})), json!({"app": "db", "vol": "v"}))]
fn a_claim_has_the_labels_that_the_set_selects_by(
    #[case] own: Option<crate::json::Value>,
    #[case] expected: crate::json::Value,
) {
    let lab = Lab::new().with(set("db").claim("data"));
    lab.edit(|spec| {
        if let Some(own) = own {
            spec["volumeClaimTemplates"][0]["metadata"]["labels"] = own;
        }
    });
    lab.sync().unwrap();
    let claim = lab.object("persistentvolumeclaims", "data-db-0");
    assert_eq!(claim["metadata"]["labels"], expected);
    assert_eq!(claim["spec"], json!({"accessModes": ["ReadWriteOnce"]}));
    assert!(claim["metadata"].get("ownerReferences").is_none());
}

#[test]
fn claims_come_before_their_pod() {
    let lab = Lab::new().with(set("db").claim("data")).with(revision("v1", 1));
    assert_eq!(
        lab.synced(),
        ["create persistentvolumeclaims data-db-0", "create pods db-0"]
    );
    assert_eq!(
        lab.events(),
        [
            "SuccessfulCreate: Create Claim data-db-0 Pod db-0 in StatefulSet db success",
            "SuccessfulCreate: Create Pod db-0 in StatefulSet db successful",
        ]
    );
}

#[test]
fn a_claim_that_is_being_deleted_holds_its_pod() {
    let lab = Lab::new()
        .with(set("db").claim("data"))
        .with(claim("data-db-0").terminating());
    assert_eq!(lab.sync().unwrap_err().message, "pvc data-db-0 is being deleted");
    assert_eq!(
        lab.events(),
        [
            "Warning FailedCreate: Create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted"
        ]
    );
    assert_eq!(lab.names("pods"), [] as [&str; 0]);
}

#[test]
fn a_refused_claim_holds_its_pod_but_not_the_other_claims() {
    let lab = Lab::new().with(set("db").claim("data").claim("logs")).refuse(
        "create persistentvolumeclaims data-db-0",
        Status::bad_request("no room"),
    );
    assert_eq!(
        lab.sync().unwrap_err().message,
        "failed to create PVC data-db-0: no room"
    );
    assert_eq!(lab.names("persistentvolumeclaims"), ["logs-db-0"]);
    assert_eq!(
        lab.events(),
        [
            "Warning FailedCreate: Create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: no room",
            "SuccessfulCreate: Create Claim logs-db-0 Pod db-0 in StatefulSet db success",
            "Warning FailedCreate: Create Pod db-0 in StatefulSet db failed error: failed to create PVC data-db-0: no room",
        ]
    );
}
