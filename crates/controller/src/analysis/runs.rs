//! The AnalysisRuns, by the rollout that owns them.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use stateward_api::analysis::AnalysisRun;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_core::world::Run;
use stateward_plugin::words_of_watch;
use tokio::sync::watch;

use crate::turn::version;

/// A cache of all runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Runs {
    inner: Arc<Mutex<Inner>>,
    /// `None` before the first list; then the result of listing.
    listed: Arc<watch::Sender<Option<Result<(), String>>>>,
}

#[derive(Default)]
struct Inner {
    /// By the namespace and the UID of their rollout, then by name. The UID alone proves nothing: a run in another namespace can
    /// name any owner.
    runs: HashMap<(String, String), BTreeMap<String, Known>>,
    /// By UID, while a list is in progress.
    seen: HashSet<String>,
}

struct Known {
    version: u64,
    /// When it was created, in whole seconds, and when it started.
    age: (Option<Timestamp>, Option<Timestamp>),
    run: Run,
}

/// The rollout that owns a run; it is in the run's namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Owner {
    pub(crate) fn of(object: &RolloutPlugin) -> Self {
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
        }
    }

    fn key(&self) -> (String, String) {
        (self.namespace.clone(), self.uid.clone())
    }
}

/// The rollout that owns a run, if one does.
pub(crate) fn owner(run: &AnalysisRun) -> Option<Owner> {
    let owners = run.metadata.owner_references.iter().flatten();
    let group = RolloutPlugin::group(&());
    let mut rollouts = owners.filter(|owner| {
        let owners_group = owner.api_version.split_once('/').map(|(group, _)| group);
        owner.controller == Some(true)
            && owner.kind == RolloutPlugin::kind(&())
            && owners_group == Some(&*group)
    });
    rollouts.next().map(|owner| Owner {
        namespace: run.namespace().unwrap_or_default(),
        name: owner.name.clone(),
        uid: owner.uid.clone(),
    })
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            inner: Arc::default(),
            listed: Arc::new(watch::Sender::new(None)),
        }
    }
}

impl Runs {
    /// The runs of a rollout, oldest first.
    pub(crate) fn of(&self, rollout: &Owner) -> Vec<Run> {
        let inner = self.lock();
        let mut runs: Vec<_> = inner
            .runs
            .get(&rollout.key())
            .into_iter()
            .flat_map(BTreeMap::values)
            .collect();
        runs.sort_by_key(|known| (known.age, &known.run.name));
        runs.into_iter().map(|known| known.run.clone()).collect()
    }

    /// Stores a run from a watch or from a response. An older version changes nothing, and a run that is being deleted is removed,
    /// however long a finalizer keeps it.
    pub(crate) fn put(&self, run: &AnalysisRun) {
        let Some(owner) = owner(run) else { return };
        if run.metadata.deletion_timestamp.is_some() {
            return self.take(&owner, &run.name_any());
        }
        let known = Known {
            version: version(run),
            age: (
                run.metadata.creation_timestamp.as_ref().map(|time| time.0),
                run.status.as_ref().and_then(|status| status.started_at),
            ),
            run: read(run),
        };
        let mut inner = self.lock();
        let runs = inner.runs.entry(owner.key()).or_default();
        let newer = runs
            .get(&known.run.name)
            .is_some_and(|before| before.version > known.version);
        if !newer {
            runs.insert(known.run.name.clone(), known);
        }
    }

    /// Removes a run.
    pub(crate) fn take(&self, rollout: &Owner, name: &str) {
        let mut inner = self.lock();
        if let Entry::Occupied(mut runs) = inner.runs.entry(rollout.key()) {
            runs.get_mut().remove(name);
            if runs.get().is_empty() {
                runs.remove();
            }
        }
    }

    /// Handles a watch event.
    pub(crate) fn note(&self, told: &watcher::Result<watcher::Event<AnalysisRun>>) {
        match told {
            Ok(watcher::Event::Init) => self.lock().seen.clear(),
            Ok(watcher::Event::InitApply(run)) => {
                self.lock().seen.insert(run.uid().unwrap_or_default());
                self.put(run);
            }
            Ok(watcher::Event::InitDone) => {
                let mut inner = self.lock();
                let Inner { runs, seen } = &mut *inner;
                for of_one in runs.values_mut() {
                    of_one.retain(|_, known| seen.contains(&known.run.uid));
                }
                runs.retain(|_, of_one| !of_one.is_empty());
                drop(inner);
                self.listed.send_replace(Some(Ok(())));
            }
            Ok(watcher::Event::Apply(run)) => self.put(run),
            Ok(watcher::Event::Delete(run)) => {
                if let Some(owner) = owner(run) {
                    self.take(&owner, &run.name_any());
                }
            }
            Err(error) => {
                // After the first list the cache stays valid.
                self.listed.send_if_modified(|listed| {
                    let first = listed.as_ref().is_none_or(Result::is_err);
                    if first {
                        *listed = Some(Err(words_of_watch(error)));
                    }
                    first
                });
            }
        }
    }

