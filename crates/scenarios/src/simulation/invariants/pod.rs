//! Pods that are created, and pods that the operator deletes.

use jiff::Timestamp;
use stateward_cluster::Commit;
use stateward_core::memory::Activity;

use super::Replay;
use super::world::Pod;

impl Replay {
    pub(super) fn apply_pod(&mut self, commit: &Commit, by_us: bool) {
        let pod = Pod::of(commit, |set| self.sets.get(set).map_or(0, |set| set.start));
        let before = self.pods.get(&commit.name).cloned();
        let born = before.as_ref().is_none_or(|before| before.uid != pod.uid) && !commit.deleted;
        if commit.deleted {
            self.pods.remove(&commit.name);
        } else {
            self.pods.insert(commit.name.clone(), pod.clone());
        }
        if born {
            self.check_birth(&commit.name, &pod);
        }
        let leaves = before.as_ref().is_some_and(|before| !before.leaving) && (pod.leaving || commit.deleted);
        if by_us
            && leaves
            && let Some(before) = before
        {
            self.check_removal(&commit.name, &before, &pod);
        }
    }

    /// 1, 9 and 16: which version a pod may be created on.
    fn check_birth(&mut self, name: &str, pod: &Pod) {
        let (Some(rollout), Some(set)) = (self.holder(&pod.set), self.sets.get(&pod.set)) else {
            return;
        };
        let Some(stable) = rollout.stable().filter(|stable| *stable != pod.revision) else {
            return;
        };
        // If Kubernetes has forgotten the stable version, the guard uses the revision it remembers.
        let known = set.current == stable;
        let revision = &pod.revision;
        let what = match &rollout.memory.activity {
            // Unless a user made room for it.
            Activity::RollingBack(back) => {
                let guarded = set.partition >= set.replicas && set.current != back.from.as_str();
                (guarded && back.from.as_str() == revision)
                    .then(|| format!("9: pod {name} was made on {revision} after that was rejected"))
            }
            _ if set.unanswered || !known => None,
            Activity::Rolling(attempt) => {
                let allowed = rollout.allowed(set.replicas).unwrap_or(set.replicas);
                let outside = pod.index < set.replicas - allowed.max(set.granted);
                outside.then(|| {
                    format!(
                        "1: pod {name} was made on {revision} at step {}, which allows {allowed}",
                        attempt.step.0
                    )
                })
            }
            Activity::Idle => (pod.index < set.replicas - set.granted).then(|| {
                format!("16: pod {name} was made on {revision} while nothing was rolled, {stable} is stable")
            }),
        };
        if let Some(what) = what {
            self.breaks(what);
        }
    }

    /// 19: a serving pod is deleted only while all others exist and have been Ready for long enough.
    fn check_removal(&mut self, name: &str, pod: &Pod, after: &Pod) {
        let Some(set) = self.sets.get(&pod.set) else {
            return;
        };
        let others = self.pods.iter().filter(|(other, _)| *other != name);
        let then = after.asked_to_leave.unwrap_or(Timestamp::MAX);
        let well = others.filter(|(_, other)| {
            other.set == pod.set && other.available(set.min_ready, then) && !other.leaving
        });
        let well = well.count() as i64;
        if pod.ready() && well < set.replicas - 1 {
            self.breaks(format!(
                "19: pod {name} was removed while only {well} others were available"
            ));
        }
        let stable = self.holder(&pod.set).and_then(|rollout| rollout.stable());
        if pod.ready() && stable == Some(&pod.revision) {
            self.breaks(format!(
                "19: pod {name} was removed although it runs the stable version"
            ));
        }
    }
}
