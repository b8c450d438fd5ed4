//! Reconciles one AnalysisRun: finds the metrics that are due, measures them, records the results.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, future};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action as Next;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, WatchStreamExt, controller, reflector, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;
use stateward_analysis::Workers;
use stateward_api::Problem;
use stateward_api::analysis::{
    AnalysisRun, AnalysisRunSpec, AnalysisRunStatus, INSTANCE, INSTANCE_LABEL, Measurement, Phase,
};
use stateward_client::{DeserializeGuard, ObjectName, Objects};
use stateward_clock::Clock;
use stateward_core::analysis::run as core;
use stateward_core::analysis::template;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::jobs::{Course, Jobs};
use super::measurement_queue::{Answers, MeasurementQueue, MetricJob};
use super::prepared::Prepared;
use super::runs::{Owner, Runs, owner};
use super::templates::Templates;
use crate::error::{Error, backoff, contain_panics};
use crate::invalid_objects;
use crate::metrics::Metrics;
use crate::namespace_slots::{self, NamespaceSlots};
use crate::status::difference;
use crate::turn::{Failures, Latest, at};

/// What a reconcile of an AnalysisRun needs.
pub(crate) struct AnalysisContext {
    client: Client,
    clock: Clock,
    metrics: Metrics,
    runs: Runs,
    queue: MeasurementQueue<MetricJob>,
    pub(crate) jobs: Jobs,
    /// Runs that are ready to be measured, or the problems of their specs, by namespace and UID.
    prepared: Prepared<(String, String), AnalysisRunSpec, Result<AnalysisRunSpec, Vec<Problem>>>,
    slots: NamespaceSlots<AnalysisRun>,
    /// Queues a run for another reconcile.
    due: mpsc::UnboundedSender<ObjectRef<AnalysisRun>>,
    latest: Latest<AnalysisRun>,
    failures: Failures,
    /// Whether a panic ends only the reconcile that it happens in.
    pub(crate) contain_panics: bool,
}

impl AnalysisContext {
    /// A context without runs.
    pub(crate) fn new(
        client: Client,
        clock: Clock,
        metrics: Metrics,
        runs: Runs,
        queue: MeasurementQueue<MetricJob>,
        workers: Workers,
        due: mpsc::UnboundedSender<ObjectRef<AnalysisRun>>,
    ) -> Self {
        Self {
            jobs: Jobs::new(client.clone()),
            client,
            clock,
            metrics,
            runs,
            queue,
            prepared: Prepared::new(workers),
            slots: NamespaceSlots::new(due.clone()),
            due,
            latest: Latest::default(),
            failures: Failures::default(),
            contain_panics: false,
        }
    }

    /// The run, ready to be measured; `None` while it is prepared, after which it is reconciled again.
    fn prepare(&self, run: &AnalysisRun) -> Option<Arc<Result<AnalysisRunSpec, Vec<Problem>>>> {
        let (due, again) = (self.due.clone(), ObjectRef::from_obj(run));
        let key = key(run);
        self.prepared
            .get(&key.0, &key, run.spec.clone(), template::filled, move || {
                // The receiver is gone when the operator shuts down.
                let _ = due.send(again);
            })
    }

    fn forget(&self, run: &AnalysisRun) {
        let uid = &run.uid().unwrap_or_default();
        self.queue.forget(uid);
        self.prepared.forget(&key(run));
        self.latest.forget(uid);
        self.failures.forget(uid);
    }
}

/// The namespace and the UID of a run.
fn key(run: &AnalysisRun) -> (String, String) {
    (run.namespace().unwrap_or_default(), run.uid().unwrap_or_default())
}

