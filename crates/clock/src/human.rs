//! Durations in kubectl's format: two units at most, and fewer the longer it is.

use jiff::SignedDuration;

/// A duration for users. A clock difference of less than two seconds is ignored.
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        ..-1 => return "<invalid>".to_owned(),
        -1 => return "0s".to_owned(),
        0..120 => return format!("{seconds}s"),
        _ => {}
    }
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    match (minutes, hours, years) {
        (..10, ..) => two(minutes, "m", seconds % 60, "s"),
        (..180, ..) => format!("{minutes}m"),
        (_, ..8, _) => two(hours, "h", minutes % 60, "m"),
        (_, ..48, _) => format!("{hours}h"),
        (_, ..192, _) => two(days, "d", hours % 24, "h"),
        (_, _, ..2) => format!("{days}d"),
        (_, _, ..8) => two(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;

    #[rstest]
    #[case(-2, "<invalid>")]
    #[case(-1, "0s")]
    #[case(0, "0s")]
    #[case(119, "119s")]
    #[case(2 * MINUTE, "2m")]
    #[case(2 * MINUTE + 30, "2m30s")]
    #[case(10 * MINUTE - 1, "9m59s")]
    #[case(10 * MINUTE, "10m")]
    #[case(10 * MINUTE + 59, "10m")]
    #[case(3 * HOUR - 1, "179m")]
    #[case(3 * HOUR, "3h")]
    #[case(3 * HOUR + 5 * MINUTE, "3h5m")]
    #[case(8 * HOUR - 1, "7h59m")]
    #[case(8 * HOUR, "8h")]
    #[case(48 * HOUR - 1, "47h")]
    #[case(48 * HOUR, "2d")]
    #[case(2 * DAY + 3 * HOUR, "2d3h")]
    #[case(8 * DAY - 1, "7d23h")]
    #[case(8 * DAY, "8d")]
    #[case(2 * YEAR - 1, "729d")]
    #[case(2 * YEAR, "2y")]
    #[case(2 * YEAR + 5 * DAY, "2y5d")]
    #[case(8 * YEAR - 1, "7y364d")]
    #[case(8 * YEAR, "8y")]
    #[case(100 * YEAR, "100y")]
    fn the_longer_the_coarser(#[case] seconds: i64, #[case] expected: &str) {
        assert_eq!(human_duration(SignedDuration::from_secs(seconds)), expected);
    }
}
