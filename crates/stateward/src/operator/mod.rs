//! `stateward operator`: executes RolloutPlugins and PhasedRollouts.
//!
//! - `connect`: connects to the API server, and waits for what the operator needs.
//! - `identity`: the holder identity in the Lease.
//! - `place`: the Lease and the namespaces of the operator, and other leaders of these namespaces.
//! - `probes`: health, readiness and metrics over HTTP.
//! - `refusals`: addresses that metrics are never queried from.
//! - `term`: one term as the leader.
//! - this file: arguments and startup.

mod connect;
mod identity;
mod place;
mod probes;
mod refusals;
mod term;

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::ArgAction;
use stateward_analysis::http::Proxy;
use stateward_analysis::{Cidr, Destination, Egress};
use stateward_clock::Clock;
use stateward_controller::leadership::{Leadership, Pulse};
use stateward_controller::lease::{Election, Timing};
use stateward_controller::overlap::{LEASE_NAMESPACE, Scope};
use stateward_controller::retry_transient_errors;
use stateward_controller::{AnalysisJobs, Fence, Metrics, Options};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use self::connect::Unreachable;
use self::identity::Identity;
use self::place::Place;
use self::probes::{Readiness, State};
use self::term::{Ended, Term};
use crate::telemetry::{self, Format};

/// `stateward operator …`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The kubeconfig to use; default: KUBECONFIG, ~/.kube/config, or the service account of the pod
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use
    #[arg(long)]
    context: Option<String>,
    /// A namespace to manage, may be repeated; default: all
    #[arg(short, long = "namespace", value_name = "NAMESPACE")]
    namespaces: Vec<String>,
    /// Run only while holding the Lease; =false for a single operator
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", value_name = "BOOL")]
    leader_elect: bool,
    /// The namespace of the Lease. Must be the same for all operators of a cluster, so that only one of them leads
    #[arg(long, default_value = LEASE_NAMESPACE, value_name = "NAMESPACE")]
    lease_namespace: String,
    /// The name of the Lease
    #[arg(long, default_value = "stateward", value_name = "NAME")]
    lease_name: String,
    /// How long other operators wait for a leader that stopped renewing
    #[arg(long, default_value = "15s", value_parser = lease_duration, value_name = "DURATION")]
    lease_duration: Duration,
    /// The UID of the pod: a restarted container reacquires its own Lease at once
    #[arg(long, env = "STATEWARD_POD_UID", value_name = "UID")]
    pod_uid: Option<String>,
    /// An address range to allow for metrics that is refused by default (loopback, link-local, metadata services); may be repeated
    #[arg(long = "allow-egress", value_name = "CIDR")]
    allow_egress: Vec<Cidr>,
    /// An address range or host (*.example.com includes all hosts below) to restrict metrics to; may be repeated. Addresses refused by
    /// default stay refused
    #[arg(long = "egress-only", value_name = "CIDR|HOST")]
    egress_only: Vec<Destination>,
    /// Query metrics through this HTTP proxy, such as http://proxy.example:3128; HTTP_PROXY and similar variables are ignored
    #[arg(
        long,
        env = "STATEWARD_EGRESS_PROXY",
        hide_env_values = true,
        value_name = "URL"
    )]
    egress_proxy: Option<String>,
    /// An address of the operator's node, which metrics are not queried from; may be repeated
    #[arg(
        long = "node-address",
        env = "STATEWARD_NODE_ADDRESSES",
        value_delimiter = ',',
        value_name = "ADDRESS"
    )]
    node_addresses: Vec<Cidr>,
    /// A namespace whose metrics may be signed with the operator's own AWS keys (sigv4), may be repeated; default: none
    #[arg(long = "aws-signing-namespace", value_name = "NAMESPACE")]
    aws_signing_namespaces: Vec<String>,
    /// The Prometheus address for metrics without one
    #[arg(long, env = "ARGO_ROLLOUTS_PROMETHEUS_ADDRESS", value_name = "URL")]
    prometheus_address: Option<String>,
    /// What Jobs of AnalysisTemplates and AnalysisRuns may use
    #[arg(long, value_enum, default_value_t = JobPolicy::Restricted, value_name = "POLICY")]
    analysis_jobs: JobPolicy,
    /// The address to serve /metrics, /healthz and /readyz on
    #[arg(long, default_value = "0.0.0.0:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The format of log lines
    #[arg(long, value_enum, default_value_t = Format::Text)]
    log_format: Format,
    /// What to log: a level, or a RUST_LOG filter
    #[arg(long, env = "RUST_LOG", default_value = "info", value_name = "LEVEL")]
    log_level: String,
}

