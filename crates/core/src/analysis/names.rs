//! Names of metrics in `dryRun` and `measurementRetention`: `*`, a name, or a regular expression.
//!
//! They are compiled once, when a run is prepared, and replaced by the names of the metrics that they match.

use stateward_api::Problem;
use stateward_api::analysis::{AnalysisRunSpec, Metric, MetricRef, Retention};

use crate::expr::Pattern;

/// The most entries that either list may have.
pub const MOST_PATTERNS: usize = 100;

/// How many bytes a compiled pattern may take, and all patterns of a run together.
const ONE: usize = 128 * 1024;
const ALL: usize = 1024 * 1024;

/// Replaces the patterns of a run by the names of its metrics, or returns the problems: each pattern must match a metric.
pub(super) fn resolve(spec: &mut AnalysisRunSpec, path: &str) -> Result<(), Vec<Problem>> {
    let (resolved, problems) = resolved(spec, path);
    if !problems.is_empty() {
        return Err(problems);
    }
    (spec.dry_run, spec.measurement_retention) = resolved;
    Ok(())
}

/// All problems of the patterns of a run.
pub(super) fn problems(spec: &AnalysisRunSpec, path: &str) -> Vec<Problem> {
    resolved(spec, path).1
}

fn resolved(spec: &AnalysisRunSpec, path: &str) -> ((Vec<MetricRef>, Vec<Retention>), Vec<Problem>) {
    let mut patterns = Patterns {
        metrics: &spec.metrics,
        room: ALL,
        problems: Vec::new(),
    };
    let dry = spec.dry_run.iter().map(|dry| dry.metric_name.as_str());
    let dry = patterns.matches(dry, &format!("{path}.dryRun"));
    let kept = spec.measurement_retention.iter();
    let kept = patterns.matches(
        kept.map(|kept| kept.metric_name.as_str()),
        &format!("{path}.measurementRetention"),
    );
    let mut names: Vec<usize> = dry.into_iter().flatten().collect();
    names.sort_unstable();
    names.dedup();
    let name = |index: usize| spec.metrics[index].name.clone();
    let dry = names.into_iter().map(|index| MetricRef {
        metric_name: name(index),
    });
    // If several match a metric, the first one counts.
    let mut seen = vec![false; spec.metrics.len()];
    let mut retention = Vec::new();
    for (entry, matched) in spec.measurement_retention.iter().zip(kept) {
        for index in matched {
            if !std::mem::replace(&mut seen[index], true) {
                retention.push(Retention {
                    metric_name: name(index),
                    ..entry.clone()
                });
            }
        }
    }
    ((dry.collect(), retention), patterns.problems)
}

struct Patterns<'m> {
    metrics: &'m [Metric],
    room: usize,
    problems: Vec<Problem>,
}

