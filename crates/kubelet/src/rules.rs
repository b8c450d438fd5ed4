//! The rules for pods' behaviour: an ordered list that can change while the kubelet runs.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tokio::sync::watch;

use crate::behaviour::{Behaviour, ClaimBehaviour};
use crate::pod::Pod;

/// The pods that a rule is for. All given criteria must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    namespace: Option<String>,
    pod: Option<String>,
    set: Option<String>,
    job: Option<String>,
    ordinals: Option<RangeInclusive<u32>>,
    revision: Option<String>,
    image: Option<String>,
}

impl Match {
    /// Every pod.
    pub fn any() -> Self {
        Self::default()
    }

    /// Pods of the StatefulSet `name`.
    pub fn set(name: impl Into<String>) -> Self {
        Self {
            set: Some(name.into()),
            ..Self::default()
        }
    }

    /// Pods of the Job `name`.
    pub fn job(name: impl Into<String>) -> Self {
        Self {
            job: Some(name.into()),
            ..Self::default()
        }
    }

    /// The pod `name`.
    pub fn pod(name: impl Into<String>) -> Self {
        Self {
            pod: Some(name.into()),
            ..Self::default()
        }
    }

    /// Pods with a container of this image. The behaviour applies to that container; the others stay healthy.
    pub fn image(image: impl Into<String>) -> Self {
        Self::any().with_image(image)
    }

    /// Only pods with a container of this image, as in [`Match::image`].
    pub fn with_image(self, image: impl Into<String>) -> Self {
        Self {
            image: Some(image.into()),
            ..self
        }
    }

    /// Only in this namespace.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self {
            namespace: Some(namespace.into()),
            ..self
        }
    }

    /// Only the StatefulSet pod with this ordinal.
    pub fn ordinal(self, ordinal: u32) -> Self {
        self.ordinals(ordinal..=ordinal)
    }

    /// Only StatefulSet pods with these ordinals.
    pub fn ordinals(self, ordinals: RangeInclusive<u32>) -> Self {
        Self {
            ordinals: Some(ordinals),
            ..self
        }
    }

    /// Only pods of this revision (label `controller-revision-hash`).
    pub fn revision(self, revision: impl Into<String>) -> Self {
        Self {
            revision: Some(revision.into()),
            ..self
        }
    }

    /// The index of the container the behaviour is for, if the pod matches.
    fn container(&self, pod: &Pod) -> Option<usize> {
        // Destructured in full, so that a new field cannot be forgotten here.
        let Self {
            namespace,
            pod: name,
            set,
            job,
            ordinals,
            revision,
            image,
        } = self;
        let same =
            |wanted: &Option<String>, seen: Option<&str>| wanted.is_none() || wanted.as_deref() == seen;

        let matches = same(namespace, Some(&pod.key.namespace))
            && same(name, Some(&pod.key.name))
            && same(set, pod.owner.set())
            && same(job, pod.owner.job())
            && same(revision, pod.revision.as_deref())
            && ordinals
                .as_ref()
                .is_none_or(|wanted| pod.ordinal.is_some_and(|seen| wanted.contains(&seen)));
        match image {
            _ if !matches => None,
            None => Some(pod.last_to_be_ready()),
            Some(image) => pod
                .containers
                .iter()
                .position(|container| container.image == *image),
        }
    }
}

/// A behaviour and the container it applies to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Part {
    pub(crate) behaviour: Behaviour,
    pub(crate) container: usize,
}

/// The rules at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pods: Vec<(Match, Behaviour)>,
    pub(crate) claims: ClaimBehaviour,
}

impl Rules {
    /// The behaviour of `pod`: the last rule that matches, or the default.
    pub(crate) fn part(&self, pod: &Pod) -> Part {
        let last = self.pods.iter().rev().find_map(|(rule, behaviour)| {
            rule.container(pod).map(|container| Part {
                behaviour: behaviour.clone(),
                container,
            })
        });
        last.unwrap_or_else(|| Part {
            behaviour: Behaviour::default(),
            container: pod.last_to_be_ready(),
        })
    }
}

/// The rules for the behaviour of pods. Cheap to clone; clones share the rules.
///
/// Later rules win over earlier ones, as a whole: behaviours are not merged. A change takes effect at once, also on running pods: it can
/// make an unready pod Ready and a Ready one unready.
#[derive(Clone, Debug)]
pub struct Behaviours(Arc<watch::Sender<Rules>>);

