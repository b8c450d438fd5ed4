//! `undo`: restores the template of a former revision.

use serde_json::Value;
use stateward_core::memory::Activity;

use crate::consequence;
use crate::dry_run::{DryRun, DryRunFlag};
use crate::error::Error;
use crate::exit::{self, Exit};
use crate::input::access::Access;
use crate::input::name::Name;
use crate::input::revision_guard::{self, TemplateRevision};
use crate::input::target::{Targets, each};
use crate::outcome::{self, Outcome};
use crate::revisions::{Revision, images, number};
use crate::session::Session;
use crate::stage::Stage;
use crate::workload::{Workload, same};

/// `undo …`
#[derive(Debug, clap::Args)]
#[command(after_help = exit::CHANGE_HELP)]
pub struct Args {
    #[command(flatten)]
    targets: Targets,
    /// The revision to restore, by its number in the history; default: the stable one while another is rolled out or was rejected,
    /// otherwise the previous one
    #[arg(long, value_name = "NUMBER", value_parser = number, conflicts_with_all = ["selector", "all"], add = crate::verbs::completion::revisions())]
    to_revision: Option<i64>,
    #[command(flatten)]
    pin: TemplateRevision,
    #[command(flatten)]
    dry_run: DryRunFlag,
    #[command(flatten)]
    access: Access,
}

impl Args {
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }
}

pub(crate) async fn run(args: Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    let dry_run = args.dry_run.dry_run;
    let names = session.names(&args.targets).await?;
    // 0 is the previous revision, as with kubectl.
    let wanted = args.to_revision.filter(|wanted| *wanted != 0);
    if wanted.is_some() && names.len() > 1 {
        return Err(Error::Refused(
            "--to-revision is a number of one history; name one rollout".into(),
        ));
    }
    let pinned = args.pin.of(&names)?;
    let exits = each(&names, session, async |name, session| {
        undo(name, wanted, pinned, dry_run, session).await
    });
    Ok(Exit::worst(&exits.await?))
}

async fn undo(
    name: &Name,
    wanted: Option<i64>,
    pinned: Option<&str>,
    dry_run: DryRun,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let workload = session.workload(name).await?;
    consequence::objection(&workload.rollout).map_err(Error::Refused)?;
    let revisions = session.revisions(&workload.set).await?;
    if let Some(pinned) = pinned {
        revision_guard::templated(pinned, &workload, &revisions)?;
    }
    let goal = choose(&workload, &revisions, wanted, session.program).map_err(Error::Refused)?;
    session.give_template(&workload, &goal.template, dry_run).await?;
    let effect = consequence::in_words(&workload.rollout, &goal.title, goal.stable, session.program);
    session.say(&dry_run.effect(&effect));
    session.print(&format!(
        "{} rolled back{}",
        workload.set_name(),
        dry_run.suffix()
    ))?;
    Ok(Exit::Done)
}

/// The revision to restore.
#[derive(Debug, PartialEq)]
struct Goal {
    /// `revision 3 (db-6fcd48db58) with db:2.1`
    title: String,
    template: Value,
    /// Whether it is the stable version.
    stable: bool,
}

