//! Untruths about the embedded cluster, below `crates/cluster/src`.

use super::Mutant;

pub(super) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "scales down from the lowest ordinal",
        file: "controllers/statefulset/replicas.rs",
        truth: "condemned.sort_by(|(a, _), (b, _)| b.cmp(a));",
        lie: "condemned.sort_by(|(a, _), (b, _)| a.cmp(b));",
    },
    Mutant {
        name: "updates from the lowest ordinal",
        file: "controllers/statefulset/update.rs",
        truth: "        .rev()\n        .map(|index| replicas.at(round, index));",
        lie: "        .map(|index| replicas.at(round, index));",
    },
    Mutant {
        name: "updates one pod below the partition",
        file: "controllers/statefulset/update.rs",
        truth: "map_or(0, |rolling| rolling.partition);",
        lie: "map_or(0, |rolling| rolling.partition.saturating_sub(1));",
    },
    Mutant {
        name: "brings a pod at the partition back on the old revision",
        file: "controllers/statefulset/round.rs",
        truth: "index < stays",
        lie: "index <= stays",
    },
    Mutant {
        name: "counts no collision",
        file: "controllers/statefulset/status.rs",
        truth: r#"status.insert("collisionCount".into(), (*collisions).into());"#,
        lie: r#"status.insert("collisionCount".into(), (*collisions * 0).into());"#,
    },
    Mutant {
        name: "keeps one revision too many",
        file: "controllers/statefulset/revisions.rs",
        truth: "unused().count().saturating_sub(limit);",
        lie: "unused().count().saturating_sub(limit + 1);",
    },
    Mutant {
        name: "does not promote at scale zero",
        file: "controllers/statefulset/status.rs",
        truth: "== [wanted; 3] && set.updates_by_rolling();",
        lie: "== [wanted; 3] && wanted > 0 && set.updates_by_rolling();",
    },
    Mutant {
        name: "promotes an OnDelete set",
        file: "controllers/statefulset/status.rs",
        truth: "== [wanted; 3] && set.updates_by_rolling();",
        lie: "== [wanted; 3];",
    },
    Mutant {
        name: "does not raise the number of a revision that is used again",
        file: "controllers/statefulset/revisions.rs",
        truth: "Some((equal, _)) => renumber(access, &history[equal], next)?,",
        lie: "Some((equal, _)) => renumber(access, &history[equal], history[equal].number())?,",
    },
    Mutant {
        name: "gives no claim to its set",
        file: "controllers/statefulset/retention.rs",
        truth: "(false, true) => Wanted::Set,",
        lie: "(false, true) => Wanted::Nobody,",
    },
    Mutant {
        name: "does not wait for a pod to be Ready",
        file: "controllers/statefulset/replicas.rs",
        truth: "if ordered && (pod.is_terminating() || !pod.is_running_and_ready() || !self.is_available(&pod)) {",
        lie: "if ordered && pod.is_terminating() {",
    },
    Mutant {
        name: "keeps the canary where the current revision is lost",
        file: "controllers/statefulset/revisions.rs",
        truth: ".unwrap_or(&update)",
        lie: ".or(history.first()).unwrap_or(&update)",
    },
    Mutant {
        name: "forgets the index label",
        file: "controllers/statefulset/pod.rs",
        truth: "labels.insert(INDEX_LABEL.into(), ordinal.to_string().into());",
        lie: "",
    },
    Mutant {
        name: "leaves a Failed pod where it is",
        file: "controllers/statefulset/replicas.rs",
        truth: "if !pod.is_terminating() {\n                self.delete(&pod)?;",
        lie: "if pod.is_terminating() {\n                self.delete(&pod)?;",
    },
    Mutant {
        name: "counts a pod that goes as updated",
        file: "controllers/statefulset/status.rs",
        truth: "let counted = created && !pod.is_terminating();",
        lie: "let counted = created;",
    },
    Mutant {
        name: "does not mark a claim that it has bound",
        file: "controllers/volume_binder.rs",
        truth: "annotate(claim, BOUND_BY_CONTROLLER);",
        lie: "",
    },
    Mutant {
        name: "tells apart whatever differs",
        file: "controllers/recorder/correlate.rs",
        truth: "const SIMILAR: usize = 10;",
        lie: "const SIMILAR: usize = 1000;",
    },
    Mutant {
        name: "loses the owner of a field that an update leaves as it is",
        file: "patch/managed.rs",
        truth: "own.owned.add(gained);",
        lie: "own.owned = Owned::of(gained);",
    },
    Mutant {
        name: "leaves a changed field with its old owner too",
        file: "patch/managed.rs",
        truth: "managers.subtract(&[&taken, &removed]);",
        lie: "managers.subtract(&[&removed]);",
    },
    Mutant {
        name: "dates the entry of a writer that has gained nothing",
        file: "patch/transition.rs",
        truth: "match has_gained && *id == self.writer {",
        lie: "match *id == self.writer {",
    },
    Mutant {
        name: "lets a stale resourceVersion through",
        file: "server/modify.rs",
        truth: "if given != current {",
        lie: "if given > current {",
    },
    Mutant {
        name: "counts no new generation of a custom object",
        file: "server/modify.rs",
        truth: "let next = object::generation(old) + 1;",
        lie: "let next = object::generation(old);",
    },
];
