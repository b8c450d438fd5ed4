//! What a machine without a usable Go gets: a clear word, or the cluster of KUBECONFIG.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod workshop;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use workshop::{Process, lines_of, said, succeed, xtask};

/// An xtask that finds no Go and nothing built before.
fn without_go(target: &Path, arguments: &[&str]) -> Command {
    let mut command = xtask(arguments);
    command
        .env("CARGO_TARGET_DIR", target)
        .env("PATH", target)
        .env_remove("KUBECONFIG")
        .env_remove("CI");
    command
}

/// The same with a kubeconfig of some cluster, running a shell script.
fn on_their_cluster(target: &Path, script: &str) -> Command {
    let kubeconfig = target.join("kind.kubeconfig");
    fs::write(
        &kubeconfig,
        "current-context: kind-mine\nclusters:\n- cluster:\n    server: https://kind:6443\n",
    )
    .unwrap();
    let mut command = without_go(target, &["kube", "exec", "--", "/bin/sh", "-c", script]);
    command.env("KUBECONFIG", kubeconfig);
    command
}

#[test]
fn the_error_names_go_and_kubeconfig_as_the_two_ways() {
    let target = tempfile::tempdir().unwrap();
    for arguments in [
        &["kube", "build"][..],
        &["kube", "up"],
        &["kube", "exec", "--", "true"],
    ] {
        let output = without_go(target.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = said(&output);
        assert!(
            said.contains("no Go in PATH") && said.contains("KUBECONFIG"),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn a_go_that_is_too_old_is_named_with_its_version() {
    let target = tempfile::tempdir().unwrap();
    let go = target.path().join("go");
    fs::write(&go, "#!/bin/sh\necho go1.20.1\n").unwrap();
    fs::set_permissions(&go, fs::Permissions::from_mode(0o755)).unwrap();
    let said = said(&without_go(target.path(), &["kube", "build"]).output().unwrap());
    assert!(said.contains("go1.20.1") && said.contains("KUBECONFIG"), "{said}");
}

#[test]
fn in_ci_the_test_command_fails_before_its_first_stage() {
    let target = tempfile::tempdir().unwrap();
    let output = without_go(target.path(), &["test"])
        .env("CI", "true")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(
        said.contains("no real control plane") && !said.contains("== format"),
        "{said}"
    );
}

#[test]
fn exec_runs_on_the_cluster_of_kubeconfig_and_says_which_it_is() {
    let target = tempfile::tempdir().unwrap();
    let output = on_their_cluster(target.path(), "echo $KUBECONFIG")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let kubeconfig = target.path().join("kind.kubeconfig");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim_end(),
        kubeconfig.to_str().unwrap()
    );
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(
        talk.contains("kind-mine") && talk.contains("https://kind:6443"),
        "{talk}"
    );
}

#[test]
fn exec_exits_as_its_command_did() {
    let target = tempfile::tempdir().unwrap();
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ] {
        let output = on_their_cluster(target.path(), script).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{script}: {}", said(&output));
    }
    let missing = without_go(target.path(), &["kube", "exec", "--", "no-such-command"])
        .env("KUBECONFIG", "/dev/null")
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(127), "{}", said(&missing));
}

#[test]
fn a_terminated_exec_passes_the_signal_on_and_waits_for_its_command() {
    let target = tempfile::tempdir().unwrap();
    let script = "trap 'echo asked; exit 5' TERM; echo ready; while :; do /bin/sleep 1000 & wait; done";
    let mut exec = on_their_cluster(target.path(), script)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let [ready] = lines_of(&mut exec);
    assert_eq!(ready, "ready");
    kill_process(Pid::from_child(&exec), Signal::TERM).unwrap();
    let [asked] = lines_of(&mut exec);
    assert_eq!(asked, "asked");
    assert_eq!(exec.wait().unwrap().code(), Some(5));
}

#[test]
fn nothing_that_the_command_left_in_the_background_outlives_it() {
    let target = tempfile::tempdir().unwrap();
    // The pipe keeps the shell waiting until the test has taken hold of the process it left.
    let script = "/bin/sleep 1000 >/dev/null 2>&1 & echo $!; read -r go_on";
    let mut exec = on_their_cluster(target.path(), script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let [pid] = lines_of(&mut exec);
    let background = Process::of(pid.parse().unwrap(), "the background process");
    drop(exec.stdin.take());
    exec.wait().unwrap();
    background.wait_for_end();
}

#[test]
fn every_command_explains_itself() {
    for command in ["build", "up", "down", "list", "exec"] {
        assert!(
            succeed(&mut xtask(&["kube", command, "--help"])).contains("Usage: cargo xtask kube"),
            "{command}"
        );
    }
}
