//! The verbs as a user runs them: the real binary, a real socket, and an operator.

#![allow(clippy::disallowed_methods, reason = "tests name their own objects")]
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it"
)]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, Config, ResourceExt};
use rstest::rstest;
use serde_json::json;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_clock::Clock;
use stateward_controller::{Operator, Options};
use tempfile::TempDir;

/// A running `stateward cluster` in its own directory. Killed when it is dropped.
struct Plane {
    process: Child,
    /// Kept open, because a process that writes to a closed pipe is killed.
    _talk: BufReader<ChildStderr>,
    dir: TempDir,
}

impl Plane {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_stateward"))
            .arg("cluster")
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Its message says when it serves.
        let mut talk = BufReader::new(process.stderr.take().unwrap());
        let mut first = String::new();
        talk.read_line(&mut first).unwrap();
        assert!(first.contains(" serves on "), "{first}");
        Self {
            process,
            _talk: talk,
            dir,
        }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("stateward.kubeconfig")
    }

    async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        Client::try_from(config.unwrap()).unwrap()
    }

    /// Runs a command; returns the exit code, stdout and stderr.
    async fn run(&self, program: &Path, line: &str) -> (Option<i32>, String, String) {
        let mut command = Command::new(program);
        command
            .args(line.split(' '))
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .stdin(Stdio::null());
        // The operator in this process must not be blocked meanwhile.
        let ended = tokio::task::spawn_blocking(move || command.output()).await;
        let ended = ended.unwrap().unwrap();
        (
            ended.status.code(),
            String::from_utf8(ended.stdout).unwrap(),
            String::from_utf8(ended.stderr).unwrap(),
        )
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn furnish(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in stateward_api::definitions() {
        let created = definitions
            .create(&PostParams::default(), &definition)
            .await
            .unwrap();
        let established = conditions::is_crd_established();
        await_condition(definitions.clone(), &created.name_any(), established)
            .await
            .unwrap();
    }
    let options = Options {
        clock: Clock::wall(),
        namespaces: Vec::new(),
    };
    tokio::spawn(Operator::new(client.clone(), options).run());
    let set: StatefulSet = serde_json::from_value(json!({
        "metadata": {"name": "db"},
        "spec": {
            "replicas": 2, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "db", "image": "db:v1"}]},
            },
        },
    }))
    .unwrap();
    let sets: Api<StatefulSet> = Api::default_namespaced(client.clone());
    sets.create(&PostParams::default(), &set).await.unwrap();
    let rollout: RolloutPlugin = serde_json::from_value(json!({
        "metadata": {"name": "db"},
        "spec": {
            "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
            "plugin": {"name": "statefulset"},
            "strategy": {"canary": {"steps": [{"setWeight": 50}, {"pause": {}}]}},
        },
    }))
    .unwrap();
    let rollouts: Api<RolloutPlugin> = Api::default_namespaced(client.clone());
    rollouts.create(&PostParams::default(), &rollout).await.unwrap();
}

