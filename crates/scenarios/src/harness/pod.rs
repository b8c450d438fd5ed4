//! A pod as scenarios see it.

use std::fmt;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

/// The fields of a pod that scenarios look at. Two rows are equal if none of these fields changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRow {
    /// The pod's name.
    pub name: String,
    /// The ordinal at the end of its name.
    pub ordinal: Option<u32>,
    /// Its UID: a different UID is a different pod.
    pub uid: String,
    /// The tag of its first container's image.
    pub image: String,
    /// Its `controller-revision-hash` label.
    pub revision: String,
    /// Its phase.
    pub phase: String,
    /// Whether its Ready condition is true.
    pub ready: bool,
    /// Whether it is being deleted.
    pub terminating: bool,
    /// The restart count of its first container.
    pub restarts: i32,
    /// Why its first container is waiting, if it is.
    pub waiting: Option<String>,
}

impl PodRow {
    /// Reads the row from a pod.
    pub fn of(pod: &Pod) -> Self {
        let status = pod.status.as_ref();
        let container = status.and_then(|status| status.container_statuses.as_ref()?.first());
        let image = pod
            .spec
            .as_ref()
            .and_then(|spec| spec.containers.first()?.image.as_deref())
            .unwrap_or_default();
        let name = pod.name_any();
        Self {
            ordinal: name
                .rsplit_once('-')
                .and_then(|(_, ordinal)| ordinal.parse().ok()),
            name,
            uid: pod.uid().unwrap_or_default(),
            image: image.rsplit_once(':').map_or(image, |(_, tag)| tag).to_owned(),
            revision: pod
                .labels()
                .get("controller-revision-hash")
                .cloned()
                .unwrap_or_default(),
            phase: status.and_then(|status| status.phase.clone()).unwrap_or_default(),
            ready: status
                .and_then(|status| status.conditions.as_ref())
                .is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True")),
            terminating: pod.metadata.deletion_timestamp.is_some(),
            restarts: container.map_or(0, |container| container.restart_count),
            waiting: container
                .and_then(|container| container.state.as_ref()?.waiting.as_ref()?.reason.clone()),
        }
    }
}

impl fmt::Display for PodRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.name, self.image, self.phase)?;
        if self.ready {
            f.write_str(" Ready")?;
        }
        if let Some(reason) = &self.waiting {
            write!(f, " ({reason}, {} restarts)", self.restarts)?;
        }
        if self.terminating {
            f.write_str(" terminating")?;
        }
        Ok(())
    }
}
