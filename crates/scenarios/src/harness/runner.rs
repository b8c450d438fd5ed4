//! Runs scenarios as ordinary test cases, on every available back end.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use futures::future::LocalBoxFuture;
use libtest_mimic::{Arguments, Completion, Conclusion, Failed, Trial};
use tokio::runtime::Runtime;

use super::audit::AuditLog;
use super::backend::{Backend, operator_kubeconfig};
use super::cluster::Cluster;
use super::failure::{Failure, Outcome};
use super::rbac;

/// A behaviour and its name. Made by [`scenarios!`](crate::scenarios).
#[derive(Clone, Copy)]
pub struct Scenario {
    module: &'static str,
    name: &'static str,
    play: for<'c> fn(&'c mut Cluster) -> LocalBoxFuture<'c, Outcome>,
    live: bool,
}

impl Scenario {
    /// Names a behaviour.
    pub fn new(
        module: &'static str,
        name: &'static str,
        play: for<'c> fn(&'c mut Cluster) -> LocalBoxFuture<'c, Outcome>,
    ) -> Self {
        Self {
            module,
            name,
            play,
            live: false,
        }
    }

    /// Marks a scenario that involves other programs and so runs in real time.
    pub fn live(self) -> Self {
        Self { live: true, ..self }
    }

    /// `kubernetes::partition::raising_it_moves_no_pod_back`
    pub(crate) fn path(&self) -> String {
        let module = self
            .module
            .split_once("::")
            .map_or(self.module, |(_crate, module)| module);
        format!("{module}::{}", self.name)
    }

    pub(crate) async fn run(self, backend: Backend) -> Outcome {
        let mut cluster = backend.cluster(self.name).await?;
        let outcome = (self.play)(&mut cluster).await;
        // A violated invariant explains more than its consequences.
        let checked = cluster.check_invariants();
        let closed = cluster.close().await;
        checked.and(outcome).and(closed)
    }
}

/// Scenarios mostly wait, so many can share a core.
const SCENARIOS_AT_ONCE: usize = 12;

/// The `main` of a test binary.
pub fn run(scenarios: Vec<Scenario>) -> anyhow::Result<ExitCode> {
    let (conclusion, _) = play(&scenarios, &arguments(), &runtime()?)?;
    Ok(conclusion.exit_code())
}

/// Like `run`, for scenarios that together use everything the operator does: after the last one the operator's rights are compared with
/// what it has used.
pub fn run_and_check_rights(scenarios: Vec<Scenario>) -> anyhow::Result<ExitCode> {
    let (arguments, runtime) = (arguments(), runtime()?);
    let (conclusion, real) = play(&scenarios, &arguments, &runtime)?;
    let partly = arguments.filter.is_some() || !arguments.skip.is_empty() || arguments.ignored;
    match real {
        Some(Backend::Real {
            operator,
            audit: Some(AuditLog::File(log)),
            ..
        }) if operator_kubeconfig().is_some() && !partly && !conclusion.has_failed() => {
            let trial = rights(*operator, log, runtime);
            Ok(libtest_mimic::run(&arguments, vec![trial]).exit_code())
        }
        _ => Ok(conclusion.exit_code()),
    }
}

fn arguments() -> Arguments {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(SCENARIOS_AT_ONCE);
    arguments
}

/// A client cannot outlive the runtime that it was created on.
fn runtime() -> std::io::Result<Arc<Runtime>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    Ok(Arc::new(runtime))
}

fn play(
    scenarios: &[Scenario],
    arguments: &Arguments,
    runtime: &Arc<Runtime>,
) -> anyhow::Result<(Conclusion, Option<Backend>)> {
    let real = runtime.block_on(Backend::real())?;
    let on_real = scenarios
        .iter()
        .map(|scenario| on_real(*scenario, real.clone(), runtime.clone()));
    let trials = scenarios
        .iter()
        .copied()
        .map(on_embedded)
        .chain(on_real)
        .collect();
    Ok((libtest_mimic::run(arguments, trials), real))
}

/// A test case that compares the operator's rights with what the scenarios have used.
fn rights(operator: kube::Client, log: PathBuf, runtime: Arc<Runtime>) -> Trial {
    Trial::test(
        "real::rbac::the_operator_may_do_what_it_does_and_no_more",
        move || {
            let checked = runtime.block_on(async {
                rbac::elect(&operator).await?;
                rbac::find_api_servers(&operator).await?;
                rbac::expect_used_to_the_full(&log).await
            });
            checked.map_err(|error| Failed::from(format!("{error:#}")))
        },
    )
}

/// The embedded cluster and everything around it run on one thread, in virtual time unless the scenario is live.
fn on_embedded(scenario: Scenario) -> Trial {
    Trial::ignorable_test(format!("embedded::{}", scenario.path()), move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(!scenario.live)
            .build()?;
        let backend = if scenario.live {
            Backend::EmbeddedLive
        } else {
            Backend::Embedded
        };
        told(runtime.block_on(scenario.run(backend)))
    })
}

fn told(outcome: Outcome) -> Result<Completion, Failed> {
    match outcome {
        Ok(()) => Ok(Completion::Completed),
        Err(Failure::NotHere(why)) => Ok(Completion::ignored_with(why)),
        Err(failure) => Err(Failed::from(format!("\n{failure}"))),
    }
}

/// Without a real control plane its scenarios are reported as ignored; in CI they fail, so that the gap is noticed.
fn on_real(scenario: Scenario, real: Option<Backend>, runtime: Arc<Runtime>) -> Trial {
    let name = format!("real::{}", scenario.path());
    match real {
        Some(backend) => Trial::ignorable_test(name, move || told(runtime.block_on(scenario.run(backend)))),
        None if std::env::var_os("CI").is_some_and(|ci| ci == "true") => Trial::test(name, || {
            Err("no real control plane; run the tests with: cargo xtask test".into())
        }),
        None => Trial::test(name, || Ok(())).with_ignored_flag(true),
    }
}
