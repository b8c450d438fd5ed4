//! Why a pod is not Ready, as the scheduler and the kubelet report it. It is shown to users, and decides nothing.

use k8s_openapi::api::core::v1::ContainerStatus;
use stateward_core::workload::Unready;

use super::view::{PodCondition, PodStatus};

/// The reasons that a kubelet reports for every container before it starts.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// The most characters of a message.
const LONGEST: usize = 200;

/// Why the pod is not Ready, if that is known.
pub(super) fn of(status: &PodStatus) -> Option<Unready> {
    let is_false = |condition: &&PodCondition| condition.status == "False";
    if !status.reason.is_empty() {
        return Some(told(&status.reason, &status.message));
    }
    if let Some(unscheduled) = status.condition("PodScheduled").filter(is_false) {
        let reason = unscheduled.reason.as_deref().unwrap_or("Unschedulable");
        return Some(told(reason, unscheduled.message.as_deref().unwrap_or_default()));
    }
    let initialized = !status.condition("Initialized").is_some_and(|it| is_false(&it));
    let names = status.container_statuses.len() > 1;
    let mut inits = status.init_container_statuses.iter();
    inits
        .find_map(|container| of_init_container(container, initialized))
        .or_else(|| {
            let mut containers = status.container_statuses.iter();
            containers.find_map(|container| of_container(container, names))
        })
        .or_else(|| {
            // A readiness gate, which no container reports.
            let ready = status.condition("Ready").filter(is_false)?;
            let all_ready = status.container_statuses.iter().all(|container| container.ready);
            let reason = ready.reason.as_deref().filter(|_| all_ready)?;
            Some(told(reason, ready.message.as_deref().unwrap_or_default()))
        })
}

/// The report after `before`. One that differs only in numbers, such as those of nodes or ports, counts as the same: the status is
/// not written for that.
pub(super) fn steadied(now: Option<Unready>, before: Option<&Unready>) -> Option<Unready> {
    match (&now, before) {
        (Some(now), Some(before))
            if now.reason == before.reason && differ_in_numbers(&now.message, &before.message) =>
        {
            Some(before.clone())
        }
        _ => now,
    }
}

/// Whether two texts differ at most in numbers.
pub(super) fn differ_in_numbers(one: &str, other: &str) -> bool {
    let letters = |text: &str| {
        text.chars()
            .filter(|letter| !letter.is_ascii_digit())
            .collect::<String>()
    };
    letters(one) == letters(other)
}

fn of_init_container(container: &ContainerStatus, initialized: bool) -> Option<Unready> {
    let state = container.state.as_ref()?;
    let done = state
        .terminated
        .as_ref()
        .is_some_and(|ended| ended.exit_code == 0);
    if done || initialized && container.ready {
        return None;
    }
    if state.running.is_some() && !initialized {
        return Some(Unready {
            reason: Unready::INITIALIZING.into(),
            message: format!("init container {} is running", container.name),
        });
    }
    of_container(container, true)
}

/// With `names`, the message names the container.
fn of_container(container: &ContainerStatus, names: bool) -> Option<Unready> {
    let state = container.state.as_ref().filter(|_| !container.ready)?;
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref()?;
        let starting = STARTING.contains(&reason);
        return (!starting).then(|| told(reason, waiting.message.as_deref().unwrap_or_default()));
    }
    let name = &container.name;
    if let Some(ended) = &state.terminated {
        let reason = ended.reason.as_deref().unwrap_or("Error");
        return Some(Unready {
            reason: reason.to_owned(),
            message: format!("container {name} ended with {reason}"),
        });
    }
    state.running.as_ref()?;
    // Without a startup probe, a running container counts as started.
    let (reason, probe) = match container.started {
        Some(false) => (Unready::STARTUP_PROBE, "startup probe"),
        Some(true) | None => (Unready::READINESS_PROBE, "readiness probe"),
    };
    let which = if names {
        format!("container {name} ")
    } else {
        String::new()
    };
    Some(Unready {
        reason: reason.into(),
        message: format!("{which}running, {probe} not passing"),
    })
}

