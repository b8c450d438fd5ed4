//! Analysis in a step, and the background analysis (rules 5, 13 and 17).
//!
//! An AnalysisRun is named after the attempt and the step that it is for, so exactly one exists, however often it is created. A
//! deleted run is created again; a missing run never counts as passed.

use jiff::{SignedDuration, Timestamp};
use stateward_api::analysis;

use super::gate::{GateStatus, unready};
use super::scale::to_release;
use super::step::enter;
use super::{Decider, report};
use crate::event::EventReason;
use crate::memory::{Activity, Attempt, BackgroundRun};
use crate::plan::{Fingerprint, History, OnFailure, Plan, Step, StepIndex};
use crate::workload::Workload;
use crate::world::{Action, Phase, Reason, Report, Run, RunFor};

impl Decider<'_> {
    /// Records the start of the background analysis, and that it ended without a verdict.
    pub(super) fn observe_background(&mut self, attempt: &mut Attempt, plan: &Plan) {
        let Some(background) = &plan.background else {
            // The background analysis was removed from the spec: its result no longer counts.
            attempt.background = BackgroundRun::NotYet;
            return;
        };
        match attempt.background {
            BackgroundRun::NotYet if attempt.step >= background.from && !attempt.paused_by_user => {
                attempt.background = BackgroundRun::Since(self.world.now);
            }
            BackgroundRun::Since(since) => {
                let run = self.background_run(attempt);
                let Some(run) = run.filter(|run| run.phase == analysis::Phase::Inconclusive) else {
                    return;
                };
                let message = format!("{}: {}", attempt.target, verdict(run));
                attempt.background = BackgroundRun::InDoubt(since);
                // Only one pause at a time; the step's own pause resumes afterwards.
                attempt.paused_at_step = false;
                self.notice(EventReason::AnalysisRunInconclusive, message);
            }
            BackgroundRun::NotYet | BackgroundRun::InDoubt(_) | BackgroundRun::Waived => {}
        }
    }

    /// Why the analysis rejects the version, if it does. Only runs on record count.
    pub(super) fn failed_analysis(&self, attempt: &Attempt, plan: &Plan) -> Option<String> {
        if plan.on_failed_check == OnFailure::Hold {
            return None;
        }
        let step = match plan.step(attempt.step) {
            Some(Step::Analysis(_)) => self.run_of_step(attempt),
            Some(Step::Share(_) | Step::Pause(_)) | None => None,
        };
        let lost = |run: &&Run| matches!(run.phase, analysis::Phase::Failed | analysis::Phase::Error);
        let background = self.background_run(attempt).filter(|_| plan.background.is_some());
        step.filter(lost).or(background.filter(lost)).map(verdict)
    }

    /// The same without a plan: checks every run that the attempt may wait for.
    pub(super) fn failed_anyway(&self) -> Option<String> {
        let Activity::Rolling(attempt) = &self.memory.activity else {
            return None;
        };
        let mut runs = self
            .run_of_step(attempt)
            .into_iter()
            .chain(self.background_run(attempt));
        runs.find(|run| matches!(run.phase, analysis::Phase::Failed | analysis::Phase::Error))
            .map(verdict)
    }

    /// An analysis step whose pods are available: advances when the run was successful.
    pub(super) fn analyse(&mut self, attempt: &mut Attempt, plan: &Plan, workload: &Workload) -> Report {
        let run = self.run_of_step(attempt).cloned();
        match run {
            // A run that was ended early has no verdict.
            Some(run) if run.phase == analysis::Phase::Successful && !run.ending => {
                let reason = if plan.by_pod {
                    EventReason::ChecksPassed
                } else {
                    EventReason::AnalysisRunSuccessful
                };
                self.notice(reason, format!("{}: {}", attempt.target, verdict(&run)));
                let stood = attempt.entered.duration_since(attempt.progressed);
                *attempt = enter(attempt.clone(), attempt.step.next(), plan, self.world.now);
                if stood.is_positive() {
                    // The gate passed before and nothing was released: only the time of the checks themselves is excluded from the
                    // deadline.
                    attempt.progressed = self.world.now.saturating_sub(stood).unwrap_or(self.world.now);
                }
                self.entered(attempt, plan);
            }
            Some(run) if run.phase.is_over() && !attempt.paused_at_step => {
                attempt.paused_at_step = true;
                let reason = if run.phase == analysis::Phase::Failed {
                    EventReason::ChecksFailed
                } else {
                    EventReason::AnalysisRunInconclusive
                };
                self.notice(reason, format!("{}: {}", attempt.target, verdict(&run)));
            }
            // The limits were raised since the attempt was paused.
            Some(run) if !run.phase.is_over() => attempt.paused_at_step = false,
            _ => {}
        }
        self.describe_next(attempt, plan, workload)
    }

    /// Partition by pod: releases no pod that the checks before it do not cover. Returns to the gate, or restarts it, if they do
    /// not.
    ///
    /// Checks do not cover pods that were unavailable in the meantime, even if nobody observed it, and they expire after a minute.
    pub(super) fn go_back_to_gate(&mut self, attempt: &mut Attempt, plan: &Plan, workload: &Workload) {
        const A_WHILE: SignedDuration = SignedDuration::from_mins(1);
        let now = self.world.now;
        let (gate, why, progressed) = match plan.step(attempt.step) {
            // The run is gone because the spec or the workload was unreadable, so its result is unknown.
            Some(Step::Analysis(_)) if attempt.paused_at_step && self.run_of_step(attempt).is_none() => {
                let why = "what was asked before is not on record any more".to_owned();
                (Some(attempt.step), Some(why), attempt.progressed)
            }
            Some(Step::Analysis(_)) => {
                let run = self.run_of_step(attempt).filter(|_| !attempt.paused_at_step);
                let Some(began) = run.map(|run| run.began.unwrap_or(now)) else {
                    return;
                };
                // Flapping readiness is not progress.
                let flaps = now.duration_since(began) < A_WHILE;
                let progressed = if flaps { attempt.progressed } else { now };
                (
                    Some(attempt.step),
                    unavailable_since(workload, attempt, began),
                    progressed,
                )
            }
            Some(Step::Share(_)) => {
                let due = to_release(attempt, plan, workload.replicas);
                let released = i64::from(due) <= workload.released;
                if released && !waits_for_its_turn(workload, attempt, due) {
                    // Progress counts from when the step was entered.
                    attempt.progressed = attempt.progressed.max(attempt.entered);
                    return;
                }
                let late = now.duration_since(attempt.entered) > A_WHILE;
                let late = late.then(|| "the checks before it were made a while ago".to_owned());
                if let Ok(at) = attempt
                    .entered
                    .saturating_add(A_WHILE + SignedDuration::from_millis(1))
                {
                    self.wake(at);
                }
                // Repeated checks are not progress either.
                let progressed = if released { attempt.progressed } else { now };
                let gate = attempt.step.0.checked_sub(1).map(StepIndex);
                (
                    gate,
                    unavailable_since(workload, attempt, attempt.entered).or(late),
                    progressed,
                )
            }
            _ => return,
        };
        let (Some(gate), Some(why)) = (gate, why) else {
            return;
        };
        *attempt = enter(attempt.clone(), gate, plan, now);
        attempt.progressed = progressed;
        self.notice(
            EventReason::ChecksRestarted,
            format!("{}: {why}: the checks start over", attempt.target),
        );
    }

    /// Which background measurements are missing before a version counts as stable (rule 13). A missing run counts as unmeasured.
    pub(super) fn unmeasured(&self, attempt: &Attempt, plan: &Plan) -> Option<String> {
        plan.background.as_ref()?;
        let name = background_run_name(&self.world.object, attempt)?;
        match self.run(&name) {
            Some(run) if run.measured || run.phase == analysis::Phase::Successful => None,
            Some(run) => Some(format!("waiting for {} to have measured", run.title)),
            None => Some(format!("waiting for analysis {name} to begin")),
        }
    }

    /// The run to start next: the run of the step once its pods are available, or the background run.
    pub(super) fn next_run_to_start(
        &self,
        attempt: &Attempt,
        plan: &Plan,
        gate_status: &GateStatus,
    ) -> Option<Action> {
        if attempt.paused_by_user {
            return None;
        }
        let start = |name: String, run_for: RunFor| {
            let there = self.run(&name).is_some();
            (!there).then_some(Action::StartRun { name, run_for })
        };
        let background = background_run_name(&self.world.object, attempt)
            .filter(|_| plan.background.is_some())
            .and_then(|name| start(name, RunFor::Background));
        background.or_else(|| match plan.step(attempt.step) {
            Some(Step::Analysis(_)) if *gate_status == GateStatus::Open && !attempt.paused_at_step => start(
                step_run_name(&self.world.object, attempt),
                RunFor::Step(attempt.step),
            ),
            _ => None,
        })
    }

    /// The next run to end because nothing waits for it, or to delete because the history limit is exceeded.
    pub(super) fn next_run_to_clear(&self) -> Option<Action> {
        let plan = self.world.plan.as_ref();
        if plan.is_err() && matches!(self.memory.activity, Activity::Rolling(_)) {
            // While the spec is invalid, it is unknown which runs the attempt waits for.
            return None;
        }
        let history = plan.map_or_else(|_| History::default(), |plan| plan.history);
        let current = self.current_runs();
        let others = || {
            let other = |run: &&Run| !current.contains(&run.name);
            self.world.runs.iter().filter(other)
        };
        if let Some(run) = others().find(|run| !run.phase.is_over() && !run.ending) {
            return Some(Action::EndRun {
                name: run.name.clone(),
                uid: run.uid.clone(),
            });
        }
        let surplus = |kept: usize, successful: bool| {
            let over = || {
                others().filter(move |run| {
                    run.phase.is_over() && (run.phase == analysis::Phase::Successful) == successful
                })
            };
            let surplus = over().count().saturating_sub(kept);
            // The oldest are deleted first.
            over().take(surplus).next()
        };
        let run = surplus(history.successful, true).or_else(|| surplus(history.unsuccessful, false))?;
        Some(Action::DropRun {
            name: run.name.clone(),
            uid: run.uid.clone(),
        })
    }

    /// The names of the runs that the attempt waits for.
    fn current_runs(&self) -> Vec<String> {
        let (Activity::Rolling(attempt), Ok(plan)) = (&self.memory.activity, &self.world.plan) else {
            return Vec::new();
        };
        let step = matches!(plan.step(attempt.step), Some(Step::Analysis(_)));
        let step = step.then(|| step_run_name(&self.world.object, attempt));
        step.into_iter()
            .chain(background_run_name(&self.world.object, attempt))
            .collect()
    }

    fn run(&self, name: &str) -> Option<&Run> {
        self.world.runs.iter().find(|run| run.name == name)
    }

    /// The run of the step that the attempt is at.
    pub(super) fn run_of_step(&self, attempt: &Attempt) -> Option<&Run> {
        self.run(&step_run_name(&self.world.object, attempt))
    }

    fn background_run(&self, attempt: &Attempt) -> Option<&Run> {
        match attempt.background {
            BackgroundRun::Since(_) | BackgroundRun::InDoubt(_) => {
                self.run(&background_run_name(&self.world.object, attempt)?)
            }
            BackgroundRun::NotYet | BackgroundRun::Waived => None,
        }
    }

    /// The report of a step's analysis.
    pub(super) fn describe_analysis(&self, attempt: &Attempt, plan: &Plan, waiting: &str) -> Report {
        let place = plan.place(attempt.step);
        let run = self.run_of_step(attempt);
        if attempt.paused_at_step {
            let why = run.map_or_else(|| "its run is gone".into(), verdict);
            if run.is_some_and(|run| run.phase == analysis::Phase::Failed) {
                return report(
                    Phase::Failed,
                    Reason::ChecksFailed,
                    format!(
                        "{place}: {why}; check again with: {}, go on all the same with: {}, or back with: {}",
                        self.command_for(&attempt.target, "retry"),
                        self.command_for(&attempt.target, "promote"),
                        self.command_for(&attempt.target, "abort")
                    ),
                );
            }
            return report(
                Phase::Paused,
                Reason::Inconclusive,
                format!(
                    "{place}: {why}; go on all the same with: {}, or back with: {}",
                    self.command_for(&attempt.target, "promote"),
                    self.command_for(&attempt.target, "abort")
                ),
            );
        }
        let what = match run {
            Some(run) => format!("{}{waiting}", verdict(run)),
            None if plan.by_pod => format!("checks begin when every pod is available{waiting}"),
            None => format!("analysis of {} begins{waiting}", attempt.target),
        };
        let not_waited_for: Vec<_> = attempt.ignored_pods.iter().map(ToString::to_string).collect();
        let ignored_pods = if plan.by_pod && !not_waited_for.is_empty() {
            format!(
                "; not waiting for pod {}, which was not Ready before",
                not_waited_for.join(", ")
            )
        } else {
            String::new()
        };
        report(
            Phase::Progressing,
            Reason::Analysing,
            format!("{place}: {what}{ignored_pods}"),
        )
    }

    /// The report of a background analysis that ended without a verdict.
    pub(super) fn describe_inconclusive(&self, attempt: &Attempt) -> Report {
        let run = self.background_run(attempt);
        let why = run.map_or_else(|| "the background analysis came to no verdict".into(), verdict);
        report(
            Phase::Paused,
            Reason::Inconclusive,
            format!(
                "{why}; go on all the same with: {}, or back with: {}",
                self.command_for(&attempt.target, "promote"),
                self.command_for(&attempt.target, "abort")
            ),
        )
    }
}

