//! Containers that waiting does not mend (rule 12).

use k8s_openapi::api::core::v1::ContainerStatus;
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
            Some(last) => {
                let reason = last.reason.as_deref().unwrap_or("exited");
                format!(
                    "container {} ended with {reason}, exit code {}",
                    container.name, last.exit_code
                )
            }
            None => waiting.message.clone().unwrap_or_default(),
        };
        return Some(Trouble {
            reason: reason.to_owned(),
            message,
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
