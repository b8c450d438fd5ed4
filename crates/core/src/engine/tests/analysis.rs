//! Analysis in a step, and background analysis (rules 5, 13 and 17).

use jiff::SignedDuration;
use rstest::rstest;
use stateward_api::analysis::Phase as Verdict;

use super::{message, notices, phase, step};
use crate::engine::fixture::{NOW, plan, revision, rolling, settled, weight};
use crate::engine::{background_run_name, decide, step_run_name};
use crate::memory::{Activity, BackgroundRun};
use crate::plan::{Background, Check, Fingerprint, History, Share, Step, StepIndex};
use crate::record::next_status;
use crate::world::{Action, Phase, Reason, Run, RunFor, World};
use stateward_api::rollout::RolloutStatus;

fn check() -> Step {
    Step::Analysis(Check(Fingerprint::of("errors")))
}

/// At the second of the steps 20 %, analysis, 60 %, with the last pod updated and available.
fn analysing() -> World {
    let mut world = rolling(1);
    let steps = plan(vec![weight(20), check(), weight(60)]);
    world.attempt().steps = steps.fingerprint();
    world.attempt().paused_at_step = false;
    world.attempt().max_available = 1;
    world.plan = Ok(steps);
    world.view().released = 1;
    world.pods(["a", "a", "a", "a", "b"]);
    world
}

/// The same with a background analysis that has begun.
fn accompanied() -> World {
    let mut world = analysing();
    world.plan.as_mut().unwrap().background = Some(Background {
        from: StepIndex(0),
        check: Check(Fingerprint::of("beside")),
    });
    world.attempt().background = BackgroundRun::Since(NOW);
    world
}

fn run(name: String, phase: Verdict) -> Run {
    Run {
        title: format!("analysis {name}"),
        uid: format!("uid-{name}"),
        name,
        phase,
        message: "metric errors: 1 failed, 0 allowed".into(),
        measured: phase.is_over(),
        began: None,
        ending: false,
        ended: phase.is_over().then_some(NOW),
    }
}

fn of_step(world: &mut World, phase: Verdict) {
    let name = step_run_name("db", world.attempt());
    world.runs.push(run(name, phase));
}

fn background(world: &mut World, phase: Verdict) {
    let name = background_run_name("db", world.attempt()).unwrap();
    world.runs.push(run(name, phase));
}

/// Rule 17
#[test]
fn a_step_starts_its_run_once_under_a_name_of_its_own() {
    let mut world = analysing();
    let Some(Action::StartRun { name, run_for }) = decide(&world).action else {
        panic!("no run");
    };
    assert_eq!(run_for, RunFor::Step(StepIndex(1)));
    assert!(name.starts_with("db-b-1-"), "{name}");
    of_step(&mut world, Verdict::Pending);
    assert_eq!(decide(&world).action, None);
    let first = name;
    world.attempt().entered += SignedDuration::from_secs(1);
    let Some(Action::StartRun { name, .. }) = decide(&world).action else {
        panic!("no run");
    };
    assert_ne!(name, first, "another time at the step is another run");
}

#[rstest]
#[case::pods_not_ready(|world: &mut World| world.unready(4))]
#[case::paused_by_hand(|world: &mut World| { world.paused = true; world.attempt().paused_by_user = true })]
#[case::share_not_out(|world: &mut World| world.view().released = 0)]
fn a_run_does_not_start_before_its_pods_are_well(#[case] change: fn(&mut World)) {
    let mut world = analysing();
    change(&mut world);
    assert!(!matches!(decide(&world).action, Some(Action::StartRun { .. })));
}

#[rstest]
#[case(Verdict::Pending, 1, Phase::Progressing, Reason::Analysing)]
#[case(Verdict::Running, 1, Phase::Progressing, Reason::Analysing)]
#[case(Verdict::Successful, 2, Phase::Progressing, Reason::Stepping)]
#[case(Verdict::Inconclusive, 1, Phase::Paused, Reason::Inconclusive)]
fn a_step_goes_on_only_when_its_run_was_successful(
    #[case] verdict: Verdict,
    #[case] at: u32,
    #[case] expected: Phase,
    #[case] reason: Reason,
) {
    let mut world = analysing();
    of_step(&mut world, verdict);
    let decision = decide(&world);
    assert_eq!((step(&decision), phase(&decision)), (at, (expected, reason)));
}

