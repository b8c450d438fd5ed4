//! The next status of a rollout.

use stateward_api::rollout::{
    self as api, AnalysisRunReference, CanaryStatus, PauseCondition, PodStatus, RolloutStatus,
};

use super::{conditions, history};
use crate::engine::{LONGEST_RUN_MESSAGE, background_run_name, shortened, step_run_name};
use crate::event::{EventReason, Notice};
use crate::memory::{Activity, Attempt, BackgroundRun, Cause, Memory, TakenCommand};
use crate::plan::Step;
use crate::workload::{Pod, Unready, Workload};
use crate::world::{Decision, Phase, Reason, World};

/// How many pods a status lists: enough to see what is wrong, few enough to read.
const SHOWN_PODS: usize = 20;

/// The status that records a decision. `None` when nothing is worth a write.
pub fn next_status(
    old: &RolloutStatus,
    generation: Option<i64>,
    world: &World,
    decision: &Decision,
) -> Option<RolloutStatus> {
    let new = compose(old, generation, world, decision)?;
    let differs = if rides_along(world, decision) {
        outline(&new) != outline(old)
    } else {
        new != *old
    };
    differs.then_some(new)
}

/// Whether pod counters wait for the next write of the status instead of causing one.
///
/// While pods are being replaced, their counters and the message are written together with the writes that steps and progress cause
/// anyway, as long as these are frequent. When a rollout makes no progress, and at rest, every change is written.
pub(crate) fn rides_along(world: &World, decision: &Decision) -> bool {
    // Without a workload, nothing else causes a write.
    let moves = match &decision.memory.activity {
        Activity::Rolling(attempt) => !attempt.stands_still(world.now),
        Activity::Idle | Activity::RollingBack(_) => false,
    };
    moves && world.workload.is_ok() && world.last_error.is_none()
}

/// The status for a decision. `None` when it has nothing to report yet.
pub(crate) fn compose(
    old: &RolloutStatus,
    generation: Option<i64>,
    world: &World,
    decision: &Decision,
) -> Option<RolloutStatus> {
    let report = decision.report.as_ref()?;
    let mut new = RolloutStatus {
        canary: canary(old, world, &decision.memory.activity),
        observed_generation: generation,
        phase: format!("{:?}", report.phase),
        reason: conditions::reason(report.reason).into(),
        message: report.message.clone(),
        conditions: conditions::of(
            report,
            world.contested.as_deref(),
            &old.conditions,
            generation,
            world.now,
        ),
        current_revision: old.current_revision.clone(),
        updated_revision: old.updated_revision.clone(),
        history: history::of(old, world, decision),
        ..RolloutStatus::default()
    };
    write_memory(&mut new, &decision.memory);
    if new.stable_template_hash == old.stable_template_hash {
        new.stable_template_copy.clone_from(&old.stable_template_copy);
    }
    new.former_template_copies = old.former_template_copies;
    if let Reason::Inconclusive | Reason::ChecksFailed = report.reason {
        for condition in &mut new.pause_conditions {
            condition.reason = conditions::reason(report.reason).into();
            if report.reason == Reason::Inconclusive {
                condition.start_time = in_doubt_since(old, world, &decision.memory);
            }
        }
    }
    match &world.workload {
        Ok(workload) => {
            write_workload(&mut new, workload, &decision.memory.activity, world);
            // A rejected revision stays on record; `aborted` says whether the template still asks for it.
            let asked_for = new.aborted_revision == new.updated_revision || new.aborted_template_replaced;
            new.aborted = new.aborted_revision.is_some() && asked_for;
        }
        Err(_) => {
            new.replicas = old.replicas;
            new.updated_replicas = old.updated_replicas;
            new.ready_replicas = old.ready_replicas;
            new.available_replicas = old.available_replicas;
        }
    }
    write_step(&mut new, old, world, &decision.memory);
    Some(new)
}

