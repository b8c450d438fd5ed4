//! `cargo xtask test`: format, lints, dependencies and all tests, with a real control plane.
//!
//! Stages run in order, and the first failure ends the run. Skipped parts are listed at the end, where they are noticed, and with `CI=true`
//! a missing control plane is a failure.

use std::env;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::kube::{self, Options, Source, Theirs};
use crate::layout::Layout;

/// `cargo xtask test …`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Arguments for the scenario suite, as in: cargo xtask test -- scale_to_zero; nothing else runs then
    #[arg(last = true)]
    scenarios: Vec<OsString>,
}

/// Runs the stages and prints a summary; the exit code is 1 if one failed.
pub(crate) fn run(layout: &Layout, args: &Args) -> Result<u8> {
    let source = Source::choose(layout);
    if let Err(missing) = &source
        && in_ci()
    {
        bail!("no real control plane, and CI=true makes that a failure: {missing:#}");
    }

    let mut report = Report::default();
    let passed = if args.scenarios.is_empty() {
        check(&mut report)
            && test(
                layout,
                source,
                cargo(["test", "--workspace", "--no-fail-fast"]),
                &mut report,
            )
    } else {
        report.skip("format, lints, dependencies and all other tests: only scenarios were asked for");
        let mut command = cargo([
            "test",
            "--package",
            "stateward-scenarios",
            "--test",
            "scenarios",
            "--",
        ]);
        command.extend(args.scenarios.iter().cloned());
        test(layout, source, command, &mut report)
    };
    report.print();
    Ok(u8::from(!passed))
}

/// The stages without a control plane.
fn check(report: &mut Report) -> bool {
    report.stage("format", || {
        kube::under_guard(&cargo(["fmt", "--all", "--check"]), &[])
    }) && report.stage("lints", || {
        kube::under_guard(
            &cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
            &[],
        )
    }) && dependencies(report)
}

fn dependencies(report: &mut Report) -> bool {
    let installed = Command::new("cargo-deny")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if !installed.is_ok_and(|status| status.success()) {
        report.skip(
            "dependency rules and advisories (deny.toml): cargo-deny is not installed; get it with: cargo install cargo-deny",
        );
        return true;
    }
    report.stage("dependencies", || {
        kube::under_guard(&cargo(["deny", "check", "bans", "licenses", "sources"]), &[])
    }) && advisories(report)
}

/// Fetches the advisories, which change independently. Without network access, the scheduled workflow checks them.
fn advisories(report: &mut Report) -> bool {
    let fetched = Command::new("cargo-deny").args(["fetch", "db"]).status();
    if !fetched.is_ok_and(|status| status.success()) {
        report.skip(
            "advisories (deny.toml): the advisory database cannot be fetched; run with a network: cargo deny check advisories",
        );
        return true;
    }
    report.stage("advisories", || {
        kube::under_guard(&cargo(["deny", "check", "--disable-fetch", "advisories"]), &[])
    })
}

/// Runs the test `command` with the best available control plane.
fn test(layout: &Layout, source: Result<Source>, command: Vec<OsString>, report: &mut Report) -> bool {
    match source {
        Ok(Source::Ours) => {
            report.stage("control plane", || kube::build(layout).map(|_| 0))
                && report.stage("tests", || {
                    kube::on_a_plane_of_its_own(layout, &Options::default(), false, &command)
                })
        }
        Ok(Source::Theirs(theirs)) => {
            theirs.announce();
            report.skip(
                "what needs an audit log or a control plane of ours: this ran on the cluster of KUBECONFIG",
            );
            report.stage("tests", || on_their_cluster(&theirs, &command))
        }
        Err(missing) => {
            report.skip(&format!("EVERY SCENARIO ON REAL KUBERNETES: {missing:#}"));
            report.stage("tests", || kube::under_guard(&command, &[]))
        }
    }
}

fn on_their_cluster(theirs: &Theirs, command: &[OsString]) -> Result<u8> {
    let mut files = env::split_paths(&theirs.kubeconfig);
    let (Some(kubeconfig), None) = (files.next(), files.next()) else {
        bail!(
            "KUBECONFIG names several files; the tests need a single one: {}",
            theirs.kubeconfig.display()
        );
    };
    eprintln!("note: the tests create namespaces, nodes and volumes there and remove them again");
    // Tests run in the directories of their packages.
    let kubeconfig = std::path::absolute(kubeconfig).context("KUBECONFIG is not a usable path")?;
    kube::under_guard(command, &[("STATEWARD_TEST_KUBECONFIG", kubeconfig.into())])
}

fn cargo<const N: usize>(arguments: [&str; N]) -> Vec<OsString> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    [cargo].into_iter().chain(arguments.map(OsString::from)).collect()
}

fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| value == "true")
}

/// The stages that ran, their durations, and what was skipped.
#[derive(Default)]
struct Report {
    stages: Vec<(&'static str, bool, Duration)>,
    skipped: Vec<String>,
}

impl Report {
    /// Runs one stage under a heading; returns whether it passed.
    fn stage(&mut self, name: &'static str, work: impl FnOnce() -> Result<u8>) -> bool {
        eprintln!("== {name}");
        let began = Instant::now();
        let passed = match work() {
            Ok(code) => code == 0,
            Err(error) => {
                eprintln!("xtask: {error:#}");
                false
            }
        };
        self.stages.push((name, passed, began.elapsed()));
        passed
    }

    fn skip(&mut self, what: &str) {
        self.skipped.push(what.to_owned());
    }

    fn print(&self) {
        eprintln!("== summary");
        for (name, passed, took) in &self.stages {
            let verdict = if *passed { "passed" } else { "FAILED" };
            eprintln!("{verdict}  {name:<14} {:>7.1} s", took.as_secs_f64());
        }
        for what in &self.skipped {
            eprintln!("SKIPPED {what}");
        }
    }
}
