//! The verbs as a kubectl plugin, run through the real kubectl on a real control plane.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use serde_json::{Value, json};
use stateward_scenarios::harness::{Cluster, Failure, Outcome};
use stateward_scenarios::scenarios;
use tempfile::TempDir;

scenarios![
    every_verb_does_on_a_real_cluster_what_it_says,
    a_bad_word_is_refused_and_changes_nothing,
    kubectl_completes_what_the_plugin_takes,
    a_plan_needs_no_right_but_get,
];

fn main() -> anyhow::Result<ExitCode> {
    stateward_scenarios::harness::run(all())
}

/// S000-05: a rollout that starts with an image and is controlled to its end.
async fn every_verb_does_on_a_real_cluster_what_it_says(cluster: &mut Cluster) -> Outcome {
    let shell = Shell::beside(cluster)?;
    cluster.with_operator().await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}, {"setWeight": 67}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;

    shell
        .says(
            "set image db *=example.com/db:v2 --dry-run=server",
            0,
            "statefulset.apps/db image updated (server dry run)",
        )
        .await?;
    db.expect_images(["v1"; 3]).await?;
    shell
        .says(
            "set image sts/db *=example.com/db:v2",
            0,
            "statefulset.apps/db image updated",
        )
        .await?;
    rollout.expect_step(1, "Paused").await?;
    shell.says("status db", 3, "db: Paused: step 2 of 4").await?;
    shell
        .says("get", 0, "db     Paused   -        2/4    34%")
        .await?;
    shell.says("list -A", 0, "Paused").await?;
    shell.says("get rp/db", 0, "▶ pause until promoted").await?;
    shell
        .says("get db -o jsonpath={.status.phase}", 0, "Paused")
        .await?;
    shell
        .says("get db -o name", 0, "rolloutplugin.argoproj.io/db")
        .await?;
    shell.says("get -l no=such", 0, "").await?;
    shell
        .says(
            "explain db",
            0,
            "a user to promote it: the pause of step 2 of 4 has no end",
        )
        .await?;
    shell.says("diff db", 0, "+  - image: example.com/db:v2").await?;
    shell.says("history db", 0, "rolling, step 2 of 4").await?;
    shell
        .says("promote db --dry-run=server", 0, "promoted (server dry run)")
        .await?;
    shell
        .says("promote db", 0, "rolloutplugin.argoproj.io/db promoted")
        .await?;
    rollout.expect_step(3, "Paused").await?;
    shell
        .says("pause --all", 0, "rolloutplugin.argoproj.io/db paused")
        .await?;
    shell
        .says("resume db", 0, "rolloutplugin.argoproj.io/db resumed")
        .await?;
    shell
        .says("undo db", 0, "statefulset.apps/db rolled back")
        .await?;
    rollout.expect_phase("Successful").await?;
    db.expect_images(["v1"; 3]).await?;

    shell
        .says("undo db --to-revision 2", 0, "statefulset.apps/db rolled back")
        .await?;
    rollout.expect_step(1, "Paused").await?;
    shell
        .says("abort db", 0, "rolloutplugin.argoproj.io/db aborted")
        .await?;
    shell
        .says("status db --watch --timeout 60s", 2, "every pod is back")
        .await?;
    shell.says("history db", 0, "rejected").await?;
    shell
        .says("retry db", 0, "rolloutplugin.argoproj.io/db retried")
        .await?;
    rollout.expect_step(1, "Paused").await?;
    shell
        .says(
            "promote db --full",
            0,
            "rolloutplugin.argoproj.io/db fully promoted",
        )
        .await?;
    shell
        .says("status db --watch --timeout 60s", 0, "db: Successful")
        .await?;
    db.expect_images(["v2"; 3]).await?;

    shell
        .says("restart db", 0, "statefulset.apps/db restarted")
        .await?;
    rollout.expect_step(1, "Paused").await?;
    shell
        .says("undo db", 0, "statefulset.apps/db rolled back")
        .await?;
    rollout.expect_phase("Successful").await?;
    shell.says("version", 0, "server: v1.").await
}

async fn a_bad_word_is_refused_and_changes_nothing(cluster: &mut Cluster) -> Outcome {
    let shell = Shell::beside(cluster)?;
    cluster.with_operator().await?;
    cluster.statefulset("db").replicas(2).start().await?;
    let rollout = cluster
        .rollout("db")
        .steps(json!([{"setWeight": 50}, {"pause": {}}]))
        .start()
        .await?;
    let before = rollout.get().await?.metadata.resource_version;
    for (line, code) in [
        ("promote db", 1),
        ("abort db", 1),
        ("retry db", 1),
        ("resume db", 1),
        ("undo db", 1),
        ("set image db web=example.com/db:v2", 1),
        ("promote --all", 1),
        ("abort nobody", 5),
        ("explain sts/nobody", 5),
        ("promote db --as nobody", 1),
        ("get deploy/db", 1),
    ] {
        shell.says(line, code, "").await?;
    }
    let after = rollout.get().await?.metadata.resource_version;
    cluster.expect("nothing was changed", before == after)
}

