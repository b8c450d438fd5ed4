//! The effect of a template change, as text: the rules of the engine, derived from the object.

use stateward_core::memory::Activity;

use crate::rollout::{Kind, Rollout};
use crate::stage::Stage;
use crate::views::invocation;

/// Why the template must not be changed now: nothing would hold the pods back.
pub(crate) fn objection(rollout: &Rollout) -> Result<(), String> {
    let title = rollout.title();
    if rollout.metadata.deletion_timestamp.is_some() {
        return Err(format!("{title} is being deleted; nothing was changed"));
    }
    let stage = Stage::of(rollout);
    if stage.status.phase.is_empty() {
        return Err(format!(
            "no operator has looked at {title} yet, so Kubernetes would roll every pod at once; is one running"
        ));
    }
    // With a valid reference the operator adopts and guards the workload, even if the plan is invalid.
    let guarded = stage.status.stable_revision.is_some() && rollout.reference_valid;
    if is_invalid(&stage) && !guarded && stage.activity == Activity::Idle {
        return Err(format!(
            "{title} is invalid and does not guard the workload ({})",
            stage.message()
        ));
    }
    Ok(())
}

/// The effect of a template. `version` is its title; `stable` says whether it is the stable one.
pub(crate) fn in_words(rollout: &Rollout, version: &str, stable: bool, program: &str) -> String {
    let stage = Stage::of(rollout);
    let name = rollout.name_any();
    let home = stage.status.stable_revision.clone().unwrap_or_default();
    if is_left_to_kubernetes(&stage) {
        return format!("{name} is left to Kubernetes, which rolls every pod to {version} without checks");
    }
    match (&stage.activity, stable) {
        (Activity::Rolling(attempt), true) => format!(
            "{name} returns every pod from {} to {home} at once, without steps",
            attempt.target
        ),
        (Activity::RollingBack(_), true) => {
            format!("{name} is returning every pod to {home}; its template follows")
        }
        (Activity::Idle, true) => {
            format!("{name} asks for {home} again, which every pod runs; no pod moves")
        }
        (Activity::Rolling(attempt), false) => format!(
            "{name} rolls {version} in the place of {}, {}",
            attempt.target,
            the_way(rollout, &stage, program)
        ),
        (Activity::Idle | Activity::RollingBack(_), false) => {
            format!("{name} rolls {version}, {}", the_way(rollout, &stage, program))
        }
    }
}

fn is_invalid(stage: &Stage<'_>) -> bool {
    let mut conditions = stage.status.conditions.iter();
    conditions.any(|condition| condition.kind == "InvalidSpec" && condition.status == "True")
}

/// Whether the operator leaves the workload to Kubernetes.
fn is_left_to_kubernetes(stage: &Stage<'_>) -> bool {
    let conditions = stage.status.conditions.iter();
    conditions
        .into_iter()
        .any(|condition| condition.kind == "Progressing" && condition.reason == "Suspended")
}

fn the_way(rollout: &Rollout, stage: &Stage<'_>, program: &str) -> String {
    if rollout.paused {
        return format!(
            "but stands at its start until: {} resume {}",
            invocation::about(program, rollout),
            rollout.name_any()
        );
    }
    if stage.plan.is_none() || is_invalid(stage) {
        return "once its spec is fixed: until then no pod is released".into();
    }
    match (rollout.kind, stage.steps()) {
        (Kind::PhasedRollout, _) => "one pod after the other, with its checks".into(),
        (Kind::RolloutPlugin, 0) => "one pod after the other: it has no steps".into(),
        (Kind::RolloutPlugin, 1) => "beginning at its only step".into(),
        (Kind::RolloutPlugin, steps) => format!("beginning at the first of its {steps} steps"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{at_rest, paused, returning, unseen};
    use rstest::rstest;

    fn held() -> Rollout {
        let mut object = at_rest();
        object.paused = true;
        object
    }

    #[rstest]
    #[case(at_rest(), false, "cache rolls x, beginning at the first of its 4 steps")]
    #[case(
        held(),
        false,
        "cache rolls x, but stands at its start until: stateward resume cache"
    )]
    #[case(
        at_rest(),
        true,
        "cache asks for cache-1 again, which every pod runs; no pod moves"
    )]
    #[case(
        paused(),
        false,
        "db rolls x in the place of db-2, beginning at the first of its 4 steps"
    )]
    #[case(
        paused(),
        true,
        "db returns every pod from db-2 to db-1 at once, without steps"
    )]
    #[case(
        returning(),
        true,
        "queue is returning every pod to queue-1; its template follows"
    )]
    fn it_is_told_what_a_template_will_come_to(
        #[case] rollout: Rollout,
        #[case] stable: bool,
        #[case] expected: &str,
    ) {
        assert_eq!(in_words(&rollout, "x", stable, "stateward"), expected);
    }

    #[test]
    fn nobody_changes_a_template_that_nobody_guards() {
        assert_eq!(
            objection(&unseen()).unwrap_err(),
            "no operator has looked at rolloutplugin new yet, so Kubernetes would roll every pod at once; is one running"
        );
    }
}
