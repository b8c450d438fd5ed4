//! Injects faults between the operator and the API server.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use stateward_cluster::faults::{Call, Delivery, Fate, Plan, Stream};
use tokio::sync::Notify;

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The operator crashes before the request is sent.
    DiesBefore,
    /// The operator crashes after the server has executed the request.
    DiesAfter,
    /// The server executes the request, the response is 504.
    AppliedTimeout,
    /// The server executes the request, the connection breaks.
    AppliedBroken,
    /// The server rejects the request with 409.
    Conflict,
    /// The server rejects the request with 503.
    Unavailable,
    /// The watch begins with 410; other requests fail with 500.
    Expired,
    /// Every open watch breaks at its next event.
    Cut,
    /// From this request on every watch lags.
    Lag,
    /// From this request on watches of pods are immediate and those of sets lag.
    LateSets,
    /// From this request on watches of sets are immediate and those of pods lag.
    LatePods,
    /// From this request on watches of sets and pods are immediate and those of our own objects lag.
    LateObjects,
}

/// Every fault.
pub(crate) const FAULTS: [Fault; 12] = [
    Fault::DiesBefore,
    Fault::DiesAfter,
    Fault::AppliedTimeout,
    Fault::AppliedBroken,
    Fault::Conflict,
    Fault::Unavailable,
    Fault::Expired,
    Fault::Cut,
    Fault::Lag,
    Fault::LateSets,
    Fault::LatePods,
    Fault::LateObjects,
];

/// The kind of a request of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    Write,
    Event,
    Read,
    Watch,
}

impl CallKind {
    fn of(call: &Call) -> Self {
        match call {
            _ if call.watch => Self::Watch,
            _ if call.is_write() && call.path.ends_with("/events") => Self::Event,
            _ if call.is_write() => Self::Write,
            _ => Self::Read,
        }
    }

    /// The faults that make a difference for such a request. A read has no effect, so it simply fails. The operator treats 500 like 503 and
    /// a broken connection like 504.
    pub(crate) fn faults(self) -> &'static [Fault] {
        match self {
            Self::Write => &[
                Fault::DiesBefore,
                Fault::DiesAfter,
                Fault::AppliedTimeout,
                Fault::Conflict,
                Fault::Unavailable,
            ],
            Self::Event => &[Fault::DiesAfter, Fault::Unavailable],
            Self::Read => &[Fault::DiesBefore, Fault::Unavailable],
            Self::Watch => &[Fault::DiesBefore, Fault::Unavailable, Fault::Expired],
        }
    }
}

/// Faults that last, or that affect no single request: they begin at one write or at the next.
pub(crate) const WATCHES: [Fault; 5] = [
    Fault::Cut,
    Fault::Lag,
    Fault::LateSets,
    Fault::LatePods,
    Fault::LateObjects,
];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The delay of a lagging watch: less than the start of a pod, or the scenarios' expectations of single pods could no longer be observed.
const LAG: Duration = Duration::from_millis(15);

/// More calls than any scenario needs. An operator that makes more is in a loop and gets no further answer: otherwise the virtual clock
/// would never advance.
const FAR_TOO_MANY: usize = 5_000;

/// Enough of the last calls to show the loop.
const SOME_CALLS: usize = 12;

/// A fault and the number of the call that it affects.
pub(crate) type Mishap = (u64, Fault);

/// Faults at some of the operator's calls, counted across all its restarts.
#[derive(Debug, Default)]
pub(crate) struct Chaos {
    mishaps: Vec<Mishap>,
    calls: Mutex<Vec<CallKind>>,
    recent: Mutex<VecDeque<String>>,
    late: Mutex<Vec<Fault>>,
}

impl Chaos {
    /// Injects these mishaps.
    pub(crate) fn of(mishaps: &[Mishap]) -> Self {
        Self {
            mishaps: mishaps.to_vec(),
            ..Self::default()
        }
    }

    fn at(&self, call: u64) -> Option<Fault> {
        let here = self.mishaps.iter().find(|(at, _)| *at == call);
        here.map(|(_, fault)| *fault)
    }