/// `--analysis-jobs …`
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum JobPolicy {
    /// Anything that the API server lets the operator create
    Any,
    /// What the baseline Pod Security Standard allows
    Restricted,
    /// No Jobs
    Off,
}

impl From<JobPolicy> for AnalysisJobs {
    fn from(policy: JobPolicy) -> Self {
        match policy {
            JobPolicy::Any => Self::Any,
            JobPolicy::Restricted => Self::Restricted,
            JobPolicy::Off => Self::Off,
        }
    }
}

/// With a shorter duration, a slow renewal would count as a dead leader.
const SHORTEST_LEASE: Duration = Duration::from_secs(3);

fn lease_duration(text: &str) -> Result<Duration, String> {
    let duration: jiff::SignedDuration = text
        .parse()
        .map_err(|_| "not a duration such as 15s or 1m".to_owned())?;
    match Duration::try_from(duration) {
        Ok(duration) if duration >= SHORTEST_LEASE => Ok(duration),
        _ => Err(format!("shorter than {} s", SHORTEST_LEASE.as_secs())),
    }
}

/// The proxy of `--egress-proxy`. Not parsed by clap, whose errors quote values: this one may contain a password.
fn proxy(given: Option<&str>) -> Result<Option<Proxy>> {
    Ok(given.map(str::parse).transpose()?)
}

/// Runs until a signal to stop arrives.
pub(crate) async fn run(args: Args) -> Result<()> {
    telemetry::init(telemetry::filter(&args.log_level)?, args.log_format);
    let proxy = proxy(args.egress_proxy.as_deref())?;
    let mut stop = pin!(told_to_stop()?);
    let config = connect::config(args.kubeconfig.as_deref(), args.context.as_deref()).await?;
    let server = config.cluster_url.to_string();
    let host = config.cluster_url.host().unwrap_or_default();
    let host = host.trim_matches(['[', ']']).to_owned();
    let service = std::env::var("KUBERNETES_SERVICE_HOST").ok();
    let api_server: Vec<String> = [host].into_iter().chain(service).collect();
    let own_config = config.clone();
    let client = kube::Client::try_from(config).context("cannot make a client from the configuration")?;
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}; choose another with --listen", args.listen))?;
    let (metrics, readiness) = (Metrics::default(), Readiness::default());
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        server,
        listen = %listener.local_addr()?,
        "starts"
    );
    let pulse = Pulse::default();
    let probed = probes::Probed {
        metrics: metrics.clone(),
        readiness: readiness.clone(),
        pulse: pulse.clone(),
    };
    probes::serve_apart(listener, probed).context("cannot serve probes and metrics")?;

    let work = async {
        let definition = connect::wait_for_definition(&client, &server, &args.namespaces, &readiness);
        tokio::select! {
            found = definition => found?,
            () = &mut stop => return Ok(()),
        }
        let refusals = refusals::Watch::new(client.clone(), api_server.clone(), args.node_addresses);
        refusals.look().await;
        let clock = Clock::wall();
        let term = Term {
            client: client.clone(),
            options: Options {
                clock: clock.clone(),
                namespaces: args.namespaces,
            },
            metrics,
            egress: Egress {
                allow: args.allow_egress,
                refuse: refusals.refusals.clone(),
                refuse_names: api_server,
                only: args.egress_only,
            },
            refusals,
            proxy,
            aws_namespaces: args.aws_signing_namespaces,
            prometheus: args.prometheus_address,
            jobs: args.analysis_jobs.into(),
        };
        let outcome = if args.leader_elect {
            let place = Place {
                namespace: args.lease_namespace,
                name: args.lease_name,
                scope: Scope::of(&term.options.namespaces),
                in_pod: args.pod_uid.is_some(),
            };
            let patient = retry_transient_errors(client.clone());
            place.create_namespace(&patient).await?;
            let timing = Timing::of(args.lease_duration);
            let watches = term.metrics.watches().clone();
            let identity = Identity::new(args.pod_uid.as_deref());
            let holder = identity.name.clone();
            let election = {
                let place = place.clone();
                move || {
                    let client = kube::Client::try_from(own_config)?;
                    let election =
                        Election::new(client, &place.namespace, &place.name, &holder, timing, clock);
                    Ok::<_, kube::Error>(election.scope(place.scope).watches(watches))
                }
            };
            let leadership =
                Leadership::stand(election, pulse.clone()).context("cannot start the thread of the lease")?;
            let outcome = lead_by_turns(term, &patient, leadership, &place, &readiness, stop).await;
            drop(identity);
            outcome
        } else {
            readiness.set(State::Leading);
            match term.serve(Fence::open(), std::future::pending(), &mut stop).await {
                Ended::Stopped => Ok(()),
                Ended::Lost | Ended::Broken => Err(anyhow::anyhow!("the operator ended by itself")),
            }
        };
        tracing::info!("stopped");
        outcome
    };
    // The heartbeat runs in the worker's task, so a stuck worker stops it.
    tokio::select! {
        outcome = work => outcome,
        never = pulse.keep() => match never {},
    }
}

