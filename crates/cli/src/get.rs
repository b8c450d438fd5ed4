//! `get`: a table of all, or a tree of one.

use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams};
use kube::core::TypeMeta;

use crate::access::Access;
use crate::error::Error;
use crate::exit::Exit;
use crate::name::Name;
use crate::output::{Objects, Output};
use crate::rollout::{Kind, parse};
use crate::session::Session;
use crate::table::{View, table};

/// `get …`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The rollout to show as a tree: NAME, rp/NAME or phased/NAME
    name: Option<Name>,
    /// Look in all namespaces
    #[arg(short = 'A', long, conflicts_with = "name")]
    all_namespaces: bool,
    /// Another form
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    #[command(flatten)]
    access: Access,
}

impl Args {
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }
}

pub(crate) async fn run(args: Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    match &args.name {
        Some(name) => one(name, args.output, session).await?,
        None => all(&args, session).await?,
    }
    Ok(Exit::Done)
}

async fn one(name: &Name, output: Option<Output>, session: &mut Session<'_>) -> Result<(), Error> {
    let object = session.whole_rollout(name).await?;
    match output {
        Some(Output::Json) => return session.print(&Objects::One(Box::new(object)).json()?),
        Some(Output::Yaml) => return session.print(&Objects::One(Box::new(object)).yaml()?),
        Some(Output::Name) => {
            let kind = Kind::of(object.types.as_ref());
            return session.print(&kind.full_name(name.as_str()));
        }
        Some(Output::Wide) | None => {}
    }
    let picture = session.picture(parse(object)?).await?;
    let lines = picture.draw(session.style, session.clock.now());
    session.print(&lines.join("\n"))
}

async fn all(args: &Args, session: &mut Session<'_>) -> Result<(), Error> {
    let objects = list(args.all_namespaces, session).await?;
    match args.output {
        Some(Output::Json) => return session.print(&Objects::Many(objects).json()?),
        Some(Output::Yaml) => return session.print(&Objects::Many(objects).yaml()?),
        Some(Output::Name) => {
            let names: Vec<_> = objects
                .iter()
                .map(|object| Kind::of(object.types.as_ref()).full_name(&object.name_any()))
                .collect();
            return names.iter().try_for_each(|name| session.print(name));
        }
        Some(Output::Wide) | None => {}
    }
    if objects.is_empty() {
        session.say(&if args.all_namespaces {
            "no rollouts found".to_owned()
        } else {
            format!("no rollouts found in namespace {}", session.namespace)
        });
        return Ok(());
    }
    let rollouts: Vec<_> = objects.into_iter().map(parse).collect::<Result<_, _>>()?;
    let first = rollouts.first().map(|rollout| rollout.kind);
    let view = View {
        namespaces: args.all_namespaces,
        kinds: rollouts.iter().any(|rollout| Some(rollout.kind) != first),
        wide: args.output == Some(Output::Wide),
    };
    let lines = table(&rollouts, view, session.style, session.clock.now());
    session.print(&lines.join("\n"))
}

/// The rollouts of every kind that the server knows.
async fn list(everywhere: bool, session: &Session<'_>) -> Result<Vec<DynamicObject>, Error> {
    let mut objects = Vec::new();
    let mut unserved = 0;
    for kind in Kind::ALL {
        let api = session.whole_rollouts(kind, everywhere);
        let listed = api.list(&ListParams::default()).await;
        match listed.map_err(Error::api(format!("list {}s", kind.word()))) {
            Ok(list) => objects.extend(list.items.into_iter().map(|mut object| {
                let resource = kind.resource();
                // The items of a list do not say what they are.
                object.types.get_or_insert(TypeMeta {
                    api_version: resource.api_version,
                    kind: resource.kind,
                });
                object
            })),
            Err(Error::Unserved) => unserved += 1,
            Err(error) => return Err(error),
        }
    }
    if unserved == Kind::ALL.len() {
        return Err(Error::Unserved);
    }
    Ok(objects)
}