    /// Records a call and returns its fault.
    fn next(&self, call: &Call) -> Option<Fault> {
        let mut calls = self.calls.lock();
        calls.push(CallKind::of(call));
        let mut recent = self.recent.lock();
        recent.push_back(format!("{} {}", call.method, call.path));
        if recent.len() > SOME_CALLS {
            recent.pop_front();
        }
        self.at(calls.len() as u64 - 1)
    }

    /// The most recent calls.
    pub(crate) fn recent(&self) -> Vec<String> {
        let recent = self.recent.lock();
        recent.iter().cloned().collect()
    }

    /// Whether the operator is in a loop.
    pub(crate) fn ran_away(&self) -> bool {
        let calls = self.calls.lock();
        calls.len() > FAR_TOO_MANY
    }

    /// The calls made so far.
    pub(crate) fn calls(&self) -> Vec<CallKind> {
        self.calls.lock().clone()
    }

    fn delays(&self, fault: Fault) {
        let mut late = self.late.lock();
        late.push(fault);
    }

    fn lag(&self, watch: &Call) -> Duration {
        let late = self.late.lock();
        let concerns = |fault: &Fault| match fault {
            Fault::Lag => true,
            Fault::LateSets => watch.path.ends_with("/statefulsets"),
            Fault::LatePods => watch.path.ends_with("/pods"),
            Fault::LateObjects => ["/rolloutplugins", "/phasedrollouts"]
                .iter()
                .any(|objects| watch.path.ends_with(objects)),
            _ => false,
        };
        if late.iter().any(concerns) {
            LAG
        } else {
            Duration::ZERO
        }
    }
}

/// One run of the operator, up to a crash.
pub(crate) struct Life {
    chaos: Arc<Chaos>,
    over: AtomicBool,
    ended: Notify,
    /// Watches opened before this call are cut.
    cut: AtomicU64,
    /// The call that opens a watch on a version that is too old.
    expired: AtomicU64,
}

impl Life {
    pub(crate) fn new(chaos: Arc<Chaos>) -> Self {
        Self {
            chaos,
            over: AtomicBool::new(false),
            ended: Notify::new(),
            cut: AtomicU64::new(0),
            expired: AtomicU64::new(u64::MAX),
        }
    }

    /// Waits until the operator must crash.
    pub(crate) async fn end(&self) {
        self.ended.notified().await;
    }

    fn die(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.ended.notify_one();
    }
}

impl Plan for Life {
    fn fate(&self, call: &Call) -> Fate {
        // A crashed operator makes no calls, whatever tasks still run.
        if self.over.load(Ordering::Relaxed) || self.chaos.ran_away() {
            return Fate::Lost;
        }
        let Some(fault) = self.chaos.next(call) else {
            return Fate::Pass;
        };
        match fault {
            Fault::DiesBefore => {
                self.die();
                Fate::Lost
            }
            Fault::DiesAfter => {
                self.die();
                Fate::AppliedThenLost
            }
            Fault::AppliedTimeout => Fate::AppliedThenRefused(504),
            Fault::AppliedBroken => Fate::AppliedThenLost,
            // No API server answers a creation of an event so: nothing else writes it.
            Fault::Conflict if CallKind::of(call) == CallKind::Event => Fate::Refused(503),
            Fault::Conflict => Fate::Refused(409),
            Fault::Unavailable => Fate::Refused(503),
            Fault::Expired if call.watch => {
                self.expired.store(call.number, Ordering::Relaxed);
                Fate::Pass
            }
            Fault::Expired => Fate::Refused(500),
            Fault::Cut => {
                self.cut.store(call.number, Ordering::Relaxed);
                Fate::Pass
            }
            Fault::Lag | Fault::LateSets | Fault::LatePods | Fault::LateObjects => {
                self.chaos.delays(fault);
                Fate::Pass
            }
        }
    }

    fn stream(&self, call: &Call) -> Stream {
        if self.expired.load(Ordering::Relaxed) == call.number {
            Stream::Expired
        } else {
            Stream::Watched
        }
    }

    fn delivery(&self, watch: &Call) -> Delivery {
        if watch.number < self.cut.load(Ordering::Relaxed) {
            Delivery::Cut
        } else {
            Delivery::Late(self.chaos.lag(watch))
        }
    }
}
