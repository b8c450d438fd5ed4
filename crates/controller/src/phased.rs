//! The checks of PhasedRollouts: made when they are due, and kept until they are recorded.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use parking_lot::Mutex;
use stateward_analysis::{MetricProvider, MetricQuery, ProviderError, Redactor};
use stateward_api::analysis::{Authentication, BasicAuth, Header, Metric, Prometheus, Provider};
use stateward_api::phasedrollout::{PhasedRollout, PhasedRolloutStatus, Query};
use stateward_core::event::Notice;
use stateward_core::phasedrollout::{self, Checked};
use stateward_core::plan::Plan;
use stateward_core::workload::Workload;
use stateward_core::world::{NoWorkload, Run, RunFor};
use stateward_plugin::{Done, Observation};

use crate::analysis::measurement_queue::{Answers, MeasurementJob, MeasurementQueue, Measurer};
use crate::error::Error;
use crate::kind::Checks;
use crate::metrics::Metrics;

/// The default timeout of a query.
const TIMEOUT_SECONDS: i32 = 5;

/// One check.
pub(crate) struct CheckJob {
    object: ObjectRef<PhasedRollout>,
    key: String,
    /// The PhasedRollout that it is for.
    rollout: Box<PhasedRollout>,
}

/// The checks in progress.
pub(crate) struct PhasedChecks {
    queue: MeasurementQueue<CheckJob>,
    /// Makes the queries, and knows the addresses that it never connects to.
    provider: Arc<dyn MetricProvider>,
    metrics: Metrics,
    /// The key of each object's current gate, by the object's UID.
    current: Mutex<HashMap<String, String>>,
}

impl PhasedChecks {
    pub(crate) fn new(
        queue: MeasurementQueue<CheckJob>,
        provider: Arc<dyn MetricProvider>,
        metrics: Metrics,
    ) -> Self {
        Self {
            queue,
            provider,
            metrics,
            current: Mutex::default(),
        }
    }

    /// Records the current gate of an object, and drops the checks of the former one.
    fn turn_to(&self, uid: &str, key: Option<&str>) {
        let mut current = self.current.lock();
        let before = match key {
            Some(key) => current.insert(uid.to_owned(), key.to_owned()),
            None => current.remove(uid),
        };
        if let Some(before) = before.filter(|before| Some(before.as_str()) != key) {
            self.queue.forget(&before);
        }
    }
}

/// A unique key for a gate.
fn key(object: &PhasedRollout, gate: &str) -> String {
    format!("{}/{gate}", object.uid().unwrap_or_default())
}

#[async_trait]
impl Checks<PhasedRollout> for PhasedChecks {
    fn plan(
        &self,
        object: &PhasedRollout,
        workload: &Result<Workload, NoWorkload>,
    ) -> Option<Result<Plan, Vec<String>>> {
        let plan = phasedrollout::plan(object, workload);
        Some(match self.provider.refusal(&object.spec.check.query.url) {
            Some(refusal) => {
                let mut problems = plan.err().unwrap_or_default();
                problems.push(format!("spec.check.query.url: {refusal}"));
                Err(problems)
            }
            None => plan,
        })
    }

    fn runs(
        &self,
        object: &PhasedRollout,
        workload: &Result<Workload, NoWorkload>,
        now: Timestamp,
    ) -> Vec<Run> {
        phasedrollout::runs(object, workload, now)
    }

    // Runs live in the object's status, which the reconcile writes.
    async fn start(&self, _: &PhasedRollout, _: &Observation, _: &str, _: RunFor) -> Result<Done, Error> {
        Ok(Done::Unchanged)
    }

    async fn end(&self, _: &PhasedRollout, _: &str, _: &str) -> Result<Done, Error> {
        Ok(Done::Unchanged)
    }

    async fn delete(&self, _: &PhasedRollout, _: &str, _: &str) -> Result<Done, Error> {
        Ok(Done::Unchanged)
    }

    fn learned(
        &self,
        object: &PhasedRollout,
        now: Timestamp,
    ) -> Option<(PhasedRolloutStatus, Option<Notice>)> {
        let (gate, _) = phasedrollout::due(object, now)?;
        let key = key(object, &gate);
        let Answers::Here(answers) = self.queue.answers(&key, now) else {
            return None;
        };
        for (index, checked) in answers {
            if let Some(status) = phasedrollout::note(object, &gate, &checked) {
                self.metrics.checked(&format!("{:?}", checked.verdict));
                let before = object.status.clone().unwrap_or_default();
                let news = phasedrollout::news(&before, &status);
                return Some((status, news));
            }
            // It is recorded already, was made too early, or belongs to a former gate.
            self.queue.written(&key, &[(index, checked)]);
        }
        None
    }

    fn start_due(&self, object: &PhasedRollout, now: Timestamp) -> Option<Timestamp> {
        let uid = object.uid().unwrap_or_default();
        let Some((gate, due)) = phasedrollout::due(object, now) else {
            self.turn_to(&uid, None);
            return None;
        };
        let key = key(object, &gate);
        self.turn_to(&uid, Some(&key));
        if due > now {
            return Some(due);
        }
        if !self.queue.is_open(&key, 0) {
            self.queue.begin(CheckJob {
                object: ObjectRef::from_obj(object),
                key,
                rollout: Box::new(object.clone()),
            });
        }
        None
    }

    fn forget(&self, uid: &str) {
        self.turn_to(uid, None);
    }
}

impl MeasurementJob for CheckJob {
    type Object = PhasedRollout;
    type Answer = Checked;

    fn object(&self) -> ObjectRef<PhasedRollout> {
        self.object.clone()
    }

    fn key(&self) -> &str {
        &self.key
    }

    fn index(&self) -> usize {
        0
    }

