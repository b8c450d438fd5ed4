//! The operator's metrics, in the OpenMetrics text format.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use kube::runtime::reflector::Store;
use kube::{Resource, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use stateward_api::analysis::Measurement;
use stateward_plugin::Watches;
use tokio::time::Instant;

use crate::kind::Rollout;

/// The metrics of one operator. Cheap to clone; clones share the counters.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    rollouts: Family<Phase, Gauge>,
    steps: Histogram,
    decisions: Family<Action, Counter>,
    writes: Family<Written, Counter>,
    errors: Family<Kind, Counter>,
    measurements: Family<Phase, Counter>,
    turns: Histogram,
    in_turn: Gauge,
    waiting: Gauge,
    leader: Gauge,
    /// The phases of the existing objects, while they are followed.
    objects: Mutex<Vec<Phases>>,
    /// The objects that are queued: the controller's queue itself cannot be inspected.
    queue: Mutex<HashSet<Name>>,
    watches: Watches,
}

/// The phase of every followed object.
type Phases = Box<dyn Fn() -> Vec<String> + Send>;

/// Kind, namespace and name.
type Name = (String, String, String);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Phase {
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Action {
    action: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Written {
    verb: &'static str,
    resource: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

/// The phases that are always exported, so that alerts can refer to them before they first occur.
const PHASES: [&str; 5] = ["Progressing", "Paused", "Successful", "Failed", "Unknown"];

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("stateward");
        let rollouts = Family::default();
        registry.register("rollouts", "Rollouts by phase", rollouts.clone());
        // From a second to a day, in factors of four.
        let steps = Histogram::new((0..9).map(|power| 4_f64.powi(power)));
        registry.register_with_unit(
            "step_duration",
            "How long rollouts stayed at a step",
            Unit::Seconds,
            steps.clone(),
        );
        let decisions = Family::default();
        registry.register("decisions", "Decisions carried out, by action", decisions.clone());
        let writes = Family::default();
        registry.register("writes", "Writes by resource and outcome", writes.clone());
        let errors = Family::default();
        registry.register(
            "errors",
            "Turns that did not come to their end, and watches that broke off",
            errors.clone(),
        );
        let measurements = Family::default();
        registry.register(
            "measurements",
            "Measurements of analysis runs and checks of phased rollouts, by phase",
            measurements.clone(),
        );
        // From half a millisecond to two seconds, in factors of two.
        let turns = Histogram::new((0..13).map(|power| 0.0005 * 2_f64.powi(power)));
        registry.register_with_unit(
            "reconcile_duration",
            "How long one turn of one object took",
            Unit::Seconds,
            turns.clone(),
        );
        let in_turn = Gauge::default();
        registry.register(
            "reconciles_in_flight",
            "Objects that have their turn now",
            in_turn.clone(),
        );
        let waiting = Gauge::default();
        registry.register(
            "reconciles_waiting",
            "Objects that wait for their turn",
            waiting.clone(),
        );
        let leader = Gauge::default();
        registry.register("leader", "1 while this operator leads", leader.clone());
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "What this is", build);
        Self(Arc::new(Inner {
            registry,
            rollouts,
            steps,
            decisions,
            writes,
            errors,
            measurements,
            turns,
            in_turn,
            waiting,
            leader,
            objects: Mutex::default(),
            queue: Mutex::default(),
            watches: Watches::default(),
        }))
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// All metrics as text.
    pub fn text(&self) -> String {
        self.count_phases();
        self.count_breaks();
        let mut text = String::new();
        // Writing to a string does not fail; scrapers reject a page without its end mark.
        if encode(&mut text, &self.0.registry).is_err() {
            let _ = writeln!(text, "# the metrics could not be encoded");
        }
        text
    }

    /// The health of the watches.
    pub fn watches(&self) -> &Watches {
        &self.0.watches
    }

    /// Sets whether this operator leads. An operator that does not lead follows no objects.
    pub fn leads(&self, leads: bool) {
        self.0.leader.set(leads.into());
        if !leads {
            self.objects().clear();
            self.queue(HashSet::clear);
            self.0.watches.end();
        }
    }

    pub(crate) fn follow<K: Rollout>(&self, objects: Store<K>) {
        let phases = move || {
            let objects = objects.state();
            objects.iter().map(|object| object.plain_phase()).collect()
        };
        self.objects().push(Box::new(phases));
    }

    /// Counts an executed action.
    pub(crate) fn decided(&self, action: &'static str) {
        self.0.decisions.get_or_create(&Action { action }).inc();
    }

    /// Counts a failed reconcile.
    pub(crate) fn failed(&self, kind: &'static str) {
        self.0.errors.get_or_create(&Kind { kind }).inc();
    }

    /// Counts measurements.
    pub(crate) fn measured(&self, measurements: &[Measurement]) {
        for measurement in measurements {
            let phase = format!("{:?}", measurement.phase);
            self.0.measurements.get_or_create(&Phase { phase }).inc();
        }
    }

    /// Counts a check.
    pub(crate) fn checked(&self, verdict: &str) {
        let phase = verdict.to_owned();
        self.0.measurements.get_or_create(&Phase { phase }).inc();
    }

    /// Records the duration of a step.
    pub(crate) fn stepped(&self, took: Duration) {
        self.0.steps.observe(took.as_secs_f64());
    }

    /// Records that an object is queued.
    pub(crate) fn due<K: Rollout>(&self, namespace: Option<&str>, name: &str) {
        self.queue(|waiting| waiting.insert(full_name::<K>(namespace, name)));
    }

    /// Records that an object is not queued any more.
    pub(crate) fn begun<K: Rollout>(&self, namespace: Option<&str>, name: &str) {
        self.queue(|waiting| waiting.remove(&full_name::<K>(namespace, name)));
    }

    fn queue<T>(&self, change: impl FnOnce(&mut HashSet<Name>) -> T) {
        let mut queue = self.0.queue.lock();
        change(&mut queue);
        // Queue lengths fit.
        self.0.waiting.set(i64::try_from(queue.len()).unwrap_or(i64::MAX));
    }

    /// Times a reconcile of an object until the returned value is dropped.
    pub(crate) fn turn<K: Rollout>(&self, object: &K) -> Turn {
        self.begun::<K>(object.namespace().as_deref(), &object.name_any());
        self.0.in_turn.inc();
        Turn {
            metrics: self.clone(),
            began: Instant::now(),
        }
    }

    /// Records a write that is about to be sent.
    pub(crate) fn write(&self, method: &Method, path: &str) -> Write {
        Write {
            metrics: self.clone(),
            verb: verb(method),
            resource: resource(path),
        }
    }

    fn objects(&self) -> MutexGuard<'_, Vec<Phases>> {
        self.0.objects.lock()
    }

    fn count_breaks(&self) {
        let watch = Kind { kind: "watch" };
        let breaks = self.0.watches.take_breaks();
        self.0.errors.get_or_create(&watch).inc_by(breaks);
    }

    fn count_phases(&self) {
        let mut counts = PHASES.map(|phase| (phase, 0_i64));
        let phases: Vec<_> = self.objects().iter().flat_map(|phases| phases()).collect();
        for phase in phases {
            let row = counts.iter().position(|(known, _)| *known == phase);
            counts[row.unwrap_or(PHASES.len() - 1)].1 += 1;
        }
        for (phase, count) in counts {
            let phase = Phase { phase: phase.into() };
            self.0.rollouts.get_or_create(&phase).set(count);
        }
    }
}

