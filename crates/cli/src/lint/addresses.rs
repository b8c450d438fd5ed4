//! Addresses that the operator never connects to, as far as that is known without resolving a name: what asks them can only fail.

use serde_json::Value;
use stateward_api::Problem;
use stateward_api::analysis::{AnalysisRun, Arg, Authentication, Metric};
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_core::analysis::args::{self, Sources, Values};
use stateward_core::analysis::template;
use stateward_egress::Egress;

use super::object::{Known, analyses, is_complete, template};

/// Those that an object of ours asks.
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
        // A host that is made of args depends on who uses the template.
        kind => template(kind, readable).map_or_else(Vec::new, |(_, spec)| {
            of_metrics(&spec.metrics, &Values::new(), egress)
        }),
    }
}

fn refused(field: &str, url: &str, egress: &Egress) -> Option<Problem> {
    egress.refusal(host(url)?).map(|refusal| Problem {
        field: field.to_owned(),
        message: refusal.to_string(),
    })
}

/// The host of a URL, or of a host with a port, as it is written; `None` where that waits for an arg.
fn host(url: &str) -> Option<&str> {
    let host = written_host(url);
    (!host.contains("{{")).then_some(host)
}

fn written_host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let end = match host.find(']') {
        Some(end) if host.starts_with('[') => end + 1,
        _ => host.find(':').unwrap_or(host.len()),
    };
    &host[..end]
}

fn of_metrics(metrics: &[Metric], values: &Values, egress: &Egress) -> Vec<Problem> {
    let metrics = metrics.iter().enumerate();
    let asked = metrics.flat_map(|(index, metric)| {
        let asked = addresses(&args::fill(metric, values).unwrap_or_else(|_| metric.clone()));
        let at = format!("spec.metrics[{index}].provider");
        asked
            .into_iter()
            .map(move |(field, url)| (format!("{at}.{field}"), url))
    });
    asked
        .filter_map(|(field, url)| refused(&field, &url, egress))
        .collect()
}

fn values(args: &[Arg]) -> Values {
    let given = args
        .iter()
        .filter_map(|arg| Some((arg.name.clone(), arg.value.clone()?)));
    given.collect()
}

/// What the args of a rollout, and those of its templates, make of the hosts that the templates ask. Those without args are the
/// templates' own to answer for.
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
        // What is wrong with them is reported with the rollout.
        let Ok(composed) = template::compose(&analysis, &path, span, known, sources) else {
            continue;
        };
        let values = values(&composed.args);
        for metric in &composed.metrics {
            let Ok(filled) = args::fill(metric, &values) else {
                continue;
            };
            for ((_, open), (_, url)) in addresses(metric).iter().zip(addresses(&filled)) {
                if host(open).is_some() {
                    continue;
                }
                let mut given = analysis.args.iter();
                let field = given
                    .position(|arg| written_host(open).contains(&format!("args.{}", arg.name)))
                    .map_or_else(
                        || format!("{path}.templates"),
                        |index| format!("{path}.args[{index}]"),
                    );
                problems.extend(refused(&field, &url, egress));
            }
        }
    }
    problems
}

/// The addresses of a metric that are not in a Secret, with their fields.
fn addresses(metric: &Metric) -> Vec<(String, String)> {
    let provider = &metric.provider;
    let mut asked: Vec<(String, String)> = Vec::new();
    let mut add = |field: &str, url: &String| asked.push((field.to_owned(), url.clone()));
    let token = |authentication: &Option<Authentication>| {
        let oauth2 = authentication.as_ref().and_then(|it| it.oauth2.as_ref());
        oauth2.map(|oauth2| oauth2.token_url.clone())
    };
    if let Some(prometheus) = &provider.prometheus {
        add("prometheus.address", &prometheus.address);
        if let Some(url) = token(&prometheus.authentication) {
            add("prometheus.authentication.oauth2.tokenUrl", &url);
        }
    }
    if let Some(web) = &provider.web {
        add("web.url", &web.url);
        if let Some(url) = token(&web.authentication) {
            add("web.authentication.oauth2.tokenUrl", &url);
        }
    }
    if let Some(graphite) = &provider.graphite {
        add("graphite.address", &graphite.address);
    }
    if let Some(wavefront) = &provider.wavefront {
        add("wavefront.address", &wavefront.address);
    }
    if let Some(skywalking) = &provider.skywalking {
        add("skywalking.address", &skywalking.address);
    }
    asked
}
