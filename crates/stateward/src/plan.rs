//! `stateward plan`: simulates a rollout.
//!
//! Reads files, or a cluster with `get` only, and simulates the rollout in virtual time; never writes to a cluster.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Result, anyhow, bail};
use futures::{StreamExt, stream};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use serde_json::{Value, json};
use stateward_api::analysis::{AnalysisTemplate, ClusterAnalysisTemplate};
use stateward_api::duration;
use stateward_cli::{Access, Connection, Exit, Name, Session, Style, completion};
use stateward_client::{InvalidName, ObjectName, Objects};
use stateward_clock::Clock;
use stateward_preview::{Error, Look, Missing, Preview, Subject, WhatIf};

use crate::say;

/// The most pods whose start times are read.
const ASKED: usize = 20;

/// The prefixes of `--what-if` values.
const SUPPOSED: [&str; 7] = [
    "pod=",
    "image=crash",
    "scale=",
    "operator-down=",
    "metric=fails",
    "people=",
    "abort@step",
];

/// The maximum number of concurrent requests.
const AT_ONCE: usize = 8;

/// `stateward plan …`
#[derive(clap::Args)]
#[command(after_help = "\
Files hold a RolloutPlugin or PhasedRollout, its StatefulSet, and the analysis templates that it names. A NAME is read from the
cluster, with get requests only; the files of -f replace objects of the cluster.

Conditions that can be simulated, each more than once:
  pod=2:never-ready       the new pod with this ordinal; also crash, no-image, out-of-memory, ready-after=5m
  image=crash             every new pod
  scale=7@step2           a user scales the set at this step; at the first step if none is named
  operator-down=5m        the operator is down for this long; from before the first step, or @step2
  metric=fails@step3      also inconclusive, silent, succeeds; metric=errors:fails is that metric only
  people=10m              how long users take to answer; people=never
  abort@step2             a user aborts; at the first step if none is named

Exit codes:
  0  shown, whatever the outcome of the rollout
  1  an error: no cluster, bad arguments, an invalid file, or a rollout that cannot be simulated
  5  there is no such rollout")]
pub(crate) struct Args {
    /// FILE… or the NAME of a rollout on the cluster: NAME, rp/NAME or phased/NAME
    #[arg(required_unless_present = "filename", value_name = "FILE|NAME", add = completion::rollout_names_and_files())]
    what: Vec<String>,
    /// Files that replace objects of the cluster
    #[arg(short, long, value_name = "FILE")]
    filename: Vec<PathBuf>,
    /// A condition to simulate
    #[arg(long, value_name = "WHAT", value_parser = |text: &str| text.parse::<WhatIf>(), add = completion::one_of(&SUPPOSED))]
    what_if: Vec<WhatIf>,
    /// Time until a new pod is Ready; default: the time that existing pods took, or an estimate
    #[arg(long, value_name = "DURATION", value_parser = duration::typed)]
    ready_after: Option<Duration>,
    /// Time until a pod has stopped
    #[arg(long, value_name = "DURATION", value_parser = duration::typed)]
    stop_after: Option<Duration>,
    /// The output format
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
    #[command(flatten)]
    access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// A timeline and a chart
    Text,
    /// All data, for tools
    Json,
    /// A chart of pods over time
    Svg,
}

/// Runs the simulation. A simulated rollout that fails is not an error.
pub(crate) async fn run(args: Args, program: &str) -> Exit {
    match shown(args, program).await {
        Ok(text) => {
            let mut out = io::stdout().lock();
            let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
            match written {
                Ok(()) => Exit::Done,
                // The reader closed the pipe.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
                Err(error) => {
                    say(format_args!(
                        "{program}: cannot write to standard output: {error}"
                    ));
                    Exit::Error
                }
            }
        }
        Err(error) => {
            // Each error contains the messages of its sources.
            match error.downcast_ref::<Mistakes>() {
                Some(Mistakes(lines)) => {
                    let mut lines = lines.iter();
                    let first = lines.next().map_or("", String::as_str);
                    say(format_args!("{program}: {first}"));
                    lines.for_each(|line| say(format_args!("{line}")));
                }
                None => say(format_args!("{program}: {error}")),
            }
            error
                .downcast_ref::<stateward_cli::Error>()
                .map_or(Exit::Error, stateward_cli::Error::exit)
        }
    }
}

