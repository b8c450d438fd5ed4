//! Executes steps: releases a share, waits until it is healthy, advances (rules 2, 3, 9 and 14).

use jiff::Timestamp;

use super::gate::{GateStatus, gate, released_pods};
use super::pause::{note_stop, released_while_stopped};
use super::scale::{share_in_words, to_release};
use super::{Decider, Outcome, report};
use crate::event::EventReason;
use crate::memory::{Activity, Attempt, BackgroundRun, Stable};
use crate::plan::{Fingerprint, Plan, Share, Step, StepIndex, gate_after};
use crate::revision::RevisionName;
use crate::workload::{Claim, Workload};
use crate::world::{Action, Phase, Reason, Report};

/// A new attempt, at the first step.
pub(super) fn begin(plan: &Plan, workload: &Workload, now: Timestamp) -> Attempt {
    let broken = |index: &u32| match workload.at(*index) {
        // If all pods must be available, the attempt waits for pods that are only starting or being replaced.
        Some(pod) if plan.by_pod => pod.is_broken(now),
        Some(pod) => !pod.ready(),
        None => !plan.by_pod,
    };
    let attempt = Attempt {
        target: workload.update.clone(),
        step: StepIndex::default(),
        steps: plan.fingerprint(),
        counted: Some(workload.replicas),
        entered: now,
        progressed: now,
        max_available: 0,
        max_replaced: 0,
        min_updated: 0,
        kept: Vec::new(),
        limit: None,
        stopped_at: None,
        ignored_pods: (0..workload.replicas).filter(broken).collect(),
        paused_by_user: false,
        paused_at_step: false,
        fully_promoted: false,
        background: BackgroundRun::NotYet,
        commands: Vec::new(),
    };
    enter(attempt, StepIndex::default(), plan, now)
}

/// A new attempt, at the step after which `exposed` pods already run the new version.
pub(super) fn begin_at(exposed: u32, plan: &Plan, workload: &Workload, now: Timestamp) -> Attempt {
    let attempt = begin(plan, workload, now);
    if plan.by_pod {
        return enter(attempt, gate_after(exposed), plan, now);
    }
    Attempt {
        min_updated: exposed,
        ..attempt
    }
}

/// A new attempt with an invalid plan: it begins when the plan is valid, and until then `exposed` pods run the new version.
pub(super) fn begin_without_plan(exposed: u32, workload: &Workload, now: Timestamp) -> Attempt {
    Attempt {
        target: workload.update.clone(),
        step: StepIndex::default(),
        steps: unplanned(),
        counted: Some(workload.replicas),
        entered: now,
        progressed: now,
        max_available: 0,
        max_replaced: 0,
        min_updated: exposed,
        kept: Vec::new(),
        limit: None,
        stopped_at: Some(exposed),
        ignored_pods: Vec::new(),
        paused_by_user: false,
        paused_at_step: false,
        fully_promoted: false,
        background: BackgroundRun::NotYet,
        commands: Vec::new(),
    }
}

/// The fingerprint of an attempt that began without a valid plan: no plan has it.
fn unplanned() -> Fingerprint {
    Fingerprint::of("")
}

/// The attempt, moved to another step.
pub(super) fn enter(attempt: Attempt, step: StepIndex, plan: &Plan, now: Timestamp) -> Attempt {
    Attempt {
        step,
        entered: now,
        progressed: now,
        paused_at_step: matches!(plan.step(step), Some(Step::Pause(_))),
        limit: match plan.step(step) {
            Some(Step::Share(_)) | None => None,
            Some(Step::Pause(_) | Step::Analysis(_)) => attempt.limit,
        },
        ..attempt
    }
}

