//! A cache of the AnalysisTemplates of each namespace and of the ClusterAnalysisTemplates.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::{StreamExt, future};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use serde_json::Value;
use stateward_analysis::MetricProvider;
use stateward_api::Problem;
use stateward_api::analysis::{AnalysisTemplate, AnalysisTemplateSpec, ClusterAnalysisTemplate, TemplateRef};
use stateward_client::DeserializeGuard;
use stateward_core::analysis::template;
use stateward_plugin::{Watches, words_of_watch};
use tokio::sync::{mpsc, watch};
#[cfg(test)]
use {
    stateward_analysis::{MetricQuery, ProviderError},
    stateward_core::analysis::Reply,
};

use super::jobs::AnalysisJobs;

/// All templates. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Templates {
    known: Arc<Mutex<Known>>,
    changed: mpsc::UnboundedSender<Option<String>>,
    listed: Arc<watch::Sender<Listed>>,
}

#[derive(Default)]
struct Known {
    /// By namespace, which is empty for cluster-scoped templates, and name; or why one failed to deserialize.
    templates: HashMap<Key, Result<AnalysisTemplateSpec, String>>,
    /// How often the templates of a namespace have changed.
    changes: HashMap<String, u64>,
    /// How often the templates were listed.
    lists: u64,
}

impl Known {
    fn changed(&mut self, namespace: &str) {
        *self.changes.entry(namespace.to_owned()).or_default() += 1;
    }
}

/// The version of the templates that a namespace can use. It changes with every change of theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    own: u64,
    of_all: u64,
    lists: u64,
}

/// Whether namespaced and cluster-scoped templates were listed. `None` before that, then why they could not be: an operator of some
/// namespaces may not list cluster-scoped ones. After the first list the cache stays valid.
#[derive(Default)]
struct Listed {
    own: Option<Result<(), String>>,
    of_all: Option<Result<(), String>>,
}

impl Listed {
    fn of(&self, of_all: bool) -> &Option<Result<(), String>> {
        if of_all { &self.of_all } else { &self.own }
    }
}

type Key = (String, String);

/// A kind of template.
trait Template: Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug + Send + 'static {
    fn content(self) -> AnalysisTemplateSpec;
}

impl Template for AnalysisTemplate {
    fn content(self) -> AnalysisTemplateSpec {
        self.spec
    }
}

impl Template for ClusterAnalysisTemplate {
    fn content(self) -> AnalysisTemplateSpec {
        self.spec.0
    }
}

impl Templates {
    /// An empty cache, and the receiver of the namespaces with changed templates: `None` for all.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Option<String>>) {
        let (changed, told) = mpsc::unbounded_channel();
        let templates = Self {
            known: Arc::default(),
            changed,
            listed: Arc::default(),
        };
        (templates, told)
    }

    /// Keeps the cache current. Never ends.
    pub(crate) async fn run(&self, client: Client, namespace: Option<&str>, watches: &Watches) {
        let own = self.follow(
            super::api::<DeserializeGuard<AnalysisTemplate>>(&client, namespace),
            watches,
        );
        // For an operator of some namespaces, missing access to cluster-scoped templates is not an error.
        let nobody = Watches::default();
        let whose = if namespace.is_some() { &nobody } else { watches };
        let all: Api<DeserializeGuard<ClusterAnalysisTemplate>> = Api::all(client.clone());
        future::join(own, self.follow(all, whose)).await;
    }

    /// The templates that a namespace can use.
    pub(crate) fn seen_from(&self, namespace: &str, allowed: Allowed) -> impl template::Templates + use<> {
        Seen {
            allowed,
            templates: self.clone(),
            namespace: namespace.to_owned(),
        }
    }

    /// The version of the templates that a namespace can use.
    pub(crate) fn version(&self, namespace: &str) -> Version {
        let known = self.lock();
        let of = |namespace: &str| known.changes.get(namespace).copied().unwrap_or_default();
        Version {
            own: of(namespace),
            of_all: of(""),
            lists: known.lists,
        }
    }

    /// Waits until the templates are listed, or listing has failed.
    pub(crate) async fn listed(&self) {
        let mut listed = self.listed.subscribe();
        let known = |listed: &Listed| listed.own.is_some() && listed.of_all.is_some();
        // We hold the sender, so it cannot be dropped.
        let _ = listed.wait_for(known).await;
    }

    fn list(&self, of_all: bool, came: Result<(), String>) {
        self.listed.send_modify(|listed| {
            let before = if of_all {
                &mut listed.of_all
            } else {
                &mut listed.own
            };
            if !matches!(before, Some(Ok(()))) {
                *before = Some(came);
            }
        });
        self.lock().lists += 1;
    }

    async fn follow<K: Template>(&self, api: Api<DeserializeGuard<K>>, watches: &Watches) {
        let watch = super::watch(api, watcher::Config::default(), watches);
        let mut watch = std::pin::pin!(watch);
        let of_all = K::kind(&()) == ClusterAnalysisTemplate::kind(&());
        let mut listed: HashSet<Key> = HashSet::new();
        while let Some(told) = watch.next().await {
            match told {
                Ok(watcher::Event::Init) => listed.clear(),
                Ok(watcher::Event::InitApply(template)) => {
                    listed.insert(key(&template));
                    self.put(template);
                }
                Ok(watcher::Event::InitDone) => {
                    let kept = |key: &Key| key.0.is_empty() != of_all || listed.contains(key);
                    self.lock().templates.retain(|key, _| kept(key));
                    self.list(of_all, Ok(()));
                    self.tell(None);
                }
                Ok(watcher::Event::Apply(template)) => self.put(template),
                Ok(watcher::Event::Delete(template)) => {
                    let key = key(&template);
                    let mut known = self.lock();
                    known.templates.remove(&key);
                    known.changed(&key.0);
                    drop(known);
                    self.tell(template.namespace());
                }
                // The watch has logged the error and tries again.
                Err(error) => self.list(of_all, Err(words_of_watch(&error))),
            }
        }
    }

    fn put<K: Template>(&self, template: DeserializeGuard<K>) {
        let namespace = template.namespace();
        let key = key(&template);
        let content = match template {
            DeserializeGuard::Valid(template) => Ok(template.content()),
            DeserializeGuard::Invalid(_, why) => Err(why),
        };
        let mut known = self.lock();
        known.changed(&key.0);
        known.templates.insert(key, content);
        drop(known);
        self.tell(namespace);
    }

    /// Triggers a reconcile of every rollout with an analysis.
    pub(crate) fn touch(&self) {
        self.tell(None);
    }

    fn tell(&self, namespace: Option<String>) {
        // The receiver is gone only when the operator shuts down.
        let _ = self.changed.send(namespace);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock()
    }
}