/// The current step, also at rest: after the last step for the stable version, before the first for an aborted one. An unknown step
/// keeps its old value.
fn write_step(new: &mut RolloutStatus, old: &RolloutStatus, world: &World, memory: &Memory) {
    let plan = world.plan.as_ref().ok().filter(|_| world.workload.is_ok());
    let index = new.current_step_index;
    (new.current_step_index, new.step) = match (&memory.activity, plan) {
        (Activity::Rolling(attempt), Some(plan)) => (index, Some(plan.place(attempt.step).short())),
        (Activity::Rolling(_), None) => {
            let stays = old.current_step_index == index;
            (index, old.step.clone().filter(|_| stays))
        }
        (Activity::RollingBack(_), _) => (Some(0), None),
        (Activity::Idle, _) if memory.stable.is_none() => (None, None),
        (Activity::Idle, Some(_)) if new.aborted => (Some(0), None),
        (Activity::Idle, Some(plan)) => (Some(number(plan.end().0)), Some(plan.place(plan.end()).short())),
        (Activity::Idle, None) => (old.current_step_index, old.step.clone()),
    };
}

/// Since when a run without a verdict has blocked the rollout: when it ended, or the time already in the status.
fn in_doubt_since(old: &RolloutStatus, world: &World, memory: &Memory) -> jiff::Timestamp {
    let doubtful = match &memory.activity {
        Activity::Rolling(attempt) => match attempt.background {
            BackgroundRun::InDoubt(_) => background_run_name(&world.object, attempt),
            BackgroundRun::NotYet | BackgroundRun::Since(_) | BackgroundRun::Waived => {
                Some(step_run_name(&world.object, attempt))
            }
        },
        Activity::Idle | Activity::RollingBack(_) => None,
    };
    let run = world.runs.iter().find(|run| Some(&run.name) == doubtful.as_ref());
    let inconclusive = conditions::reason(Reason::Inconclusive);
    let told = old
        .pause_conditions
        .iter()
        .find(|pause| pause.reason == inconclusive);
    let ended = run.and_then(|run| run.ended);
    ended.or(told.map(|pause| pause.start_time)).unwrap_or(world.now)
}

/// The event for a decision that is newly stuck: posted once, not on every reconcile.
pub fn stall(old: &RolloutStatus, decision: &Decision) -> Option<Notice> {
    let report = decision.report.as_ref()?;
    let condition = match (report.phase, report.reason) {
        // These have events of their own.
        (_, Reason::Rejected | Reason::Aborting | Reason::ChecksFailed) => return None,
        (Phase::Failed, _) => "Stalled",
        // It may be created later.
        (_, Reason::WorkloadMissing) => "Progressing",
        _ => return None,
    };
    let reason = conditions::reason(report.reason);
    // Messages about pods and deadlines change every time.
    let same_words = matches!(report.reason, Reason::PodBroken | Reason::DeadlineExceeded);
    let told = old.conditions.iter().any(|before| {
        before.kind == condition
            && before.status == "True"
            && before.reason == reason
            && (same_words || before.message == report.message)
    });
    (!told).then(|| Notice {
        reason: EventReason::Stuck(report.reason),
        message: report.message.clone(),
    })
}

/// The reason of a pod that terminates.
const TERMINATING: &str = "Terminating";

/// Reasons that every pod may have while it is replaced.
const EXPECTED: [&str; 4] = [
    TERMINATING,
    Unready::INITIALIZING,
    Unready::STARTUP_PROBE,
    Unready::READINESS_PROBE,
];

/// The part of a status that is worth a write of its own while pods are replaced.
pub(crate) fn outline(status: &RolloutStatus) -> RolloutStatus {
    let mut outline = status.clone();
    outline.message.clear();
    // Why a pod does not become Ready is written as soon as it is known.
    let is_expected = |reason: &str| EXPECTED.contains(&reason);
    outline.pods = status
        .pods
        .iter()
        .filter(|pod| pod.reason.as_deref().is_some_and(|reason| !is_expected(reason)))
        .map(|pod| PodStatus {
            name: pod.name.clone(),
            revision: None,
            ready: false,
            restarts: 0,
            reason: pod.reason.clone(),
        })
        .collect();
    outline.current_revision = None;
    outline.replicas = None;
    outline.updated_replicas = None;
    outline.ready_replicas = None;
    outline.available_replicas = None;
    for condition in &mut outline.conditions {
        condition.message.clear();
    }
    // A run is written once it has started, a moment after its creation.
    let begun = |run: &AnalysisRunReference| run.status != "Pending";
    outline.canary = outline.canary.take().and_then(|canary| {
        let CanaryStatus {
            current_step_analysis_run_status: of_step,
            current_background_analysis_run_status: background,
        } = canary;
        let canary = CanaryStatus {
            current_step_analysis_run_status: of_step.filter(begun),
            current_background_analysis_run_status: background.filter(begun),
        };
        (canary != CanaryStatus::default()).then_some(canary)
    });
    // The message of a running analysis waits for the next write.
    if let Some(canary) = &mut outline.canary {
        let runs = canary.current_step_analysis_run_status.iter_mut();
        for run in runs.chain(&mut canary.current_background_analysis_run_status) {
            if run.status == "Running" {
                run.message.clear();
            }
        }
    }
    outline
}