/// Acquires the Lease and leads, repeatedly, until a signal to stop arrives.
async fn lead_by_turns(
    term: Term,
    client: &kube::Client,
    mut leadership: Leadership,
    place: &Place,
    readiness: &Readiness,
    mut stop: impl Future<Output = ()> + Unpin,
) -> Result<()> {
    loop {
        readiness.set(State::StandingBy);
        let fence = tokio::select! {
            fence = leadership.next() => fence,
            () = &mut stop => break,
        };
        let Some(fence) = fence else {
            bail!("the lease can no longer be held");
        };
        let other = tokio::select! {
            other = place.other_leader(client, term.options.clock.now()) => other,
            () = &mut stop => break,
        };
        match other {
            Ok(None) => {}
            Ok(Some(other)) => {
                leadership.resign().await;
                bail!("another operator leads: {other}");
            }
            Err(error) => {
                leadership.resign().await;
                return Err(error).context("cannot see whether another operator leads");
            }
        }
        readiness.set(State::Leading);
        let later = OnceCell::new();
        let over = async {
            tokio::select! {
                () = fence.lost() => {}
                other = place.other_leader_appears(client) => {
                    // It is only set once.
                    let _ = later.set(other);
                }
            }
        };
        let ended = term.serve(fence.clone(), over, &mut stop).await;
        if let Some(other) = later.get() {
            leadership.resign().await;
            bail!("another operator leads: {other}");
        }
        match ended {
            Ended::Lost => {}
            Ended::Stopped => break,
            Ended::Broken => {
                leadership.resign().await;
                bail!("the operator ended by itself");
            }
        }
    }
    leadership.resign().await;
    Ok(())
}

/// Resolves at the first signal to stop.
fn told_to_stop() -> Result<impl Future<Output = ()>> {
    let (mut interrupted, mut terminated) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
        tracing::info!("asked to stop");
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("15s", Some(15))]
    #[case("1m", Some(60))]
    #[case("2s", None)]
    #[case("-15s", None)]
    #[case("soon", None)]
    fn a_lease_has_a_duration_that_can_be_kept(#[case] text: &str, #[case] seconds: Option<u64>) {
        assert_eq!(lease_duration(text).ok(), seconds.map(Duration::from_secs));
    }

    #[rstest]
    #[case("https://me:hunter2@proxy:3128")]
    #[case("socks5://me:hunter2@proxy:3128")]
    #[case("http://me:hunter2@proxy:3128/path")]
    #[case("http://me:hunter2@proxy:port")]
    #[case("http://me:hunter2@")]
    #[case("http://me:hunter2@a b")]
    #[case("me:hunter2@proxy:3128:1")]
    #[case("me:hunter2@[::1")]
    fn a_wrong_proxy_is_refused_without_its_password(#[case] url: &str) {
        let words = ["stateward", "operator", "--egress-proxy", url].map(Into::into);
        let refused = match crate::parsed(words.into(), "stateward").map(|cli| cli.action) {
            Ok(crate::Action::Operator(args)) => proxy(args.egress_proxy.as_deref()).err(),
            Ok(_) => None,
            Err(error) => Some(error.into()),
        };
        let refused = format!("{:#}", refused.unwrap());
        assert!(refused.contains("--egress-proxy"), "{refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}
