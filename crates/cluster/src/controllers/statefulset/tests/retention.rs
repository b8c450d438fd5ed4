//! The owners of a claim: four policies, and foreign owners.

use crate::json::Value;
use rstest::rstest;

use super::build::{ClaimBuilder, SetBuilder, claim, revision};
use super::*;

/// The owners of a claim, `StatefulSet` or `Pod`.
fn owners(lab: &Lab, claim: &str) -> Vec<String> {
    let claim = lab.object("persistentvolumeclaims", claim);
    let owners = claim["metadata"]["ownerReferences"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    owners
        .iter()
        .map(|owner| owner["kind"].as_str().unwrap().to_owned())
        .collect()
}

fn keeping(when_deleted: &str, when_scaled: &str) -> SetBuilder {
    set("db")
        .replicas(2)
        .claim("data")
        .retention(when_deleted, when_scaled)
}

#[rstest]
#[case("Retain", "Retain", &[], &[])]
#[case("Delete", "Retain", &["StatefulSet"], &["StatefulSet"])]
#[case("Retain", "Delete", &[], &["Pod"])]
#[case("Delete", "Delete", &["StatefulSet"], &["Pod"])]
fn a_claim_goes_with_what_the_policy_names(
    #[case] when_deleted: &str,
    #[case] when_scaled: &str,
    #[case] living: &[&str],
    #[case] condemned: &[&str],
) {
    let lab = Lab::settled(keeping(when_deleted, when_scaled));
    assert_eq!(owners(&lab, "data-db-0"), living);
    assert_eq!(owners(&lab, "data-db-1"), living);
    let uid = lab.object("pods", "db-1")["metadata"]["uid"].clone();

    lab.edit(|spec| spec["replicas"] = 1.into());
    let writes = lab.synced();
    assert_eq!(
        writes.last().unwrap(),
        "delete pods db-1",
        "after its claims are seen to"
    );
    assert_eq!(owners(&lab, "data-db-0"), living);
    assert_eq!(owners(&lab, "data-db-1"), condemned);
    if condemned == ["Pod"] {
        let owner =
            lab.object("persistentvolumeclaims", "data-db-1")["metadata"]["ownerReferences"][0].clone();
        let expected = crate::json::json!({
            "apiVersion": "v1", "kind": "Pod", "name": "db-1", "uid": uid, "controller": true, "blockOwnerDeletion": true,
        });
        assert_eq!(owner, expected);
    }
}

/// The pod is written too, although it does not change.
#[test]
fn a_changed_policy_changes_the_owners_and_writes_the_pod() {
    let lab = Lab::settled(keeping("Retain", "Retain").replicas(1));
    lab.edit(|spec| spec["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] = "Delete".into());
    assert_eq!(
        lab.synced(),
        ["update persistentvolumeclaims data-db-0", "update pods db-0"]
    );
    assert_eq!(
        lab.events(),
        ["SuccessfulUpdate: Update Pod db-0 in StatefulSet db successful"]
    );
    lab.edit(|spec| spec["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] = "Retain".into());
    lab.settle();
    assert_eq!(owners(&lab, "data-db-0"), [] as [&str; 0]);
}

#[rstest]
#[case::another_controller(claim("data-db-0").owned_by("ConfigMap", "x", "x"), &["ConfigMap"], true)]
#[case::another_controller_beside_us(
    claim("data-db-0").owned_by("ConfigMap", "x", "x").owned_by("StatefulSet", "db", "uid-of-db"), &["ConfigMap"], true)]
#[case::an_earlier_set(claim("data-db-0").owned_by("StatefulSet", "db", "earlier"), &["StatefulSet"], true)]
#[case::an_earlier_set_beside_us(
    claim("data-db-0").owned_by("StatefulSet", "db", "earlier").owned_by("StatefulSet", "db", "uid-of-db"),
    &["StatefulSet", "StatefulSet"], true)]
#[case::an_owner_that_controls_nothing(
    claim("data-db-0").owned_by("ConfigMap", "x", "x").not_as_controller(), &["ConfigMap", "StatefulSet"], false)]
#[case::ourselves_but_not_as_controller(
    claim("data-db-0").owned_by("StatefulSet", "db", "uid-of-db").not_as_controller(), &["StatefulSet"], false)]
fn a_claim_that_others_own(#[case] claim: ClaimBuilder, #[case] expected: &[&str], #[case] warned: bool) {
    let lab = Lab::new()
        .with(keeping("Delete", "Retain").replicas(1))
        .with(claim);
    lab.sync().unwrap();
    assert_eq!(owners(&lab, "data-db-0"), expected);
    let warning = "Warning ConflictingController: PersistentVolumeClaim data-db-0 has a conflicting OwnerReference that \
                   acts as a manging controller, the retention policy is ignored for this claim";
    assert_eq!(lab.events().iter().any(|event| event == warning), warned);
}

#[test]
fn ourselves_as_controller_again_is_written_in_full() {
    let half = claim("data-db-0")
        .owned_by("StatefulSet", "db", "uid-of-db")
        .not_as_controller();
    let lab = Lab::new()
        .with(keeping("Delete", "Retain").replicas(1))
        .with(half);
    lab.sync().unwrap();
    let owner = &lab.object("persistentvolumeclaims", "data-db-0")["metadata"]["ownerReferences"][0];
    assert_eq!(owner["controller"], true);
}

#[test]
fn where_everything_is_kept_another_controller_is_no_news() {
    let lab = Lab::new()
        .with(keeping("Retain", "Retain").replicas(1))
        .with(claim("data-db-0").owned_by("ConfigMap", "x", "x"));
    lab.sync().unwrap();
    assert!(!lab.events().iter().any(|event| event.contains("Conflicting")));
}

#[rstest]
#[case::when_scaled_deletes("Delete", false)]
#[case::when_scaled_retains("Retain", true)]
fn a_claim_that_goes_with_an_earlier_pod_holds_the_new_one(#[case] when_scaled: &str, #[case] created: bool) {
    let lab = Lab::new()
        .with(keeping("Retain", when_scaled).replicas(1))
        .with(revision("v1", 1))
        .with(claim("data-db-0").owned_by("Pod", "db-0", "earlier"));
    lab.sync().unwrap();
    assert_eq!(!lab.names("pods").is_empty(), created);
}

#[test]
fn a_parallel_set_goes_past_a_stale_claim() {
    let lab = Lab::new()
        .with(keeping("Retain", "Delete").parallel())
        .with(claim("data-db-0").owned_by("Pod", "db-0", "earlier"));
    lab.sync().unwrap();
    assert_eq!(lab.names("pods"), ["db-1"]);
}

#[test]
fn a_pod_that_comes_back_before_it_is_gone_keeps_its_claim() {
    let lab = Lab::settled(keeping("Delete", "Delete"));
    lab.edit(|spec| spec["replicas"] = 1.into());
    lab.sync().unwrap();
    assert_eq!(owners(&lab, "data-db-1"), ["Pod"]);
    lab.edit(|spec| spec["replicas"] = 2.into());
    lab.change("pods", "db-1", |pod| {
        pod["metadata"]["deletionTimestamp"] = Value::Null
    });
    lab.settle();
    assert_eq!(owners(&lab, "data-db-1"), ["StatefulSet"]);
}

#[test]
fn a_claim_is_never_deleted_from_here() {
    let lab = Lab::settled(keeping("Delete", "Delete"));
    lab.edit(|spec| spec["replicas"] = 0.into());
    lab.settle();
    assert_eq!(lab.names("persistentvolumeclaims"), ["data-db-0", "data-db-1"]);
}