fn full_name<K: Rollout>(namespace: Option<&str>, name: &str) -> Name {
    let kind = <K as Resource>::kind(&()).into_owned();
    (kind, namespace.unwrap_or_default().to_owned(), name.to_owned())
}

/// A reconcile in progress.
pub(crate) struct Turn {
    metrics: Metrics,
    began: Instant,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.metrics.0.in_turn.dec();
        self.metrics.0.turns.observe(self.began.elapsed().as_secs_f64());
    }
}

/// A write in flight.
pub(crate) struct Write {
    metrics: Metrics,
    verb: &'static str,
    resource: String,
}

impl Write {
    pub(crate) fn answered(&self, status: Option<StatusCode>) {
        self.count(match status {
            None => "lost",
            Some(status) if status.is_success() => "ok",
            Some(StatusCode::CONFLICT) => "conflict",
            Some(StatusCode::TOO_MANY_REQUESTS) => "not now",
            Some(status) if status.is_client_error() => "refused",
            Some(_) => "failed",
        });
    }

    pub(crate) fn fenced(&self) {
        self.count("fenced");
    }

    fn count(&self, outcome: &'static str) {
        let (verb, resource) = (self.verb, self.resource.clone());
        let written = Written {
            verb,
            resource,
            outcome,
        };
        self.metrics.0.writes.get_or_create(&written).inc();
    }
}

