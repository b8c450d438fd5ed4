//! The rules, one by one, on worlds made by hand. The numbers are those of `docs/design/rules.md`.

use jiff::SignedDuration;
use rstest::rstest;

use super::decide;
use super::fixture::{NOW, plan, returning, revision, rolling, settled, weight};
use crate::memory::{Activity, Cause, Memory, Rejection};
use crate::plan::{Fingerprint, OnFailure, Share, Step, StepIndex};
use crate::workload::Claim;
use crate::world::{Action, Decision, NoWorkload, Phase, Reason, World};

fn phase(decision: &Decision) -> (Phase, Reason) {
    let report = decision.report.as_ref().unwrap();
    (report.phase, report.reason)
}

fn message(decision: &Decision) -> &str {
    &decision.report.as_ref().unwrap().message
}

fn step(decision: &Decision) -> u32 {
    match &decision.memory.activity {
        Activity::Rolling(attempt) => attempt.step.0,
        other => panic!("not rolling: {other:?}"),
    }
}

fn notices(decision: &Decision) -> Vec<&str> {
    decision.notices.iter().map(|notice| notice.reason).collect()
}

fn rejection() -> Rejection {
    Rejection {
        revision: revision("b"),
        at: NOW,
        reason: "aborted by a user".into(),
        replaced: false,
    }
}

fn silent(world: &World) -> bool {
    let decision = decide(world);
    decision.memory == world.memory && decision.action.is_none() && decision.notices.is_empty()
}

/// Rule 18
#[test]
fn a_settled_world_is_left_alone() {
    assert!(silent(&settled()));
    assert_eq!(phase(&decide(&settled())), (Phase::Successful, Reason::Stable));
}

/// Rule 1
#[test]
fn the_guard_is_put_back_where_it_was_taken_down() {
    let mut world = settled();
    world.view().released = 5;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
    world.view().released = -2;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
}

/// Rule 15: the claim travels with the partition, also where that is right already.
#[test]
fn a_set_that_is_guarded_by_chance_is_claimed() {
    let mut world = settled();
    world.view().claim = Claim::Free;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
}

/// Rule 1
#[rstest]
#[case::open(|world: &mut World| world.view().released = 5, Reason::Guarding)]
#[case::not_ours(|world: &mut World| world.view().claim = Claim::Free, Reason::Guarding)]
#[case::tighter_than_need_be(|world: &mut World| world.view().released = -2, Reason::Stable)]
fn nothing_is_well_before_the_guard_is_up(#[case] open: fn(&mut World), #[case] reason: Reason) {
    let mut world = settled();
    open(&mut world);
    assert_eq!(phase(&decide(&world)).1, reason);
}

/// Rule 9
#[test]
fn a_pod_astray_at_rest_is_brought_back() {
    let mut world = settled();
    world.pods(["a", "a", "a", "a", "b"]);
    let decision = decide(&world);
    assert!(matches!(&decision.memory.activity, Activity::Returning(back) if back.cause == Cause::PutBack));
    world.memory = decision.memory;
    assert!(matches!(decide(&world).action, Some(Action::Remove { pod, .. }) if pod == "db-4"));
}

/// Rule 9
#[test]
fn a_pod_that_scaling_takes_away_is_not_astray() {
    let mut world = settled();
    world.pods(["a", "a", "a", "a", "a", "b"]);
    assert!(silent(&world));
}

/// Rule 16
#[test]
fn nothing_is_decided_on_what_its_controller_has_not_seen() {
    let mut world = rolling(0);
    world.view().observed = false;
    let decision = decide(&world);
    assert_eq!((decision.report, decision.action), (None, None));
    assert_eq!(decision.memory, world.memory);
}