impl Patterns<'_> {
    /// The indices of the metrics that each pattern matches.
    fn matches<'p>(
        &mut self,
        patterns: impl ExactSizeIterator<Item = &'p str>,
        field: &str,
    ) -> Vec<Vec<usize>> {
        if patterns.len() > MOST_PATTERNS {
            self.problems.push(Problem {
                field: field.to_owned(),
                message: format!(
                    "{} entries are too many; at most {MOST_PATTERNS} are allowed",
                    patterns.len()
                ),
            });
            return Vec::new();
        }
        patterns
            .map(|pattern| match self.matched(pattern) {
                Ok(matched) => matched,
                Err(message) => {
                    self.problems.push(Problem {
                        field: field.to_owned(),
                        message: format!("{pattern:?} {message}"),
                    });
                    Vec::new()
                }
            })
            .collect()
    }

    fn matched(&mut self, source: &str) -> Result<Vec<usize>, &'static str> {
        const NONE: &str = "is neither * nor a regular expression";
        const TOO_LARGE: &str = "is too large a regular expression";
        let pattern = match source {
            "*" => None,
            source => {
                let most = ONE.min(self.room);
                let pattern = match Pattern::within(source, ONE) {
                    Ok(pattern) if pattern.is_linear() && pattern.size() <= most => pattern,
                    Ok(_) => return Err(TOO_LARGE),
                    Err(wrong) if wrong.is_size() => return Err(TOO_LARGE),
                    Err(_) => return Err(NONE),
                };
                self.room -= pattern.size();
                Some(pattern)
            }
        };
        let is_match = |name: &str| {
            let found = |pattern: &Pattern| pattern.is_match(name);
            source == name || pattern.as_ref().is_none_or(found)
        };
        let metrics = self.metrics.iter().enumerate();
        let matched: Vec<_> = metrics
            .filter(|(_, metric)| is_match(&metric.name))
            .map(|(index, _)| index)
            .collect();
        match matched.is_empty() {
            true => Err("is the name of no metric"),
            false => Ok(matched),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn run(dry: Value, kept: Value) -> AnalysisRunSpec {
        let metric = |name: &str| json!({"name": name, "provider": {"prometheus": {"query": "up"}}});
        serde_json::from_value(json!({
            "metrics": [metric("errors"), metric("error-rate"), metric("latency"), metric("a(b")],
            "dryRun": dry, "measurementRetention": kept,
        }))
        .unwrap()
    }

    fn names(dry: &[&str]) -> Value {
        json!(
            dry.iter()
                .map(|name| json!({"metricName": name}))
                .collect::<Vec<_>>()
        )
    }

    #[rstest]
    #[case(&["*"], &["errors", "error-rate", "latency", "a(b"])]
    #[case(&["err.*", "errors"], &["errors", "error-rate"])]
    #[case(&["^latency$"], &["latency"])]
    #[case(&["rate"], &["error-rate"])]
    #[case(&[], &[])]
    fn patterns_become_the_names_that_they_match(#[case] patterns: &[&str], #[case] expected: &[&str]) {
        let mut spec = run(names(patterns), json!([]));
        resolve(&mut spec, "spec").unwrap();
        let found: Vec<_> = spec.dry_run.iter().map(|dry| dry.metric_name.as_str()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn of_several_retentions_the_first_counts() {
        let kept = json!([{"metricName": "err.*", "limit": 3}, {"metricName": "*", "limit": 7}]);
        let mut spec = run(json!([]), kept);
        resolve(&mut spec, "spec").unwrap();
        let limits: Vec<_> = spec
            .measurement_retention
            .iter()
            .map(|kept| (kept.metric_name.as_str(), kept.limit))
            .collect();
        let expected = [("errors", 3), ("error-rate", 3), ("latency", 7), ("a(b", 7)];
        assert_eq!(limits, expected);
    }

    #[rstest]
    #[case::none("a(b".to_owned(), "is neither * nor a regular expression")]
    #[case::nothing("memory".to_owned(), "is the name of no metric")]
    #[case::large(r"(\w{0,300}e){0,300}".to_owned(), "is too large a regular expression")]
    #[case::exponential("(a|b)*a(a|b){500}c".to_owned(), "is too large a regular expression")]
    #[case::long("e".repeat(17_000), "is too large a regular expression")]
    fn a_pattern_that_cannot_be_is_named_with_its_field(#[case] pattern: String, #[case] message: &str) {
        let dry = json!([{"metricName": pattern}]);
        let kept = json!([{"metricName": pattern, "limit": 1}]);
        for (spec, field) in [
            (run(dry, json!([])), "dryRun"),
            (run(json!([]), kept), "measurementRetention"),
        ] {
            let found = problems(&spec, "spec");
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!(found[0].field, format!("spec.{field}"));
            assert_eq!(found[0].message, format!("{pattern:?} {message}"));
        }
    }

    #[test]
    fn there_are_a_hundred_patterns_at_most_and_their_size_together_is_bounded() {
        let many = |count: usize| vec!["errors"; count];
        assert_eq!(problems(&run(names(&many(100)), json!([])), "spec"), []);
        let found = problems(&run(names(&many(101)), json!([])), "spec");
        let expected = "spec.dryRun: 101 entries are too many; at most 100 are allowed";
        assert_eq!(found[0].to_string(), expected);
        // Each of these fits, but not all of them together.
        let large: Vec<String> = (0..100)
            .map(|index| format!("^([a-z]{{300}}|errors{index}|errors)"))
            .collect();
        let large: Vec<_> = large.iter().map(String::as_str).collect();
        assert_eq!(problems(&run(names(&large[..1]), json!([])), "spec"), []);
        let found = problems(&run(names(&large), json!([])), "spec");
        let messages = found.iter().map(|problem| problem.message.as_str());
        assert!(messages.clone().count() > 10);
        for message in messages {
            assert!(
                message.ends_with("is too large a regular expression"),
                "{message}"
            );
        }
    }
}
