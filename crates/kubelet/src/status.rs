//! The status that a pod's life shows in the API, with a real kubelet's exact reasons and messages where tools read them.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::chance;
use crate::life::{End, Ended, Flip, Life, Run, Stage, back_off};
use crate::pod::{Container, Pod};

/// A status as written: fields in alphabetical order, and null for what an earlier write may have left.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub(crate) enum PodStatus {
    OnNode(Box<OnNode>),
    Unplaced(Unplaced),
}

impl PodStatus {
    /// Adds the observed generation.
    pub(crate) fn observing(mut self, generation: Option<i64>) -> Self {
        match &mut self {
            Self::OnNode(status) => status.observed_generation = generation,
            Self::Unplaced(status) => status.observed_generation = generation,
        }
        self
    }

    /// The changes since `before`. A field that is no longer set stays, as in any merge.
    pub(crate) fn since(&self, before: &Self) -> Self {
        match (self, before) {
            (Self::OnNode(now), Self::OnNode(before)) => Self::OnNode(Box::new(now.since(before))),
            _ => self.clone(),
        }
    }
}

/// The new value, if it changed.
fn changed<T: Clone + PartialEq>(now: &Option<T>, before: &Option<T>) -> Option<T> {
    now.clone().filter(|_| now != before)
}

/// A list that is replaced as a whole.
fn changed_list<T: Clone + PartialEq>(now: &Vec<T>, before: &Vec<T>) -> Vec<T> {
    if now == before { Vec::new() } else { now.clone() }
}

