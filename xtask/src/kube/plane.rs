//! A running plane: started in order, monitored during startup, stopped with its owner.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::Signal;

use super::Options;
use super::build::Binary;
use super::component::{self, Component, Ports};
use super::dir::PlaneDir;
use super::users::{self, User};
use crate::process::{self, Running, exit_code};
use crate::signals::{Interrupted, Signals, Woke};

/// The startup timeout of a component on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// The polling interval for what cannot be watched.
const GLANCE: Duration = Duration::from_millis(25);
/// Ports are free when they are selected, not when they are used; this is the number of attempts.
const ATTEMPTS: usize = 5;

/// A control plane that runs as long as this value lives.
pub(crate) struct Plane {
    // Before the directory, so that the processes end before the lock is released.
    components: Vec<(Component, Running)>,
    dir: PlaneDir,
    binary: Binary,
}

impl Plane {
    /// Starts a plane in `dir` and returns when it serves and its controllers work.
    pub(crate) fn start(dir: PlaneDir, binary: Binary, options: &Options, signals: &Signals) -> Result<Self> {
        eprintln!("starting control plane {}", dir.name());
        let began = Instant::now();
        let mut plane = Self {
            components: Vec::new(),
            dir,
            binary,
        };
        for attempt in 1.. {
            match plane.bring_up(options, signals) {
                Ok(()) => break,
                Err(error) => {
                    plane.components.clear();
                    if error.is::<Interrupted>() {
                        plane.dir.remove()?;
                        return Err(error);
                    }
                    let stolen = error
                        .downcast_ref::<Exited>()
                        .is_some_and(|exited| exited.port_taken);
                    if !stolen || attempt == ATTEMPTS {
                        return Err(error);
                    }
                    eprintln!(
                        "another program took a port of control plane {}; trying other ports",
                        plane.dir.name()
                    );
                    plane.dir.wipe()?;
                }
            }
        }
        eprintln!(
            "control plane {} is ready ({:.1} s)",
            plane.dir.name(),
            began.elapsed().as_secs_f64()
        );
        Ok(plane)
    }

    /// The environment variables for a command that uses this plane.
    pub(crate) fn environment(&self) -> Result<Vec<(&'static str, OsString)>> {
        let admin = self.dir.kubeconfig(User::Admin);
        let path = env::var_os("PATH").unwrap_or_default();
        let kubectl_first = [self.binary.dir().to_path_buf()]
            .into_iter()
            .chain(env::split_paths(&path));
        Ok(vec![
            ("KUBECONFIG", admin.clone().into()),
            (
                "PATH",
                env::join_paths(kubectl_first).context("the path of target/ does not fit into PATH")?,
            ),
            ("STATEWARD_TEST_KUBECONFIG", admin.into()),
            (
                "STATEWARD_TEST_OPERATOR_KUBECONFIG",
                self.dir.kubeconfig(User::Operator).into(),
            ),
            ("STATEWARD_TEST_AUDIT_LOG", self.dir.audit_log().into()),
            ("STATEWARD_TEST_KUBE", self.binary.path().into()),
        ])
    }

    /// The directory of the plane.
    pub(crate) fn dir(&self) -> &PlaneDir {
        &self.dir
    }

