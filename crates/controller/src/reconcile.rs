//! One reconcile: observe, decide, write one thing, observe again.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action as Next;
use kube::{Client, ResourceExt};
use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use stateward_api::rollout::RolloutStatus;
use stateward_client::{ObjectName, Objects};
use stateward_clock::Clock;
use stateward_core::event::{EventReason, Notice};
use stateward_core::memory::{Activity, Stable};
use stateward_core::plan::Plan;
use stateward_core::workload::{Claim, Workload};
use stateward_core::world::{Action, Decision, World};
use stateward_core::{decide, record};
use stateward_plugin::{Done, Manager, Observation, PluginError, ResourcePlugin, Target};
use tracing::Instrument;

use crate::contention::{Contention, reduces_exposure};
use crate::error::{Error, backoff, contain_panics};
use crate::kind::{Checks, Rollout, full_name};
use crate::kind_barrier::KindBarrier;
use crate::metrics::Metrics;
use crate::namespace_slots::NamespaceSlots;
use crate::notify::{Told, notify};
use crate::stable_template;
use crate::status;
use crate::turn::{Failures, Latest, at};

/// Keeps an object until its workload has been released.
const FINALIZER: &str = "stateward.dev/rollout";

/// How long to wait for a disruption budget, which is not watched.
const BUDGET_WAIT: Duration = Duration::from_secs(5);

/// How long to wait for a plugin that has not verified a step yet.
const VERIFY_WAIT: Duration = Duration::from_secs(1);

/// How long to wait for the watch to report why a pod could not be removed.
const A_MOMENT: Duration = Duration::from_millis(100);

/// How long to wait before the copies of former stable templates are deleted again.
const DELETE_AGAIN: SignedDuration = SignedDuration::from_secs(30);

/// How many failures in a row are reported to users.
const SOME_FAILURES: u32 = 3;

/// How many writes one reconcile may make before others get their turn.
const WRITES_PER_TURN: usize = 8;

/// What every reconcile needs.
pub(crate) struct Context<K: Rollout> {
    pub(crate) client: Client,
    /// For writes that must not be retried without a fresh look at the state that they were decided on.
    pub(crate) client_without_retries: Client,
    pub(crate) clock: Clock,
    pub(crate) plugin: Arc<dyn ResourcePlugin>,
    pub(crate) metrics: Metrics,
    pub(crate) checks: Arc<dyn Checks<K>>,
    pub(crate) kind_barrier: KindBarrier,
    pub(crate) slots: NamespaceSlots<K>,
    latest: Latest<K>,
    failures: Failures,
    contention: Contention,
    told: Told,
    /// The last error of each object's requests, by UID.
    last_errors: Mutex<HashMap<String, String>>,
    /// The hashes of stable templates that could not be copied, by the UID of their object.
    without_copy: Mutex<HashMap<String, String>>,
    /// Whether a panic ends only the reconcile that it happens in.
    pub(crate) contain_panics: bool,
}

impl<K: Rollout> Context<K> {
    pub(crate) fn new(
        client: Client,
        clock: Clock,
        plugin: Arc<dyn ResourcePlugin>,
        metrics: Metrics,
        checks: Arc<dyn Checks<K>>,
        kind_barrier: KindBarrier,
        slots: NamespaceSlots<K>,
    ) -> Self {
        Self {
            client_without_retries: client.clone(),
            client,
            clock,
            plugin,
            metrics,
            checks,
            kind_barrier,
            slots,
            latest: Latest::default(),
            failures: Failures::default(),
            contention: Contention::default(),
            told: Told::default(),
            last_errors: Mutex::default(),
            without_copy: Mutex::default(),
            contain_panics: false,
        }
    }

    /// Forgets an object, by its UID.
    pub(crate) fn forget(&self, uid: &str) {
        self.latest.forget(uid);
        self.failures.forget(uid);
        self.contention.forget(uid);
        self.told.forget(uid);
        self.checks.forget(uid);
        self.set_last_error(uid, None);
        self.without_copy().remove(uid);
    }

    fn without_copy(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.without_copy.lock()
    }

    /// Whether copying this stable template has failed.
    fn is_without_copy(&self, uid: &str, hash: Option<&str>) -> bool {
        self.without_copy().get(uid).map(String::as_str) == hash
    }

