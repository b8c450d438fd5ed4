//! Validation of metrics: the rules of their schema and those beyond it.
//!
//! A field that still contains `{{args.name}}` is skipped, because its value is not known yet.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Metric, Provider};
use crate::duration;
use crate::problem::{Problem, Problems};

/// The supported providers, by field.
const SERVED: [&str; 9] = [
    "prometheus",
    "web",
    "job",
    "datadog",
    "newRelic",
    "graphite",
    "influxdb",
    "wavefront",
    "skywalking",
];

/// The maximum number of metrics of a run.
pub const MOST_METRICS: usize = 100;

/// The minimum interval between two measurements.
const SHORTEST_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// All problems of the metrics at `path`.
pub fn problems(metrics: &[Metric], path: &str) -> Vec<Problem> {
    let mut problems = Problems::default();
    number_of_metrics(metrics.len(), path, &mut problems);
    let mut names = BTreeSet::new();
    for (index, metric) in metrics.iter().enumerate() {
        let path = format!("{path}[{index}]");
        if metric.name.is_empty() {
            problems.add(format!("{path}.name"), "is empty");
        } else if !names.insert(metric.name.as_str()) {
            problems.add(
                format!("{path}.name"),
                format!("{:?} is the name of another metric too", metric.name),
            );
        }
        metric.check(&path, &mut problems);
    }
    problems.0
}

/// Problems with the number of metrics.
pub fn count_problems(metrics: usize, path: &str) -> Vec<Problem> {
    let mut problems = Problems::default();
    number_of_metrics(metrics, path, &mut problems);
    problems.0
}

fn number_of_metrics(metrics: usize, path: &str, problems: &mut Problems) {
    if metrics == 0 {
        problems.add(path, "is empty; there must be a metric to measure");
    }
    if metrics > MOST_METRICS {
        let message = format!("are {metrics} metrics; a run has at most {MOST_METRICS}");
        problems.add(path, message);
    }
}

/// All problems of the metric at `path`, considered alone.
pub fn metric_problems(metric: &Metric, path: &str) -> Vec<Problem> {
    let mut problems = Problems::default();
    if metric.name.is_empty() {
        problems.add(format!("{path}.name"), "is empty");
    }
    metric.check(path, &mut problems);
    problems.0
}

/// All problems of a run's labels and annotations at `path`.
pub fn metadata_problems(
    labels: &BTreeMap<String, String>,
    annotations: &BTreeMap<String, String>,
    path: &str,
) -> Vec<Problem> {
    let mut problems = Problems::default();
    for key in labels.keys().filter(|key| !is_qualified_name(key)) {
        problems.add(format!("{path}.labels"), format!("{key:?} is no name of a label"));
    }
    for (key, value) in labels.iter().filter(|(_, value)| !is_label_value(value)) {
        problems.add(
            format!("{path}.labels"),
            format!(
                "{value:?} is no value of the label {key}: at most 63 letters, digits, -, _ and ., the first and the last a \
                 letter or digit"
            ),
        );
    }
    for key in annotations.keys().filter(|key| !is_qualified_name(key)) {
        problems.add(
            format!("{path}.annotations"),
            format!("{key:?} is no name of an annotation"),
        );
    }
    problems.0
}

/// `app.kubernetes.io/name`, or a name without a prefix.
fn is_qualified_name(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let part = |part: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !part.is_empty() && !part.starts_with('-') && !part.ends_with('-') && part.chars().all(inner)
    };
    let prefix = prefix.is_none_or(|prefix| prefix.len() <= 253 && prefix.split('.').all(part));
    prefix && !name.is_empty() && is_label_value(name)
}

fn is_label_value(value: &str) -> bool {
    let end = |c: char| c.is_ascii_alphanumeric();
    let inner = |c: char| end(c) || matches!(c, '-' | '_' | '.');
    value.len() <= 63
        && value.chars().all(inner)
        && value.chars().next().is_none_or(end)
        && value.chars().last().is_none_or(end)
}

/// Whether a text contains unresolved args.
pub fn is_open(text: &str) -> bool {
    text.contains("{{")
}

