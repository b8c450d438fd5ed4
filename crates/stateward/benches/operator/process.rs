//! The operator as a process, and its resource usage.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// On Linux, for all readers of /proc.
const TICKS_PER_SECOND: u64 = 100;

/// A running `stateward operator`. Killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    probes: SocketAddr,
}

impl Process {
    /// Without leader election, which would have to wait for the previous Lease to expire.
    pub(crate) fn start(kubeconfig: &Path, namespace: &str) -> Self {
        Self::start_with(kubeconfig, namespace, &[])
    }

    /// The same with more arguments.
    pub(crate) fn start_with(kubeconfig: &Path, namespace: &str, arguments: &[&str]) -> Self {
        Self::start_for_all(kubeconfig, &[&["--namespace", namespace], arguments].concat())
    }

    /// For all namespaces.
    pub(crate) fn start_for_all(kubeconfig: &Path, arguments: &[&str]) -> Self {
        let probes = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .and_then(|free| free.local_addr())
            .unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_stateward"))
            .args(["operator", "--leader-elect=false", "--log-level=warn"])
            .args(arguments)
            .arg(format!("--listen={probes}"))
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create("/dev/null").unwrap())
            .spawn()
            .unwrap();
        Self { child, probes }
    }

    /// Resident memory, in MiB.
    pub(crate) fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The peak of resident memory, in MiB.
    pub(crate) fn most_resident(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, which: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(which));
        let kib: u64 = line
            .and_then(|line| line.trim().strip_suffix(" kB"))
            .and_then(|kib| kib.parse().ok())
            .unwrap();
        kib / 1024
    }

    /// CPU time so far.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The second field may contain spaces, and ends with the last parenthesis.
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        let ticks: u64 = fields
            .split(' ')
            .skip(11)
            .take(2)
            .filter_map(|ticks| ticks.parse::<u64>().ok())
            .sum();
        Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND)
    }

    /// The value of a metric; `None` if it does not answer.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let mut stream = TcpStream::connect(self.probes).ok()?;
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let value = answer.lines().find_map(|line| line.strip_prefix(name));
        value?.trim().parse().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