/// Rule 4
#[test]
fn a_workload_in_the_middle_of_a_change_is_stable_on_what_it_comes_from() {
    let mut world = settled();
    world.memory = Memory::default();
    world.template("b");
    world.pods(["a", "a", "a", "b", "b"]);
    world.view().current_template = Some(Fingerprint::of("a"));
    let decision = decide(&world);
    assert_eq!(decision.memory.stable.as_ref().unwrap().revision, revision("a"));
    assert_eq!(step(&decision), 0);
    world.memory = decision.memory;
    world.view().released = 5;
    assert_eq!(
        decide(&world).action,
        Some(Action::Release(Share::Pods(2))),
        "pods that are new already stay so, and no other follows"
    );
}

/// Rule 4: the pods are told by another watch than the workload, and may not be told yet.
#[test]
fn a_workload_whose_pods_are_not_told_yet_is_not_taken_on() {
    let mut world = settled();
    world.memory = Memory::default();
    world.template("b");
    world.view().current_template = Some(Fingerprint::of("a"));
    world.pods(["a", "a", "a", "b", "b"]);
    world.view().pods.clear();
    let decision = decide(&world);
    assert_eq!((decision.report, decision.memory), (None, world.memory.clone()));
    world.pods(["a", "a", "a", "b", "b"]);
    assert!(matches!(decide(&world).memory.activity, Activity::Rolling(attempt) if attempt.floor == 2));
}

/// Rule 8: which pods are excused is seen from the pods, so they must be known.
#[rstest]
#[case::a_new_version(settled())]
#[case::a_third_version(rolling(2))]
fn a_version_does_not_begin_before_its_pods_are_told(#[case] mut world: World) {
    world.template("c");
    world.view().pods.clear();
    let decision = decide(&world);
    assert_eq!((decision.report, decision.memory), (None, world.memory.clone()));
}

/// Rules 3 and 12: what was never written down is not turned down either.
#[test]
fn a_version_that_is_to_be_turned_down_is_written_down_first() {
    let mut world = settled();
    world.template("b");
    world.current("b");
    world.pods(["b"; 5]);
    world.view().pods[0].ready_since = None;
    world.count();
    let decision = decide(&world);
    assert_eq!((step(&decision), notices(&decision)), (0, vec!["RolloutStarted"]));
    world.memory = decision.memory;
    assert_eq!(notices(&decide(&world)), ["RolloutAborted"]);
}

/// Rule 15
#[test]
fn a_workload_of_another_is_left_alone_and_the_other_named() {
    let mut world = rolling(0);
    world.view().claim = Claim::Other("RolloutPlugin first".into());
    let decision = decide(&world);
    assert_eq!(decision.action, None);
    assert!(message(&decision).contains("RolloutPlugin first"));
}

/// Rules 2 and 3: what a step releases is on record before it is released.
#[test]
fn a_new_version_is_written_down_before_anything_is_released() {
    let mut world = settled();
    world.template("b");
    let decision = decide(&world);
    assert_eq!((step(&decision), decision.action.clone()), (0, None));
    assert_eq!(notices(&decision), ["RolloutStarted"]);
    world.memory = decision.memory;
    let twenty = Share::Percent(crate::plan::Weight::new(20).unwrap());
    assert_eq!(decide(&world).action, Some(Action::Release(twenty)));
}

/// Rule 3
#[rstest]
#[case::another_revision(|world: &mut World| world.pods(["a"; 5]), "pod db-4 to run db-b")]
#[case::not_ready(|world: &mut World| world.unready(4), "pod db-4 to be Ready")]
#[case::an_old_pod_not_ready(|world: &mut World| world.unready(1), "pod db-1 to be Ready")]
#[case::a_missing_pod(|world: &mut World| world.pods(["a", "a", "", "a", "b"]), "pod 2 to be created")]
#[case::counters_lag(|world: &mut World| world.view().told.updated = 0, "status to agree")]
#[case::one_too_many(|world: &mut World| world.pods(["a", "a", "a", "b", "b"]), "pod db-3 to run db-a")]
#[case::not_long_enough(|world: &mut World| world.view().min_ready = SignedDuration::from_mins(5), "stay Ready")]
#[case::scaled_to_zero(|world: &mut World| { world.view().replicas = 0; world.pods([]) }, "scaled to zero")]
fn a_step_is_not_passed(#[case] flaw: fn(&mut World), #[case] waits_for: &str) {
    let mut world = rolling(0);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    let passed = decide(&world);
    assert_eq!(step(&passed), 1, "without the flaw it is passed");
    flaw(&mut world);
    let decision = decide(&world);
    assert_eq!(step(&decision), 0);
    assert!(message(&decision).contains(waits_for), "{}", message(&decision));
}

