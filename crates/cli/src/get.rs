//! `get`: a table of all, or a tree of one.

use kube::ResourceExt;
use kube::api::ListParams;

use crate::access::Access;
use crate::error::Error;
use crate::exit::Exit;
use crate::look::parse;
use crate::name::Name;
use crate::output::{Objects, Output, full_name};
use crate::session::Session;
use crate::table::{View, table};

/// `get …`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The rollout to show as a tree: NAME, rp/NAME or rolloutplugin/NAME
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
        Some(Output::Name) => return session.print(&full_name(name.as_str())),
        Some(Output::Wide) | None => {}
    }
    let picture = session.picture(parse(object)?).await?;
    let lines = picture.draw(session.style, session.clock.now());
    session.print(&lines.join("\n"))
}

async fn all(args: &Args, session: &mut Session<'_>) -> Result<(), Error> {
    let objects = session
        .whole_rollouts(args.all_namespaces)
        .list(&ListParams::default())
        .await
        .map_err(Error::api("list rolloutplugins"))?
        .items;
    match args.output {
        Some(Output::Json) => return session.print(&Objects::Many(objects).json()?),
        Some(Output::Yaml) => return session.print(&Objects::Many(objects).yaml()?),
        Some(Output::Name) => {
            let names: Vec<_> = objects
                .iter()
                .map(|object| full_name(&object.name_any()))
                .collect();
            return names.iter().try_for_each(|name| session.print(name));
        }
        Some(Output::Wide) | None => {}
    }
    if objects.is_empty() {
        session.say(&if args.all_namespaces {
            "no rolloutplugins found".to_owned()
        } else {
            format!("no rolloutplugins found in namespace {}", session.namespace)
        });
        return Ok(());
    }
    let rollouts: Vec<_> = objects.into_iter().map(parse).collect::<Result<_, _>>()?;
    let view = View {
        namespaces: args.all_namespaces,
        wide: args.output == Some(Output::Wide),
    };
    let lines = table(&rollouts, view, session.style, session.clock.now());
    session.print(&lines.join("\n"))
}
