//! Which rollouts a verb applies to: by name, by labels, by manifest, or all of the namespace.

use std::path::PathBuf;

use futures::future::join_all;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};

use crate::error::Error;
use crate::exit::Exit;
use crate::input::manifest;
use crate::input::name::{Name, after_a_kind};
use crate::look;
use crate::session::Session;
use crate::views::invocation;

/// One rollout or several.
#[derive(Debug, clap::Args)]
#[group(id = "which", required = true, multiple = false)]
pub(crate) struct Targets {
    /// The rollouts: NAME, rp/NAME, phased/NAME, or sts/NAME for the rollout of that StatefulSet
    #[arg(value_name = "NAME", add = crate::verbs::completion::rollout_names())]
    pub(crate) names: Vec<Name>,
    /// All rollouts with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub(crate) selector: Option<String>,
    /// All rollouts of the namespace
    #[arg(long)]
    pub(crate) all: bool,
    /// The rollouts in this manifest, or of the StatefulSets in it; - is standard input
    #[arg(short = 'f', long, value_name = "FILE")]
    pub(crate) filename: Option<PathBuf>,
}

impl Targets {
    fn params(&self) -> ListParams {
        match &self.selector {
            Some(selector) => ListParams::default().labels(selector),
            None => ListParams::default(),
        }
    }

    /// Whether the user did not name each rollout.
    pub(crate) fn is_bulk(&self) -> bool {
        self.selector.is_some() || self.all
    }

    /// Whether the user named each rollout on the command line.
    pub(crate) fn are_named(&self) -> bool {
        !self.names.is_empty()
    }

    /// `rollout db`, for a rollout that was not read yet.
    pub(crate) fn title(&self) -> String {
        match self.names.as_slice() {
            [name] => name.title(),
            _ => "every rollout".into(),
        }
    }

    /// `with app=db in namespace prod`, for an empty result.
    pub(crate) fn in_words(&self, session: &Session<'_>) -> String {
        let labels = self.selector.as_ref();
        let labels = labels.map_or_else(String::new, |labels| format!("with {labels} "));
        format!("{labels}in namespace {}", session.namespace)
    }
}

impl Session<'_> {
    /// Each rollout as it is now, or why it cannot be read, in the order in which they were named.
    pub(crate) async fn whole_targets(
        &self,
        targets: &Targets,
    ) -> Result<Vec<Result<DynamicObject, Error>>, Error> {
        if targets.is_bulk() {
            let objects = self.list(false, &targets.params()).await?;
            return Ok(objects.into_iter().map(Ok).collect());
        }
        let names = self.said(targets)?;
        Ok(join_all(names.iter().map(|name| self.whole_rollout(name))).await)
    }

    /// The names of the targets, given or listed.
    pub(crate) async fn names(&self, targets: &Targets) -> Result<Vec<Name>, Error> {
        if !targets.is_bulk() {
            return self.said(targets);
        }
        let params = targets.params();
        let objects = self.list(false, &params).await?;
        if objects.is_empty() {
            return Err(self.none_found(targets));
        }
        let name = |object: &DynamicObject| Name::of(look::kind(object), object.name_any());
        Ok(objects.iter().map(name).collect())
    }

    /// The error for an empty result.
    pub(crate) fn none_found(&self, targets: &Targets) -> Error {
        let labels = targets.selector.as_ref();
        Error::NotFound {
            name: labels.map_or_else(
                || "any rollout".into(),
                |labels| format!("a rollout with {labels}"),
            ),
            namespace: self.namespace.clone(),
            hint: format!(
                "see what is with: {} get -A",
                invocation::everywhere(self.program)
            ),
        }
    }

    fn said(&self, targets: &Targets) -> Result<Vec<Name>, Error> {
        let written = match &targets.filename {
            Some(file) => manifest::names(file, &self.namespace)?,
            None => Vec::new(),
        };
        let (kind, named) = after_a_kind(targets.names.clone()).map_err(Error::Refused)?;
        if let (Some(kind), true) = (kind, named.is_empty() && written.is_empty()) {
            return Err(Error::Refused(format!(
                "{} is a kind; name a rollout of it as {}/NAME, or say --all",
                kind.word(),
                kind.short()
            )));
        }
        Ok(named.into_iter().chain(written).collect())
    }
}

/// Runs it for each rollout in turn. An error of one rollout is reported and does not stop the others.
pub(crate) async fn each(
    names: &[Name],
    session: &mut Session<'_>,
    mut act: impl AsyncFnMut(&Name, &mut Session<'_>) -> Result<Exit, Error>,
) -> Result<Vec<Exit>, Error> {
    if let [name] = names {
        return Ok(vec![act(name, session).await?]);
    }
    let mut exits = Vec::new();
    for name in names {
        exits.push(match act(name, session).await {
            Ok(exit) => exit,
            Err(error) if error.is_nobody_listening() => return Err(error),
            Err(error) => {
                session.complain(&error);
                error.exit()
            }
        });
    }
    Ok(exits)
}
