//! Shell completion with names from the cluster.
//!
//! One engine serves all shells: a shell calls the program through the script that `completion` prints, and kubectl calls it by the
//! name `kubectl_complete-stateward`.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter, complete,
};
use clap_complete::env::{CompleteEnv, EnvCompleter, Shells};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams, PartialObjectMeta};
use kube::{Api, Client};
use stateward_clock::Clock;

use crate::error::Error;
use crate::exit::Exit;
use crate::input::access::{Access, Connection, width};
use crate::input::name::Name;
use crate::revisions::Revision;
use crate::rollout::Kind;
use crate::session::Session;
use crate::views::style::Style;

/// `completion …`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For this shell:
  bash        source <(stateward completion bash)
  zsh         source <(stateward completion zsh)
  fish        stateward completion fish | source
  powershell  stateward completion powershell | Out-String | Invoke-Expression

For kubectl stateward, create a link next to the plugin; kubectl's completion finds it:
  ln -s stateward kubectl_complete-stateward")]
pub struct Args {
    /// bash, zsh, fish, powershell or elvish
    #[arg(value_parser = ["bash", "zsh", "fish", "powershell", "elvish"], hide_possible_values = true)]
    shell: String,
}

/// The environment variable by which a script requests completion.
const ASKED: &str = "STATEWARD_COMPLETE";

/// The program name by which kubectl requests completion.
pub const KUBECTL_NAME: &str = "kubectl_complete-stateward";

/// How long to wait for names from the cluster: a key press must not block longer.
const PATIENCE: Duration = Duration::from_millis(1500);

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Exit, Error> {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&args.shell) else {
        return Err(Error::Refused(format!(
            "there is no completion for {}",
            args.shell
        )));
    };
    let program = "stateward";
    shell
        .write_registration(ASKED, program, program, program, out)
        .map_err(Error::Output)?;
    Ok(Exit::Done)
}

/// Completes for a shell, if one requested it; returns whether it did.
pub fn for_a_shell(command: impl Fn() -> clap::Command) -> bool {
    let begun = std::env::args_os().next_back().unwrap_or_default();
    let command = || meant(command(), &begun);
    let empty = begun.is_empty();
    let shells = Shells::builtins().0.iter().copied();
    let shells: Vec<_> = shells.map(|shell| Quiet { shell, empty }).collect();
    let shells: Vec<_> = shells.iter().map(|shell| shell as &dyn EnvCompleter).collect();
    let answered = CompleteEnv::with_factory(command)
        .var(ASKED)
        .shells(Shells(&shells))
        .try_complete(std::env::args_os(), std::env::current_dir().ok().as_deref());
    // Failed completion is not an error: the shell shows no candidates.
    answered.unwrap_or(true)
}

/// A shell that gets no flags for an empty word. The engine offers hidden flags if there is nothing else, and a shell would insert
/// their common dashes.
struct Quiet {
    shell: &'static dyn EnvCompleter,
    empty: bool,
}

impl EnvCompleter for Quiet {
    fn name(&self) -> &'static str {
        self.shell.name()
    }

    fn is(&self, name: &str) -> bool {
        self.shell.is(name)
    }

    fn write_registration(
        &self,
        var: &str,
        name: &str,
        bin: &str,
        completer: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        self.shell.write_registration(var, name, bin, completer, out)
    }

    fn write_complete(
        &self,
        command: &mut clap::Command,
        words: Vec<OsString>,
        here: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if !self.empty {
            return self.shell.write_complete(command, words, here, out);
        }
        let mut all = Vec::new();
        self.shell.write_complete(command, words, here, &mut all)?;
        let between = std::env::var("_CLAP_IFS").unwrap_or_else(|_| "\n".into());
        out.write_all(undashed(&String::from_utf8_lossy(&all), &between).as_bytes())
    }
}

/// The candidates without flags.
fn undashed(candidates: &str, between: &str) -> String {
    let kept = candidates.split(between).filter(|word| !word.starts_with('-'));
    kept.collect::<Vec<_>>().join(between)
}

/// Flags are offered only for a word that starts with a dash: on an empty word they would hide the other candidates.
fn meant(command: clap::Command, begun: &OsStr) -> clap::Command {
    if begun.is_empty() {
        without_flags(command)
    } else {
        command
    }
}

fn without_flags(command: clap::Command) -> clap::Command {
    let hidden = |arg: clap::Arg| {
        let is_flag = !arg.is_positional();
        arg.hide(is_flag)
    };
    command
        .disable_help_flag(true)
        .disable_version_flag(true)
        .mut_args(hidden)
        .mut_subcommands(without_flags)
}

