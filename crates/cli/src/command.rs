//! The commands for a rollout: whether they apply, their effect, and their patch.
//!
//! Every patch starts with tests that the object, the revision and (where it matters) the step are those that were read. If one of
//! them has changed, the API server rejects the whole patch, so no command acts on a state that its user never saw.

use json_patch::Patch;
use serde_json::{Value, json};
use stateward_core::memory::Activity;
use stateward_core::plan::{Step, StepIndex};

use crate::rollout::Rollout;
use crate::stage::{self, Stage, steps_in_words};
use crate::views::hint;
use crate::views::invocation;

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Promote,
    Skip,
    PromoteFull {
        /// Even while a pod of the new version is broken.
        force: bool,
    },
    Abort,
    Retry,
    Pause,
    Resume,
}

impl Command {
    /// The verb, as typed and as in the operator's events.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Promote => "promote",
            Self::Skip => "skip",
            Self::PromoteFull { .. } => "promote --full",
            Self::Abort => "abort",
            Self::Retry => "retry",
            Self::Pause => "pause",
            Self::Resume => "resume",
        }
    }

    /// The past participle: `rolloutplugin.argoproj.io/db promoted`.
    pub(crate) fn done(self) -> &'static str {
        match self {
            Self::Promote => "promoted",
            Self::Skip => "step skipped",
            Self::PromoteFull { .. } => "fully promoted",
            Self::Abort => "aborted",
            Self::Retry => "retried",
            Self::Pause => "paused",
            Self::Resume => "resumed",
        }
    }

    /// Whether the command changes the status subresource instead of the spec.
    pub(crate) fn is_to_status(self) -> bool {
        !matches!(self, Self::Pause | Self::Resume)
    }

    /// Why the command does not apply to the rollout, as text.
    pub(crate) fn objection(self, object: &Rollout, program: &str) -> Result<(), String> {
        let stage = Stage::of(object);
        let message = || hint::message(&stage, program);
        let plain = || hint::without_commands(&message()).to_owned();
        let hint = |verb: &str| hint::command(verb, &stage, program);
        if object.metadata.deletion_timestamp.is_some() {
            return Err(format!("{} is being deleted", object.title()));
        }
        if stage.status.phase.is_empty() {
            return Err(format!(
                "no operator has looked at {} yet; is one running",
                object.title()
            ));
        }
        let (paused, aborted) = (object.paused, stage.status.aborted);
        let because = |why: &str| Err(format!("{} {why}", object.title()));
        match (self, &stage.activity) {
            (Self::Resume, _) if paused => Ok(()),
            (Self::Resume, Activity::Rolling(attempt)) if attempt.awaits_a_word() => because(&format!(
                "is paused by a step and not by spec.paused; go on with: {}",
                hint("promote")
            )),
            (Self::Resume, _) => because("is not paused"),
            (Self::Retry, Activity::Rolling(attempt)) if attempt.paused_at_step && stage.is_by_pod() => {
                Ok(())
            }
            (Self::Retry, Activity::Rolling(attempt)) => because(&format!(
                "is being rolled to {}; there is nothing to retry",
                attempt.target
            )),
            (Self::Retry, _) if stage.status.aborted_template_replaced => because(&format!(
                "has the stable template again; apply {} first, then retry",
                stage
                    .status
                    .aborted_revision
                    .as_deref()
                    .unwrap_or("the aborted revision")
            )),
            (Self::Retry, _) if aborted => Ok(()),
            (Self::Retry, _) => because("has no aborted revision in its template; there is nothing to retry"),
            (Self::Pause, _) if object.left_alone => because(
                "is left to Kubernetes by spec.skipCheck, which would go on all the same; set that to false first",
            ),
            (Self::Pause, Activity::Idle | Activity::Rolling(_)) if paused => because("is paused already"),
            // Pauses the next rollout at its start: a workload can be frozen before it is changed.
            (Self::Pause, Activity::Idle) => Ok(()),
            (_, Activity::Idle) => because(&format!(
                "has no rollout in progress ({}: {}); there is nothing to {}",
                stage.phase(),
                message(),
                self.verb()
            )),
            (_, Activity::RollingBack(back)) => because(&format!(
                "is already returning from {}; there is nothing to {}",
                back.from,
                self.verb()
            )),
            (Self::Promote | Self::Skip | Self::PromoteFull { .. }, Activity::Rolling(_))
                if stage.plan.is_none() =>
            {
                because(&format!("has a spec that is not valid: {}", message()))
            }
            (Self::Promote | Self::Skip | Self::PromoteFull { .. }, Activity::Rolling(_)) if paused => {
                because(&format!("is paused by spec.paused; first: {}", hint("resume")))
            }
            (Self::Promote, Activity::Rolling(attempt)) if attempt.awaits_a_word() || stage.is_at_gate() => {
                let emptied = attempt.awaits_a_word() && stage.status.pause_conditions.is_empty();
                if emptied || stage.status.promote {
                    return because("was promoted already, and no operator has answered yet; is one running");
                }
                Ok(())
            }
            (Self::Promote | Self::Skip | Self::PromoteFull { .. }, Activity::Rolling(attempt))
                if attempt.step.0 as usize >= stage.steps() =>
            {
                because("has all its steps done already; the remaining pods follow")
            }
            (Self::PromoteFull { force: false }, Activity::Rolling(_)) if stage.is_broken() => {
                because(&format!(
                    "has a new version that is broken ({}); go back with: {}, or skip the remaining steps all the same with: {}",
                    plain(),
                    hint("abort"),
                    hint("promote --full --force")
                ))
            }
            // Do not suggest what would make it worse.
            (Self::Promote, Activity::Rolling(_)) if stage.is_broken() => because(&format!(
                "cannot go on ({}); go back with: {}",
                plain(),
                hint("abort")
            )),
            (Self::Promote, Activity::Rolling(_)) if stage.is_by_pod() => because(&format!(
                "does not stand at a gate ({}); without any further check: {}",
                plain(),
                hint("promote --full")
            )),
            (Self::Promote, Activity::Rolling(_)) => because(&format!(
                "does not stand at a pause ({}); to skip this step: {}",
                plain(),
                hint("skip")
            )),
            (Self::Skip, Activity::Rolling(_)) if stage.is_in_doubt() => because(&format!(
                "waits for a decision about the background analysis, which is not a step; go on with: {}",
                hint("promote")
            )),
            (Self::Skip, Activity::Rolling(_)) if stage.is_by_pod() && !stage.is_at_gate() => {
                because(&format!(
                    "does not stand at a gate ({}), and the next one waits for the same pod",
                    plain()
                ))
            }
            (Self::Skip, Activity::Rolling(_)) if stage.status.skip_current_step => {
                because("was asked to skip a step already, and no operator has answered yet; is one running")
            }
            (Self::Skip | Self::PromoteFull { .. } | Self::Abort | Self::Pause, Activity::Rolling(_)) => {
                Ok(())
            }
        }
    }

    /// The effect of the command, as text.
    pub(crate) fn effect(self, object: &Rollout, program: &str) -> String {
        let stage = Stage::of(object);
        let name = object.name_any();
        let revision = stage.status.updated_revision.clone().unwrap_or_default();
        let stable = stage.status.stable_revision.clone().unwrap_or_default();
        let here = stage.progress_in_words().unwrap_or_default();
        match self {
            Self::Promote if stage.is_in_doubt() => {
                format!("{name} goes on at {here} without a verdict of the background analysis")
            }
            Self::Promote | Self::Skip if stage.is_at_gate() => {
                let checks = stage.checks_in_words().unwrap_or_default();
                let next = stage.step().map_or(0, |step| step + 1);
                let ahead = match next < stage.steps() {
                    true => format!("{} is next to run {revision}", stage.place(next)),
                    false => "they were the last".into(),
                };
                format!("{name} skips the rest of {checks}; {ahead}")
            }
            Self::Promote | Self::Skip => {
                let next = stage.step().map_or(0, |step| step + 1);
                let ahead = match stage.plan.and_then(|plan| plan.steps.get(next)) {
                    Some(step @ (Step::Pause(_) | Step::Analysis(_))) => {
                        format!("{} is next: {}", stage.place(next), stage::describe(&step))
                    }
                    Some(Step::Share(share)) => format!(
                        "{} is next: {} to {revision}",
                        stage.place(next),
                        stage::share(share)
                    ),
                    None => format!("it was the last step, the remaining pods follow to {revision}"),
                };
                let step = next.checked_sub(1).zip(stage.plan);
                let step = step.and_then(|(at, plan)| plan.steps.get(at));
                if self == Self::Skip {
                    let step = step.map_or_else(String::new, |step| format!(" ({})", stage::describe(&step)));
                    format!("{name} skips {here}{step}, whatever it waits for; {ahead}")
                } else {
                    format!("{name} leaves the pause of {here}; {ahead}")
                }
            }
            Self::PromoteFull { .. } => {
                let at = |step: usize| StepIndex(u32::try_from(step).unwrap_or(u32::MAX));
                let (from, to) = (at(stage.step().unwrap_or(0)), at(stage.steps()));
                let skipped = steps_in_words(from, to, object);
                let left = stage.status.replicas.unwrap_or(0) - stage.status.updated_replicas.unwrap_or(0);
                let pods = match left {
                    ..=0 => "no pod is left to follow".to_owned(),
                    1 => format!("the remaining pod follows to {revision} without pauses or checks"),
                    left => {
                        format!("the remaining {left} pods follow to {revision} without pauses or checks")
                    }
                };
                format!("{name} skips {skipped}; {pods}{}", stage.waits_for_unready())
            }
            Self::Abort => {
                format!(
                    "{name} turns {revision} down; every pod on another version than {stable} returns to it"
                )
            }
            Self::Retry => {
                let when = if object.paused { ", once it is resumed" } else { "" };
                match stage.step() {
                    Some(_) => {
                        let checks = stage.checks_in_words();
                        let checks = checks.unwrap_or_else(|| format!("the checks of {here}"));
                        format!("{name} makes {checks} again{when}")
                    }
                    None => format!("{name} tries {revision} again, from its first step{when}"),
                }
            }
            Self::Pause => match stage.step() {
                Some(_) => format!(
                    "{name} stays where it is, {here}; no further pod is released until: {}",
                    hint::command("resume", &stage, program)
                ),
                None => format!(
                    "{name} rolls nothing now; its next rollout will stand at its start until: {} resume {name}",
                    invocation::about(program, object)
                ),
            },
            Self::Resume => match stage.step() {
                Some(_) => format!("{name} goes on with {revision}, {here}"),
                None => format!("{name} will roll the next version that its workload is given"),
            },
        }
    }

    /// The effect of the command where revision `asked` has replaced the one that was read.
    pub(crate) fn effect_on_the_next(self, object: &Rollout, asked: &str, program: &str) -> String {
        let name = object.name_any();
        match self {
            Self::Pause => format!(
                "the rollout of {asked}, which no operator has looked at yet, will stand at its start until: {} resume {name}",
                invocation::about(program, object)
            ),
            _ => {
                format!("{name} will roll {asked}, which no operator has looked at yet, from its first step")
            }
        }
    }

    /// Whether the command is for the current revision only. Pause and resume are for any revision.
    pub(crate) fn is_for_a_version(self) -> bool {
        match self {
            Self::Promote | Self::Skip | Self::PromoteFull { .. } | Self::Abort | Self::Retry => true,
            Self::Pause | Self::Resume => false,
        }
    }

    /// Whether the command is for the current step only.
    fn is_for_a_step(self) -> bool {
        matches!(self, Self::Promote | Self::Skip)
    }

    /// The patch, bound to the state that was read, with the user who issues the command.
    pub(crate) fn patch(self, seen: &Rollout, by: Option<&str>) -> Result<Patch, serde_json::Error> {
        let status = seen.status.clone().unwrap_or_default();
        let test = |path: &str, value: Value| json!({"op": "test", "path": path, "value": value});
        let mut operations = vec![test("/metadata/uid", json!(seen.uid()))];
        if let Some(revision) = &status.updated_revision {
            operations.push(test("/status/updatedRevision", json!(revision)));
        }
        let set = |path: &str, value: bool| json!({"op": "add", "path": path, "value": value});
        if self.is_for_a_step() {
            operations.push(test("/status/currentStepIndex", json!(status.current_step_index)));
            // A restarted gate is another gate.
            if let Some(began) = status.current_step_started_at {
                operations.push(test("/status/currentStepStartedAt", json!(began)));
            }
        }
        match self {
            Self::Promote if !status.controller_pause => operations.push(set("/status/promote", true)),
            Self::Promote => operations.extend([
                test("/status/controllerPause", json!(true)),
                json!({"op": "remove", "path": "/status/pauseConditions"}),
            ]),
            Self::Skip => operations.push(set("/status/skipCurrentStep", true)),
            Self::PromoteFull { force } => {
                operations.push(set("/status/promoteFull", true));
                operations.extend(force.then(|| set("/status/force", true)));
            }
            Self::Abort => operations.push(set("/status/abort", true)),
            Self::Retry => operations.push(set("/status/restart", true)),
            Self::Pause => operations.push(set("/spec/paused", true)),
            Self::Resume => operations.push(set("/spec/paused", false)),
        }
        if let Some(by) = by.filter(|_| self.is_to_status()) {
            let by: String = by.chars().take(LONGEST_USER).collect();
            operations.push(json!({"op": "add", "path": "/status/requestedBy", "value": by}));
        }
        serde_json::from_value(Value::Array(operations))
    }

    /// What has changed since the read, if the tests of the patch fail.
    pub(crate) fn moved_on(self, seen: &Rollout, now: &Rollout) -> Option<String> {
        let (before, after) = (Stage::of(seen), Stage::of(now));
        let revision = |stage: &Stage<'_>| {
            stage
                .status
                .updated_revision
                .clone()
                .unwrap_or_else(|| "none".into())
        };
        let what = if seen.uid() != now.uid() {
            "was deleted and created again".to_owned()
        } else if revision(&before) != revision(&after) {
            let at = after
                .progress_in_words()
                .map_or_else(String::new, |words| format!(", {words}"));
            format!(
                "has moved on to revision {}{at}; this was meant for {}",
                revision(&after),
                revision(&before)
            )
        } else if self.is_for_a_step() && before.step() != after.step() {
            let place = after
                .progress_in_words()
                .unwrap_or_else(|| format!("{}: {}", after.phase(), after.message()));
            format!("has moved on to {place}")
        } else if self.is_for_a_step()
            && before.status.current_step_started_at != after.status.current_step_started_at
        {
            let place = after.progress_in_words().unwrap_or_default();
            format!("has restarted {place}: {}", after.message())
        } else {
            return None;
        };
        Some(format!("{} {what}; nothing was changed", now.title()))
    }
}