fn choose(
    workload: &Workload,
    revisions: &[Revision],
    wanted: Option<i64>,
    program: &str,
) -> Result<Goal, String> {
    let rollout = &workload.rollout;
    let stage = Stage::of(rollout);
    let stable = stage.status.stable_revision.as_deref();
    let name = rollout.name_any();
    let goal = |revision: &Revision| Goal {
        title: titled(revision.title(), &revision.template),
        template: revision.template.clone(),
        stable: Some(revision.name.as_str()) == stable,
    };
    let now = workload.template();
    if let Some(wanted) = wanted {
        let found = revisions.iter().find(|revision| revision.number == wanted);
        let Some(found) = found else {
            let numbers: Vec<_> = revisions
                .iter()
                .map(|revision| revision.number.to_string())
                .collect();
            return Err(format!(
                "there is no revision {wanted} of statefulset {}; there is {}; see: {program} history {name}",
                rollout.workload,
                numbers.join(", ")
            ));
        };
        if same(&found.template, &now) {
            return Err(format!(
                "statefulset {} has the template of {} already; nothing was changed",
                rollout.workload,
                found.title()
            ));
        }
        return Ok(goal(found));
    }
    // A revision is being rolled out, or was rejected and is still in the template: undo restores the stable one.
    let away = !matches!(stage.activity, Activity::Idle) || stage.status.aborted;
    if away && stage.status.updated_revision.as_deref() != stable {
        let Some(stable) = stable else {
            return Err(format!(
                "{} has no stable version yet to go back to",
                rollout.title()
            ));
        };
        let is_stable = |revision: &&Revision| match &workload.stable_template {
            Some(template) => same(&revision.template, template),
            None => revision.name == stable,
        };
        let goal = match (revisions.iter().rev().find(is_stable), &workload.stable_template) {
            (Some(kept), _) => Goal {
                stable: true,
                ..goal(kept)
            },
            // Kubernetes has deleted it, but the operator has a copy.
            (None, Some(template)) => Goal {
                title: titled(stable.to_owned(), template),
                template: template.clone(),
                stable: true,
            },
            (None, None) => return Err(format!("there is no copy of the template of {stable} any more")),
        };
        if same(&goal.template, &now) {
            return Err(format!(
                "statefulset {} has the stable template of {stable} already; nothing was changed",
                rollout.workload
            ));
        }
        return Ok(goal);
    }
    let former = revisions.iter().rev();
    let former: Vec<_> = former
        .filter(|revision| !same(&revision.template, &now))
        .map(|revision| (revision, outcome::of(&revision.name, false, rollout)))
        .collect();
    let of = |how: fn(&Outcome) -> bool| former.iter().find(|(_, outcome)| how(outcome));
    let good = of(|outcome| {
        matches!(
            outcome,
            Outcome::Stable | Outcome::Completed(_) | Outcome::TakenOn(_)
        )
    });
    let untold = || of(|outcome| matches!(outcome, Outcome::Unknown));
    match (good.or_else(untold), former.first()) {
        (Some((before, _)), _) => Ok(goal(before)),
        (None, Some((last, outcome))) => Err(format!(
            "no former revision of statefulset {} has ever run on every pod; the last one, {}, was {}; to roll it again: \
             {program} undo {name} --to-revision {}{}",
            rollout.workload,
            goal(last).title,
            outcome.in_a_word(),
            last.number,
            revision_guard::current(workload, revisions)
                .map_or_else(String::new, |now| format!(" --revision {}", now.name))
        )),
        (None, None) => Err(format!(
            "statefulset {} has no former revision to go back to",
            rollout.workload
        )),
    }
}

