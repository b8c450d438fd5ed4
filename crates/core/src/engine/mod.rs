//! The engine: a function from a snapshot to a decision.
//!
//! It reads top to bottom in order of precedence. A change of the durable state is written before anything is done because of it,
//! so every request follows from recorded state: a crash between any two requests changes nothing. One file per family of rules;
//! the numbers are those of `docs/design/rules.md`.

mod adopt;
mod analysis;
mod command;
mod deadline;
mod gate;
mod guard;
mod pause;
mod release_claim;
mod rollback;
mod scale;
mod step;
mod suspend;
mod target;

pub use self::analysis::{background_run_name, step_run_name};
pub use self::pause::to_seconds;
pub(crate) use self::scale::{release_of, to_release};

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

use jiff::Timestamp;

use crate::event::{EventReason, Notice};
use crate::memory::{Activity, Attempt, Memory};
use crate::plan::Share;
use crate::workload::{Claim, MOST_REPLICAS, Workload};
use crate::world::{Action, Decision, NoWorkload, Phase, Reason, Report, World};

/// Decides what to do now.
pub fn decide(world: &World) -> Decision {
    let mut decider = Decider {
        world,
        memory: world.memory.clone(),
        notices: Vec::new(),
        look_again: None,
    };
    let outcome = decider.outcome();
    decider.decision(outcome)
}

/// How many pods, from the last one down, stay released while an attempt has no valid plan.
fn released_without_plan(attempt: &Attempt, workload: &Workload) -> u32 {
    match scale::is_scaled_up(attempt, workload) {
        true => 0,
        false => pause::released_while_stopped(attempt, workload),
    }
}

/// The result of a rule: at most one request, and the report.
struct Outcome {
    action: Option<Action>,
    report: Option<Report>,
}

impl Outcome {
    fn wait(report: Report) -> Self {
        Self {
            action: None,
            report: Some(report),
        }
    }

    fn act(action: Action, report: Report) -> Self {
        Self {
            action: Some(action),
            report: Some(report),
        }
    }
}

/// A decision in progress.
struct Decider<'w> {
    world: &'w World,
    memory: Memory,
    notices: Vec<Notice>,
    look_again: Option<Timestamp>,
}

