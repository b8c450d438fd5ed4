//! The life of one pod on its node, as a state machine without IO.
//!
//! ```text
//! Unscheduled -> Creating -> Running <-> Exited -> BackOff -> Running …
//!                   |  ^         \          \
//!                   v  |          \          +-> Ended (no restart)
//!     PullFailed <-> PullBackOff   +-> Ended (evicted)
//!     ConfigError                  any stage, once deleted -> Ended
//! ```
//!
//! [`Life::advance`] moves as far as the time and the programmed behaviour allow and says when to look again. It is
//! level triggered: it reads the behaviour afresh each time, so a changed rule takes effect from any stage.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;

use crate::behaviour::{Course, QUICK, Readiness, Stop};
use crate::chance;
use crate::pod::{Pod, RestartPolicy};
use crate::rules::Part;

/// How long a container is seen as terminated before the kubelet restarts it or backs off.
const NOTICE: Duration = Duration::from_secs(1);
/// How long a pull is tried before it counts as backing off.
const PULL_ATTEMPT: Duration = Duration::from_secs(1);
/// A container that ran this long starts again with no back-off, as in the kubelet.
const FORGIVEN_AFTER: Duration = Duration::from_secs(600);

/// The inputs of a decision at one moment.
pub(crate) struct Moment<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) part: &'a Part,
    pub(crate) seed: u64,
    pub(crate) now: Timestamp,
}

impl Moment<'_> {
    /// One of the pod's delays, varied at random; `count` distinguishes repetitions.
    pub(crate) fn vary(&self, what: &str, count: u32, time: Duration) -> Duration {
        let key = &self.pod.key;
        let draw = chance::hash(self.seed, [&key.namespace, &key.name, what, &count.to_string()]);
        chance::vary(time, self.part.behaviour.jitter, draw)
    }
}

/// The state of a pod so far.
#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) struct Life {
    pub(crate) stage: Stage,
    /// When the kubelet accepted the pod.
    pub(crate) started: Option<Timestamp>,
    /// The container that the stage is about; all others are healthy.
    pub(crate) main: usize,
    pub(crate) runs: Vec<Run>,
    pub(crate) initialized: Flip,
    pub(crate) sandbox: Flip,
    pub(crate) containers_ready: Flip,
    /// As `containers_ready`, but its time also changes when another client contradicts it.
    pub(crate) ready: Flip,
    /// When the kubelet observed the deletion.
    pub(crate) stopping: Option<Timestamp>,
    /// Consecutive exits, for the back-off.
    pub(crate) strikes: u32,
}

#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) enum Stage {
    Unscheduled { since: Timestamp },
    Creating { since: Timestamp },
    PullFailed { at: Timestamp, tries: u32 },
    PullBackOff { since: Timestamp, tries: u32 },
    ConfigError,
    Running,
    Exited { at: Timestamp },
    BackOff { since: Timestamp },
    Ended(End),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum End {
    Succeeded,
    Failed,
    Evicted,
}

/// The state of one container.
#[derive(Clone, Debug, Default, PartialEq, Hash)]
pub(crate) struct Run {
    /// When it started; none while it waits for its first start.
    pub(crate) started: Option<Timestamp>,
    pub(crate) restarts: u32,
    /// How this run ended, if it has.
    pub(crate) ended: Option<Box<Ended>>,
    /// How the previous run ended.
    pub(crate) last: Option<Box<Ended>>,
}

#[derive(Clone, Debug, PartialEq, Hash)]
pub(crate) struct Ended {
    pub(crate) started: Option<Timestamp>,
    pub(crate) finished: Timestamp,
    pub(crate) code: i32,
    pub(crate) reason: Cow<'static, str>,
}

/// A condition and the time it last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Flip {
    pub(crate) on: bool,
    pub(crate) since: Timestamp,
}

impl Flip {
    pub(crate) fn off(since: Timestamp) -> Self {
        Self { on: false, since }
    }

