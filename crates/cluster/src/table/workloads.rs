//! Workloads: StatefulSets, Deployments, Jobs, and their budgets and revisions.

use crate::json::Value;
use jiff::Timestamp;
use stateward_clock::human_duration;

use super::age::since;
use super::column::Cell::{Made, Number, Text, TextOr, Timed};
use super::column::{
    AGE, CONTAINERS, Column, IMAGES, NAME, SELECTOR, condition, is_set, list, number, of_containers, text,
};
use super::selector::{of_labels, of_selector, requirements};

const POD_TEMPLATE: &str = "/template/spec/containers";
const CRON_TEMPLATE: &str = "/spec/jobTemplate/spec/template/spec/containers";

pub(super) static STATEFULSETS: &[Column] = &[
    NAME,
    Column::text("Ready", "How many pods are ready, of how many.", Made(ready)),
    AGE,
    CONTAINERS,
    IMAGES,
];

pub(super) static POD_TEMPLATES: &[Column] = &[
    NAME,
    Column::text(
        "Containers",
        "The names of the containers in the template.",
        Made(|template| of_containers(template, POD_TEMPLATE, "name")),
    ),
    Column::text(
        "Images",
        "The images of the containers in the template.",
        Made(|template| of_containers(template, POD_TEMPLATE, "image")),
    ),
    Column::text(
        "Pod Labels",
        "The labels of pods made from the template.",
        Made(|template| of_labels(template.pointer("/template/metadata/labels")).into()),
    ),
];

pub(super) static CONTROLLER_REVISIONS: &[Column] = &[
    NAME,
    Column::text("Controller", "Whose template this is.", Made(controller)),
    Column::text("Revision", "The template's number.", Number("/revision")),
    AGE,
];

pub(super) static REPLICASETS: &[Column] = &[
    NAME,
    Column::integer(
        "Desired",
        "How many pods there should be.",
        Number("/spec/replicas"),
    ),
    Column::integer("Current", "How many pods there are.", Number("/status/replicas")),
    Column::integer(
        "Ready",
        "How many pods are ready.",
        Number("/status/readyReplicas"),
    ),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) static DEPLOYMENTS: &[Column] = &[
    NAME,
    Column::text("Ready", "How many pods are ready, of how many.", Made(ready)),
    Column::text(
        "Up-to-date",
        "How many pods have the newest template.",
        Number("/status/updatedReplicas"),
    ),
    Column::text(
        "Available",
        "How many pods can serve.",
        Number("/status/availableReplicas"),
    ),
    AGE,
    CONTAINERS,
    IMAGES,
    // Without requirements it is empty here, and `<none>` elsewhere.
    SELECTOR.showing(Made(|deployment| {
        requirements(deployment.pointer("/spec/selector")).into()
    })),
];

pub(super) static DAEMONSETS: &[Column] = &[
    NAME,
    Column::integer(
        "Desired",
        "How many nodes should run a pod.",
        Number("/status/desiredNumberScheduled"),
    ),
    Column::integer(
        "Current",
        "How many nodes run a pod.",
        Number("/status/currentNumberScheduled"),
    ),
    Column::integer(
        "Ready",
        "How many nodes have a ready pod.",
        Number("/status/numberReady"),
    ),
    Column::integer(
        "Up-to-date",
        "How many nodes have a pod of the newest template.",
        Number("/status/updatedNumberScheduled"),
    ),
    Column::integer(
        "Available",
        "How many nodes have a pod that can serve.",
        Number("/status/numberAvailable"),
    ),
    Column::text(
        "Node Selector",
        "Which nodes are meant.",
        Made(|set| of_labels(set.pointer("/spec/template/spec/nodeSelector")).into()),
    ),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) static JOBS: &[Column] = &[
    NAME,
    Column::text(
        "Status",
        "How far the job is.",
        Made(|job| job_status(job).into()),
    ),
    Column::text(
        "Completions",
        "How many pods have succeeded, of how many.",
        Made(|job| completions(job).into()),
    ),
    Column::text(
        "Duration",
        "How long the job has taken.",
        Timed(|job, now| job_duration(job, now).into()),
    ),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(super) static CRONJOBS: &[Column] = &[
    NAME,
    Column::text(
        "Schedule",
        "When jobs are made, in cron's notation.",
        Text("/spec/schedule"),
    ),
    Column::text(
        "Timezone",
        "Whose clock the schedule means.",
        TextOr("/spec/timeZone", "<none>"),
    ),
    Column::boolean(
        "Suspend",
        "Whether no more jobs are made.",
        Made(|cron| match cron["spec"]["suspend"].as_bool() {
            Some(true) => "True".into(),
            Some(false) => "False".into(),
            None => "<unset>".into(),
        }),
    ),
    Column::integer(
        "Active",
        "How many jobs are running.",
        Made(|cron| list(cron, "/status/active").len().into()),
    ),
    Column::text(
        "Last Schedule",
        "How long ago the last job was made.",
        Timed(|cron, now| match text(cron, "/status/lastScheduleTime") {
            "" => "<none>".into(),
            last => since(last, now).into(),
        }),
    ),
    AGE,
    CONTAINERS.showing(Made(|cron| of_containers(cron, CRON_TEMPLATE, "name"))),
    IMAGES.showing(Made(|cron| of_containers(cron, CRON_TEMPLATE, "image"))),
    SELECTOR.showing(Made(|cron| {
        of_selector(cron.pointer("/spec/jobTemplate/spec/selector")).into()
    })),
];

pub(super) static DISRUPTION_BUDGETS: &[Column] = &[
    NAME,
    Column::text(
        "Min Available",
        "How many pods have to stay.",
        Made(|budget| limit(&budget["spec"]["minAvailable"])),
    ),
    Column::text(
        "Max Unavailable",
        "How many pods may go.",
        Made(|budget| limit(&budget["spec"]["maxUnavailable"])),
    ),
    Column::integer(
        "Allowed Disruptions",
        "How many pods may be evicted now.",
        Number("/status/disruptionsAllowed"),
    ),
    AGE,
];

/// A number or a percentage.
fn limit(value: &Value) -> Value {
    match value {
        Value::String(_) => value.clone(),
        Value::Number(number) => number.to_string().into(),
        _ => "N/A".into(),
    }
}

fn ready(object: &Value) -> Value {
    format!(
        "{}/{}",
        number(object, "/status/readyReplicas"),
        number(object, "/spec/replicas")
    )
    .into()
}

/// `statefulset.apps/db`
fn controller(revision: &Value) -> Value {
    let owner = list(revision, "/metadata/ownerReferences")
        .iter()
        .find(|owner| owner["controller"] == true);
    let Some(owner) = owner else {
        return "<none>".into();
    };
    let kind = text(owner, "/kind").to_lowercase();
    match text(owner, "/apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{}/{}", group.to_lowercase(), text(owner, "/name")).into(),
        None => format!("{kind}/{}", text(owner, "/name")).into(),
    }
}

fn job_status(job: &Value) -> &'static str {
    let has = |kind: &str| condition(job, kind) == Some("True");
    if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if is_set(job, "/metadata/deletionTimestamp") {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    }
}

fn completions(job: &Value) -> String {
    let succeeded = number(job, "/status/succeeded");
    match (
        job.pointer("/spec/completions").and_then(Value::as_i64),
        number(job, "/spec/parallelism"),
    ) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallelism) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    }
}

fn job_duration(job: &Value, now: Timestamp) -> String {
    let moment = |at: &str| text(job, at).parse::<Timestamp>().ok();
    match (moment("/status/startTime"), moment("/status/completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => human_duration(end.unwrap_or(now).duration_since(start)),
    }
}