    /// Waits until the runs are listed, or listing has failed.
    pub(crate) async fn listed(&self) {
        let mut listed = self.listed.subscribe();
        // We hold the sender, so it cannot be dropped.
        let _ = listed.wait_for(Option::is_some).await;
    }

    /// Why analysis is unavailable, if it is.
    pub(crate) fn unavailable(&self) -> Option<String> {
        match &*self.listed.borrow() {
            Some(Ok(())) => None,
            Some(Err(why)) => Some(why.clone()),
            None => Some("they were not listed yet".into()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

fn read(run: &AnalysisRun) -> Run {
    let status = run.status.clone().unwrap_or_default();
    Run {
        name: run.name_any(),
        title: format!("analysis {}", run.name_any()),
        uid: run.uid().unwrap_or_default(),
        phase: status.phase,
        measured: stateward_core::analysis::run::is_measured(&status),
        message: status.message,
        began: None,
        ending: run.spec.terminate,
        ended: status.completed_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};
    use stateward_api::analysis::Phase;

    fn run(name: &str, version: &str, phase: &str) -> AnalysisRun {
        changed_run(name, version, phase, &json!({}))
    }

    fn changed_run(name: &str, version: &str, phase: &str, change: &Value) -> AnalysisRun {
        let mut run = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
            "metadata": {
                "name": name, "namespace": "ns", "uid": format!("uid-{name}"), "resourceVersion": version,
                "ownerReferences": [{
                    "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPlugin", "name": "db", "uid": "us", "controller": true,
                }],
            },
            "spec": {"metrics": []},
            "status": {"phase": phase},
        });
        let owner = change.get("owner").cloned().unwrap_or_default();
        for (key, value) in owner.as_object().into_iter().flatten() {
            run["metadata"]["ownerReferences"][0][key] = value.clone();
        }
        for (key, value) in change["metadata"].as_object().into_iter().flatten() {
            run["metadata"][key] = value.clone();
        }
        serde_json::from_value(run).unwrap()
    }

    fn us() -> Owner {
        Owner {
            namespace: "ns".into(),
            name: "db".into(),
            uid: "us".into(),
        }
    }

    fn phases(runs: &Runs) -> Vec<(String, Phase)> {
        runs.of(&us())
            .into_iter()
            .map(|run| (run.name, run.phase))
            .collect()
    }

    /// Rule 16
    #[test]
    fn an_older_view_of_a_run_changes_nothing() {
        let runs = Runs::default();
        runs.put(&run("a", "9", "Failed"));
        runs.put(&run("a", "8", "Running"));
        assert_eq!(phases(&runs), [("a".to_owned(), Phase::Failed)]);
    }

    /// Every field that the creator of a run can forge.
    #[rstest]
    #[case::of_another_namespace(json!({"metadata": {"namespace": "other", "uid": "forged"}}))]
    #[case::of_another_group(json!({"owner": {"apiVersion": "example.com/v1"}}))]
    #[case::of_another_kind(json!({"owner": {"kind": "Rollout"}}))]
    #[case::not_controlled(json!({"owner": {"controller": false}}))]
    #[case::kept_by_a_finalizer(json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))]
    fn a_run_that_is_not_ours_answers_no_gate(#[case] change: Value) {
        let runs = Runs::default();
        runs.put(&changed_run("a", "9", "Successful", &change));
        assert_eq!(phases(&runs), []);
        runs.put(&run("b", "1", "Running"));
        runs.note(&Ok(watcher::Event::Apply(changed_run(
            "b",
            "9",
            "Successful",
            &change,
        ))));
        let kept = change["metadata"].get("deletionTimestamp").is_none();
        let expected = [("b".to_owned(), Phase::Running)];
        assert_eq!(phases(&runs), &expected[..usize::from(kept)]);
        runs.note(&Ok(watcher::Event::Delete(changed_run(
            "b",
            "9",
            "Successful",
            &change,
        ))));
        assert_eq!(phases(&runs), &expected[..usize::from(kept)]);
    }

    #[test]
    fn what_a_new_list_does_not_show_is_gone() {
        let runs = Runs::default();
        assert!(runs.unavailable().is_some());
        runs.put(&run("a", "1", "Running"));
        runs.note(&Ok(watcher::Event::Init));
        runs.note(&Ok(watcher::Event::InitApply(run("b", "2", "Running"))));
        runs.note(&Ok(watcher::Event::InitDone));
        assert_eq!(phases(&runs), [("b".to_owned(), Phase::Running)]);
        assert!(runs.unavailable().is_none());
    }
}