/// A whole number, also as a string; `None` for anything else.
pub fn whole_number(number: &IntOrString) -> Option<i32> {
    match number {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(text) => text.trim().parse().ok(),
    }
}

impl Metric {
    /// The time between two measurements; `None` if there is only one measurement.
    pub fn interval(&self) -> Option<SignedDuration> {
        self.interval.as_deref().and_then(go_duration)
    }

    /// The delay from the start of the run to the first measurement.
    pub fn initial_delay(&self) -> SignedDuration {
        let delay = self.initial_delay.as_deref().and_then(go_duration);
        delay.unwrap_or(SignedDuration::ZERO)
    }

    /// The number of measurements; `None` if only the run's duration limits it.
    pub fn effective_count(&self) -> Option<i32> {
        match limit(self.count.as_ref(), 0) {
            0 if self.interval.is_some() => None,
            0 => Some(1),
            count => Some(count),
        }
    }

    /// How many measurements may fail; `None` for any number.
    pub fn failures_allowed(&self) -> Option<i32> {
        Some(limit(self.failure_limit.as_ref(), 0)).filter(|limit| *limit >= 0)
    }

    /// How many measurements may be inconclusive.
    pub fn inconclusive_allowed(&self) -> i32 {
        limit(self.inconclusive_limit.as_ref(), 0)
    }

    /// How many consecutive measurements may end in an error.
    pub fn errors_allowed(&self) -> i32 {
        limit(self.consecutive_error_limit.as_ref(), 4)
    }

    /// How many consecutive successful measurements suffice, if limited.
    pub fn successes_wanted(&self) -> Option<i32> {
        Some(limit(self.consecutive_success_limit.as_ref(), 0)).filter(|limit| *limit > 0)
    }

    fn check(&self, path: &str, problems: &mut Problems) {
        let texts = [
            ("interval", &self.interval),
            ("initialDelay", &self.initial_delay),
        ];
        for (field, text) in texts {
            if let Some(text) = text.as_deref().filter(|text| !is_open(text))
                && go_duration(text).is_none()
            {
                problems.add(
                    format!("{path}.{field}"),
                    format!("{text:?} is not a duration such as 30s, 5m or 1h30m"),
                );
            }
        }
        if self
            .interval()
            .is_some_and(|interval| interval < SHORTEST_INTERVAL)
        {
            let given = self.interval.as_deref().unwrap_or_default();
            problems.add(
                format!("{path}.interval"),
                format!("{given:?} is shorter than 1s, the shortest there is"),
            );
        }
        let numbers = [
            ("count", &self.count, 0),
            ("failureLimit", &self.failure_limit, -1),
            ("inconclusiveLimit", &self.inconclusive_limit, 0),
            ("consecutiveErrorLimit", &self.consecutive_error_limit, 0),
            ("consecutiveSuccessLimit", &self.consecutive_success_limit, 0),
        ];
        for (field, number, least) in numbers {
            let Some(number) = number else { continue };
            if matches!(number, IntOrString::String(text) if is_open(text)) {
                continue;
            }
            if whole_number(number).is_none_or(|number| number < least) {
                let value = serde_json::to_value(number).unwrap_or_default();
                problems.add(
                    format!("{path}.{field}"),
                    format!("{value} is not a whole number from {least} up"),
                );
            }
        }
        if self.failures_allowed().is_none() && self.successes_wanted().is_none() {
            problems.add(
                format!("{path}.failureLimit"),
                "-1 allows any number of failures; that needs a consecutiveSuccessLimit above 0",
            );
        }
        if self.interval.is_none() && self.effective_count().is_some_and(|count| count > 1) {
            problems.add(
                format!("{path}.interval"),
                "is missing; more than one measurement needs the time between them",
            );
        }
        self.provider.check(&format!("{path}.provider"), problems);
    }
}