    fn set(&mut self, on: bool, now: Timestamp) {
        if self.on != on {
            *self = Self { on, since: now };
        }
    }
}

/// The result of a step of the state machine.
enum Step {
    Moved,
    Until(Timestamp),
    Settled,
}

impl Life {
    pub(crate) fn new(pod: &Pod, now: Timestamp) -> Self {
        Self {
            stage: Stage::Unscheduled { since: now },
            started: None,
            main: 0,
            runs: vec![Run::default(); pod.containers.len()],
            initialized: Flip::off(now),
            sandbox: Flip::off(now),
            containers_ready: Flip::off(now),
            ready: Flip::off(now),
            stopping: None,
            strikes: 0,
        }
    }

    /// Advances as far as possible now, and returns when to visit the pod again.
    pub(crate) fn advance(&mut self, moment: &Moment) -> Option<Timestamp> {
        loop {
            match self.step(moment) {
                Step::Moved => {}
                Step::Until(time) => return Some(time),
                Step::Settled => return None,
            }
        }
    }

    fn step(&mut self, moment: &Moment) -> Step {
        let &Moment { pod, part, now, .. } = moment;
        let placed = pod.place.node().is_some();
        if placed && pod.deleting.is_some() && !matches!(self.stage, Stage::Ended(_)) {
            return self.stop(moment);
        }
        // A rule about another container does not apply to the failing one, which therefore recovers.
        let course = if part.container == self.main {
            part.behaviour.course
        } else {
            Course::Auto
        };
        match self.stage {
            Stage::Unscheduled { .. } if !placed => Step::Settled,
            Stage::Unscheduled { .. } => {
                self.started = Some(now);
                self.initialized.set(pod.inits.is_empty(), now);
                self.main = part.container;
                self.enter(Stage::Creating { since: now })
            }
            Stage::Creating { since } => {
                let behaviour = &part.behaviour;
                let pulled = after(since, moment.vary("pull", 0, behaviour.pull));
                let running = after(pulled, moment.vary("start", 0, behaviour.start));
                let (time, stage) = match course {
                    Course::PullError => (pulled, Some(Stage::PullFailed { at: now, tries: 1 })),
                    Course::ConfigError => (pulled, Some(Stage::ConfigError)),
                    _ => (running, None),
                };
                if now < time {
                    return Step::Until(time);
                }
                self.initialized.set(true, now);
                self.sandbox.set(true, now);
                self.start_all_but_main(now);
                match stage {
                    Some(stage) => self.enter(stage),
                    None => self.start_main(now),
                }
            }
            Stage::PullFailed { at, tries } => match course {
                Course::PullError if now < after(at, PULL_ATTEMPT) => Step::Until(after(at, PULL_ATTEMPT)),
                Course::PullError => self.enter(Stage::PullBackOff { since: now, tries }),
                _ => self.start_main(now),
            },
            Stage::PullBackOff { since, tries } => {
                let again = after(since, back_off(tries));
                match course {
                    Course::PullError if now < again => Step::Until(again),
                    Course::PullError => self.enter(Stage::PullFailed {
                        at: now,
                        tries: tries.saturating_add(1),
                    }),
                    _ => self.start_main(now),
                }
            }
            Stage::ConfigError => match course {
                Course::ConfigError => Step::Settled,
                _ => self.start_main(now),
            },
            Stage::Running => {
                if self.main != part.container {
                    self.main = part.container;
                    self.strikes = 0;
                }
                self.run(part.behaviour.course, pod, now)
            }
            Stage::Exited { at } => {
                if !self.exits_again(course, pod) {
                    return self.start_main(now);
                }
                let noticed = after(at, NOTICE);
                match self.strikes {
                    _ if now < noticed => Step::Until(noticed),
                    0 | 1 => self.start_main(now),
                    _ => {
                        let main = &mut self.runs[self.main];
                        main.last = main.ended.take();
                        self.enter(Stage::BackOff { since: at })
                    }
                }
            }
            Stage::BackOff { since } => {
                // The first restart is at once, the second after the first back-off.
                let again = after(since, back_off(self.strikes.saturating_sub(1)));
                let hopeless = self.exits_again(course, pod);
                if hopeless && now < again {
                    Step::Until(again)
                } else {
                    self.start_main(now)
                }
            }
            Stage::Ended(_) => Step::Settled,
        }
    }

