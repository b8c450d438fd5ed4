//! Measurements that run as Jobs, one Job each. The name is derived from the measurement, so no Job is created twice.
//!
//! Users who may write AnalysisTemplates or AnalysisRuns may not be allowed to create pods: [`AnalysisJobs`] restricts what their
//! Jobs may contain. `log` prepares the end of a failed Job's log for the status.

mod log;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures::{StreamExt, future};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ListParams, LogParams};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Client, Resource, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use stateward_api::Problem;
use stateward_api::analysis::{AnalysisRun, AnalysisRunStatus, Measurement, Metric, MetricResult, Phase};
use stateward_client::{DeserializeGuard, ObjectName, Objects};
use stateward_core::plan::Fingerprint;
use stateward_plugin::Watches;
use tokio::sync::mpsc;

use crate::error::Error;
use crate::invalid_objects;

/// The label of our Jobs; its value is the UID of the AnalysisRun.
const OF_RUN: &str = "stateward.dev/analysis-run";

/// The annotation of their pods: the name of the AnalysisRun.
const RUN_OF_POD: &str = "stateward.dev/analysis-run-name";

/// The label of a pod with the name of its Job. Anyone who may create pods can set it, so the controller reference is checked too.
const JOB_OF_POD: &str = "batch.kubernetes.io/job-name";

/// The metadata key for the name of a measurement's Job.
const JOB_NAME: &str = "job-name";

/// Waiting reasons of a container that does not start until someone fixes it.
const HOPELESS: [&str; 5] = [
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
];

/// The metadata key for the end of a failed Job's log. It is not part of the message, because messages go into events.
const LOG_TAIL: &str = "log-tail";

/// How many lines of a failed Job's log are shown.
const LOG_LINES: i64 = 5;

/// How many bytes of the log are read: a line may be endless.
const LOG_READ: i64 = 16 * 1024;

/// The TTL of a finished Job whose spec has none: long enough for an operator that was down to see the result.
const KEPT_SECONDS: i64 = 3600;

/// How long a Job may be without a running pod before the message says so.
const A_MOMENT: SignedDuration = SignedDuration::from_secs(10);

/// What the Jobs of AnalysisTemplates and AnalysisRuns may contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnalysisJobs {
    /// Everything that the API server lets the operator create.
    Any,
    /// What the baseline Pod Security Standard allows; without a service account token unless the service account is named.
    #[default]
    Restricted,
    /// No Jobs at all.
    Off,
}

impl AnalysisJobs {
    /// Why the pod template at path `at` is not allowed, if it is not.
    pub(super) fn refusal(self, template: &Value, at: &str) -> Option<Problem> {
        match self {
            Self::Any => None,
            Self::Off => Some(Problem {
                field: at.to_owned(),
                message: "Jobs are not run here: the operator was started with --analysis-jobs=off".into(),
            }),
            Self::Restricted => {
                let found = stateward_pod_security::violations(template, at);
                let first = found.first()?;
                let more = match found.len() - 1 {
                    0 => String::new(),
                    more => format!(" (and {more} more)"),
                };
                Some(Problem {
                    field: first.path.clone(),
                    message: format!(
                        "{} is not allowed; {}{more}; an operator with --analysis-jobs=any allows it",
                        first.value, first.allowed
                    ),
                })
            }
        }
    }
}

/// The Jobs of AnalysisRuns. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Jobs {
    client: Client,
    allowed: AnalysisJobs,
    known: Arc<Mutex<Known>>,
}

/// The namespace of a Job, and its name or UID.
type Key = (String, String);

#[derive(Default)]
struct Known {
    jobs: HashMap<Key, Seen>,
    /// What keeps the pod of a Job from running, by namespace and UID of the Job.
    pods: HashMap<Key, Trouble>,
}

/// A Job as the watch reports it.
#[derive(Clone, Debug)]
struct Seen {
    uid: String,
    /// The UID of its AnalysisRun.
    run: Option<String>,
    state: State,
    /// It has had no pod so far.
    without_pod: bool,
}

