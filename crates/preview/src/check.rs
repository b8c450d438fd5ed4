//! Checks the input before the simulation: it must be within bounds, and every what-if must be possible.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use stateward_api::duration;
use stateward_api::rolloutplugin::TemplateRef;
use stateward_core::plan::{Plan, Step};

use crate::Error;
use crate::pace::Pace;
use crate::subject::{Fixture, Rollout, Start};
use crate::what_if::{Trouble, What, WhatIf};

/// The maximum number of simulated pods: each takes its share of a second.
pub(crate) const MOST_PODS: u32 = 500;

/// No single wait may be longer.
pub(crate) const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

const LONGEST_IN_WORDS: &str = "30 days (720h)";

/// Whether it can be simulated in reasonable time. Runs first: a PhasedRollout has a step per pod.
pub(crate) fn bounds(fixture: &Fixture, pace: &Pace) -> Result<(), Error> {
    let set = fixture.subject.workload();
    let replicas = &fixture.set["spec"]["replicas"];
    if fixture.replicas() > MOST_PODS {
        return Err(Error::Subject(format!(
            "StatefulSet {set}: spec.replicas: {replicas} is more than the {MOST_PODS} pods that are simulated; plan it with fewer"
        )));
    }
    // The API server rejects ordinals that a pod name cannot hold; our arithmetic need not handle them.
    let first = &fixture.set["spec"]["ordinals"]["start"];
    if fixture.first_ordinal() > i32::MAX as u32 - MOST_PODS {
        return Err(Error::Subject(format!(
            "StatefulSet {set}: spec.ordinals.start: {first} is not between 0 and {}",
            i32::MAX as u32 - MOST_PODS
        )));
    }
    if fixture.min_ready() > LONGEST {
        let asked = &fixture.set["spec"]["minReadySeconds"];
        return Err(Error::Subject(format!(
            "StatefulSet {set}: spec.minReadySeconds: {asked} is longer than {LONGEST_IN_WORDS}, the longest wait that is played"
        )));
    }
    for (option, time) in [
        ("--ready-after", pace.ready_after),
        ("--stop-after", pace.stops_after),
    ] {
        if time > LONGEST {
            let hours = time.as_secs() / 3600;
            return Err(Error::Subject(format!(
                "a pod that takes {hours}h is not played: at most {LONGEST_IN_WORDS}; say {option}"
            )));
        }
    }
    let objects = std::iter::once(&fixture.rollout).chain(&fixture.templates);
    for object in objects {
        let mut path = "spec".to_owned();
        if let Some((field, value)) = too_long(&object["spec"], &mut path) {
            return Err(Error::Subject(format!(
                "{} {}: {field}: {value} is longer than {LONGEST_IN_WORDS}, the longest wait that is played",
                object["kind"].as_str().unwrap_or_default(),
                object["metadata"]["name"].as_str().unwrap_or_default(),
            )));
        }
    }
    Ok(())
}

/// The fields of specs that set a wait.
pub(crate) const WAITS: [&str; 5] = [
    "duration",
    "interval",
    "initialDelay",
    "initialDelaySeconds",
    "periodSeconds",
];

/// The duration in a field of [`WAITS`].
pub(crate) fn wait(value: &Value) -> Option<Duration> {
    let read = serde_json::from_value(value.clone()).ok()?;
    Duration::try_from(duration::parse(&read).ok()?).ok()
}

/// The first wait that is too long: its path and its value.
fn too_long(value: &Value, path: &mut String) -> Option<(String, String)> {
    let depth = path.len();
    let mut within = |piece: String, name: &str, value: &Value| {
        path.push_str(&piece);
        let found = match wait(value).filter(|_| WAITS.contains(&name)) {
            Some(time) if time > LONGEST => {
                let said = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                Some((path.clone(), said))
            }
            _ => too_long(value, path),
        };
        path.truncate(depth);
        found
    };
    match value {
        Value::Object(fields) => {
            let mut fields = fields.iter();
            fields.find_map(|(name, value)| within(format!(".{name}"), name, value))
        }
        Value::Array(values) => {
            let mut values = values.iter().enumerate();
            values.find_map(|(index, value)| within(format!("[{index}]"), "", value))
        }
        _ => None,
    }
}

/// Whether every what-if is possible and makes a difference.
pub(crate) fn what_ifs(what_ifs: &[WhatIf], fixture: &Fixture, plan: &Plan) -> Result<(), Error> {
    for (index, what_if) in what_ifs.iter().enumerate() {
        let why = impossible(what_if, what_ifs, fixture, plan).or_else(|| {
            let mut before = what_ifs.iter().take(index);
            let other = before.find(|other| contradict(what_if, other, fixture))?;
            Some(format!("--what-if {other} says otherwise; leave one of them out"))
        });
        if let Some(why) = why {
            let what_if = what_if.to_string();
            return Err(Error::WhatIf { what_if, why });
        }
    }
    Ok(())
}