    /// One moment of a running container.
    fn run(&mut self, course: Course, pod: &Pod, now: Timestamp) -> Step {
        let since = self.runs[self.main].started.unwrap_or(now);
        match resolve(course, pod) {
            Course::Exit {
                after: time,
                ready,
                code,
                reason,
            } => {
                let exit = after(since, time);
                if now < exit {
                    self.set_ready(ready, now);
                    return Step::Until(exit);
                }
                self.set_ready(false, now);
                self.strikes = if now < after(since, FORGIVEN_AFTER) {
                    self.strikes.saturating_add(1)
                } else {
                    1
                };
                let run = &mut self.runs[self.main];
                run.end(now, code, reason);
                if pod.restart.restarts(code) {
                    return self.enter(Stage::Exited { at: now });
                }
                self.end_all(now, 0, "Completed");
                self.enter(Stage::Ended(if code == 0 { End::Succeeded } else { End::Failed }))
            }
            Course::Evicted { after: time } if now >= after(since, time) => {
                self.end_all(now, 137, "Error");
                self.enter(Stage::Ended(End::Evicted))
            }
            Course::Evicted { after: time } => {
                self.set_ready(true, now);
                Step::Until(after(since, time))
            }
            Course::Serve(readiness) => {
                let (ready, change) = self.readiness(readiness, since, now);
                self.set_ready(ready, now);
                change.map_or(Step::Settled, Step::Until)
            }
            // These failures come before the start; a running container does not have them.
            Course::Auto | Course::PullError | Course::ConfigError | Course::Unschedulable => Step::Settled,
        }
    }

