//! Wires the parts of the operator and runs them.

use std::collections::HashSet;
use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt, future};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Controller, WatchStreamExt, controller, reflector, watcher};
use kube::{Api, Client, ResourceExt};
use stateward_analysis::http::Http;
use stateward_analysis::{Egress, KubeSecrets, MetricProvider, Providers, Secrets, Workers};
use stateward_api::phasedrollout::PhasedRollout;
use stateward_api::rolloutplugin::RolloutPlugin;
use stateward_client::DeserializeGuard;
use stateward_clock::Clock;
use stateward_core::rolloutplugin::has_analysis;
use stateward_plugin::ResourcePlugin;
use stateward_plugin::statefulset::{Caches, Changed, StatefulSets};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::analysis;
use crate::analysis::jobs::AnalysisJobs;
use crate::analysis::measure::{AnalysisContext, measure};
use crate::analysis::measurement_queue::{MeasurementQueue, Measurer};
use crate::analysis::runs::Runs;
use crate::analysis::start::AnalysisRunStore;
use crate::analysis::templates::{Allowed, Templates};
use crate::error::Error;
use crate::index::{Gone, Index};
use crate::invalid_objects;
use crate::kind::{Checks, Rollout};
use crate::kind_barrier::{self, KindBarrier};
use crate::metrics::Metrics;
use crate::namespace_slots::{self, NamespaceSlots};
use crate::phased::PhasedChecks;
use crate::reconcile::{Context, has_left, reconcile, retry, target};
use crate::retry::retry_transient_errors;

/// The operator's options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The only clock it uses.
    pub clock: Clock,
    /// The namespaces that it manages; all, if empty.
    pub namespaces: Vec<String>,
}

/// The operator: reconciles RolloutPlugins and PhasedRollouts until it is dropped.
pub struct Operator {
    client: Client,
    client_without_retries: Client,
    options: Options,
    metrics: Metrics,
    providers: Arc<dyn MetricProvider>,
    secrets: Arc<dyn Secrets>,
    workers: Workers,
    jobs: AnalysisJobs,
    contain_panics: bool,
}

impl Operator {
    /// An operator that works through `client`.
    pub fn new(client_without_retries: Client, options: Options) -> Self {
        let client = retry_transient_errors(client_without_retries.clone());
        let secrets: Arc<dyn Secrets> = Arc::new(KubeSecrets(client.clone()));
        Self {
            providers: Arc::new(Providers::new(
                Http::new(Egress::default()),
                KubeSecrets(client.clone()),
            )),
            secrets,
            client,
            client_without_retries,
            options,
            metrics: Metrics::default(),
            workers: Workers::default(),
            jobs: AnalysisJobs::default(),
            contain_panics: false,
        }
    }

    /// A panic in a reconcile ends only that reconcile. Otherwise it ends the operator, so that tests notice it.
    pub fn contain_panics(mut self) -> Self {
        self.contain_panics = true;
        self
    }

    /// Sets what the Jobs of analyses may contain.
    pub fn analysis_jobs(mut self, allowed: AnalysisJobs) -> Self {
        self.jobs = allowed;
        self
    }

    /// Sets the metric providers.
    pub fn providers(mut self, providers: Arc<dyn MetricProvider>) -> Self {
        self.providers = providers;
        self
    }

