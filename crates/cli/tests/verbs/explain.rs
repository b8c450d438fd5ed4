//! `explain`: every reason to wait.

use std::time::Duration;

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::json;
use stateward_kubelet::Behaviour;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn what_is_done_waits_for_nothing() {
    let mut world = World::with_operator().await;
    let seen = world.transcript(&["explain db", "pause db", "explain db"]).await;
    world.stop_operator();
    world.recreate_rollout().await;
    assert_snapshot!(seen + &world.transcript(&["explain db", "explain nobody"]).await);
}

#[tokio::test(start_paused = true)]
async fn pauses_say_who_or_what_ends_them() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    tokio::time::sleep(Duration::from_secs(190)).await;
    let seen = world
        .transcript(&["explain db", "explain sts/db -o json", "promote db"])
        .await;
    world.until("Paused").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_snapshot!(
        seen + &world
            .transcript(&["explain db", "pause db", "explain db", "resume db", "abort db"])
            .await
    );
    world.run("status db --watch --timeout 1h").await;
    assert_snapshot!(world.transcript(&["explain db"]).await);
}

#[tokio::test(start_paused = true)]
async fn every_verb_names_the_same_end_of_a_pause() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    world.run("promote db").await;
    world.until("Paused").await;
    let explained = world.run("explain db -o json").await.out;
    let explained: serde_json::Value = serde_json::from_str(&explained).unwrap();
    let until = explained["until"]
        .as_str()
        .and_then(|until| until.split(',').next());
    for line in ["status db", "get db"] {
        let said = world.run(line).await.out;
        assert!(
            until.is_some_and(|until| said.contains(until)),
            "{until:?}: {said}"
        );
    }
}

/// When pasted, they act on the rollout that they were printed for.
#[tokio::test(start_paused = true)]
async fn commands_say_which_cluster_and_namespace_they_are_for() {
    let world = World::with_operator_in("prod").await;
    world.image("v2").await;
    world.until("Paused").await;
    assert_snapshot!(
        world
            .transcript(&[
                "explain db -n prod",
                "explain db -n prod --context 'my own' --kubeconfig /etc/k -o json",
                "resume db -n prod --as me --as-group us --as-group all",
                "pause db -n prod",
                "promote db -n prod",
                "restart db -n prod",
                "undo db -n prod --to-revision 9",
                "get d -n prod",
                "get sts/nobody -n prod --context x",
                "get nobody -n prod --context x",
                "get nobody db -n prod",
                "set image db db=db:v3 -n prod",
            ])
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_command_that_nobody_takes_is_told() {
    let mut world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    world.stop_operator();
    assert_snapshot!(world.transcript(&["abort db --timeout 0", "explain db"]).await);
}

/// Minutes since the Lease of a namespace was renewed, and whether it has the operator's label.
type Renewed<'l> = (&'l str, bool, u64);

#[rstest]
#[case::a_tenant_renews_one(&[("stateward-system", true, 5), ("default", false, 0)], Some("stateward-system"))]
#[case::a_tenant_renews_one_with_a_label(&[("stateward-system", true, 5), ("default", true, 0)], Some("stateward-system"))]
#[case::elsewhere(&[("ops", true, 5), ("default", false, 0)], Some("ops"))]
#[case::elsewhere_alive(&[("ops", true, 0), ("default", true, 5)], None)]
#[case::alive(&[("stateward-system", true, 0), ("default", true, 5)], None)]
#[case::without_a_label(&[("default", false, 5)], None)]
#[tokio::test(start_paused = true)]
async fn a_lease_of_a_tenant_hides_no_operator_that_is_gone(
    #[case] leases: &[Renewed<'_>],
    #[case] silent: Option<&str>,
) {
    let world = World::with_operator().await;
    for (namespace, labelled, minutes) in leases {
        let labels = match labelled {
            true => json!({"app.kubernetes.io/name": "stateward"}),
            false => json!({}),
        };
        world
            .lease(namespace, labels, Duration::from_secs(60 * minutes))
            .await;
    }
    let said = world.run("explain db").await.out;
    match silent {
        Some(namespace) => assert!(
            said.contains(&format!(
                "no operator has renewed lease stateward in namespace {namespace} since"
            )),
            "{said}"
        ),
        None => assert!(!said.contains("no operator has renewed"), "{said}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_third_version_that_nobody_looks_at_is_told() {
    let mut world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    world.stop_operator();
    world.image("v3").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_snapshot!(world.transcript(&["explain db", "status db"]).await);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_nobody_looks_at_is_not_passed_over() {
    let mut world = World::with_operator().await;
    world.stop_operator();
    world.image("v2").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_snapshot!(
        world
            .transcript(&["explain db", "explain db -o yaml", "status db"])
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_not_well_say_why() {
    let world = World::with_operator().await;
    world
        .spec(json!({"brokenPods": "Hold", "progressDeadlineSeconds": 600}))
        .await;
    world.program("db:v2", Behaviour::crash_loop());
    world.image("v2").await;
    world.until("Failed").await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_snapshot!(world.transcript(&["explain db"]).await);
    world.program("db:v3", Behaviour::never_ready());
    world.image("v3").await;
    world.until("Progressing").await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_snapshot!(world.transcript(&["explain db"]).await);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_snapshot!(world.transcript(&["explain db", "abort db", "explain db"]).await);
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_cannot_be_carried_out_says_which_field() {
    let world = World::with_operator().await;
    world.spec(json!({"plugin": {"name": "nobody/knows"}})).await;
    world.until("Failed").await;
    assert_snapshot!(world.transcript(&["explain db", "set image db db=db:v2"]).await);
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_another_has_or_that_is_not_there_says_so() {
    let world = World::with_operator().await;
    world.another_rollout("second", "db").await;
    world.another_rollout("third", "nowhere").await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_snapshot!(
        world
            .transcript(&["explain second", "explain third", "get sts/db"])
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn checks_say_what_they_came_to() {
    let world = World::with_operator().await;
    world.phase_web().await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    let seen = world.transcript(&["explain web"]).await;
    world.run("status web --watch --timeout 1h").await;
    assert_snapshot!(seen + &world.transcript(&["explain web"]).await);
}
