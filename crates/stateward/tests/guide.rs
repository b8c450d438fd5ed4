//! Runs the commands of the guides: the first guide on an embedded cluster with an operator, through the real kubectl.

#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "what a test cannot set up fails it"
)]

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use tempfile::TempDir;

/// A command after a `$` in a block of the guide, and its documented output.
#[derive(Debug, Default, PartialEq)]
struct Typed {
    command: String,
    prints: Vec<String>,
}

/// The commands in the `console` blocks of a page, in order.
fn typed(page: &str) -> Vec<Typed> {
    let mut typed: Vec<Typed> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            typed.push(Typed {
                command: command.to_owned(),
                prints: Vec::new(),
            });
        } else if inside && let Some(last) = typed.last_mut() {
            last.prints.push(line.to_owned());
        }
    }
    typed
}

/// Removes what differs in every run: times, ports, and column widths.
fn plain(line: &str) -> String {
    let is_time = |word: &str| {
        let word = word.trim_end_matches([',', ';', '.']);
        let rest = word.trim_end_matches(['s', 'm', 'h']).replace(['m', 'h'], "");
        !rest.is_empty() && rest.len() < word.len() && rest.chars().all(|c| c.is_ascii_digit())
    };
    let varies = |word: &&str| !is_time(word) && !word.contains("127.0.0.1:");
    line.split_whitespace()
        .filter(varies)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The kubectl built for the tests, or the machine's own.
fn kubectl() -> Option<PathBuf> {
    let beside = std::env::var_os("STATEWARD_TEST_KUBE").map(PathBuf::from);
    let beside = beside.as_deref().and_then(Path::parent).map(Path::to_owned);
    let target = Path::new(env!("CARGO_BIN_EXE_stateward")).parent()?.parent()?;
    let built = fs::read_dir(target.join("kube")).into_iter().flatten();
    let built = built.filter_map(|entry| Some(entry.ok()?.path()));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = beside
        .into_iter()
        .chain(built)
        .chain(std::env::split_paths(&path));
    all.into_iter().find(|dir| dir.join("kubectl").is_file())
}

/// A user with several terminals in one directory, whose processes end with it.
struct Desk {
    dir: TempDir,
    kubeconfig: PathBuf,
    /// Whether the cluster is new, so that all output is as in the guide.
    fresh: bool,
    path: OsString,
    running: Vec<(Child, BufReader<ChildStderr>)>,
}

impl Desk {
    fn new(kubectl: &Path) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // Every terminal but the first starts with this.
        let kubeconfig = dir.path().join("stateward.kubeconfig");
        let mut desk = Self::at(kubectl, dir, kubeconfig);
        desk.fresh = true;
        desk
    }

    /// With a cluster that others have used before.
    fn at(kubectl: &Path, dir: TempDir, kubeconfig: PathBuf) -> Self {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        symlink(docs, dir.path().join("docs")).unwrap();
        let ours = Path::new(env!("CARGO_BIN_EXE_stateward")).parent().unwrap();
        let others = std::env::var_os("PATH").unwrap_or_default();
        let all = [ours, kubectl].map(Path::to_owned).into_iter();
        let path = std::env::join_paths(all.chain(std::env::split_paths(&others))).unwrap();
        let running = Vec::new();
        Self {
            dir,
            kubeconfig,
            fresh: false,
            path,
            running,
        }
    }

    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", command])
            .current_dir(self.dir.path())
            .env("PATH", &self.path)
            .env("HOME", self.dir.path())
            .env("KUBECONFIG", &self.kubeconfig)
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null());
        shell
    }

    /// Runs a command that ends, and returns its output.
    fn run(&self, command: &str) -> String {
        let ended = self.shell(&format!("{{ {command}\n}} 2>&1")).output().unwrap();
        let printed = String::from_utf8(ended.stdout).unwrap();
        assert!(ended.status.success(), "{command}: {}\n{printed}", ended.status);
        printed
    }

    /// Starts a command that keeps running, and waits until it has printed this.
    fn start(&mut self, command: &str, until: &str) {
        let mut shell = self.shell(&format!("exec {command}"));
        let mut child = shell
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut talk = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains(until) {
            let before = said.len();
            talk.read_line(&mut said).unwrap();
            assert!(said.len() > before, "{command} has ended: {said}");
        }
        self.running.push((child, talk));
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        for (child, talk) in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
            let _ = talk.read_to_string(&mut String::new());
        }
    }
}

