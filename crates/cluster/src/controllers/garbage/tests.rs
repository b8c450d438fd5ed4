//! Owners and dependents on the fake server.

use super::*;
use crate::controllers::fake::Lab;

const MAPS: &str = "configmaps";

fn lab() -> Lab {
    Lab::new(vec![Box::<GarbageCollector>::default()])
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n", "uid": name}})
}

fn owned(name: &str, by: &[&str]) -> Value {
    let reference = |owner: &&str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": owner, "blockOwnerDeletion": true});
    let mut map = map(name);
    map["metadata"]["ownerReferences"] = by.iter().map(reference).collect();
    map
}

fn held(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["example.com/held"]);
    object
}

impl Lab {
    fn put_maps(&mut self, maps: impl IntoIterator<Item = Value>) {
        for map in maps {
            self.fake.put(MAPS, map);
        }
        self.settle();
    }

    fn delete_map(&mut self, name: &str, policy: &str) {
        self.fake
            .delete(MAPS, "n", name, json!({"propagationPolicy": policy}))
            .unwrap();
        self.settle();
    }

    fn maps(&self) -> Vec<String> {
        self.fake.names(MAPS, "n")
    }

    fn owners_of(&self, name: &str) -> Vec<String> {
        let map = self.fake.get(MAPS, "n", name).unwrap();
        owner::owners(&map)
            .map(|owner| owner["name"].as_str().unwrap().to_owned())
            .collect()
    }

    fn let_go(&mut self, name: &str) {
        self.fake.change(MAPS, "n", name, |map| {
            remove_finalizer(map, "example.com/held");
        });
        self.settle();
    }
}

#[test]
fn in_the_background_dependents_go_after_their_owner() {
    let mut lab = lab();
    lab.put_maps([
        map("owner"),
        owned("a", &["owner"]),
        owned("b", &["a"]),
        map("other"),
    ]);
    lab.fake.requests();
    lab.delete_map("owner", "Background");
    assert_eq!(lab.maps(), ["other"]);
    let requests = lab.fake.requests();
    assert!(
        requests[1]
            .starts_with("delete configmaps a {\"preconditions\":{\"resourceVersion\":\"2\",\"uid\":\"a\"}")
    );
    assert!(requests[1].ends_with("\"propagationPolicy\":\"Background\"}"));
}