    /// Records metrics in `metrics`.
    pub fn metrics(mut self, metrics: Metrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Runs the operator. Never ends by itself.
    ///
    /// Each namespace has its own watches and caches: relisting one says nothing about the others.
    pub async fn run(self) {
        let namespaces = match self.options.namespaces.as_slice() {
            [] => vec![None],
            some => some.iter().map(Some).collect(),
        };
        future::join_all(namespaces.into_iter().map(|namespace| self.serve(namespace))).await;
    }

    /// Manages one namespace, or all.
    async fn serve(&self, namespace: Option<&String>) {
        let client = self.client.clone();
        let (caches, changed) = Caches::new();
        let plugin = Arc::new(StatefulSets::new(client.clone(), caches.clone()));
        if let Err(error) = plugin.init().await {
            tracing::error!(%error, "the StatefulSet plugin does not start");
            return;
        }
        let namespace = namespace.map(String::as_str);
        let watches = self.metrics.watches();
        let runs = Runs::default();
        let (templates, templates_changed) = Templates::new();
        let (queue, queued_jobs) = MeasurementQueue::new();
        let steering = Steering {
            client: client.clone(),
            client_without_retries: self.client_without_retries.clone(),
            clock: self.options.clock.clone(),
            plugin,
            metrics: self.metrics.clone(),
            caches: caches.clone(),
            kind_barrier: KindBarrier::default(),
            contain_panics: self.contain_panics,
        };
        let (runs_changed, run_changes) = mpsc::unbounded_channel();
        let run_store = AnalysisRunStore::new(
            client.clone(),
            runs.clone(),
            templates.clone(),
            Allowed {
                jobs: self.jobs,
                provider: self.providers.clone(),
            },
            self.workers.clone(),
            runs_changed.clone(),
        );
        let filled = caches.run(client.clone(), namespace, watches);
        let analysed = self.analyse(runs.clone(), templates.clone(), namespace, runs_changed);
        let known = templates.run(client.clone(), namespace, watches);
        let (answered, answers) = mpsc::unbounded_channel();
        let measurer = self.measurer();
        let checked = queue.run(queued_jobs, &measurer, answered);
        let (for_plugins, plugins_changed) = mpsc::unbounded_channel();
        let (for_phased, phased_changed) = mpsc::unbounded_channel();
        let told = spread(changed, [for_plugins, for_phased]);
        let steered = async {
            caches.synced().await;
            runs.listed().await;
            templates.listed().await;
            let plugins = steer(
                analysis::api::<DeserializeGuard<RolloutPlugin>>(&client, namespace),
                &steering,
                Arc::new(run_store),
                plugins_changed,
                |all| analysed_or_instructed(all, run_changes, templates_changed),
            );
            let phased = steer(
                analysis::api::<DeserializeGuard<PhasedRollout>>(&client, namespace),
                &steering,
                Arc::new(PhasedChecks::new(
                    queue.clone(),
                    self.providers.clone(),
                    self.metrics.clone(),
                )),
                phased_changed,
                |_| UnboundedReceiverStream::new(answers),
            );
            future::join(plugins, phased).await;
        };
        future::join(
            future::join3(filled, analysed, known),
            future::join3(checked, told, steered),
        )
        .await;
    }

    fn measurer(&self) -> Measurer {
        Measurer {
            provider: self.providers.clone(),
            secrets: self.secrets.clone(),
            clock: self.options.clock.clone(),
            workers: self.workers.clone(),
        }
    }

    /// Measures the AnalysisRuns of one namespace, or of all.
    async fn analyse(
        &self,
        runs: Runs,
        templates: Templates,
        namespace: Option<&str>,
        changed: mpsc::UnboundedSender<(String, String)>,
    ) {
        let (queue, queued_jobs) = MeasurementQueue::new();
        let (due, told) = mpsc::unbounded_channel();
        let mut context = AnalysisContext::new(
            self.client.clone(),
            self.options.clock.clone(),
            self.metrics.clone(),
            runs,
            queue.clone(),
            self.workers.clone(),
            due.clone(),
        );
        context.jobs = context.jobs.allowing(self.jobs);
        context.contain_panics = self.contain_panics;
        let context = Arc::new(context);
        let measurer = self.measurer();
        let jobs = context.jobs.clone();
        future::join3(
            queue.run(queued_jobs, &measurer, due.clone()),
            jobs.run(namespace, self.metrics.watches(), due),
            measure(context, namespace, told, changed, templates),
        )
        .await;
    }
}

/// Forwards every change to both receivers.
async fn spread(
    mut changed: mpsc::UnboundedReceiver<Changed>,
    everybody: [mpsc::UnboundedSender<Changed>; 2],
) {
    while let Some(changed) = changed.recv().await {
        for one in &everybody {
            // The receiver is gone only when the operator shuts down.
            let _ = one.send(changed.clone());
        }
    }
}

/// What the controllers of every kind share.
struct Steering {
    client: Client,
    client_without_retries: Client,
    clock: Clock,
    plugin: Arc<StatefulSets>,
    metrics: Metrics,
    caches: Caches,
    kind_barrier: KindBarrier,
    contain_panics: bool,
}

/// Reconciles the objects of one kind when they or their workloads change, and when they are triggered. Never ends.
async fn steer<K: Rollout, S: Stream<Item = ObjectRef<K>> + Send + 'static>(
    api: Api<DeserializeGuard<K>>,
    steering: &Steering,
    checks: Arc<dyn Checks<K>>,
    workloads: mpsc::UnboundedReceiver<Changed>,
    told: impl FnOnce(Store<K>) -> S,
) {
    let (queue, queued) = mpsc::unbounded_channel();
    let mut context = Context::new(
        steering.client.clone(),
        steering.clock.clone(),
        steering.plugin.clone(),
        steering.metrics.clone(),
        checks,
        steering.kind_barrier.clone(),
        NamespaceSlots::new(queue),
    );
    context.client_without_retries = steering.client_without_retries.clone();
    context.contain_panics = steering.contain_panics;
    let context = Arc::new(context);
    let (reader, writer) = reflector::store();
    context.metrics.follow(reader.clone());
    let index = Index::default();
    let mut registry = Registry {
        index: index.clone(),
        caches: steering.caches.clone(),
        context: context.clone(),
        listed: HashSet::new(),
        known: false,
    };
    let (path, watches) = (api.resource_url().to_owned(), context.metrics.watches().clone());
    let teller = context.clone();
    let invalid = move |object, why: &str| Context::tell_unread(&teller, object, why);
    let config = watcher::Config::default().page_size(stateward_client::PAGE);
    let objects = invalid_objects::valid(watcher(api, config), invalid)
        .default_backoff()
        .inspect(move |told| watches.note(&path, told))
        .inspect(move |told| registry.note(told))
        .reflect(writer)
        .touched_objects()
        .inspect_ok({
            let metrics = context.metrics.clone();
            move |object: &K| metrics.due::<K>(object.namespace().as_deref(), &object.name_any())
        });
    let due = context.metrics.clone();
    let concerned = UnboundedReceiverStream::new(workloads).flat_map(move |changed| {
        let Changed {
            namespace,
            name,
            holder,
        } = changed;
        let mut objects = index.of(&namespace, &name);
        objects.extend(holder);
        objects
            .iter()
            .for_each(|object| due.due::<K>(Some(&namespace), object));
        futures::stream::iter(
            objects
                .into_iter()
                .map(move |object| ObjectRef::<K>::new(&object).within(&namespace)),
        )
    });
    let told = told(reader.clone());
    let noted = context.clone();
    Controller::for_stream(objects, reader)
        .with_config(controller::Config::default().concurrency(namespace_slots::TOTAL))
        .reconcile_on(concerned)
        .reconcile_on(told)
        .reconcile_on(UnboundedReceiverStream::new(queued))
        .run(reconcile, retry, context)
        .for_each(|ended| {
            note(&ended, &noted);
            future::ready(())
        })
        .await;
}