/// Measures every AnalysisRun, and reports the rollouts whose runs changed. Never ends.
pub(crate) async fn measure(
    context: Arc<AnalysisContext>,
    namespace: Option<&str>,
    due: mpsc::UnboundedReceiver<ObjectRef<AnalysisRun>>,
    changed: mpsc::UnboundedSender<(String, String)>,
    templates: Templates,
) {
    let ours = watcher::Config::default().labels(&format!("{INSTANCE_LABEL}={INSTANCE}"));
    let (reader, writer) = reflector::store();
    let watch = super::watch(
        super::api::<DeserializeGuard<AnalysisRun>>(&context.client, namespace),
        ours,
        context.metrics.watches(),
    );
    let noted = context.clone();
    let runs = watch
        .map_ok(|event| invalid_objects::map(event, |run| run.unwrap_or_else(invalid)))
        .inspect(move |told| {
            noted.runs.note(told);
            let run = told_of(told);
            if let Some((run, Owner { name, .. })) = run.and_then(|run| Some((run, owner(run)?))) {
                // The receiver is gone only when the operator shuts down.
                let _ = changed.send((run.namespace().unwrap_or_default(), name));
            }
            // A rollout may have found that analysis is unavailable.
            if let Ok(watcher::Event::InitDone) = told {
                templates.touch();
            }
            if let Ok(watcher::Event::Delete(run)) = told {
                noted.forget(run);
            }
        })
        .reflect(writer)
        .touched_objects();
    let noted = context.clone();
    Controller::for_stream(runs, reader)
        .with_config(controller::Config::default().concurrency(namespace_slots::TOTAL))
        .reconcile_on(UnboundedReceiverStream::new(due))
        .run(reconcile, retry, context)
        .for_each(move |ended| {
            // It was deleted while it was queued.
            if let Err(controller::Error::ObjectNotFound(run)) = ended {
                noted
                    .slots
                    .queue_next(run.namespace.as_deref().unwrap_or_default());
            }
            future::ready(())
        })
        .await;
}

/// The stand-in for a run that fails to deserialize: it has no metrics to measure.
fn invalid(metadata: ObjectMeta, why: String) -> AnalysisRun {
    let run = AnalysisRun {
        metadata,
        status: Some(AnalysisRunStatus {
            phase: Phase::Error,
            message: format!("the run cannot be read: {why}"),
            ..AnalysisRunStatus::default()
        }),
        ..AnalysisRun::default()
    };
    invalid_objects::log(&run, &why);
    run
}

fn told_of(told: &watcher::Result<watcher::Event<AnalysisRun>>) -> Option<&AnalysisRun> {
    match told {
        Ok(watcher::Event::Apply(run) | watcher::Event::Delete(run) | watcher::Event::InitApply(run)) => {
            Some(run)
        }
        Ok(watcher::Event::Init | watcher::Event::InitDone) | Err(_) => None,
    }
}

fn retry(run: Arc<AnalysisRun>, error: &Error, context: Arc<AnalysisContext>) -> Next {
    let failures = context.failures.add(&run.uid().unwrap_or_default());
    let who = format!("{}/{}", run.namespace().unwrap_or_default(), run.name_any());
    context.metrics.failed(error.kind());
    if error.is_conflict() {
        tracing::debug!(run = who, %error, "the object has changed meanwhile");
    } else {
        tracing::warn!(run = who, %error, "will try again");
    }
    Next::requeue(context.clock.on_the_timer(backoff(failures - 1, &who)))
}

async fn reconcile(seen: Arc<AnalysisRun>, context: Arc<AnalysisContext>) -> Result<Next, Error> {
    let namespace = seen.namespace().unwrap_or_default();
    let Some(_slot) = context.slots.take(&namespace, &seen.name_any()) else {
        return Ok(Next::await_change());
    };
    let run = context.latest.newest(&seen);
    let next = contain_panics(context.contain_panics, turn(&run, &context)).await?;
    context.failures.forget(&run.uid().unwrap_or_default());
    Ok(next)
}