fn impossible(what_if: &WhatIf, all: &[WhatIf], fixture: &Fixture, plan: &Plan) -> Option<String> {
    let title = fixture.subject.title();
    let (first, replicas) = (fixture.first_ordinal(), fixture.replicas());
    if let Some(step) = what_if.step {
        let (number, steps) = (step + 1, plan.steps.len());
        match fixture.start {
            _ if fixture.subject.is_left_alone() => {
                return Some(format!(
                    "{title} skips its checks and Kubernetes rolls by itself: there are no steps"
                ));
            }
            _ if step >= steps => return Some(format!("there is no step {number}; {title} has {steps}")),
            Start::Step(now, _) if step < now && fixture.replaced.is_none() => {
                return Some(format!(
                    "step {number} is over; {title} stands at step {}",
                    now + 1
                ));
            }
            _ => {}
        }
    }
    match &what_if.what {
        What::Pod { ordinal, trouble } => {
            let sizes = all.iter().filter_map(|what_if| match what_if.what {
                What::Scale(replicas) => Some(replicas.min(MOST_PODS)),
                _ => None,
            });
            let last = first + sizes.chain([replicas]).max().unwrap_or(replicas);
            match (ordinal, trouble) {
                (Some(ordinal), _) if !(first..last).contains(ordinal) => Some(format!(
                    "there is no pod {ordinal}; the set has {first} to {}",
                    last.saturating_sub(1)
                )),
                (_, Trouble::ReadyAfter(time)) => too_patient(*time),
                _ => None,
            }
        }
        What::Scale(to) if *to > MOST_PODS => Some(format!(
            "{to} is more than the {MOST_PODS} pods that are simulated"
        )),
        What::Scale(to) => {
            let scales = all.iter().filter(|other| matches!(other.what, What::Scale(_)));
            (*to == replicas && scales.count() == 1).then(|| format!("the set has {replicas} already"))
        }
        What::OperatorDown(time) | What::People(Some(time)) => too_patient(*time),
        What::Metric { name, .. } => no_metric(name.as_deref(), what_if.step, fixture, plan),
        What::Abort if fixture.subject.is_left_alone() => Some(format!(
            "{title} skips its checks and Kubernetes rolls by itself: there is nothing to abort"
        )),
        What::People(None) | What::Abort => None,
    }
}

fn too_patient(time: Duration) -> Option<String> {
    (time > LONGEST).then(|| format!("nothing is played for longer than {LONGEST_IN_WORDS}"))
}

/// Why a what-if matches no metric, if so.
fn no_metric(name: Option<&str>, step: Option<usize>, fixture: &Fixture, plan: &Plan) -> Option<String> {
    let title = fixture.subject.title();
    let steps: Vec<_> = match step {
        Some(step) => vec![step],
        None => (0..=plan.steps.len()).collect(),
    };
    let analysed = |step: &usize| {
        let beside = plan.background.as_ref();
        matches!(plan.steps.get(*step), Some(Step::Analysis(_)))
            || beside.is_some_and(|beside| beside.from.0 as usize <= *step)
    };
    let anywhere: Vec<_> = (0..plan.steps.len()).filter(analysed).collect();
    if fixture.subject.is_left_alone() || (anywhere.is_empty() && plan.background.is_none()) {
        return Some(format!("{title} asks for no analysis"));
    }
    if !steps.iter().any(analysed) {
        let there: Vec<_> = anywhere.iter().map(|step| (step + 1).to_string()).collect();
        let there = match there.as_slice() {
            [only] => format!("step {only} has"),
            several => format!("steps {} have", several.join(", ")),
        };
        let step = step.unwrap_or_default() + 1;
        return Some(format!(
            "step {step} has no analysis, and none runs beside it; {there}"
        ));
    }
    let name = name?;
    let known: BTreeSet<_> = steps.iter().flat_map(|step| metrics_at(*step, fixture)).collect();
    (!known.contains(name)).then(|| {
        let known = known.into_iter().collect::<Vec<_>>().join(", ");
        format!("there is no metric {name} here; there is {known}")
    })
}

/// The names of the metrics that are measured at a step, in the step or in the background.
fn metrics_at(step: usize, fixture: &Fixture) -> Vec<String> {
    if matches!(fixture.subject, Rollout::Phased(_)) {
        return vec!["check".to_owned()];
    }
    let (mut asked, mut seen) = (fixture.subject.templates_at(step), Vec::<TemplateRef>::new());
    let mut names = Vec::new();
    while let Some(reference) = asked.pop() {
        let Some(template) = fixture
            .template(&reference)
            .filter(|_| !seen.contains(&reference))
        else {
            continue;
        };
        let metrics = template["spec"]["metrics"].as_array().into_iter().flatten();
        names.extend(metrics.filter_map(|metric| metric["name"].as_str().map(str::to_owned)));
        let further = serde_json::from_value(template["spec"]["templates"].clone());
        asked.extend(further.unwrap_or_else(|_| Vec::new()));
        seen.push(reference);
    }
    names
}

/// Whether both are about the same thing and differ.
fn contradict(one: &WhatIf, other: &WhatIf, fixture: &Fixture) -> bool {
    if one.what == other.what {
        return false;
    }
    let begins = match fixture.start {
        Start::Step(step, _) if fixture.replaced.is_none() => step,
        _ => 0,
    };
    let same_step = one.step == other.step;
    match (&one.what, &other.what) {
        (What::People(_), What::People(_)) => true,
        (What::Pod { ordinal: one, .. }, What::Pod { ordinal: other, .. }) => one == other,
        (What::Metric { name: one, .. }, What::Metric { name: other, .. }) => one == other && same_step,
        (What::OperatorDown(_), What::OperatorDown(_)) => same_step,
        (What::Scale(_), What::Scale(_)) => one.step.unwrap_or(begins) == other.step.unwrap_or(begins),
        _ => false,
    }
}