/// Rule 5
#[rstest]
#[case::failed(Verdict::Failed, "failed")]
#[case::could_not_be_made(Verdict::Error, "could not be made")]
fn a_run_that_is_lost_turns_the_version_down(#[case] verdict: Verdict, #[case] word: &str) {
    for (world, add) in [
        (analysing(), of_step as fn(&mut World, Verdict)),
        (accompanied(), background),
    ] {
        let mut world = world;
        add(&mut world, verdict);
        world.unready(4);
        let decision = decide(&world);
        assert!(matches!(decision.memory.activity, Activity::RollingBack(_)));
        let rejected = decision.memory.rejected.clone().unwrap();
        assert!(rejected.reason.contains(word), "{}", rejected.reason);
        assert!(rejected.reason.contains("1 failed, 0 allowed"));
        assert_eq!(notices(&decision), ["RolloutAborted"]);
    }
}

/// Rule 13
#[test]
fn a_run_of_another_attempt_counts_for_nothing() {
    let mut world = analysing();
    of_step(&mut world, Verdict::Successful);
    world.attempt().entered += SignedDuration::from_secs(1);
    let decision = decide(&world);
    assert_eq!(step(&decision), 1);
    assert!(matches!(decision.action, Some(Action::StartRun { .. })));
}

#[test]
fn an_inconclusive_step_is_ended_by_a_person_and_by_nobody_else() {
    let mut world = analysing();
    of_step(&mut world, Verdict::Inconclusive);
    world.memory = decide(&world).memory;
    let decision = decide(&world);
    assert_eq!((step(&decision), decision.action.clone()), (1, None));
    assert!(
        message(&decision).contains(
            "promote db -n prod --revision db-b, or back with: kubectl stateward abort db -n prod --revision db-b"
        ),
        "{}",
        message(&decision)
    );
    world.commands.promote = true;
    assert_eq!(step(&decide(&world)), 2);
}

#[test]
fn the_analysis_beside_the_steps_begins_with_its_step_and_is_written_down_first() {
    let mut world = accompanied();
    world.attempt().background = BackgroundRun::NotYet;
    world.plan.as_mut().unwrap().background.as_mut().unwrap().from = StepIndex(2);
    of_step(&mut world, Verdict::Running);
    assert_eq!(decide(&world).memory, world.memory, "its step is not there yet");
    world.plan.as_mut().unwrap().background.as_mut().unwrap().from = StepIndex(1);
    let decision = decide(&world);
    assert_eq!(decision.action, None);
    world.memory = decision.memory;
    assert_eq!(world.attempt().background, BackgroundRun::Since(NOW));
    assert!(matches!(
        decide(&world).action,
        Some(Action::StartRun {
            run_for: RunFor::Background,
            ..
        })
    ));
}

#[test]
fn doubt_beside_the_steps_stops_them_until_somebody_goes_on() {
    let mut world = accompanied();
    background(&mut world, Verdict::Inconclusive);
    of_step(&mut world, Verdict::Successful);
    let decision = decide(&world);
    assert_eq!(step(&decision), 1);
    assert_eq!(phase(&decision), (Phase::Paused, Reason::Inconclusive));
    world.memory = decision.memory;
    assert_eq!(decide(&world).memory, world.memory, "it stays so");
    world.commands.promote = true;
    let decision = decide(&world);
    world.commands.promote = false;
    world.memory = decision.memory;
    assert_eq!(world.attempt().background, BackgroundRun::Waived);
    assert_eq!(
        step(&decide(&world)),
        2,
        "no run beside the steps is asked for again"
    );
}