    /// Posts events about an object.
    async fn tell(&self, object: &K, notices: &[Notice], now: Timestamp) {
        notify(&self.client, &self.told, object, notices, now).await;
    }

    /// Posts an event that an object cannot be deserialized and is left unchanged. Runs in the background, so that others do not
    /// wait.
    pub(crate) fn tell_unread(self: &Arc<Self>, object: K, why: &str) {
        let notice = Notice {
            reason: EventReason::InvalidObject,
            message: format!(
                "{} cannot be read and is left as it stands: {why}",
                kind_of(&object)
            ),
        };
        let context = self.clone();
        tokio::spawn(async move {
            let span = span(&object);
            let now = context.clock.now();
            context.tell(&object, &[notice], now).instrument(span).await;
        });
    }

    fn last_error(&self, uid: &str) -> Option<String> {
        let last_errors = self.last_errors.lock();
        last_errors.get(uid).cloned()
    }

    /// Records the last error of an object's requests. Whether it has changed.
    fn set_last_error(&self, uid: &str, why: Option<String>) -> bool {
        let mut last_errors = self.last_errors.lock();
        let before = match why.clone() {
            Some(why) => last_errors.insert(uid.to_owned(), why),
            None => last_errors.remove(uid),
        };
        before != why
    }

    /// The event about a refused request, if it is new. A single failure is not reported.
    fn error_notice(&self, uid: &str, done: &Result<Done, Error>) -> Option<Notice> {
        let failures = self.failures.of(uid);
        let why = match done {
            Ok(Done::NotNow(why)) => Some(why.clone()),
            Err(error) if !error.is_conflict() && failures >= SOME_FAILURES => Some(error.to_string()),
            Ok(_) | Err(_) => None,
        };
        let news = self.set_last_error(uid, why.clone());
        why.filter(|_| news).map(|message| Notice {
            reason: EventReason::RequestRefused,
            message,
        })
    }
}

/// One reconcile of one object.
pub(crate) async fn reconcile<K: Rollout>(seen: Arc<K>, context: Arc<Context<K>>) -> Result<Next, Error> {
    // Which object claims a workload is known only once all objects that may claim one are listed.
    context.kind_barrier.all_synced().await;
    let namespace = seen.namespace().unwrap_or_default();
    let Some(_slot) = context.slots.take(&namespace, &seen.name_any()) else {
        return Ok(Next::await_change());
    };
    let _measured = context.metrics.turn(&*seen);
    let object = context.latest.newest(&seen);
    let span = span(&object);
    let turn = turn(object, &context).instrument(span);
    let next = contain_panics(context.contain_panics, turn).await;
    if next.is_ok() {
        context.failures.forget(&seen.uid().unwrap_or_default());
    }
    next
}

/// Adds the object, and its revision once known, to every line logged in a reconcile.
fn span(object: &impl Rollout) -> tracing::Span {
    tracing::info_span!(
        "rollout",
        kind = &*kind_of(object),
        namespace = object.namespace().unwrap_or_default(),
        // `name` is the span's own field in JSON.
        object = object.name_any(),
        revision = tracing::field::Empty
    )
}

/// When to retry.
pub(crate) fn retry<K: Rollout>(object: Arc<K>, error: &Error, context: Arc<Context<K>>) -> Next {
    let failures = context.failures.add(&object.uid().unwrap_or_default());
    let who = full_name(&*object);
    context.metrics.failed(error.kind());
    let span = span(&*object);
    let status = object.status();
    span.record("revision", K::record(&status).updated_revision.as_deref());
    span.in_scope(|| {
        if error.is_conflict() {
            tracing::debug!(%error, "the object has changed meanwhile");
        } else {
            tracing::warn!(%error, "will try again");
        }
    });
    Next::requeue(context.clock.on_the_timer(backoff(failures - 1, &who)))
}