/// The RolloutPlugins with a changed AnalysisRun, by namespace and name, or with possibly changed templates: those of one
/// namespace, or all.
fn analysed_or_instructed(
    all: Store<RolloutPlugin>,
    runs: mpsc::UnboundedReceiver<(String, String)>,
    templates: mpsc::UnboundedReceiver<Option<String>>,
) -> impl Stream<Item = ObjectRef<RolloutPlugin>> + Send + 'static {
    let analysed = UnboundedReceiverStream::new(runs)
        .map(|(namespace, name)| ObjectRef::<RolloutPlugin>::new(&name).within(&namespace));
    let instructed = UnboundedReceiverStream::new(templates).flat_map(move |namespace| {
        let concerned = |object: &Arc<RolloutPlugin>| {
            has_analysis(object) && (namespace.is_none() || object.namespace() == namespace)
        };
        let objects = all.state().into_iter().filter(concerned);
        let objects: Vec<_> = objects.map(|object| ObjectRef::from_obj(&*object)).collect();
        futures::stream::iter(objects)
    });
    futures::stream::select(analysed, instructed)
}

/// Records the end of a reconcile. `retry` has logged failures, and broken watches were logged when they broke.
fn note<K: Rollout, Q>(
    ended: &Result<(ObjectRef<K>, controller::Action), controller::Error<Error, Q>>,
    context: &Context<K>,
) {
    match ended {
        Ok(_) | Err(controller::Error::ReconcilerFailed(..) | controller::Error::QueueError(_)) => {}
        // It was deleted while it was queued.
        Err(controller::Error::ObjectNotFound(object)) => {
            let namespace = object.namespace.as_deref();
            context.metrics.begun::<K>(namespace, &object.name);
            context.slots.queue_next(namespace.unwrap_or_default());
        }
        Err(controller::Error::RunnerError(error)) => tracing::error!(%error, "no object gets its turn"),
    }
}

/// Tracks which objects exist.
struct Registry<K: Rollout> {
    index: Index,
    caches: Caches,
    context: Arc<Context<K>>,
    /// By UID, while a list is in progress.
    listed: HashSet<String>,
    /// They were listed once, or it is known that they cannot be.
    known: bool,
}

impl<K: Rollout> Registry<K> {
    fn note(&mut self, told: &watcher::Result<watcher::Event<K>>) {
        let settled = match told {
            Ok(event) => matches!(event, watcher::Event::InitDone),
            Err(error) => kind_barrier::cannot_be_listed(error),
        };
        if settled && !std::mem::replace(&mut self.known, true) {
            self.context.kind_barrier.kind_synced();
        }
        let Ok(event) = told else { return };
        match event {
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitApply(object) => {
                self.listed.insert(object.uid().unwrap_or_default());
                self.put(object);
            }
            // Objects that were deleted while the watch was down have no event.
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

    fn put(&self, object: &K) {
        if has_left(object) {
            self.caches.manager_gone(&object.uid().unwrap_or_default());
            self.caches
                .touch(&object.namespace().unwrap_or_default(), object.workload());
        } else {
            self.caches.manager_lives(target(object));
        }
        match self.index.put(object) {
            Some(before) if Some(&before.uid) == object.meta().uid.as_ref() => {
                // Another object may be waiting for the workload that it referenced before.
                self.caches.touch(&before.namespace, &before.workload);
            }
            Some(replaced) => self.forget(replaced),
            None => {}
        }
    }

    fn forget(&self, gone: Gone) {
        self.context.forget(&gone.uid);
        self.caches.manager_gone(&gone.uid);
        // Another object may be waiting for the workload to become free.
        self.caches.touch(&gone.namespace, &gone.workload);
    }
}