/// Rule 3: a crash loop without a readiness probe is Ready for a moment at every turn.
#[test]
fn a_pod_that_has_just_crashed_is_not_believed() {
    let mut world = rolling(0);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.view().pods[4].restarted_at = Some(NOW - SignedDuration::from_secs(3));
    let decision = decide(&world);
    assert_eq!(step(&decision), 0);
    assert_eq!(decision.look_again, Some(NOW + SignedDuration::from_secs(7)));
}

/// Rule 5
#[rstest]
#[case::healthy_ones_from_the_last(["a", "a", "a", "b", "b"], &[], Some("db-4"))]
#[case::a_broken_one_first(["a", "a", "b", "b", "b"], &[2], Some("db-2"))]
#[case::none_while_one_is_away(["a", "a", "a", "b", ""], &[], None)]
#[case::none_while_a_stable_one_is_not_ready(["a", "a", "a", "b", "b"], &[0], None)]
fn the_way_back_removes_one_pod(
    #[case] pods: [&str; 5],
    #[case] broken: &[u32],
    #[case] removed: Option<&str>,
) {
    let mut world = returning(pods);
    broken.iter().for_each(|index| world.unready(*index));
    let action = decide(&world).action;
    let name = action.map(|action| match action {
        Action::Remove { pod, serving, .. } => {
            assert_eq!(serving, broken.is_empty(), "a broken pod serves nobody");
            pod
        }
        other => panic!("{other:?}"),
    });
    assert_eq!(name.as_deref(), removed);
}

/// Rule 5: one that is on its way out may still be Ready.
#[test]
fn the_way_back_removes_none_while_one_is_on_its_way_out() {
    let mut world = returning(["a", "a", "a", "b", "b"]);
    world.view().pods[0].terminating = true;
    assert_eq!(decide(&world).action, None);
}

/// Rule 5: the counters miss a pod on its way out before its row tells of it.
#[test]
fn the_way_back_removes_none_while_the_counters_miss_a_pod() {
    let mut world = returning(["a", "a", "a", "b", "b"]);
    world.view().told.current = 2;
    assert_eq!(decide(&world).action, None);
}

/// Rule 5
#[test]
fn the_way_back_holds_the_others_first() {
    let mut world = returning(["a", "a", "a", "b", "b"]);
    world.view().released = 2;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
}

/// Rule 5: Kubernetes has forgotten the stable version.
#[test]
fn a_forgotten_version_is_restored_from_our_copy() {
    let mut world = returning(["b"; 5]);
    world.current("b");
    world.view().released = 5;
    assert_eq!(decide(&world).action, Some(Action::Restore));

    world.template("a");
    assert_eq!(decide(&world).action, None, "now Kubernetes rolls every pod back");
    world.crash(4);
    assert!(matches!(decide(&world).action, Some(Action::Remove { .. })));
}

