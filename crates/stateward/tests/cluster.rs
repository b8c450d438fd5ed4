//! `stateward cluster` as a user runs it: its output, its files, and its end.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it"
)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{PostParams, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::runtime::wait::conditions::is_crd_established;
use kube::{Api, Client, Config};
use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process};
use stateward_api::rolloutplugin::RolloutPlugin;
use tempfile::TempDir;

/// The deadline for expected events.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running `stateward cluster` in its own directory. Killed when it is dropped.
struct Started {
    process: Child,
    lines: Receiver<String>,
    dir: TempDir,
}

impl Started {
    fn new(arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self::in_dir(dir, arguments)
    }

    fn in_dir(dir: TempDir, arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_stateward"))
            .arg("cluster")
            .args(arguments)
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stderr
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Self { process, lines, dir }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("it said nothing more")
    }

    /// Waits until it serves; returns its address.
    fn serving(&self) -> String {
        let first = self.line();
        let address = first
            .strip_prefix("an embedded Kubernetes serves on ")
            .unwrap_or_else(|| panic!("it said: {first}"));
        assert!(self.line().starts_with("try: kubectl --kubeconfig "));
        assert_eq!(self.line(), "stop with Ctrl-C");
        address.split(';').next().unwrap_or_default().to_owned()
    }

    fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("stateward.kubeconfig")
    }

    fn interrupt(&self, signal: Signal) {
        let id = Pid::from_raw(self.process.id().try_into().unwrap()).unwrap();
        kill_process(id, signal).unwrap();
    }

    /// Its remaining messages, its exit code, and its stdout.
    fn end(mut self) -> (Vec<String>, Option<i32>, String) {
        let mut said = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            said.push(line);
        }
        let code = self.process.wait().unwrap().code();
        let stdout = std::io::read_to_string(self.process.stdout.take().unwrap()).unwrap();
        (said, code, stdout)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .unwrap();
    Client::try_from(config).unwrap()
}

#[rstest]
#[case::with_tls(&[], "https://127.0.0.1:")]
#[case::without_tls(&["--plain"], "http://127.0.0.1:")]
#[tokio::test]
async fn it_serves_whoever_has_the_kubeconfig(#[case] arguments: &[&str], #[case] expected: &str) {
    let started = Started::new(arguments);
    let address = started.serving();
    assert!(address.starts_with(expected), "{address}");

    let client = client(&started.kubeconfig()).await;
    assert_eq!(client.apiserver_version().await.unwrap().minor, "36");
    // Its nodes register on their own.
    let nodes = Api::<Node>::all(client);
    let mut changes = std::pin::pin!(
        nodes
            .watch(&WatchParams::default().timeout(60), "0")
            .await
            .unwrap()
    );
    let first = changes.try_next().await.unwrap();
    assert!(
        matches!(first, Some(kube::api::WatchEvent::Added(_))),
        "{first:?}"
    );
}

/// Its clock runs ahead of the machine's, and ages use its clock.
#[tokio::test]
async fn ages_are_those_of_a_cluster_that_runs_faster() {
    let started = Started::new(&["--speed", "10000"]);
    started.serving();
    let client = client(&started.kubeconfig()).await;
    let definitions = Api::all(client.clone());
    let definition = stateward_api::rolloutplugin::definition();
    let name = definition.name_any();
    definitions
        .create(&PostParams::default(), &definition)
        .await
        .unwrap();
    await_condition(definitions, &name, is_crd_established())
        .await
        .unwrap();
    let object: RolloutPlugin = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "db"},
        "spec": {
            "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
            "plugin": {"name": "statefulset"}, "strategy": {"canary": {}},
        },
    }))
    .unwrap();
    let rollouts: Api<RolloutPlugin> = Api::default_namespaced(client);
    rollouts.create(&PostParams::default(), &object).await.unwrap();
    let shown = Command::new(env!("CARGO_BIN_EXE_stateward"))
        .args(["get", "--kubeconfig"])
        .arg(started.kubeconfig())
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let age = shown.split_whitespace().last().unwrap();
    assert!(!["<invalid>", "0s"].contains(&age), "{shown}");
}

#[tokio::test]
async fn over_tls_a_stranger_is_refused() {
    let started = Started::new(&[]);
    started.serving();
    let text = fs::read_to_string(started.kubeconfig()).unwrap();
    let stranger = started.dir.path().join("stranger");
    let known = text.lines().find(|line| line.contains("token:")).unwrap();
    fs::write(&stranger, text.replace(known, "  user: {token: wrong}")).unwrap();

    let refused = client(&stranger).await.apiserver_version().await.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 401),
        "{refused}"
    );
}

#[rstest]
#[case::interrupt(Signal::INT)]
#[case::terminate(Signal::TERM)]
fn a_signal_ends_it_and_takes_the_kubeconfig_away(#[case] signal: Signal) {
    let started = Started::new(&[]);
    started.serving();
    let kubeconfig = started.kubeconfig();
    assert_eq!(
        fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777,
        0o600
    );

    started.interrupt(signal);
    let (said, code, stdout) = started.end();
    assert_eq!(
        (said, code, stdout),
        (vec!["stopped".to_owned()], Some(0), String::new())
    );
    assert!(!kubeconfig.exists());
}

#[tokio::test]
async fn an_open_watch_does_not_hold_it_up() {
    let started = Started::new(&[]);
    started.serving();
    let nodes = Api::<Node>::all(client(&started.kubeconfig()).await);
    let _changes = nodes.watch(&WatchParams::default(), "0").await.unwrap();

    started.interrupt(Signal::INT);
    let (_, code, _) = started.end();
    assert_eq!(code, Some(0));
}

#[test]
fn a_file_that_took_the_place_of_its_own_stays() {
    let elsewhere = tempfile::tempdir().unwrap();
    let kubeconfig = elsewhere.path().join("kubeconfig");
    let started = Started::new(&["--kubeconfig", kubeconfig.to_str().unwrap()]);
    started.serving();
    fs::write(&kubeconfig, "somebody else's").unwrap();

    started.interrupt(Signal::INT);
    let (_, code, _) = started.end();
    assert_eq!(code, Some(0));
    assert_eq!(fs::read_to_string(kubeconfig).unwrap(), "somebody else's");
}

#[test]
fn somebody_elses_file_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine"), "apiVersion: v1\nkind: Config\n").unwrap();
    let started = Started::in_dir(dir, &["--kubeconfig", "mine"]);
    let text = started.dir.path().join("mine");
    let said = started.line();
    assert_eq!(
        fs::read_to_string(text).unwrap(),
        "apiVersion: v1\nkind: Config\n"
    );
    let (_, code, _) = started.end();
    assert_eq!(
        (said.as_str(), code),
        (
            "stateward: mine is not a kubeconfig of ours and would be overwritten; name another file with --kubeconfig",
            Some(1)
        )
    );
}

#[test]
fn a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (said, code, _) = Started::new(&["--port", &port]).end();
    let expected =
        format!("stateward: cannot listen on port {port}; choose another with --port, or 0 for any: ");
    assert!(
        said.first().is_some_and(|line| line.starts_with(&expected)),
        "{said:?}"
    );
    assert_eq!(code, Some(1));
}

#[rstest]
#[case("0")]
#[case("-1")]
#[case("NaN")]
#[case("1000000")]
fn a_speed_that_cannot_be_is_refused(#[case] speed: &str) {
    let (said, code, _) = Started::new(&[&format!("--speed={speed}")]).end();
    assert_eq!(
        said,
        [format!(
            "stateward: --speed: {speed} is not above 0 and at most 10000"
        )]
    );
    assert_eq!(code, Some(1));
}