fn key<K: Resource<DynamicType = ()>>(template: &K) -> Key {
    (template.namespace().unwrap_or_default(), template.name_any())
}

/// What the metrics of templates may use.
#[derive(Clone)]
pub(crate) struct Allowed {
    /// The restrictions on their Jobs.
    pub(crate) jobs: AnalysisJobs,
    /// Queries the other metrics, and knows the addresses that it never connects to.
    pub(crate) provider: Arc<dyn MetricProvider>,
}

/// The templates that a namespace can use.
struct Seen {
    allowed: Allowed,
    templates: Templates,
    namespace: String,
}

impl Seen {
    fn key(&self, template: &TemplateRef) -> Key {
        let namespace = if template.cluster_scope {
            ""
        } else {
            self.namespace.as_str()
        };
        (namespace.to_owned(), template.template_name.clone())
    }
}

impl template::Templates for Seen {
    fn find(&self, template: &TemplateRef) -> Option<AnalysisTemplateSpec> {
        let known = self.templates.lock();
        known.templates.get(&self.key(template))?.clone().ok()
    }

    fn refuses(&self, template: &TemplateRef) -> Option<String> {
        match self.templates.listed.borrow().of(template.cluster_scope) {
            None => return Some("they were not listed yet".into()),
            Some(Err(why)) => return Some(why.clone()),
            Some(Ok(())) => {}
        }
        let known = self.templates.lock();
        known.templates.get(&self.key(template))?.clone().err()
    }

    fn refuses_job(&self, template: &Value, at: &str) -> Option<Problem> {
        self.allowed.jobs.refusal(template, at)
    }

    fn refuses_address(&self, address: &str) -> Option<String> {
        self.allowed.provider.refusal(address)
    }
}

#[cfg(test)]
impl Allowed {
    /// What an operator without flags allows, with a provider that has no data.
    pub(crate) fn for_tests() -> Self {
        struct Silent;

        #[async_trait::async_trait]
        impl MetricProvider for Silent {
            async fn query(&self, _: &MetricQuery<'_>) -> Result<Reply, ProviderError> {
                unreachable!("nothing is asked here")
            }
        }

        Self {
            jobs: AnalysisJobs::default(),
            provider: Arc::new(Silent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use template::Templates as _;

    fn template(name: &str, count: i64) -> DeserializeGuard<AnalysisTemplate> {
        let metric = json!({"name": "m", "count": count, "interval": "1m", "provider": {"prometheus": {"query": "up"}}});
        let template = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisTemplate",
            "metadata": {"name": name, "namespace": "ns"}, "spec": {"metrics": [metric]},
        });
        serde_json::from_value(template).unwrap()
    }

    fn named(name: &str, cluster_scope: bool) -> TemplateRef {
        TemplateRef {
            template_name: name.into(),
            cluster_scope,
        }
    }

    #[test]
    fn a_template_that_cannot_be_read_is_refused_by_name_and_hides_no_other() {
        let (templates, _told) = Templates::new();
        templates.put(template("good", 3));
        templates.put(template("bad", 3_000_000_000));
        templates.list(false, Ok(()));
        let seen = templates.seen_from("ns", Allowed::for_tests());
        assert!(seen.find(&named("good", false)).is_some());
        assert_eq!(seen.refuses(&named("good", false)), None);
        let why = seen.refuses(&named("bad", false)).unwrap();
        assert!(why.contains("3000000000"), "{why}");
        assert_eq!(seen.refuses(&named("none", false)), None);
    }

    #[test]
    fn nothing_is_missing_before_there_was_a_list() {
        let (templates, _told) = Templates::new();
        let seen = templates.seen_from("ns", Allowed::for_tests());
        let refuses = |of_all: bool| seen.refuses(&named("x", of_all)).unwrap_or_default();
        assert_eq!(refuses(false), "they were not listed yet");
        templates.list(false, Err("forbidden".into()));
        assert_eq!(
            (refuses(false), refuses(true)),
            ("forbidden".into(), "they were not listed yet".into())
        );
        templates.list(false, Ok(()));
        templates.list(false, Err("the connection broke".into()));
        assert_eq!(refuses(false), "", "what was listed stays known");
    }

    #[test]
    fn a_version_changes_with_what_a_namespace_sees_and_with_nothing_else() {
        let (templates, _told) = Templates::new();
        let versions = || ["ns", "other"].map(|namespace| templates.version(namespace));
        let before = versions();
        templates.put(template("good", 3));
        let after = versions();
        assert_ne!(after[0], before[0]);
        assert_eq!(after[1], before[1]);
        templates.list(true, Ok(()));
        assert!(versions().iter().zip(after).all(|(now, then)| *now != then));
    }
}
