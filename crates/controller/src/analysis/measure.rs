//! One run: see what is due, ask, write down what came of it.

use std::sync::Arc;

use futures::{StreamExt, future};
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::runtime::controller::Action as Next;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, WatchStreamExt, controller, reflector, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use stateward_api::analysis::{AnalysisRun, AnalysisRunStatus, INSTANCE, INSTANCE_LABEL};
use stateward_clock::Clock;
use stateward_core::analysis::{run as core, template};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::asks::{Answers, Asks, MetricOrder};
use super::jobs::{Course, Jobs};
use super::runs::{Owner, Runs, owner};
use super::templates::Templates;
use crate::error::{Error, backoff};
use crate::metrics::Metrics;
use crate::status::difference;
use crate::turn::{Failures, Latest, at};

/// How many runs may have their turn at the same time.
const AT_ONCE: u16 = 16;

/// What a turn of a run needs.
pub(crate) struct Lab {
    client: Client,
    clock: Clock,
    metrics: Metrics,
    runs: Runs,
    asks: Asks<MetricOrder>,
    pub(crate) jobs: Jobs,
    latest: Latest<AnalysisRun>,
    failures: Failures,
}

impl Lab {
    /// One without runs yet.
    pub(crate) fn new(
        client: Client,
        clock: Clock,
        metrics: Metrics,
        runs: Runs,
        asks: Asks<MetricOrder>,
    ) -> Self {
        Self {
            jobs: Jobs::new(client.clone()),
            client,
            clock,
            metrics,
            runs,
            asks,
            latest: Latest::default(),
            failures: Failures::default(),
        }
    }

    fn forget(&self, uid: &str) {
        self.asks.forget(uid);
        self.latest.forget(uid);
        self.failures.forget(uid);
    }
}

/// Measures every run of ours, and tells which rollouts have one that changed. Never ends.
pub(crate) async fn measure(
    lab: Arc<Lab>,
    namespace: Option<&str>,
    due: mpsc::UnboundedReceiver<ObjectRef<AnalysisRun>>,
    changed: mpsc::UnboundedSender<(String, String)>,
    templates: Templates,
) {
    let ours = watcher::Config::default().labels(&format!("{INSTANCE_LABEL}={INSTANCE}"));
    let (reader, writer) = reflector::store();
    let watch = super::watch(
        super::api::<AnalysisRun>(&lab.client, namespace),
        ours,
        lab.metrics.watches(),
    );
    let noted = lab.clone();
    let runs = watch
        .modify(|run| run.metadata.managed_fields = None)
        .inspect(move |told| {
            noted.runs.note(told);
            let run = told_of(told);
            if let Some((run, Owner { name, .. })) = run.and_then(|run| Some((run, owner(run)?))) {
                // Nobody listens any more when the operator is on its way out.
                let _ = changed.send((run.namespace().unwrap_or_default(), name));
            }
            // A rollout may have been told that there is no analysis.
            if let Ok(watcher::Event::InitDone) = told {
                templates.touch();
            }
            if let Ok(watcher::Event::Delete(run)) = told {
                noted.forget(&run.uid().unwrap_or_default());
            }
        })
        .reflect(writer)
        .touched_objects();
    Controller::for_stream(runs, reader)
        .with_config(controller::Config::default().concurrency(AT_ONCE))
        .reconcile_on(UnboundedReceiverStream::new(due))
        .run(reconcile, retry, lab)
        .for_each(|_| future::ready(()))
        .await;
}

fn told_of(told: &watcher::Result<watcher::Event<AnalysisRun>>) -> Option<&AnalysisRun> {
    match told {
        Ok(watcher::Event::Apply(run) | watcher::Event::Delete(run) | watcher::Event::InitApply(run)) => {
            Some(run)
        }
        Ok(watcher::Event::Init | watcher::Event::InitDone) | Err(_) => None,
    }
}

fn retry(run: Arc<AnalysisRun>, error: &Error, lab: Arc<Lab>) -> Next {
    let failures = lab.failures.add(&run.uid().unwrap_or_default());
    let who = format!("{}/{}", run.namespace().unwrap_or_default(), run.name_any());
    lab.metrics.failed(error.kind());
    if error.is_conflict() {
        tracing::debug!(run = who, %error, "somebody was faster");
    } else {
        tracing::warn!(run = who, %error, "will try again");
    }
    Next::requeue(lab.clock.on_the_timer(backoff(failures - 1, &who)))
}

async fn reconcile(seen: Arc<AnalysisRun>, lab: Arc<Lab>) -> Result<Next, Error> {
    let run = lab.latest.newest(&seen);
    let next = turn(&run, &lab).await?;
    lab.failures.forget(&run.uid().unwrap_or_default());
    Ok(next)
}

