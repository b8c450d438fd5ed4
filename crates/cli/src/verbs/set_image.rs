//! `set image`: changes the images of the StatefulSet's containers.

use std::path::PathBuf;
use std::str::FromStr;

use serde_json::{Value, json};

use crate::consequence;
use crate::dry_run::{DryRun, DryRunFlag};
use crate::error::Error;
use crate::exit::{self, Exit};
use crate::input::access::Access;
use crate::input::name::Name;
use crate::input::revision_guard::TemplateRevision;
use crate::input::target::{Targets, each};
use crate::revisions::images;
use crate::session::Session;
use crate::workload::same;

/// `set …`
#[derive(Debug, clap::Subcommand)]
pub enum Set {
    /// Change images of the StatefulSet's containers, which starts a rollout
    Image(Args),
}

/// `set image …`
#[derive(Debug, clap::Args)]
#[command(after_help = exit::CHANGE_HELP)]
pub struct Args {
    /// The rollouts: NAME, rp/NAME, phased/NAME, or sts/NAME for the rollout of that StatefulSet; and the containers with their images,
    /// including init containers; * is every container
    #[arg(value_name = "NAME|CONTAINER=IMAGE", required = true, add = crate::verbs::completion::rollout_names())]
    words: Vec<Word>,
    /// All rollouts with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR", conflicts_with_all = ["all", "filename"])]
    selector: Option<String>,
    /// All rollouts of the namespace
    #[arg(long, conflicts_with = "filename")]
    all: bool,
    /// The rollouts in this manifest, or of the StatefulSets in it; - is standard input
    #[arg(short = 'f', long, value_name = "FILE")]
    filename: Option<PathBuf>,
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

    /// Splits the words into rollouts and images.
    fn sorted(self) -> Result<(Targets, Vec<Assignment>, TemplateRevision), String> {
        let (mut names, mut images) = (Vec::new(), Vec::new());
        for word in self.words {
            match word {
                Word::Name(name) => names.push(name),
                Word::Image(image) => images.push(image),
            }
        }
        let chosen = self.selector.is_some() || self.all || self.filename.is_some();
        if images.is_empty() {
            return Err("say which container gets which image, such as db=db:2.0".into());
        }
        if names.is_empty() != chosen {
            return Err("say which rollout: by its NAME, or without one by -l, --all or -f".into());
        }
        let targets = Targets {
            names,
            selector: self.selector,
            all: self.all,
            filename: self.filename,
        };
        Ok((targets, images, self.pin))
    }
}

/// A rollout, or an image assignment: only the latter contains a `=`.
#[derive(Clone, Debug)]
enum Word {
    Name(Name),
    Image(Assignment),
}

impl FromStr for Word {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('=') {
            text.parse().map(Self::Image)
        } else {
            text.parse().map(Self::Name)
        }
    }
}

/// `db=db:2.0`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assignment {
    container: String,
    image: String,
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((container, image)) if !container.is_empty() && !image.is_empty() => Ok(Self {
                container: container.to_owned(),
                image: image.to_owned(),
            }),
            _ => Err("it takes a container and an image, such as db=db:2.0".into()),
        }
    }
}

pub(crate) async fn run(args: Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    let dry_run = args.dry_run.dry_run;
    let (targets, images, pin) = args.sorted().map_err(Error::Refused)?;
    let names = session.names(&targets).await?;
    let pinned = pin.of(&names)?;
    let exits = each(&names, session, async |name, session| {
        set_image(name, &images, pinned, dry_run, session).await
    });
    Ok(Exit::worst(&exits.await?))
}

async fn set_image(
    name: &Name,
    assigned: &[Assignment],
    pinned: Option<&str>,
    dry_run: DryRun,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let workload = session.workload(name).await?;
    session.pinned(&workload, pinned).await?;
    consequence::objection(&workload.rollout).map_err(Error::Refused)?;
    let before = workload.template();
    let after = assign(&before, assigned)
        .map_err(|why| Error::Refused(format!("statefulset {} {why}", workload.rollout.workload)))?;
    if same(&before, &after) {
        session.say(&format!(
            "statefulset {} has these images already; nothing was changed",
            workload.rollout.workload
        ));
        return Ok(Exit::Done);
    }
    session.give_template(&workload, &after, dry_run).await?;
    let stable = workload
        .stable_template
        .as_ref()
        .is_some_and(|stable| same(stable, &after));
    let version = images(&after).join(", ");
    let effect = consequence::in_words(&workload.rollout, &version, stable, session.program);
    session.say(&dry_run.effect(&effect));
    session.print(&format!(
        "{} image updated{}",
        workload.set_name(),
        dry_run.suffix()
    ))?;
    Ok(Exit::Done)
}

/// The template with these images. Unknown containers are an error, and nothing is changed.
fn assign(template: &Value, images: &[Assignment]) -> Result<Value, String> {
    let mut template = template.clone();
    let there = names(&template);
    for Assignment { container, image } in images {
        if container != "*" && !there.contains(container) {
            return Err(format!(
                "has no container {container:?}; there is {}; nothing was changed",
                there.join(", ")
            ));
        }
        for list in ["containers", "initContainers"] {
            let containers = template.pointer_mut(&format!("/spec/{list}"));
            for one in containers.and_then(Value::as_array_mut).into_iter().flatten() {
                let named = one.get("name").and_then(Value::as_str) == Some(container);
                if named || container == "*" {
                    one["image"] = json!(image);
                }
            }
        }
    }
    Ok(template)
}

/// The container names of a template, init containers last.
fn names(template: &Value) -> Vec<String> {
    let list = |field: &str| {
        template
            .pointer(&format!("/spec/{field}"))
            .and_then(Value::as_array)
    };
    let all = list("containers")
        .into_iter()
        .chain(list("initContainers"))
        .flatten();
    all.filter_map(|container| container.get("name")?.as_str().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn template() -> Value {
        json!({"spec": {
            "containers": [{"name": "db", "image": "db:1"}, {"name": "log", "image": "log:1"}],
            "initContainers": [{"name": "fill", "image": "fill:1"}],
        }})
    }

    fn assigned(words: &[&str]) -> Result<Vec<String>, String> {
        let images_of: Vec<Assignment> = words.iter().map(|word| word.parse().unwrap()).collect();
        assign(&template(), &images_of).map(|template| images(&template))
    }

    #[rstest]
    #[case(&["db=db:2"], &["db:2", "log:1", "fill:1"])]
    #[case(&["fill=fill:2", "log=log:2"], &["db:1", "log:2", "fill:2"])]
    #[case(&["*=x:2"], &["x:2", "x:2", "x:2"])]
    #[case(&["*=x:2", "db=a.b/c@sha256:0=1"], &["a.b/c@sha256:0=1", "x:2", "x:2"])]
    fn containers_get_their_images(#[case] words: &[&str], #[case] expected: &[&str]) {
        assert_eq!(assigned(words).unwrap(), expected);
    }

    #[test]
    fn a_container_that_is_not_there_names_those_that_are() {
        assert_eq!(
            assigned(&["db=db:2", "web=web:2"]).unwrap_err(),
            "has no container \"web\"; there is db, log, fill; nothing was changed"
        );
    }

    #[rstest]
    #[case("db")]
    #[case("db=")]
    #[case("=db:2")]
    fn an_assignment_has_two_sides(#[case] text: &str) {
        assert!(text.parse::<Assignment>().is_err());
    }
}