impl Decider<'_> {
    /// One decision of an attempt.
    pub(super) fn roll(&mut self, workload: &Workload, plan: &Plan) -> Outcome {
        let Activity::Rolling(mut attempt) = self.memory.activity.clone() else {
            return self.idle(workload);
        };
        if let Some(raising) = self.raise_guard_before_recounting(&attempt, workload, plan) {
            return raising;
        }
        self.rescale(&mut attempt, workload, plan);
        self.recount(&mut attempt, workload, plan);
        self.hold(&mut attempt, plan, workload);
        if let Some(why) = self.failed_analysis(&attempt, plan) {
            self.memory.activity = Activity::Rolling(attempt);
            self.reject(why);
            return self.roll_back(workload);
        }
        self.observe_background(&mut attempt, plan);
        if plan.by_pod {
            self.stop_ignoring_available_pods(&mut attempt, workload);
        }
        if plan.by_pod && plan.share_at(attempt.step) == Share::NONE {
            self.ignore_stuck_pods(&mut attempt, plan, workload);
        }
        if plan.by_pod && !attempt.paused_by_user {
            self.go_back_to_gate(&mut attempt, plan, workload);
        }
        let stopped = attempt.paused_by_user || matches!(attempt.background, BackgroundRun::InDoubt(_));
        let share = plan.share_at(attempt.step);
        let due = to_release(&attempt, plan, workload.replicas);
        let allowed = if stopped {
            due.min(released_while_stopped(&attempt, workload))
        } else {
            due
        };
        note_stop(&mut attempt, stopped, allowed, workload);
        // Kubernetes already treats the new version as the current one, so with the guard up every pod gets it.
        let converged = plan.step(attempt.step).is_none() && workload.current == attempt.target;
        let guarded = converged && workload.released == 0 && workload.claim == Claim::Ours;
        // So the last checks run behind the guard.
        let last_gate = plan.by_pod
            && matches!(plan.step(attempt.step), Some(Step::Analysis(_)))
            && due == workload.replicas
            && workload.current == attempt.target;
        let (share, allowed) = if last_gate {
            (Share::NONE, 0)
        } else {
            (share, allowed)
        };
        let must_set =
            !converged && (workload.released != i64::from(allowed) || workload.claim != Claim::Ours);
        if must_set {
            self.restart_deadline(&mut attempt, plan, workload);
        }
        // A gate passes and a version is rejected only from the recorded state, and each is a write of its own.
        let recorded = self.world.memory.activity == Activity::Rolling(attempt.clone());
        if recorded && due < workload.replicas && workload.current == attempt.target {
            self.memory.activity = Activity::Rolling(attempt);
            self.reject("Kubernetes no longer knows the stable revision".into());
            return self.roll_back(workload);
        }

        // Unless all steps were skipped, no further pod is released while a released pod is not available, or while one of the two
        // watches lags.
        let exposes = i64::from(allowed) > workload.released;
        let released = match exposes && !attempt.fully_promoted {
            true => released_pods(workload, &attempt, self.world.now),
            false => GateStatus::Open,
        };
        let unwell = released != GateStatus::Open;
        let gate_status = match released {
            GateStatus::Open => self.gate(workload, &attempt, plan, due),
            waiting => waiting,
        };
        // To update the message, and to check the deadline.
        self.wake(attempt.stands_still_from());
        if let GateStatus::Waiting { until: Some(at), .. } = &gate_status {
            self.wake(*at);
        }
        let progress = workload.members().filter(|pod| {
            pod.runs(&attempt.target)
                && pod
                    .available_at(workload.min_ready)
                    .is_some_and(|at| at <= self.world.now)
        });
        let available = progress.count() as u32;
        if available > attempt.max_available && workload.counters_agree() {
            attempt.max_available = available;
            attempt.progressed = self.world.now;
        }
        let vacated = |index: &u32| workload.at(*index).is_none_or(|pod| pod.runs(&attempt.target));
        let released = workload.first_released(due)..workload.replicas;
        let replaced = released.filter(vacated).count() as u32;
        if plan.by_pod && replaced > attempt.max_replaced {
            attempt.max_replaced = replaced;
            attempt.progressed = self.world.now;
        }
        let set = Action::Release(if share.of(workload.replicas) == allowed {
            share
        } else {
            Share::Pods(allowed)
        });
        // The paused share is counted from the pods: if one of the watches lags, the count may be too low.
        let unsure = stopped && !workload.same_pods();
        let mut broken = false;
        let report = match (&gate_status, plan.step(attempt.step)) {
            (GateStatus::Open, _) if must_set || stopped || !recorded => {
                self.describe(&attempt, plan, &gate_status)
            }
            (GateStatus::Open, Some(Step::Share(_))) => {
                let next = attempt.step.next();
                attempt = enter(attempt, next, plan, self.world.now);
                self.entered(&attempt, plan);
                self.describe_next(&attempt, plan, workload)
            }
            // Only then is the rollout complete: users may change the template as soon as they see that.
            (GateStatus::Open, _) if converged && !guarded => {
                return Outcome {
                    action: Some(Action::Release(Share::NONE)),
                    report: None,
                };
            }
            (GateStatus::Open, Some(Step::Pause(duration))) => {
                self.pause(&mut attempt, plan, duration, workload)
            }
            (GateStatus::Open, Some(Step::Analysis(_))) => self.analyse(&mut attempt, plan, workload),
            (GateStatus::Open, None) if converged => match self.unmeasured(&attempt, plan) {
                Some(what) => report(
                    Phase::Progressing,
                    Reason::Analysing,
                    format!(
                        "{} and every pod runs {}: {what}",
                        super::command::steps_behind(&attempt, plan),
                        attempt.target
                    ),
                ),
                None => return self.complete(attempt, workload),
            },
            (GateStatus::Waiting { .. } | GateStatus::Open, _) => {
                match self.failure(&attempt, plan, workload, &gate_status) {
                    Some(verdict) if verdict.abort && recorded => {
                        self.memory.activity = Activity::Rolling(attempt);
                        self.reject(verdict.why);
                        return self.roll_back(workload);
                    }
                    Some(verdict) if !verdict.abort => {
                        broken = verdict.report.reason == Reason::PodBroken;
                        verdict.report
                    }
                    _ => self.describe(&attempt, plan, &gate_status),
                }
            }
        };
        // A version known to be broken is not released to further pods, even if the recorded step says so.
        let refused = exposes && (broken || unwell);
        let action = (must_set && !refused)
            .then_some(set)
            .or_else(|| self.next_to_remove(workload, Some(&attempt), allowed))
            .filter(|_| !unsure)
            .or_else(|| self.next_run_to_start(&attempt, plan, &gate_status));
        self.memory.activity = Activity::Rolling(attempt);
        Outcome {
            action,
            report: Some(report),
        }
    }

    /// Restarts edited steps from the first, and also if the current step does not exist any more; pods that are already updated
    /// stay updated.
    fn recount(&mut self, attempt: &mut Attempt, workload: &Workload, plan: &Plan) {
        if attempt.steps == plan.fingerprint() && attempt.step <= plan.end() {
            return;
        }
        let exposed = workload.exposed_from_the_top(&attempt.target);
        let exposed = exposed.min(attempt.stopped_at.unwrap_or(exposed));
        if attempt.steps == unplanned() {
            *attempt = Attempt {
                commands: std::mem::take(&mut attempt.commands),
                ..begin_at(exposed.min(attempt.min_updated), plan, workload, self.world.now)
            };
            return;
        }
        attempt.min_updated = attempt.min_updated.max(exposed);
        let first = workload.first_released(exposed);
        let kept = attempt.kept.iter().filter(|index| **index < first).count();
        let exposed = exposed as usize + kept;
        attempt.steps = plan.fingerprint();
        *attempt = enter(attempt.clone(), StepIndex::default(), plan, self.world.now);
        attempt.forget_skipped();
        // A user who skipped the remaining steps did not mean the edited ones.
        attempt.fully_promoted = false;
        self.notice(
            EventReason::StepsChanged,
            format!("the steps were changed: beginning at the first, {exposed} pods stay on the new version"),
        );
    }

    fn complete(&mut self, attempt: Attempt, workload: &Workload) -> Outcome {
        self.completed(attempt.target, workload.template.clone());
        self.idle(workload)
    }

    pub(super) fn completed(&mut self, revision: RevisionName, template: Fingerprint) {
        self.notice(
            EventReason::RolloutCompleted,
            format!("every pod runs {revision}"),
        );
        self.memory.stable = Some(Stable { revision, template });
        self.memory.rejected = None;
        self.memory.activity = Activity::Idle;
    }

    pub(super) fn entered(&mut self, attempt: &Attempt, plan: &Plan) {
        if let Some(Step::Pause(duration)) = plan.step(attempt.step) {
            let message = match duration {
                Some(duration) => format!("{}: pausing for {duration:#}", attempt.target),
                None => format!(
                    "{}: paused; go on with: {}",
                    attempt.target,
                    self.command_for(&attempt.target, "promote")
                ),
            };
            self.notice(EventReason::RolloutPaused, message);
        }
    }

    fn gate(&self, workload: &Workload, attempt: &Attempt, plan: &Plan, due: u32) -> GateStatus {
        let all_available = plan.by_pod;
        gate(
            workload,
            attempt,
            self.stable_revision(),
            due,
            all_available,
            self.world.now,
        )
    }

    /// The status of the gate between the attempt's step and the next.
    pub(super) fn gate_of_step(&self, workload: &Workload, attempt: &Attempt, plan: &Plan) -> GateStatus {
        let due = to_release(attempt, plan, workload.replicas);
        self.gate(workload, attempt, plan, due)
    }

    pub(super) fn stable_revision(&self) -> Option<RevisionName> {
        self.memory.stable.as_ref().map(|stable| stable.revision.clone())
    }

    /// The command to type: `kubectl stateward promote my-rollout`.
    pub(super) fn command(&self, verb: &str) -> String {
        format!("kubectl stateward {verb} {}", self.world.name)
    }

    /// The same for `revision` only: it is refused if another version is being rolled out by then.
    pub(super) fn command_for(&self, revision: &RevisionName, verb: &str) -> String {
        format!("{} --revision {revision}", self.command(verb))
    }

    /// The report of a step that was just entered; its gate cannot be open yet.
    pub(super) fn describe_next(&mut self, attempt: &Attempt, plan: &Plan, workload: &Workload) -> Report {
        let gate_status = self.gate_of_step(workload, attempt, plan);
        if let GateStatus::Waiting { until: Some(at), .. } = &gate_status {
            self.wake(*at);
        }
        self.describe(attempt, plan, &gate_status)
    }

    /// The report of an attempt.
    pub(super) fn describe(&mut self, attempt: &Attempt, plan: &Plan, gate_status: &GateStatus) -> Report {
        let place = plan.place(attempt.step);
        if attempt.paused_by_user {
            return report(
                Phase::Paused,
                Reason::ManuallyPaused,
                format!(
                    "paused by spec.paused at {place}; go on with: {}",
                    self.command_for(&attempt.target, "resume")
                ),
            );
        }
        if let BackgroundRun::InDoubt(_) = attempt.background {
            return self.describe_inconclusive(attempt);
        }
        let mut waiting = gate_status.clause();
        if let (Some(limit), Some(counted)) = (attempt.limit, attempt.counted)
            && limit < plan.share_at(attempt.step).of(counted)
        {
            waiting += &format!("; scaled up: {}", share_in_words(attempt, plan, counted));
        }
        match plan.step(attempt.step) {
            Some(Step::Analysis(_)) => self.describe_analysis(attempt, plan, &waiting),
            Some(Step::Pause(duration)) => {
                let until = duration.and_then(|duration| attempt.entered.saturating_add(duration).ok());
                if let Some(until) = until {
                    self.wake(until);
                }
                let until = match (until, gate_status) {
                    (Some(until), GateStatus::Waiting { what, .. }) if until <= self.world.now => {
                        return report(
                            Phase::Progressing,
                            Reason::Stepping,
                            format!("{place}: the pause is over: {what}"),
                        );
                    }
                    (Some(until), _) => format!(" until {}", super::pause::to_seconds(until)),
                    (None, _) => String::new(),
                };
                report(
                    Phase::Paused,
                    Reason::StepPaused,
                    format!(
                        "{place}: paused{until}{waiting}; go on with: {}",
                        self.command_for(&attempt.target, "promote")
                    ),
                )
            }
            Some(Step::Share(share)) => report(
                Phase::Progressing,
                Reason::Stepping,
                format!("{place}: {share} to {}{waiting}", attempt.target),
            ),
            None => report(
                Phase::Progressing,
                Reason::Converging,
                format!(
                    "{}, the remaining pods follow to {}{waiting}",
                    super::command::steps_behind(attempt, plan),
                    attempt.target
                ),
            ),
        }
    }
}