/// Rule 6: that the template is stable again was our doing, and does not make a success of it.
#[test]
fn a_rejected_version_that_we_took_out_stays_rejected() {
    let mut world = returning(["b"; 5]);
    world.current("b");
    world.memory.rejected = Some(rejection());
    let decision = decide(&world);
    assert_eq!(decision.action, None, "it is written down first");
    world.memory = decision.memory;
    assert_eq!(decide(&world).action, Some(Action::Restore));

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

/// Rule 6: somebody who takes a version out and puts it in again means it.
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

/// Rule 5
#[test]
fn a_pod_that_a_disruption_budget_protects_is_named() {
    let mut world = returning(["a", "a", "a", "b", "b"]);
    world.protected = Some("db-4".into());
    let decision = decide(&world);
    assert!(message(&decision).contains("pod db-4 is next, when a disruption budget lets it go"));
    assert!(matches!(decision.action, Some(Action::Remove { pod, .. }) if pod == "db-4"));
}

/// Rule 5: a template that is put back may get another name than it had.
#[test]
fn a_version_that_comes_back_under_another_name_is_guarded_before_it_is_stable() {
    let mut world = returning(["a2"; 5]);
    world.template("a2");
    world.view().template = Fingerprint::of("a");
    world.current("b");
    world.view().released = 5;
    assert!(silent(&world), "Kubernetes has not turned over yet");
    world.current("a2");
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
    world.view().released = 0;
    let decision = decide(&world);
    assert_eq!(decision.memory.activity, Activity::Idle);
    assert_eq!(decision.memory.stable.unwrap().revision, revision("a2"));
}

/// Rule 5
#[test]
fn the_way_back_ends_when_every_pod_is_stable_and_ready() {
    let mut world = returning(["a"; 5]);
    world.memory.rejected = Some(rejection());
    world.unready(2);
    assert_eq!(phase(&decide(&world)), (Phase::Failed, Reason::Aborting));
    world.pods(["a"; 5]);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::Rejected));
    assert_eq!(decision.memory.activity, Activity::Idle);
    world.memory = decision.memory;
    assert!(silent(&world), "rule 6: rejected stays rejected");
}

/// Rule 5: a pod on its way out is missing from the counters before its row tells of it.
#[test]
fn the_way_back_does_not_end_while_the_counters_miss_a_pod() {
    let mut world = returning(["a"; 5]);
    world.view().told.current = 4;
    assert!(silent(&world));
    world.view().told.current = 5;
    assert_eq!(decide(&world).memory.activity, Activity::Idle);
}

/// Rule 7
#[test]
fn a_template_put_back_turns_round_at_once() {
    let mut world = rolling(1);
    world.template("a");
    world.pods(["a", "a", "a", "a", "b"]);
    let decision = decide(&world);
    assert!(matches!(&decision.memory.activity, Activity::Returning(back) if back.cause == Cause::PutBack));
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
    world.attempt().reached = 1;
    let Some(Action::Remove { pod, .. }) = decide(&world).action else {
        panic!("the pods of b go back to a");
    };
    assert_eq!(pod, "db-3");
}

/// Rule 9
#[test]
fn scaling_recomputes_the_share_and_pulls_back_what_slipped_through() {
    let mut world = rolling(0);
    world.view().replicas = 10;
    world.view().released = 6;
    world.pods(["a", "a", "a", "a", "b", "b", "b", "b", "b", "b"]);
    let twenty = Share::Percent(crate::plan::Weight::new(20).unwrap());
    assert_eq!(decide(&world).action, None, "progress is written down first");
    world.attempt().reached = 10;
    assert_eq!(decide(&world).action, Some(Action::Release(twenty)));
    world.view().released = 2;
    assert!(matches!(decide(&world).action, Some(Action::Remove { pod, .. }) if pod == "db-7"));
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
    world.memory = decision.memory;
    assert_eq!(decide(&world).action, Some(Action::Restore));
}

/// Rule 10
#[rstest]
#[case::abort(|world: &mut World| world.commands.abort = true)]
#[case::promote(|world: &mut World| world.commands.promote = true)]
#[case::promote_full(|world: &mut World| world.commands.promote_full = true)]
#[case::retry(|world: &mut World| world.commands.retry = true)]
fn a_command_without_a_rollout_is_refused_and_touches_nothing(#[case] command: fn(&mut World)) {
    let mut world = settled();
    command(&mut world);
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["CommandRefused"]);
    assert_eq!((decision.memory, decision.action), (world.memory.clone(), None));
}

