//! What keeps pods running: sets, deployments, jobs, and their budgets and revisions.

use jiff::Timestamp;
use serde_json::Value;

use super::age::{human_duration, since};
use super::selector::{of_labels, of_selector, requirements};
use super::sheet::{
    AGE, CONTAINERS, Column, IMAGES, NAME, SELECTOR, Sheet, age, condition, containers, is_set, list, name,
    number, text, text_or,
};

const TEMPLATE: &str = "/spec/template/spec/containers";

pub(super) static STATEFULSETS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Ready", "How many pods are ready, of how many."),
        AGE,
        CONTAINERS,
        IMAGES,
    ],
    cells: |set, now| {
        let mut cells = vec![name(set), ready(set), age(set, now)];
        cells.extend(containers(set, TEMPLATE));
        cells
    },
    conditions: None,
};

pub(super) static CONTROLLER_REVISIONS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Controller", "Whose template this is."),
        Column::text("Revision", "The template's number."),
        AGE,
    ],
    cells: |revision, now| {
        vec![
            name(revision),
            controller(revision),
            number(revision, "/revision").into(),
            age(revision, now),
        ]
    },
    conditions: None,
};

pub(super) static REPLICASETS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::integer("Desired", "How many pods there should be."),
        Column::integer("Current", "How many pods there are."),
        Column::integer("Ready", "How many pods are ready."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |set, now| {
        let counts =
            ["/spec/replicas", "/status/replicas", "/status/readyReplicas"].map(|at| number(set, at).into());
        with_template(
            set,
            [vec![name(set)], counts.to_vec(), vec![age(set, now)]].concat(),
            TEMPLATE,
        )
    },
    conditions: None,
};

pub(super) static DEPLOYMENTS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Ready", "How many pods are ready, of how many."),
        Column::text("Up-to-date", "How many pods have the newest template."),
        Column::text("Available", "How many pods can serve."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |deployment, now| {
        let mut cells = vec![name(deployment), ready(deployment)];
        cells.extend(
            ["/status/updatedReplicas", "/status/availableReplicas"].map(|at| number(deployment, at).into()),
        );
        cells.push(age(deployment, now));
        cells.extend(containers(deployment, TEMPLATE));
        cells.push(requirements(deployment.pointer("/spec/selector")).into());
        cells
    },
    conditions: None,
};

pub(super) static DAEMONSETS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::integer("Desired", "How many nodes should run a pod."),
        Column::integer("Current", "How many nodes run a pod."),
        Column::integer("Ready", "How many nodes have a ready pod."),
        Column::integer("Up-to-date", "How many nodes have a pod of the newest template."),
        Column::integer("Available", "How many nodes have a pod that can serve."),
        Column::text("Node Selector", "Which nodes are meant."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |set, now| {
        let counts = [
            "/status/desiredNumberScheduled",
            "/status/currentNumberScheduled",
            "/status/numberReady",
            "/status/updatedNumberScheduled",
            "/status/numberAvailable",
        ];
        let nodes = of_labels(set.pointer("/spec/template/spec/nodeSelector"));
        let counts = counts.map(|at| number(set, at).into()).to_vec();
        with_template(
            set,
            [vec![name(set)], counts, vec![nodes.into(), age(set, now)]].concat(),
            TEMPLATE,
        )
    },
    conditions: None,
};

pub(super) static JOBS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Status", "How far the job is."),
        Column::text("Completions", "How many pods have succeeded, of how many."),
        Column::text("Duration", "How long the job has taken."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |job, now| {
        let cells = vec![
            name(job),
            job_status(job).into(),
            completions(job).into(),
            job_duration(job, now).into(),
            age(job, now),
        ];
        with_template(job, cells, TEMPLATE)
    },
    conditions: None,
};

pub(super) static CRONJOBS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Schedule", "When jobs are made, in cron's notation."),
        Column::text("Timezone", "Whose clock the schedule means."),
        Column::boolean("Suspend", "Whether no more jobs are made."),
        Column::integer("Active", "How many jobs are running."),
        Column::text("Last Schedule", "How long ago the last job was made."),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    cells: |cron, now| {
        let suspended = match cron.pointer("/spec/suspend").and_then(Value::as_bool) {
            Some(true) => "True",
            Some(false) => "False",
            None => "<unset>",
        };
        let last = match text(cron, "/status/lastScheduleTime") {
            "" => "<none>".to_owned(),
            last => since(last, now),
        };
        let mut cells = vec![
            name(cron),
            text(cron, "/spec/schedule").into(),
            text_or(cron, "/spec/timeZone", "<none>").into(),
            suspended.into(),
            list(cron, "/status/active").len().into(),
            last.into(),
            age(cron, now),
        ];
        cells.extend(containers(
            cron,
            "/spec/jobTemplate/spec/template/spec/containers",
        ));
        cells.push(of_selector(cron.pointer("/spec/jobTemplate/spec/selector")).into());
        cells
    },
    conditions: None,
};

pub(super) static DISRUPTION_BUDGETS: Sheet = Sheet {
    columns: &[
        NAME,
        Column::text("Min Available", "How many pods have to stay."),
        Column::text("Max Unavailable", "How many pods may go."),
        Column::integer("Allowed Disruptions", "How many pods may be evicted now."),
        AGE,
    ],
    cells: |budget, now| {
        let limit = |at: &str| match budget.pointer(at) {
            Some(Value::String(text)) => Value::from(text.as_str()),
            Some(Value::Number(number)) => number.to_string().into(),
            _ => "N/A".into(),
        };
        vec![
            name(budget),
            limit("/spec/minAvailable"),
            limit("/spec/maxUnavailable"),
            number(budget, "/status/disruptionsAllowed").into(),
            age(budget, now),
        ]
    },
    conditions: None,
};

fn with_template(object: &Value, mut cells: Vec<Value>, template: &str) -> Vec<Value> {
    cells.extend(containers(object, template));
    cells.push(of_selector(object.pointer("/spec/selector")).into());
    cells
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
