//! A queue of measurements.
//!
//! An AnalysisRun never waits for an answer: it queues a measurement, and is reconciled again when the answer is there.
//! Measurements that are lost in a crash are repeated. A slow provider delays only its own users: the measurements in progress are
//! limited for each run and each namespace, and those that are not needed any more are cancelled.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use futures::StreamExt;
use futures::future::{AbortHandle, AbortRegistration, Abortable};
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use kube::runtime::reflector::ObjectRef;
use parking_lot::{Mutex, MutexGuard};
use stateward_analysis::{
    LONGEST_SECRET, MetricProvider, MetricQuery, ProviderError, Redactor, SecretData, Secrets, Workers,
    check_filled_args, check_secret_args,
};
use stateward_api::analysis::{AnalysisRun, Arg, Measurement, Metric, Phase};
use stateward_clock::Clock;
use stateward_core::analysis::{args, judge};
use tokio::sync::mpsc;

/// How many measurements may be in progress: in total, of one namespace, and of one run.
const AT_ONCE: usize = 1024;
const OF_A_NAMESPACE: usize = 256;
const OF_ONE: usize = 8;

/// How long answers wait for others that were queued together, so that one write records them all.
const COMPANY: SignedDuration = SignedDuration::from_secs(1);

/// A measurement to make.
pub(crate) trait MeasurementJob: Send + 'static {
    /// The kind of object that it is for.
    type Object: kube::Resource<DynamicType = ()>;
    /// The result.
    type Answer: Clone + PartialEq + Send;

    /// The object that it is for.
    fn object(&self) -> ObjectRef<Self::Object>;
    /// The group that it belongs to: a run, or a gate.
    fn key(&self) -> &str;
    /// Its index in the group.
    fn index(&self) -> usize;
    /// Makes the measurement.
    fn run(&self, measurer: &Measurer) -> impl Future<Output = Self::Answer> + Send;
    /// When it was answered.
    fn answered_at(answer: &Self::Answer) -> Option<Timestamp>;
}

/// A measurement of an AnalysisRun's metric.
pub(crate) struct MetricJob {
    pub(crate) run: ObjectRef<AnalysisRun>,
    pub(crate) uid: String,
    /// The index of the metric in the run.
    pub(crate) index: usize,
    /// The metric, with every argument but its secrets resolved.
    pub(crate) metric: Metric,
    pub(crate) args: Vec<Arg>,
}

impl MeasurementJob for MetricJob {
    type Object = AnalysisRun;
    type Answer = Measurement;

    fn object(&self) -> ObjectRef<AnalysisRun> {
        self.run.clone()
    }

    fn key(&self) -> &str {
        &self.uid
    }

    fn index(&self) -> usize {
        self.index
    }

    async fn run(&self, measurer: &Measurer) -> Measurement {
        measurer.measure(self).await
    }

    fn answered_at(answer: &Measurement) -> Option<Timestamp> {
        answer.finished_at
    }
}

/// The queued measurements and their answers.
pub(crate) struct MeasurementQueue<O: MeasurementJob> {
    slots: Slots<O>,
    jobs: mpsc::UnboundedSender<QueuedJob<O>>,
}

/// A job, and how to cancel it.
pub(crate) struct QueuedJob<O> {
    job: O,
    handle: AbortHandle,
    registration: AbortRegistration,
}

/// By the key of the group.
type Slots<O> = Arc<Mutex<HashMap<String, Slot<<O as MeasurementJob>::Answer>>>>;

impl<O: MeasurementJob> Clone for MeasurementQueue<O> {
    fn clone(&self) -> Self {
        Self {
            slots: self.slots.clone(),
            jobs: self.jobs.clone(),
        }
    }
}

struct Slot<A> {
    asking: BTreeMap<usize, AbortHandle>,
    answered: Vec<(usize, A)>,
}

impl<A> Default for Slot<A> {
    fn default() -> Self {
        Self {
            asking: BTreeMap::new(),
            answered: Vec::new(),
        }
    }
}

/// The answers for a run.
pub(crate) enum Answers<A> {
    /// These.
    Here(Vec<(usize, A)>),
    /// Some; wait for others until then.
    Until(Timestamp),
}

