//! Asking before going on: analysis in a step and beside the steps (rules 5, 13 and 17).
//!
//! A run is named after the step of the attempt that it is for, so there is exactly one, whoever creates it and however
//! often it is tried. One that was deleted is created again; none that is missing counts for anything.

use jiff::{SignedDuration, Timestamp};
use stateward_api::analysis;

use super::gate::{Ahead, unready};
use super::scale::to_release;
use super::step::enter;
use super::{Turn, report};
use crate::event::EventReason;
use crate::memory::{Activity, Attempt, Beside};
use crate::plan::{Fingerprint, History, OnFailure, Plan, Step, StepIndex};
use crate::workload::Workload;
use crate::world::{Action, Asked, Phase, Reason, Report, Run};

impl Turn<'_> {
    /// Takes note of the analysis beside the steps: that it begins, and that it came to no verdict.
    pub(super) fn look_beside(&mut self, attempt: &mut Attempt, plan: &Plan) {
        let Some(background) = &plan.background else {
            // It was taken out of the spec: nobody asks any more, and whatever it says counts for nothing.
            attempt.beside = Beside::NotYet;
            return;
        };
        match attempt.beside {
            Beside::NotYet if attempt.step >= background.from && !attempt.held => {
                attempt.beside = Beside::Since(self.world.now);
            }
            Beside::Since(since) => {
                let run = self.run_beside(attempt);
                let Some(run) = run.filter(|run| run.phase == analysis::Phase::Inconclusive) else {
                    return;
                };
                let message = format!("{}: {}", attempt.target, verdict(run));
                attempt.beside = Beside::InDoubt(since);
                // One thing to be told at a time; the step's own pause is taken up again afterwards.
                attempt.pausing = false;
                self.notice(EventReason::AnalysisRunInconclusive, message);
            }
            Beside::NotYet | Beside::InDoubt(_) | Beside::Waived => {}
        }
    }

    /// Why the version is to be turned down, if its analysis says so. Only what is on record was asked.
    pub(super) fn failed_analysis(&self, attempt: &Attempt, plan: &Plan) -> Option<String> {
        if plan.on_failed_check == OnFailure::Hold {
            return None;
        }
        let step = match plan.step(attempt.step) {
            Some(Step::Analysis(_)) => self.run_of_step(attempt),
            Some(Step::Share(_) | Step::Pause(_)) | None => None,
        };
        let lost = |run: &&Run| matches!(run.phase, analysis::Phase::Failed | analysis::Phase::Error);
        let beside = self.run_beside(attempt).filter(|_| plan.background.is_some());
        step.filter(lost).or(beside.filter(lost)).map(verdict)
    }

    /// The same where there is no plan to read: every run that the attempt may wait for.
    pub(super) fn failed_anyway(&self) -> Option<String> {
        let Activity::Rolling(attempt) = &self.memory.activity else {
            return None;
        };
        let mut runs = self
            .run_of_step(attempt)
            .into_iter()
            .chain(self.run_beside(attempt));
        runs.find(|run| matches!(run.phase, analysis::Phase::Failed | analysis::Phase::Error))
            .map(verdict)
    }

    /// A step whose pods are well and which is an analysis: goes on when that was successful.
    pub(super) fn analyse(&mut self, attempt: &mut Attempt, plan: &Plan, workload: &Workload) -> Report {
        let run = self.run_of_step(attempt).cloned();
        match run {
            // One that somebody has ended says nothing about what it would have come to.
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
                    // It was passed before, and nothing came of it: only the checks themselves do not count.
                    attempt.progressed = self.world.now.saturating_sub(stood).unwrap_or(self.world.now);
                }
                self.entered(attempt, plan);
            }
            Some(run) if run.phase.is_over() && !attempt.pausing => {
                attempt.pausing = true;
                let reason = if run.phase == analysis::Phase::Failed {
                    EventReason::ChecksFailed
                } else {
                    EventReason::AnalysisRunInconclusive
                };
                self.notice(reason, format!("{}: {}", attempt.target, verdict(&run)));
            }
            // More tries are allowed now than when it was held.
            Some(run) if !run.phase.is_over() => attempt.pausing = false,
            _ => {}
        }
        self.describe_next(attempt, plan, workload)
    }

    /// One pod after the other: no pod is released that the checks before it do not speak for. Goes back to the gate, or begins it
    /// anew, where they do not.
    ///
    /// What was asked says nothing about pods that were unwell meanwhile, also while nobody looked, nor about how things are a
    /// while later.
    pub(super) fn go_back_to_gate(&mut self, attempt: &mut Attempt, plan: &Plan, workload: &Workload) {
        const A_WHILE: SignedDuration = SignedDuration::from_mins(1);
        let now = self.world.now;
        let (gate, why, progressed) = match plan.step(attempt.step) {
            // Its record is gone with a spec or a workload that could not be read: what it came to is not known any more.
            Some(Step::Analysis(_)) if attempt.pausing && self.run_of_step(attempt).is_none() => {
                let why = "what was asked before is not on record any more".to_owned();
                (Some(attempt.step), Some(why), attempt.progressed)
            }
            Some(Step::Analysis(_)) => {
                let run = self.run_of_step(attempt).filter(|_| !attempt.pausing);
                let Some(began) = run.map(|run| run.began.unwrap_or(now)) else {
                    return;
                };
                // Readiness that comes and goes is not progress.
                let flaps = now.duration_since(began) < A_WHILE;
                let progressed = if flaps { attempt.progressed } else { now };
                (Some(attempt.step), unwell(workload, attempt, began), progressed)
            }
            Some(Step::Share(_)) => {
                let due = to_release(attempt, plan, workload.replicas);
                let released = i64::from(due) <= workload.released;
                if released && !waits_for_its_turn(workload, attempt, due) {
                    // Whatever it had to wait for before.
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
                // To be asked about again and again is not progress, either.
                let progressed = if released { attempt.progressed } else { now };
                let gate = attempt.step.0.checked_sub(1).map(StepIndex);
                (
                    gate,
                    unwell(workload, attempt, attempt.entered).or(late),
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
            format!("{}: {why}: the checks begin anew", attempt.target),
        );
    }

    /// What is still to be measured beside the steps before a version counts as good (rule 13): one about which nothing is known
    /// does not.
    pub(super) fn unmeasured(&self, attempt: &Attempt, plan: &Plan) -> Option<String> {
        plan.background.as_ref()?;
        let name = name_beside(&self.world.object, attempt)?;
        match self.run(&name) {
            Some(run) if run.measured || run.phase == analysis::Phase::Successful => None,
            Some(run) => Some(format!("waiting for {} to have measured", run.title)),
            None => Some(format!("waiting for analysis {name} to begin")),
        }
    }

    /// The run that is to begin next: that of the step when its pods are well, and the one beside the steps.
    pub(super) fn next_run_to_start(&self, attempt: &Attempt, plan: &Plan, ahead: &Ahead) -> Option<Action> {
        if attempt.held {
            return None;
        }
        let start = |name: String, asked: Asked| {
            let there = self.run(&name).is_some();
            (!there).then_some(Action::StartRun { name, asked })
        };
        let beside = name_beside(&self.world.object, attempt)
            .filter(|_| plan.background.is_some())
            .and_then(|name| start(name, Asked::Beside));
        beside.or_else(|| match plan.step(attempt.step) {
            Some(Step::Analysis(_)) if *ahead == Ahead::Open && !attempt.pausing => {
                start(name_of_step(&self.world.object, attempt), Asked::By(attempt.step))
            }
            _ => None,
        })
    }

    /// The next run that is to end because nobody waits for it any more, or to go because enough are kept.
    pub(super) fn next_run_to_clear(&self) -> Option<Action> {
        let plan = self.world.plan.as_ref();
        if plan.is_err() && matches!(self.memory.activity, Activity::Rolling(_)) {
            // Which of them it waits for is not known while the spec cannot be read.
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
            // The oldest come first.
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
        let step = step.then(|| name_of_step(&self.world.object, attempt));
        step.into_iter()
            .chain(name_beside(&self.world.object, attempt))
            .collect()
    }

    fn run(&self, name: &str) -> Option<&Run> {
        self.world.runs.iter().find(|run| run.name == name)
    }

    /// The run of the step that the attempt is at.
    pub(super) fn run_of_step(&self, attempt: &Attempt) -> Option<&Run> {
        self.run(&name_of_step(&self.world.object, attempt))
    }

    fn run_beside(&self, attempt: &Attempt) -> Option<&Run> {
        match attempt.beside {
            Beside::Since(_) | Beside::InDoubt(_) => self.run(&name_beside(&self.world.object, attempt)?),
            Beside::NotYet | Beside::Waived => None,
        }
    }

    /// Where an analysis in a step stands, in words.
    pub(super) fn describe_analysis(&self, attempt: &Attempt, plan: &Plan, waiting: &str) -> Report {
        let place = plan.place(attempt.step);
        let run = self.run_of_step(attempt);
        if attempt.pausing {
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
        let not_waited_for: Vec<_> = attempt.excused.iter().map(ToString::to_string).collect();
        let excused = if plan.by_pod && !not_waited_for.is_empty() {
            format!(
                "; not waiting for pod {}, which was unwell before",
                not_waited_for.join(", ")
            )
        } else {
            String::new()
        };
        report(
            Phase::Progressing,
            Reason::Analysing,
            format!("{place}: {what}{excused}"),
        )
    }

    /// The same of one beside the steps that came to no verdict.
    pub(super) fn describe_doubt(&self, attempt: &Attempt) -> Report {
        let run = self.run_beside(attempt);
        let why = run.map_or_else(
            || "the analysis beside the steps came to no verdict".into(),
            verdict,
        );
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

/// The first pod that has to be available and was not at some moment since `then`.
fn unwell(workload: &Workload, attempt: &Attempt, then: Timestamp) -> Option<String> {
    let excused = |index: &u32| {
        let new = workload.at(*index).is_some_and(|pod| pod.runs(&attempt.target));
        attempt.excused.contains(index) && !new
    };
    let mut due = (0..workload.replicas).rev().filter(|index| !excused(index));
    due.find_map(|index| match workload.at(index) {
        None => Some(format!("waiting for pod {index} to be created")),
        Some(pod) => match pod.available_at(workload.min_ready) {
            Some(at) if at <= then => None,
            Some(_) => Some(format!("pod {} was not available all the while", pod.name)),
            None => Some(unready(pod)),
        },
    })
}

/// Whether a pod that is released is still as it was: its controller has not come to it yet.
fn waits_for_its_turn(workload: &Workload, attempt: &Attempt, due: u32) -> bool {
    let released = workload.first_released(due)..workload.replicas;
    let mut released = released.filter_map(|index| workload.at(index));
    released.any(|pod| pod.ready() && !pod.runs(&attempt.target))
}

/// The name of the run of the step that an attempt is at: the same every time, and no other's.
pub fn name_of_step(object: &str, attempt: &Attempt) -> String {
    let step = attempt.step.0;
    let seed = format!("{}/{step}/{}", attempt.target, attempt.entered);
    format!("{}-{step}-{}", stem(object, attempt), short(&seed))
}

/// The name of the run beside the steps; `None` before it begins.
pub fn name_beside(object: &str, attempt: &Attempt) -> Option<String> {
    let since = match attempt.beside {
        Beside::Since(since) | Beside::InDoubt(since) => since,
        Beside::NotYet | Beside::Waived => return None,
    };
    let seed = format!("{}/{since}", attempt.target);
    Some(format!("{}-{}", stem(object, attempt), short(&seed)))
}

/// `my-rollout-7c9f`: which rollout, and of which revision.
fn stem(object: &str, attempt: &Attempt) -> String {
    let revision = attempt.target.as_str();
    let hash = revision.rsplit('-').next().unwrap_or(revision);
    // A name has 253 characters; Jobs and labels are named after it.
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