/// The maximum length of a user name that is sent.
const LONGEST_USER: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{aborted, at_rest, broken, paused, replaced, returning, stepping, unseen};
    use rstest::rstest;

    fn held() -> Rollout {
        let mut object = stepping();
        object.paused = true;
        object
    }

    /// At a pause step, and paused by spec.paused.
    fn twice_paused() -> Rollout {
        let mut object = paused();
        object.paused = true;
        object
    }

    fn left_alone() -> Rollout {
        let object = json!({
            "apiVersion": "sts.plus/v1alpha1", "kind": "PhasedRollout", "metadata": {"name": "web", "namespace": "prod"},
            "spec": {
                "targetRef": "web", "skipCheck": true, "check": {"query": {"expr": "errors", "url": "prometheus:9090"}},
            },
            "status": {"phase": "Suspended", "message": "left to Kubernetes"},
        });
        let object: stateward_api::phasedrollout::PhasedRollout = serde_json::from_value(object).unwrap();
        object.into()
    }

    fn frozen() -> Rollout {
        let mut object = at_rest();
        object.paused = true;
        object
    }

    /// After the last step.
    fn past_its_steps() -> Rollout {
        let mut object = stepping();
        object.status.as_mut().unwrap().current_step_index = Some(4);
        object
    }

    #[rstest]
    #[case(Command::Promote, paused())]
    #[case(Command::PromoteFull { force: false }, paused())]
    #[case(Command::PromoteFull { force: false }, stepping())]
    #[case(Command::PromoteFull { force: true }, broken())]
    #[case(Command::Skip, paused())]
    #[case(Command::Skip, stepping())]
    #[case(Command::Skip, broken())]
    #[case(Command::Skip, phased(2))]
    #[case(Command::Abort, paused())]
    #[case(Command::Abort, held())]
    #[case(Command::Retry, aborted())]
    #[case(Command::Retry, returning())]
    #[case(Command::Pause, stepping())]
    #[case(Command::Pause, at_rest())]
    #[case(Command::Pause, aborted())]
    #[case(Command::Resume, held())]
    fn what_makes_sense_has_no_objection(#[case] command: Command, #[case] object: Rollout) {
        assert_eq!(command.objection(&object, "stateward"), Ok(()));
    }

    #[rstest]
    #[case(
        Command::Promote,
        stepping(),
        "rolloutplugin db does not stand at a pause (step 1 of 4: 20 % to db-2: waiting for pod db-4 to be Ready); to skip this step: stateward skip db --revision db-2"
    )]
    #[case(
        Command::Promote,
        broken(),
        "rolloutplugin db cannot go on (pod db-4 is broken on db-2: CrashLoopBackOff); go back with: stateward abort db --revision db-2"
    )]
    #[case(
        Command::PromoteFull { force: false },
        broken(),
        "rolloutplugin db has a new version that is broken (pod db-4 is broken on db-2: CrashLoopBackOff); go back with: stateward abort db --revision db-2, or skip the remaining steps all the same with: stateward promote db --full --force --revision db-2"
    )]
    #[case(
        Command::Skip,
        past_its_steps(),
        "rolloutplugin db has all its steps done already; the remaining pods follow"
    )]
    #[case(
        Command::Skip,
        at_rest(),
        "rolloutplugin cache has no rollout in progress (Successful: every pod runs cache-1); there is nothing to skip"
    )]
    #[case(
        Command::Skip,
        twice_paused(),
        "rolloutplugin db is paused by spec.paused; first: stateward resume db --revision db-2"
    )]
    #[case(
        Command::Skip,
        phased(3),
        "phasedrollout web does not stand at a gate (on its way), and the next one waits for the same pod"
    )]
    #[case(
        Command::Promote,
        past_its_steps(),
        "rolloutplugin db has all its steps done already; the remaining pods follow"
    )]
    #[case(
        Command::PromoteFull { force: false },
        past_its_steps(),
        "rolloutplugin db has all its steps done already; the remaining pods follow"
    )]
    #[case(
        Command::Promote,
        at_rest(),
        "rolloutplugin cache has no rollout in progress (Successful: every pod runs cache-1); there is nothing to promote"
    )]
    #[case(
        Command::Abort,
        at_rest(),
        "rolloutplugin cache has no rollout in progress (Successful: every pod runs cache-1); there is nothing to abort"
    )]
    #[case(
        Command::Abort,
        returning(),
        "rolloutplugin queue is already returning from queue-2; there is nothing to abort"
    )]
    #[case(
        Command::Retry,
        at_rest(),
        "rolloutplugin cache has no aborted revision in its template; there is nothing to retry"
    )]
    #[case(
        Command::Retry,
        replaced(),
        "rolloutplugin queue has the stable template again; apply queue-2 first, then retry"
    )]
    #[case(
        Command::Retry,
        paused(),
        "rolloutplugin db is being rolled to db-2; there is nothing to retry"
    )]
    #[case(
        Command::PromoteFull { force: false },
        held(),
        "rolloutplugin db is paused by spec.paused; first: stateward resume db --revision db-2"
    )]
    #[case(
        Command::Promote,
        twice_paused(),
        "rolloutplugin db is paused by spec.paused; first: stateward resume db --revision db-2"
    )]
    #[case(
        Command::Pause,
        left_alone(),
        "phasedrollout web is left to Kubernetes by spec.skipCheck, which would go on all the same; set that to false first"
    )]
    #[case(Command::Pause, held(), "rolloutplugin db is paused already")]
    #[case(Command::Pause, frozen(), "rolloutplugin cache is paused already")]
    #[case(
        Command::Pause,
        returning(),
        "rolloutplugin queue is already returning from queue-2; there is nothing to pause"
    )]
    #[case(
        Command::Resume,
        paused(),
        "rolloutplugin db is paused by a step and not by spec.paused; go on with: stateward promote db --revision db-2"
    )]
    #[case(Command::Resume, at_rest(), "rolloutplugin cache is not paused")]
    #[case(
        Command::Abort,
        unseen(),
        "no operator has looked at rolloutplugin new yet; is one running"
    )]
    fn an_objection_says_what_is_and_what_would_do(
        #[case] command: Command,
        #[case] object: Rollout,
        #[case] expected: &str,
    ) {
        assert_eq!(command.objection(&object, "stateward"), Err(expected.to_owned()));
    }

    #[rstest]
    #[case(
        Command::Promote,
        paused(),
        "db leaves the pause of step 2 of 4; step 3 of 4 is next: 60% to db-2"
    )]
    #[case(
        Command::PromoteFull { force: false },
        paused(),
        "db skips steps 2 to 4 of 4; the remaining 4 pods follow to db-2 without pauses or checks"
    )]
    #[case(
        Command::PromoteFull { force: true },
        broken(),
        "db skips steps 1 to 4 of 4; the remaining 4 pods follow to db-2 without pauses or checks; Kubernetes waits for pod db-4 to be Ready (CrashLoopBackOff)"
    )]
    #[case(
        Command::Skip,
        stepping(),
        "db skips step 1 of 4 (setWeight 20), whatever it waits for; step 2 of 4 is next: pause until promoted"
    )]
    #[case(
        Command::Skip,
        phased(2),
        "web skips the rest of the checks before pod 2 of 3; pod 2 of 3 is next to run web-2"
    )]
    #[case(
        Command::Abort,
        paused(),
        "db turns db-2 down; every pod on another version than db-1 returns to it"
    )]
    #[case(Command::Retry, aborted(), "queue tries queue-2 again, from its first step")]
    #[case(
        Command::Pause,
        stepping(),
        "db stays where it is, step 1 of 4; no further pod is released until: stateward resume db --revision db-2"
    )]
    #[case(
        Command::Pause,
        at_rest(),
        "cache rolls nothing now; its next rollout will stand at its start until: stateward resume cache"
    )]
    #[case(Command::Resume, held(), "db goes on with db-2, step 1 of 4")]
    #[case(
        Command::Resume,
        frozen(),
        "cache will roll the next version that its workload is given"
    )]
    fn an_effect_says_what_will_happen(
        #[case] command: Command,
        #[case] object: Rollout,
        #[case] expected: &str,
    ) {
        assert_eq!(command.effect(&object, "stateward"), expected);
    }

    #[test]
    fn a_promote_is_bound_to_the_object_the_revision_and_the_step() {
        let patch = Command::Promote.patch(&paused(), Some("alice")).unwrap();
        assert_eq!(
            serde_json::to_value(patch).unwrap(),
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "u-1"},
                {"op": "test", "path": "/status/updatedRevision", "value": "db-2"},
                {"op": "test", "path": "/status/currentStepIndex", "value": 1},
                {"op": "test", "path": "/status/currentStepStartedAt", "value": "2026-01-01T00:06:50Z"},
                {"op": "test", "path": "/status/controllerPause", "value": true},
                {"op": "remove", "path": "/status/pauseConditions"},
                {"op": "add", "path": "/status/requestedBy", "value": "alice"},
            ])
        );
    }

    #[rstest]
    #[case(Command::Skip, &["/status/skipCurrentStep"])]
    #[case(Command::PromoteFull { force: false }, &["/status/promoteFull"])]
    #[case(Command::PromoteFull { force: true }, &["/status/promoteFull", "/status/force"])]
    #[case(Command::Pause, &["/spec/paused"])]
    fn a_command_asks_for_what_it_says_and_for_no_more(#[case] command: Command, #[case] expected: &[&str]) {
        let patch = serde_json::to_value(command.patch(&stepping(), None).unwrap()).unwrap();
        let patch = patch.as_array().unwrap();
        let set = patch.iter().filter(|operation| operation["op"] != "test");
        let paths: Vec<_> = set.map(|operation| operation["path"].as_str().unwrap()).collect();
        assert_eq!(paths, expected);
        let tested = patch.iter().filter(|operation| operation["op"] == "test");
        let bound = tested.map(|operation| operation["path"].as_str().unwrap());
        let step = bound.filter(|path| path.contains("currentStep")).count();
        assert_eq!(step, if command == Command::Skip { 2 } else { 0 });
    }

    /// A PhasedRollout with three pods at this step.
    fn phased(step: i32) -> Rollout {
        let object = json!({
            "apiVersion": "sts.plus/v1alpha1", "kind": "PhasedRollout",
            "metadata": {"name": "web", "namespace": "prod", "uid": "u-2"},
            "spec": {"targetRef": "web", "check": {"query": {"expr": "errors", "url": "prometheus:9090"}}},
            "status": {
                "phase": "Rolling", "message": "on its way", "currentStepIndex": step, "currentStepHash": "h",
                "currentStepStartedAt": "2026-01-01T00:06:50Z", "stepReplicas": 3, "updatedRevision": "web-2",
            },
        });
        let object: stateward_api::phasedrollout::PhasedRollout = serde_json::from_value(object).unwrap();
        object.into()
    }

    #[test]
    fn a_gate_is_passed_whether_its_checks_have_failed_or_not() {
        let object = phased(2);
        assert_eq!(Command::Promote.objection(&object, "stateward"), Ok(()));
        assert_eq!(
            Command::Promote.effect(&object, "stateward"),
            "web skips the rest of the checks before pod 2 of 3; pod 2 of 3 is next to run web-2"
        );
        let patch = Command::Promote.patch(&object, None).unwrap();
        assert_eq!(
            serde_json::to_value(patch).unwrap(),
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "u-2"},
                {"op": "test", "path": "/status/updatedRevision", "value": "web-2"},
                {"op": "test", "path": "/status/currentStepIndex", "value": 2},
                {"op": "test", "path": "/status/currentStepStartedAt", "value": "2026-01-01T00:06:50Z"},
                {"op": "add", "path": "/status/promote", "value": true},
            ])
        );
    }

    #[test]
    fn a_promote_of_a_gate_that_has_begun_anew_is_not_meant() {
        let (seen, mut now) = (phased(2), phased(2));
        assert_eq!(Command::Promote.moved_on(&seen, &now), None);
        let status = now.status.as_mut().unwrap();
        status.current_step_started_at = "2026-01-01T00:08:00Z".parse().ok();
        assert_eq!(
            Command::Promote.moved_on(&seen, &now).unwrap(),
            "phasedrollout web has restarted pod 2 of 3: on its way; nothing was changed"
        );
    }

    #[test]
    fn what_cannot_be_read_cannot_be_promoted() {
        let mut object = phased(2);
        object.plan = None;
        for command in [
            Command::Promote,
            Command::Skip,
            Command::PromoteFull { force: true },
        ] {
            assert_eq!(
                command.objection(&object, "stateward").unwrap_err(),
                "phasedrollout web has a spec that is not valid: on its way"
            );
        }
    }

    #[test]
    fn there_is_no_gate_to_pass_while_a_pod_is_replaced_nor_in_a_pause() {
        assert_eq!(
            Command::Promote.objection(&phased(3), "stateward"),
            Err("phasedrollout web does not stand at a gate (on its way); without any further check: stateward promote web --full --revision web-2".into())
        );
        let mut object = phased(2);
        object.paused = true;
        assert_eq!(
            Command::Promote.objection(&object, "stateward"),
            Err(
                "phasedrollout web is paused by spec.paused; first: stateward resume web --revision web-2"
                    .into()
            )
        );
    }

    #[test]
    fn what_has_moved_on_is_named() {
        let mut other = paused();
        other.status.as_mut().unwrap().updated_revision = Some("db-3".into());
        assert_eq!(
            Command::Abort.moved_on(&paused(), &other).unwrap(),
            "rolloutplugin db has moved on to revision db-3, step 2 of 4; this was meant for db-2; nothing was changed"
        );
        let mut later = paused();
        later.status.as_mut().unwrap().current_step_index = Some(3);
        assert_eq!(
            Command::Promote.moved_on(&paused(), &later).unwrap(),
            "rolloutplugin db has moved on to step 4 of 4; nothing was changed"
        );
        assert_eq!(Command::Abort.moved_on(&paused(), &later), None);
    }
}
