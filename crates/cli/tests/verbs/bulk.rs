//! Several rollouts at once, and none at all: `-l`, `--all`, `--dry-run`.

use insta::assert_snapshot;

use crate::world::World;

/// Each is bound to the revision that was seen of it.
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