/// Rule 10
#[test]
fn of_two_commands_at_once_the_abort_wins_and_the_other_is_answered() {
    let mut world = rolling(1);
    world.pods(["a", "a", "a", "a", "b"]);
    world.commands.abort = true;
    world.commands.promote = true;
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["RolloutAborted", "CommandRefused"]);
    assert!(matches!(decision.memory.activity, Activity::Returning(_)));
}

/// Rule 10: retry undoes an abort, so the two together must not.
#[test]
fn an_abort_beside_a_retry_is_an_abort() {
    let mut world = rolling(1);
    world.pods(["a", "a", "a", "a", "b"]);
    world.commands.abort = true;
    world.commands.retry = true;
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["RolloutAborted", "CommandRefused"]);
    assert!(matches!(decision.memory.activity, Activity::Returning(_)));
}

/// Rule 10
#[test]
fn a_promotion_where_no_pause_stands_is_refused() {
    let mut world = rolling(0);
    world.commands.promote = true;
    let decision = decide(&world);
    assert_eq!((step(&decision), notices(&decision)), (0, vec!["CommandRefused"]));
}

/// Rules 10 and 14
#[test]
fn a_full_promotion_waits_for_the_end_of_a_pause_by_hand() {
    let mut world = rolling(1);
    world.attempt().held = true;
    world.paused = true;
    world.commands.promote_full = true;
    let decision = decide(&world);
    assert_eq!((step(&decision), notices(&decision)), (1, vec!["CommandRefused"]));
}

/// Rule 10
#[test]
fn a_command_for_one_version_does_not_hit_the_next() {
    let mut world = rolling(1);
    world.commands.abort = true;
    world.template("c");
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["CommandRefused", "RolloutStarted"]);
    assert_eq!(decision.memory.rejected, None);
}

/// Rule 11
#[test]
fn no_progress_for_too_long_fails_and_a_longer_deadline_takes_it_back() {
    let mut world = rolling(0);
    world.view().released = 1;
    world.now = NOW + SignedDuration::from_mins(9);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Progressing, Reason::Stepping));
    assert_eq!(decision.look_again, Some(NOW + SignedDuration::from_mins(10)));
    world.now = NOW + SignedDuration::from_mins(10);
    assert_eq!(phase(&decide(&world)), (Phase::Failed, Reason::DeadlineExceeded));
    world.plan.as_mut().unwrap().deadline = SignedDuration::from_mins(20);
    assert_eq!(phase(&decide(&world)), (Phase::Progressing, Reason::Stepping));
}

/// Rule 11: a step that nobody carried out has not used its time.
#[test]
fn the_operators_absence_does_not_count_against_the_deadline() {
    let mut world = rolling(0);
    world.plan.as_mut().unwrap().on_failure = OnFailure::Abort;
    world.now = NOW + SignedDuration::from_mins(10);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Progressing, Reason::Stepping));
    world.memory = decision.memory;
    assert!(matches!(decide(&world).action, Some(Action::Release(_))));

    world.now += SignedDuration::from_mins(10);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::Rejected), "once only");
}

/// Rule 11
#[test]
fn a_pause_does_not_count_against_the_deadline() {
    let mut world = rolling(1);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.attempt().reached = 1;
    world.now = NOW + SignedDuration::from_hours(24);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Paused, Reason::StepPaused));
    world.commands.promote = true;
    let decision = decide(&world);
    assert_eq!(
        (step(&decision), phase(&decision)),
        (2, (Phase::Progressing, Reason::Stepping))
    );
}

/// Rule 11
#[rstest]
#[case::in_a_pause(rolling(1), Reason::StepPaused)]
#[case::by_hand({ let mut world = rolling(0); world.attempt().held = true; world.paused = true; world }, Reason::ManuallyPaused)]
fn a_pause_does_not_fail_while_its_pods_are_not_well(#[case] mut world: World, #[case] reason: Reason) {
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.unready(4);
    world.now = NOW + SignedDuration::from_hours(24);
    assert_eq!(phase(&decide(&world)), (Phase::Paused, reason));
}

