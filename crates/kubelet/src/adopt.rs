//! Restores a pod's life from its status, so that a restarted kubelet continues with the pods it finds.

use jiff::Timestamp;

use crate::life::{End, Ended, Flip, Life, Run, Stage};
use crate::object::{ConditionKind, ContainerStatus, Moment, Object, Status, Terminated};
use crate::pod::{Pod, condition};

/// The life in this status; none if no kubelet has written one yet.
pub(crate) fn adopt(object: &Object, pod: &Pod, now: Timestamp) -> Option<Life> {
    let status = object.status.as_deref()?;
    let started = status.start_time.as_ref().and_then(Moment::read);
    pod.place.node().and(started)?;

    let shown = status.container_statuses.as_deref().unwrap_or_default();
    let container = |name: &str| shown.iter().find(|shown| shown.name == name);
    let runs: Vec<_> = pod
        .containers
        .iter()
        .map(|known| container(&known.name).map(run).unwrap_or_default())
        .collect();
    let is_up = |run: &Run| run.started.is_some() && run.ended.is_none();
    let in_trouble = |name: &str| container(name).is_some_and(|shown| reason(shown).is_some());
    let main = (0..runs.len())
        .find(|&index| !is_up(&runs[index]) || in_trouble(&pod.containers[index].name))
        .unwrap_or_default();
    let flip = |kind| match condition(status, kind) {
        Some((on, since)) => Flip { on, since },
        None => Flip::off(now),
    };
    let main_run = runs.get(main)?;

    let stage = stage(
        status,
        container(&pod.containers.get(main)?.name),
        main_run,
        started.unwrap_or(now),
        now,
    );

    Some(Life {
        started,
        main,
        initialized: flip(ConditionKind::Initialized),
        sandbox: flip(ConditionKind::PodReadyToStartContainers),
        containers_ready: flip(ConditionKind::ContainersReady),
        // The node controller marks pods unready while their node is unreachable; the container statuses stay correct.
        ready: Flip {
            on: flip(ConditionKind::ContainersReady).on,
            ..flip(ConditionKind::Ready)
        },
        stopping: None,
        strikes: main_run.restarts + u32::from(matches!(stage, Stage::Exited { .. } | Stage::BackOff { .. })),
        stage,
        runs,
    })
}

fn stage(
    status: &Status,
    main: Option<&ContainerStatus>,
    run: &Run,
    started: Timestamp,
    now: Timestamp,
) -> Stage {
    match status.phase.as_deref() {
        Some("Succeeded") => return Stage::Ended(End::Succeeded),
        Some("Failed") if status.reason.as_deref() == Some("Evicted") => return Stage::Ended(End::Evicted),
        Some("Failed") => return Stage::Ended(End::Failed),
        _ => {}
    }
    match main.and_then(reason) {
        Some("ErrImagePull") => Stage::PullFailed { at: now, tries: 1 },
        Some("ImagePullBackOff") => Stage::PullBackOff { since: now, tries: 1 },
        Some("CreateContainerConfigError") => Stage::ConfigError,
        Some("CrashLoopBackOff") => Stage::BackOff {
            since: run.last.as_ref().map_or(now, |last| last.finished),
        },
        _ => match (&run.ended, run.started) {
            (Some(ended), _) => Stage::Exited { at: ended.finished },
            (None, Some(_)) => Stage::Running,
            (None, None) => Stage::Creating { since: started },
        },
    }
}

/// Why the container is waiting, other than for its start.
fn reason(shown: &ContainerStatus) -> Option<&str> {
    let waiting = shown.state.as_ref()?.waiting.as_ref()?;
    waiting
        .reason
        .as_deref()
        .filter(|reason| !matches!(*reason, "ContainerCreating" | "PodInitializing"))
}

