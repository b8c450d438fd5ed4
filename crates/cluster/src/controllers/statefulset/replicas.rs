//! Creates, replaces and scales down a set's pods, in the order that its policy requires.
//!
//! OrderedReady handles one pod after the other and stops at the first that is not ready; nothing after it happens in this sync, neither
//! scaling down nor updating. Parallel handles all of them, in batches that grow as long as nothing fails, and continues.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::status::Status;

use super::error::all_of;
use super::object::{Metadata, Pod};
use super::ordinal::Ordinal;
use super::pod;
use super::round::Round;
use super::status::Tally;
use super::update;

/// Upstream gains nothing from more concurrent requests, so batches stop growing here.
const LARGEST_BATCH: usize = 500;

/// Whether an ordered set may handle its next pod.
#[derive(PartialEq)]
enum Step {
    On,
    Stop,
}

/// A set's pods, sorted by what happens to them.
pub(super) struct Replicas<'p> {
    count: usize,
    /// Pods at a wanted ordinal, by index.
    pub(super) living: BTreeMap<usize, &'p Pod>,
    /// Pods outside, the highest ordinal first.
    pub(super) condemned: Vec<(Ordinal, &'p Pod)>,
}

impl<'p> Replicas<'p> {
    /// Pods whose name has no ordinal are ignored.
    pub(super) fn sort(round: &Round<'_>, pods: &'p [Pod]) -> Self {
        let ordinals = round.set.ordinals();
        let (mut living, mut condemned) = (BTreeMap::new(), Vec::new());
        for pod in pods {
            let Some(ordinal) = pod.ordinal() else { continue };
            match ordinals.index(ordinal) {
                Some(index) => drop(living.insert(index, pod)),
                None => condemned.push((ordinal, pod)),
            }
        }
        condemned.sort_by(|(a, _), (b, _)| b.cmp(a));
        Self {
            count: round.set.replicas(),
            living,
            condemned,
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &'p Pod> {
        self.living
            .values()
            .copied()
            .chain(self.condemned.iter().map(|(_, pod)| *pod))
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The pod at an index: the existing one in the snapshot, or else the one to be created.
    pub(super) fn at(&self, round: &Round<'_>, index: usize) -> Cow<'p, Pod> {
        match self.living.get(&index) {
            Some(pod) => Cow::Borrowed(pod),
            None => Cow::Owned(round.build(index)),
        }
    }

    /// How many wanted pods are missing, not Ready for long enough, or terminating.
    pub(super) fn unavailable(&self, round: &Round<'_>) -> usize {
        self.count
            - self
                .living
                .values()
                .filter(|pod| !round.is_unavailable(pod))
                .count()
    }

    /// The lowest condemned pod that is unavailable. An ordered set calls this only if every wanted pod is available, and may then delete
    /// this one.
    fn first_unavailable(&self, round: &Round<'_>) -> Option<&Pod> {
        self.condemned
            .iter()
            .rev()
            .map(|(_, pod)| *pod)
            .find(|pod| round.is_unavailable(pod))
    }
}

impl Round<'_> {
    /// Brings the pods closer to the set's spec, and counts down in `tally` the pods that an update deletes.
    pub(super) fn run(&self, replicas: &Replicas<'_>, tally: &mut Tally) -> Result<(), Status> {
        if self.each(replicas.count, |index| self.keep_living(replicas, index))? == Step::Stop
            || self.each(replicas.condemned.len(), |index| {
                self.keep_claims_of_condemned(replicas, index)
            })? == Step::Stop
            || self.each(replicas.condemned.len(), |index| self.let_go(replicas, index))? == Step::Stop
            || self.set.updates_on_delete()
        {
            return Ok(());
        }
        update::roll(self, replicas, tally)
    }

    /// Calls `work` for each of `count` pods, as the pod management policy requires.
    fn each(
        &self,
        count: usize,
        mut work: impl FnMut(usize) -> Result<Step, Status>,
    ) -> Result<Step, Status> {
        if self.set.is_parallel() {
            return slow_start(count, |index| work(index).map(drop)).map(|()| Step::On);
        }
        for index in 0..count {
            if work(index)? == Step::Stop {
                return Ok(Step::Stop);
            }
        }
        Ok(Step::On)
    }

    fn keep_living(&self, replicas: &Replicas<'_>, index: usize) -> Result<Step, Status> {
        let ordered = !self.set.is_parallel();
        let ordinal = self.set.ordinals().at(index);
        let pod = replicas.at(self, index);
        if pod.has_ended() {
            // Its successor is created in the sync after it is gone.
            if !pod.is_terminating() {
                self.delete(&pod)?;
            }
            return Ok(Step::Stop);
        }
        if !pod.is_created() {
            if self.has_stale_claim(ordinal, &pod) {
                return Ok(Step::Stop);
            }
            self.create(ordinal, &pod)?;
            if ordered {
                return Ok(Step::Stop);
            }
        }
        if pod.is_pending() {
            self.create_missing_claims(ordinal, &pod)?;
        }
        if ordered && (pod.is_terminating() || !pod.is_running_and_ready() || !self.is_available(&pod)) {
            return Ok(Step::Stop);
        }
        let right = pod::has_identity(self.set, ordinal, &*pod)
            && pod::has_storage(self.set, ordinal, &pod)
            && self.claims_are_kept(ordinal, &pod);
        if !right {
            self.put_right(ordinal, &pod)?;
        }
        Ok(Step::On)
    }

    fn keep_claims_of_condemned(&self, replicas: &Replicas<'_>, index: usize) -> Result<Step, Status> {
        let (ordinal, pod) = &replicas.condemned[index];
        if !self.claims_are_kept(*ordinal, pod) {
            self.keep_claims(*ordinal, pod)?;
        }
        Ok(Step::On)
    }

    /// Scales down, highest ordinal first. An ordered set waits for each pod to be gone, and deletes an unavailable one only if no pod
    /// below it is unavailable.
    fn let_go(&self, replicas: &Replicas<'_>, index: usize) -> Result<Step, Status> {
        let (_, pod) = &replicas.condemned[index];
        if pod.is_terminating() {
            return Ok(Step::Stop);
        }
        let spared = || {
            replicas
                .first_unavailable(self)
                .is_some_and(|first| first.uid() == pod.uid())
        };
        let well = pod.is_running_and_ready() && self.is_available(pod);
        if !self.set.is_parallel() && !well && !spared() {
            return Ok(Step::Stop);
        }
        self.delete(pod)?;
        Ok(Step::Stop)
    }
}

/// Batches of 1, 2, 4, … A batch is completed even if one of its pods fails; the next is then not started.
fn slow_start(count: usize, mut work: impl FnMut(usize) -> Result<(), Status>) -> Result<(), Status> {
    let (mut from, mut size) = (0, 1);
    while from < count {
        let to = count.min(from.saturating_add(size));
        all_of((from..to).filter_map(|index| work(index).err()).collect())?;
        (from, size) = (to, LARGEST_BATCH.min(size * 2));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::statefulset::error::failure;

    #[test]
    fn batches_double_until_they_are_large() {
        let seen = |count, fails_at| {
            let mut last = 0;
            let done = slow_start(count, |index| {
                last = index;
                if index == fails_at {
                    Err(failure("no"))
                } else {
                    Ok(())
                }
            });
            (last, done.is_err())
        };
        assert_eq!(seen(10, usize::MAX), (9, false));
        assert_eq!(seen(10, 0), (0, true));
        assert_eq!(seen(10, 1), (2, true));
        assert_eq!(seen(10, 3), (6, true));
        // 1 + 2 + … + 256 = 511, and from there 500 at a time.
        assert_eq!(seen(5000, 511), (1010, true));
        assert_eq!(seen(5000, 1011), (1510, true));
    }
}