/// Rule 11
#[test]
fn the_time_of_a_pause_by_hand_is_taken_off_the_deadline() {
    let mut world = rolling(0);
    world.attempt().held = true;
    world.now = NOW + SignedDuration::from_hours(24);
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["RolloutResumed"]);
    assert_eq!(phase(&decision), (Phase::Progressing, Reason::Stepping));
}

/// Rule 14
#[test]
fn a_timed_pause_lasts_its_time() {
    let mut world = rolling(1);
    let minute = SignedDuration::from_mins(1);
    world.plan = Ok(plan(vec![weight(20), Step::Pause(Some(minute)), weight(60)]));
    world.attempt().steps = world.plan.as_ref().unwrap().fingerprint();
    world.attempt().reached = 1;
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.now = NOW + SignedDuration::from_secs(59);
    let decision = decide(&world);
    assert_eq!((step(&decision), decision.look_again), (1, Some(NOW + minute)));
    world.now = NOW + minute;
    assert_eq!(step(&decide(&world)), 2);
}

/// Rule 12: what was broken before is no fault of the new version.
#[test]
fn a_broken_old_pod_does_not_fail_the_new_version() {
    let mut world = rolling(0);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.crash(1);
    assert_eq!(phase(&decide(&world)), (Phase::Progressing, Reason::Stepping));
}

/// Rule 12
#[rstest]
#[case(OnFailure::Hold, Phase::Failed, false)]
#[case(OnFailure::Abort, Phase::Failed, true)]
fn a_broken_new_pod_ends_the_step_at_once(
    #[case] policy: OnFailure,
    #[case] expected: Phase,
    #[case] returns: bool,
) {
    let mut world = rolling(0);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.crash(4);
    world.plan.as_mut().unwrap().on_failure = policy;
    let decision = decide(&world);
    assert_eq!(phase(&decision).0, expected);
    assert!(
        message(&decision).contains("CrashLoopBackOff"),
        "{}",
        message(&decision)
    );
    assert_eq!(
        matches!(decision.memory.activity, Activity::Returning(_)),
        returns
    );
}

/// Rule 12: the record says more than is released, and nobody will release it.
#[test]
fn a_broken_new_pod_keeps_the_next_share_from_being_released() {
    let mut world = rolling(2);
    world.pods(["a", "a", "a", "a", "b"]);
    world.attempt().reached = 1;
    world.view().released = 1;
    assert!(matches!(decide(&world).action, Some(Action::Release(_))));
    world.crash(4);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::PodBroken));
    assert_eq!(decision.action, None);
    world.view().released = 4;
    assert!(
        matches!(decide(&world).action, Some(Action::Release(_))),
        "less is always allowed"
    );
}

/// Rule 14
#[test]
fn a_manual_pause_stops_exposure_in_the_middle_of_a_step() {
    let mut world = rolling(2);
    world.view().released = 3;
    world.pods(["a", "a", "a", "b", "b"]);
    world.attempt().reached = 2;
    world.paused = true;
    world.memory = decide(&world).memory;
    let decision = decide(&world);
    assert_eq!(decision.action, Some(Action::Release(Share::Pods(2))));
    assert_eq!(phase(&decision), (Phase::Paused, Reason::ManuallyPaused));
    world.commands.abort = true;
    assert!(
        matches!(decide(&world).memory.activity, Activity::Returning(_)),
        "abort works while paused"
    );
}

/// Rule 14: what is new already stays released, so it must be known.
#[test]
fn a_manual_pause_waits_until_both_watches_tell_of_the_same_pods() {
    let mut world = rolling(2);
    world.view().released = 3;
    world.pods(["a", "a", "a", "b", "b"]);
    world.attempt().reached = 2;
    world.attempt().held = true;
    world.paused = true;
    world.view().pods.truncate(4);
    assert_eq!(decide(&world).action, None);
    world.pods(["a", "a", "a", "b", "b"]);
    assert_eq!(decide(&world).action, Some(Action::Release(Share::Pods(2))));
}

