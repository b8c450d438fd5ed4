//! What goes wrong between the operator and the server.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stateward_cluster::faults::{Call, Delivery, Fate, Plan, Stream};
use tokio::sync::Notify;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The operator dies with the request unsent.
    DiesBefore,
    /// The operator dies with the request carried out.
    DiesAfter,
    /// The request is carried out, the answer says 504.
    AppliedTimeout,
    /// The request is carried out, the connection breaks.
    AppliedBroken,
    /// The request is refused with 409.
    Conflict,
    /// The request is refused with 503.
    Unavailable,
    /// The watch begins with 410; other requests fail with 500.
    Expired,
    /// Every watch that is open breaks at its next event.
    Cut,
    /// From this request on every watch is late.
    Lag,
    /// From this request on pods are told at once and sets late.
    LateSets,
    /// From this request on sets are told at once and pods late.
    LatePods,
    /// From this request on sets and pods are told at once and our own objects late.
    LateObjects,
}

/// All of them.
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

/// What the operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asks {
    Write,
    Event,
    Read,
    Watch,
}

impl Asks {
    fn of(call: &Call) -> Self {
        match call {
            _ if call.watch => Self::Watch,
            _ if call.is_write() && call.path.ends_with("/events") => Self::Event,
            _ if call.is_write() => Self::Write,
            _ => Self::Read,
        }
    }

    /// The faults that make a difference at such a request. A read is not carried out or not: it fails. To us 500 is 503 and a
    /// broken connection is 504.
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

/// Those that last, or that no request meets itself: they begin with one write or with the next.
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

/// How late a lagging watch is: less than a pod takes, or what the scenarios say about single pods is no longer to be seen.
const LAG: Duration = Duration::from_millis(15);

/// More calls than any scenario can need. An operator that makes more goes round in circles, and gets no further answer: else
/// the clock would never move on.
const FAR_TOO_MANY: usize = 5_000;

/// Enough of the last calls to see what they go round about.
const SOME_CALLS: usize = 12;

/// A fault, and the operator's call that meets it.
pub(crate) type Mishap = (u64, Fault);

/// Faults at some of the operator's calls, counted over all its lives.
#[derive(Debug, Default)]
pub(crate) struct Chaos {
    mishaps: Vec<Mishap>,
    calls: Mutex<Vec<Asks>>,
    recent: Mutex<VecDeque<String>>,
    late: Mutex<Vec<Fault>>,
}

impl Chaos {
    /// With these mishaps.
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

    /// Takes a call down and says what becomes of it.
    fn next(&self, call: &Call) -> Option<Fault> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(Asks::of(call));
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_back(format!("{} {}", call.method, call.path));
        if recent.len() > SOME_CALLS {
            recent.pop_front();
        }
        self.at(calls.len() as u64 - 1)
    }

    /// The calls made last.
    pub(crate) fn recent(&self) -> Vec<String> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.iter().cloned().collect()
    }

    /// Whether the operator has gone round in circles.
    pub(crate) fn ran_away(&self) -> bool {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.len() > FAR_TOO_MANY
    }

    /// The calls made so far.
    pub(crate) fn calls(&self) -> Vec<Asks> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn delays(&self, fault: Fault) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        late.push(fault);
    }

    fn lag(&self, watch: &Call) -> Duration {
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
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

/// One life of the operator.
pub(crate) struct Life {
    chaos: Arc<Chaos>,
    over: AtomicBool,
    ended: Notify,
    /// Watches that were opened by earlier calls than this one are cut.
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

    /// Waits until the operator is to die.
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
        // The dead make no calls, whatever still runs.
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
            // No API server answers so where an event is created: nothing else writes it.
            Fault::Conflict if Asks::of(call) == Asks::Event => Fate::Refused(503),
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