async fn turn<K: Rollout>(mut object: K, context: &Context<K>) -> Result<Next, Error> {
    // The result of a check that has started; it is written together with the decision that follows from it.
    let mut begun = None;
    for pass in 0..WRITES_PER_TURN {
        let deleting = object.meta().deletion_timestamp.is_some();
        let ours = object.finalizers().iter().any(|finalizer| finalizer == FINALIZER);
        if has_left(&object) {
            return Ok(Next::await_change());
        }
        let target = target(&object);
        // A typo in the reference must not release the workload.
        let meant = deleting || object.reference_valid();
        if meant && let Some(name) = context.plugin.held_elsewhere(&target).await? {
            let elsewhere = Target {
                name,
                ..target.clone()
            };
            match release_claim(&object, &elsewhere, context).await? {
                ReleaseOutcome::Released => continue,
                ReleaseOutcome::NotYet => return Ok(Next::await_change()),
                ReleaseOutcome::NotClaimed => {}
            }
        }
        if deleting {
            if let ReleaseOutcome::NotClaimed = release_claim(&object, &target, context).await? {
                set_finalizer(&object, false, context).await?;
            }
            return Ok(Next::await_change());
        }
        let Some(seen) = observe(&object, &target, context).await? else {
            return Ok(Next::await_change());
        };
        if let (0, Ok(workload)) = (pass, &seen.workload) {
            tracing::Span::current().record("revision", workload.update.as_str());
        }
        let uid = object.uid().unwrap_or_default();
        // The result of a check is written together with the decision that follows from it.
        let now = context.clock.now();
        let (learned, news) = match begun.take() {
            Some(begun) => (Some(begun), None),
            None => context.checks.learned(&object, now).unzip(),
        };
        let informed = learned.clone().map(|learned| object.with_status(learned));
        let informed = informed.as_ref().unwrap_or(&object);
        let Some(plan) = context.checks.plan(informed, &seen.workload) else {
            return Ok(Next::await_change());
        };
        let mut world = world(informed, plan, &seen, context);
        world.last_error = context.last_error(&uid);
        let contested = context.contention.contested(&uid, world.now);
        world.contested = contested.as_ref().map(|(by, _)| by.clone());
        let decision = decide(&world);
        if !ours {
            object = set_finalizer(&object, true, context).await?;
            continue;
        }
        let old = object.status();
        let recorded = K::record(&old);
        let next = match learned {
            // The message also counts the checks.
            Some(learned) => Some(informed.status_after_check(&world, &decision).unwrap_or(learned)),
            None => informed.next_status(&world, &decision),
        };
        let unnamed = recorded.stable_template_hash.is_some()
            && recorded.stable_template_copy.is_none()
            && world.workload.is_ok()
            && !context.is_without_copy(&uid, recorded.stable_template_hash.as_deref());
        let only_copy = next.is_none();
        let mut next = next.or_else(|| unnamed.then(|| old.clone()));
        let later = next.as_ref().and_then(|new| {
            context
                .contention
                .wait_to_say(&uid, &kubectl_name(&object), &old, new, world.now)
        });
        if let Some(later) = later {
            context.tell(&object, later.notice.as_slice(), world.now).await;
            let action = decision.action.as_ref();
            if !action.is_some_and(|action| reduces_exposure(action, &seen)) {
                return Ok(at(&context.clock, later.at));
            }
            // The status can wait; the action cannot.
            next = None;
        }
        if let Some(mut new) = next {
            if !verified(&world, &decision, &target, context).await? {
                return Ok(Next::requeue(context.clock.on_the_timer(VERIFY_WAIT)));
            }
            let stable = decision.memory.stable.as_ref();
            keep_stable_template(&object, &mut new, stable, &target, context).await?;
            if only_copy && K::record(&new).stable_template_copy.is_none() {
                continue;
            }
            // Events first: after a crash in between, the same decision posts them again under the same names.
            let mut notices = decision.notices.clone();
            notices.extend(record::stall(recorded, &decision));
            notices.extend(news.flatten());
            context.tell(&object, &notices, world.now).await;
            // The last attempt writes anyway: otherwise the status would wait for as long as pods keep changing.
            if pass + 1 < WRITES_PER_TURN && !is_current(&seen, &target, context).await? {
                continue;
            }
            object = write_status(&object, &new, &seen, &target, context).await?;
            if let Some(took) = time_at_step(&world, &decision) {
                context.metrics.stepped(took);
            }
            continue;
        }
        if let Some(Action::StartRun { name, .. }) = &decision.action {
            begun = object.with_run(name, world.now);
            if begun.is_some() {
                continue;
            }
        }
        if let Some(action) = &decision.action {
            if let Some(later) = context.contention.wait(&uid, action, &seen, world.now) {
                context.tell(&object, later.notice.as_slice(), world.now).await;
                return Ok(at(&context.clock, later.at));
            }
            if context.contention.is_news(&uid, action, &seen, world.now) {
                let by = context.plugin.foreign_writer(&target, action).await;
                let notice = Notice {
                    reason: EventReason::WorkloadContested,
                    message: by.clone(),
                };
                context.contention.found(&uid, by);
                context.tell(&object, &[notice], world.now).await;
            }
            let done = act(action, &object, &target, &seen, context).await;
            if let Some(news) = context.error_notice(&uid, &done) {
                // Reported in the status too, before it is retried.
                context.tell(&object, &[news], world.now).await;
                continue;
            }
            return Ok(match done? {
                Done::NotNow(_) => Next::requeue(context.clock.on_the_timer(BUDGET_WAIT)),
                // The watch reports the change.
                Done::Changed => Next::await_change(),
                Done::Unchanged => Next::requeue(context.clock.on_the_timer(A_MOMENT)),
            });
        }
        if world.last_error.is_some() {
            context.set_last_error(&uid, None);
            continue;
        }
        let mut delete_again = None;
        if recorded.former_template_copies {
            let stable = record::memory(recorded).stable;
            let named = recorded.stable_template_copy.as_deref();
            match stable_template::delete_former(&object, named, stable.as_ref(), context).await {
                Ok(true) => {
                    let mut new = old.clone();
                    K::record_mut(&mut new).former_template_copies = false;
                    object = write_status(&object, &new, &seen, &target, context).await?;
                    continue;
                }
                Ok(false) => {}
                // The rollout does not wait for it.
                Err(error) => {
                    tracing::warn!(%error, "a copy of a former stable template stays; will try again");
                    delete_again = world.now.saturating_add(DELETE_AGAIN).ok();
                }
            }
        }
        let due = context.checks.start_due(&object, world.now);
        let uncontested = contested.map(|(_, until)| until);
        return Ok(
            match decision
                .look_again
                .into_iter()
                .chain(due)
                .chain(uncontested)
                .chain(delete_again)
                .min()
            {
                Some(moment) => at(&context.clock, moment),
                None => Next::await_change(),
            },
        );
    }
    Ok(Next::requeue(Duration::from_millis(1)))
}