#[test]
fn edited_steps_begin_again_and_move_no_pod() {
    let mut world = rolling(2);
    world.view().released = 3;
    world.pods(["a", "a", "b", "b", "b"]);
    world.plan = Ok(plan(vec![weight(20), weight(40), Step::Pause(None), weight(80)]));
    for expected in [0, 1, 2] {
        let decision = decide(&world);
        assert_eq!((step(&decision), decision.action.clone()), (expected, None));
        world.memory = decision.memory;
    }
    assert_eq!(
        phase(&decide(&world)),
        (Phase::Paused, Reason::StepPaused),
        "no gate is skipped"
    );
}

#[test]
fn all_steps_done_every_pod_follows_and_then_it_is_stable() {
    let mut world = rolling(3);
    assert_eq!(decide(&world).action, Some(Action::Release(Share::ALL)));
    world.view().released = 5;
    world.pods(["b"; 5]);
    world.attempt().reached = 5;
    assert!(silent(&world), "Kubernetes has not turned over yet");
    world.current("b");
    let decision = decide(&world);
    assert_eq!(
        decision.action,
        Some(Action::Release(Share::NONE)),
        "rule 1: the guard is up before anybody hears that it is done"
    );
    assert_eq!((decision.report, &decision.memory), (None, &world.memory));
    world.view().released = 0;
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Successful, Reason::Stable));
    assert_eq!(decision.memory.activity, Activity::Idle);
    assert_eq!(decision.memory.stable.as_ref().unwrap().revision, revision("b"));
}

/// Rule 1: also where a pod is lost just then, the guard stays.
#[test]
fn a_guard_that_is_up_at_the_end_stays_up() {
    let mut world = rolling(3);
    world.pods(["b", "b", "", "b", "b"]);
    world.view().current = revision("b");
    let decision = decide(&world);
    assert_eq!(decision.action, None);
    assert_eq!(step(&decision), 3);
}

/// Rule 4: who changes the template while nobody looks goes on from what was rolled out.
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
    let told: Vec<_> = decision.notices.iter().map(|notice| notice.reason).collect();
    assert_eq!(told, ["RolloutCompleted", "RolloutStarted"]);

    world.attempt().step = StepIndex(2);
    let stable = decide(&world).memory.stable.unwrap();
    assert_eq!(stable.revision, revision("a"), "its steps were not done");
}

/// Rule 20
#[test]
fn a_deleted_object_lets_go_and_puts_the_users_setting_back() {
    let mut world = settled();
    world.deleting = true;
    assert_eq!(decide(&world).action, Some(Action::LetGo(Some("0".into()))));
    let mut world = rolling(1);
    world.deleting = true;
    let decision = decide(&world);
    assert_eq!(decision.action, Some(Action::LetGo(None)));
    assert_eq!(notices(&decision), ["RolloutFrozen"]);
}

#[test]
fn what_is_wrong_with_a_spec_is_told_and_nothing_is_written() {
    let mut world = settled();
    world.template("b");
    world.view().released = 3;
    world.plan = Err(vec!["spec.x: is empty".into(), "spec.y: is empty".into()]);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::InvalidSpec));
    assert_eq!(message(&decision), "spec.x: is empty; spec.y: is empty");
    assert_eq!((decision.action, decision.memory), (None, world.memory));
}

#[test]
fn a_workload_that_is_not_there_is_waited_for() {
    let mut world = settled();
    world.workload = Err(NoWorkload::Missing("StatefulSet db".into()));
    let decision = decide(&world);
    assert_eq!(message(&decision), "waiting for StatefulSet db to exist");
    assert_eq!(decision.memory, world.memory);
}

