//! Which rollouts a verb is about: by name, by labels, by manifest, or all of the namespace.

use std::path::PathBuf;

use futures::future::join_all;
use kube::api::{DynamicObject, ListParams};

use crate::error::Error;
use crate::manifest;
use crate::name::{Name, after_a_kind};
use crate::session::Session;

/// One rollout or several.
#[derive(Debug, clap::Args)]
#[group(id = "which", required = true, multiple = false)]
pub(crate) struct Targets {
    /// The rollouts: NAME, rp/NAME, phased/NAME, or sts/NAME for what rolls that StatefulSet
    #[arg(value_name = "NAME", add = crate::completion::rollout_names())]
    names: Vec<Name>,
    /// Those with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    /// All of the namespace
    #[arg(long)]
    all: bool,
    /// Those that this manifest has, or whose StatefulSets it has; - is standard input
    #[arg(short = 'f', long, value_name = "FILE")]
    filename: Option<PathBuf>,
}

impl Targets {
    /// Whether nobody has named each of them.
    pub(crate) fn is_bulk(&self) -> bool {
        self.selector.is_some() || self.all
    }

    /// `with app=db in namespace prod`, for when there are none.
    pub(crate) fn in_words(&self, session: &Session<'_>) -> String {
        let labels = self.selector.as_ref();
        let labels = labels.map_or_else(String::new, |labels| format!("with {labels} "));
        format!("{labels}in namespace {}", session.namespace)
    }
}

impl Session<'_> {
    /// Each of them as it is now, or why it cannot be had. In the order in which they were named.
    pub(crate) async fn whole_targets(
        &self,
        targets: &Targets,
    ) -> Result<Vec<Result<DynamicObject, Error>>, Error> {
        if targets.is_bulk() {
            let params = match &targets.selector {
                Some(selector) => ListParams::default().labels(selector),
                None => ListParams::default(),
            };
            let objects = self.list(false, &params).await?;
            return Ok(objects.into_iter().map(Ok).collect());
        }
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
        let names = named.iter().chain(&written);
        Ok(join_all(names.map(|name| self.whole_rollout(name))).await)
    }
}
