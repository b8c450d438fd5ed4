//! The checks of PhasedRollouts: asked when they are due, and kept until they are written down.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use kube::ResourceExt;
use kube::runtime::reflector::ObjectRef;
use stateward_analysis::{Ask, AskError, Question, Veil};
use stateward_api::analysis::{Authentication, BasicAuth, Header, Metric, Prometheus, Provider};
use stateward_api::phasedrollout::{PhasedRollout, PhasedRolloutStatus, Query};
use stateward_core::event::Notice;
use stateward_core::phasedrollout::{self, Checked};
use stateward_core::plan::Plan;
use stateward_core::workload::Workload;
use stateward_core::world::{Asked, NoWorkload, Run};
use stateward_plugin::{Done, Observation};

use crate::analysis::asks::{Answers, Asker, Asks, Order};
use crate::error::Error;
use crate::kind::Checks;
use crate::metrics::Metrics;

/// How long to wait for an answer, unless the spec says otherwise.
const TIMEOUT_SECONDS: i32 = 5;

/// One check.
pub(crate) struct CheckOrder {
    object: ObjectRef<PhasedRollout>,
    key: String,
    /// As it asks.
    rollout: Box<PhasedRollout>,
}

/// The checks that are made.
pub(crate) struct Inquiry {
    asks: Asks<CheckOrder>,
    /// Who asks, and knows where it never connects to.
    ask: Arc<dyn Ask>,
    metrics: Metrics,
    /// What is asked for an object, by its UID.
    current: Mutex<HashMap<String, String>>,
}

impl Inquiry {
    pub(crate) fn new(asks: Asks<CheckOrder>, ask: Arc<dyn Ask>, metrics: Metrics) -> Self {
        Self {
            asks,
            ask,
            metrics,
            current: Mutex::default(),
        }
    }

    /// Takes note of what is asked for an object now. What was asked before concerns nobody any more.
    fn turn_to(&self, uid: &str, key: Option<&str>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match key {
            Some(key) => current.insert(uid.to_owned(), key.to_owned()),
            None => current.remove(uid),
        };
        if let Some(before) = before.filter(|before| Some(before.as_str()) != key) {
            self.asks.forget(&before);
        }
    }
}

/// No two gates have the same.
fn key(object: &PhasedRollout, gate: &str) -> String {
    format!("{}/{gate}", object.uid().unwrap_or_default())
}

#[async_trait]
impl Checks<PhasedRollout> for Inquiry {
    fn plan(
        &self,
        object: &PhasedRollout,
        workload: &Result<Workload, NoWorkload>,
    ) -> Option<Result<Plan, Vec<String>>> {
        let plan = phasedrollout::plan(object, workload);
        Some(match self.ask.refusal(&object.spec.check.query.url) {
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

    // They live in the object's status, which is written by whoever decides.
    async fn start(&self, _: &PhasedRollout, _: &Observation, _: &str, _: Asked) -> Result<Done, Error> {
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
        let Answers::Here(answers) = self.asks.answers(&key, now) else {
            return None;
        };
        for (index, checked) in answers {
            if let Some(status) = phasedrollout::note(object, &gate, &checked) {
                self.metrics.checked(&format!("{:?}", checked.verdict));
                let before = object.status.clone().unwrap_or_default();
                let news = phasedrollout::news(&before, &status);
                return Some((status, news));
            }
            // It is on record, was asked before its time, or answers what nobody asks any more.
            self.asks.written(&key, &[(index, checked)]);
        }
        None
    }

    fn ask(&self, object: &PhasedRollout, now: Timestamp) -> Option<Timestamp> {
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
        if !self.asks.is_open(&key, 0) {
            self.asks.begin(CheckOrder {
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

impl Order for CheckOrder {
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

    async fn ask(&self, asker: &Asker) -> Checked {
        let asked = asker.clock.now();
        let veil = Veil::default();
        let checked = match self.reply(asker, asked, &veil).await {
            Ok(checked) => checked,
            Err(Unasked { reason, message }) => {
                phasedrollout::unanswered(&self.rollout, reason, message, asked)
            }
        };
        Checked {
            message: veil.hide(&checked.message),
            // However long the way, the Prometheus sees the next question a period after this one at the earliest.
            at: asker.clock.now(),
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

impl From<AskError> for Unasked {
    fn from(error: AskError) -> Self {
        let reason = error.kind();
        let message = match error {
            AskError::BadField { field, problem } => format!("{}: {problem}", our_field(&field)),
            other => other.to_string(),
        };
        Self { reason, message }
    }
}

/// A field of a metric by the name that it has in a PhasedRollout.
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

impl CheckOrder {
    async fn reply(&self, asker: &Asker, now: Timestamp, veil: &Veil) -> Result<Checked, Unasked> {
        let namespace = self.object.namespace.as_deref().unwrap_or_default();
        let credentials = match &self.rollout.spec.check.query.secret_ref {
            Some(name) => credentials(asker, namespace, name).await?,
            None => Credentials::None,
        };
        match &credentials {
            Credentials::None => {}
            Credentials::Token(token) => veil.add(token),
            Credentials::Password { username, password } => veil.add_login(username, password),
        }
        let metric = metric(&self.rollout.spec.check.query, credentials);
        let question = Question {
            metric: &metric,
            namespace,
            now,
            range: None,
            veil,
        };
        let reply = asker.ask.ask(&question).await?;
        Ok(phasedrollout::judge(&self.rollout, &reply, now))
    }
}

/// How to be let in.
enum Credentials {
    None,
    Token(String),
    Password { username: String, password: String },
}

/// What a Secret says about how to be let in. It is read for every check, so a new one counts from the next on.
async fn credentials(asker: &Asker, namespace: &str, name: &str) -> Result<Credentials, Unasked> {
    let bad = |message: String| Unasked {
        reason: "SecretError",
        message,
    };
    let data = asker.secrets.get(namespace, name).await.map_err(|error| {
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
        // Files end with a line break, and Secrets are made of files.
        Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()).filter(|text| !text.is_empty()))
    };
    match (value("token")?, value("username")?, value("password")?) {
        // A token goes first where all three are there.
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