impl OnNode {
    fn since(&self, before: &Self) -> Self {
        let Self {
            conditions,
            container_statuses,
            host_ip,
            host_ips,
            init_container_statuses,
            message,
            observed_generation,
            phase,
            pod_ip,
            pod_ips,
            reason,
            start_time,
        } = self;
        let conditions = conditions.iter();
        let conditions = conditions.filter(|condition| !before.conditions.contains(condition));
        Self {
            conditions: conditions.cloned().collect(),
            container_statuses: changed_list(container_statuses, &before.container_statuses),
            host_ip: changed(host_ip, &before.host_ip),
            host_ips: changed(host_ips, &before.host_ips),
            init_container_statuses: changed_list(init_container_statuses, &before.init_container_statuses),
            message: changed(message, &before.message),
            observed_generation: *observed_generation,
            phase: changed(phase, &before.phase),
            pod_ip: changed(pod_ip, &before.pod_ip),
            pod_ips: changed(pod_ips, &before.pod_ips),
            reason: changed(reason, &before.reason),
            start_time: changed(start_time, &before.start_time),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OnNode {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    container_statuses: Vec<ContainerStatus>,
    #[serde(rename = "hostIP", skip_serializing_if = "Option::is_none")]
    host_ip: Option<String>,
    #[serde(rename = "hostIPs", skip_serializing_if = "Option::is_none")]
    host_ips: Option<[Address; 1]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    init_container_statuses: Vec<ContainerStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
    observed_generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<&'static str>,
    #[serde(rename = "podIP", skip_serializing_if = "Option::is_none")]
    pod_ip: Option<String>,
    #[serde(rename = "podIPs", skip_serializing_if = "Option::is_none")]
    pod_ips: Option<[Address; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time: Option<Second>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unplaced {
    conditions: [Condition; 1],
    observed_generation: Option<i64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Address {
    ip: String,
}

/// Reason and message are null if there is none: in a strategic merge that removes the earlier value.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    last_transition_time: Second,
    message: Option<String>,
    reason: Option<&'static str>,
    status: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    #[serde(rename = "containerID", skip_serializing_if = "Option::is_none")]
    container_id: Option<String>,
    image: String,
    #[serde(rename = "imageID")]
    image_id: String,
    last_state: LastState,
    name: String,
    ready: bool,
    restart_count: u32,
    started: bool,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
enum State {
    Waiting(Waiting),
    Running(Running),
    Terminated(Terminated),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
struct LastState {
    #[serde(skip_serializing_if = "Option::is_none")]
    terminated: Option<Terminated>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
struct Waiting {
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
struct Running {
    started_at: Second,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    #[serde(rename = "containerID", skip_serializing_if = "Option::is_none")]
    container_id: Option<String>,
    exit_code: i32,
    finished_at: Second,
    reason: Cow<'static, str>,
    started_at: Option<Second>,
}

/// A time as the API writes it. Two times within one second are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Second(Timestamp);

impl Second {
    fn of(time: Timestamp) -> Self {
        Self(Timestamp::from_second(time.as_second()).unwrap_or(time))
    }
}

impl Serialize for Second {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// The phase of a pod at this stage of its life.
fn phase(life: &Life) -> &'static str {
    match life.stage {
        Stage::Unscheduled { .. }
        | Stage::Creating { .. }
        | Stage::PullFailed { .. }
        | Stage::PullBackOff { .. }
        | Stage::ConfigError => "Pending",
        Stage::Running | Stage::Exited { .. } | Stage::BackOff { .. } => "Running",
        Stage::Ended(End::Succeeded) => "Succeeded",
        Stage::Ended(End::Failed | End::Evicted) => "Failed",
    }
}

/// The status of a pod on its node. It depends on the life alone, so that equal lives cause no write.
pub(crate) fn status(pod: &Pod, life: &Life, host_ip: &str) -> PodStatus {
    let has_address = life.sandbox.on || life.runs.iter().any(|run| run.started.is_some());
    let pod_ip = has_address.then(|| pod_ip(pod));
    let evicted = life.stage == Stage::Ended(End::Evicted);
    let inits = pod
        .inits
        .iter()
        .map(|container| init_status(pod, life, container));
    let containers = (0..pod.containers.len()).map(|index| container_status(pod, life, index));
    PodStatus::OnNode(Box::new(OnNode {
        conditions: conditions(pod, life),
        container_statuses: containers.collect(),
        host_ip: Some(host_ip.to_owned()),
        host_ips: Some([address(host_ip)]),
        init_container_statuses: inits.collect(),
        message: evicted.then_some(EVICTED),
        observed_generation: None,
        phase: Some(phase(life)),
        pod_ips: pod_ip.as_deref().map(|ip| [address(ip)]),
        pod_ip,
        reason: evicted.then_some("Evicted"),
        start_time: life.started.map(Second::of),
    }))
}

const EVICTED: &str = "The node was low on resource: memory.";

fn address(ip: &str) -> Address {
    Address { ip: ip.to_owned() }
}

/// The status of a pod that the scheduler cannot place.
pub(crate) fn unschedulable(message: &str, since: Timestamp) -> PodStatus {
    let why = Some(("Unschedulable", Some(message.to_owned())));
    PodStatus::Unplaced(Unplaced {
        conditions: [condition("PodScheduled", Flip::off(since), why)],
        observed_generation: None,
    })
}

fn conditions(pod: &Pod, life: &Life) -> Vec<Condition> {
    let scheduled = match pod.seen.scheduled {
        Some((true, since)) => since,
        _ => life.started.unwrap_or(life.ready.since),
    };
    let ended = match life.stage {
        Stage::Ended(End::Succeeded) => Some("PodCompleted"),
        Stage::Ended(End::Failed | End::Evicted) => Some("PodFailed"),
        _ => None,
    };
    let unready: Vec<_> = pod
        .containers
        .iter()
        .enumerate()
        .filter(|(index, _)| !is_ready(life, *index))
        .map(|(_, container)| container.name.as_str())
        .collect();
    let unready = match ended {
        _ if life.ready.on => None,
        Some(reason) => Some((reason, None)),
        None => Some((
            "ContainersNotReady",
            Some(format!("containers with unready status: [{}]", unready.join(" "))),
        )),
    };
    let uninitialized = match ended {
        Some("PodCompleted") => Some(("PodCompleted", None)),
        _ if life.initialized.on => None,
        _ => {
            let names: Vec<_> = pod.inits.iter().map(|init| init.name.as_str()).collect();
            let message = format!("containers with incomplete status: [{}]", names.join(" "));
            Some(("ContainersNotInitialized", Some(message)))
        }
    };
    let mut conditions = vec![
        condition("PodReadyToStartContainers", life.sandbox, None),
        condition("Initialized", life.initialized, uninitialized),
        condition("Ready", life.ready, unready.clone()),
        condition("ContainersReady", life.containers_ready, unready),
        condition(
            "PodScheduled",
            Flip {
                on: true,
                since: scheduled,
            },
            None,
        ),
    ];
    if life.stage == Stage::Ended(End::Evicted) {
        let evicted = Flip {
            on: true,
            since: life.sandbox.since,
        };
        conditions.push(condition(
            "DisruptionTarget",
            evicted,
            Some(("TerminationByKubelet", Some(EVICTED.to_owned()))),
        ));
    }
    conditions
}

fn condition(kind: &'static str, flip: Flip, why: Option<(&'static str, Option<String>)>) -> Condition {
    let (reason, message) = why.map_or((None, None), |(reason, message)| (Some(reason), message));
    Condition {
        last_transition_time: Second::of(flip.since),
        message,
        reason,
        status: if flip.on { "True" } else { "False" },
        kind,
    }
}

fn is_ready(life: &Life, index: usize) -> bool {
    let running = life.runs[index].started.is_some() && life.runs[index].ended.is_none();
    if index == life.main {
        life.ready.on
    } else {
        running
    }
}

fn container_status(pod: &Pod, life: &Life, index: usize) -> ContainerStatus {
    let run = &life.runs[index];
    let container = &pod.containers[index];
    let trouble = if index == life.main {
        trouble(pod, life, container)
    } else {
        None
    };
    let state = match trouble {
        Some((reason, message)) => waiting(reason, Some(message)),
        None => state(pod, container, run),
    };
    // During a back-off the last run is the latest attempt; otherwise the one before.
    let last_attempt = if matches!(state, State::Waiting(_)) {
        run.restarts
    } else {
        run.restarts.saturating_sub(1)
    };
    let last = run.last.as_ref();
    let has_started = run.started.is_some();
    ContainerStatus {
        container_id: has_started.then(|| container_id(pod, container, run.restarts)),
        image: container.image.clone(),
        image_id: image_id(container, has_started),
        last_state: LastState {
            terminated: last.map(|last| terminated(last, Some(container_id(pod, container, last_attempt)))),
        },
        name: container.name.clone(),
        ready: is_ready(life, index),
        restart_count: run.restarts,
        started: matches!(state, State::Running(_)),
        state,
    }
}

/// Why the main container is waiting, if it has a problem of its own.
fn trouble(pod: &Pod, life: &Life, container: &Container) -> Option<(&'static str, String)> {
    let Container { name, image, .. } = container;
    match life.stage {
        Stage::PullFailed { .. } => Some((
            "ErrImagePull",
            format!("failed to pull and unpack image \"{image}\": failed to resolve reference: not found"),
        )),
        Stage::PullBackOff { .. } => {
            Some(("ImagePullBackOff", format!("Back-off pulling image \"{image}\"")))
        }
        Stage::ConfigError => Some((
            "CreateContainerConfigError",
            format!("configmap \"{name}-config\" not found"),
        )),
        Stage::BackOff { .. } => {
            let wait = back_off(life.strikes.saturating_sub(1)).as_secs();
            let wait = if wait < 60 {
                format!("{wait}s")
            } else {
                format!("{}m{}s", wait / 60, wait % 60)
            };
            let (key, uid) = (&pod.key, &pod.uid);
            let pod = format!("{}_{}({uid})", key.name, key.namespace);
            Some((
                "CrashLoopBackOff",
                format!("back-off {wait} restarting failed container={name} pod={pod}"),
            ))
        }
        _ => None,
    }
}

fn state(pod: &Pod, container: &Container, run: &Run) -> State {
    match (&run.ended, run.started) {
        (Some(ended), started) => {
            let id = started.map(|_| container_id(pod, container, run.restarts));
            State::Terminated(terminated(ended, id))
        }
        (None, Some(started)) => State::Running(Running {
            started_at: Second::of(started),
        }),
        (None, None) if pod.inits.is_empty() => waiting("ContainerCreating", None),
        (None, None) => waiting("PodInitializing", None),
    }
}

fn waiting(reason: &'static str, message: Option<String>) -> State {
    State::Waiting(Waiting { message, reason })
}

fn terminated(ended: &Ended, container_id: Option<String>) -> Terminated {
    Terminated {
        container_id,
        exit_code: ended.code,
        finished_at: Second::of(ended.finished),
        reason: ended.reason.clone(),
        started_at: ended.started.map(Second::of),
    }
}

fn init_status(pod: &Pod, life: &Life, container: &Container) -> ContainerStatus {
    let done = life.initialized.on;
    let mut run = Run {
        started: life.started.filter(|_| done),
        ..Run::default()
    };
    if done && (!container.sidecar || matches!(life.stage, Stage::Ended(_))) {
        let finished = if container.sidecar {
            life.sandbox.since
        } else {
            life.initialized.since
        };
        let ended = Ended {
            started: run.started,
            finished,
            code: 0,
            reason: "Completed".into(),
        };
        run.ended = Some(Box::new(ended));
    }
    let state = if done {
        state(pod, container, &run)
    } else {
        waiting("PodInitializing", None)
    };
    ContainerStatus {
        container_id: done.then(|| container_id(pod, container, 0)),
        image: container.image.clone(),
        image_id: image_id(container, done),
        last_state: LastState::default(),
        name: container.name.clone(),
        ready: done,
        restart_count: 0,
        started: matches!(state, State::Running(_)),
        state,
    }
}

/// Empty until the image is pulled.
fn image_id(container: &Container, is_pulled: bool) -> String {
    if !is_pulled {
        return String::new();
    }
    let image = container.image.as_str();
    let mut id = ["docker-pullable://", image, "@sha256:"].concat();
    push_digest(&mut id, &[image]);
    id
}

fn container_id(pod: &Pod, container: &Container, restarts: u32) -> String {
    let mut id = String::with_capacity(80);
    id.push_str("containerd://");
    push_digest(&mut id, &[&pod.uid, &container.name, &restarts.to_string()]);
    id
}

/// Appends 64 generated hexadecimal digits.
fn push_digest(out: &mut String, parts: &[&str]) {
    for block in 0..4 {
        let hash = chance::hash(block, parts.iter().copied());
        // Formatting would take longer than the hash.
        for byte in hash.to_be_bytes() {
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 0xf)]));
        }
    }
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// A generated address, new for each incarnation of a pod.
fn pod_ip(pod: &Pod) -> String {
    let [a, b, c, ..] = chance::hash(0, [pod.uid.as_str()]).to_le_bytes();
    format!("10.{}.{b}.{}", 128 + a % 128, 1 + c % 254)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ContainerState, PodStatus};
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::pod::fixtures::set_pod;

    const TIME: Timestamp = Timestamp::UNIX_EPOCH;

    /// A life in this stage, of a pod with two containers of which the first is the main one.
    pub(crate) fn life(stage: Stage) -> Life {
        let ended = |code| {
            Some(Box::new(Ended {
                started: Some(TIME),
                finished: TIME,
                code,
                reason: "Error".into(),
            }))
        };
        let mut life = Life::new(&set_pod("db", 0), TIME);
        life.started = Some(TIME);
        life.initialized.on = true;
        life.sandbox.on = true;
        life.runs.iter_mut().for_each(|run| run.started = Some(TIME));
        match stage {
            Stage::Creating { .. } => {
                life.sandbox.on = false;
                life.runs.iter_mut().for_each(|run| run.started = None);
            }
            Stage::PullFailed { .. } | Stage::PullBackOff { .. } | Stage::ConfigError => {
                life.runs[0].started = None
            }
            Stage::Running => (life.ready.on, life.containers_ready.on) = (true, true),
            Stage::Exited { .. } => life.runs[0].ended = ended(1),
            Stage::BackOff { .. } => {
                life.runs[0].last = ended(1);
                (life.runs[0].restarts, life.strikes) = (2, 3);
            }
            Stage::Ended(_) => life.runs.iter_mut().for_each(|run| run.ended = ended(0)),
            Stage::Unscheduled { .. } => {}
        }
        life.stage = stage;
        life
    }

    fn shown(stage: Stage) -> PodStatus {
        let status = status(&set_pod("db", 0), &life(stage), "10.1.0.1");
        serde_json::from_value(json!(status)).unwrap()
    }

    fn word(state: Option<&ContainerState>) -> String {
        let state = state.unwrap();
        let waiting = state
            .waiting
            .as_ref()
            .map(|waiting| waiting.reason.clone().unwrap());
        let terminated = state
            .terminated
            .as_ref()
            .map(|terminated| terminated.reason.clone().unwrap());
        waiting
            .or(terminated)
            .or(state.running.as_ref().map(|_| "running".into()))
            .unwrap()
    }

    #[rstest]
    #[case(Stage::Creating { since: TIME }, "Pending", "ContainerCreating", "ContainerCreating", "ContainersNotReady")]
    #[case(Stage::PullFailed { at: TIME, tries: 1 }, "Pending", "ErrImagePull", "running", "ContainersNotReady")]
    #[case(Stage::PullBackOff { since: TIME, tries: 1 }, "Pending", "ImagePullBackOff", "running", "ContainersNotReady")]
    #[case(
        Stage::ConfigError,
        "Pending",
        "CreateContainerConfigError",
        "running",
        "ContainersNotReady"
    )]
    #[case(Stage::Running, "Running", "running", "running", "")]
    #[case(Stage::Exited { at: TIME }, "Running", "Error", "running", "ContainersNotReady")]
    #[case(Stage::BackOff { since: TIME }, "Running", "CrashLoopBackOff", "running", "ContainersNotReady")]
    #[case(Stage::Ended(End::Succeeded), "Succeeded", "Error", "Error", "PodCompleted")]
    #[case(Stage::Ended(End::Evicted), "Failed", "Error", "Error", "PodFailed")]
    fn each_stage_shows_in_phase_states_and_readiness(
        #[case] stage: Stage,
        #[case] phase: &str,
        #[case] main: &str,
        #[case] other: &str,
        #[case] unready: &str,
    ) {
        let shown = shown(stage);
        assert_eq!(shown.phase.as_deref(), Some(phase));
        let containers = shown.container_statuses.unwrap();
        assert_eq!(word(containers[0].state.as_ref()), main);
        assert_eq!(word(containers[1].state.as_ref()), other);
        let conditions = shown.conditions.unwrap();
        let ready = conditions
            .iter()
            .find(|condition| condition.type_ == "Ready")
            .unwrap();
        assert_eq!(ready.reason.as_deref().unwrap_or_default(), unready);
        assert_eq!(ready.status, if unready.is_empty() { "True" } else { "False" });
    }

    #[test]
    fn a_crash_loop_tells_restarts_back_off_and_the_last_end() {
        let containers = shown(Stage::BackOff { since: TIME }).container_statuses.unwrap();
        let main = &containers[0];
        let message = main
            .state
            .as_ref()
            .and_then(|state| state.waiting.as_ref()?.message.clone())
            .unwrap();
        assert_eq!(
            message,
            "back-off 20s restarting failed container=db pod=db-0_ns(u1)"
        );
        assert_eq!(main.restart_count, 2);
        assert_eq!(word(main.last_state.as_ref()), "Error");
    }

    #[test]
    fn an_eviction_is_told_on_the_pod() {
        let shown = shown(Stage::Ended(End::Evicted));
        assert_eq!(shown.reason.as_deref(), Some("Evicted"));
        assert!(
            shown
                .conditions
                .unwrap()
                .iter()
                .any(|condition| condition.type_ == "DisruptionTarget")
        );
    }

    #[test]
    fn a_condition_without_a_reason_removes_the_one_before() {
        let on = condition(
            "Ready",
            Flip {
                on: true,
                since: TIME,
            },
            None,
        );
        let on = json!(on);
        assert_eq!(on["reason"], Value::Null);
        assert!(on.as_object().unwrap().contains_key("reason"));
    }
}