/// Whether an object is being deleted and has no finalizer of ours left, nor of an operator that had it before. Finalizers of
/// others do not count.
pub(crate) fn has_left<K: Rollout>(object: &K) -> bool {
    let kept =
        |finalizer: &String| finalizer == FINALIZER || K::INHERITED_FINALIZERS.contains(&finalizer.as_str());
    object.meta().deletion_timestamp.is_some() && !object.finalizers().iter().any(kept)
}

/// Writes a status and remembers it as our own. Returns a conflict if the observed state changed while a transient error was
/// retried: the status may have been written all the same, so the object has to be read again.
async fn write_status<K: Rollout>(
    object: &K,
    new: &K::Status,
    seen: &Observation,
    target: &Target,
    context: &Context<K>,
) -> Result<K, Error> {
    let mut attempt = 0;
    let written = loop {
        let error = match status::write(&context.client_without_retries, object, new).await {
            Ok(written) => break written,
            Err(error) => error,
        };
        let Some(wait) = error.retry_after(attempt, &full_name(object)) else {
            return Err(error);
        };
        tokio::time::sleep(wait).await;
        attempt += 1;
        if !is_current(seen, target, context).await? {
            return Err(PluginError::Conflict(target.name.clone()).into());
        }
    };
    context.contention.said(
        &object.uid().unwrap_or_default(),
        &object.status(),
        &written.status(),
        context.clock.now(),
    );
    context.metrics.decided("status");
    context.latest.remember(&written);
    Ok(written)
}

/// Whether the observed state is still current. Events and retries take time, and a status must not report a stale state.
async fn is_current<K: Rollout>(
    seen: &Observation,
    target: &Target,
    context: &Context<K>,
) -> Result<bool, Error> {
    let Some(now) = context.plugin.observe(target).await? else {
        return Ok(false);
    };
    Ok(match (&seen.workload, now.workload) {
        // These two are requested, not watched.
        (Ok(then), Ok(now)) => {
            *then
                == Workload {
                    current_template: then.current_template.clone(),
                    forgotten: then.forgotten.clone(),
                    ..now
                }
        }
        (then, now) => *then == now,
    })
}

/// The result of releasing a workload.
enum ReleaseOutcome {
    /// Our claim was removed.
    Released,
    /// The observed state is older than our last write, or the workload's controller has not observed it yet.
    NotYet,
    /// We did not claim it.
    NotClaimed,
}