impl Default for Behaviours {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Rules::default())))
    }
}

impl Behaviours {
    /// Adds a rule that wins over all before it. A rule for exactly the same pods is replaced.
    pub fn program(&self, pods: Match, behaviour: Behaviour) -> &Self {
        self.0.send_modify(|rules| {
            rules.pods.retain(|(earlier, _)| *earlier != pods);
            rules.pods.push((pods, behaviour));
        });
        self
    }

    /// Removes the rule for exactly these pods.
    pub fn forget(&self, pods: &Match) -> &Self {
        self.0
            .send_modify(|rules| rules.pods.retain(|(earlier, _)| earlier != pods));
        self
    }

    /// Removes all rules: every pod and claim behaves as by default.
    pub fn clear(&self) -> &Self {
        self.0.send_modify(|rules| *rules = Rules::default());
        self
    }

    /// Sets what happens to claims that wait for a volume.
    pub fn claims(&self, behaviour: ClaimBehaviour) -> &Self {
        self.0.send_modify(|rules| rules.claims = behaviour);
        self
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<Rules> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;

    use super::*;
    use crate::pod::fixtures::{job_pod, set_pod};

    #[rstest]
    #[case::any(Match::any(), Some(0))]
    #[case::set(Match::set("db"), Some(0))]
    #[case::other_set(Match::set("web"), None)]
    #[case::ordinal(Match::set("db").ordinal(3), Some(0))]
    #[case::other_ordinal(Match::set("db").ordinal(2), None)]
    #[case::ordinals(Match::any().ordinals(2..=5), Some(0))]
    #[case::revision(Match::any().revision("db-1"), Some(0))]
    #[case::other_revision(Match::any().revision("db-2"), None)]
    #[case::image(Match::image("db:v1"), Some(0))]
    #[case::sidecar_image(Match::image("proxy:v1"), Some(1))]
    #[case::other_image(Match::image("db:v2"), None)]
    #[case::all_must_hold(Match::set("db").with_image("db:v2"), None)]
    #[case::pod(Match::pod("db-3"), Some(0))]
    #[case::namespace(Match::any().namespace("ns"), Some(0))]
    #[case::other_namespace(Match::any().namespace("other"), None)]
    #[case::job(Match::job("db"), None)]
    fn a_rule_is_for_the_pods_it_names(#[case] rule: Match, #[case] container: Option<usize>) {
        assert_eq!(rule.container(&set_pod("db", 3)), container);
    }

    #[test]
    fn the_last_matching_rule_wins() {
        let behaviours = Behaviours::default();
        behaviours
            .program(Match::set("db"), Behaviour::never_ready())
            .program(Match::set("db").ordinal(3), Behaviour::crash_loop())
            .program(Match::job("migrate"), Behaviour::exits(1, Duration::ZERO));
        let rules = behaviours.subscribe().borrow().clone();

        assert_eq!(rules.part(&set_pod("db", 3)).behaviour, Behaviour::crash_loop());
        assert_eq!(rules.part(&set_pod("db", 2)).behaviour, Behaviour::never_ready());
        assert_eq!(rules.part(&set_pod("web", 2)).behaviour, Behaviour::default());
        assert_eq!(
            rules.part(&job_pod("migrate")).behaviour,
            Behaviour::exits(1, Duration::ZERO)
        );
    }

    #[test]
    fn a_rule_for_the_same_pods_replaces_the_earlier_one_and_moves_to_the_end() {
        let behaviours = Behaviours::default();
        behaviours
            .program(Match::set("db"), Behaviour::never_ready())
            .program(Match::any(), Behaviour::crash_loop())
            .program(Match::set("db"), Behaviour::oom_killed());

        let rules = behaviours.subscribe().borrow().clone();
        assert_eq!(rules.pods.len(), 2);
        assert_eq!(rules.part(&set_pod("db", 0)).behaviour, Behaviour::oom_killed());

        behaviours.forget(&Match::set("db"));
        let rules = behaviours.subscribe().borrow().clone();
        assert_eq!(rules.part(&set_pod("db", 0)).behaviour, Behaviour::crash_loop());
    }
}
