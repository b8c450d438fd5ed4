//! Containers that waiting does not mend (rule 12).

use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus};
use stateward_core::workload::Trouble;

/// What the kubelet calls a container that it has given up on, or keeps trying in vain. A first failed pull is not yet one
/// of them: the second try follows in seconds.
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

/// Why this container will not get well by itself.
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
        // "Back-off restarting" says less than what ended the container.
        let message = match last.filter(|_| reason == "CrashLoopBackOff") {
            Some(last) => ended(container, last),
            None => waiting.message.clone().unwrap_or_default(),
        };
        return Some(Trouble {
            reason: reason.to_owned(),
            message,
        });
    }
    // A crash loop runs for a moment between two waits: it is one until it is Ready. The first restart comes without a wait.
    if state.running.is_some() && !container.ready && container.restart_count > 1 {
        let last = last.filter(|last| last.exit_code != 0)?;
        return Some(Trouble {
            reason: "CrashLoopBackOff".into(),
            message: ended(container, last),
        });
    }
    // One that runs again after it was killed for its memory is killed again; the loop only takes longer to be named.
    let killed = state.terminated.as_ref().or(last);
    killed
        .filter(|ended| ended.reason.as_deref() == Some("OOMKilled") && !container.ready)
        .map(|_| Trouble {
            reason: "OOMKilled".into(),
            message: format!("container {} used more memory than its limit", container.name),
        })
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
