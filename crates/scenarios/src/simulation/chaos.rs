//! What goes wrong between the operator and the server.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use stateward_cluster::faults::{Call, Fate, Plan, Stream};
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
    /// From this request on every watch is this late.
    Lag,
    /// The watch begins with 410; other requests fail with 500.
    Expired,
}

/// All of them.
pub(crate) const FAULTS: [Fault; 8] = [
    Fault::DiesBefore,
    Fault::DiesAfter,
    Fault::AppliedTimeout,
    Fault::AppliedBroken,
    Fault::Conflict,
    Fault::Unavailable,
    Fault::Lag,
    Fault::Expired,
];

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// How late a lagging watch is: less than a pod takes, or what the scenarios say about single pods is no longer to be seen.
const LAG: std::time::Duration = std::time::Duration::from_millis(15);

/// A fault, and the operator's call that meets it.
pub(crate) type Mishap = (u64, Fault);

/// Faults at some of the operator's calls, counted over all its lives.
#[derive(Debug, Default)]
pub(crate) struct Chaos {
    mishaps: Vec<Mishap>,
    calls: AtomicU64,
    lagging: AtomicBool,
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

    /// Calls made so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }
}

/// One life of the operator.
pub(crate) struct Life {
    chaos: Arc<Chaos>,
    over: AtomicBool,
    ended: Notify,
}

impl Life {
    pub(crate) fn new(chaos: Arc<Chaos>) -> Self {
        Self {
            chaos,
            over: AtomicBool::new(false),
            ended: Notify::new(),
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
        if self.over.load(Ordering::Relaxed) {
            return Fate::Lost;
        }
        let number = self.chaos.calls.fetch_add(1, Ordering::Relaxed);
        let Some(fault) = self.chaos.at(number) else {
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
            Fault::Conflict => Fate::Refused(409),
            Fault::Unavailable => Fate::Refused(503),
            Fault::Lag => {
                self.chaos.lagging.store(true, Ordering::Relaxed);
                Fate::Pass
            }
            Fault::Expired if call.watch => Fate::Pass,
            Fault::Expired => Fate::Refused(500),
        }
    }

    fn stream(&self, call: &Call) -> Stream {
        let number = self.chaos.calls().saturating_sub(1);
        let expired = self.chaos.at(number) == Some(Fault::Expired) && call.watch;
        let lag = if self.chaos.lagging.load(Ordering::Relaxed) {
            LAG
        } else {
            std::time::Duration::ZERO
        };
        Stream {
            lag,
            expired,
            ..Stream::default()
        }
    }
}
