//! `get` and `list`: a table of rollouts, or a tree of one.

use std::path::PathBuf;

use futures::future::{join, join_all};
use kube::api::{DynamicObject, ListParams};

use crate::error::Error;
use crate::exit::{self, Exit};
use crate::input::access::Access;
use crate::input::manifest;
use crate::input::name::{Name, after_a_kind};
use crate::rollout::{Kind, Rollout, parse};
use crate::session::Session;
use crate::unseen::Sets;
use crate::verbs::watch::{self, Watched};
use crate::views::live;
use crate::views::output::{self, Objects, Output};
use crate::views::table::{View, table};

/// `get …`
#[derive(Debug, clap::Args)]
#[command(after_help = exit::LOOK_HELP)]
pub struct Args {
    /// The rollouts, a single one as a tree: NAME, rp/NAME, phased/NAME, or sts/NAME for the rollout of that StatefulSet; rp or phased
    /// alone select all of that kind
    #[arg(value_name = "NAME", add = crate::verbs::completion::rollout_names())]
    names: Vec<Name>,
    /// The rollouts in this manifest, or of the StatefulSets in it; - is standard input
    #[arg(short = 'f', long, value_name = "FILE", conflicts_with_all = ["names", "all_namespaces", "selector"])]
    filename: Option<PathBuf>,
    #[command(flatten)]
    args: ListArgs,
}

/// `list …`
#[derive(Debug, clap::Args)]
#[command(after_help = exit::LIST_HELP)]
pub struct ListArgs {
    /// Look in all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only rollouts with these labels
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,
    /// Print a row for every change, until interrupted; get of one NAME on a terminal shows it on the whole screen instead, unless -o is
    /// given
    #[arg(short, long)]
    watch: bool,
    /// The output format
    #[arg(short, long, value_name = output::FORMS, add = crate::verbs::completion::one_of(&output::BEGINNINGS))]
    output: Option<Output>,
    #[command(flatten)]
    access: Access,
}

impl Args {
    pub(crate) fn access(&self) -> &Access {
        &self.args.access
    }
}

impl ListArgs {
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// Whether the output is rows or a tree instead of objects.
    fn for_people(&self) -> bool {
        matches!(self.output, None | Some(Output::Wide))
    }

    /// Whether the output is rows under a heading, of which there may be none.
    fn in_rows(&self) -> bool {
        self.for_people() || matches!(self.output, Some(Output::Columns(_)))
    }

    fn params(&self) -> ListParams {
        match &self.selector {
            Some(selector) => ListParams::default().labels(selector),
            None => ListParams::default(),
        }
    }
}

pub(crate) async fn run(args: Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    let Args {
        mut names,
        filename,
        args,
    } = args;
    let mut kind = None;
    if let Some(file) = &filename {
        names = manifest::names(file, &session.namespace)?;
    } else {
        (kind, names) = after_a_kind(names).map_err(Error::Refused)?;
    }
    if !names.is_empty() && (args.all_namespaces || args.selector.is_some()) {
        return Err(Error::Refused(
            "a name is for one rollout of one namespace; it cannot be given with -A or -l".into(),
        ));
    }
    match names.as_slice() {
        [] if filename.is_none() => {
            let kinds = kind.as_ref().map_or(&Kind::ALL[..], std::slice::from_ref);
            all(kinds, &args, session).await
        }
        [name] => one(name, &args, session).await,
        names => some(names, &args, session).await,
    }
}

pub(crate) async fn list(args: ListArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    all(&Kind::ALL, &args, session).await
}

async fn one(name: &Name, args: &ListArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let output = args.output.as_ref();
    let object = session.whole_rollout(name).await?;
    if args.watch {
        if session.terminal && output.is_none() {
            return live::run(parse(object)?, session).await;
        }
        let watched = Watched::named(std::slice::from_ref(&object));
        let sets = sets_named(std::slice::from_ref(&object), session).await;
        return rows(vec![object], &sets, watched, args, session).await;
    }
    if Objects::One(Box::new(object.clone())).print(output, session)? {
        return Ok(Exit::Done);
    }
    if output == Some(&Output::Wide) {
        let view = View::wide(session.program);
        let sets = sets_named(std::slice::from_ref(&object), session).await;
        draw(vec![object], &sets, view, session)?;
        return Ok(Exit::Done);
    }
    let picture = session.picture(parse(object)?).await?;
    let lines = picture.draw(session.style, session.clock.now(), session.program);
    session.print_lines(&lines)?;
    Ok(Exit::Done)
}