#[test]
fn in_the_foreground_the_owner_waits_for_those_that_block_it() {
    let mut lab = lab();
    let mut loose = held(owned("loose", &["owner"]));
    loose["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = false.into();
    lab.put_maps([map("owner"), held(owned("blocking", &["owner"])), loose]);
    lab.delete_map("owner", "Foreground");
    assert_eq!(lab.maps(), ["blocking", "loose", "owner"]);
    assert!(
        lab.fake
            .list(MAPS, "n")
            .iter()
            .all(|map| object::is_terminating(map))
    );

    lab.let_go("blocking");
    assert_eq!(lab.maps(), ["loose"]);
    lab.let_go("loose");
    assert_eq!(lab.maps(), [] as [&str; 0]);
}

#[test]
fn in_the_foreground_dependents_that_have_dependents_wait_too() {
    let mut lab = lab();
    lab.put_maps([map("owner"), owned("a", &["owner"]), held(owned("b", &["a"]))]);
    lab.delete_map("owner", "Foreground");
    assert_eq!(lab.maps(), ["a", "b", "owner"]);
    lab.let_go("b");
    assert_eq!(lab.maps(), [] as [&str; 0]);
}

#[test]
fn a_circle_of_owners_does_not_wait_for_ever() {
    let mut lab = lab();
    lab.put_maps([map("a")]);
    lab.put_maps([owned("b", &["a"])]);
    lab.fake.change(MAPS, "n", "a", |a| {
        a["metadata"]["ownerReferences"] = owned("a", &["b"])["metadata"]["ownerReferences"].clone()
    });
    lab.settle();
    lab.delete_map("a", "Foreground");
    assert_eq!(lab.maps(), [] as [&str; 0]);
}

#[test]
fn orphans_lose_the_reference_and_stay() {
    let mut lab = lab();
    lab.put_maps([
        map("owner"),
        map("second"),
        owned("a", &["owner", "second"]),
        owned("b", &["owner"]),
    ]);
    lab.delete_map("owner", "Orphan");
    assert_eq!(lab.maps(), ["a", "b", "second"]);
    assert_eq!(
        (lab.owners_of("a"), lab.owners_of("b").len()),
        (vec!["second".to_owned()], 0)
    );
}

#[test]
fn an_owner_that_stays_keeps_its_dependent_without_those_that_are_gone() {
    let mut lab = lab();
    lab.put_maps([
        map("owner"),
        map("second"),
        owned("a", &["owner", "second", "never"]),
    ]);
    assert_eq!(lab.owners_of("a"), ["owner", "second"]);
    lab.delete_map("owner", "Background");
    assert_eq!(lab.owners_of("a"), ["second"]);
    lab.delete_map("second", "Foreground");
    assert_eq!(lab.maps(), [] as [&str; 0]);
}

#[test]
fn an_owner_with_another_uid_is_no_owner() {
    let mut lab = lab();
    let mut wrong = owned("wrong", &["owner"]);
    wrong["metadata"]["ownerReferences"][0]["uid"] = "other".into();
    lab.put_maps([map("owner"), wrong]);
    assert_eq!(lab.maps(), ["owner"]);
}

#[test]
fn an_owner_in_another_namespace_is_told_and_its_dependent_deleted() {
    let mut lab = lab();
    let mut stray = owned("stray", &["owner"]);
    stray["metadata"]["namespace"] = "elsewhere".into();
    lab.put_maps([map("owner"), stray]);
    assert_eq!(lab.fake.names(MAPS, "elsewhere"), [] as [&str; 0]);
    assert_eq!(
        lab.fake.events(),
        [
            "Warning OwnerRefInvalidNamespace ownerRef [v1/ConfigMap, namespace: elsewhere, name: owner, uid: owner] does \
         not exist in namespace \"elsewhere\"",
        ]
    );
}

#[test]
fn custom_objects_own_and_are_owned() {
    let mut lab = lab();
    let rollout = json!({
        "apiVersion": "example.com/v1", "kind": "Rollout", "metadata": {"name": "r", "namespace": "n", "uid": "r"},
    });
    lab.fake.put("rollouts.example.com", rollout);
    let mut child = map("child");
    child["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "example.com/v1", "kind": "Rollout", "name": "r", "uid": "r"}]);
    lab.put_maps([child]);
    assert_eq!(lab.maps(), ["child"]);
    lab.fake
        .delete("rollouts.example.com", "n", "r", json!({}))
        .unwrap();
    lab.settle();
    assert_eq!(lab.maps(), [] as [&str; 0]);
}

#[test]
fn an_owner_of_an_unknown_kind_might_still_be_there() {
    let mut lab = lab();
    let mut child = map("child");
    child["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "new.io/v1", "kind": "New", "name": "x", "uid": "x"}]);
    lab.put_maps([child]);
    lab.seconds(5);
    assert_eq!(lab.maps(), ["child"]);
}

#[test]
fn a_cluster_wide_object_cannot_belong_to_one_in_a_namespace() {
    let mut lab = lab();
    let mut volume = owned("disk", &["owner"]);
    volume["metadata"].as_object_mut().unwrap().remove("namespace");
    lab.put_maps([map("owner")]);
    lab.fake.put("persistentvolumes", volume);
    lab.delete_map("owner", "Background");
    assert_eq!(lab.fake.names("persistentvolumes", ""), ["disk"]);
}

#[test]
fn a_change_that_leaves_the_owners_alone_does_not_save_a_dependent() {
    let fake = crate::controllers::fake::Fake::default();
    let before = fake.put(MAPS, owned("a", &["gone"]));
    fake.change(MAPS, "n", "a", |map| map["data"] = json!({"x": "y"}));
    delete(Target::of(MAPS, &before), &before, "Background", &fake).unwrap();
    assert_eq!(fake.names(MAPS, "n"), [] as [&str; 0]);

    let before = fake.put(MAPS, owned("b", &["gone"]));
    fake.change(MAPS, "n", "b", |map| {
        owner::disown(map, &["gone"]);
    });
    assert!(
        delete(Target::of(MAPS, &before), &before, "Background", &fake)
            .unwrap_err()
            .is_conflict()
    );
    assert_eq!(fake.names(MAPS, "n"), ["b"]);
}

#[test]
fn forty_thousand_objects_cost_what_is_touched() {
    let fake = crate::controllers::fake::Fake::default();
    let collector = GarbageCollector::default();
    for number in 0..40_000 {
        let object = Arc::new(owned(
            &format!("m-{number}"),
            &[&format!("owner-{}", number / 10)],
        ));
        let change = Changed {
            resource: MAPS.into(),
            before: None,
            after: Some(object),
        };
        collector.concerned(&change, &fake);
    }
    let owner = Arc::new(map("owner-7"));
    collector.concerned(
        &Changed {
            resource: MAPS.into(),
            before: None,
            after: Some(owner.clone()),
        },
        &fake,
    );
    let gone = collector.concerned(
        &Changed {
            resource: MAPS.into(),
            before: Some(owner),
            after: None,
        },
        &fake,
    );
    assert_eq!(gone.len(), 10);
}