/// `revision 3 (db-6fcd48db58) with db:2.1`
fn titled(title: String, template: &Value) -> String {
    match images(template).as_slice() {
        [] => title,
        images => format!("{title} with {}", images.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{aborted, at_rest, paused, replaced};
    use crate::rollout::Rollout;
    use rstest::rstest;
    use serde_json::json;

    fn revisions(set: &str, count: i64) -> Vec<Revision> {
        let revision = |number: i64| Revision {
            number,
            name: format!("{set}-{number}"),
            created: None,
            cause: None,
            template: json!({"version": number}),
        };
        (1..=count).map(revision).collect()
    }

    /// No rollout in progress, on this version.
    fn resting(version: i64) -> Rollout {
        let mut rollout = at_rest();
        let status = rollout.status.get_or_insert_default();
        status.stable_revision = Some(format!("cache-{version}"));
        rollout
    }

    /// No rollout in progress, with a history of a successful, a rejected and a replaced revision.
    fn tried() -> Rollout {
        let mut rollout = resting(4);
        let past = json!([
            {"revision": "cache-3", "outcome": "Replaced", "endedAt": "2026-01-01T00:03:00Z"},
            {"revision": "cache-2", "outcome": "Aborted", "endedAt": "2026-01-01T00:02:00Z"},
            {"revision": "cache-1", "outcome": "TakenOn", "endedAt": "2026-01-01T00:01:00Z"},
        ]);
        let status = rollout.status.get_or_insert_default();
        status.history = serde_json::from_value(past).unwrap();
        rollout
    }

    #[test]
    fn what_it_goes_back_to_is_told_with_its_images() {
        let template = json!({"spec": {"containers": [{"image": "db:2.1"}, {"image": "agent:1"}]}});
        assert_eq!(
            titled("revision 3 (db-3)".into(), &template),
            "revision 3 (db-3) with db:2.1 and agent:1"
        );
    }

    fn workload(rollout: Rollout, version: i64, copy: Option<i64>) -> Workload {
        let set = json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": rollout.workload},
            "spec": {"template": {"version": version, "null": null}},
        });
        Workload {
            rollout,
            stable_template: copy.map(|version| json!({"version": version})),
            set: serde_json::from_value(set).unwrap(),
        }
    }

    #[rstest]
    #[case::to_the_stable_one_in_the_middle(paused(), 2, revisions("db", 3), None, "revision 1 (db-1)")]
    #[case::to_the_stable_one_that_kubernetes_forgot(paused(), 2, Vec::new(), None, "db-1")]
    #[case::away_from_what_was_turned_down(aborted(), 2, revisions("queue", 2), None, "revision 1 (queue-1)")]
    #[case::to_the_one_before(resting(3), 3, revisions("cache", 3), None, "revision 2 (cache-2)")]
    #[case::never_to_what_was_turned_down(replaced(), 3, revisions("queue", 3), None, "revision 1 (queue-1)")]
    #[case::never_to_what_was_left_off(tried(), 4, revisions("cache", 4), None, "revision 1 (cache-1)")]
    #[case::to_any_that_is_asked_for(at_rest(), 3, revisions("cache", 3), Some(1), "revision 1 (cache-1)")]
    fn it_goes_back_to(
        #[case] rollout: Rollout,
        #[case] version: i64,
        #[case] revisions: Vec<Revision>,
        #[case] wanted: Option<i64>,
        #[case] expected: &str,
    ) {
        let workload = workload(rollout, version, Some(1));
        let goal = choose(&workload, &revisions, wanted, "stateward");
        assert_eq!(goal.unwrap().title, expected);
    }

    /// The status names the stable revision, but more users can write the status than the copy.
    #[rstest]
    #[case::what_the_status_names(None, "revision 1 (db-1)")]
    #[case::what_the_copy_keeps(Some(3), "revision 3 (db-3)")]
    #[case::a_copy_of_what_kubernetes_forgot(Some(7), "db-1")]
    fn the_copy_says_what_the_stable_version_is(#[case] copy: Option<i64>, #[case] expected: &str) {
        let workload = workload(paused(), 2, copy);
        let goal = choose(&workload, &revisions("db", 3), None, "stateward").unwrap();
        assert_eq!((goal.title.as_str(), goal.stable), (expected, true));
    }

    #[rstest]
    #[case(
        at_rest(),
        3,
        revisions("cache", 3),
        Some(7),
        "there is no revision 7 of statefulset cache; there is 1, 2, 3; see: stateward history cache"
    )]
    #[case(
        at_rest(),
        3,
        revisions("cache", 3),
        Some(3),
        "statefulset cache has the template of revision 3 (cache-3) already; nothing was changed"
    )]
    #[case(
        at_rest(),
        1,
        revisions("cache", 1),
        None,
        "statefulset cache has no former revision to go back to"
    )]
    #[case(
        replaced(),
        1,
        revisions("queue", 2),
        None,
        "no former revision of statefulset queue has ever run on every pod; the last one, revision 2 (queue-2), was rejected; to roll it again: stateward undo queue --to-revision 2 --revision queue-1"
    )]
    #[case(
        paused(),
        1,
        revisions("db", 2),
        None,
        "statefulset db has the stable template of db-1 already; nothing was changed"
    )]
    fn it_says_why_there_is_no_way(
        #[case] rollout: Rollout,
        #[case] version: i64,
        #[case] revisions: Vec<Revision>,
        #[case] wanted: Option<i64>,
        #[case] expected: &str,
    ) {
        let workload = workload(rollout, version, Some(1));
        let goal = choose(&workload, &revisions, wanted, "stateward");
        assert_eq!(goal.unwrap_err(), expected);
    }
}
