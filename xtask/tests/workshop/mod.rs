//! Runs the built xtask, and finds and outlives processes, for the tests of this folder.

#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::{env, fs};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Long enough for the busiest machine; no test asserts how long something takes.
const DEADLINE: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// The xtask under test.
pub(crate) fn xtask(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Whether there is a control plane to test with; a machine without one skips, and says so past the
/// test runner's capture, but in CI that is a failure.
pub(crate) fn control_plane() -> bool {
    static BUILT: LazyLock<bool> = LazyLock::new(|| {
        let there = env::var_os("STATEWARD_TEST_KUBE").is_some();
        let go = || {
            Command::new("go")
                .arg("version")
                .stdout(Stdio::null())
                .status()
                .is_ok_and(|go| go.success())
        };
        // Once for all tests, and with its progress shown.
        there
            || (go()
                && xtask(&["kube", "build"])
                    .stdout(Stdio::null())
                    .status()
                    .unwrap()
                    .success())
    });
    if !*BUILT {
        assert!(
            env::var_os("CI").is_none_or(|ci| ci != "true")
                || env::var_os("STATEWARD_TEST_KUBECONFIG").is_some(),
            "no control plane, and CI=true makes that a failure"
        );
        let _told =
            std::io::stderr().write_all(b"SKIPPED a test on a real control plane: no Go on this machine\n");
    }
    *BUILT
}

/// Runs `command` to its end and shows what it said when that is not a success.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?} failed:\n{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Everything a command said.
pub(crate) fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The next `N` lines of a child's piped stdout.
pub(crate) fn lines_of<const N: usize>(child: &mut Child) -> [String; N] {
    let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
    [(); N].map(|()| {
        let mut line = String::new();
        assert_ne!(stdout.read_line(&mut line).unwrap(), 0, "the command ended early");
        line.trim_end().to_owned()
    })
}

/// The directory of the plane that a kubeconfig belongs to.
pub(crate) fn plane_dir(kubeconfig: &str) -> PathBuf {
    Path::new(kubeconfig.trim_end()).parent().unwrap().to_path_buf()
}

/// A process seen at some moment, safe against the reuse of its id.
pub(crate) struct Process {
    name: String,
    pidfd: OwnedFd,
}

impl Process {
    /// The process with this id.
    pub(crate) fn of(pid: i32, name: &str) -> Self {
        let pidfd = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty());
        Self {
            name: name.to_owned(),
            pidfd: pidfd.unwrap_or_else(|error| panic!("{name} is not running: {error}")),
        }
    }

    /// Waits for its end.
    pub(crate) fn wait_for_end(&self) {
        let ended = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&DEADLINE)).unwrap();
        assert_eq!(ended, 1, "{} is still running", self.name);
    }
}

/// The components of the plane in `dir`, found by their command lines.
pub(crate) fn components(dir: &Path) -> Vec<Process> {
    let inside = format!("{}/", dir.display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(&inside) {
            found.push(Process::of(pid, &line));
        }
    }
    found
}
