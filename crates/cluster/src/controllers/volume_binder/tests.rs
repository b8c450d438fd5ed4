use rstest::rstest;

use super::*;
use crate::controllers::fake::Lab;

fn lab() -> Lab {
    Lab::new(vec![Box::new(VolumeBinder::default())])
}

/// An object with other fields in its spec.
fn with(mut object: Value, changes: Value) -> Value {
    for (field, value) in changes.as_object().unwrap() {
        object["spec"][&**field] = value.clone();
    }
    object
}

fn volume(changes: Value) -> Value {
    let made = json!({
        "metadata": {"name": "disk"},
        "spec": {
            "claimRef": {"namespace": "n", "name": "data"},
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
        },
        "status": {"phase": "Pending"},
    });
    with(made, changes)
}

fn claim(changes: Value) -> Value {
    let made = json!({
        "metadata": {"name": "data", "namespace": "n"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2048Mi"}}},
        "status": {"phase": "Pending"},
    });
    with(made, changes)
}

fn phase(lab: &Lab, resource: &str, namespace: &str, name: &str) -> String {
    let object = lab.fake.get(resource, namespace, name).unwrap();
    object["status"]["phase"].as_str().unwrap().to_owned()
}

fn phases(lab: &Lab) -> [String; 2] {
    [phase(lab, VOLUMES, "", "disk"), phase(lab, CLAIMS, "n", "data")]
}

#[test]
fn a_claim_is_bound_to_the_volume_that_was_made_for_it() {
    let mut lab = lab();
    let uid = object::uid(&lab.fake.put(CLAIMS, claim(json!({})))).to_owned();
    let made = json!({"namespace": "n", "name": "data", "uid": uid});
    lab.fake.put(VOLUMES, volume(json!({"claimRef": made})));
    lab.settle();
    assert_eq!(phases(&lab), ["Bound", "Bound"]);
    let (volume, claim) = (
        lab.fake.get(VOLUMES, "", "disk").unwrap(),
        lab.fake.get(CLAIMS, "n", "data").unwrap(),
    );
    assert_eq!(volume["spec"]["claimRef"], made, "nothing is missing there");
    assert_eq!(claim["spec"]["volumeName"], "disk");
    assert_eq!(
        claim["metadata"]["annotations"],
        json!({BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"})
    );
    assert_eq!(
        claim["status"],
        json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}})
    );
}

#[test]
fn a_claim_that_comes_after_its_volume_is_bound_too_and_the_volume_knows_it() {
    let mut lab = lab();
    lab.fake.put(VOLUMES, volume(json!({})));
    lab.settle();
    assert_eq!(phase(&lab, VOLUMES, "", "disk"), "Available");
    let claim = lab.fake.put(CLAIMS, claim(json!({})));
    lab.settle();
    assert_eq!(phases(&lab), ["Bound", "Bound"]);
    let known = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": "n", "name": "data",
        "uid": object::uid(&claim), "resourceVersion": object::resource_version(&claim),
    });
    let volume = lab.fake.get(VOLUMES, "", "disk").unwrap();
    assert_eq!(volume["spec"]["claimRef"], known);
    assert_eq!(
        volume["metadata"]["annotations"],
        Value::Null,
        "it was meant for the claim before"
    );
}

#[rstest]
#[case::too_small(json!({"capacity": {"storage": "1Gi"}}), json!({}))]
#[case::other_access(json!({}), json!({"accessModes": ["ReadWriteMany"]}))]
#[case::other_mode(json!({"volumeMode": "Block"}), json!({"volumeMode": "Filesystem"}))]
#[case::other_attributes(json!({}), json!({"volumeAttributesClassName": "gold"}))]
#[case::nobodys(json!({"claimRef": null}), json!({}))]
fn a_volume_that_does_not_fit_is_left_alone_unless_the_claim_names_it(
    #[case] offer: Value,
    #[case] wish: Value,
) {
    let mut lab = lab();
    lab.fake.put(CLAIMS, claim(wish.clone()));
    lab.fake.put(VOLUMES, volume(offer.clone()));
    lab.settle();
    assert_eq!(phases(&lab), ["Available", "Pending"]);

    let mut lab = self::lab();
    lab.fake
        .put(CLAIMS, with(claim(wish), json!({"volumeName": "disk"})));
    lab.fake.put(VOLUMES, volume(offer.clone()));
    lab.settle();
    assert_eq!(phases(&lab), ["Bound", "Bound"]);
    let annotations = |object: Option<Arc<Value>>| object.unwrap()["metadata"]["annotations"].clone();
    assert_eq!(
        annotations(lab.fake.get(CLAIMS, "n", "data")),
        json!({BIND_COMPLETED: "yes"})
    );
    let chosen_here = offer["claimRef"].is_null() && offer.get("claimRef").is_some();
    assert_eq!(
        !annotations(lab.fake.get(VOLUMES, "", "disk")).is_null(),
        chosen_here
    );
}

