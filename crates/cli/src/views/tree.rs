//! One rollout as a tree: its steps, its workload, its pods.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DynamicObject;
use stateward_api::analysis::AnalysisRun;
use stateward_api::rollout::RolloutEnd;
use stateward_core::memory::Activity;

use crate::error::Error;
use crate::rollout::{Rollout, parse};
use crate::stage::{self, Stage, skipped_in_words};
use crate::unseen;
use crate::verbs::status::unknown_change;
use crate::views::checks;
use crate::views::columns::columns;
use crate::views::gates;
use crate::views::hint;
use crate::views::pod_row::PodRow;
use crate::views::runs;
use crate::views::style::{Lines, Style};
use crate::views::table::age;

/// Beyond this number of pods, similar Ready pods are folded into one line.
const UNFOLDED: usize = 20;

/// The objects to draw.
pub(crate) struct Picture {
    pub(crate) rollout: Rollout,
    /// `None` if it does not exist or cannot be read.
    pub(crate) set: Option<StatefulSet>,
    /// Why it cannot be read.
    pub(crate) unread: Option<String>,
    /// By ordinal.
    pub(crate) pods: Vec<PodRow>,
    /// Why the pods cannot be read.
    pub(crate) unseen_pods: Option<String>,
    /// The runs that the rollout waits for, or that decided its result.
    pub(crate) runs: Vec<AnalysisRun>,
}

/// Draws a rollout that the caller has read as a tree, for [`crate::Pane::show`]. `program` is how the user invoked it.
pub fn tree(
    rollout: DynamicObject,
    set: Option<StatefulSet>,
    pods: &[Pod],
    style: Style,
    now: Timestamp,
    program: &str,
) -> Result<Vec<String>, Error> {
    let picture = Picture {
        rollout: parse(rollout)?,
        set,
        unread: None,
        unseen_pods: None,
        pods: pods.iter().filter_map(PodRow::of).collect(),
        runs: Vec::new(),
    };
    Ok(picture.draw(style, now, program))
}

impl Picture {
    /// Draws the lines of the tree.
    pub(crate) fn draw(&self, style: Style, now: Timestamp, program: &str) -> Vec<String> {
        let stage = Stage::of(&self.rollout);
        let lines = style.lines();
        let (phase, unseen) = unseen::phase(&stage, self.set.as_ref());
        let message = hint::message(&stage, program);
        let mut tree = vec![self.headline(&stage, phase, style, now)];
        match unseen {
            _ if stage.status.phase.is_empty() => tree.push(format!("  {message}")),
            None => tree.push(format!("  {message}")),
            // The status message describes an older state.
            Some(unseen) => tree.extend([
                format!("  {unseen}; is an operator running?"),
                format!("  before that: {}", hint::without_commands(&message)),
            ]),
        }
        tree.extend(self.unread.iter().map(|why| format!("  {}", unknown_change(why))));
        let steps = self.steps(&stage, style, &lines, now);
        if !steps.is_empty() {
            tree.push(format!("{}steps", lines.branch));
            for (index, step) in steps.iter().enumerate() {
                let fork = fork(index, steps.len(), &lines);
                tree.push(format!("{}{fork}{step}", lines.trunk));
            }
        }
        let (mut runs, mut title) = (columns(&runs::rows(&self.runs, style, now)), "analysis");
        if let Some((check, checks)) = &self.rollout.checks {
            (runs, title) = (checks::lines(check, checks, style, now), "checks");
        }
        if !runs.is_empty() {
            tree.push(format!("{}{title}", lines.branch));
            for (index, run) in runs.iter().enumerate() {
                let fork = fork(index, runs.len(), &lines);
                tree.push(format!("{}{fork}{run}", lines.trunk));
            }
        }
        tree.push(format!("{}{}", lines.last, self.workload(&stage)));
        let unseen = self.unseen_pods.iter();
        let unseen = unseen.map(|why| format!("its pods cannot be seen: {why}"));
        let mut pods = self.pods(&stage, style, now);
        pods.extend(unseen);
        for (index, pod) in pods.iter().enumerate() {
            let fork = fork(index, pods.len(), &lines);
            tree.push(format!("   {fork}{pod}"));
        }
        tree
    }

