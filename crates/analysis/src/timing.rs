//! How long to wait, and how far to look back.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use url::Url;

use crate::AskError;
use crate::address::origin;

/// As long as any answer is waited for.
const LONGEST: i64 = 600;

/// Seconds to wait. Zero is the default: nobody waits for nothing.
pub(crate) fn seconds(field: &str, given: Option<i64>, otherwise: u64) -> Result<Duration, AskError> {
    match given {
        None | Some(0) => Ok(Duration::from_secs(otherwise)),
        Some(seconds) if (1..=LONGEST).contains(&seconds) => Ok(Duration::from_secs(seconds.unsigned_abs())),
        Some(seconds) => Err(AskError::bad_field(
            field,
            format!("{seconds} is not between 1 and {LONGEST}"),
        )),
    }
}

/// A duration such as `5m`, longer than nothing.
pub(crate) fn duration(
    field: &str,
    given: Option<&str>,
    otherwise: SignedDuration,
) -> Result<SignedDuration, AskError> {
    let Some(text) = given.filter(|text| !text.is_empty()) else {
        return Ok(otherwise);
    };
    let bad = |problem: &str| AskError::bad_field(field, format!("{text:?} {problem}"));
    let duration = stateward_api::duration::parse(&IntOrString::String(text.to_owned())).map_err(bad)?;
    if duration.is_zero() {
        return Err(bad("is no time at all; it must be longer, such as 5m"));
    }
    Ok(duration)
}

/// How long to wait, as a duration.
pub(crate) fn wait(field: &str, given: Option<&str>, otherwise: u64) -> Result<Duration, AskError> {
    let wait = duration(field, given, SignedDuration::from_secs(otherwise.cast_signed()))?;
    if wait > SignedDuration::from_secs(LONGEST) {
        return Err(AskError::bad_field(field, format!("is longer than {LONGEST}s")));
    }
    Ok(wait.unsigned_abs())
}

/// Does something that may take several requests, within the time that one may take.
pub(crate) async fn within<T>(
    url: &Url,
    limit: Duration,
    doing: impl Future<Output = Result<T, AskError>>,
) -> Result<T, AskError> {
    match tokio::time::timeout(limit, doing).await {
        Ok(done) => done,
        Err(_) => Err(AskError::Timeout {
            origin: origin(url),
            // Rounded up: nobody waits for 0 seconds.
            seconds: limit.as_secs() + u64::from(limit.subsec_nanos() > 0),
        }),
    }
}