    fn readiness(&self, readiness: Readiness, since: Timestamp, now: Timestamp) -> (bool, Option<Timestamp>) {
        match readiness {
            Readiness::Never => (false, None),
            // Once ready it stays so, even if a later rule sets a longer delay.
            Readiness::After(delay) if self.ready.on || now >= after(since, delay) => (true, None),
            Readiness::After(delay) => (false, Some(after(since, delay))),
            Readiness::Flapping { up, down } => {
                let cycle = up.saturating_add(down).as_nanos();
                if cycle == 0 {
                    return (true, None);
                }
                let lived = Duration::try_from(now.duration_since(since)).unwrap_or_default();
                let place = lived.as_nanos() % cycle;
                let ready = place < up.as_nanos();
                let left = if ready { up.as_nanos() } else { cycle } - place;
                (
                    ready,
                    Some(after(
                        now,
                        Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX)),
                    )),
                )
            }
        }
    }

    /// Whether the main container would exit again in the same way. If not, the rule has changed and the container recovers.
    fn exits_again(&self, course: Course, pod: &Pod) -> bool {
        let main = &self.runs[self.main];
        let ended = main.ended.as_ref().or(main.last.as_ref()).map(|ended| ended.code);
        matches!(resolve(course, pod), Course::Exit { code, .. } if Some(code) == ended)
    }

    /// One moment of a pod that is being deleted.
    fn stop(&mut self, moment: &Moment) -> Step {
        let &Moment { pod, part, now, .. } = moment;
        let asked = *self.stopping.get_or_insert(now);
        let grace = Duration::from_secs(pod.deleting.unwrap_or_default());
        let alive = self
            .runs
            .iter()
            .any(|run| run.started.is_some() && run.ended.is_none());
        let (time, killed) = match part.behaviour.stop {
            Stop::Never => return Step::Settled,
            _ if !alive => (Duration::ZERO, false),
            Stop::After(time) => {
                let time = moment.vary("stop", 0, time);
                (time.min(grace), time > grace)
            }
        };
        if now < after(asked, time) {
            return Step::Until(after(asked, time));
        }
        if let Stage::BackOff { .. } = self.stage {
            let main = &mut self.runs[self.main];
            main.ended = main.last.take();
        }
        if killed {
            self.end_all(now, 137, "Error")
        } else {
            self.end_all(now, 0, "Completed")
        }
        let well = self
            .runs
            .iter()
            .all(|run| run.ended.as_ref().is_some_and(|ended| ended.code == 0));
        self.enter(Stage::Ended(if well { End::Succeeded } else { End::Failed }))
    }

    /// Ends a pod that another client has put into a terminal phase.
    pub(crate) fn end(&mut self, phase: &str, now: Timestamp) {
        if !matches!(self.stage, Stage::Ended(_)) {
            self.end_all(now, 137, "Error");
            self.enter(Stage::Ended(if phase == "Succeeded" {
                End::Succeeded
            } else {
                End::Failed
            }));
        }
    }

    fn set_ready(&mut self, ready: bool, now: Timestamp) {
        self.containers_ready.set(ready, now);
        self.ready.set(ready, now);
    }

    fn enter(&mut self, stage: Stage) -> Step {
        self.stage = stage;
        Step::Moved
    }

    fn start_all_but_main(&mut self, now: Timestamp) {
        for (index, run) in self.runs.iter_mut().enumerate() {
            if index != self.main {
                run.started = Some(now);
            }
        }
    }

    fn start_main(&mut self, now: Timestamp) -> Step {
        let main = &mut self.runs[self.main];
        if main.started.is_some() {
            main.restarts += 1;
        }
        if let Some(ended) = main.ended.take() {
            main.last = Some(ended);
        }
        main.started = Some(now);
        self.enter(Stage::Running)
    }

    /// Ends every container that has not ended by itself.
    fn end_all(&mut self, now: Timestamp, code: i32, reason: &'static str) {
        self.set_ready(false, now);
        self.sandbox.set(false, now);
        for run in self.runs.iter_mut().filter(|run| run.ended.is_none()) {
            match run.started {
                Some(_) => run.end(now, code, reason),
                // The kubelet's reason for a container that never ran.
                None => run.end(now, 137, "ContainerStatusUnknown"),
            }
        }
    }
}

impl Run {
    fn end(&mut self, now: Timestamp, code: i32, reason: &'static str) {
        let ended = Ended {
            started: self.started,
            finished: now,
            code,
            reason: reason.into(),
        };
        self.ended = Some(Box::new(ended));
    }
}

/// What a course means for a running container.
fn resolve(course: Course, pod: &Pod) -> Course {
    let sidecars = pod.inits.iter().filter(|init| init.sidecar);
    let is_probed = pod
        .containers
        .iter()
        .chain(sidecars)
        .any(|container| container.probed);
    match course {
        Course::Serve(_) | Course::Exit { .. } | Course::Evicted { .. } => course,
        Course::Auto if pod.restart != RestartPolicy::Always => Course::Exit {
            after: QUICK,
            ready: true,
            code: 0,
            reason: "Completed",
        },
        Course::Auto | Course::PullError | Course::ConfigError | Course::Unschedulable => {
            // A container without a probe is Ready as soon as it runs.
            Course::Serve(Readiness::After(if is_probed { QUICK } else { Duration::ZERO }))
        }
    }
}

/// The kubelet's back-off before the n-th try: ten seconds doubling to five minutes.
pub(crate) fn back_off(tries: u32) -> Duration {
    let doublings = tries.saturating_sub(1).min(5);
    Duration::from_secs(10 * (1 << doublings)).min(Duration::from_secs(300))
}

/// `time` plus `delay`, or the maximum timestamp on overflow.
pub(crate) fn after(time: Timestamp, delay: Duration) -> Timestamp {
    time.checked_add(delay).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
