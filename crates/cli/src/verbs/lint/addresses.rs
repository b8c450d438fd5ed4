//! Addresses that the operator never connects to, as far as known without resolving names: their queries can only fail.

use serde_json::Value;
use stateward_api::Problem;
use stateward_api::analysis::{AnalysisRun, Arg, Metric, address};
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_core::analysis::args::{self, Sources, Values};
use stateward_core::analysis::template;
use stateward_egress::Egress;

use super::object::{Known, analyses, is_complete, template};

/// The problems of the addresses in an object.
pub(super) fn problems(kind: &str, readable: &Value, known: &Known, egress: &Egress) -> Vec<Problem> {
    let object = || readable.clone();
    match kind {
        "PhasedRollout" => serde_json::from_value(object()).map_or_else(
            |_| Vec::new(),
            |object: PhasedRollout| {
                let url = &object.spec.check.query.url;
                refused("spec.check.query.url", url, egress).into_iter().collect()
            },
        ),
        "RolloutPlugin" => serde_json::from_value(object()).map_or_else(
            |_| Vec::new(),
            |object: RolloutPlugin| of_a_rollout(&object, readable, known, egress),
        ),
        "AnalysisRun" => serde_json::from_value(object()).map_or_else(
            |_| Vec::new(),
            |object: AnalysisRun| {
                let values = values(&object.spec.args);
                of_metrics(&object.spec.metrics, &values, egress)
            },
        ),
        // A host with args depends on the rollout that uses the template.
        kind => template(kind, readable).map_or_else(Vec::new, |(_, spec)| {
            of_metrics(&spec.metrics, &Values::new(), egress)
        }),
    }
}

fn refused(field: &str, url: &str, egress: &Egress) -> Option<Problem> {
    egress.refusal(url).map(|refusal| Problem {
        field: field.to_owned(),
        message: refusal.to_string(),
    })
}

fn of_metrics(metrics: &[Metric], values: &Values, egress: &Egress) -> Vec<Problem> {
    let metrics = metrics.iter().enumerate();
    let of_metric = |(index, metric): (usize, &Metric)| {
        let filled = args::fill(metric, values).unwrap_or_else(|_| metric.clone());
        let problem = |(field, url)| refused(&format!("spec.metrics[{index}].provider.{field}"), url, egress);
        address::addresses(&filled)
            .into_iter()
            .filter_map(problem)
            .collect::<Vec<_>>()
    };
    metrics.flat_map(of_metric).collect()
}

fn values(args: &[Arg]) -> Values {
    let given = args
        .iter()
        .filter_map(|arg| Some((arg.name.clone(), arg.value.clone()?)));
    given.collect()
}

/// The hosts of the templates with the args of a rollout and of the templates filled in. Hosts without args are checked with the
/// templates.
fn of_a_rollout(object: &RolloutPlugin, whole: &Value, known: &Known, egress: &Egress) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, span, analysis) in analyses(object) {
        let sources = Sources {
            object: whole,
            stable: Some(""),
            latest: Some(""),
        };
        if !is_complete(&analysis, known) {
            continue;
        }
        // The rollout reports their problems.
        let Ok(composed) = template::compose(&analysis, &path, span, known, sources) else {
            continue;
        };
        let values = values(&composed.args);
        for metric in &composed.metrics {
            let Ok(filled) = args::fill(metric, &values) else {
                continue;
            };
            for ((_, open), (_, url)) in address::addresses(metric)
                .into_iter()
                .zip(address::addresses(&filled))
            {
                if address::host(open).is_some() {
                    continue;
                }
                let mut given = analysis.args.iter();
                let field = given
                    .position(|arg| address::written_host(open).contains(&format!("args.{}", arg.name)))
                    .map_or_else(
                        || format!("{path}.templates"),
                        |index| format!("{path}.args[{index}]"),
                    );
                problems.extend(refused(&field, url, egress));
            }
        }
    }
    problems
}