/// Completes for kubectl: a candidate with its description on each line, then the directive for the shell.
pub fn for_kubectl(command: clap::Command, words: Vec<OsString>, out: &mut dyn Write) -> io::Result<()> {
    // Neither files nor other completions of the shell.
    const NO_FILES: u8 = 4;
    const DEFAULT: u8 = 0;
    let at = words.len();
    let words: Vec<_> = std::iter::once(OsString::from("stateward"))
        .chain(words)
        .collect();
    let takes_files = words
        .iter()
        .any(|word| word == "lint" || word == "plan" || word == "-f" || word == "--filename");
    let mut command = meant(command, words.last().map_or(OsStr::new(""), OsString::as_os_str));
    let here = std::env::current_dir().ok();
    let candidates = complete(&mut command, words, at, here.as_deref()).unwrap_or_default();
    for candidate in candidates.iter().filter(|candidate| !candidate.is_hide_set()) {
        let value = candidate.get_value().to_string_lossy();
        match candidate.get_help() {
            Some(help) => {
                let help = help.to_string();
                writeln!(out, "{value}\t{}", help.lines().next().unwrap_or_default())?;
            }
            None => writeln!(out, "{value}")?,
        }
    }
    writeln!(out, ":{}", if takes_files { DEFAULT } else { NO_FILES })
}

/// Completes the names of rollouts.
pub(crate) fn rollout_names() -> ArgValueCompleter {
    ArgValueCompleter::new(names)
}

/// Completes the names of rollouts, and files.
pub fn rollout_names_and_files() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut all = names(current);
        all.extend(PathCompleter::any().complete(current));
        all
    })
}

/// Completes the names of namespaces.
pub(crate) fn namespaces() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let found = asked(async |client, _| {
            let namespaces: Api<Namespace> = Api::all(client);
            let listed = namespaces.list_metadata(&ListParams::default()).await;
            let listed = listed.map_or_else(|_| Vec::new(), |list| list.items);
            listed.iter().map(ResourceExt::name_any).collect()
        });
        begun(found, current)
    })
}

/// Completes the revision numbers of the named rollout, with their images.
pub(crate) fn revisions() -> ArgValueCompleter {
    revisions_by(|revision| revision.number.to_string())
}

/// Completes the revision names.
pub(crate) fn revision_names() -> ArgValueCompleter {
    revisions_by(|revision| revision.name.clone())
}

fn revisions_by(word: fn(&Revision) -> String) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let Some(name) = named(typed()) else {
            return Vec::new();
        };
        let found = asked(async |client, namespace| {
            let session = Session {
                client,
                namespace,
                clock: Clock::wall(),
                user: None,
                program: "stateward",
                style: Style::default(),
                terminal: false,
                out: &mut io::sink(),
                talk: &mut io::sink(),
            };
            let Ok(workload) = session.workload(&name).await else {
                return Vec::new();
            };
            session.revisions(&workload.set).await.unwrap_or_default()
        });
        let current = current.to_string_lossy();
        let fitting = found
            .iter()
            .filter(|revision| is_safe(&word(revision)) && word(revision).starts_with(&*current));
        let candidate = |revision: &Revision| {
            let images = revision.images().join(",");
            let images = stateward_terminal::line(&images, Style::of_the_terminal().charset());
            CompletionCandidate::new(word(revision)).help(Some(images.into()))
        };
        fitting.map(candidate).collect()
    })
}

/// The verbs with revision arguments.
const WITH_REVISIONS: [&str; 11] = [
    "undo", "diff", "history", "promote", "skip", "abort", "retry", "pause", "resume", "restart", "image",
];

/// The rollout that the words of such a verb name; the words may be invalid.
fn named(words: Vec<OsString>) -> Option<Name> {
    let is_verb = |word: &OsString| WITH_REVISIONS.iter().any(|verb| word == verb);
    let mut words = words.into_iter().skip_while(|word| !is_verb(word)).skip(1);
    while let Some(word) = words.next() {
        let text = word.to_str()?;
        let takes_another = text.ends_with("-revision")
            || [
                "--revision",
                "-o",
                "--output",
                "-l",
                "--selector",
                "-f",
                "--filename",
            ]
            .contains(&text);
        if takes_another || width(&word) == Some(2) {
            words.next();
        } else if !text.starts_with('-') && !text.is_empty() {
            return text.parse().ok();
        }
    }
    None
}

/// Completes the contexts of the kubeconfig.
pub(crate) fn contexts() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| begun(access(typed()).contexts(), current))
}

/// Completes one of these words.
pub fn one_of(words: &'static [&'static str]) -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| begun(words.iter().map(ToString::to_string).collect(), current))
}

/// Whether a name is safe to pass to a shell. The API server allows no others, but the peer may not be an API server.
fn is_safe(name: &str) -> bool {
    !name.chars().any(stateward_terminal::is_unsafe)
}

/// The words that start like this one.
fn begun(words: Vec<String>, current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fitting = words
        .into_iter()
        .filter(|word| is_safe(word) && word.starts_with(&*current));
    fitting.map(CompletionCandidate::new).collect()
}