fn write_memory(status: &mut RolloutStatus, memory: &Memory) {
    // Without `..`, so that no new field can be forgotten here.
    let Memory {
        workload,
        setting,
        stable,
        activity,
        rejected,
        withdrawn,
        retries,
        retried_at,
    } = memory;
    status.workload_uid = workload.clone();
    status.workload_setting = setting.clone();
    status.stable_revision = stable.as_ref().map(|stable| stable.revision.to_string());
    status.stable_template_hash = stable.as_ref().map(|stable| stable.template.as_str().to_owned());
    status.withdrawn_revision = withdrawn.as_ref().map(ToString::to_string);
    status.restart_count = (*retries > 0).then(|| number(*retries));
    status.restarted_at = *retried_at;
    if let Some(rejected) = rejected {
        status.aborted_revision = Some(rejected.revision.to_string());
        status.aborted_at = Some(rejected.at);
        status.aborted_reason = Some(rejected.reason.clone());
        status.aborted_template_replaced = rejected.replaced;
    }
    match activity {
        Activity::Idle => {}
        Activity::Rolling(attempt) => write_attempt(status, attempt),
        Activity::RollingBack(back) => {
            let cause = match back.cause {
                Cause::Aborted => "Aborted",
                Cause::TemplateReverted => "PutBack",
                Cause::ScaledToZero => "ScaledToZero",
            };
            status.returning = Some(cause.into());
            status.returning_from = Some(back.from.to_string());
            status.returning_since = Some(back.since);
        }
    }
}

fn write_attempt(status: &mut RolloutStatus, attempt: &Attempt) {
    let Attempt {
        target,
        step,
        steps,
        counted,
        entered,
        progressed,
        max_available,
        max_replaced,
        min_updated,
        kept,
        limit,
        stopped_at,
        ignored_pods,
        paused_by_user,
        paused_at_step,
        fully_promoted,
        background,
        commands,
    } = attempt;
    status.updated_revision = Some(target.to_string());
    status.current_step_index = Some(number(step.0));
    status.current_step_hash = Some(steps.as_str().to_owned());
    status.step_replicas = counted.map(number);
    status.current_step_started_at = Some(*entered);
    status.progressed_at = Some(*progressed);
    status.reached_replicas = Some(number(*max_available));
    status.exposed_replicas = (*max_replaced > 0).then(|| number(*max_replaced));
    status.floor_replicas = (*min_updated > 0).then(|| number(*min_updated));
    status.kept_pods = kept.iter().map(|index| number(*index)).collect();
    status.share_limit = limit.map(number);
    status.stopped_replicas = stopped_at.map(number);
    status.excused_pods = ignored_pods.iter().map(|index| number(*index)).collect();
    status.manual_pause = *paused_by_user;
    status.fully_promoted = *fully_promoted;
    status.taken_commands = taken_commands(commands);
    let in_doubt = match background {
        BackgroundRun::NotYet | BackgroundRun::Since(_) | BackgroundRun::Waived => false,
        BackgroundRun::InDoubt(_) => true,
    };
    status.background_started_at = match background {
        BackgroundRun::Since(since) | BackgroundRun::InDoubt(since) => Some(*since),
        BackgroundRun::NotYet | BackgroundRun::Waived => None,
    };
    status.background_paused = in_doubt;
    status.background_waived = *background == BackgroundRun::Waived;
    status.controller_pause = *paused_at_step || in_doubt;
    if status.controller_pause {
        status.pause_conditions = vec![PauseCondition {
            reason: "CanaryPauseStep".into(),
            start_time: *entered,
        }];
    }
}

/// Commands in the form of the API.
pub(super) fn taken_commands(commands: &[TakenCommand]) -> Vec<api::TakenCommand> {
    let written = |taken: &TakenCommand| api::TakenCommand {
        command: taken.command.as_str().into(),
        from_step: number(taken.from.0),
        to_step: number(taken.to.0),
        by: taken.by.clone(),
        at: taken.at,
    };
    commands.iter().map(written).collect()
}

