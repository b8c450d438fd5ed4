//! The behaviour of a pod or a claim.

use std::time::Duration;

/// The behaviour of a pod: how fast it starts, how it fails, how it stops.
///
/// Made by a constructor that names its course (`ready_after`, `crash_loop`, …) and refined by chained methods:
///
/// ```
/// # use std::time::Duration;
/// # use stateward_kubelet::Behaviour;
/// let slow = Behaviour::ready_after(Duration::from_secs(2)).pull(Duration::from_secs(30)).never_stops();
/// ```
///
/// The default starts within a tenth of a second and is Ready: at once, as with a real kubelet, or a moment later if it has a probe. A pod
/// that is not restarted (a Job's) exits 0. Behaviours that say when a pod is Ready apply to every pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    pub(crate) schedule: Duration,
    pub(crate) pull: Duration,
    pub(crate) start: Duration,
    pub(crate) jitter: f64,
    pub(crate) course: Course,
    pub(crate) stop: Stop,
}

/// What happens to a pod's containers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Course {
    /// Serves where the restart policy is Always, exits 0 where it is not.
    Auto,
    Serve(Readiness),
    /// Every run of the container ends like this.
    Exit {
        after: Duration,
        ready: bool,
        code: i32,
        reason: &'static str,
    },
    Evicted {
        after: Duration,
    },
    PullError,
    ConfigError,
    Unschedulable,
}

/// When a serving container is Ready.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Readiness {
    After(Duration),
    Never,
    Flapping { up: Duration, down: Duration },
}

/// What a pod does when it is deleted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stop {
    After(Duration),
    Never,
}

/// The default delay before pull, start, readiness and stop: short, but never zero.
pub(crate) const QUICK: Duration = Duration::from_millis(20);
/// The default time that a crashing container runs.
const CRASHES_AFTER: Duration = Duration::from_millis(200);

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            schedule: Duration::ZERO,
            pull: QUICK,
            start: QUICK,
            jitter: 0.1,
            course: Course::Auto,
            stop: Stop::After(QUICK),
        }
    }
}

impl Behaviour {
    fn of(course: Course) -> Self {
        Self {
            course,
            ..Self::default()
        }
    }

    /// Runs, and is Ready `delay` after the container started.
    pub fn ready_after(delay: Duration) -> Self {
        Self::of(Course::Serve(Readiness::After(delay)))
    }

    /// Runs and is never Ready.
    pub fn never_ready() -> Self {
        Self::of(Course::Serve(Readiness::Never))
    }

    /// Ready for `up`, not Ready for `down`, and again. Two zeros mean Ready.
    pub fn flapping(up: Duration, down: Duration) -> Self {
        Self::of(Course::Serve(Readiness::Flapping { up, down }))
    }

    /// Exits with code 1 again and again without ever being Ready: `CrashLoopBackOff`.
    pub fn crash_loop() -> Self {
        Self::of(Course::Exit {
            after: CRASHES_AFTER,
            ready: false,
            code: 1,
            reason: "Error",
        })
    }

    /// Killed for its memory again and again: `OOMKilled`, exit code 137, then `CrashLoopBackOff`.
    pub fn oom_killed() -> Self {
        Self::of(Course::Exit {
            after: CRASHES_AFTER,
            ready: false,
            code: 137,
            reason: "OOMKilled",
        })
    }

    /// Runs, unready, for `after` and exits with `code`. The pod's restart policy decides what follows: a restart with back-off, or the
    /// phase Succeeded or Failed.
    pub fn exits(code: i32, after: Duration) -> Self {
        let reason = if code == 0 { "Completed" } else { "Error" };
        Self::of(Course::Exit {
            after,
            ready: false,
            code,
            reason,
        })
    }

    /// Cannot pull its image: `ErrImagePull` and `ImagePullBackOff` in turn. Containers already running continue.
    pub fn image_pull_error() -> Self {
        Self::of(Course::PullError)
    }

    /// Its container cannot be created: `CreateContainerConfigError`. Containers already running continue.
    pub fn config_error() -> Self {
        Self::of(Course::ConfigError)
    }

    /// Evicted by the node `after` the container started: phase Failed, reason `Evicted`.
    pub fn evicted(after: Duration) -> Self {
        Self::of(Course::Evicted { after })
    }

    /// Fits on no node: stays Pending with PodScheduled=False. A pod that has its node keeps it.
    pub fn unschedulable() -> Self {
        Self::of(Course::Unschedulable)
    }

    /// Healthy, but takes `delay` to stop (or the grace period, if that is shorter).
    pub fn slow_termination(delay: Duration) -> Self {
        Self::default().stops_after(delay)
    }

    /// Healthy, but never stops: once deleted it stays Terminating.
    pub fn never_terminates() -> Self {
        Self::default().never_stops()
    }

    /// For a behaviour whose container exits: each run lasts `time`, and the pod is Ready all that time. Does not change other behaviours.
    pub fn ready_for(mut self, time: Duration) -> Self {
        if let Course::Exit { after, ready, .. } = &mut self.course {
            *after = time;
            *ready = true;
        }
        self
    }

    /// Time until the scheduler binds the pod.
    pub fn schedule(self, schedule: Duration) -> Self {
        Self { schedule, ..self }
    }

    /// Time to pull the images.
    pub fn pull(self, pull: Duration) -> Self {
        Self { pull, ..self }
    }

    /// Time from the pulled image to the running container.
    pub fn start(self, start: Duration) -> Self {
        Self { start, ..self }
    }

    /// The share by which the schedule, pull, start and stop times vary, 0 to 1.
    pub fn jitter(self, share: f64) -> Self {
        Self {
            jitter: share.clamp(0.0, 1.0),
            ..self
        }
    }

    /// Time to stop when deleted. If it is longer than the grace period, the container is killed at its end, with exit code 137.
    pub fn stops_after(self, delay: Duration) -> Self {
        Self {
            stop: Stop::After(delay),
            ..self
        }
    }

    /// Never stops when deleted.
    pub fn never_stops(self) -> Self {
        Self {
            stop: Stop::Never,
            ..self
        }
    }
}

/// What happens to a claim that waits for a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimBehaviour {
    /// Gets a simulated volume after this time.
    ProvisionAfter(Duration),
    /// Gets none from this kubelet; its pod stays unscheduled until another client creates one.
    NeverProvision,
}

impl Default for ClaimBehaviour {
    fn default() -> Self {
        Self::ProvisionAfter(Duration::ZERO)
    }
}
