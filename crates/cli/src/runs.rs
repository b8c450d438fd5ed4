//! Runs of analysis: a row per metric.

use jiff::Timestamp;
use kube::ResourceExt;
use stateward_api::analysis::{AnalysisRun, MetricResult};
use stateward_api::rollout::RolloutStatus;

use crate::style::Style;
use crate::table::age;

/// The names of the runs that a rollout waits for, or that decided about it last.
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
                .map(|result| row(&result.name, format!("{:?}", result.phase), words(run, result)))
                .collect()
        })
        .collect()
}

/// `2 of 5 measured, 1 failed, last [0.2]`
fn words(run: &AnalysisRun, result: &MetricResult) -> String {
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
            ("", message) => words.push(message.to_owned()),
            (value, _) => words.push(format!("last {value}")),
        }
    }
    if result.dry_run {
        words.push("without a say".into());
    }
    words.join(", ")
}
