//! What runs, and how the parts are wired.

use std::collections::HashSet;
use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt, future};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Controller, WatchStreamExt, controller, reflector, watcher};
use kube::{Api, Client, ResourceExt};
use stateward_analysis::http::Http;
use stateward_analysis::{Ask, Egress, KubeSecrets, Providers, Secrets, Workers};
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
use crate::analysis::asks::{Asker, Asks};
use crate::analysis::jobs::AnalysisJobs;
use crate::analysis::measure::{Lab, measure};
use crate::analysis::runs::Runs;
use crate::analysis::start::Starter;
use crate::analysis::templates::{Allowed, Templates};
use crate::error::Error;
use crate::index::{Gone, Index};
use crate::invalid_objects;
use crate::kind::{Checks, Rollout};
use crate::metrics::Metrics;
use crate::namespace_slots::{self, NamespaceSlots};
use crate::phased::Inquiry;
use crate::reconcile::{Context, has_left, reconcile, retry, target};
use crate::retry::retry_transient_errors;
use crate::roster::{self, Roster};

/// What an operator is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// The only time it knows.
    pub clock: Clock,
    /// The namespaces it looks after; all, if there are none.
    pub namespaces: Vec<String>,
}

/// The operator: rolls what RolloutPlugins and PhasedRollouts ask for, until it is dropped.
pub struct Operator {
    client: Client,
    client_without_retries: Client,
    options: Options,
    metrics: Metrics,
    providers: Arc<dyn Ask>,
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

    /// A panic in the turn of an object ends that turn only. Without this it ends the operator, so that tests notice.
    pub fn contain_panics(mut self) -> Self {
        self.contain_panics = true;
        self
    }

    /// Lets the Jobs of analyses ask for this.
    pub fn analysis_jobs(mut self, allowed: AnalysisJobs) -> Self {
        self.jobs = allowed;
        self
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
        let namespace = namespace.map(String::as_str);
        let watches = self.metrics.watches();
        let runs = Runs::default();
        let (templates, templates_changed) = Templates::new();
        let (asks, orders) = Asks::new();
        let steering = Steering {
            client: client.clone(),
            client_without_retries: self.client_without_retries.clone(),
            clock: self.options.clock.clone(),
            plugin,
            metrics: self.metrics.clone(),
            caches: caches.clone(),
            roster: Roster::default(),
            contain_panics: self.contain_panics,
        };
        let (runs_changed, run_changes) = mpsc::unbounded_channel();
        let starter = Starter::new(
            client.clone(),
            runs.clone(),
            templates.clone(),
            Allowed {
                jobs: self.jobs,
                ask: self.providers.clone(),
            },
            self.workers.clone(),
            runs_changed.clone(),
        );
        let filled = caches.run(client.clone(), namespace, watches);
        let analysed = self.analyse(runs.clone(), templates.clone(), namespace, runs_changed);
        let known = templates.run(client.clone(), namespace, watches);
        let (answered, answers) = mpsc::unbounded_channel();
        let asker = self.asker();
        let checked = asks.run(orders, &asker, answered);
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
                Arc::new(starter),
                plugins_changed,
                |all| analysed_or_instructed(all, run_changes, templates_changed),
            );
            let phased = steer(
                analysis::api::<DeserializeGuard<PhasedRollout>>(&client, namespace),
                &steering,
                Arc::new(Inquiry::new(
                    asks.clone(),
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

    fn asker(&self) -> Asker {
        Asker {
            ask: self.providers.clone(),
            secrets: self.secrets.clone(),
            clock: self.options.clock.clone(),
            workers: self.workers.clone(),
        }
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
        let (due, told) = mpsc::unbounded_channel();
        let mut lab = Lab::new(
            self.client.clone(),
            self.options.clock.clone(),
            self.metrics.clone(),
            runs,
            asks.clone(),
            self.workers.clone(),
            due.clone(),
        );
        lab.jobs = lab.jobs.allowing(self.jobs);
        lab.contain_panics = self.contain_panics;
        let lab = Arc::new(lab);
        let asker = self.asker();
        let jobs = lab.jobs.clone();
        future::join3(
            asks.run(orders, &asker, due.clone()),
            jobs.run(namespace, self.metrics.watches(), due),
            measure(lab, namespace, told, changed, templates),
        )
        .await;
    }
}

/// Tells everybody of every change.
async fn spread(
    mut changed: mpsc::UnboundedReceiver<Changed>,
    everybody: [mpsc::UnboundedSender<Changed>; 2],
) {
    while let Some(changed) = changed.recv().await {
        for one in &everybody {
            // Nobody listens any more when the operator is on its way out.
            let _ = one.send(changed.clone());
        }
    }
}

/// What the objects of every kind are steered with.
struct Steering {
    client: Client,
    client_without_retries: Client,
    clock: Clock,
    plugin: Arc<StatefulSets>,
    metrics: Metrics,
    caches: Caches,
    roster: Roster,
    contain_panics: bool,
}

/// Gives turns to the objects of one kind: when they or their workloads change, and when they are told to have one. Never
/// ends.
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
        steering.roster.clone(),
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

/// The RolloutPlugins one of whose runs has changed, by namespace and name, or whose templates may have: those of a namespace, or
/// all.
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

/// What became of a turn. Failures were told by `retry`, and watches that broke off when they did.
fn note<K: Rollout, Q>(
    ended: &Result<(ObjectRef<K>, controller::Action), controller::Error<Error, Q>>,
    context: &Context<K>,
) {
    match ended {
        Ok(_) | Err(controller::Error::ReconcilerFailed(..) | controller::Error::QueueError(_)) => {}
        // It was deleted while it waited for its turn.
        Err(controller::Error::ObjectNotFound(object)) => {
            let namespace = object.namespace.as_deref();
            context.metrics.begun::<K>(namespace, &object.name);
            context.slots.queue_next(namespace.unwrap_or_default());
        }
        Err(controller::Error::RunnerError(error)) => tracing::error!(%error, "no object gets its turn"),
    }
}

/// Keeps track of which objects there are.
struct Registry<K: Rollout> {
    index: Index,
    caches: Caches,
    context: Arc<Context<K>>,
    /// By UID, while a list is being made anew.
    listed: HashSet<String>,
    /// They were listed once, or it is known that they cannot be.
    known: bool,
}

impl<K: Rollout> Registry<K> {
    fn note(&mut self, told: &watcher::Result<watcher::Event<K>>) {
        let settled = match told {
            Ok(event) => matches!(event, watcher::Event::InitDone),
            Err(error) => roster::is_beyond_us(error),
        };
        if settled && !std::mem::replace(&mut self.known, true) {
            self.context.roster.one_more();
        }
        let Ok(event) = told else { return };
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
                // Somebody may be waiting for the workload that it was meant for before.
                self.caches.touch(&before.namespace, &before.workload);
            }
            Some(replaced) => self.forget(replaced),
            None => {}
        }
    }

    fn forget(&self, gone: Gone) {
        self.context.forget(&gone.uid);
        self.caches.manager_gone(&gone.uid);
        // Somebody may be waiting for the workload to become free.
        self.caches.touch(&gone.namespace, &gone.workload);
    }
}