async fn turn(run: &AnalysisRun, context: &AnalysisContext) -> Result<Next, Error> {
    let uid = run.uid().unwrap_or_default();
    let now = context.clock.now();
    let old = run.status.clone().unwrap_or_default();
    if run.metadata.deletion_timestamp.is_some() {
        context.queue.forget(&uid);
        context.prepared.forget(&key(run));
        return Ok(Next::await_change());
    }
    if old.phase.is_over() {
        context.queue.forget(&uid);
        context.prepared.forget(&key(run));
        context.jobs.stop_strays(run, &old).await?;
        return expire(run, &old, context).await;
    }
    context.jobs.stop_strays(run, &old).await?;
    let mut status = old.clone();
    let Some(ready) = context.prepare(run) else {
        return Ok(Next::await_change());
    };
    let spec = match &*ready {
        Ok(spec) => spec,
        Err(problems) => {
            let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
            core::refuse(&mut status, problems.join("; "), now);
            write(run, &status, context).await?;
            return Ok(Next::await_change());
        }
    };
    let answers = match context.queue.answers(&uid, now) {
        Answers::Here(answers) => answers,
        Answers::Until(later) => return Ok(at(&context.clock, later)),
    };
    let mut measured = Vec::new();
    for (index, measurement) in &answers {
        // Another operator may have measured it already: then this result is dropped.
        if core::was_due(spec, &status, *index, measurement) {
            core::note(spec, &mut status, *index, measurement.clone());
            measured.push(measurement.clone());
        }
    }
    core::assess(spec, &mut status, now);
    let ending = core::is_ending(spec, &status);
    let mut look_again = None;
    for index in core::agenda(spec, &status, now).resume {
        let result = core::result(&status, &spec.metrics[index].name);
        let Some(measurement) = result.and_then(core::last).cloned() else {
            continue;
        };
        match context.jobs.look(run, &measurement, now).await? {
            // We may have stopped it ourselves and restarted before that was recorded.
            Course::UnderWay(_) | Course::Lost(_) if ending => {
                context.jobs.stop(run, &measurement).await?;
                core::withdraw(&mut status, &spec.metrics[index].name);
            }
            Course::UnderWay(Ok(message)) => {
                let told = Measurement {
                    message,
                    ..measurement
                };
                core::note(spec, &mut status, index, told);
            }
            Course::UnderWay(Err(later)) => look_again = look_again.into_iter().chain([later]).min(),
            Course::Done(done) | Course::Lost(done) => {
                core::note(spec, &mut status, index, done.clone());
                measured.push(done);
            }
        }
    }
    for index in core::agenda(spec, &status, now).measure {
        let metric = &spec.metrics[index];
        if metric.provider.job.is_some() {
            let result = core::result(&status, &metric.name);
            let begun = context.jobs.start(run, metric, result, now).await?;
            core::note(spec, &mut status, index, begun);
        } else if !context.queue.is_open(&uid, index) {
            context.queue.begin(MetricJob {
                run: ObjectRef::from_obj(run),
                uid: uid.clone(),
                index,
                metric: metric.clone(),
                args: run.spec.args.clone(),
            });
        }
    }
    core::assess(spec, &mut status, now);
    if status != old {
        write(run, &status, context).await?;
        context.metrics.measured(&measured);
    }
    context.queue.written(&uid, &answers);
    // A running measurement triggers a reconcile when it ends.
    let wake = core::agenda(spec, &status, now).wake;
    Ok(match wake.into_iter().chain(look_again).min() {
        Some(moment) => at(&context.clock, moment),
        None => Next::await_change(),
    })
}

/// Writes the status. If it cannot be stored, because it is too large or rejected, the run ends with an error: if it were only
/// retried, the run would stall, and a rollout that waits for it would not know why.
async fn write(
    run: &AnalysisRun,
    status: &AnalysisRunStatus,
    context: &AnalysisContext,
) -> Result<(), Error> {
    let written = match patch(run, status, context).await? {
        Err(kube::Error::Api(refusal)) if is_final(&refusal) => {
            let why = format!("its status cannot be written: {}", shortened(&refusal.message));
            patch(run, &core::give_up(status, why, context.clock.now()), context).await?
        }
        other => other,
    };
    let written = written.map_err(Error::api("cannot write the status of an analysis run"))?;
    context.runs.put(&written);
    context.latest.remember(&written);
    Ok(())
}

/// A run has no status subresource, so the write is bound to the version that it was decided on.
async fn patch(
    run: &AnalysisRun,
    status: &AnalysisRunStatus,
    context: &AnalysisContext,
) -> Result<kube::Result<AnalysisRun>, Error> {
    let name = ObjectName::new(run.name_any())?;
    let patch = json!({
        "metadata": {"resourceVersion": run.resource_version(), "uid": run.uid()},
        "status": difference(&json!(run.status), &json!(status)),
    });
    let runs = Objects::<AnalysisRun>::in_namespace_of(&context.client, run)?;
    Ok(runs
        .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
        .await)
}

