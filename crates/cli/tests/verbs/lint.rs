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
            "lint @/names.yaml",
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
            "lint @/more/beside.yml",
            "lint @/more/unkind.yml",
            "lint @/nowhere.yaml",
            "lint @/nowhere.yaml @/bad.yaml @/none-either.yaml",
            "lint",
        ])
        .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_misspelt_is_not_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("db.yaml");
    std::fs::write(
        &file,
        "apiVersion: argoproj.io/v1alpha1\nkind: RolloutPlugins\nmetadata: {name: db}\n",
    )
    .unwrap();
    let path = file.display().to_string();
    let said = World::bare().run(&format!("lint {path}")).await;
    assert_eq!(
        (said.exit, said.out.replace(&path, "db.yaml").as_str()),
        (
            stateward_cli::Exit::Error,
            "db.yaml:2: kind: RolloutPlugins is no kind of argoproj.io; RolloutPlugin is\n"
        ),
        "{said:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_directory_without_manifests_is_told() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("README.md"), "nothing to see").unwrap();
    let path = dir.path().display().to_string();
    let said = World::bare().run(&format!("lint {path}")).await;
    assert_eq!(
        (said.exit, said.talk.replace(&path, "DIR").as_str()),
        (
            stateward_cli::Exit::Error,
            "DIR has no manifests in it: no file that ends in .yaml, .yml or .json; -R looks into its directories too"
        )
    );
}