/// Why a pod does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trouble {
    /// It does not start until someone fixes it.
    Hopeless(String),
    /// It cannot be scheduled.
    Unscheduled(String),
}

/// The state of a measurement.
pub(crate) enum Course {
    /// In progress: what it waits for, or when to check that.
    UnderWay(Result<String, Timestamp>),
    /// Complete, or unable to complete.
    Done(Measurement),
    /// Its Job is gone; this is the result, unless the operator deleted the Job.
    Lost(Measurement),
}

/// The state of a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Running,
    Complete,
    Failed(String),
}

impl Jobs {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            allowed: AnalysisJobs::default(),
            known: Arc::default(),
        }
    }

    /// Restricts what the Jobs may contain.
    pub(crate) fn allowing(mut self, allowed: AnalysisJobs) -> Self {
        self.allowed = allowed;
        self
    }

    /// Watches Jobs and their pods and reports which runs to reconcile. Never ends.
    pub(crate) async fn run(
        &self,
        namespace: Option<&str>,
        watches: &Watches,
        changed: mpsc::UnboundedSender<ObjectRef<AnalysisRun>>,
    ) {
        future::join(
            self.follow_jobs(namespace, watches, changed.clone()),
            self.follow_pods(namespace, watches, changed),
        )
        .await;
    }

    /// Watches the pods, because a Job does not report why its pod does not start.
    async fn follow_pods(
        &self,
        namespace: Option<&str>,
        watches: &Watches,
        changed: mpsc::UnboundedSender<ObjectRef<AnalysisRun>>,
    ) {
        let config = watcher::Config::default().labels(OF_RUN);
        let pods = super::api::<DeserializeGuard<Pod>>(&self.client, namespace);
        let watch = invalid_objects::valid(super::watch(pods, config, watches), |pod, why| {
            invalid_objects::log(&pod, why);
        });
        let mut watch = std::pin::pin!(watch);
        let mut listed = HashSet::new();
        while let Some(told) = watch.next().await {
            let (pod, trouble) = match told {
                Ok(watcher::Event::Init) => {
                    listed.clear();
                    continue;
                }
                Ok(watcher::Event::InitApply(pod)) => {
                    listed.extend(job_of(&pod));
                    let trouble = trouble(&pod);
                    (pod, trouble)
                }
                Ok(watcher::Event::InitDone) => {
                    self.lock().pods.retain(|key, _| listed.contains(key));
                    continue;
                }
                Ok(watcher::Event::Apply(pod)) => {
                    let trouble = trouble(&pod);
                    (pod, trouble)
                }
                Ok(watcher::Event::Delete(pod)) => (pod, None),
                Err(_) => continue,
            };
            let Some(job) = job_of(&pod) else { continue };
            let before = match trouble.clone() {
                Some(trouble) => self.lock().pods.insert(job, trouble),
                None => self.lock().pods.remove(&job),
            };
            let run = pod.annotations().get(RUN_OF_POD);
            if let Some(run) = run.filter(|_| before != trouble) {
                let run = ObjectRef::new(run).within(&pod.namespace().unwrap_or_default());
                // The receiver is gone only when the operator shuts down.
                let _ = changed.send(run);
            }
        }
    }

    async fn follow_jobs(
        &self,
        namespace: Option<&str>,
        watches: &Watches,
        changed: mpsc::UnboundedSender<ObjectRef<AnalysisRun>>,
    ) {
        let config = watcher::Config::default().labels(OF_RUN);
        let jobs = super::api::<DeserializeGuard<Job>>(&self.client, namespace);
        let watch = invalid_objects::valid(super::watch(jobs, config, watches), |job, why| {
            invalid_objects::log(&job, why);
        });
        let mut watch = std::pin::pin!(watch);
        let mut listed = HashSet::new();
        while let Some(told) = watch.next().await {
            let job = match told {
                Ok(watcher::Event::Init) => {
                    listed.clear();
                    continue;
                }
                Ok(watcher::Event::InitApply(job)) => {
                    listed.insert(key(&job));
                    self.lock().jobs.insert(key(&job), seen(&job));
                    job
                }
                Ok(watcher::Event::InitDone) => {
                    self.lock().jobs.retain(|key, _| listed.contains(key));
                    continue;
                }
                Ok(watcher::Event::Apply(job)) => {
                    self.lock().jobs.insert(key(&job), seen(&job));
                    job
                }
                Ok(watcher::Event::Delete(job)) => {
                    self.lock().jobs.remove(&key(&job));
                    job
                }
                // The watch has logged the error and tries again.
                Err(_) => continue,
            };
            if let Some(run) = run_of(&job) {
                // The receiver is gone only when the operator shuts down.
                let _ = changed.send(run);
            }
        }
    }

    /// Starts a measurement.
    pub(crate) async fn start(
        &self,
        run: &AnalysisRun,
        metric: &Metric,
        result: Option<&MetricResult>,
        now: Timestamp,
    ) -> Result<Measurement, Error> {
        let number = result.map_or(1, |result| {
            // The author of a run can write its counters, up to the largest number.
            result.count.saturating_add(result.error).saturating_add(1)
        });
        let name = name(&run.name_any(), &metric.name, number);
        let measurement = Measurement {
            phase: Phase::Running,
            started_at: Some(now),
            metadata: [(JOB_NAME.to_owned(), name.clone())].into(),
            ..Measurement::default()
        };
        let lost = |message: String| Measurement {
            phase: Phase::Error,
            message,
            finished_at: Some(now),
            ..measurement.clone()
        };
        let manifest = manifest(run, metric, &name, self.allowed);
        let job = match serde_json::from_value::<Job>(manifest) {
            Ok(job) => job,
            Err(error) => return Ok(lost(format!("provider.job is no Job: {error}"))),
        };
        // The checked object is the one that is sent: it lacks fields that this release does not know.
        let template = &json!(job)["spec"]["template"];
        if let Some(refusal) = self.allowed.refusal(template, "provider.job.spec.template") {
            return Ok(lost(refusal.to_string()));
        }
        let jobs = self.objects(run)?;
        match jobs.create(&job).await {
            Ok(_) => Ok(measurement),
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                let there = jobs.find(&ObjectName::new(&name)?).await;
                let there = there.map_err(Error::api("cannot read a Job"))?;
                match there {
                    Some(there) if !is_of(&there, run) => Ok(lost(format!(
                        "there is a Job {name} that belongs to another object; delete it to continue"
                    ))),
                    _ => Ok(measurement),
                }
            }
            // A retry would be rejected too.
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 403 | 422) => {
                Ok(lost(format!("Job {name} was refused: {}", status.message)))
            }
            Err(error) => Err(Error::api("cannot create a Job")(error)),
        }
    }

    /// The current state of a measurement.
    pub(crate) async fn look(
        &self,
        run: &AnalysisRun,
        measurement: &Measurement,
        now: Timestamp,
    ) -> Result<Course, Error> {
        let name = measurement.metadata.get(JOB_NAME).cloned().unwrap_or_default();
        let here = (run.namespace().unwrap_or_default(), name.clone());
        let known = self.lock().jobs.get(&here).cloned();
        let lost = |message: String| {
            Course::Lost(Measurement {
                phase: Phase::Error,
                message,
                finished_at: Some(now),
                ..measurement.clone()
            })
        };
        // Another run may own a Job of that name.
        let seen = match known.filter(|seen| seen.run == run.uid()) {
            Some(seen) => seen,
            // The watch may lag, or the Job may be gone. The name comes from the run's status, which its author can write.
            None if ObjectName::new(&name).is_err() => {
                return Ok(lost(
                    "the name of its Job was changed to one that no Job can have".into(),
                ));
            }
            None => match self.objects(run)?.find(&ObjectName::new(&name)?).await {
                Ok(Some(job)) if is_of(&job, run) => seen(&job),
                Ok(Some(_)) => {
                    return Ok(lost(format!(
                        "Job {name} was deleted before it was done, and there is another of that name"
                    )));
                }
                Ok(None) => return Ok(lost(format!("Job {name} was deleted before it was done"))),
                Err(error) => return Err(Error::api("cannot read a Job")(error)),
            },
        };
        let trouble = self.lock().pods.get(&(here.0.clone(), seen.uid.clone())).cloned();
        let mut metadata = measurement.metadata.clone();
        let (phase, message) = match seen.state {
            State::Running => {
                if let Some(Trouble::Hopeless(why)) = trouble {
                    (Phase::Inconclusive, format!("Job {name} cannot start: {why}"))
                } else {
                    let begun = measurement.started_at.unwrap_or(now);
                    let told_from = begun.saturating_add(A_MOMENT).unwrap_or(now);
                    let waits = match trouble {
                        Some(Trouble::Unscheduled(why)) => {
                            format!("Job {name} waits: its pod has no place to run: {why}")
                        }
                        _ if seen.without_pod => format!(
                            "Job {name} has no pod: a quota, a limit or a webhook may refuse it; see: kubectl describe job \
                             {name} -n {}",
                            here.0
                        ),
                        _ => String::new(),
                    };
                    return Ok(Course::UnderWay(if now < told_from {
                        Err(told_from)
                    } else {
                        Ok(waits)
                    }));
                }
            }
            State::Complete => (Phase::Successful, String::new()),
            State::Failed(why) => {
                let tail = self.log_tail(run, &name, &seen.uid).await;
                metadata.extend(tail.map(|tail| (LOG_TAIL.to_owned(), tail)));
                (Phase::Failed, format!("Job {name} failed{why}"))
            }
        };
        Ok(Course::Done(Measurement {
            phase,
            message,
            metadata,
            finished_at: Some(now),
            ..measurement.clone()
        }))
    }

    /// Stops a measurement whose result is not needed any more.
    pub(crate) async fn stop(&self, run: &AnalysisRun, measurement: &Measurement) -> Result<(), Error> {
        let name = measurement.metadata.get(JOB_NAME).cloned().unwrap_or_default();
        self.delete(run, &name).await
    }

    /// Deletes Jobs that still run although their measurement is over, because a Job that could not start may start later. Call it
    /// only once the status is written, so that a later operator does not take the Job for one that a user deleted.
    pub(crate) async fn stop_strays(
        &self,
        run: &AnalysisRun,
        status: &AnalysisRunStatus,
    ) -> Result<(), Error> {
        let namespace = run.namespace().unwrap_or_default();
        let results = status.metric_results.iter();
        // Jobs that succeeded or failed have ended; the watch may lag behind.
        let over = results.flat_map(|result| &result.measurements);
        let over = over.filter(|measurement| measurement.phase == Phase::Inconclusive);
        let names = over.filter_map(|measurement| measurement.metadata.get(JOB_NAME));
        let strays: Vec<_> = {
            let known = self.lock();
            let goes_on = |name: &&String| {
                let seen = known.jobs.get(&(namespace.clone(), (*name).clone()));
                seen.is_some_and(|seen| seen.run == run.uid() && seen.state == State::Running)
            };
            names.filter(goes_on).cloned().collect()
        };
        for name in strays {
            self.delete(run, &name).await?;
        }
        Ok(())
    }

    async fn delete(&self, run: &AnalysisRun, name: &str) -> Result<(), Error> {
        let Ok(name) = ObjectName::new(name) else {
            return Ok(());
        };
        let jobs = self.objects(run)?;
        let there = jobs.find(&name).await;
        let there = there.map_err(Error::api("cannot read a Job"))?;
        // Another run may own a Job of that name by now.
        let Some(job) = there.filter(|job| is_of(job, run)) else {
            return Ok(());
        };
        let deleted = jobs.delete(&name, job.uid()).await;
        deleted.map(drop).map_err(Error::api("cannot delete a Job"))
    }

    /// The end of the log of a failed Job's last pod, if it is available.
    async fn log_tail(&self, run: &AnalysisRun, job: &str, uid: &str) -> Option<String> {
        let pods = Objects::<Pod>::in_namespace_of(&self.client, run).ok()?;
        let labels = format!("{JOB_OF_POD}={job}");
        let params = ListParams::default().labels(&labels);
        let of_job = |pod: &Pod| job_of(pod).is_some_and(|(_, job)| job == uid);
        let pods_of_job = pods.list_wanted(&params, of_job).await.ok()?;
        let last = pods_of_job
            .iter()
            .max_by_key(|pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0))?;
        let params = LogParams {
            tail_lines: Some(LOG_LINES),
            limit_bytes: Some(LOG_READ),
            ..LogParams::default()
        };
        let log = pods
            .logs(&ObjectName::new(last.name_any()).ok()?, &params)
            .await
            .ok()?;
        Some(log::tail(&log)).filter(|tail| !tail.is_empty())
    }

    fn objects(&self, run: &AnalysisRun) -> Result<Objects<Job>, Error> {
        Ok(Objects::in_namespace_of(&self.client, run)?)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

/// Namespace and UID of the Job that controls a pod.
fn job_of(pod: &Pod) -> Option<Key> {
    let job = controller::<Job>(pod.owner_references())?;
    Some((pod.namespace().unwrap_or_default(), job.uid.clone()))
}

/// The controller of an object, if it is of this kind.
fn controller<K: Resource<DynamicType = ()>>(owners: &[OwnerReference]) -> Option<&OwnerReference> {
    let mut owners = owners.iter();
    owners.find(|owner| {
        let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        owner.controller == Some(true) && owner.kind == K::kind(&()) && group == K::group(&())
    })
}

/// Why a pod does not run, if it does not.
fn trouble(pod: &Pod) -> Option<Trouble> {
    hopeless(pod)
        .map(Trouble::Hopeless)
        .or_else(|| unscheduled(pod).map(Trouble::Unscheduled))
}

fn unscheduled(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let mut refused = conditions.filter(|condition| {
        condition.type_ == "PodScheduled"
            && condition.status == "False"
            && condition.reason.as_deref() == Some("Unschedulable")
    });
    let refused = refused.next()?;
    Some(refused.message.clone().unwrap_or_else(|| "Unschedulable".into()))
}

/// Why a pod will not start, if it will not.
fn hopeless(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let containers = status
        .container_statuses
        .iter()
        .chain(&status.init_container_statuses);
    let waiting = containers
        .flatten()
        .filter_map(|container| container.state.as_ref()?.waiting.as_ref());
    let mut hopeless = waiting.filter_map(|waiting| {
        let reason = waiting.reason.clone()?;
        let message = waiting.message.clone().map(|message| format!(": {message}"));
        HOPELESS
            .contains(&reason.as_str())
            .then(|| format!("{reason}{}", message.unwrap_or_default()))
    });
    hopeless.next()
}

fn key(job: &Job) -> Key {
    (job.namespace().unwrap_or_default(), job.name_any())
}

fn is_of(job: &Job, run: &AnalysisRun) -> bool {
    run_uid(job).is_some() && run_uid(job) == run.uid()
}

/// The UID of the run that controls a Job, if the label agrees.
fn run_uid(job: &Job) -> Option<String> {
    let run = controller::<AnalysisRun>(job.owner_references())?;
    Some(run.uid.clone()).filter(|uid| job.labels().get(OF_RUN) == Some(uid))
}

fn run_of(job: &Job) -> Option<ObjectRef<AnalysisRun>> {
    let run = controller::<AnalysisRun>(job.owner_references())?;
    Some(ObjectRef::new(&run.name).within(&job.namespace()?))
}

fn seen(job: &Job) -> Seen {
    let status = job.status.clone().unwrap_or_default();
    let pods = [
        status.active,
        status.ready,
        status.succeeded,
        status.failed,
        status.terminating,
    ];
    Seen {
        uid: job.uid().unwrap_or_default(),
        run: run_uid(job),
        state: state(job),
        without_pod: pods.into_iter().flatten().all(|count| count == 0),
    }
}

fn state(job: &Job) -> State {
    let conditions = || {
        let status = job.status.as_ref();
        status
            .and_then(|status| status.conditions.as_ref())
            .into_iter()
            .flatten()
            .filter(|condition| condition.status == "True")
    };
    if let Some(failed) = conditions().find(|condition| condition.type_ == "Failed") {
        let words = [&failed.reason, &failed.message];
        let words: Vec<_> = words.into_iter().flatten().map(String::as_str).collect();
        let why = words.join(": ");
        return State::Failed(if why.is_empty() { why } else { format!(": {why}") });
    }
    if conditions().any(|condition| condition.type_ == "Complete") {
        return State::Complete;
    }
    State::Running
}

/// The name of a measurement's Job. Its pods carry it in a label, so it is cut to 63 characters; a digest keeps cut names unique.
fn name(run: &str, metric: &str, number: i32) -> String {
    const LONGEST: usize = 63;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let tidy: String = metric
        .to_ascii_lowercase()
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .collect();
    let name = format!("{run}-{}-{number}", tidy.trim_matches('-'));
    if name.len() <= LONGEST && tidy == metric && !name.contains('.') {
        return name;
    }
    let digest = Fingerprint::of(&format!("{run}/{metric}/{number}"));
    let head: String = name.replace('.', "-").chars().take(LONGEST - 9).collect();
    let digest: String = digest.as_str().chars().take(8).collect();
    format!("{}-{digest}", head.trim_end_matches('-'))
}

fn manifest(run: &AnalysisRun, metric: &Metric, name: &str, allowed: AnalysisJobs) -> Value {
    let job = metric.provider.job.clone().unwrap_or_default();
    let given = job.metadata.unwrap_or_default();
    let texts = |field: &str| -> BTreeMap<String, Value> {
        let fields = given.get(field).and_then(Value::as_object);
        fields.cloned().unwrap_or_default().into_iter().collect()
    };
    let mut labels = texts("labels");
    labels.insert(OF_RUN.into(), json!(run.uid()));
    let mut spec = job.spec;
    if let Some(fields) = spec.as_object_mut() {
        fields
            .entry("ttlSecondsAfterFinished")
            .or_insert_with(|| json!(KEPT_SECONDS));
    }
    // They identify the pods and lead back to the run.
    for (field, key, value) in [
        ("labels", OF_RUN, run.uid().unwrap_or_default()),
        ("annotations", RUN_OF_POD, run.name_any()),
    ] {
        let path = ["template", "metadata", field];
        let texts = path.into_iter().try_fold(&mut spec, |at, key| {
            // The API server rejects what is not an object.
            let fields = at.as_object_mut()?;
            Some(fields.entry(key).or_insert_with(|| json!({})))
        });
        if let Some(texts) = texts.and_then(Value::as_object_mut) {
            texts.insert(key.into(), value.into());
        }
    }
    if allowed == AnalysisJobs::Restricted
        && let Some(pod) = spec.pointer_mut("/template/spec").and_then(Value::as_object_mut)
    {
        let named = stateward_pod_security::names_a_service_account(&json!(pod));
        let automount = pod.entry("automountServiceAccountToken").or_insert(Value::Null);
        if automount.is_null() && !named {
            *automount = json!(false);
        }
    }
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": run.namespace(),
            "labels": labels,
            "annotations": texts("annotations"),
            "ownerReferences": run.controller_owner_ref(&()).into_iter().collect::<Vec<_>>(),
        },
        "spec": spec,
    })
}

#[cfg(test)]
mod tests;
