use rstest::rstest;

use super::*;
use crate::behaviour::Behaviour;
use crate::pod::fixtures::{job_pod, set_pod};

const START: Timestamp = Timestamp::UNIX_EPOCH;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A pod on its node with a programmed behaviour from time zero on.
struct Play {
    pod: Pod,
    part: Part,
    life: Life,
    now: Timestamp,
    /// One line per change: seconds, stage of the main container, `+` while Ready, restarts.
    trace: Vec<String>,
}

impl Play {
    fn of(pod: Pod, behaviour: Behaviour) -> Self {
        let life = Life::new(&pod, START);
        let part = Part {
            behaviour: behaviour.jitter(0.0),
            container: 0,
        };
        Self {
            pod,
            part,
            life,
            now: START,
            trace: Vec::new(),
        }
    }

    fn set(behaviour: Behaviour) -> Self {
        Self::of(set_pod("db", 0), behaviour)
    }

    fn job(restart: RestartPolicy, behaviour: Behaviour) -> Self {
        Self::of(
            Pod {
                restart,
                ..job_pod("migrate")
            },
            behaviour,
        )
    }

    fn run(mut self, until: f64) -> Self {
        let end = after(START, Duration::from_secs_f64(until));
        loop {
            let moment = Moment {
                pod: &self.pod,
                part: &self.part,
                seed: 0,
                now: self.now,
            };
            let next = self.life.advance(&moment);
            let line = self.line();
            let tail = |line: &str| line.split_once(' ').map(|(_, tail)| tail.to_owned());
            if self.trace.last().map(|last| tail(last)) != Some(tail(&line)) {
                self.trace.push(line);
            }
            match next {
                Some(time) if time <= end => {
                    assert!(time > self.now, "{:?} does not move on", self.life);
                    self.now = time;
                }
                _ => break,
            }
        }
        self.now = end;
        self
    }

    fn line(&self) -> String {
        let stage = match self.life.stage {
            Stage::Unscheduled { .. } => "unscheduled",
            Stage::Creating { .. } => "creating",
            Stage::PullFailed { .. } => "pull-failed",
            Stage::PullBackOff { .. } => "pull-back-off",
            Stage::ConfigError => "config-error",
            Stage::Running => "running",
            Stage::Exited { .. } => "exited",
            Stage::BackOff { .. } => "back-off",
            Stage::Ended(End::Succeeded) => "succeeded",
            Stage::Ended(End::Failed) => "failed",
            Stage::Ended(End::Evicted) => "evicted",
        };
        let ready = if self.life.ready.on { "+" } else { "" };
        let seconds = self.now.duration_since(START).as_secs_f64();
        format!(
            "{seconds:.2} {stage}{ready} {}",
            self.life.runs[self.life.main].restarts
        )
    }

    fn then(mut self, behaviour: Behaviour) -> Self {
        self.part.behaviour = behaviour.jitter(0.0);
        self
    }

    fn delete(mut self, grace: u64) -> Self {
        self.pod.deleting = Some(grace);
        self
    }

    #[track_caller]
    fn expect(&self, trace: &[&str]) {
        assert_eq!(self.trace, trace);
    }
}

#[test]
fn a_pod_without_rules_is_created_runs_and_is_ready() {
    Play::set(Behaviour::default()).run(60.0).expect(&[
        "0.00 creating 0",
        "0.04 running 0",
        "0.06 running+ 0",
    ]);
}

#[test]
fn pull_and_start_take_the_time_they_are_given() {
    let slow = Behaviour::ready_after(secs(2)).pull(secs(10)).start(secs(5));
    Play::set(slow)
        .run(60.0)
        .expect(&["0.00 creating 0", "15.00 running 0", "17.00 running+ 0"]);
}

#[test]
fn with_no_delays_at_all_a_pod_is_ready_at_once() {
    let at_once = Behaviour::ready_after(secs(0)).pull(secs(0)).start(secs(0));
    Play::set(at_once).run(60.0).expect(&["0.00 running+ 0"]);
}

#[test]
fn flapping_readiness_goes_up_and_down() {
    Play::set(Behaviour::flapping(secs(3), secs(2)).start(secs(0)).pull(secs(0)))
        .run(9.0)
        .expect(&[
            "0.00 running+ 0",
            "3.00 running 0",
            "5.00 running+ 0",
            "8.00 running 0",
        ]);
}

#[test]
fn a_crash_loop_restarts_once_at_once_and_then_backs_off_longer_each_time() {
    Play::set(Behaviour::crash_loop()).run(80.0).expect(&[
        "0.00 creating 0",
        "0.04 running 0",
        "0.24 exited 0",
        "1.24 running 1",
        "1.44 exited 1",
        "2.44 back-off 1",
        "11.44 running 2",
        "11.64 exited 2",
        "12.64 back-off 2",
        "31.64 running 3",
        "31.84 exited 3",
        "32.84 back-off 3",
        "71.84 running 4",
        "72.04 exited 4",
        "73.04 back-off 4",
    ]);
}

