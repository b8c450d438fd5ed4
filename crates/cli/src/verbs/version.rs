//! `version`: the versions of this program, the operator and the API server.

use std::io::Write;

use futures::future::join;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use stateward_terminal::Charset;

use crate::error::Error;
use crate::exit::Exit;
use crate::input::access::Access;
use crate::session::{Session, write_line};
use crate::views::output::Format;
use crate::views::style::Style;

/// `version …`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only the version of this program; no cluster is contacted
    #[arg(long)]
    client: bool,
    /// The output format
    #[arg(
        short,
        long,
        value_enum,
        value_name = "json|yaml",
        hide_possible_values = true
    )]
    output: Option<Format>,
    #[command(flatten)]
    access: Access,
}

/// The version of this program.
const CLIENT: &str = env!("CARGO_PKG_VERSION");

/// The labels of an installed operator.
const OPERATOR: &str = "app.kubernetes.io/name=stateward,app.kubernetes.io/component=operator";

impl Args {
    pub(crate) fn access(&self) -> Option<&Access> {
        (!self.client).then_some(&self.access)
    }

    /// Without contacting a cluster.
    pub(crate) fn alone(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        // Only text of our own, so there is nothing to sanitize.
        let text = self.lines(&Versions::default(), Charset::Unicode)?.join("\n");
        writeln!(out, "{text}").map_err(Error::Output)?;
        Ok(Exit::Done)
    }

    /// Without a reachable cluster.
    pub(crate) fn without_a_cluster(
        &self,
        why: &Error,
        out: &mut dyn Write,
        talk: &mut dyn Write,
    ) -> Result<Exit, Error> {
        self.alone(out)?;
        let _ = write_line(talk, &why.to_string(), Style::of_the_terminal());
        Ok(Exit::Error)
    }

    fn lines(&self, versions: &Versions, charset: Charset) -> Result<Vec<String>, Error> {
        if let Some(format) = self.output {
            return Ok(vec![format.write(&versions.value(), charset)?]);
        }
        let mut lines = vec![format!("client: {CLIENT}")];
        for operator in &versions.operators {
            lines.push(format!(
                "operator: {} (deployment {} in namespace {})",
                operator.image, operator.name, operator.namespace
            ));
        }
        lines.extend(versions.server.as_ref().map(|server| format!("server: {server}")));
        Ok(lines)
    }
}

/// An installed operator.
struct Operator {
    name: String,
    namespace: String,
    image: String,
}

/// The versions found.
#[derive(Default)]
struct Versions {
    operators: Vec<Operator>,
    server: Option<String>,
}

impl Versions {
    fn value(&self) -> Value {
        let operator = |operator: &Operator| json!({"image": operator.image, "name": operator.name, "namespace": operator.namespace});
        let mut value = json!({"client": CLIENT});
        if let Some(server) = &self.server {
            value["server"] = json!(server);
        }
        if !self.operators.is_empty() {
            value["operators"] = self.operators.iter().map(operator).collect();
        }
        value
    }
}

pub(crate) async fn run(args: Args, session: &mut Session<'_>) -> Result<Exit, Error> {
    let (server, operators) = join(session.client.apiserver_version(), operators(session)).await;
    let mut versions = Versions::default();
    let mut told = Vec::new();
    let mut exit = Exit::Done;
    match server {
        Ok(server) => versions.server = Some(server.git_version),
        Err(error) => {
            told.push(Error::api("ask the API server for its version")(error).to_string());
            exit = Exit::Error;
        }
    }
    match operators {
        Ok(found) if found.is_empty() => {
            told.push(format!(
                "no operator can be seen: no deployment has the labels {OPERATOR}"
            ));
        }
        Ok(found) => versions.operators = found,
        Err(error) => told.push(format!("no operator can be seen: {error}")),
    }
    let lines = args.lines(&versions, session.charset())?;
    match args.output {
        Some(_) => session.print_data(&lines.concat())?,
        None => session.print_lines(&lines)?,
    }
    told.iter().for_each(|line| session.say(line));
    Ok(exit)
}

async fn operators(session: &Session<'_>) -> Result<Vec<Operator>, Error> {
    let api: Api<Deployment> = Api::all(session.client.clone());
    let listed = api.list(&ListParams::default().labels(OPERATOR)).await;
    let listed = listed.map_err(Error::api("list deployments of all namespaces"))?;
    let image = |deployment: &Deployment| {
        let pod = deployment.spec.as_ref()?.template.spec.as_ref()?;
        pod.containers.first()?.image.clone()
    };
    let operator = |deployment: Deployment| Operator {
        name: deployment.name_any(),
        namespace: deployment.namespace().unwrap_or_default(),
        image: image(&deployment).unwrap_or_else(|| "<unknown>".into()),
    };
    Ok(listed.items.into_iter().map(operator).collect())
}
