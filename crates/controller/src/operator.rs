//! What runs, and how the parts are wired.

use std::collections::HashSet;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, future};
use kube::runtime::reflector::ObjectRef;
use kube::runtime::{Controller, WatchStreamExt, controller, reflector, watcher};
use kube::{Api, Client, ResourceExt};
use stateward_analysis::http::Http;
use stateward_analysis::{Ask, Egress, KubeSecrets, Providers, Secrets};
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_clock::Clock;
use stateward_core::rolloutplugin::has_analysis;
use stateward_plugin::ResourcePlugin;
use stateward_plugin::statefulset::{Caches, Changed, StatefulSets};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::analysis;
use crate::analysis::asks::{Asker, Asks};
use crate::analysis::measure::{Lab, measure};
use crate::analysis::runs::Runs;
use crate::analysis::start::Starter;
use crate::analysis::templates::Templates;
use crate::error::Error;
use crate::index::{Gone, Index};
use crate::lenient::{Lenient, readable};
use crate::metrics::Metrics;
use crate::reconcile::{Context, reconcile, retry};

/// How many objects may have their turn at the same time.
const AT_ONCE: u16 = 16;

/// What an operator is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The only time it knows.
    pub clock: Clock,
    /// The namespaces it looks after; all, if there are none.
    pub namespaces: Vec<String>,
}

/// The operator: rolls what RolloutPlugins ask for, until it is dropped.
pub struct Operator {
    client: Client,
    options: Options,
    metrics: Metrics,
    providers: Arc<dyn Ask>,
    secrets: Arc<dyn Secrets>,
}

impl Operator {
    /// An operator that works through `client`.
    pub fn new(client: Client, options: Options) -> Self {
        let secrets: Arc<dyn Secrets> = Arc::new(KubeSecrets(client.clone()));
        Self {
            providers: Arc::new(Providers::new(
                Http::new(Egress::default()),
                KubeSecrets(client.clone()),
            )),
            secrets,
            client,
            options,
            metrics: Metrics::default(),
        }
    }

    /// Asks these about metrics.
    pub fn providers(mut self, providers: Arc<dyn Ask>) -> Self {
        self.providers = providers;
        self
    }

    /// Counts what it does in `metrics`.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Runs. Never ends by itself.
    ///
    /// Each namespace has its own watches and caches: a list that one of them starts anew says nothing about the others.
    pub async fn run(self) {
        let namespaces = match self.options.namespaces.as_slice() {
            [] => vec![None],
            some => some.iter().map(Some).collect(),
        };
        future::join_all(namespaces.into_iter().map(|namespace| self.serve(namespace))).await;
    }

    /// Looks after one namespace, or all.
    async fn serve(&self, namespace: Option<&String>) {
        let client = self.client.clone();
        let (caches, changed) = Caches::new();
        let plugin = Arc::new(StatefulSets::new(client.clone(), caches.clone()));
        if let Err(error) = plugin.init().await {
            tracing::error!(%error, "the StatefulSet plugin does not start");
            return;
        }
        let clock = self.options.clock.clone();
        let namespace = namespace.map(String::as_str);
        let watches = self.metrics.watches();
        let runs = Runs::default();
        let (templates, templates_changed) = Templates::new();
        let starter = Starter {
            client: client.clone(),
            runs: runs.clone(),
            templates: templates.clone(),
        };
        let metrics = self.metrics.clone();
        let context = Arc::new(Context::new(
            client.clone(),
            clock.clone(),
            plugin,
            metrics,
            starter,
        ));
        let filled = caches.run(client.clone(), namespace, watches);
        let (runs_changed, run_changes) = mpsc::unbounded_channel();
        let analysed = self.analyse(runs.clone(), templates.clone(), namespace, runs_changed);
        let known = templates.run(client.clone(), namespace, watches);
        let changes = Changes {
            workloads: changed,
            runs: run_changes,
            templates: templates_changed,
        };
        let steered = async {
            caches.synced().await;
            runs.listed().await;
            templates.listed().await;
            steer(
                analysis::api(&client, namespace),
                caches.clone(),
                context,
                changes,
            )
            .await;
        };
        future::join4(filled, analysed, known, steered).await;
    }

    /// Measures the runs of one namespace, or of all.
    async fn analyse(
        &self,
        runs: Runs,
        templates: Templates,
        namespace: Option<&str>,
        changed: mpsc::UnboundedSender<(String, String)>,
    ) {
        let (asks, orders) = Asks::new();
        let lab = Arc::new(Lab::new(
            self.client.clone(),
            self.options.clock.clone(),
            self.metrics.clone(),
            runs,
            asks.clone(),
        ));
        let asker = Asker {
            ask: self.providers.clone(),
            secrets: self.secrets.clone(),
            clock: self.options.clock.clone(),
        };
        let (due, told) = mpsc::unbounded_channel();
        let jobs = lab.jobs.clone();
        future::join3(
            asks.run(orders, &asker, due.clone()),
            jobs.run(namespace, self.metrics.watches(), due),
            measure(lab, namespace, told, changed, templates),
        )
        .await;
    }
}