fn told(reason: &str, message: &str) -> Unready {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = match message.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    };
    Unready {
        reason: reason.to_owned(),
        message: if message.is_empty() {
            reason.to_owned()
        } else {
            format!("{reason}: {message}")
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn report(status: Value) -> Option<Unready> {
        of(&serde_json::from_value(status).unwrap())
    }

    fn container(name: &str, ready: bool, state: Value) -> Value {
        json!({"name": name, "image": "", "imageID": "", "ready": ready, "restartCount": 0, "state": state})
    }

    fn waiting(reason: &str, message: &str) -> Value {
        json!({"waiting": {"reason": reason, "message": message}})
    }

    fn running(started: bool) -> Value {
        let mut container = container("db", false, json!({"running": {}}));
        container["started"] = started.into();
        container
    }

    #[rstest]
    #[case::nothing(json!({}), None)]
    #[case::evicted(
        json!({"phase": "Failed", "reason": "Evicted", "message": "the node was low on\nmemory"}),
        Some(("Evicted", "Evicted: the node was low on memory")),
    )]
    #[case::unschedulable(
        json!({"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available",
        }]}),
        Some(("Unschedulable", "Unschedulable: 0/3 nodes are available")),
    )]
    #[case::starting(json!({"containerStatuses": [container("db", false, waiting("ContainerCreating", ""))]}), None)]
    #[case::pulling(
        json!({"containerStatuses": [container("db", false, waiting("ErrImagePull", "not found"))]}),
        Some(("ErrImagePull", "ErrImagePull: not found")),
    )]
    #[case::ended(
        json!({"containerStatuses": [container("db", false, json!({"terminated": {"exitCode": 3, "reason": "Error"}}))]}),
        Some(("Error", "container db ended with Error")),
    )]
    #[case::probed(
        json!({"containerStatuses": [running(true)]}),
        Some(("ReadinessProbe", "running, readiness probe not passing")),
    )]
    #[case::probed_while_it_starts(
        json!({"containerStatuses": [running(false)]}),
        Some(("StartupProbe", "running, startup probe not passing")),
    )]
    #[case::one_of_two(
        json!({"containerStatuses": [container("proxy", true, json!({"running": {}})), running(true)]}),
        Some(("ReadinessProbe", "container db running, readiness probe not passing")),
    )]
    #[case::initializing(
        json!({
            "conditions": [{"type": "Initialized", "status": "False"}],
            "initContainerStatuses": [
                container("first", true, json!({"terminated": {"exitCode": 0}})), container("migrate", false, json!({"running": {}})),
            ],
            "containerStatuses": [container("db", false, waiting("PodInitializing", ""))],
        }),
        Some(("Initializing", "init container migrate is running")),
    )]
    #[case::gated(
        json!({
            "conditions": [{"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "message": "of example.com/lb"}],
            "containerStatuses": [container("db", true, json!({"running": {}}))],
        }),
        Some(("ReadinessGatesNotReady", "ReadinessGatesNotReady: of example.com/lb")),
    )]
    fn what_keeps_a_pod_from_being_ready_is_known_from_its_status(
        #[case] status: Value,
        #[case] expected: Option<(&str, &str)>,
    ) {
        let expected = expected.map(|(reason, message)| Unready {
            reason: reason.into(),
            message: message.into(),
        });
        assert_eq!(report(status), expected);
    }

    #[test]
    fn a_long_message_is_cut() {
        let long = told("Unschedulable", &"x ".repeat(1000));
        assert_eq!(
            long.message.chars().count(),
            "Unschedulable: ".len() + LONGEST + 1
        );
    }

    #[rstest]
    #[case(
        "0/3 nodes are available: 3 Insufficient cpu",
        "0/4 nodes are available: 4 Insufficient cpu",
        true
    )]
    #[case(
        "0/3 nodes are available: 3 Insufficient cpu",
        "0/3 nodes are available: 3 Insufficient memory",
        false
    )]
    fn other_numbers_are_no_other_report(#[case] one: &str, #[case] other: &str, #[case] same: bool) {
        let (one, other) = (told("Unschedulable", one), told("Unschedulable", other));
        let expected = if same { &one } else { &other };
        assert_eq!(steadied(Some(other.clone()), Some(&one)).as_ref(), Some(expected));
        assert_eq!(steadied(None, Some(&one)), None);
    }
}