    /// `rolloutplugin/db   Paused   step 2 of 4, 20% to db-2, for 3m10s`
    fn headline(&self, stage: &Stage<'_>, phase: &str, style: Style, now: Timestamp) -> String {
        let mut words = Vec::new();
        words.extend(stage.progress_in_words());
        match &stage.activity {
            Activity::Rolling(attempt) => {
                let share = stage.share().map(|share| format!("{} ", stage::share(share)));
                words.push(format!("{}to {}", share.unwrap_or_default(), attempt.target));
                words.push(format!("for {}", age(Some(attempt.entered), now)));
            }
            Activity::RollingBack(back) => {
                words.push(format!("returning from {}", back.from));
                words.push(format!("for {}", age(Some(back.since), now)));
            }
            Activity::Idle => {}
        }
        if self.rollout.metadata.deletion_timestamp.is_some() {
            words.push("being deleted".into());
        }
        let row = vec![
            format!("{}/{}", self.rollout.kind.word(), self.rollout.name_any()),
            stage.phase_in_words(phase, style),
            words.join(", "),
        ];
        columns(&[row]).concat()
    }

    /// Every step, marked as finished, current or pending.
    fn steps(&self, stage: &Stage<'_>, style: Style, lines: &Lines, now: Timestamp) -> Vec<String> {
        let Some(plan) = stage.plan.filter(|_| !self.rollout.left_alone) else {
            return Vec::new();
        };
        // With no rollout in progress, all steps of the last one are finished.
        let last = stage.status.history.first();
        let done = last.is_some_and(|past| past.outcome == RolloutEnd::Successful);
        let behind = (stage.activity == Activity::Idle && done).then_some(plan.steps.len());
        let here = stage.step().or(behind);
        if plan.by_pod {
            let behind = here.unwrap_or_default();
            return gates::lines(stage, behind, self.first_ordinal(), &self.pods, style, lines, now);
        }
        let line = |(index, step): (usize, stateward_core::plan::Step)| {
            let text = stage::describe(&step);
            match here {
                Some(here) if index < here => match stage.skipped(index) {
                    Some(taken) => format!("{} {text}{}", lines.skipped, skipped_in_words(taken)),
                    None => format!("{} {text}", lines.done),
                },
                Some(here) if index == here => {
                    let since = stage
                        .status
                        .current_step_started_at
                        .map_or_else(String::new, |entered| {
                            format!(", for {}", age(Some(entered), now))
                        });
                    style.strong(&format!("{} {text}{since}", lines.here))
                }
                _ => format!("{} {text}", lines.ahead),
            }
        };
        plan.steps.iter().enumerate().map(line).collect()
    }