#[test]
fn another_workload_of_the_same_name_is_a_new_one() {
    let mut world = rolling(1);
    world.view().uid = "another".into();
    world.current("b");
    world.pods(["b"; 5]);
    let decision = decide(&world);
    assert_eq!(decision.memory.stable.as_ref().unwrap().revision, revision("b"));
    assert_eq!(decision.memory.activity, Activity::Idle);
}

#[test]
fn a_broken_stable_version_does_not_hold_up_its_cure() {
    let mut world = settled();
    world.crash(4);
    world.template("b");
    world.memory = decide(&world).memory;
    world.view().released = 1;
    assert!(
        matches!(decide(&world).action, Some(Action::Remove { pod, serving: false, .. }) if pod == "db-4"),
        "an ordered set replaces nothing while a pod is broken"
    );
    world.pods(["a", "a", "a", "a", "b"]);
    world.crash(1);
    assert_eq!(step(&decide(&world)), 0, "one that broke only later counts");
    world.attempt().excused = vec![1];
    assert_eq!(step(&decide(&world)), 1);
}

#[test]
fn a_promoted_rollout_skips_to_its_end() {
    let mut world = rolling(1);
    world.commands.promote_full = true;
    let decision = decide(&world);
    assert_eq!(step(&decision), 3);
    assert_eq!(StepIndex(step(&decision)), world.plan.as_ref().unwrap().end());
}

/// Rule 1: nobody is surprised by an operator that comes back.
#[test]
fn what_others_rolled_out_to_every_pod_is_taken_on() {
    let mut world = settled();
    world.template("b");
    world.current("b");
    world.view().released = 5;
    world.pods(["b"; 5]);
    let decision = decide(&world);
    assert_eq!(notices(&decision), ["RolledByHand"]);
    assert_eq!(decision.memory.stable.as_ref().unwrap().revision, revision("b"));
    assert_eq!(decision.memory.activity, Activity::Idle);
    world.memory = decision.memory;
    assert_eq!(decide(&world).action, Some(Action::Release(Share::NONE)));
}

/// A spec that cannot be carried out touches nothing and remembers nothing.
#[rstest]
#[case::at_rest(settled())]
#[case::with_pods_astray({
    let mut world = settled();
    world.pods(["a", "a", "a", "a", "b"]);
    world
})]
#[case::never_seen_before({
    let mut world = settled();
    world.memory = Memory::default();
    world.view().claim = Claim::Free;
    world
})]
fn an_invalid_spec_does_nothing(#[case] mut world: World) {
    world.plan = Err(vec!["spec.plugin.name: foo is not known".into()]);
    let decision = decide(&world);
    assert_eq!((&decision.action, &decision.memory), (&None, &world.memory));
    assert_eq!(phase(&decision), (Phase::Failed, Reason::InvalidSpec));
}

/// Rule 20: a version that waits behind the guard is not released with it.
#[test]
fn a_deleted_object_keeps_a_version_that_waits_where_it_is() {
    let mut world = settled();
    world.template("b");
    world.deleting = true;
    let decision = decide(&world);
    assert_eq!(decision.action, Some(Action::LetGo(None)));
    assert_eq!(notices(&decision), ["RolloutFrozen"]);
}

/// Rule 11: what is waited for after a pause is named, and not for ever.
#[test]
fn a_pause_that_is_over_says_what_it_waits_for() {
    let mut world = rolling(1);
    let minute = SignedDuration::from_mins(1);
    world.plan = Ok(plan(vec![weight(20), Step::Pause(Some(minute)), weight(60)]));
    world.attempt().steps = world.plan.as_ref().unwrap().fingerprint();
    world.attempt().reached = 1;
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world.view().pods[0].ready_since = None;
    world.count();
    assert_eq!(phase(&decide(&world)).0, Phase::Paused);
    world.now = NOW + minute * 2;
    let decision = decide(&world);
    assert!(message(&decision).contains("the pause is over: waiting for pod db-0"));
    world.now = NOW + minute * 12;
    assert_eq!(phase(&decide(&world)).1, Reason::DeadlineExceeded);
}