/// The first pod that must be available and was not at some moment since `then`.
fn unavailable_since(workload: &Workload, attempt: &Attempt, then: Timestamp) -> Option<String> {
    let ignored_pods = |index: &u32| {
        let new = workload.at(*index).is_some_and(|pod| pod.runs(&attempt.target));
        attempt.ignored_pods.contains(index) && !new
    };
    let mut due = (0..workload.replicas).rev().filter(|index| !ignored_pods(index));
    due.find_map(|index| match workload.at(index) {
        None => Some(format!("waiting for pod {index} to be created")),
        Some(pod) => match pod.available_at(workload.min_ready) {
            Some(at) if at <= then => None,
            Some(_) => Some(format!("pod {} was not available all the while", pod.name)),
            None => Some(unready(pod)),
        },
    })
}

/// Whether a released pod still runs its old revision because its controller has not replaced it yet.
fn waits_for_its_turn(workload: &Workload, attempt: &Attempt, due: u32) -> bool {
    let released = workload.first_released(due)..workload.replicas;
    let mut released = released.filter_map(|index| workload.at(index));
    released.any(|pod| pod.ready() && !pod.runs(&attempt.target))
}

/// The name of the run for the attempt's current step: deterministic and unique.
pub fn step_run_name(object: &str, attempt: &Attempt) -> String {
    let step = attempt.step.0;
    let seed = format!("{}/{step}/{}", attempt.target, attempt.entered);
    format!("{}-{step}-{}", stem(object, attempt), short(&seed))
}

