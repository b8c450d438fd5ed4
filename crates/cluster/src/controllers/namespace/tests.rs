//! Namespaces from creation to deletion, on the fake server.

use super::bootstrap::{RootCaPublisher, ServiceAccountController};
use super::*;
use crate::controllers::fake::Lab;

fn lab() -> Lab {
    let publisher = RootCaPublisher {
        certificate: "pem".into(),
    };
    Lab::new(vec![
        Box::new(NamespaceController),
        Box::new(ServiceAccountController),
        Box::new(publisher),
    ])
}

fn namespace(lab: &mut Lab) {
    let status = json!({"phase": "Active"});
    lab.fake.put(
        NAMESPACES,
        json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}, "status": status}),
    );
    lab.settle();
}

impl Lab {
    fn delete_namespace(&mut self) {
        self.fake.delete(NAMESPACES, "", "n", json!({})).unwrap();
        self.settle();
    }

    /// A condition of the namespace: `True SomeResourcesRemain Some …`.
    fn condition(&self, kind: &str) -> String {
        let namespace = self.fake.get(NAMESPACES, "", "n").unwrap();
        let conditions = namespace["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let condition = conditions
            .into_iter()
            .find(|condition| condition["type"] == kind)
            .unwrap_or_default();
        let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", text("status"), text("reason"), text("message"))
    }
}

#[test]
fn a_new_namespace_gets_a_service_account_and_the_certificate_and_keeps_them() {
    let mut lab = lab();
    namespace(&mut lab);
    assert_eq!(lab.fake.names("serviceaccounts", "n"), ["default"]);
    let map = lab.fake.get("configmaps", "n", "kube-root-ca.crt").unwrap();
    assert_eq!(map["data"], json!({"ca.crt": "pem"}));
    assert!(
        map["metadata"]["annotations"]["kubernetes.io/description"]
            .as_str()
            .unwrap()
            .starts_with("Contains a CA")
    );

    lab.fake.remove("serviceaccounts", "n", "default");
    lab.fake.change("configmaps", "n", "kube-root-ca.crt", |map| {
        map["data"]["ca.crt"] = "forged".into()
    });
    lab.settle();
    assert_eq!(lab.fake.names("serviceaccounts", "n"), ["default"]);
    assert_eq!(
        lab.fake.get("configmaps", "n", "kube-root-ca.crt").unwrap()["data"]["ca.crt"],
        "pem"
    );
}

#[test]
fn a_namespace_goes_with_all_that_is_in_it_and_nothing_else() {
    let mut lab = lab();
    namespace(&mut lab);
    lab.fake.put(
        "rollouts.example.com",
        json!({"metadata": {"name": "r", "namespace": "n"}}),
    );
    lab.fake.put(
        "configmaps",
        json!({"metadata": {"name": "kept", "namespace": "other"}}),
    );
    lab.fake
        .put("persistentvolumes", json!({"metadata": {"name": "disk"}}));
    lab.delete_namespace();
    assert_eq!(lab.fake.names(NAMESPACES, ""), [] as [&str; 0]);
    for resource in ["rollouts.example.com", "serviceaccounts", "configmaps"] {
        assert_eq!(lab.fake.names(resource, "n"), [] as [&str; 0], "{resource}");
    }
    assert_eq!(lab.fake.names("configmaps", "other"), ["kept"]);
    assert_eq!(lab.fake.names("persistentvolumes", ""), ["disk"]);
}

#[test]
fn pods_end_before_anything_else_goes() {
    let mut lab = lab();
    namespace(&mut lab);
    let spec = json!({"nodeName": "node", "terminationGracePeriodSeconds": 6});
    lab.fake.put(
        PODS,
        json!({"metadata": {"name": "slow", "namespace": "n"}, "spec": spec}),
    );
    lab.delete_namespace();
    assert!(object::is_terminating(&lab.fake.get(PODS, "n", "slow").unwrap()));
    assert_eq!(lab.fake.names("configmaps", "n"), ["kube-root-ca.crt"]);
    assert_eq!(
        lab.condition("NamespaceContentRemaining"),
        "False ContentRemoved All content successfully removed"
    );

    lab.seconds(8);
    assert_eq!(
        lab.condition("NamespaceDeletionContentFailure"),
        "True ContentDeletionFailed Failed to delete all resource types, 1 remaining: unexpected items still remain in \
         namespace: n for gvr: /v1, Resource=pods"
    );
    lab.fake.remove(PODS, "n", "slow");
    lab.seconds(2);
    assert_eq!(lab.fake.names(NAMESPACES, ""), [] as [&str; 0]);
}

#[test]
fn what_stays_is_told_in_the_conditions() {
    let mut lab = lab();
    namespace(&mut lab);
    let held = json!({"metadata": {"name": "held", "namespace": "n", "finalizers": ["example.com/held"]}});
    lab.fake.put("configmaps", held.clone());
    lab.fake.put("statefulsets.apps", held);
    lab.delete_namespace();
    assert_eq!(
        lab.condition("NamespaceContentRemaining"),
        "True SomeResourcesRemain Some resources are remaining: configmaps. has 1 resource instances, \
         statefulsets.apps has 1 resource instances"
    );
    assert_eq!(
        lab.condition("NamespaceFinalizersRemaining"),
        "True SomeFinalizersRemain Some content in the namespace has finalizers remaining: example.com/held in 2 \
         resource instances"
    );
    assert_eq!(
        lab.condition("NamespaceDeletionDiscoveryFailure"),
        "False ResourcesDiscovered All resources successfully discovered"
    );
    for resource in ["configmaps", "statefulsets.apps"] {
        lab.fake.change(resource, "n", "held", |held| {
            held["metadata"]["finalizers"] = json!([])
        });
    }
    lab.seconds(8);
    assert_eq!(lab.fake.names(NAMESPACES, ""), [] as [&str; 0]);
}

#[test]
fn the_finalizers_of_others_keep_the_namespace() {
    let mut lab = lab();
    namespace(&mut lab);
    lab.fake.change(NAMESPACES, "", "n", |namespace| {
        namespace["spec"]["finalizers"] = json!(["kubernetes", "example.com/b", "example.com/a"]);
    });
    lab.delete_namespace();
    let namespace = lab.fake.get(NAMESPACES, "", "n").unwrap();
    assert_eq!(
        namespace["spec"]["finalizers"],
        json!(["example.com/a", "example.com/b"])
    );
}
