//! What there is to measure: the AnalysisTemplates of each namespace, and those of all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{StreamExt, future};
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use stateward_api::analysis::{AnalysisTemplate, AnalysisTemplateSpec, ClusterAnalysisTemplate, TemplateRef};
use stateward_core::analysis::template;
use stateward_plugin::Watches;
use tokio::sync::mpsc;

/// All templates. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Templates {
    /// By namespace, which is empty for those of all, and name.
    known: Arc<Mutex<HashMap<Key, AnalysisTemplateSpec>>>,
    changed: mpsc::UnboundedSender<Option<String>>,
    /// Why those of all namespaces are not seen: an operator of some namespaces may not look at them.
    unseen: Arc<Mutex<Option<String>>>,
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
    /// None yet, and where it is told in which namespace some have changed: `None` for all.
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Option<String>>) {
        let (changed, told) = mpsc::unbounded_channel();
        let templates = Self {
            known: Arc::default(),
            changed,
            unseen: Arc::new(Mutex::new(Some("they were not listed yet".into()))),
        };
        (templates, told)
    }

    /// Keeps them current. Never ends.
    pub(crate) async fn run(&self, client: Client, namespace: Option<&str>, watches: &Watches) {
        let own = self.follow(super::api::<AnalysisTemplate>(&client, namespace), watches);
        // To those who look after some namespaces it is no fault that they see no more.
        let nobody = Watches::default();
        let whose = if namespace.is_some() { &nobody } else { watches };
        let all: Api<ClusterAnalysisTemplate> = Api::all(client.clone());
        future::join(own, self.follow(all, whose)).await;
    }

    /// Those that a namespace sees.
    pub(crate) fn seen_from(&self, namespace: &str) -> impl template::Templates + use<> {
        Seen {
            templates: self.clone(),
            namespace: namespace.to_owned(),
        }
    }

    async fn follow<K: Template>(&self, api: Api<K>, watches: &Watches) {
        let watch = super::watch(api, watcher::Config::default(), watches);
        let mut watch = std::pin::pin!(watch);
        let of_all = K::kind(&()) == ClusterAnalysisTemplate::kind(&());
        let mut listed: Vec<Key> = Vec::new();
        while let Some(told) = watch.next().await {
            match told {
                Ok(watcher::Event::Init) => listed.clear(),
                Ok(watcher::Event::InitApply(template)) => {
                    listed.push(key(&template));
                    self.put(template);
                }
                Ok(watcher::Event::InitDone) => {
                    if of_all {
                        *self.unseen.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    }
                    self.lock()
                        .retain(|key, _| key.0.is_empty() != of_all || listed.contains(key));
                    self.tell(None);
                }
                Ok(watcher::Event::Apply(template)) => self.put(template),
                Ok(watcher::Event::Delete(template)) => {
                    self.lock().remove(&key(&template));
                    self.tell(template.namespace());
                }
                // Noted by whoever made the watch; it is tried again.
                Err(error) => {
                    let mut unseen = self.unseen.lock().unwrap_or_else(PoisonError::into_inner);
                    if of_all && let Some(why) = unseen.as_mut() {
                        *why = super::why(&error);
                    }
                }
            }
        }
    }

    fn put<K: Template>(&self, template: K) {
        let namespace = template.namespace();
        self.lock().insert(key(&template), template.content());
        self.tell(namespace);
    }

    /// Has every rollout look again that has an analysis.
    pub(crate) fn touch(&self) {
        self.tell(None);
    }

    fn tell(&self, namespace: Option<String>) {
        // Nobody listens any more when the operator is on its way out.
        let _ = self.changed.send(namespace);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, AnalysisTemplateSpec>> {
        // Every change above is complete before anything can panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key<K: Resource<DynamicType = ()>>(template: &K) -> Key {
    (template.namespace().unwrap_or_default(), template.name_any())
}

/// The templates that a namespace sees.
struct Seen {
    templates: Templates,
    namespace: String,
}

impl template::Templates for Seen {
    fn find(&self, template: &TemplateRef) -> Option<AnalysisTemplateSpec> {
        let namespace = if template.cluster_scope {
            ""
        } else {
            self.namespace.as_str()
        };
        let key = (namespace.to_owned(), template.template_name.clone());
        self.templates.lock().get(&key).cloned()
    }

    fn refuses(&self, template: &TemplateRef) -> Option<String> {
        let unseen = self
            .templates
            .unseen
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        unseen.clone().filter(|_| template.cluster_scope)
    }
}