fn typed() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// The flags that select the cluster, among words that may be invalid.
#[derive(Parser)]
#[command(
    ignore_errors = true,
    disable_help_flag = true,
    disable_version_flag = true,
    no_binary_name = true
)]
struct Flags {
    #[command(flatten)]
    access: Access,
    #[arg(allow_hyphen_values = true)]
    _rest: Vec<OsString>,
}

fn names(current: &OsStr) -> Vec<CompletionCandidate> {
    let found = asked(async |client, namespace| listed(&client, &namespace).await);
    candidates(&found, &current.to_string_lossy())
}

/// The result of a lookup on the cluster that the words select, if it arrives in time.
fn asked<T: Send>(look: impl AsyncFnOnce(Client, String) -> Vec<T> + Send) -> Vec<T> {
    let looked = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let looked = async {
            let Connection {
                client, namespace, ..
            } = access(typed()).connect().await.ok()?;
            Some(look(client, namespace).await)
        };
        runtime
            .ok()?
            .block_on(async { tokio::time::timeout(PATIENCE, looked).await.ok().flatten() })
    };
    // In a thread of its own, because the caller may already be in a runtime.
    let found = std::thread::scope(|scope| scope.spawn(looked).join());
    found.ok().flatten().unwrap_or_default()
}

/// Parses flags with values word by word, anywhere.
fn access(words: Vec<OsString>) -> Access {
    let mut chosen = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if let Some(width) = width(&word) {
            chosen.push(word);
            chosen.extend(words.by_ref().take(width - 1));
        }
    }
    Flags::try_parse_from(chosen).map_or_else(|_| Access::default(), |flags| flags.access)
}

async fn listed(client: &Client, namespace: &str) -> Vec<(Kind, String)> {
    let lists = Kind::ALL.map(|kind| {
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &kind.resource());
        async move {
            // Only metadata: specs may be large.
            let names = api.list_metadata(&ListParams::default()).await;
            let names = names.map_or_else(|_| Vec::new(), |list| list.items);
            let named = |object: PartialObjectMeta<DynamicObject>| (kind, object.name_any());
            names.into_iter().map(named).collect::<Vec<_>>()
        }
    });
    futures::future::join_all(lists).await.concat()
}

/// Names that start like the current word, with its kind prefix if it has one.
fn candidates(found: &[(Kind, String)], current: &str) -> Vec<CompletionCandidate> {
    let prefix = current.split_once('/').map(|(kind, _)| format!("{kind}/"));
    let candidate = |(kind, name): &(Kind, String)| {
        let full = match &prefix {
            Some(prefix) => {
                let meant: crate::Name = format!("{prefix}{name}").parse().ok()?;
                meant.kinds().contains(kind).then(|| format!("{prefix}{name}"))?
            }
            None => name.clone(),
        };
        let begun = full.starts_with(current) && is_safe(&full);
        begun.then(|| CompletionCandidate::new(full).help(Some(kind.word().into())))
    };
    found.iter().filter_map(candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("", &["db", "web"])]
    #[case("d", &["db"])]
    #[case("rp/", &["rp/db"])]
    #[case("phased/", &["phased/web"])]
    #[case("deploy/", &[])]
    fn names_go_on_as_they_were_begun(#[case] current: &str, #[case] expected: &[&str]) {
        let found = [
            (Kind::RolloutPlugin, "db".to_owned()),
            (Kind::PhasedRollout, "web".to_owned()),
        ];
        let candidates = candidates(&found, current);
        let values: Vec<_> = candidates
            .iter()
            .map(|candidate| candidate.get_value().to_string_lossy())
            .collect();
        assert_eq!(values, expected);
    }

    #[rstest]
    #[case("stateward -- stateward undo db --to-revision", Some("db"))]
    #[case(
        "stateward -- stateward diff -n prod --to-revision 2 rp/db --from-revision",
        Some("db")
    )]
    #[case("stateward -- stateward history --revision", None)]
    #[case("stateward -- stateward get db", None)]
    fn the_rollout_is_the_one_that_was_typed(#[case] typed: &str, #[case] expected: Option<&str>) {
        let name = named(typed.split(' ').map(OsString::from).collect());
        assert_eq!(name.as_ref().map(Name::as_str), expected);
    }

    #[test]
    fn the_cluster_is_the_one_that_was_typed() {
        let words = [
            "stateward",
            "--",
            "get",
            "-A",
            "-n",
            "prod",
            "--context=x",
            "--whatever",
            "d",
        ];
        let access = access(words.map(OsString::from).to_vec());
        assert_eq!(access.namespace_or("default"), "prod");
        assert!(
            format!("{access:?}").contains("context: Some(\"x\")"),
            "{access:?}"
        );
    }

    #[test]
    fn an_empty_word_is_no_flag() {
        assert_eq!(undashed("--all\u{b}-l\u{b}db\u{b}web", "\u{b}"), "db\u{b}web");
        assert_eq!(undashed("--all\n-l\n", "\n"), "");
    }
}
