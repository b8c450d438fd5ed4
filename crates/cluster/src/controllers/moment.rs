//! Timestamps in objects: RFC 3339 in UTC, whole seconds.

use std::time::Duration;

use crate::json::Value;
use jiff::Timestamp;

/// `2026-11-15T17:44:15Z`
pub(crate) fn shown(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The timestamp in a field, if there is one.
pub(crate) fn read(field: &Value) -> Option<Timestamp> {
    field.as_str()?.parse().ok()
}

/// A timestamp, truncated as in an object.
pub(crate) fn whole_second(moment: Timestamp) -> Timestamp {
    Timestamp::from_second(moment.as_second()).unwrap_or(moment)
}

/// How long from `now` until `moment`; zero if it has passed.
pub(crate) fn until(moment: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(moment.duration_since(now)).unwrap_or_default()
}

/// `moment` plus `by`; the maximum timestamp on overflow.
pub(crate) fn later(moment: Timestamp, by: Duration) -> Timestamp {
    moment.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// A number of seconds from a field; negative ones are zero.
pub(crate) fn seconds(number: i64) -> Duration {
    Duration::from_secs(u64::try_from(number).unwrap_or_default())
}
