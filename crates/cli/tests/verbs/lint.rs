//! `lint`: manifests and what is wrong with them, without a cluster.

use insta::assert_snapshot;

use crate::world::World;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/verbs/manifests");

async fn transcript(lines: &[&str]) -> String {
    // No cluster is asked.
    let world = World::bare();
    let mut seen = String::new();
    for line in lines {
        let said = world.run(&line.replace("@", HERE)).await;
        seen.push_str(&said.shown(line).replace(&format!("{HERE}/"), ""));
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn what_is_right_has_no_findings() {
    assert_snapshot!(
        transcript(&[
            "lint @/good.yaml",
            "lint @/good.yaml -o json",
            "lint -f @/good.yaml"
        ])
        .await
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_told_with_file_line_and_field() {
    assert_snapshot!(
        transcript(&[
            "lint @/bad.yaml",
            "lint @/templates.yaml",
            "lint @/templates.yaml -o json"
        ])
        .await
    );
}

#[tokio::test(start_paused = true)]
async fn files_and_directories_are_found_and_missing_ones_told() {
    assert_snapshot!(
        transcript(&[
            "lint @ -R",
            "lint @/more",
            "lint @/good.yaml @/more/broken.yaml",
            "lint @/nowhere.yaml",
            "lint",
        ])
        .await
    );
}