/// Rule 13
#[test]
fn a_run_that_somebody_has_ended_opens_no_step() {
    let mut world = analysing();
    of_step(&mut world, Verdict::Successful);
    world.runs[0].ending = true;
    let decision = decide(&world);
    assert_eq!((step(&decision), phase(&decision).0), (1, Phase::Paused));
    assert!(
        message(&decision).contains("ended before its time"),
        "{}",
        message(&decision)
    );
}

#[test]
fn promote_full_leaves_doubt_behind() {
    let mut world = accompanied();
    background(&mut world, Verdict::Inconclusive);
    world.memory = decide(&world).memory;
    world.commands.promote_full = true;
    let decision = decide(&world);
    assert_eq!((step(&decision), phase(&decision).0), (3, Phase::Progressing));
}

#[test]
fn an_analysis_that_was_taken_out_of_the_spec_counts_for_nothing() {
    let mut world = accompanied();
    background(&mut world, Verdict::Failed);
    of_step(&mut world, Verdict::Running);
    world.plan.as_mut().unwrap().background = None;
    let decision = decide(&world);
    assert!(matches!(decision.memory.activity, Activity::Rolling(_)));
    world.memory = decision.memory;
    world.runs[0].phase = Verdict::Running;
    assert!(matches!(decide(&world).action, Some(Action::EndRun { .. })));
}

#[test]
fn the_deadline_does_not_count_while_it_is_measured() {
    let mut world = analysing();
    of_step(&mut world, Verdict::Running);
    world.now += SignedDuration::from_hours(3);
    world.unready(4);
    assert_eq!(phase(&decide(&world)), (Phase::Progressing, Reason::Analysing));
    world.runs[0].phase = Verdict::Successful;
    world.runs[0].ended = Some(world.now);
    assert_eq!(phase(&decide(&world)), (Phase::Progressing, Reason::Analysing));
    world.now += SignedDuration::from_mins(10);
    assert_eq!(phase(&decide(&world)), (Phase::Failed, Reason::DeadlineExceeded));
}

#[test]
fn runs_that_nobody_waits_for_are_ended() {
    let mut world = settled();
    world.runs = vec![
        run("old".into(), Verdict::Running),
        run("older".into(), Verdict::Failed),
    ];
    let end = Action::EndRun {
        name: "old".into(),
        uid: "uid-old".into(),
    };
    assert_eq!(decide(&world).action, Some(end));
    world.runs[0].ending = true;
    assert_eq!(decide(&world).action, None);
}

#[test]
fn only_so_many_runs_are_kept_and_the_oldest_go_first() {
    let mut world = settled();
    world.plan.as_mut().unwrap().history = History {
        successful: 1,
        unsuccessful: 2,
    };
    for (name, phase) in [
        ("1", Verdict::Successful),
        ("2", Verdict::Failed),
        ("3", Verdict::Inconclusive),
        ("4", Verdict::Successful),
        ("5", Verdict::Error),
    ] {
        world.runs.push(run(name.into(), phase));
    }
    let mut dropped = Vec::new();
    while let Some(Action::DropRun { name, .. }) = decide(&world).action {
        world.runs.retain(|run| run.name != name);
        dropped.push(name);
    }
    assert_eq!(dropped, ["1", "2"]);
}

#[test]
fn a_plan_that_cannot_be_read_ends_no_run_and_still_hears_of_failure() {
    let mut world = accompanied();
    background(&mut world, Verdict::Running);
    of_step(&mut world, Verdict::Running);
    world.plan = Err(vec!["the template is gone".into()]);
    let decision = decide(&world);
    assert_eq!(
        (decision.action.clone(), phase(&decision).1),
        (None, Reason::InvalidSpec)
    );
    world.runs[0].phase = Verdict::Failed;
    assert!(matches!(decide(&world).memory.activity, Activity::RollingBack(_)));
}

/// Every step is done, every pod is updated, and the guard is up again; with a background analysis.
fn arrived() -> World {
    let mut world = accompanied();
    world.attempt().step = StepIndex(3);
    world.attempt().max_available = 5;
    world.view().released = 0;
    world.view().current = revision("b");
    world.pods(["b"; 5]);
    world
}

