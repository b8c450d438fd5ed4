//! Decides whether an event is recorded, counted, aggregated with similar ones, or dropped.
//!
//! The rules and numbers are those of client-go's event correlator. After ten different messages for the same reason within ten minutes,
//! further ones are aggregated, and one source may record 25 events about an object before it is rate-limited.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

/// Each table drops its first entry when it is full. Upstream drops the least recently used one.
const REMEMBERED: usize = 4096;
const SIMILAR: usize = 10;
const SIMILAR_WITHIN: SignedDuration = SignedDuration::from_mins(10);
const BURST: f64 = 25.0;
const SECONDS_PER_EVENT: f64 = 300.0;

/// An event to record.
#[derive(Clone, Copy)]
pub(super) struct News<'a> {
    pub(super) component: &'a str,
    pub(super) uid: &'a str,
    pub(super) kind: &'a str,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
}

/// How to record the event.
#[derive(Debug, PartialEq)]
pub(super) struct Telling {
    pub(super) message: String,
    /// The event's name: that of the first of its series.
    pub(super) name: String,
    pub(super) count: i64,
}

/// Remembers recorded events.
#[derive(Default)]
pub(super) struct Correlator {
    told: BTreeMap<[String; 5], (String, i64)>,
    similar: BTreeMap<[String; 4], (BTreeSet<String>, Timestamp)>,
    allowed: BTreeMap<[String; 3], (f64, Timestamp)>,
}

impl Correlator {
    /// How to record the event, under this name if it is the first of its series; `None` if it is rate-limited. A dropped event is counted
    /// all the same.
    pub(super) fn observe(&mut self, news: News<'_>, name: String, now: Timestamp) -> Option<Telling> {
        let News {
            component,
            uid,
            kind,
            reason,
            message,
        } = news;
        let (key, message) = if self.is_one_of_many(news, now) {
            (
                [component, uid, kind, reason, ""],
                format!("(combined from similar events): {message}"),
            )
        } else {
            ([component, uid, kind, reason, message], message.to_owned())
        };
        let told = remember(&mut self.told, key.map(str::to_owned), || (name, 0));
        told.1 += 1;
        let (name, count) = told.clone();
        self.is_allowed(news, now)
            .then_some(Telling { message, name, count })
    }

    fn is_one_of_many(&mut self, news: News<'_>, now: Timestamp) -> bool {
        let key = [news.component, news.uid, news.kind, news.reason].map(str::to_owned);
        let (messages, last) = remember(&mut self.similar, key, || (BTreeSet::new(), now));
        if now.duration_since(*last) > SIMILAR_WITHIN {
            messages.clear();
        }
        messages.insert(news.message.to_owned());
        *last = now;
        if messages.len() < SIMILAR {
            return false;
        }
        // Upstream drops a random one.
        messages.pop_first();
        true
    }

    fn is_allowed(&mut self, news: News<'_>, now: Timestamp) -> bool {
        let key = [news.component, news.uid, news.kind].map(str::to_owned);
        let (left, at) = remember(&mut self.allowed, key, || (BURST, now));
        *left = (*left + now.duration_since(*at).as_secs_f64() / SECONDS_PER_EVENT).min(BURST);
        *at = now;
        let allowed = *left >= 1.0;
        if allowed {
            *left -= 1.0;
        }
        allowed
    }
}

fn remember<K: Ord, V>(table: &mut BTreeMap<K, V>, key: K, new: impl FnOnce() -> V) -> &mut V {
    if table.len() >= REMEMBERED && !table.contains_key(&key) {
        table.pop_first();
    }
    table.entry(key).or_insert_with(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn news<'a>(message: &'a str) -> News<'a> {
        News {
            component: "c",
            uid: "u",
            kind: "Normal",
            reason: "SuccessfulCreate",
            message,
        }
    }

    #[test]
    fn the_same_news_twice_is_one_event_that_counts() {
        let mut correlator = Correlator::default();
        let first = correlator.observe(news("a"), "a.1".to_owned(), NOW);
        let again = correlator.observe(news("a"), "a.2".to_owned(), NOW);
        let expected = |count| {
            Some(Telling {
                message: "a".to_owned(),
                name: "a.1".to_owned(),
                count,
            })
        };
        assert_eq!((first, again), (expected(1), expected(2)));
    }

    #[test]
    fn the_tenth_message_for_a_reason_is_combined_with_those_after_it() {
        let mut correlator = Correlator::default();
        let told: Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"]
            .into_iter()
            .filter_map(|message| correlator.observe(news(message), message.to_owned(), NOW))
            .collect();
        assert_eq!(told[8].message, "i");
        let combined = |message: &str| format!("(combined from similar events): {message}");
        assert_eq!((&told[9].message, told[9].count), (&combined("j"), 1));
        assert_eq!(
            (&told[10].message, told[10].name.as_str(), told[10].count),
            (&combined("k"), "j", 2)
        );
    }

    #[test]
    fn a_source_is_heard_25_times_about_an_object_and_then_every_five_minutes() {
        let mut correlator = Correlator::default();
        let mut heard = |at| correlator.observe(news("a"), "a".to_owned(), at).is_some();
        assert!((0..25).all(|_| heard(NOW)));
        assert!(!heard(NOW));
        let later = NOW + SignedDuration::from_secs(301);
        assert!(heard(later));
        assert!(!heard(later));
    }
}