    /// The ordinal of the first pod, if the StatefulSet can be read.
    fn first_ordinal(&self) -> Option<u32> {
        let spec = self.set.as_ref()?.spec.as_ref()?;
        let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start);
        u32::try_from(start.unwrap_or(0)).ok()
    }

    /// `statefulset/db   partition 4, 5 of 5 ready, stable db-1, new db-2`
    fn workload(&self, stage: &Stage<'_>) -> String {
        let Rollout {
            workload_kind,
            workload,
            ..
        } = &self.rollout;
        let name = format!("{}/{workload}", workload_kind.to_lowercase());
        let Some(set) = &self.set else {
            return format!("{name}   cannot be seen");
        };
        let spec = set.spec.clone().unwrap_or_default();
        let status = set.status.clone().unwrap_or_default();
        let strategy = spec.update_strategy.unwrap_or_default();
        let partition = strategy.rolling_update.and_then(|rolling| rolling.partition);
        let mut words = vec![
            match strategy.type_.as_deref() {
                Some("OnDelete") => "OnDelete".into(),
                _ => format!("partition {}", partition.unwrap_or(0)),
            },
            format!(
                "{} of {} ready",
                status.ready_replicas.unwrap_or(0),
                spec.replicas.unwrap_or(1)
            ),
        ];
        let stable = stage.status.stable_revision.clone().or(status.current_revision);
        let update = status.update_revision;
        match (stable, update) {
            (Some(stable), Some(update)) if stable != update => {
                words.push(format!("stable {stable}"));
                words.push(format!("new {update}"));
            }
            (stable, update) => words.extend(stable.or(update).map(|one| format!("revision {one}"))),
        }
        format!("{name}   {}", words.join(", "))
    }

    /// The role of a pod's revision in the rollout. A revision that was replaced may still have pods.
    fn role(&self, pod: &PodRow, stage: &Stage<'_>) -> &'static str {
        let status = self.set.as_ref().and_then(|set| set.status.as_ref());
        let update = status.and_then(|status| status.update_revision.as_ref());
        match (&pod.revision, &stage.status.stable_revision, update) {
            (Some(revision), Some(stable), _) if revision == stable => "stable",
            (Some(revision), Some(_), Some(update)) if revision != update => "superseded",
            (Some(_), Some(_), _) => "new",
            _ => "",
        }
    }

    fn pods(&self, stage: &Stage<'_>, style: Style, now: Timestamp) -> Vec<String> {
        let groups = if self.pods.len() > UNFOLDED {
            fold(&self.pods)
        } else {
            self.pods.iter().map(std::slice::from_ref).collect()
        };
        let row = |group: &&[PodRow]| {
            let pod = group.first()?;
            let role = self.role(pod, stage);
            let name = match group.last() {
                Some(last) if last.ordinal != pod.ordinal => {
                    format!("pod/{}..{} ({} pods)", pod.name, last.ordinal, group.len())
                }
                _ => format!("pod/{}", pod.name),
            };
            Some(vec![
                name,
                pod.revision.clone().unwrap_or_else(|| "-".into()),
                role.into(),
                style.state(&pod.state),
                match pod.restarts {
                    1 => "1 restart".into(),
                    restarts => format!("{restarts} restarts"),
                },
                age(pod.created, now),
            ])
        };
        columns(&groups.iter().filter_map(row).collect::<Vec<_>>())
    }
}

fn fork(index: usize, count: usize, lines: &Lines) -> &'static str {
    if index + 1 == count {
        lines.last
    } else {
        lines.branch
    }
}