/// Rule 13
#[test]
fn a_version_that_was_not_measured_beside_the_steps_is_not_taken_for_good() {
    let mut world = arrived();
    let decision = decide(&world);
    assert!(
        matches!(decision.action, Some(Action::StartRun { .. })),
        "{:?}",
        decision.action
    );
    background(&mut world, Verdict::Running);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Progressing, Reason::Analysing));
    assert!(
        message(&decision).contains("waiting for analysis"),
        "{}",
        message(&decision)
    );
    world.now += SignedDuration::from_hours(3);
    assert_eq!(phase(&decide(&world)), (Phase::Progressing, Reason::Analysing));
    world.runs[0].measured = true;
    assert_eq!(decide(&world).memory.activity, Activity::Idle);
}

/// Rule 13
#[rstest]
#[case::measured(true, "b")]
#[case::not_measured(false, "a")]
fn what_was_not_measured_is_not_what_the_next_one_goes_back_to(
    #[case] measured: bool,
    #[case] expected: &str,
) {
    let mut world = arrived();
    background(&mut world, Verdict::Running);
    world.runs[0].measured = measured;
    world.view().current_template = Some(Fingerprint::of("b"));
    world.template("c");
    let decision = decide(&world);
    assert_eq!(decision.memory.stable.unwrap().revision, revision(expected));
}

#[test]
fn an_analysis_that_fails_after_the_last_step_still_turns_the_version_down() {
    let mut world = arrived();
    background(&mut world, Verdict::Failed);
    let decision = decide(&world);
    assert!(matches!(decision.memory.activity, Activity::RollingBack(_)));
    world.memory = decision.memory;
    assert_eq!(decide(&world).action, Some(Action::Restore(Share::ALL)));
}

#[test]
fn a_spec_that_cannot_be_carried_out_does_not_hide_why_a_version_was_turned_down() {
    let mut world = settled();
    world.template("b");
    world.memory.rejected = Some(super::rejection());
    world.plan = Err(vec!["the template is gone".into()]);
    let decision = decide(&world);
    assert_eq!(phase(&decision), (Phase::Failed, Reason::InvalidSpec));
    assert_eq!(
        message(&decision),
        "the template is gone; no pod is released until it is fixed; db-b was rejected (aborted by a user)"
    );
    let mut world = crate::engine::fixture::returning(["a", "a", "a", "b", "b"]);
    world.memory.rejected = Some(super::rejection());
    world.plan = Err(vec!["the template is gone".into()]);
    let told = decide(&world);
    assert!(message(&told).contains("aborted by a user"), "{}", message(&told));
    assert!(
        message(&told).contains("the template is gone"),
        "{}",
        message(&told)
    );
}

#[test]
fn a_rollout_tells_of_a_run_once_it_has_begun() {
    let written = |old: &RolloutStatus, world: &World| next_status(old, None, world, &decide(world));
    let mut world = analysing();
    let before = written(&RolloutStatus::default(), &world).unwrap();
    of_step(&mut world, Verdict::Pending);
    assert_eq!(written(&before, &world), None);
    world.runs[0].phase = Verdict::Running;
    world.runs[0].message.clear();
    let told = written(&before, &world).unwrap();
    assert!(told.message.ends_with("is running"), "{}", told.message);
    let run = told.canary.clone().unwrap().current_step_analysis_run_status;
    assert_eq!(run.unwrap().status, "Running");
    assert_eq!(written(&told, &world), None);
}

#[test]
fn a_pause_for_want_of_a_verdict_begins_when_the_run_ends() {
    let mut world = accompanied();
    background(&mut world, Verdict::Inconclusive);
    of_step(&mut world, Verdict::Running);
    world.now += SignedDuration::from_mins(5);
    world.runs[0].ended = Some(world.now);
    let mut status = RolloutStatus::default();
    for _ in 0..2 {
        let decision = decide(&world);
        status = next_status(&status, None, &world, &decision).unwrap_or(status);
        world.memory = decision.memory;
    }
    assert_eq!(status.pause_conditions[0].start_time, world.now);
    assert_eq!(status.pause_conditions[0].reason, "InconclusiveAnalysisRun");
}