impl<O: MeasurementJob> MeasurementQueue<O> {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<QueuedJob<O>>) {
        let (jobs, taken) = mpsc::unbounded_channel();
        let measurement_queue = Self {
            slots: Arc::default(),
            jobs,
        };
        (measurement_queue, taken)
    }

    /// Queues a measurement, unless it is in progress.
    pub(crate) fn begin(&self, job: O) {
        let (handle, registration) = AbortHandle::new_pair();
        {
            let mut slots = self.lock();
            let slot = slots.entry(job.key().to_owned()).or_default();
            if slot.asking.contains_key(&job.index()) {
                return;
            }
            slot.asking.insert(job.index(), handle.clone());
        }
        // The receiver is gone only when the operator shuts down.
        let _ = self.jobs.send(QueuedJob {
            job,
            handle,
            registration,
        });
    }

    /// Whether a metric of a run is being measured, or its answer is not recorded yet.
    pub(crate) fn is_open(&self, key: &str, index: usize) -> bool {
        self.lock().get(key).is_some_and(|slot| {
            slot.asking.contains_key(&index) || slot.answered.iter().any(|(answered, _)| *answered == index)
        })
    }

    /// The answers. They are kept until they are recorded.
    pub(crate) fn answers(&self, key: &str, now: Timestamp) -> Answers<O::Answer> {
        let slots = self.lock();
        let Some(slot) = slots.get(key) else {
            return Answers::Here(Vec::new());
        };
        let first = slot
            .answered
            .iter()
            .filter_map(|(_, answer)| O::answered_at(answer))
            .min();
        match first.and_then(|first| first.saturating_add(COMPANY).ok()) {
            Some(until) if !slot.asking.is_empty() && now < until => Answers::Until(until),
            _ => Answers::Here(slot.answered.clone()),
        }
    }

    /// Drops answers that were recorded.
    pub(crate) fn written(&self, key: &str, answers: &[(usize, O::Answer)]) {
        let mut slots = self.lock();
        if let Some(slot) = slots.get_mut(key) {
            slot.answered.retain(|answer| !answers.contains(answer));
            if slot.answered.is_empty() && slot.asking.is_empty() {
                slots.remove(key);
            }
        }
    }

    /// Drops a group that is not needed any more, and cancels its measurements.
    pub(crate) fn forget(&self, key: &str) {
        let slot = self.lock().remove(key);
        for handle in slot.iter().flat_map(|slot| slot.asking.values()) {
            handle.abort();
        }
    }

    /// Makes the queued measurements, and reports the objects to reconcile. Never ends.
    pub(crate) async fn run(
        &self,
        mut jobs: mpsc::UnboundedReceiver<QueuedJob<O>>,
        measurer: &Measurer,
        answered: mpsc::UnboundedSender<ObjectRef<O::Object>>,
    ) {
        let mut queue = FairQueue::<O>::default();
        let mut under_way = FuturesUnordered::new();
        loop {
            while let Some(next) = queue.next() {
                under_way.push(async move {
                    let QueuedJob {
                        job,
                        handle,
                        registration,
                    } = next;
                    let answer = Abortable::new(job.run(measurer), registration).await;
                    (job, handle, answer)
                });
            }
            tokio::select! {
                biased;
                Some((job, handle, answer)) = under_way.next() => {
                    queue.ended(&job);
                    if let Ok(answer) = answer {
                        self.answer(&job, &handle, answer);
                        // The receiver is gone only when the operator shuts down.
                        let _ = answered.send(job.object());
                    }
                }
                Some(queued_job) = jobs.recv() => queue.push(queued_job),
            }
        }
    }

    fn answer(&self, job: &O, handle: &AbortHandle, answer: O::Answer) {
        let mut slots = self.lock();
        // It may have been cancelled after it was answered, and queued again.
        let slot = slots.get_mut(job.key()).filter(|_| !handle.is_aborted());
        if let Some(slot) = slot {
            slot.asking.remove(&job.index());
            slot.answered.push((job.index(), answer));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Slot<O::Answer>>> {
        self.slots.lock()
    }
}

/// Waiting jobs, and the number in progress. Round robin over the groups, one job of each in turn.
struct FairQueue<O> {
    waiting: HashMap<String, VecDeque<QueuedJob<O>>>,
    /// The keys of the groups that wait.
    turns: VecDeque<String>,
    under_way: usize,
    of_one: HashMap<String, usize>,
    of_namespace: HashMap<String, usize>,
}

impl<O> Default for FairQueue<O> {
    fn default() -> Self {
        Self {
            waiting: HashMap::new(),
            turns: VecDeque::new(),
            under_way: 0,
            of_one: HashMap::new(),
            of_namespace: HashMap::new(),
        }
    }
}

impl<O: MeasurementJob> FairQueue<O> {
    fn push(&mut self, queued_job: QueuedJob<O>) {
        let key = queued_job.job.key().to_owned();
        let waiting = self.waiting.entry(key.clone()).or_default();
        if waiting.is_empty() {
            self.turns.push_back(key);
        }
        waiting.push_back(queued_job);
    }

    /// The next job that may start, if there is one. Cancelled jobs are dropped on the way.
    fn next(&mut self) -> Option<QueuedJob<O>> {
        if self.under_way >= AT_ONCE {
            return None;
        }
        for _ in 0..self.turns.len() {
            let key = self.turns.pop_front()?;
            let waiting = self.waiting.get_mut(&key)?;
            while waiting.front().is_some_and(|next| next.handle.is_aborted()) {
                waiting.pop_front();
            }
            let Some(next) = waiting.front() else {
                self.waiting.remove(&key);
                continue;
            };
            let namespace = namespace(&next.job);
            let full = self.of_one.get(&key).is_some_and(|count| *count >= OF_ONE)
                || self
                    .of_namespace
                    .get(&namespace)
                    .is_some_and(|count| *count >= OF_A_NAMESPACE);
            let next = if full { None } else { waiting.pop_front() };
            if waiting.is_empty() {
                self.waiting.remove(&key);
            } else {
                self.turns.push_back(key.clone());
            }
            if next.is_some() {
                self.under_way += 1;
                *self.of_one.entry(key).or_default() += 1;
                *self.of_namespace.entry(namespace).or_default() += 1;
                return next;
            }
        }
        None
    }

    fn ended(&mut self, job: &O) {
        self.under_way = self.under_way.saturating_sub(1);
        let counts = [
            (&mut self.of_one, job.key().to_owned()),
            (&mut self.of_namespace, namespace(job)),
        ];
        for (counts, key) in counts {
            if let Some(count) = counts.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(&key);
                }
            }
        }
    }
}