fn run(shown: &ContainerStatus) -> Run {
    let state = shown.state.as_ref();
    let running = state.and_then(|state| state.running.as_ref());
    let ended = state.and_then(|state| state.terminated.as_ref()).map(ended);
    let last = shown
        .last_state
        .as_ref()
        .and_then(|last| last.terminated.as_ref())
        .map(self::ended);
    let started = match (running, &ended, &last) {
        (Some(running), ..) => running.started_at.as_ref().and_then(Moment::read),
        (None, Some(ended), _) => ended.started,
        (None, None, Some(last)) => last.started,
        (None, None, None) => None,
    };
    Run {
        started,
        restarts: u32::try_from(shown.restart_count).unwrap_or_default(),
        ended: ended.map(Box::new),
        last: last.map(Box::new),
    }
}

fn ended(shown: &Terminated) -> Ended {
    let finished = shown.finished_at.as_ref().and_then(Moment::read);
    Ended {
        started: shown.started_at.as_ref().and_then(Moment::read),
        finished: finished.unwrap_or(Timestamp::UNIX_EPOCH),
        code: shown.exit_code,
        reason: shown.reason.clone().unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;
    use serde_json::Value;

    use super::*;
    use crate::behaviour::Behaviour;
    use crate::life::{Moment, after};
    use crate::pod::fixtures::{parse, set_pod, set_pod_json};
    use crate::rules::Part;
    use crate::status::status;

    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn lived(behaviour: Behaviour, seconds: u64) -> (Life, Timestamp) {
        let (pod, part) = (
            set_pod("db", 0),
            Part {
                behaviour,
                container: 0,
            },
        );
        let mut life = Life::new(&pod, START);
        let end = after(START, Duration::from_secs(seconds));
        let mut now = START;
        while let Some(next) = life.advance(&Moment {
            pod: &pod,
            part: &part,
            seed: 0,
            now,
        }) {
            if next > end {
                break;
            }
            now = next;
        }
        (life, end)
    }

    fn taken_up(status: Value, now: Timestamp) -> Option<Life> {
        let mut object = set_pod_json("db", 0);
        object["status"] = status;
        let object = parse(object);
        adopt(&object, &Pod::of(&object), now)
    }

    #[rstest]
    #[case::creating(Behaviour::default().pull(Duration::from_secs(100)))]
    #[case::ready(Behaviour::default())]
    #[case::never_ready(Behaviour::never_ready())]
    #[case::crash_loop(Behaviour::crash_loop())]
    #[case::exited(Behaviour::exits(0, Duration::from_millis(9500)))]
    #[case::image(Behaviour::image_pull_error())]
    #[case::config(Behaviour::config_error())]
    #[case::evicted(Behaviour::evicted(Duration::from_secs(1)))]
    fn a_restarted_kubelet_shows_the_same_status(#[case] behaviour: Behaviour) {
        let (life, now) = lived(behaviour, 10);
        let shown = status(&set_pod("db", 0), &life, "10.1.0.1");

        let again = taken_up(serde_json::json!(shown), now).unwrap();

        assert_eq!(
            std::mem::discriminant(&again.stage),
            std::mem::discriminant(&life.stage)
        );
        assert_eq!(again.strikes, life.strikes);
        assert_eq!(status(&set_pod("db", 0), &again, "10.1.0.1"), shown);
    }

    #[test]
    fn a_pod_no_kubelet_has_written_yet_has_no_life() {
        assert_eq!(taken_up(serde_json::json!({ "phase": "Pending" }), START), None);
    }

    #[test]
    fn a_pod_called_unready_while_its_node_was_away_is_still_ready() {
        let (life, now) = lived(Behaviour::default(), 10);
        let mut shown = serde_json::json!(status(&set_pod("db", 0), &life, "10.1.0.1"));
        for condition in shown["conditions"].as_array_mut().unwrap() {
            if condition["type"] == "Ready" {
                condition["status"] = "False".into();
            }
        }
        assert!(taken_up(shown, now).unwrap().ready.on);
    }
}
