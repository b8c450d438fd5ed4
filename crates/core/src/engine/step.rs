//! Taking steps: release a share, see it healthy, go on (rules 2, 3, 9 and 14).

use jiff::Timestamp;

use super::gate::{Ahead, gate, released_pods};
use super::pause::{note_stop, released_while_stopped};
use super::scale::{share_in_words, to_release};
use super::{Outcome, Turn, report};
use crate::event::EventReason;
use crate::memory::{Activity, Attempt, Beside, Stable};
use crate::plan::{Fingerprint, Plan, Share, Step, StepIndex, gate_after};
use crate::revision::RevisionName;
use crate::workload::{Claim, Workload};
use crate::world::{Action, Phase, Reason, Report};

/// A new attempt, at the first step.
pub(super) fn begin(plan: &Plan, workload: &Workload, now: Timestamp) -> Attempt {
    let broken = |index: &u32| match workload.at(*index) {
        // Where all have to be available, one that is only starting or being replaced is waited for.
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
        reached: 0,
        exposed: 0,
        floor: 0,
        kept: Vec::new(),
        limit: None,
        stopped_at: None,
        excused: (0..workload.replicas).filter(broken).collect(),
        held: false,
        pausing: false,
        fully_promoted: false,
        beside: Beside::NotYet,
        commands: Vec::new(),
    };
    enter(attempt, StepIndex::default(), plan, now)
}

/// A new attempt, at the step after which so many pods run the new version already.
pub(super) fn begin_at(exposed: u32, plan: &Plan, workload: &Workload, now: Timestamp) -> Attempt {
    let attempt = begin(plan, workload, now);
    if plan.by_pod {
        return enter(attempt, gate_after(exposed), plan, now);
    }
    Attempt {
        floor: exposed,
        ..attempt
    }
}

/// A new attempt whose plan is invalid: it begins when there is a valid one, and until then `exposed` pods run the new version.
pub(super) fn begin_without_plan(exposed: u32, workload: &Workload, now: Timestamp) -> Attempt {
    Attempt {
        target: workload.update.clone(),
        step: StepIndex::default(),
        steps: unplanned(),
        counted: Some(workload.replicas),
        entered: now,
        progressed: now,
        reached: 0,
        exposed: 0,
        floor: exposed,
        kept: Vec::new(),
        limit: None,
        stopped_at: Some(exposed),
        excused: Vec::new(),
        held: false,
        pausing: false,
        fully_promoted: false,
        beside: Beside::NotYet,
        commands: Vec::new(),
    }
}

/// The steps of an attempt that began without a valid plan: no plan has these.
fn unplanned() -> Fingerprint {
    Fingerprint::of("")
}

/// The attempt at another step.
pub(super) fn enter(attempt: Attempt, step: StepIndex, plan: &Plan, now: Timestamp) -> Attempt {
    Attempt {
        step,
        entered: now,
        progressed: now,
        pausing: matches!(plan.step(step), Some(Step::Pause(_))),
        limit: match plan.step(step) {
            Some(Step::Share(_)) | None => None,
            Some(Step::Pause(_) | Step::Analysis(_)) => attempt.limit,
        },
        ..attempt
    }
}