impl Provider {
    /// The provider fields that are set.
    fn given(&self) -> Vec<&'static str> {
        let Self {
            prometheus,
            web,
            job,
            datadog,
            new_relic,
            cloud_watch,
            graphite,
            influxdb,
            wavefront,
            kayenta,
            skywalking,
            plugin,
        } = self;
        let all = [
            ("prometheus", prometheus.is_some()),
            ("web", web.is_some()),
            ("job", job.is_some()),
            ("datadog", datadog.is_some()),
            ("newRelic", new_relic.is_some()),
            ("cloudWatch", cloud_watch.is_some()),
            ("graphite", graphite.is_some()),
            ("influxdb", influxdb.is_some()),
            ("wavefront", wavefront.is_some()),
            ("kayenta", kayenta.is_some()),
            ("skywalking", skywalking.is_some()),
            ("plugin", plugin.is_some()),
        ];
        all.into_iter()
            .filter(|(_, given)| *given)
            .map(|(name, _)| name)
            .collect()
    }

    fn check(&self, path: &str, problems: &mut Problems) {
        match self.given().as_slice() {
            [] => problems.add(path, format!("names no provider; there is {}", SERVED.join(", "))),
            [one] if !SERVED.contains(one) => problems.add(
                format!("{path}.{one}"),
                format!("is not served; there is {}", SERVED.join(", ")),
            ),
            [_] => {}
            several => problems.add(
                path,
                format!("has {}; a metric is asked of one", several.join(" and ")),
            ),
        }
        if let Some(prometheus) = &self.prometheus
            && prometheus.query.is_empty()
        {
            problems.add(format!("{path}.prometheus.query"), "is empty");
        }
        if let Some(web) = &self.web {
            web.check(&format!("{path}.web"), problems);
        }
        if let Some(job) = &self.job
            && job.spec.get("template").is_none()
        {
            problems.add(
                format!("{path}.job.spec.template"),
                "is missing; it says what to run",
            );
        }
    }
}

impl super::Web {
    fn check(&self, path: &str, problems: &mut Problems) {
        let method = self.method.as_deref().unwrap_or("GET");
        if !["GET", "POST", "PUT"].contains(&method) {
            problems.add(
                format!("{path}.method"),
                format!("{method:?} is not GET, POST or PUT"),
            );
        }
        if !self.body.is_empty() && self.json_body.is_some() {
            problems.add(format!("{path}.jsonBody"), "and body are given; one is sent");
        }
        if method == "GET" && (!self.body.is_empty() || self.json_body.is_some()) {
            problems.add(format!("{path}.body"), "goes with POST or PUT; the method is GET");
        }
        if self.url.is_empty() {
            problems.add(format!("{path}.url"), "is empty");
        }
    }
}

/// Argo's durations do not include plain numbers, and none of these may be negative.
fn go_duration(text: &str) -> Option<SignedDuration> {
    duration::go(text).filter(|duration| !duration.is_negative())
}

