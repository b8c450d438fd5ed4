//! Questions under way.
//!
//! A run never waits for an answer: it asks, and has its turn again when the answer is there. What is lost with a crash is asked
//! again. Whoever is slow holds up nobody but himself: each run and each namespace has so many questions under way and no more,
//! and what nobody wants to know any more is not waited for.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use futures::future::{AbortHandle, AbortRegistration, Abortable};
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use kube::runtime::reflector::ObjectRef;
use stateward_analysis::{
    Ask, AskError, LONGEST_SECRET, Question, SecretData, Secrets, Veil, Workers, check_filled_args,
    check_secret_args,
};
use stateward_api::analysis::{AnalysisRun, Arg, Measurement, Metric, Phase};
use stateward_clock::Clock;
use stateward_core::analysis::{args, judge};
use tokio::sync::mpsc;

/// How many questions may be under way: of all, of one namespace, and of one run.
const AT_ONCE: usize = 1024;
const OF_A_NAMESPACE: usize = 256;
const OF_ONE: usize = 8;

/// How long answers wait for others that were asked for together, so that they are written down together.
const COMPANY: SignedDuration = SignedDuration::from_secs(1);

/// A question to ask.
pub(crate) trait Order: Send + 'static {
    /// Who asks.
    type Object: kube::Resource<DynamicType = ()>;
    /// What is learned.
    type Answer: Clone + PartialEq + Send;

    /// Who asks.
    fn object(&self) -> ObjectRef<Self::Object>;
    /// What the question is part of: a run, a gate.
    fn key(&self) -> &str;
    /// Its place there.
    fn index(&self) -> usize;
    /// Asks.
    fn ask(&self, asker: &Asker) -> impl Future<Output = Self::Answer> + Send;
    /// When it was answered.
    fn answered_at(answer: &Self::Answer) -> Option<Timestamp>;
}

/// A measurement of a run's metric.
pub(crate) struct MetricOrder {
    pub(crate) run: ObjectRef<AnalysisRun>,
    pub(crate) uid: String,
    /// The metric's place in the run.
    pub(crate) index: usize,
    /// The metric, with all but its secrets filled in.
    pub(crate) metric: Metric,
    pub(crate) args: Vec<Arg>,
}

impl Order for MetricOrder {
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

    async fn ask(&self, asker: &Asker) -> Measurement {
        asker.measure(self).await
    }

    fn answered_at(answer: &Measurement) -> Option<Timestamp> {
        answer.finished_at
    }
}

/// What is asked and what was answered.
pub(crate) struct Asks<O: Order> {
    slots: Slots<O>,
    orders: mpsc::UnboundedSender<Ordered<O>>,
}

/// An order, and how it is called off.
pub(crate) struct Ordered<O> {
    order: O,
    handle: AbortHandle,
    registration: AbortRegistration,
}

/// By what the questions are part of.
type Slots<O> = Arc<Mutex<HashMap<String, Slot<<O as Order>::Answer>>>>;