#[rstest]
#[case::another_claims(json!({"claimRef": {"namespace": "n", "name": "other"}}), "Available")]
#[case::an_earlier_claims(json!({"claimRef": {"namespace": "n", "name": "data", "uid": "before"}}), "Released")]
#[case::of_another_class(json!({"claimRef": null, "storageClassName": "fast"}), "Available")]
#[case::free_and_too_small(json!({"claimRef": null, "capacity": {"storage": "1Gi"}}), "Available")]
fn a_volume_that_the_claim_cannot_have_is_left_alone_even_if_it_is_named(
    #[case] offer: Value,
    #[case] expected: &str,
) {
    let mut lab = lab();
    lab.fake.put(CLAIMS, claim(json!({"volumeName": "disk"})));
    lab.fake.put(VOLUMES, volume(offer));
    lab.settle();
    assert_eq!(phases(&lab), [expected, "Pending"]);
}

#[test]
fn a_claim_tells_which_attributes_its_volume_has() {
    let mut lab = lab();
    let gold = json!({"volumeAttributesClassName": "gold"});
    lab.fake.put(VOLUMES, volume(gold.clone()));
    lab.fake.put(CLAIMS, claim(gold));
    lab.settle();
    let claim = lab.fake.get(CLAIMS, "n", "data").unwrap();
    assert_eq!(claim["status"]["currentVolumeAttributesClassName"], "gold");
}

#[test]
fn a_volume_that_goes_is_bound_only_to_a_claim_that_names_it() {
    for (wish, expected) in [
        (json!({}), ["Available", "Pending"]),
        (json!({"volumeName": "disk"}), ["Bound", "Bound"]),
    ] {
        let mut lab = lab();
        let mut volume = volume(json!({}));
        volume["metadata"]["finalizers"] = json!(["example.com/keep"]);
        lab.fake.put(VOLUMES, volume);
        lab.fake.delete(VOLUMES, "", "disk", json!({})).unwrap();
        lab.fake.put(CLAIMS, claim(wish));
        lab.settle();
        assert_eq!(phases(&lab), expected);
    }
}

#[test]
fn a_volume_is_released_with_its_claim_and_not_given_to_the_next() {
    let mut lab = lab();
    lab.fake.put(CLAIMS, claim(json!({})));
    lab.fake.put(VOLUMES, volume(json!({})));
    lab.settle();
    lab.fake.remove(CLAIMS, "n", "data");
    lab.settle();
    assert_eq!(phase(&lab, VOLUMES, "", "disk"), "Released");

    lab.fake.put(CLAIMS, claim(json!({})));
    lab.settle();
    assert_eq!(phases(&lab), ["Released", "Pending"]);
}

#[test]
fn a_volume_that_did_not_fit_one_claim_is_there_for_the_next() {
    let mut lab = lab();
    lab.fake.put(VOLUMES, volume(json!({})));
    lab.fake
        .put(CLAIMS, claim(json!({"accessModes": ["ReadWriteMany"]})));
    lab.settle();
    lab.fake.remove(CLAIMS, "n", "data");
    lab.fake.put(CLAIMS, claim(json!({})));
    lab.settle();
    assert_eq!(phases(&lab), ["Bound", "Bound"]);
}

#[test]
fn a_provisioned_volume_that_comes_too_late_is_released() {
    let mut lab = lab();
    let uid = object::uid(&lab.fake.put(CLAIMS, claim(json!({"volumeName": "other"})))).to_owned();
    let mut late = volume(json!({
        "claimRef": {"namespace": "n", "name": "data", "uid": uid}, "persistentVolumeReclaimPolicy": "Delete",
    }));
    late["metadata"]["annotations"] = json!({PROVISIONED_BY: "example.com/disks"});
    lab.fake.put(VOLUMES, late);
    lab.settle();
    assert_eq!(phases(&lab), ["Released", "Pending"]);
}

