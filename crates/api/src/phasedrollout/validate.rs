//! Validation of a PhasedRollout's spec: the rules of its schema and those beyond it.

use url::{ParseError, Url};

use super::{Check, PhasedRollout, PhasedRolloutSpec, Query};
use crate::names::{OBJECT_NAME, is_object_name};
use crate::problem::{Problem, Problems};

impl PhasedRollout {
    /// All problems of the spec; empty if it is valid.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        self.spec.check(&mut problems);
        problems.0
    }

    /// Problems of the workload reference.
    pub fn reference_problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        check_name("spec.targetRef", &self.spec.target_ref, &mut problems);
        problems.0
    }
}

fn check_name(field: &str, name: &str, problems: &mut Problems) {
    if !is_object_name(name) {
        problems.add(
            field,
            format!("{name:?} is not the name of an object: {OBJECT_NAME}"),
        );
    }
}

impl PhasedRolloutSpec {
    fn check(&self, problems: &mut Problems) {
        check_name("spec.targetRef", &self.target_ref, problems);
        if let Some(secret) = &self.check.query.secret_ref {
            check_name("spec.check.query.secretRef", secret, problems);
        }
        if let (Some(skip), Some(standard)) = (self.skip_check, self.standard_rolling_update)
            && skip != standard
        {
            problems.add(
                "spec.skipCheck",
                format!(
                    "{skip} and spec.standardRollingUpdate, which is another name of the same, is {standard}"
                ),
            );
        }
        if let Some(seconds) = self.progress_deadline_seconds.filter(|seconds| *seconds < 1) {
            problems.add(
                "spec.progressDeadlineSeconds",
                format!("{seconds} is less than 1"),
            );
        }
        self.check.check(problems);
    }
}

impl Check {
    fn check(&self, problems: &mut Problems) {
        let least = [
            ("initialDelaySeconds", Some(self.initial_delay_seconds), 0),
            ("periodSeconds", Some(self.period_seconds), 1),
            ("maxTries", self.max_tries, 1),
            ("successThreshold", Some(self.success_threshold), 1),
        ];
        for (field, value, least) in least {
            if let Some(value) = value.filter(|value| *value < least) {
                problems.add(
                    format!("spec.check.{field}"),
                    format!("{value} is less than {least}"),
                );
            }
        }
        self.query.check(problems);
    }
}

impl Query {
    fn check(&self, problems: &mut Problems) {
        if self.expr.trim().is_empty() {
            problems.add("spec.check.query.expr", "is empty; it takes a query in PromQL");
        }
        if let Some(objection) = objection(&self.url) {
            // Without the text, which may contain a password.
            problems.add(
                "spec.check.query.url",
                format!("{objection}; it takes an address such as http://prometheus:9090/prefix or prometheus:9090"),
            );
        }
        let authority = self.ca_certificate.as_ref().filter(|pem| !pem.trim().is_empty());
        if self.insecure_skip_verify && authority.is_some() {
            problems.add(
                "spec.check.query.caCertificate",
                "is given, and spec.check.query.insecureSkipVerify is true: a certificate is checked or it is not",
            );
        }
        if let Some(seconds) = self
            .timeout_seconds
            .filter(|seconds| !(1..=300).contains(seconds))
        {
            problems.add(
                "spec.check.query.timeoutSeconds",
                format!("{seconds} is not between 1 and 300"),
            );
        }
    }
}

/// What is wrong with the address of a Prometheus; `None` for what the schema accepts.
fn objection(url: &str) -> Option<String> {
    if !is_address(url) {
        return Some("is not the address of a Prometheus".into());
    }
    let url = url.trim();
    let (scheme, rest) = url.split_once(':').unwrap_or((url, "//"));
    let is_scheme = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let is_port = rest.starts_with(|first: char| first.is_ascii_digit());
    if is_scheme && !is_port && !rest.starts_with("//") {
        return Some("has a scheme without two slashes behind it".into());
    }
    let full = if url.contains("://") {
        url.to_owned()
    } else {
        format!("http://{url}")
    };
    match Url::parse(&full) {
        Err(error @ ParseError::InvalidPort) => Some(format!("is not a URL: {error}")),
        _ if url.trim_end_matches('/').ends_with("/api/v1/query") => {
            Some("ends in /api/v1/query, which is put behind it by itself".into())
        }
        // Other errors are reported when the query is sent: the gate blocks until then, and so does the guard.
        _ => None,
    }
}

fn is_address(url: &str) -> bool {
    let url = url.trim_start();
    let rest = match url.split_once("://") {
        Some((scheme, rest))
            if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") =>
        {
            rest
        }
        Some(_) => return false,
        None => url,
    };
    !rest.is_empty() && !rest.starts_with(['/', ':']) && !rest.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn object(patch: Value) -> PhasedRollout {
        let mut object = json!({
            "apiVersion": "sts.plus/v1alpha1", "kind": "PhasedRollout", "metadata": {"name": "db"},
            "spec": {"targetRef": "web", "check": {"query": {"expr": "up{}", "url": "prom:9000/xx"}}},
        });
        json_patch::merge(&mut object, &patch);
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let check = object(json!({})).spec.check;
        assert_eq!(
            (
                check.initial_delay_seconds,
                check.period_seconds,
                check.success_threshold,
                check.max_tries
            ),
            (60, 60, 3, None)
        );
        assert_eq!(object(json!({})).problems(), []);
    }

    #[rstest]
    #[case(json!({"targetRef": ""}), "spec.targetRef")]
    #[case(json!({"targetRef": "Web"}), "spec.targetRef")]
    #[case(json!({"skipCheck": true, "standardRollingUpdate": false}), "spec.skipCheck")]
    #[case(json!({"check": {"initialDelaySeconds": -1}}), "spec.check.initialDelaySeconds")]
    #[case(json!({"check": {"periodSeconds": 0}}), "spec.check.periodSeconds")]
    #[case(json!({"check": {"maxTries": 0}}), "spec.check.maxTries")]
    #[case(json!({"check": {"successThreshold": 0}}), "spec.check.successThreshold")]
    #[case(json!({"check": {"query": {"expr": " "}}}), "spec.check.query.expr")]
    #[case(json!({"check": {"query": {"url": ""}}}), "spec.check.query.url")]
    #[case(json!({"check": {"query": {"url": "ftp://prom"}}}), "spec.check.query.url")]
    #[case(json!({"check": {"query": {"url": "http:///x"}}}), "spec.check.query.url")]
    #[case(json!({"check": {"query": {"url": "prom 9090"}}}), "spec.check.query.url")]
    #[case(json!({"check": {"query": {"url": "http:/prom"}}}), "spec.check.query.url")]
    #[case(json!({"check": {"query": {"url": "prom:99999"}}}), "spec.check.query.url")]
    #[case(json!({"check": {"query": {"url": "http://prom:9090/api/v1/query"}}}), "spec.check.query.url")]
    #[case(json!({"check": {"query": {"secretRef": "A"}}}), "spec.check.query.secretRef")]
    #[case(json!({"check": {"query": {"timeoutSeconds": 301}}}), "spec.check.query.timeoutSeconds")]
    #[case(json!({"check": {"query": {"insecureSkipVerify": true, "caCertificate": "-"}}}), "spec.check.query.caCertificate")]
    #[case(json!({"progressDeadlineSeconds": 0}), "spec.progressDeadlineSeconds")]
    fn a_problem_names_its_field(#[case] patch: Value, #[case] field: &str) {
        let problems = object(json!({"spec": patch})).problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].field, field);
    }
}
