//! A time axis: long stretches without an event are shortened, so that the rest stays visible.

/// The longest that a stretch may be drawn, as a multiple of the usual distance between two events.
const LONGEST: f64 = 4.0;

/// A time axis from 0 to 1.
pub(crate) struct Axis {
    /// Times and their positions, both in order.
    stops: Vec<(f64, f64)>,
    /// The middles of shortened stretches.
    breaks: Vec<f64>,
}

impl Axis {
    /// An axis through these times.
    pub(crate) fn through(moments: impl IntoIterator<Item = f64>) -> Self {
        let mut moments: Vec<f64> = moments.into_iter().chain([0.0]).collect();
        moments.sort_by(f64::total_cmp);
        moments.dedup();
        let gaps: Vec<f64> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mut sorted = gaps.clone();
        sorted.sort_by(f64::total_cmp);
        let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(1.0);
        let widths: Vec<f64> = gaps.iter().map(|gap| gap.min(usual * LONGEST)).collect();
        let whole: f64 = widths.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let (mut stops, mut breaks, mut place) = (vec![(0.0, 0.0)], Vec::new(), 0.0);
        for ((moment, gap), width) in moments.iter().skip(1).zip(&gaps).zip(&widths) {
            if width < gap {
                breaks.push(place + width / whole / 2.0);
            }
            place += width / whole;
            stops.push((*moment, place));
        }
        Self { stops, breaks }
    }

    /// The same axis with this share of it left free at its end.
    pub(crate) fn and_on(mut self, share: f64) -> Self {
        let places = self.stops.iter_mut().map(|(_, place)| place);
        places
            .chain(&mut self.breaks)
            .for_each(|place| *place *= 1.0 - share);
        self
    }

    /// The position of a time on the axis.
    pub(crate) fn place(&self, moment: f64) -> f64 {
        let after = self.stops.partition_point(|(stop, _)| *stop < moment);
        match (
            after.checked_sub(1).and_then(|before| self.stops.get(before)),
            self.stops.get(after),
        ) {
            (Some((from, start)), Some((to, end))) => start + (end - start) * (moment - from) / (to - from),
            (None, Some((_, place))) | (Some((_, place)), None) => *place,
            (None, None) => 0.0,
        }
    }

    /// The middles of shortened stretches.
    pub(crate) fn breaks(&self) -> &[f64] {
        &self.breaks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_moments_have_even_places() {
        let axis = Axis::through([10.0, 20.0, 30.0, 40.0]);
        assert_eq!(
            [0.0, 10.0, 15.0, 40.0, 99.0].map(|moment| axis.place(moment)),
            [0.0, 0.25, 0.375, 1.0, 1.0]
        );
        assert!(axis.breaks().is_empty());
    }

    #[test]
    fn an_hour_of_nothing_takes_no_more_room_than_four_usual_stretches() {
        let axis = Axis::through([10.0, 20.0, 3620.0, 3630.0]);
        let hour = axis.place(3620.0) - axis.place(20.0);
        assert!((hour - 4.0 / 7.0).abs() < 1e-9, "{hour}");
        assert_eq!(axis.breaks().len(), 1);
    }

    #[test]
    fn nothing_at_all_is_a_point() {
        assert_eq!(Axis::through([]).place(5.0), 0.0);
    }
}