/// The name of the background run; `None` before it starts.
pub fn background_run_name(object: &str, attempt: &Attempt) -> Option<String> {
    let since = match attempt.background {
        BackgroundRun::Since(since) | BackgroundRun::InDoubt(since) => since,
        BackgroundRun::NotYet | BackgroundRun::Waived => return None,
    };
    let seed = format!("{}/{since}", attempt.target);
    Some(format!("{}-{}", stem(object, attempt), short(&seed)))
}

/// `my-rollout-7c9f`: the rollout and the hash of its revision.
fn stem(object: &str, attempt: &Attempt) -> String {
    let revision = attempt.target.as_str();
    let hash = revision.rsplit('-').next().unwrap_or(revision);
    // A name has at most 253 characters, and Jobs and labels are named after it.
    let object: String = object.chars().take(200).collect();
    format!("{object}-{hash}")
}

fn short(seed: &str) -> String {
    Fingerprint::of(seed).as_str().chars().take(6).collect()
}

/// `analysis db-7c9f-2-3fa9c1 failed: metric errors: 3 failed, 1 allowed`
fn verdict(run: &Run) -> String {
    let Run { title, message, .. } = run;
    let message = super::shortened(message, super::LONGEST_RUN_MESSAGE);
    let word = match run.phase {
        analysis::Phase::Pending => "begins",
        analysis::Phase::Running => "is running",
        analysis::Phase::Successful if run.ending => "was ended before its time",
        analysis::Phase::Successful => "was successful",
        analysis::Phase::Failed => "failed",
        analysis::Phase::Error => "could not be made",
        analysis::Phase::Inconclusive => "is inconclusive",
    };
    match &*message {
        "" => format!("{title} {word}"),
        message => format!("{title} {word}: {message}"),
    }
}