impl Turn<'_> {
    /// One turn of an attempt.
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
            return self.bring_back(workload);
        }
        self.look_beside(&mut attempt, plan);
        if plan.by_pod {
            self.end_excuses(&mut attempt, workload);
        }
        if plan.by_pod && plan.share_at(attempt.step) == Share::NONE {
            self.excuse_stuck(&mut attempt, plan, workload);
        }
        if plan.by_pod && !attempt.held {
            self.go_back_to_gate(&mut attempt, plan, workload);
        }
        let stopped = attempt.held || matches!(attempt.beside, Beside::InDoubt(_));
        let share = plan.share_at(attempt.step);
        let due = to_release(&attempt, plan, workload.replicas);
        let allowed = if stopped {
            due.min(released_while_stopped(&attempt, workload))
        } else {
            due
        };
        note_stop(&mut attempt, stopped, allowed, workload);
        // Kubernetes takes the new version for its own, so with the guard up it gives no other to any pod.
        let converged = plan.step(attempt.step).is_none() && workload.current == attempt.target;
        let guarded = converged && workload.released == 0 && workload.claim == Claim::Ours;
        // So the last checks of all are made behind it.
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
            self.excuse(&mut attempt, plan, workload);
        }
        // A gate is passed and a version turned down only from where the record says we stand, each written down.
        let recorded = self.world.memory.activity == Activity::Rolling(attempt.clone());
        if recorded && due < workload.replicas && workload.current == attempt.target {
            self.memory.activity = Activity::Rolling(attempt);
            self.reject("Kubernetes no longer knows the stable revision".into());
            return self.bring_back(workload);
        }

        // Whatever was left, and by whatever command but `promote --full`: nothing more is released while what is released is not
        // well, or while one of the two watches is late.
        let exposes = i64::from(allowed) > workload.released;
        let released = match exposes && !attempt.fully_promoted {
            true => released_pods(workload, &attempt, self.world.now),
            false => Ahead::Open,
        };
        let unwell = released != Ahead::Open;
        let ahead = match released {
            Ahead::Open => self.gate(workload, &attempt, plan, due),
            waiting => waiting,
        };
        // To say how things stand, and to see whether it has waited long enough.
        self.wake(attempt.stands_still_from());
        if let Ahead::Waiting { until: Some(at), .. } = &ahead {
            self.wake(*at);
        }
        let progress = workload.members().filter(|pod| {
            pod.runs(&attempt.target)
                && pod
                    .available_at(workload.min_ready)
                    .is_some_and(|at| at <= self.world.now)
        });
        let reached = progress.count() as u32;
        if reached > attempt.reached && workload.counters_agree() {
            attempt.reached = reached;
            attempt.progressed = self.world.now;
        }
        let vacated = |index: &u32| workload.at(*index).is_none_or(|pod| pod.runs(&attempt.target));
        let released = workload.first_released(due)..workload.replicas;
        let exposed = released.filter(vacated).count() as u32;
        if plan.by_pod && exposed > attempt.exposed {
            attempt.exposed = exposed;
            attempt.progressed = self.world.now;
        }
        let set = Action::Release(if share.of(workload.replicas) == allowed {
            share
        } else {
            Share::Pods(allowed)
        });
        // What stands is seen from the pods: with one of the watches late, less may seem to stand than does.
        let unsure = stopped && !workload.same_pods();
        let mut broken = false;
        let report = match (&ahead, plan.step(attempt.step)) {
            (Ahead::Open, _) if must_set || stopped || !recorded => self.describe(&attempt, plan, &ahead),
            (Ahead::Open, Some(Step::Share(_))) => {
                let next = attempt.step.next();
                attempt = enter(attempt, next, plan, self.world.now);
                self.entered(&attempt, plan);
                self.describe_next(&attempt, plan, workload)
            }
            // Only then is it told that all is done: whoever waits for that may change the template at once.
            (Ahead::Open, _) if converged && !guarded => {
                return Outcome {
                    action: Some(Action::Release(Share::NONE)),
                    report: None,
                };
            }
            (Ahead::Open, Some(Step::Pause(duration))) => self.pause(&mut attempt, plan, duration, workload),
            (Ahead::Open, Some(Step::Analysis(_))) => self.analyse(&mut attempt, plan, workload),
            (Ahead::Open, None) if converged => match self.unmeasured(&attempt, plan) {
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
            (Ahead::Waiting { .. } | Ahead::Open, _) => {
                match self.failure(&attempt, plan, workload, &ahead) {
                    Some(verdict) if verdict.abort && recorded => {
                        self.memory.activity = Activity::Rolling(attempt);
                        self.reject(verdict.why);
                        return self.bring_back(workload);
                    }
                    Some(verdict) if !verdict.abort => {
                        broken = verdict.report.reason == Reason::PodBroken;
                        verdict.report
                    }
                    _ => self.describe(&attempt, plan, &ahead),
                }
            }
        };
        // What is known to be broken goes to no further pod, also where the step that says so is on record.
        let refused = exposes && (broken || unwell);
        let action = (must_set && !refused)
            .then_some(set)
            .or_else(|| self.next_to_remove(workload, Some(&attempt), allowed))
            .filter(|_| !unsure)
            .or_else(|| self.next_run_to_start(&attempt, plan, &ahead));
        self.memory.activity = Activity::Rolling(attempt);
        Outcome {
            action,
            report: Some(report),
        }
    }

    /// Steps that were edited are counted anew from the first, as is a place that no step has; the pods that are new already
    /// stay so.
    fn recount(&mut self, attempt: &mut Attempt, workload: &Workload, plan: &Plan) {
        if attempt.steps == plan.fingerprint() && attempt.step <= plan.end() {
            return;
        }
        let exposed = workload.exposed_from_the_top(&attempt.target);
        let exposed = exposed.min(attempt.stopped_at.unwrap_or(exposed));
        if attempt.steps == unplanned() {
            *attempt = Attempt {
                commands: std::mem::take(&mut attempt.commands),
                ..begin_at(exposed.min(attempt.floor), plan, workload, self.world.now)
            };
            return;
        }
        attempt.floor = attempt.floor.max(exposed);
        let first = workload.first_released(exposed);
        let kept = attempt.kept.iter().filter(|index| **index < first).count();
        let exposed = exposed as usize + kept;
        attempt.steps = plan.fingerprint();
        *attempt = enter(attempt.clone(), StepIndex::default(), plan, self.world.now);
        attempt.forget_skipped();
        // Whoever skipped the remaining steps has not seen these.
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
                    "{}: paused until somebody says: {}",
                    attempt.target,
                    self.command_for(&attempt.target, "promote")
                ),
            };
            self.notice(EventReason::RolloutPaused, message);
        }
    }

    fn gate(&self, workload: &Workload, attempt: &Attempt, plan: &Plan, due: u32) -> Ahead {
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

    /// What stands between the step that an attempt is at and the next.
    pub(super) fn gate_of_step(&self, workload: &Workload, attempt: &Attempt, plan: &Plan) -> Ahead {
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

    /// The same for `revision` alone. Whoever reads it and types it when another version is rolled is refused.
    pub(super) fn command_for(&self, revision: &RevisionName, verb: &str) -> String {
        format!("{} --revision {revision}", self.command(verb))
    }

    /// The report of a step that was just entered: what its gate will wait for is not there yet.
    pub(super) fn describe_next(&mut self, attempt: &Attempt, plan: &Plan, workload: &Workload) -> Report {
        let ahead = self.gate_of_step(workload, attempt, plan);
        if let Ahead::Waiting { until: Some(at), .. } = &ahead {
            self.wake(*at);
        }
        self.describe(attempt, plan, &ahead)
    }

    /// Where an attempt stands, in words.
    pub(super) fn describe(&mut self, attempt: &Attempt, plan: &Plan, ahead: &Ahead) -> Report {
        let place = plan.place(attempt.step);
        if attempt.held {
            return report(
                Phase::Paused,
                Reason::ManuallyPaused,
                format!(
                    "paused by spec.paused at {place}; go on with: {}",
                    self.command_for(&attempt.target, "resume")
                ),
            );
        }
        if let Beside::InDoubt(_) = attempt.beside {
            return self.describe_doubt(attempt);
        }
        let mut waiting = ahead.clause();
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
                let until = match (until, ahead) {
                    (Some(until), Ahead::Waiting { what, .. }) if until <= self.world.now => {
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