/// Shows the rollouts that exist, and reports the others.
async fn some(names: &[Name], args: &ListArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let looks = join_all(names.iter().map(|name| session.whole_rollout(name))).await;
    let (mut objects, mut missing) = (Vec::new(), None);
    for look in looks {
        match look {
            Ok(object) => objects.push(object),
            Err(error @ (Error::NotFound { .. } | Error::Unmanaged { .. })) => {
                session.complain(&error);
                missing = Some(Exit::NotFound);
            }
            Err(error) => return Err(error),
        }
    }
    if args.watch && !objects.is_empty() {
        let watched = Watched::named(&objects);
        let sets = sets_named(&objects, session).await;
        return rows(objects, &sets, watched, args, session).await;
    }
    let sets = match args.for_people() {
        true => sets_named(&objects, session).await,
        false => Sets::default(),
    };
    show(objects, &sets, args, session)?;
    Ok(missing.unwrap_or(Exit::Done))
}

async fn all(kinds: &[Kind], args: &ListArgs, session: &mut Session<'_>) -> Result<Exit, Error> {
    let params = args.params();
    let sets = async {
        match args.for_people() {
            true => session.all_sets(args.all_namespaces).await,
            false => Sets::default(),
        }
    };
    let (objects, sets) = join(session.list_of(kinds, args.all_namespaces, &params), sets).await;
    let objects = objects?;
    if args.watch {
        let (everywhere, selector) = (args.all_namespaces, args.selector.clone());
        let watched = match kinds {
            &[kind] => Watched::OfKind {
                kind,
                everywhere,
                selector,
            },
            _ => Watched::Labelled { everywhere, selector },
        };
        return rows(objects, &sets, watched, args, session).await;
    }
    if objects.is_empty() && args.in_rows() {
        session.say(&if args.all_namespaces {
            "no rollouts found".to_owned()
        } else {
            format!("no rollouts found in namespace {}", session.namespace)
        });
        return Ok(Exit::Done);
    }
    show(objects, &sets, args, session)?;
    Ok(Exit::Done)
}

/// The StatefulSets of these rollouts.
async fn sets_named(objects: &[DynamicObject], session: &Session<'_>) -> Sets {
    let rollouts: Vec<_> = objects.iter().cloned().flat_map(parse).collect();
    session.sets_of(&rollouts).await
}

fn show(
    objects: Vec<DynamicObject>,
    sets: &Sets,
    args: &ListArgs,
    session: &mut Session<'_>,
) -> Result<(), Error> {
    if objects.is_empty() && args.in_rows()
        || Objects::Many(objects.clone()).print(args.output.as_ref(), session)?
    {
        return Ok(());
    }
    let view = View {
        namespaces: args.all_namespaces,
        kinds: false,
        wide: args.output == Some(Output::Wide),
        program: session.program,
    };
    draw(objects, sets, view, session)
}

fn draw(
    objects: Vec<DynamicObject>,
    sets: &Sets,
    view: View<'_>,
    session: &mut Session<'_>,
) -> Result<(), Error> {
    let (rollouts, invalid): (Vec<_>, Vec<_>) = objects.into_iter().map(parse).partition(Result::is_ok);
    let rollouts: Vec<_> = rollouts.into_iter().flatten().collect();
    let view = View {
        kinds: mixed(&rollouts),
        ..view
    };
    let lines = table(&rollouts, sets, view, session.style, session.clock.now());
    session.print_lines(&lines)?;
    // An object that fails to deserialize must not hide the others.
    invalid.into_iter().try_for_each(|invalid| invalid.map(drop))
}

/// Whether the rollouts are of more than one kind.
fn mixed(rollouts: &[Rollout]) -> bool {
    let first = rollouts.first().map(|rollout| rollout.kind);
    rollouts.iter().any(|rollout| Some(rollout.kind) != first)
}

async fn rows(
    objects: Vec<DynamicObject>,
    sets: &Sets,
    watched: Watched,
    args: &ListArgs,
    session: &mut Session<'_>,
) -> Result<Exit, Error> {
    let kinds = {
        let first = objects.first().map(crate::look::kind);
        objects
            .iter()
            .any(|object| Some(crate::look::kind(object)) != first)
    };
    let view = View {
        namespaces: args.all_namespaces,
        kinds,
        wide: args.output == Some(Output::Wide),
        program: session.program,
    };
    watch::rows(objects, sets, &watched, view, args.output.as_ref(), session).await
}