/// The errors in files, one per line.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("; "))]
struct Mistakes(Vec<String>);

async fn shown(args: Args, program: &str) -> Result<String> {
    let mut files: Vec<_> = args.filename.clone();
    let name = match args.what.as_slice() {
        [name] if !is_file(name) => Some(named(name)?),
        more => {
            // Several arguments can only be files.
            if let Some(other) = more.iter().find(|what| !is_file(what)) {
                bail!("there is no file {other}; plan takes files, or the NAME of one rollout");
            }
            files.extend(more.iter().map(PathBuf::from));
            None
        }
    };
    let read = files
        .into_iter()
        .map(|file| Ok((file.clone(), text(&file)?)))
        .collect::<Result<Vec<_>>>()?;
    let preview = played(&args, name.as_ref(), &read, program).await;
    let preview = preview.map_err(|error| match error.downcast_ref() {
        // Prefer the file and field over the resulting error.
        Some(Error::Subject(_) | Error::Refused { .. } | Error::NotRolled { .. }) => {
            match stateward_cli::mistakes(&read) {
                none if none.is_empty() => error,
                mistakes => Mistakes(mistakes).into(),
            }
        }
        _ => error,
    })?;
    drawn(&preview, args.output)
}

async fn played(
    args: &Args,
    name: Option<&Name>,
    read: &[(PathBuf, String)],
    program: &str,
) -> Result<Preview> {
    let mut subject = Subject::default();
    for (file, text) in read {
        subject.add_manifests(objects(file, text)?)?;
    }
    let (program, clock) = match name {
        Some(name) => look_up(&mut subject, name, &args.access, program).await?,
        None => {
            let namespace = subject.namespace().or_else(|| args.access.namespace());
            (args.access.call(program, namespace), Clock::wall())
        }
    };
    let pace = subject.pace(args.ready_after, args.stop_after);
    let now = clock.now();
    Ok(stateward_preview::play(
        &subject,
        &args.what_if,
        pace,
        now,
        &program,
    )?)
}

/// The same chart without non-ASCII characters.
fn ascii_svg(svg: String, style: Style) -> String {
    if !style.ascii {
        return svg;
    }
    let shown = |c: char| match c.is_ascii() {
        true => c.to_string(),
        false => format!("&#x{:X};", u32::from(c)),
    };
    svg.chars().map(shown).collect()
}

fn drawn(preview: &Preview, output: Output) -> Result<String> {
    Ok(match output {
        Output::Json => {
            let text = serde_json::to_string_pretty(preview)?;
            stateward_terminal::json(&text, Style::of_the_terminal().charset()).into_owned() + "\n"
        }
        Output::Svg => ascii_svg(stateward_preview::svg(preview), Style::of_the_terminal()),
        Output::Text => {
            let Style { colour, ascii } = Style::of_the_terminal();
            let width = terminal_size::terminal_size().map_or(100, |(width, _)| width.0.into());
            let look = Look { colour, ascii, width };
            stateward_preview::text(preview, look).join("\n") + "\n"
        }
    })
}

/// Whether an argument is a file. A rollout may have the name of a file; `rp/NAME` is unambiguous.
fn is_file(what: &str) -> bool {
    let path = Path::new(what);
    let named = path
        .extension()
        .is_some_and(|extension| extension == "yaml" || extension == "yml" || extension == "json");
    what == "-" || named || path.is_file()
}

/// Parses the name of a rollout; the error also covers a missing file.
fn named(what: &str) -> Result<Name> {
    let path = Path::new(what);
    let is_a_path = what.starts_with(['.', '/', '~']) || what.ends_with('/');
    match what.parse() {
        _ if is_a_path && path.is_dir() => bail!("{what} is a directory; name the files in it"),
        _ if is_a_path => bail!("there is no file {what}"),
        Err(_) if path.is_dir() => bail!("{what} is a directory; name the files in it"),
        Err(why) if what.contains('/') => bail!("{why}, and there is no file {what}"),
        Err(why) => Err(anyhow::Error::msg(why)),
        Ok(name) => Ok(name),
    }
}

fn text(path: &Path) -> Result<String> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    text.map_err(|error| anyhow!("cannot read {}: {error}", path.display()))
}