/// The runs of an attempt's analyses. Their results stay visible until the next attempt begins.
fn canary(old: &RolloutStatus, world: &World, activity: &Activity) -> Option<CanaryStatus> {
    // When an attempt ends, its last state is shown.
    let attempt = match (activity, &world.memory.activity) {
        (Activity::Rolling(attempt), _) | (_, Activity::Rolling(attempt)) => Some(attempt),
        _ => None,
    };
    let (Some(attempt), Ok(plan)) = (attempt, &world.plan) else {
        return old.canary.clone();
    };
    let reference = |name: String| {
        let run = world.runs.iter().find(|run| run.name == name)?;
        Some(AnalysisRunReference {
            name,
            status: format!("{:?}", run.phase),
            message: shortened(&run.message, LONGEST_RUN_MESSAGE).into_owned(),
        })
    };
    let of_step = matches!(plan.step(attempt.step), Some(Step::Analysis(_)));
    let canary = CanaryStatus {
        current_step_analysis_run_status: of_step
            .then(|| step_run_name(&world.object, attempt))
            .and_then(reference),
        current_background_analysis_run_status: background_run_name(&world.object, attempt)
            .and_then(reference),
    };
    (canary != CanaryStatus::default()).then_some(canary)
}

fn write_workload(status: &mut RolloutStatus, workload: &Workload, activity: &Activity, world: &World) {
    status.current_revision = Some(workload.current.to_string());
    if !matches!(activity, Activity::Rolling(_)) {
        status.updated_revision = Some(workload.update.to_string());
    }
    let count = |wanted: &dyn Fn(&Pod) -> bool| {
        let pods = workload.pods.iter().filter(|pod| !pod.terminating && wanted(pod));
        Some(number(pods.count() as u32))
    };
    let available = |pod: &Pod| {
        pod.available_at(workload.min_ready)
            .is_some_and(|at| at <= world.now)
    };
    status.replicas = Some(number(workload.replicas));
    status.updated_replicas = count(&|pod| pod.runs(&workload.update));
    status.ready_replicas = count(&Pod::ready);
    status.available_replicas = count(&available);
    // A healthy pod on the updated version is not listed.
    let noteworthy = |pod: &&Pod| !pod.ready() || !pod.runs(&workload.update);
    let pods = workload.pods.iter().filter(noteworthy).take(SHOWN_PODS);
    status.pods = pods.map(row).collect();
}

fn row(pod: &Pod) -> PodStatus {
    let reason = match (&pod.trouble, pod.terminating, &pod.unready) {
        (Some(trouble), ..) => Some(trouble.reason.clone()),
        (None, true, _) => Some(TERMINATING.into()),
        (None, false, unready) => unready.as_ref().map(|unready| unready.reason.clone()),
    };
    PodStatus {
        name: pod.name.clone(),
        revision: pod.revision.as_ref().map(ToString::to_string),
        ready: pod.ready(),
        restarts: number(pod.restarts),
        reason,
    }
}

