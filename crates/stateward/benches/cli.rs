//! The budgets of the command line, measured. Prints a table; asserts nothing.
//!
//! `cargo xtask bench cli`: on the cluster of `stateward demo --interactive`, with no rollout in progress.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark talks, waits, and ends where it cannot go on"
)]

use std::fmt::Display;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_preview::{Subject, play};

const STATEWARD: &str = env!("CARGO_BIN_EXE_stateward");
const ROUNDS: usize = 31;

fn main() {
    row("what", "measured", "budget");
    let stage = Stage::open();
    let answer = stage.answer();
    row("the API server's own answer to a get, p50", ms(answer), "-");
    for verb in [
        "get",
        "get db",
        "status db",
        "explain db",
        "history db",
        "diff db",
    ] {
        let wall = stage.typed(verb);
        row(
            &format!("{verb}, p50 beyond that"),
            ms(wall.saturating_sub(answer)),
            "100 ms",
        );
    }
    stage.watch();
    plan();
    let size = fs::metadata(STATEWARD).unwrap().len();
    row("the binary", format!("{:.1} MB", size as f64 / 1e6), "40 MB");
}

fn row(what: &str, measured: impl Display, budget: impl Display) {
    println!(
        "{what:<58} {:>14} {:>12}",
        measured.to_string(),
        budget.to_string()
    );
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn measured(mut work: impl FnMut()) -> Duration {
    let round = || {
        let began = Instant::now();
        work();
        began.elapsed()
    };
    median(std::iter::repeat_with(round).take(ROUNDS).collect())
}

/// A rollout of ten steps over ten pods.
fn plan() {
    let steps: Vec<_> = (1..=10).map(|step| json!({"setWeight": step * 10})).collect();
    let set = json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"},
        "spec": {
            "replicas": 10, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}},
                "spec": {"containers": [{"name": "db", "image": "db:2.0"}]},
            },
        },
    });
    let rollout = json!({
        "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPlugin", "metadata": {"name": "db"},
        "spec": {
            "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
            "plugin": {"name": "statefulset"},
            "strategy": {"canary": {"steps": steps}},
        },
    });
    let mut subject = Subject::default();
    subject.add_manifests([set, rollout]).unwrap();
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    let time = measured(|| {
        play(&subject, &[], subject.pace(None, None), now, "stateward").unwrap();
    });
    row("plan of ten steps over ten pods, p50", ms(time), "100 ms");
}

/// `stateward demo --interactive`
struct Stage {
    process: Child,
    dir: tempfile::TempDir,
}

impl Stage {
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut process = Command::new(STATEWARD)
            .args(["demo", "--interactive"])
            .current_dir(dir.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let talk = BufReader::new(process.stderr.take().unwrap());
        talk.lines()
            .find(|line| line.as_ref().unwrap() == "stop with Ctrl-C");
        let stage = Self { process, dir };
        let status = stage.command("status db --watch --timeout 2m").status().unwrap();
        assert!(status.success(), "the stage is not at rest");
        stage
    }

    fn kubeconfig(&self) -> PathBuf {
        self.dir.path().join("stateward.kubeconfig")
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(STATEWARD);
        command
            .args(line.split(' '))
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn typed(&self, line: &str) -> Duration {
        measured(|| {
            self.command(line).status().unwrap();
        })
    }

    /// The duration of a request over an open connection.
    fn answer(&self) -> Duration {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let api: Api<RolloutPlugin> = runtime.block_on(async {
            let kubeconfig = Kubeconfig::read_from(self.kubeconfig()).unwrap();
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
            Api::default_namespaced(Client::try_from(config.unwrap()).unwrap())
        });
        measured(|| drop(runtime.block_on(api.get("db")).unwrap()))
    }

    /// A live view while nothing changes.
    fn watch(&self) {
        const TIME: Duration = Duration::from_secs(20);
        let pair = native_pty_system().openpty(PtySize::default()).unwrap();
        let mut command = CommandBuilder::new(STATEWARD);
        command.args(["get", "db", "-w", "--kubeconfig"]);
        command.arg(self.kubeconfig());
        command.env("TERM", "xterm-256color");
        let mut child = pair.slave.spawn_command(command).unwrap();
        let mut output = pair.master.try_clone_reader().unwrap();
        std::thread::spawn(move || while output.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {});
        // It has started when the screen has been drawn.
        std::thread::sleep(Duration::from_secs(2));
        let pid = child.process_id().unwrap();
        let before = cpu(pid);
        std::thread::sleep(TIME);
        let used = (cpu(pid) - before).as_secs_f64() / TIME.as_secs_f64() * 100.0;
        row(
            "the live view while nothing changes, of a core",
            format!("{used:.2} %"),
            "2 %",
        );
        child.kill().unwrap();
    }
}

/// CPU time so far.
fn cpu(pid: u32) -> Duration {
    /// On Linux, for all readers of /proc.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap();
    // The second field may contain spaces, and ends with the last parenthesis.
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let fields: Vec<_> = fields.split(' ').collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.process), Signal::INT);
        let _ = self.process.wait();
    }
}