#[test]
fn a_crash_loop_can_be_ready_for_a_while_each_time() {
    Play::set(Behaviour::oom_killed().ready_for(secs(5)))
        .run(20.0)
        .expect(&[
            "0.00 creating 0",
            "0.04 running+ 0",
            "5.04 exited 0",
            "6.04 running+ 1",
            "11.04 exited 1",
            "12.04 back-off 1",
        ]);
}

#[test]
fn a_container_that_ran_long_starts_again_without_back_off() {
    Play::set(Behaviour::exits(0, secs(700))).run(2200.0).expect(&[
        "0.00 creating 0",
        "0.04 running 0",
        "700.04 exited 0",
        "701.04 running 1",
        "1401.04 exited 1",
        "1402.04 running 2",
        "2102.04 exited 2",
        "2103.04 running 3",
    ]);
}

#[test]
fn a_failing_pull_is_tried_again_and_again() {
    Play::set(Behaviour::image_pull_error()).run(35.0).expect(&[
        "0.00 creating 0",
        "0.02 pull-failed 0",
        "1.02 pull-back-off 0",
        "11.02 pull-failed 0",
        "12.02 pull-back-off 0",
        "32.02 pull-failed 0",
        "33.02 pull-back-off 0",
    ]);
}

#[rstest]
#[case::exits_0_never(RestartPolicy::Never, 0, "1.04 succeeded 0")]
#[case::exits_1_never(RestartPolicy::Never, 1, "1.04 failed 0")]
#[case::exits_0_on_failure(RestartPolicy::OnFailure, 0, "1.04 succeeded 0")]
#[case::exits_1_on_failure(RestartPolicy::OnFailure, 1, "1.04 exited 0")]
#[case::exits_0_always(RestartPolicy::Always, 0, "1.04 exited 0")]
fn the_restart_policy_says_what_follows_an_exit(
    #[case] restart: RestartPolicy,
    #[case] code: i32,
    #[case] last: &str,
) {
    let play = Play::job(restart, Behaviour::exits(code, secs(1))).run(2.0);
    play.expect(&["0.00 creating 0", "0.04 running 0", last]);
}

#[test]
fn a_jobs_pod_without_rules_succeeds() {
    Play::job(RestartPolicy::Never, Behaviour::default())
        .run(60.0)
        .expect(&["0.00 creating 0", "0.04 running+ 0", "0.06 succeeded 0"]);
}

#[test]
fn an_evicted_pod_fails() {
    Play::set(Behaviour::evicted(secs(3))).run(60.0).expect(&[
        "0.00 creating 0",
        "0.04 running+ 0",
        "3.04 evicted 0",
    ]);
}

#[rstest]
#[case::never_ready(Behaviour::never_ready(), "20.00 running+ 0")]
#[case::crash_loop(Behaviour::crash_loop(), "20.00 running 3")]
#[case::image(Behaviour::image_pull_error(), "20.00 running 0")]
#[case::config(Behaviour::config_error(), "20.00 running 0")]
fn a_new_rule_heals_a_sick_pod_at_once(#[case] sick: Behaviour, #[case] healed: &str) {
    let mut play = Play::set(sick).run(20.0);
    play.trace.clear();
    let play = play.then(Behaviour::default()).run(60.0);
    assert_eq!(play.trace[0], healed);
    assert!(play.life.ready.on);
}

#[test]
fn a_job_in_back_off_is_healed_by_a_rule_that_lets_it_succeed() {
    let mut play = Play::job(RestartPolicy::OnFailure, Behaviour::exits(1, secs(1))).run(20.0);
    play.trace.clear();
    play.then(Behaviour::default())
        .run(30.0)
        .expect(&["20.00 running+ 3", "20.02 succeeded 3"]);
}

#[rstest]
#[case::never_ready(Behaviour::never_ready(), "20.00 running 0")]
#[case::crash_loop(Behaviour::crash_loop(), "20.00 exited 0")]
#[case::evicted(Behaviour::evicted(secs(0)), "20.00 evicted 0")]
fn a_new_rule_makes_a_well_pod_sick_at_once(#[case] sick: Behaviour, #[case] line: &str) {
    let mut play = Play::set(Behaviour::default()).run(20.0);
    play.trace.clear();
    assert_eq!(play.then(sick).run(20.5).trace, [line]);
}

