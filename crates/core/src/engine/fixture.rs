//! Builders for worlds: `settled()`, `rolling(1)`, `returning([..])`.

use jiff::{SignedDuration, Timestamp};

use crate::memory::{Activity, Attempt, BackgroundRun, Cause, Memory, Rollback, Stable};
use crate::plan::{
    Fingerprint, History, OnBrokenPod, OnFailure, Plan, Share, Step, StepIndex, Steps, Weight,
};
use crate::revision::RevisionName;
use crate::workload::{Claim, Counters, Pod, Trouble, Workload};
use crate::world::{Commands, World};

pub(crate) const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

pub(crate) fn revision(name: &str) -> RevisionName {
    RevisionName::from_api(format!("db-{name}"))
}

pub(crate) fn weight(percent: i64) -> Step {
    Step::Share(Share::Percent(Weight::new(percent).unwrap()))
}

pub(crate) fn plan(steps: impl Into<Steps>) -> Plan {
    Plan {
        steps: steps.into(),
        by_pod: false,
        background: None,
        deadline: SignedDuration::from_mins(10),
        on_failure: OnFailure::Hold,
        on_broken_pod: OnBrokenPod::Fail(OnFailure::Hold),
        on_failed_check: OnFailure::Abort,
        history: History::default(),
    }
}

/// Five pods on `a`, guarded and settled, with the steps 20 %, pause, 60 %.
pub(crate) fn settled() -> World {
    let mut world = World {
        now: NOW,
        plan: Ok(plan(vec![weight(20), Step::Pause(None), weight(60)])),
        reference_valid: true,
        paused: false,
        suspended: false,
        deleting: false,
        can_restore: true,
        commands: Commands::default(),
        memory: Memory {
            workload: Some("uid".into()),
            setting: Some("0".into()),
            stable: Some(Stable {
                revision: revision("a"),
                template: Fingerprint::of("a"),
            }),
            ..Memory::default()
        },
        workload: Ok(Workload {
            uid: "uid".into(),
            observed: true,
            replicas: 5,
            released: 0,
            current: revision("a"),
            update: revision("a"),
            template: Fingerprint::of("a"),
            current_template: None,
            forgotten: None,
            setting: "5".into(),
            kept_setting: None,
            claim: Claim::Ours,
            ordered: true,
            min_ready: SignedDuration::ZERO,
            told: Counters::default(),
            pods: Vec::new(),
        }),
        runs: Vec::new(),
        last_error: None,
        contested: None,
        object: "db".into(),
        name: "db -n prod".into(),
    };
    world.pods(["a"; 5]);
    world
}

/// The same with `b` in the template and an attempt at `step`.
pub(crate) fn rolling(step: u32) -> World {
    let mut world = settled();
    world.template("b");
    let steps = world.plan.as_ref().unwrap().fingerprint();
    let paused_at_step = matches!(
        world.plan.as_ref().unwrap().step(StepIndex(step)),
        Some(Step::Pause(_))
    );
    world.memory.activity = Activity::Rolling(Attempt {
        target: revision("b"),
        step: StepIndex(step),
        steps,
        counted: Some(5),
        entered: NOW,
        progressed: NOW,
        max_available: 0,
        max_replaced: 0,
        min_updated: 0,
        kept: Vec::new(),
        limit: None,
        stopped_at: None,
        ignored_pods: Vec::new(),
        paused_by_user: false,
        paused_at_step,
        fully_promoted: false,
        background: BackgroundRun::NotYet,
        commands: Vec::new(),
    });
    world
}

/// The same during a rollback from `b`.
pub(crate) fn returning(pods: [&str; 5]) -> World {
    let mut world = settled();
    world.template("b");
    world.pods(pods);
    world.memory.activity = Activity::RollingBack(Rollback {
        from: revision("b"),
        cause: Cause::Aborted,
        since: NOW,
    });
    world
}

impl World {
    pub(crate) fn view(&mut self) -> &mut Workload {
        self.workload.as_mut().unwrap()
    }

    pub(crate) fn attempt(&mut self) -> &mut Attempt {
        match &mut self.memory.activity {
            Activity::Rolling(attempt) => attempt,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn template(&mut self, name: &str) {
        self.view().update = revision(name);
        self.view().template = Fingerprint::of(name);
        self.count();
    }

    /// The revision that Kubernetes gives to pods outside the share.
    pub(crate) fn current(&mut self, name: &str) {
        self.view().current = revision(name);
        self.count();
    }

    /// A Ready pod per name; an empty name leaves a gap.
    pub(crate) fn pods<const N: usize>(&mut self, names: [&str; N]) {
        let here = names.iter().enumerate().filter(|(_, name)| !name.is_empty());
        let pod = |(index, name): (usize, &&str)| Pod {
            name: format!("db-{index}"),
            uid: format!("uid-{index}-{name}"),
            index: index as u32,
            revision: Some(revision(name)),
            terminating: false,
            ready_since: Some(NOW - SignedDuration::from_mins(1)),
            unready_since: None,
            restarts: 0,
            restarted_at: None,
            trouble: None,
            unready: None,
            last_exit: None,
        };
        self.view().pods = here.map(pod).collect();
        self.count();
    }

    /// Makes a pod unready.
    pub(crate) fn unready(&mut self, index: u32) {
        let pods = self.view().pods.iter_mut();
        pods.filter(|pod| pod.index == index).for_each(|pod| {
            pod.ready_since = None;
            pod.unready_since = Some(NOW);
        });
        self.count();
    }

    pub(crate) fn crash(&mut self, index: u32) {
        self.unready(index);
        let pods = self.view().pods.iter_mut();
        pods.filter(|pod| pod.index == index).for_each(|pod| {
            pod.restarts = 3;
            pod.trouble = Some(Trouble {
                reason: "CrashLoopBackOff".into(),
                message: String::new(),
            });
        });
    }

    /// Updates the workload's counters from its pods.
    pub(crate) fn count(&mut self) {
        let view = self.view();
        let ready = view.pods.iter().filter(|pod| pod.ready_since.is_some()).count() as u32;
        let on = |revision: &RevisionName| view.pods.iter().filter(|pod| pod.runs(revision)).count() as u32;
        view.told = Counters {
            replicas: view.pods.len() as u32,
            current: on(&view.current),
            updated: on(&view.update),
            ready,
            available: ready,
        };
    }
}
