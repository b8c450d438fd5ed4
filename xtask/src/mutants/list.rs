//! The mutants: one untruth each.

/// A line of a controller, and what stands there instead.
pub(super) struct Mutant {
    pub(super) name: &'static str,
    /// Below `crates/cluster/src/controllers`.
    pub(super) file: &'static str,
    pub(super) truth: &'static str,
    pub(super) lie: &'static str,
}

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "scales down from the lowest ordinal",
        file: "statefulset/replicas.rs",
        truth: "condemned.sort_by(|(a, _), (b, _)| b.cmp(a));",
        lie: "condemned.sort_by(|(a, _), (b, _)| a.cmp(b));",
    },
    Mutant {
        name: "updates from the lowest ordinal",
        file: "statefulset/update.rs",
        truth: "        .rev()\n        .map(|index| replicas.at(round, index));",
        lie: "        .map(|index| replicas.at(round, index));",
    },
    Mutant {
        name: "updates one pod below the partition",
        file: "statefulset/update.rs",
        truth: "map_or(0, |rolling| rolling.partition);",
        lie: "map_or(0, |rolling| rolling.partition.saturating_sub(1));",
    },
    Mutant {
        name: "brings a pod at the partition back on the old revision",
        file: "statefulset/round.rs",
        truth: "index < stays",
        lie: "index <= stays",
    },
    Mutant {
        name: "counts no collision",
        file: "statefulset/status.rs",
        truth: r#"status.insert("collisionCount".into(), (*collisions).into());"#,
        lie: r#"status.insert("collisionCount".into(), (*collisions * 0).into());"#,
    },
    Mutant {
        name: "keeps one revision too many",
        file: "statefulset/revisions.rs",
        truth: "unused.len().saturating_sub(limit);",
        lie: "unused.len().saturating_sub(limit + 1);",
    },
    Mutant {
        name: "does not promote at scale zero",
        file: "statefulset/status.rs",
        truth: "== [wanted; 3] && set.updates_by_rolling();",
        lie: "== [wanted; 3] && wanted > 0 && set.updates_by_rolling();",
    },
    Mutant {
        name: "promotes an OnDelete set",
        file: "statefulset/status.rs",
        truth: "== [wanted; 3] && set.updates_by_rolling();",
        lie: "== [wanted; 3];",
    },
    Mutant {
        name: "does not raise the number of a revision that is used again",
        file: "statefulset/revisions.rs",
        truth: "Some((equal, _)) => renumber(access, &history[equal], next)?,",
        lie: "Some((equal, _)) => renumber(access, &history[equal], history[equal].number())?,",
    },
    Mutant {
        name: "gives no claim to its set",
        file: "statefulset/retention.rs",
        truth: "(false, true) => Wanted::Set,",
        lie: "(false, true) => Wanted::Nobody,",
    },
    Mutant {
        name: "does not wait for a pod to be Ready",
        file: "statefulset/replicas.rs",
        truth: "if ordered && (pod.is_terminating() || !pod.is_running_and_ready() || !self.is_available(&pod)) {",
        lie: "if ordered && pod.is_terminating() {",
    },
    Mutant {
        name: "keeps the canary where the current revision is lost",
        file: "statefulset/revisions.rs",
        truth: ".unwrap_or(&update)",
        lie: ".or(history.first()).unwrap_or(&update)",
    },
    Mutant {
        name: "forgets the index label",
        file: "statefulset/pod.rs",
        truth: "labels.insert(INDEX_LABEL.into(), ordinal.to_string().into());",
        lie: "",
    },
    Mutant {
        name: "leaves a Failed pod where it is",
        file: "statefulset/replicas.rs",
        truth: "if !pod.is_terminating() {\n                self.delete(&pod)?;",
        lie: "if pod.is_terminating() {\n                self.delete(&pod)?;",
    },
    Mutant {
        name: "counts a pod that goes as updated",
        file: "statefulset/status.rs",
        truth: "let counted = pod.is_created() && !pod.is_terminating();",
        lie: "let counted = pod.is_created();",
    },
    Mutant {
        name: "tells apart whatever differs",
        file: "recorder/correlate.rs",
        truth: "const SIMILAR: usize = 10;",
        lie: "const SIMILAR: usize = 1000;",
    },
];
