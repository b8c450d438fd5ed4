//! Real control planes, started, used, killed and started again.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod workshop;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use rustix::process::{Pid, Signal, kill_process};
use workshop::{Process, components, control_plane, lines_of, plane_dir, said, succeed, xtask};

const GATED: &str = r#"{
    "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"},
    "spec": {
        "replicas": 0, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
        "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}},
        "template": {
            "metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "db", "image": "db:1"}]}
        }
    }
}"#;

/// One plane for the tests that only look at what happened on it.
struct Visit {
    output: Output,
    audit_log: String,
}

static VISIT: LazyLock<Visit> = LazyLock::new(|| {
    let script = r#"
        echo $KUBECONFIG
        kubectl create namespace seen >&2
        kubectl --kubeconfig ${KUBECONFIG%admin.kubeconfig}operator.kubeconfig get statefulsets
        kubectl --kubeconfig ${KUBECONFIG%admin.kubeconfig}user.kubeconfig get statefulsets
        cp $STATEWARD_TEST_AUDIT_LOG $COPY
        exit 7"#;
    let copy = tempfile::NamedTempFile::new().unwrap();
    let output = xtask(&["kube", "exec", "--", "sh", "-c", script])
        .env("COPY", copy.path())
        .output()
        .unwrap();
    Visit {
        output,
        audit_log: fs::read_to_string(copy.path()).unwrap(),
    }
});

#[test]
fn exec_exits_as_its_command_did_and_leaves_no_directory() {
    if !control_plane() {
        return;
    }
    let Visit { output, .. } = &*VISIT;
    assert_eq!(output.status.code(), Some(7), "{}", said(output));
    let dir = plane_dir(&String::from_utf8_lossy(&output.stdout));
    assert!(!dir.exists(), "{} is still there", dir.display());
}

#[test]
fn the_audit_log_shows_every_write_with_its_user_and_no_reads_but_the_operators() {
    if !control_plane() {
        return;
    }
    let Visit { output, audit_log } = &*VISIT;
    let by = |line: &&str, user: &str| line.contains(&format!(r#""username":"{user}""#));
    let created = |line: &&str| line.contains(r#""verb":"create""#) && line.contains(r#""name":"seen""#);
    assert!(
        audit_log.lines().any(|line| created(&line) && by(&line, "admin")),
        "{}",
        said(output)
    );
    assert!(
        audit_log
            .lines()
            .any(|line| by(&line, "system:kube-controller-manager"))
    );
    let operator = "system:serviceaccount:stateward-system:stateward";
    for verb in ["get", "list", "watch"] {
        let read = |line: &&str| line.contains(&format!(r#""verb":"{verb}""#));
        let others = audit_log.lines().filter(read).find(|line| !by(line, operator));
        assert_eq!(others, None, "a {verb} of somebody else's is in the audit log");
    }
    assert!(
        audit_log
            .lines()
            .any(|line| line.contains(r#""verb":"list""#) && by(&line, operator)),
        "what the operator reads is in the audit log"
    );
}

#[test]
fn the_operator_and_a_plain_user_may_do_nothing_until_rbac_says_so() {
    if !control_plane() {
        return;
    }
    let said = said(&VISIT.output);
    for user in ["system:serviceaccount:stateward-system:stateward", "alice"] {
        let refusal = format!("User \"{user}\" cannot list resource \"statefulsets\"");
        assert!(said.contains(&refusal), "{said}");
    }
}

#[test]
fn killing_exec_leaves_no_process_behind() {
    if !control_plane() {
        return;
    }
    let script = "echo $KUBECONFIG; echo $$; sleep 1000 & echo $!; wait";
    let mut exec = xtask(&["kube", "exec", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let [kubeconfig, shell, sleep] = lines_of(&mut exec);
    let mut left = components(&plane_dir(&kubeconfig));
    assert_eq!(left.len(), 3, "etcd, API server and controller manager run");
    left.push(Process::of(shell.parse().unwrap(), "the command"));
    left.push(Process::of(sleep.parse().unwrap(), "what the command started"));

    exec.kill().unwrap();
    exec.wait().unwrap();
    for process in left {
        process.wait_for_end();
    }
    assert!(components(&plane_dir(&kubeconfig)).is_empty());
}

#[test]
fn terminating_exec_stops_its_plane_and_removes_the_directory() {
    if !control_plane() {
        return;
    }
    let script = "echo $KUBECONFIG; exec sleep 1000";
    let mut exec = xtask(&["kube", "exec", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let [kubeconfig] = lines_of(&mut exec);
    kill_process(Pid::from_child(&exec), Signal::TERM).unwrap();
    assert_eq!(exec.wait().unwrap().code(), Some(143));
    let dir = plane_dir(&kubeconfig);
    assert!(
        components(&dir).is_empty() && !dir.exists(),
        "something is left of {}",
        dir.display()
    );
}

#[test]
fn a_killed_plane_neither_lives_on_nor_breaks_the_next_start_under_its_name() {
    if !control_plane() {
        return;
    }
    let plane = Up::start("killed", &[]);
    let supervisor = plane.owner();
    let left = components(&plane.dir());
    assert_eq!(left.len(), 3, "etcd, API server and controller manager run");
    kill_process(Pid::from_raw(supervisor).unwrap(), Signal::KILL).unwrap();
    for process in left {
        process.wait_for_end();
    }
    assert!(plane.dir().join("etcd").exists(), "the test needs a leftover");

    let again = Up::start("killed", &[]);
    assert!(
        again
            .kubectl(&["get", "namespaces", "default"])
            .contains("Active")
    );
}

#[test]
fn planes_run_side_by_side_each_with_its_own_feature_gates() {
    if !control_plane() {
        return;
    }
    let open = Up::start(
        "gate-open",
        &["--feature-gates", "MaxUnavailableStatefulSet=true"],
    );
    let shut = Up::start("gate-shut", &[]);
    for (plane, kept) in [(&open, "2"), (&shut, "")] {
        plane.apply(GATED);
        let field = "-o=jsonpath={.spec.updateStrategy.rollingUpdate.maxUnavailable}";
        assert_eq!(
            plane.kubectl(&["get", "statefulset/db", "-n=default", field]),
            kept,
            "plane {}",
            plane.name
        );
    }
}

/// A plane that goes down with the test.
struct Up {
    name: String,
    kubeconfig: PathBuf,
}

impl Up {
    fn start(name: &str, flags: &[&str]) -> Self {
        let name = format!("test-{name}-{}", std::process::id());
        let kubeconfig = succeed(xtask(&["kube", "up", "--name", &name]).args(flags));
        Self {
            name,
            kubeconfig: kubeconfig.trim_end().into(),
        }
    }

    fn dir(&self) -> PathBuf {
        self.kubeconfig.parent().unwrap().to_path_buf()
    }

    fn owner(&self) -> i32 {
        fs::read_to_string(self.dir().join("lock"))
            .unwrap()
            .parse()
            .unwrap()
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let binary = succeed(&mut xtask(&["kube", "build"]));
        let kubectl = PathBuf::from(binary.trim_end()).with_file_name("kubectl");
        succeed(
            Command::new(kubectl)
                .env("KUBECONFIG", &self.kubeconfig)
                .args(arguments),
        )
    }

    fn apply(&self, manifest: &str) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), manifest).unwrap();
        self.kubectl(&["create", "--validate=false", "-f", file.path().to_str().unwrap()]);
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _gone = xtask(&["kube", "down", "--name", &self.name])
            .stderr(Stdio::null())
            .status();
    }
}
