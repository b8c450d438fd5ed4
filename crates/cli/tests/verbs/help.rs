//! The help of every verb, completion, and versions.

use insta::assert_snapshot;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn every_verb_has_its_help() {
    let world = World::bare();
    let mut seen = String::new();
    for verb in [
        "help",
        "get",
        "list",
        "top",
        "status",
        "explain",
        "promote",
        "abort",
        "retry",
        "pause",
        "resume",
        "undo",
        "restart",
        "set image",
        "history",
        "diff",
        "lint",
        "completion",
        "version",
    ] {
        let line = if verb == "help" {
            verb.to_owned()
        } else {
            format!("{verb} --help")
        };
        seen.push_str(&world.run(&line).await.shown(&line));
    }
    assert_snapshot!(seen);
}

#[tokio::test(start_paused = true)]
async fn versions_are_told_as_far_as_they_can_be_seen() {
    let world = World::with_operator().await;
    let version = env!("CARGO_PKG_VERSION");
    let seen = world
        .transcript(&[
            "version",
            "version --client",
            "version --client -o json",
            "version -o yaml",
            "version -o xml",
        ])
        .await;
    assert_snapshot!(seen.replace(version, "VERSION"));
}

#[tokio::test(start_paused = true)]
async fn every_shell_has_its_script() {
    let world = World::bare();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let said = world.run(&format!("completion {shell}")).await;
        assert!(said.out.contains("STATEWARD_COMPLETE"), "{shell}: {said:?}");
        assert_eq!(said.talk, "");
    }
    assert_snapshot!(world.transcript(&["completion tcsh", "completion"]).await);
}