async fn set_image(client: &Client, image: &str) {
    let containers = json!([{"name": "db", "image": image}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let sets: Api<StatefulSet> = Api::default_namespaced(client.clone());
    sets.patch("db", &PatchParams::default(), &Patch::Strategic(patch))
        .await
        .unwrap();
}

async fn until(client: &Client, phase: &str) {
    let there = |rollout: Option<&RolloutPlugin>| {
        let status = rollout.and_then(|rollout| rollout.status.as_ref());
        status.is_some_and(|status| status.phase == phase)
    };
    let rollouts: Api<RolloutPlugin> = Api::default_namespaced(client.clone());
    await_condition(rollouts, "db", there).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_is_steered_by_the_binary_and_by_the_plugin() {
    let plane = Plane::start();
    let client = plane.client().await;
    furnish(&client).await;
    let stateward = PathBuf::from(env!("CARGO_BIN_EXE_stateward"));
    let plugin = plane.dir.path().join("kubectl-stateward");
    symlink(&stateward, &plugin).unwrap();

    let (code, out, talk) = plane.run(&stateward, "status db --watch --timeout 60s").await;
    assert_eq!(code, Some(0), "{out}{talk}");
    set_image(&client, "db:v2").await;
    until(&client, "Paused").await;
    let (code, out, _) = plane.run(&stateward, "status rolloutplugin/db").await;
    assert_eq!(code, Some(3), "{out}");

    let (code, out, talk) = plane.run(&plugin, "resume db").await;
    assert_eq!((code, out.as_str()), (Some(1), ""));
    // The suggestion is for the same cluster and the current revision, and works.
    let said = "kubectl stateward: rolloutplugin db is paused by a step and not by spec.paused; go on with: kubectl stateward ";
    let suggested = talk.trim_end().strip_prefix(said).unwrap();
    let promote = format!(
        "--kubeconfig {} promote db --revision db-",
        plane.kubeconfig().display()
    );
    assert!(suggested.starts_with(&promote), "{suggested}");
    let (code, out, talk) = plane.run(&plugin, suggested).await;
    assert_eq!(
        (code, out.as_str()),
        (
            Some(0),
            "rolloutplugin.argoproj.io/db promoted by kubernetes-admin\n"
        ),
        "{talk}"
    );
    let (code, out, talk) = plane.run(&stateward, "status db -w --timeout 60s").await;
    assert_eq!(code, Some(0), "{out}{talk}");
    let (code, out, _) = plane.run(&stateward, "get -A").await;
    assert_eq!(code, Some(0));
    assert!(out.starts_with("NAMESPACE   NAME   STATUS"), "{out}");
    let (code, _, talk) = plane.run(&stateward, "abort nobody").await;
    assert_eq!(code, Some(5), "{talk}");
}

#[rstest]
#[case(&["status"], 1)]
#[case(&["get", "deploy/db"], 1)]
#[case(&["get", "db", "-A"], 1)]
#[case(&["no-such-verb"], 1)]
#[case(&["status", "--help"], 0)]
#[case(&["--version"], 0)]
fn bad_arguments_never_look_like_a_failed_rollout(#[case] arguments: &[&str], #[case] code: i32) {
    let ended = Command::new(env!("CARGO_BIN_EXE_stateward"))
        .args(arguments)
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(code), "{ended:?}");
}

#[test]
fn without_a_cluster_it_says_what_to_set() {
    let ended = Command::new(env!("CARGO_BIN_EXE_stateward"))
        .args(["get", "--kubeconfig", "no-such-file"])
        .output()
        .unwrap();
    let talk = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert!(talk.starts_with("stateward: no cluster to talk to: "), "{talk}");
    assert!(
        talk.trim_end()
            .ends_with("set KUBECONFIG, or name one with --kubeconfig or --context"),
        "{talk}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shell_completes_verbs_and_the_names_that_the_cluster_has() {
    let plane = Plane::start();
    furnish(&plane.client().await).await;
    let kubeconfig = plane.kubeconfig().display().to_string();
    let complete = |words: &[&str]| {
        let ended = Command::new(env!("CARGO_BIN_EXE_stateward"))
            .arg("--")
            .args(words)
            .env("STATEWARD_COMPLETE", "bash")
            .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
            .env("_CLAP_IFS", "\n")
            .output()
            .unwrap();
        String::from_utf8(ended.stdout).unwrap()
    };
    assert_eq!(complete(&["stateward", "expl"]), "explain");
    assert_eq!(
        complete(&["stateward", "get", "--kubeconfig", &kubeconfig, "d"]),
        "db"
    );
    assert_eq!(
        complete(&["stateward", "promote", "--kubeconfig", &kubeconfig, "rp/"]),
        "rp/db"
    );
    assert_eq!(
        complete(&["stateward", "get", "--kubeconfig", "no-such-file", "d"]),
        ""
    );
    // Names and no flags for an empty word.
    assert_eq!(
        complete(&["stateward", "status", "--kubeconfig", &kubeconfig, ""]),
        "db"
    );
    let planned = complete(&["stateward", "plan", "--kubeconfig", &kubeconfig, ""]);
    assert!(planned.lines().any(|line| line == "db"), "{planned}");
    assert!(planned.lines().any(|line| line == "Cargo.toml"), "{planned}");
    assert_eq!(complete(&["stateward", "get", "--output", "jsonp"]), "jsonpath=");
    assert_eq!(
        complete(&["stateward", "get", "--kubeconfig", &kubeconfig, "--context", ""]),
        "stateward"
    );
    assert_eq!(
        complete(&["stateward", "get", "--kubeconfig", &kubeconfig, "-n", "def"]),
        "default"
    );
    assert_eq!(complete(&["stateward", "get", "--request"]), "--request-timeout");
    assert_eq!(
        complete(&[
            "stateward",
            "undo",
            "db",
            "--kubeconfig",
            &kubeconfig,
            "--to-revision",
            ""
        ]),
        "1"
    );
}

#[test]
fn what_needs_no_cluster_asks_for_none() {
    let run = |arguments: &[&str]| {
        let ended = Command::new(env!("CARGO_BIN_EXE_stateward"))
            .args(arguments)
            .output()
            .unwrap();
        (ended.status.code(), String::from_utf8(ended.stdout).unwrap())
    };
    let client = concat!("client: ", env!("CARGO_PKG_VERSION"), "\n").to_owned();
    assert_eq!(run(&["version", "--client"]), (Some(0), client.clone()));
    assert_eq!(
        run(&["version", "--kubeconfig", "no-such-file"]),
        (Some(1), client)
    );
    let manifest = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../cli/tests/verbs/manifests/good.yaml"
    );
    assert_eq!(run(&["lint", manifest]), (Some(0), String::new()));
}

#[test]
fn lint_reads_a_rendered_chart_from_standard_input() {
    let lint = |manifest: &str, arguments: &[&str]| {
        let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/verbs");
        let ended = Command::new(env!("CARGO_BIN_EXE_stateward"))
            .arg("lint")
            .args(arguments)
            .stdin(File::open(manifests.join(manifest)).unwrap())
            .output()
            .unwrap();
        (ended.status.code(), String::from_utf8(ended.stdout).unwrap())
    };
    let (code, found) = lint("rendered/chart.yaml", &["-"]);
    assert_eq!(code, Some(1), "{found}");
    let replicas = "-:84: spec.replicas: \"5\" is not an integer [db/templates/statefulset.yaml]";
    assert!(found.lines().any(|line| line == replicas), "{found}");
    assert_eq!(
        lint("manifests/good.yaml", &["--strict", "-f", "-"]),
        (Some(0), String::new())
    );
}