/// Follows a guide; returns the numbers of commands and of compared lines.
fn follow(guide: &str, desk: &mut Desk) -> (usize, usize) {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/guides/{guide}"));
    let guide = fs::read_to_string(guide).unwrap();
    let (mut ran, mut compared) = (0, 0);
    for Typed { command, prints } in typed(&guide) {
        let verb = command.split_whitespace().nth(1).unwrap_or_default();
        match (command.split_whitespace().next(), verb) {
            // It has its own test.
            (_, "demo") => continue,
            (Some("stateward"), "cluster") => desk.start(&command, "stop with Ctrl-C"),
            (Some("stateward"), "operator") => {
                // Tests run concurrently, and a port can only be bound once.
                desk.start(&format!("{command} --listen 127.0.0.1:0"), " starts ");
            }
            // These keep running, for people; other commands print the same.
            _ if command.ends_with(" -w") || verb == "top" => continue,
            _ => {
                let printed = desk.run(&command);
                let lines: Vec<_> = printed.lines().map(plain).collect();
                for line in prints
                    .iter()
                    .filter(|line| desk.fresh && !line.contains('…') && !line.is_empty())
                {
                    let line = plain(line);
                    assert!(lines.contains(&line), "{command}: {line:?} is not in\n{printed}");
                    compared += 1;
                }
            }
        }
        ran += 1;
    }
    (ran, compared)
}

#[test]
fn the_first_guide_works_as_it_stands_there() {
    let Some(kubectl) = kubectl() else {
        eprintln!("skipped: there is no kubectl; cargo xtask kube builds one");
        return;
    };
    let (ran, compared) = follow("first-rollout.md", &mut Desk::new(&kubectl));
    assert!(
        ran >= 15 && compared >= 30,
        "{ran} commands, {compared} lines: has the form of the guide changed?"
    );
}

/// S002-12: one command each to install, run, deploy, undeploy and uninstall.
fn install_and_remove(desk: &mut Desk) {
    let (ran, compared) = follow("install.md", desk);
    assert!(
        ran >= 7 && (compared >= 20 || !desk.fresh),
        "{ran} commands, {compared} lines: has the form of the guide changed?"
    );
    let left = desk.run("kubectl get crds,clusterroles,namespaces -o name");
    assert!(
        !left.contains("stateward") && !left.contains("rollouts"),
        "{left}"
    );
}

#[test]
fn the_guide_to_installing_works_as_it_stands_there() {
    let Some(kubectl) = kubectl() else {
        eprintln!("skipped: there is no kubectl; cargo xtask kube builds one");
        return;
    };
    let mut desk = Desk::new(&kubectl);
    desk.start("stateward cluster", "stop with Ctrl-C");
    install_and_remove(&mut desk);
}

/// On a user's cluster, the removal at the end would do damage.
#[test]
fn the_guide_to_installing_works_on_a_real_control_plane_of_ours() {
    let ours = std::env::var_os("STATEWARD_TEST_KUBE").and(std::env::var_os("STATEWARD_TEST_KUBECONFIG"));
    let (Some(kubeconfig), Some(kubectl)) = (ours, kubectl()) else {
        eprintln!("skipped: there is no control plane of ours");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    install_and_remove(&mut Desk::at(&kubectl, dir, kubeconfig.into()));
}

#[test]
fn the_guide_to_plans_needs_no_cluster() {
    let (ran, compared) = follow("plan.md", &mut Desk::new(Path::new("no kubectl")));
    assert!(
        ran >= 4 && compared >= 15,
        "{ran} commands, {compared} lines: has the form of the guide changed?"
    );
}

#[test]
fn a_page_tells_what_is_typed_and_printed() {
    let page = "```console\n$ a b\nc\n\n$ d\n```\n```yaml\n$ e\n```\n$ f\n";
    let one = |command: &str, prints: &[&str]| Typed {
        command: command.into(),
        prints: prints.iter().map(|line| (*line).to_owned()).collect(),
    };
    assert_eq!(typed(page), [one("a b", &["c", ""]), one("d", &[])]);
    assert_eq!(
        plain("pod/db-4   new  Ready   12s, for 1m3s"),
        "pod/db-4 new Ready for"
    );
}
