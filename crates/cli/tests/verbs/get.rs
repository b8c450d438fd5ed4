//! `get` and `list`, in every output format.

use std::time::Duration;

use insta::assert_snapshot;
use rstest::rstest;
use stateward_cli::{Exit, Style};

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn rollouts_are_shown_as_a_table_and_one_as_a_tree() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    assert_snapshot!(
        world
            .transcript(&[
                "get",
                "list",
                "get -A",
                "get -o wide",
                "get db",
                "get sts/db",
                "get statefulset.apps/db -o wide",
                "get rp/db db",
                "get db nobody",
            ])
            .await
    );
}

/// The status describes an older template, spec or command.
#[rstest]
#[case::a_template(&["set image db db=db:v3"])]
#[case::a_spec(&["pause db --timeout 0"])]
#[case::a_command(&["abort db --timeout 0"])]
#[tokio::test(start_paused = true)]
async fn every_verb_agrees_about_what_the_operator_has_not_seen(#[case] changes: &[&str]) {
    let mut world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    world.stop_operator();
    for change in changes {
        assert_eq!(world.run(change).await.exit, Exit::Done, "{change}");
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for line in [
        "status db",
        "get",
        "get -A",
        "list",
        "get db db",
        "get -o wide",
        "get db -o wide",
        "get db",
        "explain db",
        "explain db -o json",
    ] {
        let said = world.run(line).await.out;
        assert!(
            said.contains("Progressing") && !said.contains("Paused"),
            "{line}: {said}"
        );
    }
    let watched = world.run_for("get -w", Duration::from_secs(5)).await.out;
    assert!(watched.contains("Progressing"), "{watched}");
}

#[tokio::test(start_paused = true)]
async fn kinds_are_told_apart_where_there_are_two() {
    let world = World::with_operator().await;
    world.phase_web().await;
    world.run("status web --watch --timeout 1h").await;
    assert_snapshot!(
        world
            .transcript(&[
                "get",
                "get web",
                "get -o name",
                "get sts/web -o name",
                "get rp",
                "get phased -A -o name",
                "get rp db -o name",
                "get rp db web",
                "get sts db web -o name",
                "get sts",
                "status rp db",
                "status rp db -o yaml",
                "status --all -o json",
                "status nowhere -o json",
                "status db -o json --watch",
                "history phasedrollout web",
                "status web -w --timeout 0",
            ])
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn labels_choose() {
    let world = World::with_operator().await;
    world.label("team=storage").await;
    assert_snapshot!(
        world
            .transcript(&[
                "get -l team=storage",
                "list -l team=web",
                "get -l 'team in (storage, web)' -o name",
                "get -l team=storage -A",
                "get -l 'team in'",
            ])
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn templates_pick_fields_as_with_kubectl() {
    let world = World::with_operator().await;
    assert_snapshot!(
        world
            .transcript(&[
                "get db -o jsonpath={.status.phase}",
                r#"get -o 'jsonpath={range .items[*]}{.metadata.name}{"\t"}{.status.phase}{"\n"}{end}'"#,
                r#"get db -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}{"\n"}'"#,
                "get db -o jsonpath={.no.such.field}",
                "get db -o jsonpath={.status",
                "get db -o jsonpath={.status.phase[0]}",
                "get db -o xml",
            ])
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn columns_are_chosen_as_with_kubectl() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    assert_snapshot!(
        world
            .transcript(&[
                "get -o custom-columns=NAME:.metadata.name,PHASE:.status.phase,FIRST:.spec.strategy.canary.steps[0].setWeight",
                "get db -o custom-columns=NAME:metadata.name,STEPS:{.spec.strategy.canary.steps[*].setWeight},GONE:.no.such.field",
                "list -A -o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,LAST:.spec.strategy.canary.steps[99].pause",
                "get -l app=nobody -o custom-columns=NAME:.metadata.name",
                "get -o custom-columns=NAME",
                "get -o custom-columns=NAME:.metadata.name,",
                "get -o custom-columns=NAME:.metadata[",
                "get -o custom-columns",
            ])
            .await
    );
    let line = "get db -w -o custom-columns=NAME:.metadata.name,PHASE:.status.phase";
    let (watched, ()) = tokio::join!(world.run_for(line, Duration::from_secs(60)), async {
        assert_eq!(world.run("promote db").await.exit, Exit::Done);
    });
    assert_eq!(
        watched.out,
        "NAME   PHASE\ndb     Paused\ndb     Progressing\ndb     Paused\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_has_a_row_for_every_change() {
    let world = World::with_operator().await;
    let (watched, ()) = tokio::join!(world.run_for("get -w", Duration::from_secs(600)), async {
        world.image("v2").await;
        world.until("Paused").await;
        assert_eq!(world.run("promote db").await.exit, Exit::Done);
    });
    assert_snapshot!(watched.shown("get -w"));
}

#[tokio::test(start_paused = true)]
async fn one_rollout_is_watched_in_rows_where_there_is_no_terminal() {
    let world = World::with_operator().await;
    let (watched, ()) = tokio::join!(world.run_for("get db -w", Duration::from_secs(60)), async {
        world.image("v2").await;
        world.until("Paused").await;
        world.delete_rollout().await;
    });
    assert_snapshot!(watched.shown("get db -w"));
    let line = "get db -w -o name";
    assert_eq!(world.run(line).await.exit, Exit::NotFound);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_told_and_what_begins_alike_is_named() {
    let world = World::with_operator().await;
    assert_snapshot!(
        world
            .transcript(&[
                "get d",
                "get nobody",
                "get phased/db",
                "get sts/nobody",
                "get deploy/db",
                "get rp/",
                "get 'db?x=1'",
                "get -n Prod",
                "get db -n  -o name",
                "get -n elsewhere",
                "get -n elsewhere -o json",
                "get -n elsewhere -o name",
                "-n elsewhere get",
                "-n nowhere get -n elsewhere",
                "get db -A",
                "get db -l a=b",
            ])
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn colour_and_lines_are_as_the_terminal_has_them() {
    let world = World::with_operator().await;
    let colour = Style {
        colour: true,
        ascii: false,
    };
    let said = world.run_with("get", colour, None).await;
    assert!(said.out.contains("\x1b[32mSuccessful\x1b[0m"), "{}", said.out);
    let ascii = Style {
        colour: false,
        ascii: true,
    };
    let said = world.run_with("get db", ascii, None).await;
    assert!(said.out.is_ascii(), "{}", said.out);
}

#[tokio::test(start_paused = true)]
async fn a_manifest_names_what_is_meant() {
    let world = World::with_operator().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("db.yaml");
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\n";
    std::fs::write(&file, set).unwrap();
    let said = world.run(&format!("get -f {} -o name", file.display())).await;
    assert_eq!(said.out, "rolloutplugin.argoproj.io/db\n", "{said:?}");
    let said = world.run(&format!("pause -f {}", file.display())).await;
    assert_eq!(
        said.out, "rolloutplugin.argoproj.io/db paused by somebody\n",
        "{said:?}"
    );
    std::fs::write(&file, "kind: Service\nmetadata: {name: db}\n").unwrap();
    let said = world.run(&format!("abort -f {}", file.display())).await;
    assert_eq!(said.exit, Exit::Error);
    assert!(
        said.talk
            .ends_with("has no RolloutPlugin, PhasedRollout or StatefulSet in it"),
        "{said:?}"
    );
}

/// With access to only one kind, or with only one installed, its rollouts are named as usual.
#[tokio::test(start_paused = true)]
async fn one_kind_is_enough_to_be_named() {
    let world = World::with_operator().await;
    let lines = [
        "get",
        "get rp -o name",
        "get db -o name",
        "status db",
        "get nobody",
        "get phased/db",
        "get rp/db -o name",
    ];
    let forbidden = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403,
        "message": "phasedrollouts.sts.plus is forbidden: somebody may not"}"#;
    let seen = world
        .transcript_where("phasedrollouts", (403, forbidden), &lines)
        .await;
    let unserved = (404, "404 page not found\n");
    assert_snapshot!(seen + &world.transcript_where("phasedrollouts", unserved, &lines).await);
    let neither = world.transcript_where("/apis/", unserved, &["get db"]).await;
    assert!(
        neither.contains("the cluster knows no rollouts of ours"),
        "{neither}"
    );
}
