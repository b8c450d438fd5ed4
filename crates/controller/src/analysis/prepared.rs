//! Runs as they are measured: args filled in, patterns and conditions checked, once for every spec.
//!
//! A run has a turn for every measurement, and preparing it costs what its author likes within the limits of the core. It is
//! done where it does not hold up other work: on the threads for blocking work, a few at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;
use stateward_api::Problem;
use stateward_api::analysis::{AnalysisRun, AnalysisRunSpec};
use stateward_core::analysis::template;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;

/// How many runs are prepared at the same time.
const AT_ONCE: usize = 2;

/// A run that is ready to be measured, or what is wrong with it.
pub(crate) type Ready = Result<AnalysisRunSpec, Vec<Problem>>;

struct Prepared {
    /// As it was written.
    spec: AnalysisRunSpec,
    ready: Arc<Ready>,
}

/// What was prepared, by the namespace and UID of the run.
pub(crate) struct Preparations {
    prepared: Mutex<HashMap<(String, String), Prepared>>,
    turns: Semaphore,
}

impl Default for Preparations {
    fn default() -> Self {
        Self {
            prepared: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
        }
    }
}

impl Preparations {
    /// The run, ready to be measured.
    pub(crate) async fn of(&self, run: &AnalysisRun) -> Arc<Ready> {
        if let Some(ready) = self.known(run) {
            return ready;
        }
        let ready = Arc::new(self.prepare(run.spec.clone()).await);
        let prepared = Prepared {
            spec: run.spec.clone(),
            ready: ready.clone(),
        };
        self.lock().insert(key(run), prepared);
        ready
    }

    /// Forgets a run that is over or gone.
    pub(crate) fn forget(&self, run: &AnalysisRun) {
        self.lock().remove(&key(run));
    }

    fn known(&self, run: &AnalysisRun) -> Option<Arc<Ready>> {
        let prepared = self.lock();
        let known = prepared.get(&key(run)).filter(|known| known.spec == run.spec);
        known.map(|known| known.ready.clone())
    }

    async fn prepare(&self, spec: AnalysisRunSpec) -> Ready {
        // In virtual time there is one thread, and the order of things is the same every time.
        if Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread {
            return template::filled(&spec);
        }
        // It is never closed.
        let _turn = self.turns.acquire().await;
        let prepared = tokio::task::spawn_blocking(move || template::filled(&spec)).await;
        prepared.unwrap_or_else(|error| {
            Err(vec![Problem {
                field: "spec".into(),
                message: format!("cannot be prepared: {error}"),
            }])
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), Prepared>> {
        // Every change above is complete before anything can panic.
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(run: &AnalysisRun) -> (String, String) {
    (run.namespace().unwrap_or_default(), run.uid().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(namespace: &str, condition: &str) -> AnalysisRun {
        serde_json::from_value(json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
            "metadata": {"name": "run", "namespace": namespace, "uid": "1"},
            "spec": {"metrics": [
                {"name": "errors", "successCondition": condition, "provider": {"prometheus": {"query": "up"}}},
            ]},
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn a_run_is_prepared_once_for_every_spec_and_namespace() {
        let preparations = Preparations::default();
        let first = preparations.of(&run("a", "result[0] > 1")).await;
        assert!(first.is_ok());
        let again = preparations.of(&run("a", "result[0] > 1")).await;
        assert!(Arc::ptr_eq(&first, &again), "it was prepared again");
        let elsewhere = preparations.of(&run("b", "result[0] >")).await;
        assert!(elsewhere.is_err());
        let again = preparations.of(&run("a", "result[0] > 1")).await;
        assert!(
            Arc::ptr_eq(&first, &again),
            "another namespace's run took its place"
        );
        let edited = preparations.of(&run("a", "result[0] > 2")).await;
        assert!(!Arc::ptr_eq(&first, &edited));
        preparations.forget(&run("a", ""));
        preparations.forget(&run("b", ""));
        assert!(preparations.lock().is_empty());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn preparing_leaves_the_workers_to_others() {
        let preparations = Preparations::default();
        let ready = preparations.of(&run("a", "result[0] > 1")).await;
        assert!(ready.is_ok());
    }
}
