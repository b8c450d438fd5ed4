//! Leaves the workload to Kubernetes, and adopts it again later (rule 22).

use super::{Decider, Outcome, report};
use crate::event::EventReason;
use crate::memory::Memory;
use crate::plan::Share;
use crate::workload::{Claim, Workload};
use crate::world::{Action, Phase, Reason};

impl Decider<'_> {
    /// Every pod is released, as without an operator. Only the setting from before the adoption is kept: the stable version and the
    /// one being rolled out are determined again when the workload is adopted again.
    pub(super) fn suspend(&mut self, workload: &Workload) -> Outcome {
        self.refuse_commands("the workload is left to Kubernetes; take it back first");
        if self.memory.stable.is_some() {
            self.notice(
                EventReason::Suspended,
                "left to Kubernetes' own rolling update: nothing is checked until it is taken back".into(),
            );
        }
        let setting = self.memory.setting.clone();
        self.memory = Memory {
            workload: Some(workload.uid.clone()),
            setting: Some(setting.unwrap_or_else(|| self.setting(workload))),
            ..Memory::default()
        };
        let there = |index: u32| {
            let pod = workload.at(index);
            pod.is_some_and(|pod| pod.runs(&workload.update) && pod.ready())
        };
        let settled = workload.current == workload.update && (0..workload.replicas).all(there);
        let (phase, what) = if settled {
            (Phase::Successful, format!("every pod runs {}", workload.update))
        } else {
            (
                Phase::Progressing,
                format!("pods follow to {} as they may", workload.update),
            )
        };
        let report = report(
            phase,
            Reason::Suspended,
            format!("left to Kubernetes' own rolling update: nothing is checked; {what}"),
        );
        if workload.released != i64::from(workload.replicas) || workload.claim != Claim::Ours {
            return Outcome::act(Action::Release(Share::ALL), report);
        }
        Outcome::wait(report)
    }
}
