//! Simulates the nodes of the cluster in the current kubeconfig: `cargo run -p stateward-kubelet --example play`.
//!
//! The image decides what a pod does: `crash:v1`, `oom:v1`, `pull:v1`, `config:v1`, `never:v1`, `flap:v1`, `fail:v1`, `slow:v1`,
//! `stuck:v1`; all others become Ready. A line on standard input makes a node vanish (`vanish node-a`) or brings it back (`restore
//! node-a`).

use std::time::Duration;

use anyhow::Context;
use kube::Client;
use stateward_clock::Clock;
use stateward_kubelet::{Behaviour, Behaviours, Kubelet, Match};
use tokio::io::{AsyncBufReadExt, BufReader, stdin};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let seconds = Duration::from_secs;
    let behaviours = Behaviours::default();
    behaviours
        .program(Match::image("crash:v1"), Behaviour::crash_loop())
        .program(
            Match::image("oom:v1"),
            Behaviour::oom_killed().ready_for(seconds(2)),
        )
        .program(Match::image("pull:v1"), Behaviour::image_pull_error())
        .program(Match::image("config:v1"), Behaviour::config_error())
        .program(Match::image("never:v1"), Behaviour::never_ready())
        .program(
            Match::image("flap:v1"),
            Behaviour::flapping(seconds(5), seconds(5)),
        )
        .program(Match::image("fail:v1"), Behaviour::exits(3, seconds(1)))
        .program(Match::image("slow:v1"), Behaviour::slow_termination(seconds(20)))
        .program(Match::image("stuck:v1"), Behaviour::never_terminates());

    let client = Client::try_default()
        .await
        .context("no cluster; set KUBECONFIG")?;
    let running = Kubelet::new(client, Clock::wall()).behaviours(behaviours).spawn();

    let mut lines = BufReader::new(stdin()).lines();
    loop {
        let line = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => break,
            line = lines.next_line() => line?,
        };
        match line.as_deref().map(|line| line.split_once(' ')) {
            Some(Some((order @ ("vanish" | "restore"), name))) => match (running.node(name), order) {
                (Some(node), "vanish") => node.vanish(),
                (Some(node), _) => node.restore(),
                (None, _) => eprintln!("no node {name} is played here"),
            },
            Some(_) => eprintln!("say: vanish NODE, or restore NODE"),
            // End of input; continue until interrupted.
            None => {
                tokio::signal::ctrl_c().await?;
                break;
            }
        }
    }
    running.stop().await;
    Ok(())
}