fn namespace<O: MeasurementJob>(job: &O) -> String {
    job.object().namespace.unwrap_or_default()
}

/// How many bytes a metric may take from Secrets: every encoding of each value is kept in memory for redaction.
const MOST_SECRET_BYTES: usize = 64 * 1024;

/// Makes measurements.
#[derive(Clone)]
pub(crate) struct Measurer {
    pub(crate) provider: Arc<dyn MetricProvider>,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) clock: Clock,
    /// Resolve metrics and judge answers without blocking anything else.
    pub(crate) workers: Workers,
}

impl Measurer {
    async fn measure(&self, job: &MetricJob) -> Measurement {
        let started = self.clock.now();
        let redactor = Redactor::default();
        let mut measurement = match self.answer(job, started, &redactor).await {
            Ok(measurement) => measurement,
            Err(message) => Measurement {
                phase: Phase::Error,
                message,
                ..Measurement::default()
            },
        };
        let texts = [&mut measurement.message, &mut measurement.value];
        for text in texts.into_iter().chain(measurement.metadata.values_mut()) {
            *text = redactor.redact(text);
        }
        measurement.started_at = Some(started);
        measurement.finished_at = Some(self.clock.now());
        measurement
    }

    async fn answer(
        &self,
        job: &MetricJob,
        now: Timestamp,
        redactor: &Redactor,
    ) -> Result<Measurement, String> {
        let namespace = job.run.namespace.as_deref().unwrap_or_default();
        let secrets = self.secret_args(job, namespace).await?;
        secrets.values().for_each(|secret| redactor.add(secret));
        let open = job.metric.clone();
        let filling = self.workers.run(namespace, move || filled(&open, &secrets, now));
        let (metric, range) = filling.await?;
        let query = MetricQuery {
            metric: &metric,
            namespace,
            now,
            range,
            redactor,
        };
        let reply = match self.provider.query(&query).await {
            Ok(reply) => reply,
            Err(error) => {
                let in_time = !matches!(error, ProviderError::Timeout { .. });
                let judgement = judge::unanswered(&metric, in_time, error.to_string());
                return Ok(Measurement {
                    phase: judgement.phase,
                    message: judgement.message,
                    ..Measurement::default()
                });
            }
        };
        let redactor = redactor.clone();
        let judging = move || {
            // The original answer is judged; what is stored of it is redacted.
            let hide = |text: &str| redactor.redact(text);
            let judgement = judge::judge(&metric, &reply, now, &hide);
            Measurement {
                phase: judgement.phase,
                message: judgement.message,
                value: judge::value(&reply.data, &hide),
                metadata: reply.notes,
                ..Measurement::default()
            }
        };
        Ok(self.workers.run(namespace, judging).await)
    }