/// Releases a workload, because the object is being deleted or references another one (rule 20).
async fn release_claim<K: Rollout>(
    object: &K,
    target: &Target,
    context: &Context<K>,
) -> Result<ReleaseOutcome, Error> {
    let Some(seen) = observe(object, target, context).await? else {
        return Ok(ReleaseOutcome::NotYet);
    };
    let mut world = World {
        deleting: true,
        // The commands and the plan do not matter any more.
        ..world(object, Err(Vec::new()), &seen, context)
    };
    let mut decision = decide(&world);
    if let Some(Action::Restore(_)) = decision.action {
        let stable = decision.memory.stable.as_ref();
        world.can_restore = match stable_template::read(object, stable, context).await {
            Ok(_) => true,
            Err(Error::NoTemplate(_)) => match stable {
                Some(stable) => match stable_template::recover(object, stable, target, context).await {
                    Ok(copy) => copy.is_some(),
                    // A copy that cannot be created must not keep the object from being deleted.
                    Err(error) if error.is_refusal() => false,
                    Err(error) => return Err(error),
                },
                None => false,
            },
            Err(error) => return Err(error),
        };
        if !world.can_restore {
            decision = decide(&world);
        }
    }
    let Some(action) = &decision.action else {
        // What its controller has not observed yet is waited for.
        let claim = world.workload.as_ref().map(|workload| &workload.claim);
        return Ok(match claim {
            Ok(Claim::Ours | Claim::Inherited) => ReleaseOutcome::NotYet,
            _ => ReleaseOutcome::NotClaimed,
        });
    };
    context.tell(object, &decision.notices, world.now).await;
    act(action, object, target, &seen, context).await?;
    Ok(ReleaseOutcome::Released)
}

/// How kubectl names an object: `rolloutplugin db -n prod`.
fn kubectl_name<K: Rollout>(object: &K) -> String {
    let namespace = object.namespace().unwrap_or_default();
    format!(
        "{} {} -n {namespace}",
        kind_of(object).to_lowercase(),
        object.name_any()
    )
}

fn kind_of<K: Rollout>(_: &K) -> Cow<'static, str> {
    K::kind(&())
}

/// The workload that an object references, and the object's identity.
pub(crate) fn target<K: Rollout>(object: &K) -> Target {
    Target {
        namespace: object.namespace().unwrap_or_default(),
        name: object.workload().to_owned(),
        manager: Manager {
            kind: kind_of(object).into_owned(),
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
        },
    }
}

/// Observes the workload, with the template of the current revision if it is needed.
async fn observe<K: Rollout>(
    object: &K,
    target: &Target,
    context: &Context<K>,
) -> Result<Option<Observation>, Error> {
    let Some(mut seen) = context.plugin.observe(target).await? else {
        return Ok(None);
    };
    let status = object.status();
    let record = K::record(&status);
    let stable = record.stable_revision.as_deref();
    // A recreated workload has nothing on record, even if its revisions have the same names.
    if let Ok(workload) = &mut seen.workload
        && (stable != Some(workload.current.as_str()) || is_new(record, workload))
        && workload.current != workload.update
    {
        let revision = workload.current.as_str().to_owned();
        let template = context.plugin.snapshot(target, Some(&revision)).await?;
        workload.current_template = template.map(|template| context.plugin.fingerprint(&template));
    }
    if let Ok(workload) = &mut seen.workload
        && let Some(revision) = workload.forgotten_revision().cloned()
        && is_new(record, workload)
    {
        let template = context.plugin.snapshot(target, Some(revision.as_str())).await?;
        workload.forgotten = template.map(|template| Stable {
            revision,
            template: context.plugin.fingerprint(&template),
        });
    }
    Ok(Some(seen))
}

/// Whether a workload is yet to be adopted, according to the status.
fn is_new(status: &RolloutStatus, workload: &Workload) -> bool {
    let memory = record::memory(status);
    memory.stable.is_none() || memory.workload.as_ref() != Some(&workload.uid)
}

