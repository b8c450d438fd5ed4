//! Timeouts and time ranges of queries.

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use url::Url;

use crate::ProviderError;
use crate::address::origin;

/// The maximum timeout.
const LONGEST: i64 = 600;

/// A timeout in seconds. Zero is the default.
pub(crate) fn seconds(field: &str, given: Option<i64>, otherwise: u64) -> Result<Duration, ProviderError> {
    match given {
        None | Some(0) => Ok(Duration::from_secs(otherwise)),
        Some(seconds) if (1..=LONGEST).contains(&seconds) => Ok(Duration::from_secs(seconds.unsigned_abs())),
        Some(seconds) => Err(ProviderError::bad_field(
            field,
            format!("{seconds} is not between 1 and {LONGEST}"),
        )),
    }
}

/// A positive duration such as `5m`.
pub(crate) fn duration(
    field: &str,
    given: Option<&str>,
    otherwise: SignedDuration,
) -> Result<SignedDuration, ProviderError> {
    let Some(text) = given.filter(|text| !text.is_empty()) else {
        return Ok(otherwise);
    };
    let bad = |problem: &str| ProviderError::bad_field(field, format!("{text:?} {problem}"));
    let duration = stateward_api::duration::parse(&IntOrString::String(text.to_owned())).map_err(bad)?;
    if duration.is_zero() {
        return Err(bad("is no time at all; it must be longer, such as 5m"));
    }
    Ok(duration)
}

/// A timeout as a duration.
pub(crate) fn wait(field: &str, given: Option<&str>, otherwise: u64) -> Result<Duration, ProviderError> {
    let wait = duration(field, given, SignedDuration::from_secs(otherwise.cast_signed()))?;
    if wait > SignedDuration::from_secs(LONGEST) {
        return Err(ProviderError::bad_field(
            field,
            format!("is longer than {LONGEST}s"),
        ));
    }
    Ok(wait.unsigned_abs())
}

/// Runs an operation of several requests within the timeout of one.
pub(crate) async fn within<T>(
    url: &Url,
    limit: Duration,
    doing: impl Future<Output = Result<T, ProviderError>>,
) -> Result<T, ProviderError> {
    match tokio::time::timeout(limit, doing).await {
        Ok(done) => done,
        Err(_) => Err(ProviderError::Timeout {
            origin: origin(url),
            // Rounded up: a timeout of 0 seconds would be confusing.
            seconds: limit.as_secs() + u64::from(limit.subsec_nanos() > 0),
        }),
    }
}