#[rstest]
#[case::of_the_volume(json!({"volumeName": "disk"}), json!(null), "Warning ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!")]
#[case::of_its_name(json!({}), json!({}), "Warning ClaimLost Bound claim has lost reference to PersistentVolume. Data on the volume is lost!")]
#[case::to_another(json!({"volumeName": "disk"}), json!({"claimRef": {"namespace": "n", "name": "other", "uid": "u"}}), "Warning ClaimMisbound")]
fn a_claim_that_was_bound_tells_of_its_loss(
    #[case] wish: Value,
    #[case] offer: Value,
    #[case] expected: &str,
) {
    let mut lab = lab();
    if !offer.is_null() {
        lab.fake.put(VOLUMES, volume(offer));
    }
    let mut bound = claim(wish);
    bound["metadata"]["annotations"] = json!({BIND_COMPLETED: "yes"});
    bound["status"] =
        json!({"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "2Gi"}});
    lab.fake.put(CLAIMS, bound);
    lab.settle();
    assert_eq!(
        lab.fake.get(CLAIMS, "n", "data").unwrap()["status"],
        json!({"phase": "Lost"})
    );
    let events = lab.fake.events();
    assert!(events.len() == 1 && events[0].contains(expected), "{events:?}");
}

#[test]
fn what_was_left_half_done_is_done_when_it_can_be() {
    let mut lab = lab();
    lab.fake.put(CLAIMS, claim(json!({})));
    lab.fake
        .refuse("update", CLAIMS, "data", Status::bad_request("not now"));
    lab.fake.put(VOLUMES, volume(json!({})));
    lab.settle();
    assert_eq!(phases(&lab), ["Bound", "Pending"]);

    lab.fake.relent();
    lab.seconds(10);
    assert_eq!(phases(&lab), ["Bound", "Bound"]);
}

#[test]
fn what_is_gone_is_forgotten() {
    let binder = VolumeBinder::default();
    let access = crate::controllers::fake::Fake::default();
    let volume = Some(Arc::new(volume(json!({}))));
    let change = |before, after| Changed {
        resource: VOLUMES.into(),
        before,
        after,
    };
    binder.concerned(&change(None, volume.clone()), &access);
    assert_eq!(binder.made().len(), 1);
    binder.concerned(&change(volume, None), &access);
    assert!(binder.made().is_empty());
}

/// A volume and a claim that are bound.
fn bound() -> Lab {
    let mut lab = lab();
    lab.fake.put(VOLUMES, volume(json!({})));
    lab.fake.put(CLAIMS, claim(json!({})));
    lab.settle();
    assert_eq!(phases(&lab), ["Bound", "Bound"]);
    lab
}

#[test]
fn what_is_bound_is_not_written_to() {
    let mut lab = bound();
    assert_ne!(lab.fake.requests(), [] as [String; 0]);
    lab.fake.change(CLAIMS, "n", "data", |claim| {
        claim["metadata"]["labels"] = json!({"a": "b"});
    });
    lab.fake.change(VOLUMES, "", "disk", |volume| {
        volume["metadata"]["labels"] = json!({"a": "b"});
    });
    lab.settle();
    assert_eq!(lab.fake.requests(), [] as [String; 0]);
}

#[test]
fn how_much_a_bound_claim_has_is_for_others_to_say() {
    let mut lab = bound();
    lab.fake.change(CLAIMS, "n", "data", |claim| {
        claim["status"]["capacity"] = json!({"storage": "9Gi"});
        claim["status"]["currentVolumeAttributesClassName"] = "gold".into();
    });
    lab.settle();
    let claim = lab.fake.get(CLAIMS, "n", "data").unwrap();
    assert_eq!(claim["status"]["capacity"], json!({"storage": "9Gi"}));
    assert_eq!(claim["status"]["currentVolumeAttributesClassName"], "gold");
}

#[test]
fn a_claim_whose_volume_is_given_to_another_is_lost() {
    let mut lab = bound();
    lab.fake.change(VOLUMES, "", "disk", |volume| {
        volume["spec"]["claimRef"] = json!({"namespace": "n", "name": "other", "uid": "u"});
    });
    lab.settle();
    assert_eq!(phases(&lab), ["Released", "Lost"]);
}

#[rstest]
#[case::nothing(json!(null), ["Bound", "Bound"])]
#[case::another_name_of_the_same(json!({"name": "other"}), ["Bound", "Bound"])]
#[case::no_uid(json!({"uid": null}), ["Available", "Lost"])]
fn a_bound_volume_that_says_something_else_is_put_right_where_that_is_safe(
    #[case] says: Value,
    #[case] expected: [&str; 2],
) {
    let mut lab = bound();
    lab.fake
        .change(VOLUMES, "", "disk", |volume| match says.as_object() {
            None => volume["spec"]["claimRef"] = Value::Null,
            Some(changes) => {
                for (field, value) in changes {
                    volume["spec"]["claimRef"][&**field] = value.clone();
                }
            }
        });
    lab.settle();
    assert_eq!(phases(&lab), expected);
}

#[test]
fn a_claim_that_is_not_bound_any_more_waits() {
    let mut lab = bound();
    lab.fake.remove(VOLUMES, "", "disk");
    lab.settle();
    assert_eq!(phase(&lab, CLAIMS, "n", "data"), "Lost");
    lab.fake.change(CLAIMS, "n", "data", |claim| {
        claim["metadata"]["annotations"] = json!({});
    });
    lab.settle();
    let status = lab.fake.get(CLAIMS, "n", "data").unwrap()["status"].clone();
    assert_eq!(status, json!({"phase": "Pending"}));
}

#[test]
fn a_free_volume_that_comes_after_the_claim_that_names_it_is_bound() {
    let mut lab = lab();
    lab.fake.put(CLAIMS, claim(json!({"volumeName": "disk"})));
    lab.settle();
    lab.fake.put(VOLUMES, volume(json!({"claimRef": null})));
    lab.settle();
    assert_eq!(phases(&lab), ["Bound", "Bound"]);
}

#[test]
fn a_free_volume_that_goes_is_bound_to_nobody() {
    let mut lab = lab();
    let mut volume = volume(json!({"claimRef": null}));
    volume["metadata"]["finalizers"] = json!(["example.com/keep"]);
    lab.fake.put(VOLUMES, volume);
    lab.fake.delete(VOLUMES, "", "disk", json!({})).unwrap();
    lab.fake.put(CLAIMS, claim(json!({"volumeName": "disk"})));
    lab.settle();
    assert_eq!(phases(&lab), ["Available", "Pending"]);
}

#[test]
fn a_volume_of_an_earlier_claim_keeps_nobody_from_the_right_one() {
    let mut lab = lab();
    let earlier = json!({"claimRef": {"namespace": "n", "name": "data", "uid": "before"}});
    let mut first = volume(earlier);
    first["metadata"]["name"] = "a".into();
    lab.fake.put(VOLUMES, first);
    lab.fake.put(VOLUMES, volume(json!({})));
    lab.fake.put(CLAIMS, claim(json!({"volumeName": ""})));
    lab.settle();
    assert_eq!(phases(&lab), ["Bound", "Bound"]);
    assert_eq!(phase(&lab, VOLUMES, "", "a"), "Released");
}

#[rstest]
#[case::that_was_chosen_here(json!({BOUND_BY_CONTROLLER: "yes"}), json!(null))]
#[case::that_was_made_for_it(json!({}), json!({"namespace": "n", "name": "data"}))]
#[case::that_is_kept(json!({PROVISIONED_BY: "example.com/disks"}), json!({"namespace": "n", "name": "data"}))]
fn a_volume_whose_claim_has_another_is_free_again(#[case] annotations: Value, #[case] expected: Value) {
    let mut lab = lab();
    let uid = object::uid(&lab.fake.put(CLAIMS, claim(json!({"volumeName": "other"})))).to_owned();
    let mut left = volume(json!({"claimRef": {"namespace": "n", "name": "data", "uid": uid}}));
    left["metadata"]["annotations"] = annotations;
    lab.fake.put(VOLUMES, left);
    lab.settle();
    assert_eq!(phases(&lab), ["Available", "Pending"]);
    assert_eq!(
        lab.fake.get(VOLUMES, "", "disk").unwrap()["spec"]["claimRef"],
        expected
    );
}

#[test]
fn what_could_not_be_reclaimed_stays_so_and_its_message_goes_with_another_phase() {
    let mut lab = bound();
    lab.fake.remove(CLAIMS, "n", "data");
    lab.fake.change(VOLUMES, "", "disk", |volume| {
        volume["status"] = json!({"phase": "Failed", "message": "no such disk", "reason": "Why"});
    });
    lab.settle();
    assert_eq!(phase(&lab, VOLUMES, "", "disk"), "Failed");

    lab.fake.change(VOLUMES, "", "disk", |volume| {
        volume["spec"]["claimRef"] = Value::Null
    });
    lab.settle();
    let status = lab.fake.get(VOLUMES, "", "disk").unwrap()["status"].clone();
    assert_eq!(status, json!({"phase": "Available", "reason": "Why"}));
}

#[test]
fn the_class_may_be_an_annotation() {
    let mut lab = lab();
    let mut disk = volume(json!({"claimRef": null}));
    disk["metadata"]["annotations"] = json!({"volume.beta.kubernetes.io/storage-class": "fast"});
    lab.fake.put(VOLUMES, disk);
    lab.fake.put(
        CLAIMS,
        claim(json!({"volumeName": "disk", "storageClassName": "fast"})),
    );
    lab.settle();
    assert_eq!(phases(&lab), ["Bound", "Bound"]);
}
