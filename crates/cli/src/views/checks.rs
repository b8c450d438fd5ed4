//! The checks of a PhasedRollout, in lines.

use jiff::Timestamp;
use stateward_api::phasedrollout::{Check, RollingPodStatus};

use crate::views::style::Style;
use crate::views::table::age;

/// `WaitForChecks   1 of 3 in a row, 4 failed in all, 8 tries left`, and the result of the last check.
pub(crate) fn lines(check: &Check, checks: &RollingPodStatus, style: Style, now: Timestamp) -> Vec<String> {
    let mut words = vec![format!(
        "{} of {} in a row",
        checks.consecutive_successful_checks, check.success_threshold
    )];
    if checks.total_failed_checks > 0 {
        words.push(format!("{} failed in all", checks.total_failed_checks));
    }
    words.extend(checks.tries_left.map(|tries| format!("{tries} tries left")));
    let mut lines = vec![format!("{}   {}", style.state(&checks.status), words.join(", "))];
    if let Some(last) = &checks.last_check {
        let ago = age(checks.last_check_time, now);
        let verdict = style.state(&last.verdict);
        lines.push(format!("last   {verdict}   {}, {ago} ago", last.message));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn checks_say_how_far_they_are_and_what_the_last_came_to() {
        let check: Check = serde_json::from_value(json!({
            "successThreshold": 3, "maxTries": 10, "query": {"expr": "up", "url": "prom"},
        }))
        .unwrap();
        let checks: RollingPodStatus = serde_json::from_value(json!({
            "status": "WaitForChecks", "partition": 4, "consecutiveSuccessfulChecks": 0, "totalFailedChecks": 2,
            "triesLeft": 8, "lastCheckTime": "2026-01-01T00:09:40Z",
            "lastCheck": {"verdict": "Failed", "reason": "DataReturned", "message": "2 series returned"},
        }))
        .unwrap();
        let now = crate::fixtures::NOW.parse().unwrap();
        assert_eq!(
            lines(&check, &checks, Style::default(), now),
            [
                "WaitForChecks   0 of 3 in a row, 2 failed in all, 8 tries left",
                "last   Failed   2 series returned, 20s ago",
            ]
        );
    }
}
