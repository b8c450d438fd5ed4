//! The demo's cluster for the user's own kubectl, until Ctrl-C.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::scene::{BROKEN, Scene};
use crate::cluster::Door;
use crate::say;

/// Sets up the cluster, prints suggestions, and serves it until a signal arrives.
pub(super) async fn run(speed: f64, kubeconfig: &Path, program: &str) -> Result<()> {
    let door = Door::open(0, false).await?;
    let scene = Scene::open(speed, Some(&door)).await?;
    scene.create_set(5, "1.0").await?;
    let steps = json!([{"setWeight": 20}, {"pause": {}}, {"setWeight": 60}]);
    scene.create_rollout(steps).await?;
    door.write(kubeconfig)?;
    let server = &door.server;
    let path = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
    let export = format!("export KUBECONFIG={}", path.display());
    let set_image = "kubectl set image statefulset/db db=db:";
    say(format_args!(
        "an embedded Kubernetes serves on {server}, with the operator and a database of five pods; its pods are simulated, not run"
    ));
    say(format_args!("in another terminal:"));
    for (command, what) in [
        (export.as_str(), ""),
        (
            &format!("{program} get db -w"),
            "the rollout, live; keys steer it",
        ),
        (&format!("{set_image}2.0"), "a good version"),
        (&format!("{program} promote db"), "past the pause"),
        (&format!("{set_image}{BROKEN}"), "one that crashes"),
        (&format!("{program} explain db"), "what it waits for"),
    ] {
        say(format_args!("  {command:<50}  {what}"));
    }
    say(format_args!("stop with Ctrl-C"));
    door.serve(&scene.cluster, kubeconfig).await
}