async fn kubectl_completes_what_the_plugin_takes(cluster: &mut Cluster) -> Outcome {
    let shell = Shell::beside(cluster)?;
    cluster.with_operator().await?;
    cluster.statefulset("db").replicas(1).start().await?;
    cluster.rollout("db").steps(json!([])).start().await?;
    let namespace = cluster.namespace();
    for (line, part) in [
        ("__complete stateward pro".to_owned(), "promote"),
        (
            format!("__complete stateward get -n {namespace} d"),
            "db\trolloutplugin",
        ),
        (format!("__complete stateward abort -n {namespace} rp/"), "rp/db"),
        ("__complete stateward get --sel".to_owned(), "--selector"),
    ] {
        let (code, out, talk) = shell.kubectl(&line).await?;
        if code != Some(0) || !out.contains(part) || !out.contains(":4") {
            return Err(cluster.unmet(
                format!("{line} is completed with {part}"),
                format!("{code:?}: {out}{talk}"),
            ));
        }
    }
    Ok(())
}

/// The current state is read from the cluster, and nothing is written.
async fn a_plan_needs_no_right_but_get(cluster: &mut Cluster) -> Outcome {
    let shell = Shell::beside(cluster)?;
    cluster.with_operator().await?;
    let metrics = json!([{
        "name": "errors", "interval": "30s", "count": 2, "successCondition": "result[0] < 0.01",
        "provider": {"prometheus": {"address": "http://prometheus:9090", "query": "errors"}},
    }]);
    cluster
        .create(
            "analysistemplates",
            "errors",
            json!({"spec": {"metrics": metrics}}),
        )
        .await?;
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([
        {"setWeight": 34}, {"pause": {}}, {"analysis": {"templates": [{"templateName": "errors"}]}},
    ]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    let rules = json!([
        {"apiGroups": ["argoproj.io"], "resources": ["rolloutplugins", "analysistemplates"], "verbs": ["get"]},
        {"apiGroups": ["sts.plus"], "resources": ["phasedrollouts"], "verbs": ["get"]},
        {"apiGroups": ["apps"], "resources": ["statefulsets", "controllerrevisions"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    ]);
    cluster.create("roles", "reader", json!({"rules": rules})).await?;
    let binding = json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}],
    });
    cluster.create("rolebindings", "reader", binding).await?;
    let before = (
        rollout.get().await?.metadata.resource_version,
        db.get().await?.metadata.resource_version,
    );
    let namespace = cluster.namespace();
    shell
        .says(
            "plan db --as reader --ready-after 10s",
            0,
            &format!("people       step 2: kubectl stateward --as reader -n {namespace} promote db"),
        )
        .await?;
    shell
        .says(
            "plan rp/db --as reader --what-if metric=fails",
            0,
            "outcome      RolledBack",
        )
        .await?;
    // A rollout in progress is simulated from its current state.
    shell.says("promote db --as reader", 1, "").await?;
    let after = (
        rollout.get().await?.metadata.resource_version,
        db.get().await?.metadata.resource_version,
    );
    cluster.expect("nothing was changed", before == after)?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    shell
        .says(
            "plan db --as reader -o json",
            0,
            "is under way: the preview begins at step 2",
        )
        .await?;
    shell.says("plan nobody --as reader", 5, "").await
}

/// A user with the plugin in their `PATH`.
struct Shell {
    path: OsString,
    kubeconfig: PathBuf,
    namespace: String,
    _dir: TempDir,
}

impl Shell {
    fn beside(cluster: &Cluster) -> Outcome<Self> {
        let Some(kubeconfig) = cluster.kubeconfig() else {
            return Err(Failure::NotHere(
                "a process cannot reach a cluster inside this one".into(),
            ));
        };
        let dir = tempfile::tempdir()?;
        for name in ["kubectl-stateward", "kubectl_complete-stateward"] {
            symlink(env!("CARGO_BIN_EXE_stateward"), dir.path().join(name))?;
        }
        let kubectl = std::env::var_os("STATEWARD_TEST_KUBE").map(PathBuf::from);
        let kubectl = kubectl.as_deref().and_then(Path::parent).map(Path::to_owned);
        let others = std::env::var_os("PATH").unwrap_or_default();
        let all = [dir.path().to_owned()]
            .into_iter()
            .chain(kubectl)
            .chain(std::env::split_paths(&others));
        let path = std::env::join_paths(all).map_err(std::io::Error::other)?;
        let shell = Self {
            path,
            kubeconfig: kubeconfig.to_owned(),
            namespace: cluster.namespace().to_owned(),
            _dir: dir,
        };
        if shell.command(&["version", "--client"]).output().is_err() {
            return Err(Failure::NotHere("there is no kubectl in PATH".into()));
        }
        Ok(shell)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .args(words)
            .env("PATH", &self.path)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command; returns the exit code, stdout and stderr.
    async fn kubectl(&self, line: &str) -> Outcome<(Option<i32>, String, String)> {
        let words: Vec<_> = line.split(' ').collect();
        let mut command = self.command(&words);
        // The operator in this process must not be blocked meanwhile.
        let ended = tokio::task::spawn_blocking(move || command.output()).await;
        let ended = ended.map_err(std::io::Error::other)??;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((ended.status.code(), text(ended.stdout), text(ended.stderr)))
    }

    /// Runs `kubectl stateward …`, and checks the exit code and a part of the output. A refused command has no output.
    async fn says(&self, line: &str, code: i32, part: &str) -> Outcome {
        let (ended, out, talk) = self
            .kubectl(&format!("stateward {line} -n {}", self.namespace))
            .await?;
        let silent = code == 0 || code == 2 || code == 3 || out.is_empty();
        if ended == Some(code) && out.contains(part) && silent {
            return Ok(());
        }
        let expected = json!({"line": line, "code": code, "part": part});
        let seen: Value = json!({"code": ended, "out": out, "talk": talk});
        Err(Failure::from(std::io::Error::other(format!(
            "expected {expected}, saw {seen}"
        ))))
    }
}
