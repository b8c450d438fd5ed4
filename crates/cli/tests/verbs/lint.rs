//! `lint`: the problems of manifests, without a cluster.

use insta::assert_snapshot;

use crate::world::World;

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/verbs/manifests");

/// Each of these files is checked on its own.
const RENDERED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/verbs/rendered");

async fn transcript(lines: &[&str]) -> String {
    // No cluster is contacted.
    let world = World::bare();
    let mut seen = String::new();
    for line in lines {
        let said = world.run(&line.replace("@", HERE).replace("%", RENDERED)).await;
        let shown = said.shown(line).replace(&format!("{HERE}/"), "");
        seen.push_str(&shown.replace(&format!("{RENDERED}/"), ""));
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
async fn a_rendered_chart_is_checked_as_a_whole() {
    assert_snapshot!(transcript(&["lint %/chart.yaml", "lint %/chart.yaml -o json"]).await);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_the_operator_refuses_is_an_error() {
    assert_snapshot!(
        transcript(&[
            "lint %/addresses.yaml",
            "lint %/addresses.yaml --allow-egress 127.0.0.0/8 --allow-egress ::1 --allow-egress 169.254.169.254",
            "lint %/addresses.yaml --allow-egress local",
        ])
        .await
    );
}

#[tokio::test(start_paused = true)]
async fn what_fights_the_operator_is_a_warning_and_an_error_if_that_is_asked_for() {
    assert_snapshot!(
        transcript(&[
            "lint %/managed.yaml",
            "lint %/managed.yaml --strict",
            "lint %/managed.yaml --strict -o json",
            "lint @/good.yaml --strict",
        ])
        .await
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_is_checked_before_it_is_made() {
    assert_snapshot!(transcript(&["lint %/jobs.yaml"]).await);
}

#[tokio::test(start_paused = true)]
async fn items_of_lists_and_duplicate_keys_do_not_hide_anything() {
    assert_snapshot!(transcript(&["lint %/lists.yaml"]).await);
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
            "db.yaml:1: spec: is missing\n\
             db.yaml:2: kind: RolloutPlugins is not a kind of argoproj.io/v1alpha1; did you mean RolloutPlugin\n"
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