impl<O: Order> Clone for Asks<O> {
    fn clone(&self) -> Self {
        Self {
            slots: self.slots.clone(),
            orders: self.orders.clone(),
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

/// What there is for a run.
pub(crate) enum Answers<A> {
    /// These.
    Here(Vec<(usize, A)>),
    /// Some, and others may come until then.
    Until(Timestamp),
}

impl<O: Order> Asks<O> {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Ordered<O>>) {
        let (orders, taken) = mpsc::unbounded_channel();
        let asks = Self {
            slots: Arc::default(),
            orders,
        };
        (asks, taken)
    }

    /// Asks, unless that is under way.
    pub(crate) fn begin(&self, order: O) {
        let (handle, registration) = AbortHandle::new_pair();
        {
            let mut slots = self.lock();
            let slot = slots.entry(order.key().to_owned()).or_default();
            if slot.asking.contains_key(&order.index()) {
                return;
            }
            slot.asking.insert(order.index(), handle.clone());
        }
        // Nobody asks any more when the operator is on its way out.
        let _ = self.orders.send(Ordered {
            order,
            handle,
            registration,
        });
    }

    /// Whether a metric of a run is being asked about, or its answer waits.
    pub(crate) fn is_open(&self, key: &str, index: usize) -> bool {
        self.lock().get(key).is_some_and(|slot| {
            slot.asking.contains_key(&index) || slot.answered.iter().any(|(answered, _)| *answered == index)
        })
    }

    /// What was answered. It stays until it is written down.
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

    /// These were written down.
    pub(crate) fn written(&self, key: &str, answers: &[(usize, O::Answer)]) {
        let mut slots = self.lock();
        if let Some(slot) = slots.get_mut(key) {
            slot.answered.retain(|answer| !answers.contains(answer));
            if slot.answered.is_empty() && slot.asking.is_empty() {
                slots.remove(key);
            }
        }
    }

    /// Nobody wants to know any more: what is being asked is called off.
    pub(crate) fn forget(&self, key: &str) {
        let slot = self.lock().remove(key);
        for handle in slot.iter().flat_map(|slot| slot.asking.values()) {
            handle.abort();
        }
    }

    /// Asks what is ordered, and says whose turn it is when an answer is there. Never ends.
    pub(crate) async fn run(
        &self,
        mut orders: mpsc::UnboundedReceiver<Ordered<O>>,
        asker: &Asker,
        answered: mpsc::UnboundedSender<ObjectRef<O::Object>>,
    ) {
        let mut queue = Queue::<O>::default();
        let mut under_way = FuturesUnordered::new();
        loop {
            while let Some(next) = queue.next() {
                under_way.push(async move {
                    let Ordered {
                        order,
                        handle,
                        registration,
                    } = next;
                    let answer = Abortable::new(order.ask(asker), registration).await;
                    (order, handle, answer)
                });
            }
            tokio::select! {
                biased;
                Some((order, handle, answer)) = under_way.next() => {
                    queue.ended(&order);
                    if let Ok(answer) = answer {
                        self.answer(&order, &handle, answer);
                        // Nobody listens any more when the operator is on its way out.
                        let _ = answered.send(order.object());
                    }
                }
                Some(ordered) = orders.recv() => queue.push(ordered),
            }
        }
    }

    fn answer(&self, order: &O, handle: &AbortHandle, answer: O::Answer) {
        let mut slots = self.lock();
        // It may have been called off after it was answered, and be asked anew.
        let slot = slots.get_mut(order.key()).filter(|_| !handle.is_aborted());
        if let Some(slot) = slot {
            slot.asking.remove(&order.index());
            slot.answered.push((order.index(), answer));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Slot<O::Answer>>> {
        // Every change above is complete before anything can panic.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Orders that wait, and how many are under way. Whoever has waited longest is next, one order of each in turn.
struct Queue<O> {
    waiting: HashMap<String, VecDeque<Ordered<O>>>,
    /// The keys of those that wait.
    turns: VecDeque<String>,
    under_way: usize,
    of_one: HashMap<String, usize>,
    of_namespace: HashMap<String, usize>,
}

impl<O> Default for Queue<O> {
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

impl<O: Order> Queue<O> {
    fn push(&mut self, ordered: Ordered<O>) {
        let key = ordered.order.key().to_owned();
        let waiting = self.waiting.entry(key.clone()).or_default();
        if waiting.is_empty() {
            self.turns.push_back(key);
        }
        waiting.push_back(ordered);
    }

    /// The next that may be asked, if one may. What was called off is dropped on the way.
    fn next(&mut self) -> Option<Ordered<O>> {
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
            let namespace = namespace(&next.order);
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

    fn ended(&mut self, order: &O) {
        self.under_way = self.under_way.saturating_sub(1);
        let counts = [
            (&mut self.of_one, order.key().to_owned()),
            (&mut self.of_namespace, namespace(order)),
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

fn namespace<O: Order>(order: &O) -> String {
    order.object().namespace.unwrap_or_default()
}

/// How many bytes a metric may take from Secrets: every form of each is kept while it is redacted from what is shown.
const MOST_SECRET_BYTES: usize = 64 * 1024;

/// Whoever asks.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) ask: Arc<dyn Ask>,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) clock: Clock,
    /// Where metrics are filled in and answers judged: neither may hold up anything else.
    pub(crate) workers: Workers,
}

impl Asker {
    async fn measure(&self, order: &MetricOrder) -> Measurement {
        let started = self.clock.now();
        let veil = Veil::default();
        let mut measurement = match self.answer(order, started, &veil).await {
            Ok(measurement) => measurement,
            Err(message) => Measurement {
                phase: Phase::Error,
                message,
                ..Measurement::default()
            },
        };
        let texts = [&mut measurement.message, &mut measurement.value];
        for text in texts.into_iter().chain(measurement.metadata.values_mut()) {
            *text = veil.hide(text);
        }
        measurement.started_at = Some(started);
        measurement.finished_at = Some(self.clock.now());
        measurement
    }

    async fn answer(&self, order: &MetricOrder, now: Timestamp, veil: &Veil) -> Result<Measurement, String> {
        let namespace = order.run.namespace.as_deref().unwrap_or_default();
        let secrets = self.secret_args(order, namespace).await?;
        secrets.values().for_each(|secret| veil.add(secret));
        let open = order.metric.clone();
        let filling = self.workers.run(namespace, move || filled(&open, &secrets, now));
        let (metric, range) = filling.await?;
        let question = Question {
            metric: &metric,
            namespace,
            now,
            range,
            veil,
        };
        let reply = match self.ask.ask(&question).await {
            Ok(reply) => reply,
            Err(error) => {
                let in_time = !matches!(error, AskError::Timeout { .. });
                let judgement = judge::unanswered(&metric, in_time, error.to_string());
                return Ok(Measurement {
                    phase: judgement.phase,
                    message: judgement.message,
                    ..Measurement::default()
                });
            }
        };
        let veil = veil.clone();
        let judging = move || {
            // What was answered is judged as it is; what is written down of it shows no secret.
            let hide = |text: &str| veil.hide(text);
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

    /// The args of a metric that come from Secrets. Each Secret is read once, and none is kept while another is read.
    async fn secret_args(&self, order: &MetricOrder, namespace: &str) -> Result<args::Values, String> {
        let mut sources: BTreeMap<&str, Vec<(String, &str)>> = BTreeMap::new();
        for name in args::open(&order.metric) {
            let arg = order.args.iter().find(|arg| arg.name == name);
            let source = arg.and_then(|arg| arg.value_from.as_ref()?.secret_key_ref.as_ref());
            let Some(secret) = source else {
                return Err(format!("the arg {name:?} has no value"));
            };
            sources.entry(&secret.name).or_default().push((name, &secret.key));
        }
        check_secret_args(&order.metric).map_err(|error| error.to_string())?;
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

/// The value of a key, as a text of at most [`LONGEST_SECRET`] bytes.
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

/// A metric with its secrets filled in, and what the expressions of its range query come to.
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

/// What the expressions of a range query come to.
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