    async fn run(&self, measurer: &Measurer) -> Checked {
        let asked = measurer.clock.now();
        let redactor = Redactor::default();
        let checked = match self.reply(measurer, asked, &redactor).await {
            Ok(checked) => checked,
            Err(Unasked { reason, message }) => {
                phasedrollout::unanswered(&self.rollout, reason, message, asked)
            }
        };
        Checked {
            message: redactor.redact(&checked.message),
            // The time of the answer: however slow the query was, the next one reaches Prometheus a full period later at the earliest.
            at: measurer.clock.now(),
            ..checked
        }
    }

    fn answered_at(answer: &Checked) -> Option<Timestamp> {
        Some(answer.at)
    }
}

/// Why there is no answer.
struct Unasked {
    reason: &'static str,
    message: String,
}

impl From<ProviderError> for Unasked {
    fn from(error: ProviderError) -> Self {
        let reason = error.kind();
        let message = match error {
            ProviderError::BadField { field, problem } => format!("{}: {problem}", our_field(&field)),
            other => other.to_string(),
        };
        Self { reason, message }
    }
}

/// The name that a metric's field has in a PhasedRollout.
fn our_field(field: &str) -> String {
    let Some(inner) = field.strip_prefix("provider.prometheus.") else {
        return field.to_owned();
    };
    let inner = match inner {
        "address" => "url",
        "query" => "expr",
        "timeout" => "timeoutSeconds",
        "insecure" => "insecureSkipVerify",
        // Both come from the Secret.
        secret if secret.starts_with("headers") || secret.starts_with("authentication") => "secretRef",
        other => other,
    };
    format!("spec.check.query.{inner}")
}

impl CheckJob {
    async fn reply(
        &self,
        measurer: &Measurer,
        now: Timestamp,
        redactor: &Redactor,
    ) -> Result<Checked, Unasked> {
        let namespace = self.object.namespace.as_deref().unwrap_or_default();
        let credentials = match &self.rollout.spec.check.query.secret_ref {
            Some(name) => credentials(measurer, namespace, name).await?,
            None => Credentials::None,
        };
        match &credentials {
            Credentials::None => {}
            Credentials::Token(token) => redactor.add(token),
            Credentials::Password { username, password } => redactor.add_login(username, password),
        }
        let metric = metric(&self.rollout.spec.check.query, credentials);
        let query = MetricQuery {
            metric: &metric,
            namespace,
            now,
            range: None,
            redactor,
        };
        let reply = measurer.provider.query(&query).await?;
        Ok(phasedrollout::judge(&self.rollout, &reply, now))
    }
}

/// How to authenticate.
enum Credentials {
    None,
    Token(String),
    Password { username: String, password: String },
}

/// The credentials in a Secret. It is read for every check, so a change applies to the next one.
async fn credentials(measurer: &Measurer, namespace: &str, name: &str) -> Result<Credentials, Unasked> {
    let bad = |message: String| Unasked {
        reason: "SecretError",
        message,
    };
    let data = measurer.secrets.get(namespace, name).await.map_err(|error| {
        bad(format!(
            "Secret {name} cannot be read: {error}; the operator needs the right to get it in namespace {namespace}"
        ))
    })?;
    let Some(data) = data else {
        return Err(bad(format!("there is no Secret {name} in namespace {namespace}")));
    };
    let value = |key: &str| -> Result<Option<String>, Unasked> {
        let Some(bytes) = data.get(key) else {
            return Ok(None);
        };
        let text = String::from_utf8(bytes.clone())
            .map_err(|_| bad(format!("the key {key} of Secret {name} is no text")))?;
        // Files end with a line break, and Secrets are created from files.
        Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()).filter(|text| !text.is_empty()))
    };
    match (value("token")?, value("username")?, value("password")?) {
        // A token takes precedence if all three are set.
        (Some(token), ..) => Ok(Credentials::Token(token)),
        (None, Some(username), Some(password)) => Ok(Credentials::Password { username, password }),
        _ => Err(bad(format!(
            "Secret {name} has neither the key token nor both username and password"
        ))),
    }
}

fn metric(query: &Query, credentials: Credentials) -> Metric {
    let Query {
        expr,
        url,
        secret_ref: _,
        insecure_skip_verify,
        ca_certificate,
        timeout_seconds,
    } = query;
    let (headers, authentication) = match credentials {
        Credentials::None => (Vec::new(), None),
        Credentials::Token(token) => {
            let bearer = Header {
                key: "Authorization".into(),
                value: format!("Bearer {token}"),
            };
            (vec![bearer], None)
        }
        Credentials::Password { username, password } => {
            let authentication = Authentication {
                basic_auth: Some(BasicAuth { username, password }),
                ..Authentication::default()
            };
            (Vec::new(), Some(authentication))
        }
    };
    let prometheus = Prometheus {
        address: url.clone(),
        query: expr.clone(),
        authentication,
        timeout: Some(timeout_seconds.unwrap_or(TIMEOUT_SECONDS).into()),
        insecure: *insecure_skip_verify,
        headers,
        range_query: None,
        ca_certificate: ca_certificate.clone(),
    };
    Metric {
        name: "check".into(),
        provider: Provider {
            prometheus: Some(prometheus),
            ..Provider::default()
        },
        ..Metric::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("provider.prometheus.address", "spec.check.query.url")]
    #[case("provider.prometheus.caCertificate", "spec.check.query.caCertificate")]
    #[case("provider.prometheus.headers[0].value", "spec.check.query.secretRef")]
    #[case(
        "the operator's default address of Prometheus",
        "the operator's default address of Prometheus"
    )]
    fn a_field_is_told_by_the_name_that_users_know(#[case] field: &str, #[case] ours: &str) {
        assert_eq!(our_field(field), ours);
    }
}