/// Groups adjacent pods that are Ready and similar; any other pod is alone.
fn fold(pods: &[PodRow]) -> Vec<&[PodRow]> {
    let alike = |one: &PodRow, next: &PodRow| {
        let quiet = |pod: &PodRow| pod.is_ready() && pod.restarts == 0;
        quiet(one) && quiet(next) && one.revision == next.revision && next.ordinal == one.ordinal + 1
    };
    pods.chunk_by(alike).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{NOW, commands, paused, phased, pods, returning, set, unseen};
    use rstest::rstest;
    use serde_json::json;

    fn draw(picture: &Picture, style: Style) -> String {
        picture
            .draw(style, NOW.parse().unwrap(), "stateward -n prod")
            .join("\n")
    }

    #[test]
    fn a_paused_rollout_shows_its_step_and_its_pods() {
        let picture = Picture {
            rollout: paused(),
            set: Some(set("db", 4)),
            unread: None,
            unseen_pods: None,
            pods: pods("db", &["db-1", "db-1", "db-1", "db-1", "db-2"]),
            runs: Vec::new(),
        };
        assert_eq!(
            draw(&picture, Style::default()),
            "\
rolloutplugin/db   Paused   step 2 of 4, 20% to db-2, for 3m10s
  step 2 of 4: paused; go on with: stateward -n prod promote db --revision db-2
├─ steps
│  ├─ ✓ setWeight 20
│  ├─ ▶ pause until promoted, for 3m10s
│  ├─ · setWeight 60
│  └─ · pause 5m
└─ statefulset/db   partition 4, 5 of 5 ready, stable db-1, new db-2
   ├─ pod/db-0   db-1   stable   Ready   0 restarts   5m
   ├─ pod/db-1   db-1   stable   Ready   0 restarts   5m
   ├─ pod/db-2   db-1   stable   Ready   0 restarts   5m
   ├─ pod/db-3   db-1   stable   Ready   0 restarts   5m
   └─ pod/db-4   db-2   new      Ready   0 restarts   5m"
        );
    }

    #[test]
    fn five_pods_that_go_one_after_the_other_fit_on_one_screen() {
        let picture = Picture {
            rollout: phased(5, 1),
            set: Some(set("web", 4)),
            unread: None,
            unseen_pods: None,
            pods: pods("web", &["web-1", "web-1", "web-1", "web-1", "web-2"]),
            runs: Vec::new(),
        };
        let drawn = draw(&picture, Style::default());
        assert!(drawn.lines().count() < 24, "{drawn}");
        let steps: Vec<_> = drawn.lines().skip(2).take(7).collect();
        assert_eq!(
            steps,
            [
                "├─ steps",
                "│  ├─ ▶ pod web-4, for 20s: waits for it to be available",
                "│  ├─ · gate, pod web-3",
                "│  ├─ · gate, pod web-2",
                "│  ├─ · gate, pod web-1",
                "│  ├─ · gate, pod web-0",
                "│  └─ · gate after the last pod",
            ]
        );
    }

    #[test]
    fn a_template_that_nobody_has_looked_at_is_told() {
        let mut ahead = set("db", 4);
        let status = ahead.status.as_mut().unwrap();
        status.update_revision = Some("db-3".into());
        status.observed_generation = ahead.metadata.generation;
        let picture = Picture {
            rollout: paused(),
            set: Some(ahead),
            unread: None,
            unseen_pods: None,
            pods: Vec::new(),
            runs: Vec::new(),
        };
        let drawn = draw(&picture, Style::default());
        let lines: Vec<_> = drawn.lines().take(3).collect();
        assert_eq!(
            lines,
            [
                "rolloutplugin/db   Progressing   step 2 of 4, 20% to db-2, for 3m10s",
                "  the latest change of statefulset db has not been looked at yet; is an operator running?",
                "  before that: step 2 of 4: paused",
            ]
        );
    }

    #[test]
    fn a_version_whose_place_another_has_taken_is_not_the_new_one() {
        let picture = Picture {
            rollout: paused(),
            set: Some(set("db", 5)),
            unread: None,
            unseen_pods: None,
            pods: pods("db", &["db-0", "db-1", "db-2"]),
            runs: Vec::new(),
        };
        let drawn = draw(&picture, Style::default());
        let roles: Vec<_> = drawn
            .lines()
            .filter(|line| line.contains("pod/"))
            .filter_map(|line| line.split_whitespace().nth(3))
            .collect();
        assert_eq!(roles, ["superseded", "stable", "new"]);
    }

    #[test]
    fn at_rest_after_a_rollout_its_steps_are_behind_it() {
        let mut rollout = paused();
        let status = rollout.status.get_or_insert_default();
        status.current_step_started_at = None;
        let past = |outcome: &str| {
            let past = json!([{"revision": "db-2", "outcome": outcome, "endedAt": NOW}]);
            serde_json::from_value(past).unwrap()
        };
        status.history = past("Successful");
        let mut picture = Picture {
            rollout,
            set: None,
            unread: None,
            unseen_pods: None,
            pods: Vec::new(),
            runs: Vec::new(),
        };
        assert!(draw(&picture, Style::default()).contains("✓ pause 5m"));
        picture.rollout.status.get_or_insert_default().history = past("Aborted");
        assert!(draw(&picture, Style::default()).contains("· setWeight 20"));
    }

    /// During a rollout, and after it.
    #[rstest]
    #[case::in_the_middle(&[("promote", 1, 2, None), ("skip", 2, 3, Some("alice"))], Some(3), &[
        "✓ setWeight 20", "✓ pause until promoted", "» setWeight 60, skipped by alice", "▶ pause 5m, for 3m10s",
    ])]
    #[case::at_the_end(&[("promote --full", 1, 4, None)], Some(4), &[
        "✓ setWeight 20", "» pause until promoted, skipped", "» setWeight 60, skipped", "» pause 5m, skipped",
    ])]
    #[case::at_rest(&[("promote --full --force", 0, 4, Some("alice"))], None, &[
        "» setWeight 20, skipped by alice", "» pause until promoted, skipped by alice", "» setWeight 60, skipped by alice",
        "» pause 5m, skipped by alice",
    ])]
    fn steps_that_were_skipped_are_not_shown_as_passed(
        #[case] taken: &[(&str, i32, i32, Option<&str>)],
        #[case] step: Option<i32>,
        #[case] expected: &[&str],
    ) {
        let mut rollout = paused();
        let status = rollout.status.get_or_insert_default();
        match step {
            Some(step) => {
                status.current_step_index = Some(step);
                status.taken_commands = commands(taken);
            }
            None => {
                status.current_step_started_at = None;
                let past = json!([{"revision": "db-2", "outcome": "Successful", "endedAt": NOW}]);
                status.history = serde_json::from_value(past).unwrap();
                status.history[0].taken_commands = commands(taken);
            }
        }
        let picture = Picture {
            rollout,
            set: None,
            unread: None,
            unseen_pods: None,
            pods: Vec::new(),
            runs: Vec::new(),
        };
        let drawn = draw(&picture, Style::default());
        let steps = drawn.lines().skip(3).take(4);
        let steps: Vec<_> = steps.filter_map(|line| line.split("─ ").nth(1)).collect();
        assert_eq!(steps, expected);
        if step == Some(4) {
            assert!(
                drawn.contains("Paused   steps 2 to 4 of 4 skipped, 100% to db-2"),
                "{drawn}"
            );
        }
    }

    #[test]
    fn a_broken_pod_says_why_and_ascii_will_do() {
        let mut rows = pods("queue", &["queue-1", "queue-2"]);
        rows[1].state = "CrashLoopBackOff".into();
        rows[1].restarts = 3;
        let picture = Picture {
            rollout: returning(),
            set: None,
            unread: None,
            unseen_pods: None,
            pods: rows,
            runs: Vec::new(),
        };
        let style = Style {
            ascii: true,
            colour: false,
        };
        assert_eq!(
            draw(&picture, style),
            "\
rolloutplugin/queue   Failed (RollingBack)   returning from queue-2, for 70s
  queue-2 was rejected (aborted by a user): returning every pod to queue-1, 4 of 5 are there
|- steps
|  |- . setWeight 20
|  |- . pause until promoted
|  |- . setWeight 60
|  `- . pause 5m
`- statefulset/queue   cannot be seen
   |- pod/queue-0   queue-1   stable   Ready              0 restarts   5m
   `- pod/queue-1   queue-2   new      CrashLoopBackOff   3 restarts   5m"
        );
    }

    #[test]
    fn pods_that_may_not_be_seen_hide_nothing_else() {
        let picture = Picture {
            rollout: paused(),
            set: Some(set("db", 4)),
            unread: None,
            unseen_pods: Some("you may not".into()),
            pods: Vec::new(),
            runs: Vec::new(),
        };
        let drawn = draw(&picture, Style::default());
        assert!(drawn.starts_with("rolloutplugin/db   Paused"), "{drawn}");
        assert!(
            drawn.ends_with("└─ its pods cannot be seen: you may not"),
            "{drawn}"
        );
    }

    #[test]
    fn a_rollout_that_nobody_looked_at_says_so() {
        let picture = Picture {
            rollout: unseen(),
            set: None,
            unread: None,
            unseen_pods: None,
            pods: Vec::new(),
            runs: Vec::new(),
        };
        assert!(draw(&picture, Style::default()).contains("no operator has looked at it yet"));
    }

    #[test]
    fn a_spec_without_a_plan_and_a_deletion_are_said_plainly() {
        let mut rollout = paused();
        rollout.plan = None;
        rollout.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
            NOW.parse().unwrap(),
        ));
        let picture = Picture {
            rollout,
            set: None,
            unread: None,
            unseen_pods: None,
            pods: Vec::new(),
            runs: Vec::new(),
        };
        let drawn = draw(&picture, Style::default());
        let headline = drawn.lines().next().unwrap();
        assert_eq!(
            headline,
            "rolloutplugin/db   Paused   step 2 of 4, to db-2, for 3m10s, being deleted"
        );
    }

    #[test]
    fn a_run_shows_what_was_measured() {
        let run = serde_json::json!({
            "apiVersion": "argoproj.io/v1alpha1", "kind": "AnalysisRun",
            "metadata": {"name": "db-2-1-3fa9c1", "creationTimestamp": "2026-01-01T00:09:40Z"},
            "spec": {"metrics": [
                {"name": "errors", "interval": "5s", "count": 5, "provider": {}}, {"name": "smoke", "provider": {}},
            ]},
            "status": {"phase": "Running", "metricResults": [
                {
                    "name": "errors", "phase": "Running", "count": 2, "failed": 1,
                    "measurements": [{"phase": "Failed", "value": "[0.2]"}],
                },
                {"name": "smoke", "phase": "Pending"},
            ]},
        });
        let picture = Picture {
            rollout: paused(),
            set: None,
            unread: None,
            unseen_pods: None,
            pods: Vec::new(),
            runs: vec![serde_json::from_value(run).unwrap()],
        };
        let drawn = draw(&picture, Style::default());
        let lines: Vec<_> = drawn.lines().filter(|line| line.contains("analysis")).collect();
        assert_eq!(
            lines,
            [
                "├─ analysis",
                "│  ├─ analysisrun/db-2-1-3fa9c1   errors   Running   2 of 5 measured, 1 failed, last [0.2]   20s",
                "│  └─ analysisrun/db-2-1-3fa9c1   smoke    Pending   0 of 1 measured                         20s",
            ]
        );
    }

    #[test]
    fn many_pods_are_folded_but_never_one_that_is_unwell() {
        let revisions = ["db-1"; 500];
        let mut rows = pods("db", &revisions);
        rows[250].state = "NotReady".into();
        rows[499].revision = Some("db-2".into());
        let picture = Picture {
            rollout: paused(),
            set: None,
            unread: None,
            unseen_pods: None,
            pods: rows,
            runs: Vec::new(),
        };
        let drawn = draw(&picture, Style::default());
        let pods: Vec<_> = drawn.lines().filter(|line| line.contains("pod/")).collect();
        assert_eq!(
            pods,
            [
                "   ├─ pod/db-0..249 (250 pods)     db-1   stable   Ready      0 restarts   5m",
                "   ├─ pod/db-250                   db-1   stable   NotReady   0 restarts   5m",
                "   ├─ pod/db-251..498 (248 pods)   db-1   stable   Ready      0 restarts   5m",
                "   └─ pod/db-499                   db-2   new      Ready      0 restarts   5m",
            ]
        );
    }

    #[test]
    fn colour_is_only_where_it_was_asked_for() {
        let picture = Picture {
            rollout: paused(),
            set: None,
            unread: None,
            unseen_pods: None,
            pods: Vec::new(),
            runs: Vec::new(),
        };
        let colour = Style {
            colour: true,
            ascii: false,
        };
        let written = |style| {
            let lines = picture.draw(style, NOW.parse().unwrap(), "stateward -n prod");
            let lines = lines
                .iter()
                .map(|line| stateward_terminal::line(line, Default::default()));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert!(!written(Style::default()).contains('\x1b'));
        assert!(written(colour).contains("\x1b[33mPaused\x1b[0m"));
    }
}
