//! Finds what a rollout waits for. The first matching case wins: cases that need a user come first.

use jiff::{SignedDuration, Timestamp};
use stateward_clock::human_duration;
use stateward_core::memory::{Activity, Attempt, Cause};
use stateward_core::plan::Step;
use stateward_core::to_seconds;

use crate::stage::Stage;
use crate::unseen::unseen;
use crate::verbs::status::waiting_command;
use crate::views::hint;
use crate::views::invocation;
use crate::views::runs;

use super::Explanation;
use super::facts::Facts;

/// The explanation.
pub(super) fn explain(facts: &Facts, now: Timestamp, program: &str) -> Explanation {
    let stage = Stage::of(&facts.rollout);
    let case = Case {
        facts,
        stage: &stage,
        now,
        program,
    };
    case.operator()
        .or_else(|| case.spec())
        .unwrap_or_else(|| match &stage.activity {
            Activity::Rolling(attempt) => case.rolling(attempt),
            Activity::RollingBack(back) => case.returning(back),
            Activity::Idle => case.idle(),
        })
}

struct Case<'f> {
    facts: &'f Facts,
    stage: &'f Stage<'f>,
    now: Timestamp,
    program: &'f str,
}

impl Case<'_> {
    /// The status message without the commands at its end, which have their own place.
    fn message(&self) -> String {
        hint::without_commands(&hint::message(self.stage, self.program)).to_owned()
    }

    /// `stateward promote db --revision db-2: its effect`
    fn command(&self, verb: &str, effect: &str) -> String {
        format!("{}: {effect}", hint::command(verb, self.stage, self.program))
    }

    fn stable(&self) -> String {
        let stable = self.stage.status.stable_revision.clone();
        stable.unwrap_or_else(|| "the stable version".into())
    }

    fn abort(&self) -> String {
        self.command("abort", &format!("every pod returns to {}", self.stable()))
    }

    /// When a condition changed to this status. The time does not change if only the reason does.
    fn since(&self, kind: &str, status: &str) -> Option<Timestamp> {
        let mut conditions = self.stage.status.conditions.iter();
        let condition = conditions.find(|condition| condition.kind == kind && condition.status == status);
        condition.map(|condition| condition.last_transition_time)
    }

    fn reason(&self) -> &str {
        let mut conditions = self.stage.status.conditions.iter();
        let condition = conditions.find(|condition| condition.kind == "Progressing");
        condition.map_or("", |condition| condition.reason.as_str())
    }

    /// No operator answers, or not yet.
    fn operator(&self) -> Option<Explanation> {
        let (rollout, status) = (&self.facts.rollout, &self.stage.status);
        let alive = || {
            let kubectl = invocation::kubectl(self.program);
            vec![
                format!(
                    "an operator: see whether one runs with: {kubectl} get pods -A -l app.kubernetes.io/name=stateward"
                ),
                format!("none is installed: stateward install | {kubectl} apply -f -"),
            ]
        };
        let created = rollout.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let deleted = rollout.metadata.deletion_timestamp.as_ref().map(|time| time.0);
        let mut outdated = false;
        let (waits_for, since) = if deleted.is_some() {
            (
                "the operator to release the workload, because it is being deleted".to_owned(),
                deleted,
            )
        } else if status.phase.is_empty() {
            ("an operator: none has looked at it yet".to_owned(), created)
        } else if status.observed_generation != rollout.metadata.generation {
            outdated = true;
            ("the operator to look at the latest spec".to_owned(), None)
        } else if let Some(verb) = waiting_command(status) {
            (
                format!("the operator to take a command that was given: {verb}"),
                None,
            )
        } else if unseen(self.stage, self.facts.set.as_ref()).is_some() {
            outdated = true;
            (self.latest_change(), None)
        } else {
            return None;
        };
        Some(Explanation {
            waits_for,
            since,
            moves: alive(),
            outdated,
            ..Explanation::default()
        })
    }

    /// The change that the operator has not seen, and what the status still describes.
    fn latest_change(&self) -> String {
        let (set, facts) = (&self.facts.rollout.workload, self.facts);
        let asked = facts.set.as_ref().and_then(|set| set.status.as_ref());
        let asked = asked.and_then(|status| status.update_revision.as_ref());
        let known = self.stage.status.updated_revision.as_ref();
        match (asked, known) {
            (Some(asked), Some(known)) if asked != known => format!(
                "the operator to look at the latest change of statefulset {set}: it asks for {asked}, and what the operator says is \
                 still about {known}"
            ),
            _ => format!("the operator to look at the latest change of statefulset {set}"),
        }
    }

    /// The spec is invalid, or another object manages the workload.
    fn spec(&self) -> Option<Explanation> {
        let (message, rollout) = (self.message(), &self.facts.rollout);
        let workload = format!("{} {}", rollout.workload_kind.to_lowercase(), rollout.workload);
        let mut since = self.since("InvalidSpec", "True");
        let (waits_for, moves) = match self.reason() {
            "InvalidSpec" => (
                format!("a spec that can be carried out: {message}"),
                vec![format!(
                    "a corrected manifest; check it with: {} lint FILE",
                    invocation::name(self.program)
                )],
            ),
            "WorkloadMissing" => {
                // A rollout in progress did not start to wait at that time.
                let idle = self.stage.activity == Activity::Idle;
                let waiting = || self.since("Progressing", "True").filter(|_| idle);
                since = self.since("Updated", "Unknown").or_else(waiting);
                (
                    format!("{workload}: {message}"),
                    vec![format!("create {workload}")],
                )
            }
            "WorkloadUnfit" => (
                format!("{workload} to be one that can be rolled: {message}"),
                vec![format!("change {workload}")],
            ),
            "WorkloadClaimed" => (
                format!("{workload} to be free: {message}"),
                vec!["delete the other one, or this one: only one can have it".into()],
            ),
            "Suspended" => {
                since = self.since("Updated", "Unknown");
                (
                    format!("nothing: {message}"),
                    vec![format!(
                        "set spec.skipCheck of {} to false to take it back",
                        rollout.title()
                    )],
                )
            }
            _ => return None,
        };
        Some(Explanation {
            waits_for,
            since,
            moves,
            ..Explanation::default()
        })
    }

    fn rolling(&self, attempt: &Attempt) -> Explanation {
        let message = self.message();
        let place = self.stage.progress_in_words().unwrap_or_default();
        let full = || {
            self.command(
                "promote --full",
                "the remaining steps are skipped, and every pod follows without checks",
            )
        };
        if self.facts.rollout.paused {
            return Explanation {
                waits_for: format!("a user to resume it: spec.paused holds it at {place}"),
                since: self.since("Paused", "True"),
                moves: vec![self.command("resume", "it goes on where it is"), self.abort()],
                ..Explanation::default()
            };
        }
        match self.reason() {
            "PodBroken" => {
                return Explanation {
                    waits_for: format!("a version whose pods become Ready: {message}"),
                    since: self.since("Stalled", "True"),
                    moves: vec![
                        "the pod, if it becomes Ready by itself".into(),
                        "another template: its rollout begins at the first step".into(),
                        self.abort(),
                    ],
                    ..Explanation::default()
                };
            }
            "ProgressDeadlineExceeded" => {
                return Explanation {
                    waits_for: format!("progress, which is overdue: {message}"),
                    since: Some(attempt.progressed),
                    moves: vec![
                        "what it waits for, if that comes late".into(),
                        "a longer spec.progressDeadlineSeconds".into(),
                        self.abort(),
                        full(),
                    ],
                    ..Explanation::default()
                };
            }
            "ChecksFailed" => {
                return Explanation {
                    waits_for: format!("a user to decide: {message}"),
                    since: self
                        .since("Stalled", "True")
                        .or_else(|| self.since("Paused", "True")),
                    moves: vec![
                        self.command("retry", "the checks are repeated"),
                        self.command("promote", "the next pod follows all the same"),
                        self.abort(),
                    ],
                    ..Explanation::default()
                };
            }
            "InconclusiveAnalysisRun" => {
                return Explanation {
                    waits_for: format!(
                        "a user to decide: analysis came to no verdict: {}",
                        self.measured()
                    ),
                    since: self
                        .stage
                        .status
                        .pause_conditions
                        .first()
                        .map(|pause| pause.start_time),
                    moves: vec![
                        self.command("promote", "it goes on without a verdict"),
                        self.abort(),
                    ],
                    ..Explanation::default()
                };
            }
            _ => {}
        }
        let step = self.stage.plan.and_then(|plan| plan.step(attempt.step));
        match step {
            Some(Step::Pause(duration)) if attempt.paused_at_step => {
                let over = duration.and_then(|duration| attempt.entered.saturating_add(duration).ok());
                let waits_for = match over {
                    Some(_) => format!("the end of the pause of {place}"),
                    None => format!("a user to promote it: the pause of {place} has no end"),
                };
                Explanation {
                    waits_for,
                    since: Some(attempt.entered),
                    moves: vec![
                        self.command("promote", "the pause ends now"),
                        self.abort(),
                        full(),
                    ],
                    until: over.map(|over| self.in_time(over)),
                    ..Explanation::default()
                }
            }
            // No query runs before the pods are available, and a promotion can only skip checks.
            Some(Step::Analysis(_)) if self.waits_for_pods() => Explanation {
                waits_for: message,
                since: Some(attempt.entered),
                moves: vec![
                    "its pods: the checks begin by themselves when every one is available".into(),
                    self.abort(),
                    full(),
                ],
                ..Explanation::default()
            },
            Some(Step::Analysis(_)) => {
                let waits_for = match &self.facts.rollout.checks {
                    Some((check, checks)) => format!(
                        "{}: {} of {} in a row{}",
                        self.stage
                            .checks_in_words()
                            .unwrap_or_else(|| format!("the checks of {place}")),
                        checks.consecutive_successful_checks,
                        check.success_threshold,
                        checks
                            .last_check
                            .as_ref()
                            .map_or_else(String::new, |last| format!(
                                ", the last was {}: {}",
                                last.verdict, last.message
                            ))
                    ),
                    None => format!("the analysis of {place}: {}", self.measured()),
                };
                let mut moves = vec!["good answers: it then goes on by itself".to_owned()];
                if self.stage.is_at_gate() {
                    moves.push(self.command("promote", "it goes on without the rest of these checks"));
                } else {
                    moves.push(self.command("skip", "it goes on without this analysis"));
                }
                moves.extend([self.abort(), full()]);
                Explanation {
                    waits_for,
                    since: Some(attempt.entered),
                    moves,
                    ..Explanation::default()
                }
            }
            _ => {
                let deadline = self.stage.plan.map(|plan| plan.deadline);
                let until = deadline.and_then(|deadline| attempt.progressed.saturating_add(deadline).ok());
                Explanation {
                    waits_for: message,
                    since: Some(attempt.progressed),
                    moves: vec![
                        "its pods: it goes on by itself when they are well".into(),
                        self.abort(),
                        full(),
                    ],
                    until: until
                        .map(|until| format!("{}; without progress it has failed then", self.in_time(until))),
                    ..Explanation::default()
                }
            }
        }
    }

    /// `2026-01-01T00:11:50Z, in 1m50s`
    fn in_time(&self, at: Timestamp) -> String {
        // As in the operator's message.
        let at = to_seconds(at);
        let left = at.duration_since(self.now).max(SignedDuration::ZERO);
        format!("{at}, in {}", human_duration(left))
    }

    /// Whether a gate waits for pods and not for its checks.
    fn waits_for_pods(&self) -> bool {
        let checks = self.facts.rollout.checks.as_ref();
        checks.is_some_and(|(_, checks)| checks.status == "WaitForAllPodsToBeAvailable")
    }

    /// The analysis runs with their last values.
    fn measured(&self) -> String {
        let metrics = runs::sentences(&self.facts.runs);
        if metrics.is_empty() {
            return self.message();
        }
        let metrics = metrics.into_iter().map(|(words, _)| words);
        metrics.collect::<Vec<_>>().join("; ")
    }

    fn returning(&self, back: &stateward_core::memory::Rollback) -> Explanation {
        let again = match back.cause {
            Cause::Aborted => vec![self.command("retry", &format!("{} is tried again", back.from))],
            Cause::TemplateReverted | Cause::ScaledToZero => Vec::new(),
        };
        let mut moves = vec!["its pods: it ends by itself when every one is back and Ready".to_owned()];
        moves.extend(again);
        Explanation {
            waits_for: self.message(),
            since: Some(back.since),
            moves,
            ..Explanation::default()
        }
    }

    fn idle(&self) -> Explanation {
        let status = &self.stage.status;
        if status.aborted {
            let revision = status.aborted_revision.clone().unwrap_or_default();
            let replaced = status.aborted_template_replaced;
            let mut moves = vec!["another template: its rollout begins at the first step".to_owned()];
            if !replaced {
                moves.push(self.command("retry", &format!("{revision} is tried again")));
                let undo = hint::command("undo", self.stage, self.program);
                let stable = self.stable();
                moves.push(format!(
                    "{undo} --revision {revision}: the template asks for {stable} again"
                ));
            }
            return Explanation {
                waits_for: format!(
                    "another version: {revision} was rejected ({})",
                    status.aborted_reason.clone().unwrap_or_default()
                ),
                since: status.aborted_at,
                moves,
                ..Explanation::default()
            };
        }
        if self.stage.phase() == "Successful" {
            let paused = self.facts.rollout.paused;
            return Explanation {
                waits_for: format!("nothing: {}", self.message()),
                since: self.since("Completed", "True"),
                moves: if paused {
                    vec![self.command("resume", "the next version would stand at its start otherwise")]
                } else {
                    vec!["another template: its rollout begins at the first step".into()]
                },
                ..Explanation::default()
            };
        }
        Explanation {
            waits_for: self.message(),
            since: self.since("Progressing", "True"),
            moves: vec!["its pods: it goes on by itself when they are well".into()],
            ..Explanation::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, phased, rollout, stepping};
    use crate::rollout::Rollout;
    use serde_json::{Value, json};
    use stateward_api::rolloutplugin::RolloutPlugin;

    fn explained(rollout: Rollout, runs: Value) -> Explanation {
        let facts = Facts {
            rollout,
            set: None,
            unread: None,
            pods: Vec::new(),
            runs: serde_json::from_value(runs).unwrap(),
            events: Vec::new(),
            set_events: Vec::new(),
            pod_events: Vec::new(),
            budgets: Vec::new(),
            claims: Vec::new(),
            leases: Vec::new(),
        };
        explain(&facts, NOW.parse().unwrap(), "stateward")
    }

    fn analysing(reason: &str) -> Rollout {
        let mut object = crate::fixtures::plugin("db", json!({}));
        let status = json!({
            "observedGeneration": 1, "phase": "Progressing", "message": "step 1 of 1: analysis",
            "currentStepIndex": 0, "currentStepHash": "h", "currentStepStartedAt": "2026-01-01T00:09:00Z",
            "stableRevision": "db-1", "updatedRevision": "db-2",
            "pauseConditions": [{"reason": reason, "startTime": "2026-01-01T00:09:30Z"}],
            "controllerPause": reason == "InconclusiveAnalysisRun",
            "conditions": [{
                "type": "Progressing", "status": "True", "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:09:00Z",
            }],
        });
        object.status = serde_json::from_value(status).unwrap();
        let steps = json!([{"analysis": {"templates": [{"templateName": "errors"}]}}]);
        let mut value = json!(object);
        value["spec"]["strategy"]["canary"]["steps"] = steps;
        serde_json::from_value::<RolloutPlugin>(value).unwrap().into()
    }

    fn runs() -> Value {
        json!([{
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun", "metadata": {"name": "db-2-0"},
            "spec": {"metrics": [{"name": "errors", "interval": "5s", "count": 5, "provider": {}}]},
            "status": {"phase": "Running", "metricResults": [{
                "name": "errors", "phase": "Running", "count": 2, "measurements": [{"phase": "Successful", "value": "[0.01]"}],
            }]},
        }])
    }

    #[test]
    fn analysis_says_what_it_measured_last() {
        let told = explained(analysing("RolloutPluginAnalyzing"), runs());
        assert_eq!(
            told.waits_for,
            "the analysis of step 1 of 1: errors is Running, 2 of 5 measured, last [0.01]"
        );
        assert_eq!(told.since, "2026-01-01T00:09:00Z".parse().ok());
    }

    /// No query runs before every pod is available, and a promotion would be refused.
    #[test]
    fn a_gate_that_stands_because_of_its_pods_names_them_and_offers_no_promotion() {
        let gate = |status: &str| {
            let mut rollout = phased(2, 0);
            let (_, checks) = rollout.checks.as_mut().unwrap();
            checks.status = status.to_owned();
            rollout.status.get_or_insert_default().message =
                "pod 1 of 2: checks begin when every pod is available: waiting for pod web-0 to be Ready"
                    .into();
            explained(rollout, json!([]))
        };
        let promotes = |it: &Explanation| {
            it.moves
                .iter()
                .any(|moves| moves.starts_with("stateward promote web --revision"))
        };
        let checking = gate("WaitForChecks");
        assert!(
            promotes(&checking) && checking.waits_for.starts_with("the checks before pod 1 of 2"),
            "{checking:?}"
        );
        let standing = gate("WaitForAllPodsToBeAvailable");
        assert!(
            !promotes(&standing) && standing.waits_for.ends_with("waiting for pod web-0 to be Ready"),
            "{standing:?}"
        );
    }

    #[test]
    fn analysis_without_a_verdict_waits_for_a_person() {
        let told = explained(analysing("InconclusiveAnalysisRun"), runs());
        assert_eq!(
            told.waits_for,
            "a user to decide: analysis came to no verdict: errors is Running, 2 of 5 measured, last [0.01]"
        );
        assert_eq!(
            told.moves,
            [
                "stateward promote db --revision db-2: it goes on without a verdict",
                "stateward abort db --revision db-2: every pod returns to db-1",
            ]
        );
    }

    #[test]
    fn a_spec_that_nobody_has_seen_waits_for_the_operator() {
        let mut object = stepping();
        object.metadata.generation = Some(2);
        let told = explained(object, json!([]));
        assert_eq!(told.waits_for, "the operator to look at the latest spec");
    }

    /// A rollout with these conditions: type, status and transition time.
    fn condemned(reason: &str, conditions: &[(&str, &str, &str)]) -> Option<Timestamp> {
        let condition = |(kind, status, at): &(&str, &str, &str)| json!({"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": at});
        let conditions: Vec<_> = conditions.iter().map(condition).collect();
        let status = json!({
            "observedGeneration": 1, "phase": "Progressing", "message": "so it is", "conditions": conditions,
        });
        explained(rollout("db", status), json!([])).since
    }

    #[test]
    fn since_is_told_by_the_condition_that_came_with_it_or_not_at_all() {
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-01T00:09:58Z");
        let deleted = [("Progressing", "True", new), ("Stalled", "False", old)];
        assert_eq!(condemned("WorkloadMissing", &deleted), new.parse().ok());
        let suspended = [
            ("Progressing", "False", old),
            ("Completed", "True", old),
            ("Stalled", "False", old),
        ];
        assert_eq!(condemned("Suspended", &suspended), None);
        let suspended = [("Progressing", "False", old), ("Updated", "Unknown", new)];
        assert_eq!(condemned("Suspended", &suspended), new.parse().ok());
        let invalid = [
            ("Progressing", "False", old),
            ("InvalidSpec", "True", new),
            ("Stalled", "True", old),
        ];
        assert_eq!(condemned("InvalidSpec", &invalid), new.parse().ok());
    }

    #[test]
    fn what_is_left_to_kubernetes_waits_for_nothing() {
        let object = rollout(
            "web",
            json!({
                "observedGeneration": 1, "phase": "Successful", "message": "left to Kubernetes",
                "conditions": [{
                    "type": "Progressing", "status": "False", "reason": "Suspended", "message": "",
                    "lastTransitionTime": "2026-01-01T00:09:00Z",
                }],
            }),
        );
        let told = explained(object, json!([]));
        assert_eq!(told.waits_for, "nothing: left to Kubernetes");
    }
}