fn verb(method: &Method) -> &'static str {
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

/// `statefulsets` or, with its subresource, `rolloutplugins/status`: object names do not belong in metrics.
fn resource(path: &str) -> String {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    let skipped = match parts.next() {
        Some("api") => 1,
        _ => 2,
    };
    let mut parts = parts.skip(skipped).peekable();
    let mut resource = parts.next().unwrap_or_default();
    if resource == "namespaces" && parts.clone().count() > 1 {
        resource = parts.nth(1).unwrap_or_default();
    }
    match parts.nth(1) {
        Some(subresource) => format!("{resource}/{subresource}"),
        None => resource.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use stateward_api::rolloutplugin::RolloutPlugin;

    #[rstest]
    #[case("/api/v1/namespaces/prod/pods/db-0", "pods")]
    #[case("/api/v1/namespaces/prod/pods/db-0/eviction", "pods/eviction")]
    #[case("/apis/apps/v1/namespaces/prod/statefulsets/db", "statefulsets")]
    #[case(
        "/apis/argoproj.io/v1alpha1/namespaces/prod/rolloutplugins/db/status",
        "rolloutplugins/status"
    )]
    #[case("/api/v1/namespaces/prod/events", "events")]
    #[case("/api/v1/namespaces/prod", "namespaces")]
    #[case("/api/v1/nodes/a", "nodes")]
    fn a_path_names_its_resource(#[case] path: &str, #[case] expected: &str) {
        assert_eq!(resource(path), expected);
    }

    #[test]
    fn a_page_has_every_name_from_the_start_or_the_first_time() {
        let metrics = Metrics::default();
        metrics.leads(true);
        metrics.decided("release");
        metrics.failed("conflict");
        metrics
            .watches()
            .broke("/apis/apps/v1/statefulsets", "it is forbidden");
        metrics.stepped(Duration::from_secs(3));
        metrics
            .write(&Method::PATCH, "/apis/apps/v1/namespaces/prod/statefulsets/db")
            .answered(Some(StatusCode::OK));
        drop(metrics.turn(&RolloutPlugin::default()));
        let text = metrics.text();
        for line in [
            "stateward_rollouts{phase=\"Paused\"} 0",
            "stateward_step_duration_seconds_count 1",
            "stateward_decisions_total{action=\"release\"} 1",
            "stateward_writes_total{verb=\"patch\",resource=\"statefulsets\",outcome=\"ok\"} 1",
            "stateward_errors_total{kind=\"conflict\"} 1",
            "stateward_errors_total{kind=\"watch\"} 1",
            "stateward_reconcile_duration_seconds_count 1",
            "stateward_reconciles_in_flight 0",
            "stateward_reconciles_waiting 0",
            "stateward_leader 1",
            "stateward_build_info{version=",
        ] {
            assert!(text.contains(line), "{line} is missing from:\n{text}");
        }
        assert!(text.ends_with("# EOF\n"));
        // Scrapers reject the whole page if a name occurs twice.
        let mut names: Vec<_> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "{text}");
    }
    #[test]
    fn an_object_waits_once_until_its_turn_begins() {
        let metrics = Metrics::default();
        let waiting = || {
            let text = metrics.text();
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix("stateward_reconciles_waiting ")?.parse().ok())
        };
        let mut object = RolloutPlugin::default();
        object.metadata.namespace = Some("prod".into());
        object.metadata.name = Some("db".into());
        metrics.due::<RolloutPlugin>(Some("prod"), "db");
        metrics.due::<RolloutPlugin>(Some("prod"), "db");
        metrics.due::<RolloutPlugin>(Some("prod"), "cache");
        assert_eq!(waiting(), Some(2));
        let turn = metrics.turn(&object);
        assert_eq!(waiting(), Some(1));
        metrics.due::<RolloutPlugin>(Some("prod"), "db");
        assert_eq!(waiting(), Some(2), "it changed while it had its turn");
        drop(turn);
        assert_eq!(waiting(), Some(2));
        metrics.leads(false);
        assert_eq!(waiting(), Some(0), "nobody gives turns any more");
    }
}