/// The objects of a file.
fn objects(file: &Path, text: &str) -> Result<Vec<Value>> {
    let documents =
        serde_saphyr::from_multiple::<Value>(text).map_err(|error| {
            match stateward_cli::mistakes(&[(file.to_owned(), text.to_owned())]) {
                none if none.is_empty() => anyhow!("{}: {}", file.display(), error.without_snippet()),
                mistakes => Mistakes(mistakes).into(),
            }
        })?;
    Ok(documents
        .into_iter()
        .filter(|document| !document.is_null())
        .collect())
}

/// Reads the objects that the files lack from the cluster. Returns the invocation for the same rollout, and the cluster's time.
async fn look_up(
    subject: &mut Subject,
    name: &Name,
    access: &Access,
    program: &str,
) -> Result<(String, Clock)> {
    let Connection {
        client,
        namespace,
        clock,
        ..
    } = access.connect().await?;
    let elsewhere = namespace != client.default_namespace();
    let program = access.call(program, elsewhere.then_some(namespace.as_str()));
    let session = Session {
        client: client.clone(),
        namespace: namespace.clone(),
        clock: clock.clone(),
        user: None,
        program: &program,
        style: Style::default(),
        terminal: false,
        out: &mut io::sink(),
        talk: &mut io::sink(),
    };
    let rollout = session.whole_rollout(name).await?;
    if let Some(template) = session.stable_template(&rollout).await? {
        subject.add_stable_template(template);
    }
    subject.add_rollout(json!(rollout));
    let own = ObjectName::new(&namespace)?;
    let sets = Objects::<StatefulSet>::namespaced(&client, &own);
    let set = subject.workload()?;
    let found = sets.get(&ObjectName::new(&set)?).await;
    match found.map_err(refused(format!("read statefulset {set}")))? {
        Some(set) => subject.add_present_set(json!(set)),
        None => bail!("statefulset {set} is not there in namespace {namespace}"),
    }
    // A template may refer to others.
    loop {
        let missing = subject.missing()?;
        if missing.is_empty() {
            break;
        }
        for missing in missing {
            let found = template(&client, &own, &missing).await?;
            match found.map_err(refused(format!("read {missing}")))? {
                Some(found) => subject.add_template(found),
                None => bail!("{missing} is not there"),
            }
        }
    }
    let pods = Objects::<Pod>::namespaced(&client, &own);
    let names = subject.pod_names(ASKED).into_iter();
    let pods: Vec<_> = stream::iter(names)
        .map(|name| {
            let pods = pods.clone();
            async move { pods.get(&ObjectName::new(name).ok()?).await.ok().flatten() }
        })
        .buffer_unordered(AT_ONCE)
        .filter_map(std::future::ready)
        .collect()
        .await;
    subject.add_pods(pods);
    Ok((program, clock))
}

/// The server's message, without repetition.
fn refused(doing: String) -> impl FnOnce(kube::Error) -> stateward_cli::Error {
    |source| stateward_cli::Error::Api {
        doing,
        source: Box::new(source),
    }
}

async fn template(
    client: &Client,
    namespace: &ObjectName,
    missing: &Missing,
) -> Result<kube::Result<Option<Value>>, InvalidName> {
    let Missing::Template(template) = missing else {
        return Ok(Ok(None));
    };
    let name = ObjectName::new(&template.template_name)?;
    Ok(if template.cluster_scope {
        let found = Objects::<ClusterAnalysisTemplate>::of_cluster(client);
        let found = found.get(&name).await;
        found.map(|found| found.map(|found| json!(found)))
    } else {
        let found = Objects::<AnalysisTemplate>::namespaced(client, namespace);
        let found = found.get(&name).await;
        found.map(|found| found.map(|found| json!(found)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn a_picture_has_references_where_a_terminal_has_only_ascii() {
        let drawn = |ascii: bool| {
            let style = Style {
                ascii,
                ..Style::default()
            };
            ascii_svg("<text>db – Û</text>".into(), style)
        };
        assert_eq!(drawn(true), "<text>db &#x2013; &#xDB;</text>");
        assert_eq!(drawn(false), "<text>db – Û</text>");
    }

    #[test]
    fn what_the_server_says_is_said_once() {
        let status = Status::failure("statefulsets.apps \"db\" is forbidden", "Forbidden").with_code(403);
        let told = refused("read statefulset db".into())(kube::Error::Api(status.boxed()));
        assert_eq!(
            anyhow::Error::from(told).to_string(),
            "cannot read statefulset db: statefulsets.apps \"db\" is forbidden"
        );
    }
}