#[rstest]
#[case::more_time(Behaviour::ready_after(secs(1000)))]
#[case::image(Behaviour::image_pull_error())]
#[case::config(Behaviour::config_error())]
#[case::unschedulable(Behaviour::unschedulable())]
fn a_ready_pod_stays_ready_under_rules_about_starting(#[case] later: Behaviour) {
    let mut play = Play::set(Behaviour::default()).run(20.0);
    play.trace.clear();
    play.then(later).run(60.0).expect(&["20.00 running+ 0"]);
}

#[rstest]
#[case::quick(Behaviour::default(), 30, "10.02 succeeded 0")]
#[case::slow(Behaviour::slow_termination(secs(20)), 30, "30.00 succeeded 0")]
#[case::slower_than_its_grace(Behaviour::slow_termination(secs(60)), 30, "40.00 failed 0")]
#[case::no_grace(Behaviour::slow_termination(secs(60)), 0, "10.00 failed 0")]
fn a_deleted_pod_stops_in_its_time_but_not_after_its_grace_period(
    #[case] behaviour: Behaviour,
    #[case] grace: u64,
    #[case] line: &str,
) {
    let play = Play::set(behaviour).run(10.0).delete(grace).run(100.0);
    assert_eq!(play.trace.last().map(String::as_str), Some(line));
}

#[test]
fn a_pod_that_never_stops_stays_until_a_rule_lets_it_go() {
    let play = Play::set(Behaviour::never_terminates())
        .run(10.0)
        .delete(30)
        .run(1000.0);
    assert_eq!(play.life.stage, Stage::Running);
    let play = play.then(Behaviour::default()).run(1001.0);
    assert_eq!(play.life.stage, Stage::Ended(End::Succeeded));
}

#[test]
fn a_pod_deleted_before_it_started_fails_at_once() {
    let play = Play::set(Behaviour::default().pull(secs(100)))
        .run(10.0)
        .delete(30)
        .run(11.0);
    play.expect(&["0.00 creating 0", "10.00 failed 0"]);
    let ended = play.life.runs[0].ended.as_ref().unwrap();
    assert_eq!(
        (ended.code, ended.reason.as_ref()),
        (137, "ContainerStatusUnknown")
    );
}

#[test]
fn a_pod_deleted_in_back_off_shows_how_it_ended() {
    let play = Play::set(Behaviour::crash_loop()).run(10.0).delete(30).run(11.0);
    assert_eq!(play.life.stage, Stage::Ended(End::Failed));
    assert_eq!(play.life.runs[0].ended.as_ref().map(|ended| ended.code), Some(1));
}

#[test]
fn only_the_container_a_rule_names_is_in_trouble() {
    let mut play = Play::set(Behaviour::crash_loop());
    play.part.container = 1;
    let play = play.run(10.0);

    assert_eq!((play.life.main, play.life.runs[1].restarts), (1, 1));
    assert_eq!(
        (play.life.runs[0].restarts, play.life.runs[0].ended.as_ref()),
        (0, None)
    );
    assert!(!play.life.ready.on);
}

#[test]
fn trouble_can_move_from_one_container_to_another() {
    let mut play = Play::set(Behaviour::crash_loop()).run(10.0);
    play.part.container = 1;
    let play = play.run(12.0);

    assert_eq!((play.life.main, play.life.runs[0].restarts), (1, 2));
    assert_eq!(play.life.runs[1].restarts, 1);
}

#[test]
fn a_condition_keeps_its_time_while_it_does_not_change() {
    let play = Play::set(Behaviour::default()).run(10.0);
    assert_eq!(play.life.ready.since, after(START, Duration::from_millis(60)));
    let play = play.run(100.0);
    assert_eq!(play.life.ready.since, after(START, Duration::from_millis(60)));
    let play = play.then(Behaviour::never_ready()).run(101.0);
    assert_eq!(
        play.life.ready,
        Flip {
            on: false,
            since: after(START, secs(100))
        }
    );
}

#[test]
fn delays_vary_with_the_pod_and_the_seed_but_not_with_the_order_of_events() {
    let pull_of = |ordinal, seed| {
        let (pod, part) = (set_pod("db", ordinal), Part::default());
        Moment {
            pod: &pod,
            part: &part,
            seed,
            now: START,
        }
        .vary("pull", 0, secs(10))
    };
    assert_eq!(pull_of(0, 1), pull_of(0, 1));
    assert_ne!(pull_of(0, 1), pull_of(1, 1));
    assert_ne!(pull_of(0, 1), pull_of(0, 2));
}

#[rstest]
#[case(1, 10)]
#[case(2, 20)]
#[case(5, 160)]
#[case(6, 300)]
#[case(60, 300)]
fn back_off_doubles_from_ten_seconds_to_five_minutes(#[case] tries: u32, #[case] seconds: u64) {
    assert_eq!(back_off(tries), secs(seconds));
}