async fn turn(run: &AnalysisRun, lab: &Lab) -> Result<Next, Error> {
    let uid = run.uid().unwrap_or_default();
    let now = lab.clock.now();
    let old = run.status.clone().unwrap_or_default();
    if run.metadata.deletion_timestamp.is_some() {
        lab.asks.forget(&uid);
        return Ok(Next::await_change());
    }
    if old.phase.is_over() {
        lab.asks.forget(&uid);
        return expire(run, &old, lab).await;
    }
    let mut status = old.clone();
    let spec = match template::filled(&run.spec) {
        Ok(spec) => spec,
        Err(problems) => {
            let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
            core::refuse(&mut status, problems.join("; "), now);
            write(run, &status, lab).await?;
            return Ok(Next::await_change());
        }
    };
    let answers = match lab.asks.answers(&uid, now) {
        Answers::Here(answers) => answers,
        Answers::Until(later) => return Ok(at(&lab.clock, later)),
    };
    let mut measured = Vec::new();
    for (index, measurement) in &answers {
        // Another operator may have been faster: then this one was asked for in vain.
        if core::was_due(&spec, &status, *index, measurement) {
            core::note(&spec, &mut status, *index, measurement.clone());
            measured.push(measurement.clone());
        }
    }
    core::assess(&spec, &mut status, now);
    let ending = core::is_ending(&spec, &status);
    for index in core::agenda(&spec, &status, now).resume {
        let result = core::result(&status, &spec.metrics[index].name);
        let Some(measurement) = result.and_then(core::last).cloned() else {
            continue;
        };
        match lab.jobs.look(run, &measurement, now).await? {
            // We may have stopped it ourselves, and died before that was written down.
            Course::UnderWay | Course::Lost(_) if ending => {
                lab.jobs.stop(run, &measurement).await?;
                core::withdraw(&mut status, &spec.metrics[index].name);
            }
            Course::UnderWay => {}
            Course::Done(done) | Course::Lost(done) => {
                core::note(&spec, &mut status, index, done.clone());
                measured.push(done);
            }
        }
    }
    for index in core::agenda(&spec, &status, now).measure {
        let metric = &spec.metrics[index];
        if metric.provider.job.is_some() {
            let result = core::result(&status, &metric.name);
            let begun = lab.jobs.start(run, metric, result, now).await?;
            core::note(&spec, &mut status, index, begun);
        } else if !lab.asks.is_open(&uid, index) {
            lab.asks.begin(MetricOrder {
                run: ObjectRef::from_obj(run),
                uid: uid.clone(),
                index,
                metric: metric.clone(),
                args: run.spec.args.clone(),
            });
        }
    }
    core::assess(&spec, &mut status, now);
    if status != old {
        write(run, &status, lab).await?;
        lab.metrics.measured(&measured);
    }
    lab.asks.written(&uid, &answers);
    // What is being asked comes back by itself.
    Ok(match core::agenda(&spec, &status, now).wake {
        Some(moment) => at(&lab.clock, moment),
        None => Next::await_change(),
    })
}

/// Writes the status down. It is no subresource of a run, so the write is bound to the version that it was decided on.
async fn write(run: &AnalysisRun, status: &AnalysisRunStatus, lab: &Lab) -> Result<(), Error> {
    let api: Api<AnalysisRun> = Api::namespaced(lab.client.clone(), &run.namespace().unwrap_or_default());
    let patch = json!({
        "metadata": {"resourceVersion": run.resource_version(), "uid": run.uid()},
        "status": difference(&json!(run.status), &json!(status)),
    });
    let written = api
        .patch(&run.name_any(), &PatchParams::default(), &Patch::Merge(patch))
        .await
        .map_err(Error::api("cannot write the status of an analysis run"))?;
    lab.runs.put(&written);
    lab.latest.remember(&written);
    Ok(())
}

/// Deletes a run whose time is over.
async fn expire(run: &AnalysisRun, status: &AnalysisRunStatus, lab: &Lab) -> Result<Next, Error> {
    let Some(moment) = core::expires(&run.spec, status) else {
        return Ok(Next::await_change());
    };
    if moment > lab.clock.now() {
        return Ok(at(&lab.clock, moment));
    }
    let api: Api<AnalysisRun> = Api::namespaced(lab.client.clone(), &run.namespace().unwrap_or_default());
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: run.uid(),
            resource_version: None,
        }),
        ..DeleteParams::background()
    };
    match api.delete(&run.name_any(), &params).await {
        Ok(_) => Ok(Next::await_change()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Next::await_change()),
        Err(error) => Err(Error::api("cannot delete an analysis run")(error)),
    }
}