/// Validation reports an invalid number; this uses the default for it.
fn limit(number: Option<&IntOrString>, otherwise: i32) -> i32 {
    number.and_then(whole_number).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn metric(patch: Value) -> Metric {
        let mut metric = json!({"name": "errors", "provider": {"prometheus": {"query": "up"}}});
        for (field, value) in patch.as_object().unwrap() {
            metric[field] = value.clone();
        }
        serde_json::from_value(metric).unwrap()
    }

    fn told(metrics: &[Metric]) -> Vec<String> {
        problems(metrics, "spec.metrics")
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[rstest]
    #[case(json!({"interval": "5x"}), r#"spec.metrics[0].interval: "5x" is not a duration such as 30s, 5m or 1h30m"#)]
    #[case(json!({"interval": "60"}), r#"spec.metrics[0].interval: "60" is not a duration such as 30s, 5m or 1h30m"#)]
    #[case(json!({"interval": "0s"}), r#"spec.metrics[0].interval: "0s" is shorter than 1s, the shortest there is"#)]
    #[case(json!({"interval": "999ms"}), r#"spec.metrics[0].interval: "999ms" is shorter than 1s, the shortest there is"#)]
    #[case(json!({"count": -1}), "spec.metrics[0].count: -1 is not a whole number from 0 up")]
    #[case(json!({"count": "many"}), r#"spec.metrics[0].count: "many" is not a whole number from 0 up"#)]
    #[case(json!({"count": 3}), "spec.metrics[0].interval: is missing; more than one measurement needs the time between them")]
    #[case(json!({"failureLimit": -1}), "spec.metrics[0].failureLimit: -1 allows any number of failures; that needs a consecutiveSuccessLimit above 0")]
    #[case(json!({"provider": {}}), "spec.metrics[0].provider: names no provider; there is prometheus, web, job, datadog, newRelic, graphite, influxdb, wavefront, skywalking")]
    #[case(json!({"provider": {"kayenta": {}}}), "spec.metrics[0].provider.kayenta: is not served; there is prometheus, web, job, datadog, newRelic, graphite, influxdb, wavefront, skywalking")]
    #[case(json!({"provider": {"prometheus": {"query": "up"}, "web": {"url": "x"}}}), "spec.metrics[0].provider: has prometheus and web; a metric is asked of one")]
    #[case(json!({"provider": {"web": {"url": "x", "method": "BREW"}}}), r#"spec.metrics[0].provider.web.method: "BREW" is not GET, POST or PUT"#)]
    #[case(json!({"provider": {"web": {"url": "x", "body": "y"}}}), "spec.metrics[0].provider.web.body: goes with POST or PUT; the method is GET")]
    #[case(json!({"provider": {"job": {"spec": {}}}}), "spec.metrics[0].provider.job.spec.template: is missing; it says what to run")]
    fn a_wrong_field_is_named_with_what_is_allowed(#[case] patch: Value, #[case] expected: &str) {
        assert_eq!(told(&[metric(patch)]), [expected]);
    }

    #[test]
    fn two_metrics_of_one_name_are_one_too_many() {
        let twice = [metric(json!({})), metric(json!({}))];
        assert_eq!(
            told(&twice),
            [r#"spec.metrics[1].name: "errors" is the name of another metric too"#]
        );
        assert_eq!(
            told(&[]),
            ["spec.metrics: is empty; there must be a metric to measure"]
        );
    }

    #[test]
    fn a_run_has_a_hundred_metrics_at_most() {
        let metrics = |count: usize| -> Vec<Metric> {
            let named = |index: usize| metric(json!({"name": index.to_string()}));
            (0..count).map(named).collect()
        };
        assert_eq!(told(&metrics(MOST_METRICS)), Vec::<String>::new());
        assert_eq!(
            told(&metrics(MOST_METRICS + 1)),
            ["spec.metrics: are 101 metrics; a run has at most 100"]
        );
    }

    #[rstest]
    #[case(json!({"labels": {"team": "db", "app.kubernetes.io/name": "", "a_b": "A.b-1"}, "annotations": {"x.io/y": "any thing"}}), &[])]
    #[case(json!({"labels": {"a b": "c"}}), &[r#"m.labels: "a b" is no name of a label"#])]
    #[case(json!({"labels": {"-/x": "c"}}), &[r#"m.labels: "-/x" is no name of a label"#])]
    #[case(json!({"labels": {"": "c"}}), &[r#"m.labels: "" is no name of a label"#])]
    #[case(json!({"labels": {"team": "d b"}}), &[r#"m.labels: "d b" is no value of the label team: at most 63 letters, digits, -, _ and ., the first and the last a letter or digit"#])]
    #[case(json!({"annotations": {"a/b/c": "x"}}), &[r#"m.annotations: "a/b/c" is no name of an annotation"#])]
    fn labels_that_no_object_can_have_are_told(#[case] metadata: Value, #[case] expected: &[&str]) {
        let texts =
            |field: &str| serde_json::from_value(metadata.get(field).cloned().unwrap_or(json!({}))).unwrap();
        let told: Vec<_> = metadata_problems(&texts("labels"), &texts("annotations"), "m")
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn what_waits_for_its_args_is_passed_over() {
        let open = json!({"interval": "{{args.every}}", "count": "{{ args.times }}"});
        assert_eq!(told(&[metric(open)]), Vec::<String>::new());
    }

    #[rstest]
    #[case(json!({}), Some(1))]
    #[case(json!({"interval": "1m"}), None)]
    #[case(json!({"interval": "1m", "count": 0}), None)]
    #[case(json!({"interval": "1m", "count": "3"}), Some(3))]
    fn how_often_is_counted_as_argo_counts(#[case] patch: Value, #[case] expected: Option<i32>) {
        assert_eq!(metric(patch).effective_count(), expected);
    }
}
