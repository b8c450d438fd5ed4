//! `history` and `diff`: past revisions, and the changes of the new one.

use std::time::Duration;

use insta::assert_snapshot;
use serde_json::json;
use stateward_cli::Style;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn the_history_says_what_became_of_each_revision() {
    let world = World::with_operator().await;
    world
        .annotate_set("kubernetes.io/change-cause", "two is faster")
        .await;
    world.image("v2").await;
    world.until("Paused").await;
    assert_snapshot!(world.transcript(&["history db"]).await);
    world.run("promote db --full").await;
    world.run("status db --watch --timeout 1h").await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    world.image("v3").await;
    world.until("Paused").await;
    world.run("abort db").await;
    world.run("status db --watch --timeout 1h").await;
    world.image("v4").await;
    world.until("Paused").await;
    assert_snapshot!(
        world
            .transcript(&[
                "history db",
                "history sts/db -o json",
                "history db --revision 2",
                "history db --revision 9",
                "history nobody",
            ])
            .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_difference_shows_what_changes_and_no_secret() {
    let world = World::with_operator().await;
    world
        .template(json!({
            "metadata": {"annotations": {"example.com/api-token": "t0ps3cret", "team": "storage"}},
            "spec": {"containers": [{"name": "db", "image": "db:v2", "env": [
                {"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "LEVEL", "value": "debug"},
                {"name": "URL", "value": "postgres://me:hunter2@db/x"},
            ]}]},
        }))
        .await;
    world.until("Paused").await;
    assert_snapshot!(world.transcript(&["diff db"]).await);
    world.run("promote db --full").await;
    world.run("status db --watch --timeout 1h").await;
    assert_snapshot!(
        world
            .transcript(&[
                "diff db",
                "diff db --from-revision 1 --to-revision 2",
                "diff db --from-revision 7"
            ])
            .await
    );
    world
        .template(json!({"spec": {"containers": [{"name": "db", "env": [{"name": "DB_PASSWORD", "value": "hunter3"}]}]}}))
        .await;
    world.until("Paused").await;
    let shown = world.transcript(&["diff db", "history db --revision 3"]).await;
    assert_snapshot!(shown);
    assert!(
        !shown.contains("hunter") && !shown.contains("t0ps3cret"),
        "{shown}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_difference_is_coloured_where_colour_is_asked_for() {
    let world = World::with_operator().await;
    world.image("v2").await;
    world.until("Paused").await;
    let colour = Style {
        colour: true,
        ascii: false,
    };
    let said = world.run_with("diff db", colour, None).await;
    assert_snapshot!(said.out.replace('\x1b', "^"));
}
