//! `--revision`: binds a command to the revision that its user saw, even if it is run much later.

use stateward_client::{ObjectName, Objects};

use crate::command::Command;
use crate::error::Error;
use crate::input::name::Name;
use crate::revisions::Revision;
use crate::rollout::{Rollout, parse};
use crate::session::Session;
use crate::stage::Stage;
use crate::verbs::completion;
use crate::verbs::status::asks_for_another;
use crate::workload::{Workload, same};

/// The flag of verbs that change the template.
#[derive(Debug, clap::Args)]
pub(crate) struct TemplateRevision {
    /// Do it only if the template is of this revision; the hash at its end is enough
    #[arg(long, value_name = "REVISION", conflicts_with_all = ["selector", "all"], add = completion::revision_names())]
    pub(crate) revision: Option<String>,
}

impl TemplateRevision {
    /// The named revision, for exactly one named rollout.
    pub(crate) fn of(&self, names: &[Name]) -> Result<Option<&str>, Error> {
        for_one(self.revision.as_deref(), names.len())
    }
}

/// Every rollout has its own revisions, so a named revision requires a single rollout.
pub(crate) fn for_one(revision: Option<&str>, rollouts: usize) -> Result<Option<&str>, Error> {
    if revision.is_some() && rollouts > 1 {
        return Err(Error::Refused(
            "--revision is of one rollout; name one; nothing was changed".into(),
        ));
    }
    Ok(revision)
}

/// Whether the user named this revision, by its name or by the hash at its end.
fn is(revision: &str, wanted: &str) -> bool {
    revision == wanted || revision.rsplit_once('-').is_some_and(|(_, hash)| hash == wanted)
}

/// Refuses to act on any revision other than the named one.
pub(crate) fn rolled(wanted: &str, seen: &Rollout) -> Result<(), Error> {
    let revision = seen
        .status
        .as_ref()
        .and_then(|status| status.updated_revision.as_deref())
        .unwrap_or("none");
    if is(revision, wanted) {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "{} is at revision {revision}, not at {wanted}; nothing was changed",
        seen.title()
    )))
}

/// The revision of a workload's template.
pub(crate) fn current<'r>(workload: &Workload, revisions: &'r [Revision]) -> Option<&'r Revision> {
    let now = workload.template();
    let mut newest = revisions.iter().rev();
    newest.find(|revision| same(&revision.template, &now))
}

/// Refuses to change the template of any revision other than the named one.
pub(crate) fn templated(wanted: &str, workload: &Workload, revisions: &[Revision]) -> Result<(), Error> {
    let set = &workload.rollout.workload;
    let at = match current(workload, revisions) {
        Some(at) if is(&at.name, wanted) => return Ok(()),
        Some(at) => format!("is at revision {}, not at {wanted}", at.name),
        None => format!("has a template that is not that of {wanted}"),
    };
    let number = wanted.parse::<i64>().ok();
    let meant = number.and_then(|number| revisions.iter().find(|revision| revision.number == number));
    let meant = meant.map_or_else(String::new, |meant| {
        format!(" (number {wanted} of its history is {})", meant.name)
    });
    Err(Error::Refused(format!(
        "statefulset {set} {at}{meant}; nothing was changed"
    )))
}

impl Session<'_> {
    /// The revision of the template, if the status has another one because no operator has seen the change yet. If the StatefulSet cannot
    /// be read, the operator refuses the command instead.
    pub(crate) async fn overtaken_by(&self, seen: &Rollout) -> Option<String> {
        let set = self.set(seen).await.ok()??;
        let overtaken = asks_for_another(&set, &Stage::of(seen));
        set.status?.update_revision.filter(|_| overtaken)
    }

    /// Refuses a command for a revision that another one has replaced.
    pub(crate) async fn not_overtaken(&self, command: Command, seen: &Rollout) -> Result<(), Error> {
        let Some(asked) = self.overtaken_by(seen).await else {
            return Ok(());
        };
        // What was read may be older than what the operator has seen since.
        let rollouts = Objects::from(self.whole_rollouts(seen.kind, false));
        let now = rollouts.get(&ObjectName::new(seen.name_any())?).await;
        let now = now.ok().flatten().and_then(|now| parse(now).ok());
        if let Some(what) = now.and_then(|now| command.moved_on(seen, &now)) {
            return Err(Error::Refused(what));
        }
        let status = seen.status.clone().unwrap_or_default();
        Err(Error::Refused(format!(
            "statefulset {} asks for {asked} now, which no operator has looked at yet; this was meant for {}; nothing was changed",
            seen.workload,
            status.updated_revision.unwrap_or_default()
        )))
    }

    /// Refuses to change the template of any revision other than the named one, if one is named.
    pub(crate) async fn pinned(&self, workload: &Workload, wanted: Option<&str>) -> Result<(), Error> {
        match wanted {
            Some(wanted) => templated(wanted, workload, &self.revisions(&workload.set).await?),
            None => Ok(()),
        }
    }
}
