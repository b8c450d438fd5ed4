//! `undo`, `restart`, `set image`: changes of the template and their effects.

use std::time::Duration;

use insta::assert_snapshot;
use stateward_cli::Exit;

use crate::world::World;

/// Rule 7: restoring the stable template rolls every pod back at once.
#[tokio::test(start_paused = true)]
async fn undo_in_the_middle_returns_every_pod_at_once() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    assert_snapshot!(
        world
            .transcript(&[
                "undo db --dry-run=client",
                "undo db --dry-run=server",
                "undo db --to-revision 7",
                "undo db --to-revision 2",
                "undo sts/db",
                "status db --watch --timeout 10m",
                "undo db",
                "get db",
            ])
            .await
    );
    assert_eq!(world.images().await, ["db:v1"; 5]);
}

#[tokio::test(start_paused = true)]
async fn undo_at_rest_rolls_the_one_before_through_the_steps() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    world.run("promote db --full").await;
    world.run("status db --watch --timeout 1h").await;
    let seen = world.transcript(&["undo db"]).await;
    world.until("Paused").await;
    let rest = [
        "status db",
        "promote db",
        "status db -w --timeout 1h",
        "undo db --to-revision 1",
        "undo db --to-revision 3",
    ];
    assert_snapshot!(seen + &world.transcript(&rest).await);
}

#[tokio::test(start_paused = true)]
async fn what_was_turned_down_is_taken_out_of_the_template_and_not_put_back() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    world.run("abort db").await;
    world.run("status db --watch --timeout 1h").await;
    assert_snapshot!(
        world
            .transcript(&[
                "restart db",
                "undo db",
                "status db --watch --timeout 1m",
                "undo db"
            ])
            .await
    );
}

/// A command that is pasted later must not act on a newer revision.
#[tokio::test(start_paused = true)]
async fn a_change_for_another_revision_changes_nothing() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let at = world.run("history db").await.out;
    let revision = at
        .lines()
        .last()
        .unwrap()
        .split_whitespace()
        .nth(1)
        .unwrap()
        .to_owned();
    world.image("v3").await;
    for verb in ["undo", "set image db=db:v9", "restart"] {
        for wanted in [revision.as_str(), "db-other", "1"] {
            let said = world.run(&format!("{verb} db --revision {wanted}")).await;
            assert_eq!(
                (said.exit, said.out.as_str()),
                (Exit::Error, ""),
                "{verb}: {said:?}"
            );
            assert!(said.talk.starts_with("statefulset db "), "{verb}: {said:?}");
            assert!(
                said.talk.contains(&format!("not at {wanted}")),
                "{verb}: {said:?}"
            );
            assert!(said.talk.ends_with("; nothing was changed"), "{verb}: {said:?}");
        }
    }
    world.image("v2").await;
    let hash = revision.strip_prefix("db-").unwrap();
    let said = world.run(&format!("undo db --revision {hash}")).await;
    assert_eq!(said.exit, Exit::Done, "{said:?}");
}

/// A template other than the one that was read is never overwritten.
#[tokio::test(start_paused = true)]
async fn a_change_for_what_has_moved_on_changes_nothing() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    for (line, tag) in [("undo db", "v3"), ("set image db db=db:v9", "v4")] {
        let said = world.run_while_the_template_changes(line, tag).await;
        assert_eq!(said.exit, Exit::Error, "{line}: {said:?}");
        assert_eq!(
            said.talk,
            "statefulset db has got another template meanwhile; look again; nothing was changed"
        );
        assert_eq!(said.out, "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_restart_goes_through_the_steps() {
    let world = World::with_operator().await;
    assert_snapshot!(
        world
            .transcript(&[
                "restart db --dry-run",
                "restart db --dry-run=server",
                "restart db"
            ])
            .await
    );
    world.until("Paused").await;
    assert_snapshot!(
        world
            .transcript(&["restart db", "promote db --full", "status db -w --timeout 1h"])
            .await
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_snapshot!(world.transcript(&["restart db", "diff db"]).await);
}

/// S000-05: a change of the image starts a rollout.
#[tokio::test(start_paused = true)]
async fn an_image_begins_a_rollout() {
    let world = World::with_operator().await;
    assert_snapshot!(
        world
            .transcript(&[
                "set image db web=db:v2",
                "set image db db",
                "set image db",
                "set",
                "set image nobody db=db:v2",
                "set image db db=db:v1",
                "set image db db=db:v2 --dry-run=server",
                "set image db db=db:v2",
            ])
            .await
    );
    world.until("Paused").await;
    assert_snapshot!(
        world
            .transcript(&[
                "set image sts/db '*=db:v3'",
                "set image db db=db:v1",
                "status db --watch --timeout 10m"
            ])
            .await
    );
    assert_eq!(world.images().await, ["db:v1"; 5]);
}

#[tokio::test(start_paused = true)]
async fn a_phased_rollout_has_its_template_changed_as_any_other() {
    let world = World::with_operator().await;
    world.phase_web().await;
    world.run("status web --watch --timeout 1h").await;
    assert_snapshot!(
        world
            .transcript(&[
                "history web",
                "diff phased/web",
                "undo web",
                "status web -w --timeout 1h",
                "set image web web=web:v3",
                "restart web"
            ])
            .await
    );
}

/// Without an operator's guard Kubernetes would replace all pods.
#[tokio::test(start_paused = true)]
async fn nothing_is_changed_that_nobody_guards() {
    let mut world = World::with_operator().await;
    world.stop_operator();
    world.recreate_rollout().await;
    assert_snapshot!(
        world
            .transcript(&["set image db db=db:v2", "restart db", "undo db"])
            .await
    );
}