/// The API counts in i32.
fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::decide;
    use crate::engine::fixture::{returning, rolling, settled};
    use crate::event::EventType;
    use crate::plan::Fingerprint;
    use crate::revision::RevisionName;
    use crate::world::Report;
    use jiff::SignedDuration;
    use rstest::rstest;
    use stateward_api::rollout::Condition;

    fn report(phase: Phase, reason: Reason, message: &str) -> Decision {
        Decision {
            memory: Memory::default(),
            action: None,
            report: Some(Report {
                phase,
                reason,
                message: message.into(),
            }),
            notices: Vec::new(),
            look_again: None,
        }
    }

    fn stalled(reason: &str, message: &str) -> RolloutStatus {
        RolloutStatus {
            conditions: vec![Condition {
                kind: "Stalled".into(),
                status: "True".into(),
                reason: reason.into(),
                message: message.into(),
                last_transition_time: jiff::Timestamp::UNIX_EPOCH,
                observed_generation: None,
            }],
            ..RolloutStatus::default()
        }
    }

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::from_second(second).unwrap()
    }

    fn memory(activity: Activity) -> Memory {
        Memory {
            workload: Some("uid".into()),
            setting: Some("3".into()),
            stable: Some(crate::memory::Stable {
                revision: RevisionName::from_api("a"),
                template: Fingerprint::of("a"),
            }),
            activity,
            rejected: Some(crate::memory::Rejection {
                revision: RevisionName::from_api("z"),
                at: at(1),
                reason: "aborted by a user".into(),
                replaced: true,
            }),
            withdrawn: Some(RevisionName::from_api("y")),
            retries: 2,
            retried_at: Some(at(2)),
        }
    }

    #[rstest]
    #[case::at_rest(Activity::Idle)]
    #[case::on_the_way(Activity::Rolling(Attempt {
        target: RevisionName::from_api("b"),
        step: crate::plan::StepIndex(3),
        steps: Fingerprint::of("steps"),
        counted: Some(5),
        entered: at(3),
        progressed: at(4),
        max_available: 5,
        max_replaced: 6,
        min_updated: 6,
        kept: vec![2, 3],
        limit: Some(4),
        stopped_at: Some(3),
        ignored_pods: vec![7, 8],
        paused_by_user: true,
        paused_at_step: true,
        fully_promoted: true,
        background: BackgroundRun::Since(at(10)),
        commands: vec![crate::memory::TakenCommand {
            command: crate::memory::Command::Skip,
            from: crate::plan::StepIndex(2),
            to: crate::plan::StepIndex(3),
            by: Some("alice".into()),
            at: at(11),
        }],
    }))]
    #[case::and_back(Activity::RollingBack(crate::memory::Rollback {
        from: RevisionName::from_api("b"),
        cause: Cause::ScaledToZero,
        since: at(9),
    }))]
    fn what_is_written_down_is_remembered_and_asks_for_nothing(#[case] activity: Activity) {
        let memory = memory(activity);
        let mut status = RolloutStatus::default();
        write_memory(&mut status, &memory);
        assert_eq!(crate::record::memory(&status), memory);
        let commands = crate::record::commands(&status);
        assert_eq!(commands, crate::world::Commands::default());
    }

    /// Like Argo Rollouts. A rollout at rest is not remembered as one at its last step.
    #[rstest]
    #[case::at_rest(settled(), Some(3), Some("3/3"))]
    #[case::without_steps(with_steps(settled(), Vec::new()), Some(0), Some("0/0"))]
    #[case::of_pods(with_steps(settled(), crate::plan::pod_by_pod(5)), Some(11), Some("5/5"))]
    #[case::rolling(rolling(1), Some(1), Some("2/3"))]
    #[case::rolling_the_last(rolling(2), Some(2), Some("3/3"))]
    #[case::all_steps_done(rolling(3), Some(3), Some("3/3"))]
    #[case::on_the_way_back(returning(["a", "a", "a", "a", "b"]), Some(0), None)]
    #[case::aborted(aborted(), Some(0), None)]
    #[case::aborted_and_put_back(put_back(aborted()), Some(3), Some("3/3"))]
    #[case::never_managed(never_managed(), None, None)]
    fn the_step_stays_when_a_rollout_is_done(
        #[case] world: World,
        #[case] index: Option<i32>,
        #[case] step: Option<&str>,
    ) {
        let status = compose(&RolloutStatus::default(), None, &world, &decide(&world)).unwrap();
        assert_eq!((status.current_step_index, status.step.as_deref()), (index, step));
        let rolls = matches!(world.memory.activity, Activity::Rolling(_));
        let read_back = crate::record::memory(&status).activity;
        assert_eq!(matches!(read_back, Activity::Rolling(_)), rolls);
    }

    /// The number of steps is unknown while the spec is invalid or the workload is missing.
    #[rstest]
    #[case::invalid(|world: &mut World| world.plan = Err(vec!["spec.x: is wrong".into()]))]
    #[case::gone(|world: &mut World| world.workload = Err(crate::world::NoWorkload::Missing("StatefulSet db".into())))]
    fn a_step_that_cannot_be_counted_stays_as_it_was(#[case] change: fn(&mut World)) {
        for mut world in [settled(), rolling(1)] {
            let old = compose(&RolloutStatus::default(), None, &world, &decide(&world)).unwrap();
            change(&mut world);
            let new = compose(&old, None, &world, &decide(&world)).unwrap();
            assert_eq!(
                (new.current_step_index, new.step),
                (old.current_step_index, old.step)
            );
        }
    }

    fn with_steps(mut world: World, steps: impl Into<crate::plan::Steps>) -> World {
        world.plan.as_mut().unwrap().steps = steps.into();
        world
    }

    /// Every pod is rolled back, and the template still asks for the aborted version.
    fn aborted() -> World {
        let mut world = settled();
        world.template("b");
        world.memory.rejected = Some(crate::memory::Rejection {
            revision: crate::engine::fixture::revision("b"),
            at: at(1),
            reason: "aborted by a user".into(),
            replaced: false,
        });
        world
    }

    fn put_back(mut world: World) -> World {
        world.template("a");
        world
    }

    fn never_managed() -> World {
        let mut world = settled();
        world.memory = Memory::default();
        world.workload = Err(crate::world::NoWorkload::Missing("StatefulSet db".into()));
        world
    }

    #[rstest]
    #[case(RolloutStatus::default(), Reason::InvalidSpec, "a", true)]
    #[case(stalled("InvalidSpec", "a"), Reason::InvalidSpec, "a", false)]
    #[case(stalled("InvalidSpec", "b"), Reason::InvalidSpec, "a", true)]
    #[case(stalled("PodBroken", "b"), Reason::PodBroken, "a", false)]
    #[case(stalled("PodBroken", "a"), Reason::DeadlineExceeded, "a", true)]
    #[case(RolloutStatus::default(), Reason::Rejected, "a", false)]
    fn getting_stuck_is_told_once(
        #[case] old: RolloutStatus,
        #[case] reason: Reason,
        #[case] message: &str,
        #[case] told: bool,
    ) {
        let decision = report(Phase::Failed, reason, message);
        assert_eq!(stall(&old, &decision).is_some(), told);
    }

    #[test]
    fn a_workload_that_is_missing_is_told_once() {
        let decision = report(Phase::Progressing, Reason::WorkloadMissing, "waiting for it");
        let notice = stall(&RolloutStatus::default(), &decision).unwrap();
        assert_eq!(notice.reason.event_type(), EventType::Normal);
        let old = RolloutStatus {
            conditions: conditions::of(decision.report.as_ref().unwrap(), None, &[], None, at(0)),
            ..RolloutStatus::default()
        };
        assert_eq!(stall(&old, &decision), None);
    }

    /// The reason that a pod is not Ready waits for the next write, unless it is unexpected: for a while every starting pod has a
    /// failing probe.
    #[rstest]
    #[case("ErrImagePull", true)]
    #[case("Unschedulable", true)]
    #[case(Unready::READINESS_PROBE, false)]
    #[case(Unready::INITIALIZING, false)]
    fn why_a_pod_does_not_get_ready_is_told_at_once(#[case] reason: &str, #[case] told: bool) {
        let mut world = crate::engine::fixture::rolling(0);
        world.view().released = 1;
        world.pods(["a", "a", "a", "a", "b"]);
        world.unready(4);
        let old = next_status(&RolloutStatus::default(), None, &world, &decide(&world)).unwrap();
        world.view().pods[4].unready = Some(Unready {
            reason: reason.into(),
            message: format!("{reason}: so it is"),
        });
        let new = next_status(&old, None, &world, &decide(&world));
        assert_eq!(new.is_some(), told);
        let message = format!("waiting for pod db-4 to be Ready ({reason}: so it is)");
        assert!(new.is_none_or(|new| new.message.contains(&message)));
    }

    #[rstest]
    #[case(9, false)]
    #[case(10, true)]
    fn the_message_of_a_step_is_told_anew_once_it_stands_still(#[case] second: i64, #[case] told: bool) {
        let mut world = crate::engine::fixture::rolling(0);
        world.view().released = 1;
        world.pods(["a", "a", "a", "a", "b"]);
        world.unready(4);
        let old = next_status(&RolloutStatus::default(), None, &world, &decide(&world)).unwrap();
        assert!(old.message.contains("pod db-4 to be Ready"));
        assert_eq!(
            decide(&world).look_again,
            Some(world.now + SignedDuration::from_secs(10))
        );
        world.pods(["a", "a", "a", "a", ""]);
        world.now += SignedDuration::from_secs(second);
        let new = next_status(&old, None, &world, &decide(&world));
        assert_eq!(new.is_some(), told);
        assert!(new.is_none_or(|new| new.message.contains("pod 4 to be created")));
    }
}
