//! The duration of a decision when the gate has to examine every pod.

use std::hint::black_box;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use stateward_core::decide;
use stateward_core::memory::{Activity, Attempt, BackgroundRun, Memory, Stable};
use stateward_core::plan::{
    Fingerprint, History, OnBrokenPod, OnFailure, Plan, Share, Step, StepIndex, Weight,
};
use stateward_core::revision::RevisionName;
use stateward_core::workload::{Claim, Counters, Pod, Workload};
use stateward_core::world::{Commands, World};

use crate::row;

const PODS: u32 = 1000;
const TIMES: u32 = 2000;

pub(crate) fn measure() {
    let world = half_way();
    let mut samples: Vec<_> = (0..TIMES)
        .map(|_| {
            let began = Instant::now();
            black_box(decide(black_box(&world)));
            began.elapsed()
        })
        .collect();
    samples.sort();
    row(
        &format!("a decision about {PODS} pods, p50"),
        format!("{:.0} µs", samples[samples.len() / 2].as_secs_f64() * 1e6),
        "200 µs",
    );
}

/// A StatefulSet in the middle of a rollout: the gate has to examine every pod.
fn half_way() -> World {
    let (old, new) = (revision("a"), revision("b"));
    let plan = Plan {
        steps: vec![
            Step::Share(Share::Percent(Weight::new(50).unwrap())),
            Step::Pause(None),
        ]
        .into(),
        deadline: SignedDuration::from_mins(10),
        by_pod: false,
        background: None,
        on_failure: OnFailure::Hold,
        on_broken_pod: OnBrokenPod::Fail(OnFailure::Hold),
        on_failed_check: OnFailure::Abort,
        history: History::default(),
    };
    let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
    let half = PODS / 2;
    let pods = (0..PODS).map(|index| Pod {
        name: format!("db-{index}"),
        uid: format!("uid-{index}"),
        index,
        revision: Some(if index < half { old.clone() } else { new.clone() }),
        ready_since: Some(Timestamp::UNIX_EPOCH),
        unready_since: None,
        terminating: false,
        restarts: 0,
        restarted_at: None,
        trouble: None,
        unready: None,
        last_exit: None,
    });
    World {
        now,
        runs: Vec::new(),
        last_error: None,
        contested: None,
        object: "db".into(),
        memory: Memory {
            workload: Some("uid".into()),
            setting: Some("0".into()),
            stable: Some(Stable {
                revision: old.clone(),
                template: Fingerprint::of("a"),
            }),
            activity: Activity::Rolling(Attempt {
                kept: Vec::new(),
                limit: None,
                stopped_at: None,
                target: new.clone(),
                step: StepIndex(1),
                steps: plan.fingerprint(),
                counted: None,
                entered: now,
                progressed: now,
                max_available: half,
                max_replaced: half,
                min_updated: 0,
                ignored_pods: Vec::new(),
                paused_by_user: false,
                paused_at_step: true,
                fully_promoted: false,
                background: BackgroundRun::NotYet,
                commands: Vec::new(),
            }),
            ..Memory::default()
        },
        plan: Ok(plan),
        reference_valid: true,
        paused: false,
        suspended: false,
        deleting: false,
        can_restore: true,
        commands: Commands::default(),
        workload: Ok(Workload {
            uid: "uid".into(),
            observed: true,
            replicas: PODS,
            released: half.into(),
            current: old.clone(),
            update: new.clone(),
            template: Fingerprint::of("b"),
            current_template: None,
            forgotten: None,
            setting: "0".into(),
            kept_setting: None,
            claim: Claim::Ours,
            ordered: true,
            min_ready: SignedDuration::ZERO,
            told: Counters {
                replicas: PODS,
                current: PODS - half,
                updated: half,
                ready: PODS,
                available: PODS,
            },
            pods: pods.collect(),
        }),
        name: "db -n prod".into(),
    }
}

fn revision(name: &str) -> RevisionName {
    RevisionName::of(name, &serde_json::json!({}), 0)
}
