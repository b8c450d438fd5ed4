//! What the template asks for (rules 6 to 9).

use super::{message, phase, rejection, silent, step};
use crate::engine::decide;
use crate::engine::fixture::{returning, revision, rolling, settled};
use crate::event::{EventReason, EventType};
use crate::memory::{Activity, Cause};
use crate::plan::{Fingerprint, Share, StepIndex};
use crate::world::{Action, Phase, Reason};

/// Rule 6: the operator restored the stable template itself, so that is not a success.
#[test]
fn a_rejected_version_that_we_took_out_stays_rejected() {
    let mut world = returning(["b"; 5]);
    world.current("b");
    world.memory.rejected = Some(rejection());
    let decision = decide(&world);
    assert_eq!(decision.action, None, "it is written down first");
    world.memory = decision.memory;
    assert_eq!(decide(&world).action, Some(Action::Restore(Share::ALL)));

    world.template("a");
    world.current("a");
    world.pods(["a"; 5]);
    world.view().released = 0;
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::Rejected));
    assert!(message(&decision).contains("go on with another version"));
    world.memory = decision.memory;
    assert!(silent(&world));

    world.template("b");
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::Rejected));
    assert!(message(&decision).contains("retry"));
    world.memory = decision.memory;
    assert!(silent(&world));
}

/// Rule 6: a user who removes a version from the template and applies it again wants it rolled out.
#[test]
fn a_rejected_version_that_somebody_took_out_begins_again() {
    let mut world = settled();
    world.memory.rejected = Some(rejection());
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Successful, Reason::Stable));
    world.memory = decision.memory;
    world.template("b");
    assert_eq!(step(&decide(&world)), 0);
}

/// Rule 7
#[test]
fn a_template_put_back_turns_round_at_once() {
    let mut world = rolling(1);
    world.template("a");
    world.pods(["a", "a", "a", "a", "b"]);
    let decision = decide(&world);
    assert!(
        matches!(&decision.memory.activity, Activity::RollingBack(back) if back.cause == Cause::TemplateReverted)
    );
    assert_eq!(decision.memory.rejected, None);
}

/// Rule 8
#[test]
fn a_third_version_begins_at_the_first_step_with_the_same_baseline() {
    let mut world = rolling(2);
    world.pods(["a", "a", "b", "b", "b"]);
    world.view().released = 3;
    world.template("c");
    let decision = decide(&world);
    assert_eq!(step(&decision), 0);
    assert_eq!(decision.memory.stable.as_ref().unwrap().revision, revision("a"));
    world.memory = decision.memory;
    world.view().released = 1;
    assert_eq!(decide(&world).action, None, "Kubernetes is about to replace db-4");
    world.pods(["a", "a", "b", "b", "c"]);
    world.attempt().max_available = 1;
    let Some(Action::Remove { pod, .. }) = decide(&world).action else {
        panic!("the pods of b go back to a");
    };
    assert_eq!(pod, "db-3");
}

/// Rule 9
#[test]
fn a_scale_to_zero_does_not_promote() {
    let mut world = rolling(1);
    world.view().replicas = 0;
    world.current("b");
    world.pods([]);
    let decision = decide(&world);
    assert_eq!(decision.memory.stable.as_ref().unwrap().revision, revision("a"));
    let told = &decision.notices[0];
    assert_eq!(told.reason, EventReason::ScaledToZero);
    assert_eq!(told.reason.event_type(), EventType::Warning);
    assert_eq!(
        told.message,
        "scaled to zero while db-b was being rolled out, which Kubernetes takes for its end: db-a stays the stable version and \
         its template is restored; scale up, then apply db-b again to roll it out"
    );
    world.memory = decision.memory;
    let decision = decide(&world);
    assert_eq!(decision.action, Some(Action::Restore(Share::ALL)));
    assert_eq!(
        message(&decision),
        "scaled to zero while db-b was being rolled out: its template gives way to that of db-a"
    );

    world.template("a");
    world.current("a");
    world.memory = decide(&world).memory;
    assert_eq!(world.memory.activity, Activity::Idle);
    assert_eq!(
        message(&decide(&world)),
        "scaled to zero: pods will run db-a; db-b was taken out of the template, because Kubernetes would have \
         given it to every pod unasked: scale up, then apply it again to roll it out"
    );
    let at_rest = world.clone();
    world.template("b");
    let decision = decide(&world);
    assert_eq!(decision.memory, world.memory, "pods are yet to go");
    assert!(message(&decision).contains("gives way to the stable version when every pod is gone"));
    world.current("b");
    let decision = decide(&world);
    assert!(
        matches!(&decision.memory.activity, Activity::RollingBack(back) if back.cause == Cause::ScaledToZero),
        "whoever applies it to no pods skips no gate"
    );
    assert_eq!(decision.memory.stable, at_rest.memory.stable);
    assert_eq!(decision.memory.withdrawn, Some(revision("b")));
    world = at_rest;
    world.view().replicas = 5;
    world.view().released = 0;
    world.pods(["a"; 5]);
    assert!(message(&decide(&world)).starts_with("every pod runs db-a; db-b was taken out of the template"));
    world.template("b");
    let decision = decide(&world);
    assert_eq!(step(&decision), 0, "it may be tried again");
    assert_eq!(decision.memory.withdrawn, None);
}

/// Rule 4: a user who changes the template while no operator runs continues from the version that was rolled out.
#[test]
fn a_rollout_that_ended_unseen_is_what_the_next_one_goes_back_to() {
    let mut world = rolling(3);
    world.pods(["b"; 5]);
    world.view().current = revision("b");
    world.view().current_template = Some(Fingerprint::of("b"));
    world.template("c");
    let decision = decide(&world);
    let stable = decision.memory.stable.as_ref().unwrap();
    assert_eq!(
        (&stable.revision, &stable.template),
        (&revision("b"), &Fingerprint::of("b"))
    );
    assert_eq!(step(&decision), 0);
    let told: Vec<_> = decision
        .notices
        .iter()
        .map(|notice| notice.reason.as_str())
        .collect();
    assert_eq!(told, ["RolloutCompleted", "RolloutStarted"]);

    world.attempt().step = StepIndex(2);
    let stable = decide(&world).memory.stable.unwrap();
    assert_eq!(stable.revision, revision("a"), "its steps were not done");
}