    /// The args of a metric that come from Secrets. Each Secret is read once, and dropped before the next is read.
    async fn secret_args(&self, job: &MetricJob, namespace: &str) -> Result<args::Values, String> {
        let mut sources: BTreeMap<&str, Vec<(String, &str)>> = BTreeMap::new();
        for name in args::open(&job.metric) {
            let arg = job.args.iter().find(|arg| arg.name == name);
            let source = arg.and_then(|arg| arg.value_from.as_ref()?.secret_key_ref.as_ref());
            let Some(secret) = source else {
                return Err(format!("the arg {name:?} has no value"));
            };
            sources.entry(&secret.name).or_default().push((name, &secret.key));
        }
        check_secret_args(&job.metric).map_err(|error| error.to_string())?;
        let (mut values, mut bytes) = (args::Values::new(), 0);
        for (secret, wanted) in sources {
            let data = self.secret(namespace, secret).await?;
            for (name, key) in wanted {
                let value = value_of(secret, key, &data)?;
                bytes += value.len();
                if bytes > MOST_SECRET_BYTES {
                    return Err(format!(
                        "the values that the metric takes from Secrets have more than {MOST_SECRET_BYTES} bytes together"
                    ));
                }
                values.insert(name, value.to_owned());
            }
        }
        Ok(values)
    }

    async fn secret(&self, namespace: &str, name: &str) -> Result<SecretData, String> {
        let data = self.secrets.get(namespace, name).await.map_err(|error| {
            format!(
                "Secret {name} cannot be read: {error}; the operator needs the right to get it in namespace {namespace}"
            )
        })?;
        data.ok_or_else(|| format!("there is no Secret {name} in namespace {namespace}"))
    }
}

/// The value of a key, as text of at most [`LONGEST_SECRET`] bytes.
fn value_of<'d>(secret: &str, key: &str, data: &'d SecretData) -> Result<&'d str, String> {
    let Some(value) = data.get(key) else {
        return Err(format!("Secret {secret} has no key {key}"));
    };
    if value.len() > LONGEST_SECRET {
        return Err(format!(
            "the key {key} of Secret {secret} has {} bytes, more than {LONGEST_SECRET}",
            value.len()
        ));
    }
    std::str::from_utf8(value).map_err(|_| format!("the key {key} of Secret {secret} is no text"))
}

/// A metric with its secrets resolved, and the values of its range query's expressions.
fn filled(
    open: &Metric,
    secrets: &args::Values,
    now: Timestamp,
) -> Result<(Metric, Option<stateward_analysis::Range>), String> {
    let metric = args::fill(open, secrets)
        .map_err(|_| "the metric is none once its secrets are filled in".to_owned())?;
    check_filled_args(open, &metric).map_err(|error| error.to_string())?;
    let range = range(&metric, now)?;
    Ok((metric, range))
}

/// The values of a range query's expressions.
fn range(metric: &Metric, now: Timestamp) -> Result<Option<stateward_analysis::Range>, String> {
    let prometheus = metric.provider.prometheus.as_ref();
    let Some(range) = prometheus.and_then(|prometheus| prometheus.range_query.as_ref()) else {
        return Ok(None);
    };
    let range = judge::range(range, now)?;
    Ok(Some(stateward_analysis::Range {
        start: range.start,
        end: range.end,
        step: range.step,
    }))
}

#[cfg(test)]
mod tests;