fn world<K: Rollout>(
    object: &K,
    plan: Result<Plan, Vec<String>>,
    seen: &Observation,
    context: &Context<K>,
) -> World {
    let status = object.status();
    let status = K::record(&status);
    let now = context.clock.now();
    World {
        now,
        plan,
        reference_valid: object.reference_valid(),
        paused: object.is_paused(),
        suspended: object.is_suspended(),
        deleting: false,
        can_restore: true,
        commands: record::commands(status),
        memory: record::memory(status),
        workload: seen.workload.clone(),
        runs: context.checks.runs(object, &seen.workload, now),
        last_error: None,
        contested: None,
        object: object.name_any(),
        name: format!(
            "{} -n {}",
            object.name_any(),
            object.namespace().unwrap_or_default()
        ),
    }
}

/// How long the rollout was at the step that this decision leaves, if it leaves one.
fn time_at_step(world: &World, decision: &Decision) -> Option<Duration> {
    let Activity::Rolling(before) = &world.memory.activity else {
        return None;
    };
    let stays =
        matches!(&decision.memory.activity, Activity::Rolling(after) if after.entered == before.entered);
    let took = world.now.duration_since(before.entered);
    Duration::try_from(took).ok().filter(|_| !stays)
}

/// Asks the plugin to verify a step before it counts as passed.
async fn verified<K: Rollout>(
    world: &World,
    decision: &Decision,
    target: &Target,
    context: &Context<K>,
) -> Result<bool, Error> {
    let Some(share) = decision.passed_share(world) else {
        return Ok(true);
    };
    Ok(context.plugin.verify_weight(target, share).await?)
}

/// Sets the name of the stable template's copy in the status, after creating the copy. Former copies are deleted once that is
/// written.
async fn keep_stable_template<K: Rollout>(
    object: &K,
    status: &mut K::Status,
    stable: Option<&Stable>,
    target: &Target,
    context: &Context<K>,
) -> Result<(), Error> {
    let old = object.status();
    let before = K::record(&old).stable_template_hash.as_deref();
    let record = K::record_mut(status);
    let Some(stable) = stable.filter(|_| record.stable_template_copy.is_none()) else {
        return Ok(());
    };
    if before == Some(stable.template.as_str()) {
        let uid = object.uid().unwrap_or_default();
        if context.is_without_copy(&uid, before) {
            return Ok(());
        }
        record.stable_template_copy = stable_template::recover(object, stable, target, context).await?;
        if record.stable_template_copy.is_none() {
            context
                .without_copy()
                .insert(uid, stable.template.as_str().to_owned());
            let message = format!(
                "there is no copy of the template of the stable version {}: it can be rolled back to as long as Kubernetes keeps \
                 that revision",
                stable.revision
            );
            let notice = Notice {
                reason: EventReason::StableTemplateUnavailable,
                message,
            };
            context.tell(object, &[notice], context.clock.now()).await;
        }
        return Ok(());
    }
    record.stable_template_copy = Some(stable_template::keep(object, stable, target, context).await?);
    record.former_template_copies |= before.is_some();
    Ok(())
}

async fn act<K: Rollout>(
    action: &Action,
    object: &K,
    target: &Target,
    seen: &Observation,
    context: &Context<K>,
) -> Result<Done, Error> {
    // Releases are logged by the plugin, which knows what they mean for the workload.
    if !matches!(action, Action::Release(_)) {
        tracing::info!("{action}");
    }
    context.metrics.decided(match action {
        Action::Release(_) => "release",
        Action::Remove { .. } => "remove",
        Action::ReleaseClaim(_) => "release claim",
        Action::Restore(_) => "restore",
        Action::StartRun { .. } => "start run",
        Action::EndRun { .. } => "end run",
        Action::DropRun { .. } => "drop run",
    });
    let (plugin, checks) = (&context.plugin, &context.checks);
    let done = match action {
        Action::StartRun { name, run_for } => checks.start(object, seen, name, *run_for).await?,
        Action::EndRun { name, uid } => checks.end(object, name, uid).await?,
        Action::DropRun { name, uid } => checks.delete(object, name, uid).await?,
        Action::Release(share) => plugin.set_weight(target, &seen.version, *share).await?,
        Action::Remove { pod, uid, serving } => plugin.replace_pod(target, pod, uid, *serving).await?,
        Action::ReleaseClaim(leave) => plugin.release_claim(target, &seen.version, leave).await?,
        Action::Restore(share) => {
            let stable = record::memory(K::record(&object.status())).stable;
            let template = stable_template::read(object, stable.as_ref(), context).await?;
            plugin.restore(target, &seen.version, &template, *share).await?
        }
    };
    let uid = object.uid().unwrap_or_default();
    context.contention.done(&uid, action, seen, context.clock.now());
    Ok(done)
}

