//! Several rollouts at once, and none: `-l`, `--all`, `--dry-run`.

use insta::assert_snapshot;
use stateward_cli::Exit;

use crate::world::World;

/// Each command is bound to the revision that was read.
#[tokio::test(start_paused = true)]
async fn those_that_need_nothing_are_skipped_and_told() {
    let world = World::with_operator().await;
    world.phase_web().await;
    world.image("v2").await;
    world.until("Paused").await;
    world.label("team=storage").await;
    assert_snapshot!(
        world
            .transcript(&[
                "retry --all",
                "promote -l team=nobody",
                "promote -l team=storage",
                "pause --all",
                "pause --all",
                "resume db sts/db web",
                "pause rp db",
                "pause rp",
                "resume rp db",
                "abort db nobody",
                "abort",
                "abort db --all",
                "abort --all --revision x",
            ])
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing_and_says_what_would_be() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let before = world.version().await;
    assert_snapshot!(
        world
            .transcript(&[
                "promote db --dry-run",
                "promote db --dry-run=client",
                "promote db --dry-run=server",
                "promote db --full --dry-run=server",
                "abort sts/db --dry-run=server",
                "pause db --dry-run=server",
                "retry db --dry-run=server",
                "abort db --dry-run=perhaps",
            ])
            .await
    );
    assert_eq!(world.version().await, before);
}

#[tokio::test(start_paused = true)]
async fn several_are_looked_at_and_changed_one_after_the_other() {
    let world = World::with_operator().await;
    world.phase_web().await;
    world.run("status web --watch --timeout 1h").await;
    world.label("team=storage").await;
    assert_snapshot!(
        world
            .transcript(&[
                "status db web",
                "status -l team=storage",
                "status -l team=nobody",
                "status rp",
                "status db nobody",
                "explain -l team=storage",
                "explain -l team=storage -o yaml",
                "history db web",
                "history db web -o json",
                "history --all --revision 1",
                "set image -l team=storage db=db:v2 --dry-run=server",
                "set image db",
                "set image db=db:v2",
                "set image db -l team=storage db=db:v2",
                "undo db web --to-revision 1",
                "undo -l team=storage --to-revision 1",
                "restart -l team=nobody",
                "restart --all",
                "undo db web",
                "diff -f db.yaml",
                "diff -l team=storage",
                "diff",
                "list -f db.yaml",
            ])
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_manifest_names_what_is_looked_at_and_changed() {
    let world = World::with_operator().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("db.yaml");
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\n";
    std::fs::write(&file, set).unwrap();
    let file = file.display();
    for (line, says) in [
        (format!("status -f {file}"), "db: Successful: every pod runs"),
        (format!("explain -f {file}"), "rolloutplugin/db   Successful"),
        (format!("history -f {file}"), "REVISION   NAME"),
        (
            format!("set image -f {file} db=db:v2"),
            "statefulset.apps/db image updated",
        ),
        (format!("undo -f {file}"), "statefulset.apps/db rolled back"),
    ] {
        let said = world.run(&line).await;
        assert_eq!(said.exit, Exit::Done, "{line}: {said:?}");
        assert!(said.out.starts_with(says), "{line}: {said:?}");
        if line.starts_with("set") {
            world.until("Paused").await;
        }
    }
}