    /// Descriptors that become readable when components end.
    pub(crate) fn ends(&self) -> Vec<BorrowedFd<'_>> {
        self.components
            .iter()
            .map(|(_, running)| running.ended())
            .collect()
    }

    /// Reports the end of the component with this index in [`Plane::ends`] and removes it.
    pub(crate) fn bury(&mut self, index: usize) -> Result<Exited> {
        let (component, mut running) = self.components.remove(index);
        Exited::of(component, running.wait()?, &self.dir)
    }

    /// Stops the components and returns the directory.
    pub(crate) fn stop(self) -> PlaneDir {
        let Self {
            components,
            dir,
            binary: _,
        } = self;
        drop(components);
        dir
    }

    fn bring_up(&mut self, options: &Options, signals: &Signals) -> Result<()> {
        let ports = Ports::free()?;
        self.run_to_end(&["certs", &self.dir.join("").to_string_lossy()], signals)?;
        users::write(&self.dir, &ports.server())?;
        component::write_files(&self.dir)?;

        self.spawn(Component::Etcd, &ports, options)?;
        // Another process may answer on the port; etcd's own log is reliable.
        self.until(signals, "etcd to serve", |plane| {
            let log = fs::read_to_string(plane.dir.join(Component::Etcd.log())).unwrap_or_default();
            Ok(log.contains("ready to serve client requests"))
        })?;
        self.spawn(Component::ApiServer, &ports, options)?;
        self.until(signals, "the API server to be ready", |plane| {
            plane.kubectl(&["get", "--raw=/readyz"], signals)
        })?;
        self.spawn(Component::ControllerManager, &ports, options)?;
        // The first object that only a working controller manager creates.
        self.until(signals, "the controllers to work", |plane| {
            plane.kubectl(
                &[
                    "wait",
                    "--for=create",
                    "--timeout=5s",
                    "-n=default",
                    "serviceaccount/default",
                ],
                signals,
            )
        })
    }

    fn spawn(&mut self, component: Component, ports: &Ports, options: &Options) -> Result<()> {
        let path = self.dir.join(component.log());
        let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut command = Command::new(self.binary.path());
        command
            .arg(component.verb())
            .args(component.arguments(&self.dir, ports, options));
        command
            .stdin(self.dir.share_lock()?)
            .stdout(log.try_clone()?)
            .stderr(log);
        process::leave_our_terminal(&mut command);
        process::die_with_us(&mut command, Signal::KILL);
        self.components
            .push((component, Running::spawn(&mut command, component.verb())?));
        Ok(())
    }

    /// Polls until `done`; fails as soon as a component ends.
    fn until(
        &mut self,
        signals: &Signals,
        what: &str,
        mut done: impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<()> {
        let began = Instant::now();
        while !done(self)? {
            if began.elapsed() > PATIENCE {
                let (component, _) = self.components.last().context("nothing to wait for")?;
                bail!(
                    "waited {} s for {what}; {}",
                    PATIENCE.as_secs(),
                    last_words(*component, &self.dir)
                );
            }
            self.watch(None, signals, Some(GLANCE))?;
        }
        Ok(())
    }

    /// Runs kubectl as the admin; returns whether it succeeded.
    fn kubectl(&mut self, arguments: &[&str], signals: &Signals) -> Result<bool> {
        let kubeconfig = format!("--kubeconfig={}", self.dir.kubeconfig(User::Admin).display());
        let arguments = [&["kubectl", &kubeconfig, "--request-timeout=10s"], arguments].concat();
        Ok(self.run(&arguments, signals)?.0.success())
    }

    fn run_to_end(&mut self, arguments: &[&str], signals: &Signals) -> Result<()> {
        let (status, said) = self.run(arguments, signals)?;
        if !status.success() {
            bail!(
                "kube {} failed with exit code {}: {said}",
                arguments.join(" "),
                exit_code(status)
            );
        }
        Ok(())
    }

    fn run(&mut self, arguments: &[&str], signals: &Signals) -> Result<(ExitStatus, String)> {
        let path = self.dir.join("kube.log");
        let log = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut command = Command::new(self.binary.path());
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        process::die_with_us(&mut command, Signal::KILL);
        let mut running = Running::spawn(&mut command, "kube")?;
        self.watch(Some(&running), signals, None)?;
        Ok((running.wait()?, fs::read_to_string(&path).unwrap_or_default()))
    }

    /// Waits for the end of `running` or the timeout; the end of a component or a signal is an error.
    fn watch(
        &mut self,
        running: Option<&Running>,
        signals: &Signals,
        timeout: Option<Duration>,
    ) -> Result<()> {
        let mut watched = self.ends();
        watched.extend(running.map(Running::ended));
        match signals.wait(&watched, timeout)? {
            Woke::Signal(signal) => Err(Interrupted(signal).into()),
            Woke::Ready(index) if index < self.components.len() => Err(self.bury(index)?.into()),
            Woke::Ready(_) | Woke::Timeout => Ok(()),
        }
    }
}

/// A component ended unexpectedly.
#[derive(Debug)]
pub(crate) struct Exited {
    component: Component,
    code: u8,
    port_taken: bool,
    last_words: String,
}

impl Exited {
    fn of(component: Component, status: ExitStatus, dir: &PlaneDir) -> Result<Self> {
        let last_words = last_words(component, dir);
        let port_taken = last_words.contains("address already in use");
        Ok(Self {
            component,
            code: exit_code(status),
            port_taken,
            last_words,
        })
    }
}

impl fmt::Display for Exited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ended with exit code {}; {}",
            self.component, self.code, self.last_words
        )
    }
}

impl std::error::Error for Exited {}

/// The end of a component's log, for messages.
fn last_words(component: Component, dir: &PlaneDir) -> String {
    let path = dir.join(component.log());
    format!("the end of its log {}:\n{}", path.display(), tail(&path, 15))
}

fn tail(path: &Path, lines: usize) -> String {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