/// Whether a retry would be rejected too. etcd has no code for an object that is too large, only a message.
fn is_final(refusal: &kube::core::Status) -> bool {
    matches!(refusal.code, 413 | 422)
        || refusal.message.contains("too large")
        || refusal.message.contains("larger than max")
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 300;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Deletes a run whose TTL has expired.
async fn expire(
    run: &AnalysisRun,
    status: &AnalysisRunStatus,
    context: &AnalysisContext,
) -> Result<Next, Error> {
    let Some(moment) = core::expires(&run.spec, status) else {
        return Ok(Next::await_change());
    };
    if moment > context.clock.now() {
        return Ok(at(&context.clock, moment));
    }
    Objects::<AnalysisRun>::in_namespace_of(&context.client, run)?
        .delete(&ObjectName::new(run.name_any())?, run.uid())
        .await
        .map_err(Error::api("cannot delete an analysis run"))?;
    Ok(Next::await_change())
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use rstest::rstest;
    use serde_json::Value;
    use std::sync::Mutex;

    fn run() -> AnalysisRun {
        let run = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
            "metadata": {"name": "run", "namespace": "ns", "uid": "1", "resourceVersion": "7"},
            "spec": {"metrics": []},
            "status": {"phase": "Running", "metricResults": [{"name": "errors", "phase": "Running", "count": 3}]},
        });
        serde_json::from_value(run).unwrap()
    }

    /// The requests sent if the API server rejects the first one like this.
    async fn sent(code: u16, message: &'static str) -> (Result<(), Error>, Vec<Value>) {
        let sent: Arc<Mutex<Vec<Value>>> = Arc::default();
        let noted = sent.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let noted = noted.clone();
            async move {
                let body = request.into_body().collect_bytes().await.unwrap();
                let mut noted = noted.lock().unwrap();
                noted.push(serde_json::from_slice(&body).unwrap());
                let (code, answer) = match noted.len() {
                    1 => {
                        let refusal = kube::core::Status::failure(message, "Refused").with_code(code);
                        (code, serde_json::to_vec(&refusal).unwrap())
                    }
                    _ => (200, serde_json::to_vec(&run()).unwrap()),
                };
                let answer = http::Response::builder()
                    .status(code)
                    .body(kube::client::Body::from(answer));
                Ok::<_, std::convert::Infallible>(answer.unwrap())
            }
        });
        let client = Client::new(service, "ns");
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH, 1.0);
        let (metrics, runs, queue) = (Metrics::default(), Runs::default(), MeasurementQueue::new().0);
        let (due, _) = mpsc::unbounded_channel();
        let context = AnalysisContext::new(client, clock, metrics, runs, queue, Workers::default(), due);
        let mut status = run().status.unwrap();
        status.metric_results[0].count = 4;
        let written = write(&run(), &status, &context).await;
        let sent = sent.lock().unwrap().clone();
        (written, sent)
    }

    #[rstest]
    #[case(413, "request entity too large")]
    #[case(422, "status.metricResults is invalid")]
    #[case(500, "etcdserver: request is too large")]
    #[tokio::test]
    async fn a_run_whose_status_cannot_be_kept_ends_in_an_error(
        #[case] code: u16,
        #[case] message: &'static str,
    ) {
        let (written, sent) = sent(code, message).await;
        written.unwrap();
        assert_eq!(sent.len(), 2);
        let last = &sent[1];
        assert_eq!(last["metadata"], json!({"resourceVersion": "7", "uid": "1"}));
        assert_eq!(last["status"]["phase"], "Error");
        assert_eq!(last["status"]["metricResults"], Value::Null);
        assert_eq!(
            last["status"]["message"],
            format!("its status cannot be written: {message}")
        );
    }

    #[rstest]
    #[case(409, "the object has changed meanwhile")]
    #[case(503, "come back later")]
    #[tokio::test]
    async fn a_write_that_may_succeed_later_is_not_given_up(
        #[case] code: u16,
        #[case] message: &'static str,
    ) {
        let (written, sent) = sent(code, message).await;
        assert!(written.is_err());
        assert_eq!(sent.len(), 1);
    }

    #[test]
    fn a_run_that_cannot_be_read_could_not_be_made() {
        let run = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "metadata": {"name": "run", "uid": "1"},
            "spec": {"metrics": []}, "status": {"startedAt": "2024-01-01T00:00:00+99:99"},
        });
        let run: DeserializeGuard<AnalysisRun> = serde_json::from_value(run).unwrap();
        let run = run.unwrap_or_else(invalid);
        let status = run.status.clone().unwrap();
        assert_eq!((run.name_any(), status.phase), ("run".to_owned(), Phase::Error));
        assert!(
            status.message.starts_with("the run cannot be read: "),
            "{}",
            status.message
        );
    }
}