impl Decider<'_> {
    fn outcome(&mut self) -> Outcome {
        let world = self.world;
        let workload = match &world.workload {
            Ok(workload) => workload,
            Err(why) => return self.without_workload(why),
        };
        self.forget_another(workload);
        if world.deleting {
            return self.release_claim(workload);
        }
        if let Claim::Other(holder) = &workload.claim {
            self.refuse_commands("another object manages the workload");
            return Outcome::wait(report(
                Phase::Failed,
                Reason::WorkloadClaimed,
                format!("the workload is already managed by {holder}; delete one of the two"),
            ));
        }
        if workload.replicas > MOST_REPLICAS {
            self.refuse_commands("the workload asks for too many replicas");
            let report = report(
                Phase::Failed,
                Reason::WorkloadUnfit,
                format!(
                    "spec.replicas of the workload: {} is more than {MOST_REPLICAS}, the most that can be rolled out; scale it \
                     down",
                    workload.replicas
                ),
            );
            return Outcome {
                action: self.take_back_unobserved(workload),
                report: Some(report),
            };
        }
        if !workload.observed {
            // The state that its controller has not observed yet may still change; the watch will report it.
            return Outcome {
                action: self.take_back_unobserved(workload),
                report: None,
            };
        }
        if world.suspended {
            return self.suspend(workload);
        }
        if self.is_to_begin(workload) && !workload.same_pods() {
            // A new attempt depends on the exact pods. One of the two watches lags and will report a change.
            return Outcome {
                action: self.take_back_unobserved(workload),
                report: None,
            };
        }
        if let Some(stopping) = self.stop_native(workload) {
            return stopping;
        }
        self.adopt(workload);
        self.handle_commands(workload);
        self.retarget(workload);
        let mut outcome = match &self.memory.activity {
            Activity::Idle => self.idle(workload),
            Activity::RollingBack(_) => self.roll_back(workload),
            Activity::Rolling(_) => match &world.plan {
                Ok(plan) => self.roll(workload, plan),
                Err(problems) => self.hold_without_plan(workload, problems),
            },
        };
        outcome.action = outcome.action.or_else(|| self.next_run_to_clear());
        outcome
    }

    /// An attempt with an invalid plan: nothing advances, but a failed analysis still rejects the version.
    fn hold_without_plan(&mut self, workload: &Workload, problems: &[String]) -> Outcome {
        match self.failed_anyway() {
            Some(why) => {
                self.reject(why);
                self.roll_back(workload)
            }
            None => self.hold_invalid(workload, problems),
        }
    }

    /// Holds the attempt: no further pod is updated, and what another client releases meanwhile is rolled back, as in a manual pause.
    fn hold_invalid(&mut self, workload: &Workload, problems: &[String]) -> Outcome {
        let report = invalid(problems);
        let Activity::Rolling(mut attempt) = self.memory.activity.clone() else {
            return Outcome::wait(report);
        };
        if !self.world.reference_valid {
            return Outcome::wait(report);
        }
        let stands = released_without_plan(&attempt, workload);
        let released = u32::try_from(workload.released).unwrap_or(0);
        let action = if released > stands || workload.claim != Claim::Ours {
            Some(Action::Release(Share::Pods(stands.min(released))))
        } else if scale::is_scaled_up(&attempt, workload) || !workload.same_pods() {
            // Which pods stay updated is known only when the share is computed again.
            None
        } else {
            pause::note_stop(&mut attempt, true, stands, workload);
            self.next_to_remove(workload, Some(&attempt), stands)
        };
        self.memory.activity = Activity::Rolling(attempt);
        Outcome {
            action,
            report: Some(report),
        }
    }

    fn without_workload(&mut self, why: &NoWorkload) -> Outcome {
        self.refuse_commands("there is no workload to act on");
        if let Err(problems) = &self.world.plan {
            return Outcome::wait(invalid(problems));
        }
        Outcome::wait(match why {
            NoWorkload::Missing(what) => report(
                Phase::Progressing,
                Reason::WorkloadMissing,
                format!("waiting for {what} to exist"),
            ),
            NoWorkload::Unfit(why) => report(Phase::Failed, Reason::WorkloadUnfit, why.clone()),
        })
    }

    /// Forgets everything if the workload has another UID.
    fn forget_another(&mut self, workload: &Workload) {
        let known = self.memory.workload.as_ref();
        if known.is_some_and(|known| *known != workload.uid) {
            self.memory = Memory::default();
        }
    }

    fn decision(self, outcome: Outcome) -> Decision {
        let remembered = self.memory == self.world.memory;
        let report = outcome.report.map(|mut report| {
            if let Some(last_error) = &self.world.last_error {
                report.message = format!("{}; {last_error}", report.message);
            }
            if let Some(contested) = &self.world.contested {
                report.message = format!("{}; contested: {contested}", report.message);
            }
            report.message = shortened(&report.message, LONGEST_MESSAGE).into_owned();
            report
        });
        Decision {
            // A deleted object has no state to write first.
            action: outcome.action.filter(|_| remembered || self.world.deleting),
            report,
            memory: self.memory,
            notices: self.notices,
            look_again: self.look_again,
        }
    }

    fn notice(&mut self, reason: EventReason, message: String) {
        self.notices.push(Notice { reason, message });
    }

    /// Requests a decision at `at`, unless an earlier one is requested.
    fn wake(&mut self, at: Timestamp) {
        if at <= self.world.now {
            return;
        }
        self.look_again = Some(self.look_again.map_or(at, |earlier| earlier.min(at)));
    }
}

fn report(phase: Phase, reason: Reason, message: String) -> Report {
    Report {
        phase,
        reason,
        message,
    }
}

/// The most characters of a status message; the schema allows them.
const LONGEST_MESSAGE: usize = 16_000;

/// The most characters of an AnalysisRun's message: anyone who may write its status may write anything.
pub(crate) const LONGEST_RUN_MESSAGE: usize = 2_000;

/// A text of at most `longest` characters.
pub(crate) fn shortened(text: &str, longest: usize) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// How many problems are reported, and how many characters of each.
const MOST_PROBLEMS: usize = 10;
const LONGEST_PROBLEM: usize = 1_000;

fn invalid(problems: &[String]) -> Report {
    let mut message = String::new();
    for (index, problem) in problems.iter().take(MOST_PROBLEMS).enumerate() {
        if index > 0 {
            message.push_str("; ");
        }
        message.push_str(&shortened(problem, LONGEST_PROBLEM));
    }
    if problems.len() > MOST_PROBLEMS {
        message.push_str(&format!("; and {} more", problems.len() - MOST_PROBLEMS));
    }
    report(Phase::Failed, Reason::InvalidSpec, message)
}
