//! What makes metrics valid, beyond their schema and including it.
//!
//! Where a field still holds `{{args.name}}`, what it will be is not known, and it is passed over.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{Metric, Provider};
use crate::duration;
use crate::problem::{Problem, Problems};

/// The providers that are asked, by their fields.
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

/// Everything that is wrong with the metrics at `path`.
pub fn problems(metrics: &[Metric], path: &str) -> Vec<Problem> {
    let mut problems = Problems::default();
    if metrics.is_empty() {
        problems.add(path, "is empty; there must be a metric to measure");
    }
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

/// Whether a text waits for its args.
pub fn is_open(text: &str) -> bool {
    text.contains("{{")
}

/// A whole number, also as a text. `None` for what is none.
pub fn whole_number(number: &IntOrString) -> Option<i32> {
    match number {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(text) => text.trim().parse().ok(),
    }
}

impl Metric {
    /// The time from one measurement to the next; `None` where there is one measurement only.
    pub fn interval(&self) -> Option<SignedDuration> {
        self.interval.as_deref().and_then(go_duration)
    }

    /// How long after the beginning of the run it is first measured.
    pub fn initial_delay(&self) -> SignedDuration {
        let delay = self.initial_delay.as_deref().and_then(go_duration);
        delay.unwrap_or(SignedDuration::ZERO)
    }

    /// How many measurements are made; `None` for as many as there is time for.
    pub fn effective_count(&self) -> Option<i32> {
        match limit(self.count.as_ref(), 0) {
            0 if self.interval.is_some() => None,
            0 => Some(1),
            count => Some(count),
        }
    }

    /// How many may fail; `None` for any number.
    pub fn failures_allowed(&self) -> Option<i32> {
        Some(limit(self.failure_limit.as_ref(), 0)).filter(|limit| *limit >= 0)
    }

    /// How many may be inconclusive.
    pub fn inconclusive_allowed(&self) -> i32 {
        limit(self.inconclusive_limit.as_ref(), 0)
    }

    /// How many may end in an error in a row.
    pub fn errors_allowed(&self) -> i32 {
        limit(self.consecutive_error_limit.as_ref(), 4)
    }

    /// How many successful ones in a row are enough, if any number is.
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
        if self.interval() == Some(SignedDuration::ZERO) {
            problems.add(format!("{path}.interval"), "is 0; it must be longer");
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
    /// The fields that are given.
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
            [] => problems.add(
                path,
                format!("names nobody to ask; there is {}", SERVED.join(", ")),
            ),
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

/// Argo's durations have no plain numbers, and none of these goes back in time.
fn go_duration(text: &str) -> Option<SignedDuration> {
    duration::go(text).filter(|duration| !duration.is_negative())
}

/// What is no number is a problem and was told.
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
    #[case(json!({"interval": "0s"}), "spec.metrics[0].interval: is 0; it must be longer")]
    #[case(json!({"count": -1}), "spec.metrics[0].count: -1 is not a whole number from 0 up")]
    #[case(json!({"count": "many"}), r#"spec.metrics[0].count: "many" is not a whole number from 0 up"#)]
    #[case(json!({"count": 3}), "spec.metrics[0].interval: is missing; more than one measurement needs the time between them")]
    #[case(json!({"failureLimit": -1}), "spec.metrics[0].failureLimit: -1 allows any number of failures; that needs a consecutiveSuccessLimit above 0")]
    #[case(json!({"provider": {}}), "spec.metrics[0].provider: names nobody to ask; there is prometheus, web, job, datadog, newRelic, graphite, influxdb, wavefront, skywalking")]
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