async fn set_finalizer<K: Rollout>(object: &K, present: bool, context: &Context<K>) -> Result<K, Error> {
    let mut finalizers: Vec<String> = object.finalizers().to_vec();
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    if present {
        finalizers.push(FINALIZER.into());
    } else {
        finalizers.retain(|finalizer| !K::INHERITED_FINALIZERS.contains(&finalizer.as_str()));
    }
    let patch = json!({"metadata": {"resourceVersion": object.resource_version(), "finalizers": finalizers}});
    let written = Objects::<K>::in_namespace_of(&context.client, object)?
        .patch(
            &ObjectName::new(object.name_any())?,
            &PatchParams::default(),
            &Patch::Merge(patch),
        )
        .await
        .map_err(Error::api("cannot set the finalizer"))?;
    context.latest.remember(&written);
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::runs::Runs;
    use crate::analysis::start::AnalysisRunStore;
    use crate::analysis::templates::{Allowed, Templates};
    use crate::turn::version;
    use rstest::rstest;
    use stateward_analysis::Workers;
    use stateward_api::phasedrollout::PhasedRollout;
    use stateward_api::rolloutplugin::RolloutPlugin;
    use stateward_plugin::statefulset::{Caches, StatefulSets};

    #[rstest]
    #[case::being_deleted(Some("2026-01-01T00:00:00Z"), &[], true)]
    #[case::kept_by_others(Some("2026-01-01T00:00:00Z"), &["example.com/backup"], true)]
    #[case::kept_by_us(Some("2026-01-01T00:00:00Z"), &["example.com/backup", FINALIZER], false)]
    #[case::kept_by_one_before_us(Some("2026-01-01T00:00:00Z"), &["sts.plus/finalizer"], false)]
    #[case::there(None, &[], false)]
    fn an_object_has_left_when_nothing_of_ours_keeps_it(
        #[case] deleted: Option<&str>,
        #[case] finalizers: &[&str],
        #[case] left: bool,
    ) {
        let object: PhasedRollout = serde_json::from_value(json!({
            "apiVersion": "sts.plus/v1alpha1", "kind": "PhasedRollout",
            "metadata": {"name": "db", "deletionTimestamp": deleted, "finalizers": finalizers},
            "spec": {"targetRef": "db", "check": {"query": {"expr": "up", "url": "prom"}}},
        }))
        .unwrap();
        assert_eq!(has_left(&object), left);
    }

    fn object(version: &str) -> RolloutPlugin {
        let object = json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "RolloutPlugin",
            "metadata": {"name": "db", "namespace": "ns", "uid": "1", "resourceVersion": version},
            "spec": {
                "workloadRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"},
                "plugin": {"name": "statefulset"}, "strategy": {"canary": {}},
            },
        });
        serde_json::from_value(object).unwrap()
    }

    /// Rule 16
    #[tokio::test(start_paused = true)]
    async fn our_own_last_write_counts_until_the_watch_has_caught_up() {
        let clock = Clock::starting_at(Timestamp::UNIX_EPOCH, 1.0);
        let cluster = stateward_cluster::Cluster::start(stateward_cluster::Options::at(clock.clone()));
        let client = cluster.client("operator");
        let plugin = Arc::new(StatefulSets::new(client.clone(), Caches::new().0));
        let (changed, _) = tokio::sync::mpsc::unbounded_channel();
        let (runs, templates) = (Runs::default(), Templates::new().0);
        let allowed = Allowed::for_tests();
        let run_store = AnalysisRunStore::new(
            client.clone(),
            runs,
            templates,
            allowed,
            Workers::default(),
            changed,
        );
        let (metrics, kind_barrier) = (Metrics::default(), KindBarrier::default());
        let slots = NamespaceSlots::new(tokio::sync::mpsc::unbounded_channel().0);
        let context = Context::new(
            client,
            clock,
            plugin,
            metrics,
            Arc::new(run_store),
            kind_barrier,
            slots,
        );
        let shown = |seen: &str| version(&context.latest.newest(&object(seen)));
        assert_eq!(shown("7"), 7);
        context.latest.remember(&object("9"));
        assert_eq!((shown("8"), shown("9"), shown("10")), (9, 9, 10));
    }
}
