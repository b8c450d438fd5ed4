//! Container problems that waiting does not fix (rule 12).

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus};
use stateward_core::workload::{Trouble, Unready};

use super::unready::differ_in_numbers;

/// The waiting reasons of a container that the kubelet has given up on or keeps retrying in vain. A first failed pull is not one of
/// them: the second attempt follows within seconds.
const HOPELESS: [&str; 8] = [
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ImageInspectError",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

fn ended(container: &ContainerStatus, last: &ContainerStateTerminated) -> String {
    let reason = last.reason.as_deref().unwrap_or("exited");
    format!(
        "container {} ended with {reason}, exit code {}",
        container.name, last.exit_code
    )
}

/// Why this container will not become Ready by itself.
pub(super) fn of(container: &ContainerStatus) -> Option<Trouble> {
    let state = container.state.as_ref()?;
    let last = container
        .last_state
        .as_ref()
        .and_then(|state| state.terminated.as_ref());
    if let Some(waiting) = &state.waiting {
        let reason = waiting
            .reason
            .as_deref()
            .filter(|reason| HOPELESS.contains(reason))?;
        // "Back-off restarting" says less than how the container terminated.
        let message = match last.filter(|_| reason == "CrashLoopBackOff") {
            Some(last) => ended(container, last),
            None => waiting.message.clone().unwrap_or_default(),
        };
        return Some(Trouble {
            reason: reason.to_owned(),
            message,
        });
    }
    // A crash-looping container runs for a moment between two waits and is terminated for a moment: it counts as crash-looping
    // until it is Ready. The first restart comes without a wait.
    if !container.ready && container.restart_count > 1 {
        let last = state.terminated.as_ref().or(last);
        let last = last.filter(|last| last.exit_code != 0)?;
        return Some(Trouble {
            reason: "CrashLoopBackOff".into(),
            message: ended(container, last),
        });
    }
    // A container that was OOMKilled will be killed again; Kubernetes only takes longer to call that a crash loop.
    let killed = state.terminated.as_ref().or(last);
    killed
        .filter(|ended| ended.reason.as_deref() == Some("OOMKilled") && !container.ready)
        .map(|_| Trouble {
            reason: "OOMKilled".into(),
            message: format!("container {} used more memory than its limit", container.name),
        })
}

/// The last termination of the container, if there was one.
pub(super) fn last_end(container: &ContainerStatus) -> Option<&ContainerStateTerminated> {
    let states = [container.state.as_ref(), container.last_state.as_ref()];
    states
        .into_iter()
        .flatten()
        .find_map(|state| state.terminated.as_ref())
}

/// The trouble of a pod that had this trouble `before`. Every attempt to pull an image shows `ErrImagePull` for a moment, with
/// another message or other numbers: a repeated failure is the same trouble.
pub(super) fn steadied(
    now: Option<Trouble>,
    before: Option<&Trouble>,
    unready: Option<&Unready>,
) -> Option<Trouble> {
    let pulls = |reason: &str| reason == "ImagePullBackOff";
    let before = before.filter(|before| pulls(&before.reason));
    let tries = unready.is_some_and(|unready| unready.reason == "ErrImagePull");
    match (&now, before) {
        (Some(now), Some(before))
            if pulls(&now.reason) && differ_in_numbers(&now.message, &before.message) =>
        {
            Some(before.clone())
        }
        (None, Some(before)) if tries => Some(before.clone()),
        _ => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case(json!({"waiting": {"reason": "ErrImagePull"}}), 0, None)]
    #[case(json!({"waiting": {"reason": "ImagePullBackOff"}}), 0, Some("ImagePullBackOff"))]
    #[case(json!({"running": {}}), 1, None)]
    #[case(json!({"running": {}}), 2, Some("CrashLoopBackOff"))]
    #[case(json!({"terminated": {"exitCode": 1, "reason": "Error"}}), 1, None)]
    #[case(json!({"terminated": {"exitCode": 1, "reason": "Error"}}), 2, Some("CrashLoopBackOff"))]
    fn what_waiting_does_not_mend_is_named(
        #[case] state: Value,
        #[case] restarts: i32,
        #[case] expected: Option<&str>,
    ) {
        let container = json!({
            "name": "main", "image": "", "imageID": "", "ready": false, "restartCount": restarts,
            "state": state, "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}},
        });
        let container: ContainerStatus = serde_json::from_value(container).unwrap();
        assert_eq!(
            of(&container).map(|trouble| trouble.reason),
            expected.map(str::to_owned)
        );
    }
}