/// What may give a rollout its turn, beside itself.
struct Changes {
    workloads: mpsc::UnboundedReceiver<Changed>,
    /// The namespace and name of a rollout one of whose runs has changed.
    runs: mpsc::UnboundedReceiver<(String, String)>,
    /// The namespace in which templates have changed; `None` for all.
    templates: mpsc::UnboundedReceiver<Option<String>>,
}

async fn steer(api: Api<Lenient<RolloutPlugin>>, caches: Caches, context: Arc<Context>, changes: Changes) {
    let (reader, writer) = reflector::store();
    context.metrics.follow(reader.clone());
    let index = Index::default();
    let mut registry = Registry {
        index: index.clone(),
        caches,
        context: context.clone(),
        listed: HashSet::new(),
    };
    let (path, watches) = (api.resource_url().to_owned(), context.metrics.watches().clone());
    let objects = readable(watcher(api, watcher::Config::default()))
        .modify(|object| object.metadata.managed_fields = None)
        .default_backoff()
        .inspect(move |told| watches.note(&path, told))
        .inspect_ok(move |event| registry.note(event))
        .reflect(writer)
        .touched_objects()
        .inspect_ok({
            let metrics = context.metrics.clone();
            move |object| metrics.due(object.namespace().as_deref(), &object.name_any())
        });
    let due = context.metrics.clone();
    let concerned = UnboundedReceiverStream::new(changes.workloads).flat_map(move |changed| {
        let Changed {
            namespace,
            name,
            holder,
        } = changed;
        let mut objects = index.of(&namespace, &name);
        objects.extend(holder);
        objects
            .iter()
            .for_each(|object| due.due(Some(&namespace), object));
        futures::stream::iter(
            objects
                .into_iter()
                .map(move |object| ObjectRef::<RolloutPlugin>::new(&object).within(&namespace)),
        )
    });
    let analysed = UnboundedReceiverStream::new(changes.runs)
        .map(|(namespace, name)| ObjectRef::<RolloutPlugin>::new(&name).within(&namespace));
    let all = reader.clone();
    let instructed = UnboundedReceiverStream::new(changes.templates).flat_map(move |namespace| {
        let concerned = |object: &Arc<RolloutPlugin>| {
            has_analysis(object) && (namespace.is_none() || object.namespace() == namespace)
        };
        let objects = all.state().into_iter().filter(concerned);
        let objects: Vec<_> = objects.map(|object| ObjectRef::from_obj(&*object)).collect();
        futures::stream::iter(objects)
    });
    let metrics = context.metrics.clone();
    Controller::for_stream(objects, reader)
        .with_config(controller::Config::default().concurrency(AT_ONCE))
        .reconcile_on(concerned)
        .reconcile_on(analysed)
        .reconcile_on(instructed)
        .run(reconcile, retry, context)
        .for_each(|ended| {
            note(&ended, &metrics);
            future::ready(())
        })
        .await;
}

/// What became of a turn. Failures were told by `retry`, and watches that broke off when they did.
fn note<Q>(
    ended: &Result<(ObjectRef<RolloutPlugin>, controller::Action), controller::Error<Error, Q>>,
    metrics: &Metrics,
) {
    match ended {
        Ok(_) | Err(controller::Error::ReconcilerFailed(..) | controller::Error::QueueError(_)) => {}
        // It was deleted while it waited for its turn.
        Err(controller::Error::ObjectNotFound(object)) => {
            metrics.begun(object.namespace.as_deref(), &object.name);
        }
        Err(controller::Error::RunnerError(error)) => tracing::error!(%error, "no object gets its turn"),
    }
}

/// Keeps track of which objects there are.
struct Registry {
    index: Index,
    caches: Caches,
    context: Arc<Context>,
    /// By UID, while a list is being made anew.
    listed: HashSet<String>,
}

impl Registry {
    fn note(&mut self, event: &watcher::Event<RolloutPlugin>) {
        match event {
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitApply(object) => {
                self.listed.insert(object.uid().unwrap_or_default());
                self.put(object);
            }
            // What was deleted while nobody watched was told by nobody.
            watcher::Event::InitDone => {
                let gone = self.index.retain(&self.listed);
                gone.into_iter().for_each(|gone| self.forget(gone));
            }
            watcher::Event::Apply(object) => self.put(object),
            watcher::Event::Delete(object) => {
                let namespace = object.namespace().unwrap_or_default();
                let gone = self.index.take(&namespace, &object.name_any());
                gone.into_iter().for_each(|gone| self.forget(gone));
            }
        }
    }

    fn put(&self, object: &RolloutPlugin) {
        self.caches.manager_lives(&object.uid().unwrap_or_default());
        if let Some(replaced) = self.index.put(object) {
            self.forget(replaced);
        }
    }

    fn forget(&self, gone: Gone) {
        self.context.forget(&gone.uid);
        self.caches.manager_gone(&gone.uid);
        // Somebody may be waiting for the workload to become free.
        self.caches.touch(&gone.namespace, &gone.workload);
    }
}
