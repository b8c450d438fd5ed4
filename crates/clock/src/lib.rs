//! The only source of time.
//!
//! Everything that waits or records a time takes a [`Clock`]. A wall clock is the machine's own; a scaled clock runs a demo faster
//! than real time; under tokio's paused time the same scaled clock is virtual, and a day passes in milliseconds. There is no trait:
//! tokio's timer already covers all three.

mod human;

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

pub use human::human_duration;

/// Reads the time and waits for it. Cheap to clone; clones share one time line.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    Wall,
    Scaled {
        epoch: Timestamp,
        origin: Instant,
        speed: f64,
    },
    /// The last time reported by the other machine, and when it was reported.
    Remote(Arc<Mutex<Option<(Timestamp, Instant)>>>),
}

impl Clock {
    /// The machine's own clock.
    pub fn wall() -> Self {
        Self(Source::Wall)
    }

    /// A clock that reads `epoch` now and runs `speed` times as fast as tokio's timer, which is virtual when the runtime's time is
    /// paused. A speed that is not a positive number counts as 1.
    pub fn starting_at(epoch: Timestamp, speed: f64) -> Self {
        let speed = if speed.is_finite() && speed > 0.0 {
            speed
        } else {
            1.0
        };
        Self(Source::Scaled {
            epoch,
            origin: Instant::now(),
            speed,
        })
    }

    /// The clock of another machine, such as a server that dates its responses. It reads the local time until [`Clock::heard`] sets it.
    pub fn remote() -> Self {
        Self(Source::Remote(Arc::default()))
    }

    /// Sets a remote clock to the time that the other machine reports, and does nothing to any other clock. It never goes back: a
    /// time in whole seconds lags by a fraction of a second.
    pub fn heard(&self, now: Timestamp) {
        let Source::Remote(last) = &self.0 else {
            return;
        };
        let mut last = last.lock();
        if read(&last).is_none_or(|before| before < now) {
            *last = Some((now, Instant::now()));
        }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::Wall => wall(),
            Source::Remote(last) => {
                let last = last.lock();
                read(&last).unwrap_or_else(wall)
            }
            Source::Scaled { epoch, origin, speed } => {
                let elapsed = SignedDuration::try_from(times(origin.elapsed(), *speed));
                // A clock that ran past the year 9999 stops.
                elapsed
                    .ok()
                    .and_then(|elapsed| epoch.checked_add(elapsed).ok())
                    .unwrap_or(Timestamp::MAX)
            }
        }
    }

    /// How long the timer takes for `duration` of this clock's time, for callers that wait by other means.
    pub fn on_the_timer(&self, duration: Duration) -> Duration {
        match &self.0 {
            Source::Wall | Source::Remote(_) => duration,
            Source::Scaled { speed, .. } if *speed == 1.0 => duration,
            Source::Scaled { speed, .. } => duration.div_f64(*speed),
        }
    }

    /// Waits for `duration` of this clock's time.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(self.on_the_timer(duration)).await;
    }

    /// Waits until this clock reads `deadline`; returns at once if it already does.
    pub async fn sleep_until(&self, deadline: Timestamp) {
        if let Ok(left) = Duration::try_from(deadline.duration_since(self.now())) {
            self.sleep(left).await;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the machine's clock"
)]
fn wall() -> Timestamp {
    Timestamp::now()
}

/// The time of a remote clock, once it was set.
fn read(last: &Option<(Timestamp, Instant)>) -> Option<Timestamp> {
    let (said, at) = last.as_ref()?;
    let since = SignedDuration::try_from(at.elapsed()).ok()?;
    said.checked_add(since).ok()
}

/// Virtual time usually runs at speed 1, and is read often.
fn times(duration: Duration, speed: f64) -> Duration {
    if speed == 1.0 {
        duration
    } else {
        duration.mul_f64(speed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_scaled_clock_reaches_its_deadline_in_a_share_of_the_timers_time() {
        let epoch: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(epoch, 60.0);
        let origin = Instant::now();

        clock.sleep_until(epoch + SignedDuration::from_mins(60)).await;

        assert_eq!(clock.now(), epoch + SignedDuration::from_mins(60));
        assert_eq!(origin.elapsed(), Duration::from_secs(60));
    }

    #[tokio::test(start_paused = true)]
    async fn a_remote_clock_goes_on_from_what_was_heard_last_and_never_back() {
        let said: Timestamp = "9000-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::remote();
        assert!(clock.now() < said, "it is the machine's own before");
        let shared = clock.clone();
        clock.heard(said);
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let after = said + SignedDuration::from_millis(1500);
        assert_eq!(shared.now(), after);
        clock.heard(said + SignedDuration::from_secs(1));
        assert_eq!(clock.now(), after, "it was late by a part of a second");
        clock.heard(said + SignedDuration::from_mins(1));
        assert_eq!(clock.now(), said + SignedDuration::from_mins(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_in_the_past_does_not_wait() {
        let epoch: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let clock = Clock::starting_at(epoch, 1.0);

        clock.sleep_until(epoch - SignedDuration::from_secs(1)).await;

        assert_eq!(clock.now(), epoch);
    }

    #[tokio::test(start_paused = true)]
    async fn a_speed_that_is_no_positive_number_runs_at_one() {
        let epoch: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for speed in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let clock = Clock::starting_at(epoch, speed);
            clock.sleep(Duration::from_secs(5)).await;
            assert_eq!(clock.now(), epoch + SignedDuration::from_secs(5), "speed {speed}");
        }
    }
}
