//! Questions under way.
//!
//! A run never waits for an answer: it asks, and has its turn again when the answer is there. What is lost with a crash is asked
//! again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{StreamExt, future};
use jiff::{SignedDuration, Timestamp};
use kube::runtime::reflector::ObjectRef;
use serde_json::Value;
use stateward_analysis::{Ask, AskError, Question, Secrets};
use stateward_api::analysis::{AnalysisRun, Arg, Measurement, Metric, Phase};
use stateward_clock::Clock;
use stateward_core::analysis::{Data, args, judge};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// How many questions may be under way.
const AT_ONCE: usize = 1024;

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
    orders: mpsc::UnboundedSender<O>,
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
    asking: BTreeSet<usize>,
    answered: Vec<(usize, A)>,
}

impl<A> Default for Slot<A> {
    fn default() -> Self {
        Self {
            asking: BTreeSet::new(),
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
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<O>) {
        let (orders, taken) = mpsc::unbounded_channel();
        let asks = Self {
            slots: Arc::default(),
            orders,
        };
        (asks, taken)
    }

    /// Asks, unless that is under way.
    pub(crate) fn begin(&self, order: O) {
        let fresh = self
            .lock()
            .entry(order.key().to_owned())
            .or_default()
            .asking
            .insert(order.index());
        if fresh {
            // Nobody asks any more when the operator is on its way out.
            let _ = self.orders.send(order);
        }
    }

    /// Whether a metric of a run is being asked about, or its answer waits.
    pub(crate) fn is_open(&self, key: &str, index: usize) -> bool {
        self.lock().get(key).is_some_and(|slot| {
            slot.asking.contains(&index) || slot.answered.iter().any(|(answered, _)| *answered == index)
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

    /// Nobody wants to know any more.
    pub(crate) fn forget(&self, key: &str) {
        self.lock().remove(key);
    }

    /// Asks what is ordered, and says whose turn it is when an answer is there. Never ends.
    pub(crate) async fn run(
        &self,
        orders: mpsc::UnboundedReceiver<O>,
        asker: &Asker,
        answered: mpsc::UnboundedSender<ObjectRef<O::Object>>,
    ) {
        UnboundedReceiverStream::new(orders)
            .map(|order| async move {
                let answer = order.ask(asker).await;
                (order, answer)
            })
            .buffer_unordered(AT_ONCE)
            .for_each(|(order, answer)| {
                if let Some(slot) = self.lock().get_mut(order.key()) {
                    slot.asking.remove(&order.index());
                    slot.answered.push((order.index(), answer));
                }
                // Nobody listens any more when the operator is on its way out.
                let _ = answered.send(order.object());
                future::ready(())
            })
            .await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Slot<O::Answer>>> {
        // Every change above is complete before anything can panic.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever asks.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) ask: Arc<dyn Ask>,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) clock: Clock,
}

impl Asker {
    async fn measure(&self, order: &MetricOrder) -> Measurement {
        let started = self.clock.now();
        let mut hidden = Vec::new();
        let mut measurement = match self.answer(order, started, &mut hidden).await {
            Ok(measurement) => measurement,
            Err(message) => Measurement {
                phase: Phase::Error,
                message,
                ..Measurement::default()
            },
        };
        let texts = [&mut measurement.message, &mut measurement.value];
        for text in texts.into_iter().chain(measurement.metadata.values_mut()) {
            conceal(text, &hidden);
        }
        measurement.started_at = Some(started);
        measurement.finished_at = Some(self.clock.now());
        measurement
    }

    async fn answer(
        &self,
        order: &MetricOrder,
        now: Timestamp,
        hidden: &mut Vec<String>,
    ) -> Result<Measurement, String> {
        let namespace = order.run.namespace.as_deref().unwrap_or_default();
        let secrets = self.secret_args(order, namespace).await?;
        hidden.extend(secrets.values().cloned());
        let metric = args::fill(&order.metric, &secrets)
            .map_err(|_| "the metric is none once its secrets are filled in".to_owned())?;
        let range = range(&metric, now)?;
        let question = Question {
            metric: &metric,
            namespace,
            now,
            range,
        };
        let mut reply = match self.ask.ask(&question).await {
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
        // Before anything of it is cut short: half a secret is one too.
        match &mut reply.data {
            Data::Text(text) => conceal(text, hidden),
            Data::Document(document) => conceal_document(document, hidden),
            Data::Nothing | Data::Number(_) | Data::Numbers(_) => {}
        }
        let judgement = judge::judge(&metric, &reply, now);
        Ok(Measurement {
            phase: judgement.phase,
            message: judgement.message,
            value: judge::value(&reply.data),
            metadata: reply.notes,
            ..Measurement::default()
        })
    }

    /// The args of a metric that come from Secrets.
    async fn secret_args(&self, order: &MetricOrder, namespace: &str) -> Result<args::Values, String> {
        let mut values = BTreeMap::new();
        for name in args::open(&order.metric) {
            let arg = order.args.iter().find(|arg| arg.name == name);
            let source = arg.and_then(|arg| arg.value_from.as_ref()?.secret_key_ref.as_ref());
            let Some(secret) = source else {
                return Err(format!("the arg {name:?} has no value"));
            };
            let data = self.secrets.get(namespace, &secret.name).await;
            let data = data.map_err(|error| {
                format!(
                    "Secret {} cannot be read: {error}; the operator needs the right to get it in namespace {namespace}",
                    secret.name
                )
            })?;
            let Some(data) = data else {
                return Err(format!(
                    "there is no Secret {} in namespace {namespace}",
                    secret.name
                ));
            };
            let Some(value) = data.get(&secret.key) else {
                return Err(format!("Secret {} has no key {}", secret.name, secret.key));
            };
            let value = String::from_utf8(value.clone())
                .map_err(|_| format!("the key {} of Secret {} is no text", secret.key, secret.name))?;
            values.insert(name, value);
        }
        Ok(values)
    }
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

/// Takes secrets out of what people will read, also where they stand in quotes.
fn conceal(text: &mut String, hidden: &[String]) {
    const STARS: &str = "*****";
    for secret in hidden.iter().filter(|secret| !secret.is_empty()) {
        let quoted = format!("{secret:?}");
        let quoted = &quoted[1..quoted.len() - 1];
        for form in [secret.as_str(), quoted] {
            if text.contains(form) {
                *text = text.replace(form, STARS);
            }
        }
    }
}

fn conceal_document(document: &mut Value, hidden: &[String]) {
    match document {
        Value::String(text) => conceal(text, hidden),
        Value::Array(items) => items.iter_mut().for_each(|item| conceal_document(item, hidden)),
        Value::Object(fields) => {
            let fields = std::mem::take(fields).into_iter().map(|(mut name, mut value)| {
                conceal(&mut name, hidden);
                conceal_document(&mut value, hidden);
                (name, value)
            });
            *document = Value::Object(fields.collect());
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_written_down_nowhere() {
        let hidden = ["hunter2".to_owned(), String::new(), "a\"b".to_owned()];
        let mut document = serde_json::json!({"hunter2": ["x", "say hunter2"], "n": 1});
        conceal_document(&mut document, &hidden);
        assert_eq!(document, serde_json::json!({"*****": ["x", "say *****"], "n": 1}));
        let mut text = r#"hunter2 was refused: "a\"b" and a"b"#.to_owned();
        conceal(&mut text, &hidden);
        assert_eq!(text, r#"***** was refused: "*****" and *****"#);
    }
}
