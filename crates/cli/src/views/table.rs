//! Rollouts as rows.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::StatefulSet;
use stateward_clock::human_duration;

use crate::rollout::Rollout;
use crate::stage::{Stage, share};
use crate::unseen::{self, Sets};
use crate::verbs::status::WAITING_FOR_OPERATOR;
use crate::views::columns::{self, columns};
use crate::views::hint;
use crate::views::style::Style;

/// What the table has to show.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct View<'p> {
    pub(crate) namespaces: bool,
    /// There are several kinds.
    pub(crate) kinds: bool,
    pub(crate) wide: bool,
    /// How the user invoked the program.
    pub(crate) program: &'p str,
}

impl<'p> View<'p> {
    pub(crate) fn wide(program: &'p str) -> Self {
        Self {
            wide: true,
            program,
            ..Self::default()
        }
    }
}

/// One line per rollout, under a heading.
pub(crate) fn table(
    rollouts: &[Rollout],
    sets: &Sets,
    view: View<'_>,
    style: Style,
    now: Timestamp,
) -> Vec<String> {
    let rows = rollouts
        .iter()
        .map(|rollout| row(rollout, sets.of(rollout), view, style, now));
    columns(&std::iter::once(heading(view)).chain(rows).collect::<Vec<_>>())
}

/// The same, without the columns that do not fit completely.
pub(crate) fn table_within(
    width: usize,
    rollouts: &[Rollout],
    view: View<'_>,
    style: Style,
    now: Timestamp,
) -> Vec<String> {
    let rows = rollouts
        .iter()
        .map(|rollout| row(rollout, None, view, style, now));
    let mut rows: Vec<_> = std::iter::once(heading(view)).chain(rows).collect();
    loop {
        let lines = columns(&rows);
        let fits = lines.iter().all(|line| columns::width(line) <= width);
        if fits || rows[0].len() <= FEWEST {
            return lines;
        }
        rows.iter_mut().for_each(|row| drop(row.pop()));
    }
}

/// The minimum number of columns: the name and the phase.
const FEWEST: usize = 2;

/// The heading.
pub(crate) fn heading(view: View<'_>) -> Vec<String> {
    let mut heading = vec![
        "NAME", "STATUS", "REASON", "STEP", "WEIGHT", "READY", "UPDATED", "REPLICAS", "AGE",
    ];
    if view.namespaces {
        heading.insert(0, "NAMESPACE");
    }
    if view.wide {
        heading.extend(["WORKLOAD", "STABLE", "REVISION", "MESSAGE"]);
    }
    heading.into_iter().map(str::to_owned).collect()
}

/// The cells of a rollout, with its StatefulSet if known.
pub(crate) fn row(
    object: &Rollout,
    set: Option<&StatefulSet>,
    view: View<'_>,
    style: Style,
    now: Timestamp,
) -> Vec<String> {
    let stage = Stage::of(object);
    let (phase, unseen) = unseen::phase(&stage, set);
    let status = &stage.status;
    let none = || "-".to_owned();
    let count = |number: Option<i32>| number.map_or_else(none, |number| number.to_string());
    let name = if view.kinds {
        format!("{}/{}", object.kind.word(), object.name_any())
    } else {
        object.name_any()
    };
    let mut row = vec![
        name,
        style.state(phase),
        match unseen {
            Some(_) => WAITING_FOR_OPERATOR.into(),
            None => stage.reason().map_or_else(none, str::to_owned),
        },
        status.step.clone().unwrap_or_else(none),
        stage.share().map_or_else(none, share),
        count(status.ready_replicas),
        count(status.updated_replicas),
        count(status.replicas),
        age(
            object.metadata.creation_timestamp.as_ref().map(|time| time.0),
            now,
        ),
    ];
    if view.namespaces {
        row.insert(0, object.namespace().unwrap_or_default());
    }
    if view.wide {
        let revision = |name: &Option<String>| name.clone().unwrap_or_else(none);
        row.extend([
            object.workload.clone(),
            revision(&status.stable_revision),
            revision(&status.updated_revision),
            unseen.unwrap_or_else(|| hint::message(&stage, view.program)),
        ]);
    }
    row
}

/// The time since a moment. The server's time has a resolution of seconds, so a moment may be slightly in the future.
pub(crate) fn age(moment: Option<Timestamp>, now: Timestamp) -> String {
    moment.map_or_else(
        || "<unknown>".into(),
        |moment| human_duration(now.duration_since(moment).max(SignedDuration::ZERO)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{self, NOW, at_rest, paused, returning};

    fn lines(view: View<'_>) -> String {
        let now = NOW.parse().unwrap();
        let rollouts = [paused(), at_rest(), returning(), fixtures::unseen()];
        table(&rollouts, &Sets::default(), view, Style::default(), now).join("\n")
    }

    #[test]
    fn a_table_tells_each_rollout_in_a_line() {
        assert_eq!(
            lines(View::default()),
            "\
NAME    STATUS        REASON               STEP   WEIGHT   READY   UPDATED   REPLICAS   AGE
db      Paused        -                    2/4    20%      5       1         5          10m
cache   Successful    -                    4/4    -        3       3         3          10m
queue   Failed        RollingBack          -      0%       4       1         5          10m
new     Progressing   WaitingForOperator   -      -        -       -         -          10m"
        );
    }

    #[test]
    fn a_column_is_there_or_not() {
        let now = NOW.parse().unwrap();
        let within = |width| {
            let lines = table_within(width, &[paused()], View::default(), Style::default(), now);
            lines.join("\n")
        };
        assert_eq!(
            within(67),
            "\
NAME   STATUS   REASON   STEP   WEIGHT   READY   UPDATED   REPLICAS
db     Paused   -        2/4    20%      5       1         5"
        );
        assert_eq!(within(5), "NAME   STATUS\ndb     Paused");
        assert!(within(80).contains("AGE"));
    }

    #[test]
    fn a_wide_table_says_why() {
        let view = View {
            namespaces: true,
            kinds: false,
            wide: true,
            program: "stateward -n prod",
        };
        assert_eq!(
            lines(view),
            "\
NAMESPACE   NAME    STATUS        REASON               STEP   WEIGHT   READY   UPDATED   REPLICAS   AGE   WORKLOAD   STABLE    REVISION   MESSAGE
prod        db      Paused        -                    2/4    20%      5       1         5          10m   db         db-1      db-2       step 2 of 4: paused; go on with: stateward -n prod promote db --revision db-2
prod        cache   Successful    -                    4/4    -        3       3         3          10m   cache      cache-1   cache-1    every pod runs cache-1
prod        queue   Failed        RollingBack          -      0%       4       1         5          10m   queue      queue-1   queue-2    queue-2 was rejected (aborted by a user): returning every pod to queue-1, 4 of 5 are there
prod        new     Progressing   WaitingForOperator   -      -        -       -         -          10m   new        -         -          no operator has looked at it yet"
        );
    }
}
