//! Changes that the operator has not seen yet. Until it has, its status describes an older state, and every verb says so.

use std::collections::HashMap;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use stateward_client::Objects;

use crate::rollout::Rollout;
use crate::session::Session;
use crate::stage::Stage;
use crate::verbs::status::{asks_for_another, is_ahead, unseen_change, untaken, waiting_command};

/// The phase while the operator has not seen the latest change.
pub(crate) const PROGRESSING: &str = "Progressing";

/// What the operator has not seen yet, as text: the object, its latest spec, a command, or the template of its StatefulSet.
pub(crate) fn unseen(stage: &Stage<'_>, set: Option<&StatefulSet>) -> Option<String> {
    let status = &stage.status;
    if status.phase.is_empty() {
        return Some(stage.message().to_owned());
    }
    if status.observed_generation != stage.object.metadata.generation {
        return Some("the operator has not seen the latest spec yet".into());
    }
    if let Some(verb) = waiting_command(status) {
        return Some(untaken(verb));
    }
    let ended = match stage.phase() {
        "Successful" => true,
        "Failed" => status.returning.is_none(),
        _ => false,
    };
    let ahead = |set: &StatefulSet| asks_for_another(set, stage) || ended && is_ahead(set, stage);
    set.is_some_and(ahead).then(|| unseen_change(stage.object))
}

/// The phase, and what the operator has not seen yet.
pub(crate) fn phase<'s>(stage: &'s Stage<'_>, set: Option<&StatefulSet>) -> (&'s str, Option<String>) {
    let unseen = unseen(stage, set);
    (unseen.as_ref().map_or(stage.phase(), |_| PROGRESSING), unseen)
}

/// The StatefulSets of rollouts, as far as they can be read.
#[derive(Debug, Default)]
pub(crate) struct Sets(HashMap<(String, String), StatefulSet>);

impl Sets {
    /// The StatefulSet of a rollout.
    pub(crate) fn of(&self, rollout: &Rollout) -> Option<&StatefulSet> {
        if rollout.workload_kind != "StatefulSet" {
            return None;
        }
        let namespace = rollout.namespace().unwrap_or_default();
        self.0.get(&(namespace, rollout.workload.clone()))
    }
}

impl FromIterator<StatefulSet> for Sets {
    fn from_iter<I: IntoIterator<Item = StatefulSet>>(sets: I) -> Self {
        let key = |set: &StatefulSet| (set.namespace().unwrap_or_default(), set.name_any());
        Self(sets.into_iter().map(|set| (key(&set), set)).collect())
    }
}

impl Session<'_> {
    /// The StatefulSets of these rollouts in the session's namespace.
    pub(crate) async fn sets_of(&self, rollouts: &[Rollout]) -> Sets {
        let sets = join_all(rollouts.iter().map(|rollout| self.set(rollout))).await;
        sets.into_iter().filter_map(|set| set.ok().flatten()).collect()
    }

    /// All StatefulSets of the namespace, or of all namespaces.
    pub(crate) async fn all_sets(&self, everywhere: bool) -> Sets {
        let sets: Api<StatefulSet> = if everywhere {
            Api::all(self.client.clone())
        } else {
            self.sets()
        };
        let listed = Objects::from(sets).list_guarded(&ListParams::default()).await;
        // Without read access, only the rollouts' own data is shown.
        let listed = listed.unwrap_or_default();
        listed
            .into_iter()
            .filter_map(|set| match set {
                stateward_client::DeserializeGuard::Valid(set) => Some(set),
                stateward_client::DeserializeGuard::Invalid(..) => None,
            })
            .collect()
    }
}
