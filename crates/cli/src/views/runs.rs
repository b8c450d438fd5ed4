//! Analysis runs: a row per metric.

use jiff::Timestamp;
use kube::ResourceExt;
use stateward_api::analysis::{AnalysisRun, MetricResult, Phase};
use stateward_api::rollout::RolloutStatus;

use crate::views::style::Style;
use crate::views::table::age;

/// The names of the runs that a rollout waits for, or that decided its result.
pub(crate) fn concerned(status: &RolloutStatus) -> Vec<&str> {
    let canary = status.canary.as_ref();
    let of_step = canary.and_then(|canary| canary.current_step_analysis_run_status.as_ref());
    let beside = canary.and_then(|canary| canary.current_background_analysis_run_status.as_ref());
    let runs = of_step.into_iter().chain(beside);
    runs.map(|run| run.name.as_str()).collect()
}

/// A row per metric: `analysisrun/db-7c9f-1-3fa9c1   errors   Running   2 of 5 measured, last [0.01]   20s`
pub(crate) fn rows(runs: &[AnalysisRun], style: Style, now: Timestamp) -> Vec<Vec<String>> {
    runs.iter()
        .flat_map(|run| {
            let status = run.status.clone().unwrap_or_default();
            let name = format!("analysisrun/{}", run.name_any());
            let age = age(run.metadata.creation_timestamp.as_ref().map(|time| time.0), now);
            let row = |metric: &str, phase: String, words: String| {
                let phase = style.state(&phase);
                vec![name.clone(), metric.to_owned(), phase, words, age.clone()]
            };
            if status.metric_results.is_empty() {
                return vec![row("-", format!("{:?}", status.phase), status.message.clone())];
            }
            let metrics = status.metric_results.iter();
            metrics
                .map(|result| {
                    let words = words(run, result, |message| style.short(message, A_LINE));
                    row(&result.name, format!("{:?}", result.phase), words)
                })
                .collect()
        })
        .collect()
}

/// The maximum length of a message in a row.
const A_LINE: usize = 60;

/// A sentence per metric: `errors is Running, 2 of 5 measured, last [0.01]`, and whether it has failures.
pub(crate) fn sentences(runs: &[AnalysisRun]) -> Vec<(String, bool)> {
    let of_run = |run: &AnalysisRun| {
        let status = run.status.clone().unwrap_or_default();
        if status.metric_results.is_empty() {
            let trouble = is_trouble(&status.phase);
            return vec![(format!("- is {:?}, {}", status.phase, status.message), trouble)];
        }
        let sentence = |result: &MetricResult| {
            let words = words(run, result, str::to_owned);
            let last = result.measurements.last();
            let trouble = is_trouble(&result.phase) || last.is_some_and(|last| is_trouble(&last.phase));
            (format!("{} is {:?}, {words}", result.name, result.phase), trouble)
        };
        status.metric_results.iter().map(sentence).collect()
    };
    runs.iter().flat_map(of_run).collect()
}

fn is_trouble(phase: &Phase) -> bool {
    matches!(phase, Phase::Failed | Phase::Error | Phase::Inconclusive)
}

/// `2 of 5 measured, 1 failed, last [0.2]`, and the message.
fn words(run: &AnalysisRun, result: &MetricResult, message: impl Fn(&str) -> String) -> String {
    let metrics = run.spec.metrics.iter();
    let metric = metrics.into_iter().find(|metric| metric.name == result.name);
    let planned = metric.and_then(|metric| metric.effective_count());
    let mut words = vec![match planned {
        Some(planned) => format!("{} of {planned} measured", result.count),
        None => format!("{} measured", result.count),
    }];
    for (count, word) in [
        (result.failed, "failed"),
        (result.inconclusive, "inconclusive"),
        (result.error, if result.error == 1 { "error" } else { "errors" }),
    ] {
        if count > 0 {
            words.push(format!("{count} {word}"));
        }
    }
    if let Some(last) = result.measurements.last() {
        match (last.value.as_str(), last.message.as_str()) {
            ("", "") => {}
            ("", why) => words.push(message(why)),
            (value, "") => words.push(format!("last {value}")),
            (value, why) => words.push(format!("last {value}: {}", message(why))),
        }
    }
    // The end of a failed Job's log that the operator keeps.
    let tail = result
        .measurements
        .last()
        .and_then(|last| last.metadata.get("log-tail"));
    words.extend(tail.map(|tail| format!("log ends: {}", message(tail))));
    if result.dry_run {
        words.push("without a say".into());
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_metric_that_errs_says_why_in_short_and_in_full() {
        let why = "there is no data; a condition that is to hold without any has to say so, such as with len(result) == 0";
        let runs: Vec<AnalysisRun> = serde_json::from_value(json!([{
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "metadata": {"name": "r"},
            "spec": {"metrics": [{"name": "errors", "provider": {}}]},
            "status": {"phase": "Running", "metricResults": [{
                "name": "errors", "phase": "Running", "count": 0, "error": 1,
                "measurements": [{"phase": "Error", "value": "[]", "message": why}],
            }]},
        }]))
        .unwrap();
        let row = &rows(&runs, Style::default(), crate::fixtures::NOW.parse().unwrap())[0];
        assert_eq!(
            row[3],
            "0 of 1 measured, 1 error, last []: there is no data; a condition that is to hold without any ha…"
        );
        assert_eq!(
            sentences(&runs),
            [(
                format!("errors is Running, 0 of 1 measured, 1 error, last []: {why}"),
                true
            )]
        );
    }
}
