//! Completion of what is being typed, with the names that the cluster has.
//!
//! One engine serves them all: shells call the program back through the script that `completion` prints, and kubectl calls it by
//! the name `kubectl_complete-stateward`.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::time::Duration;

use clap::Parser;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};
use clap_complete::env::{CompleteEnv, Shells};
use kube::ResourceExt;
use kube::api::{DynamicObject, ListParams, PartialObjectMeta};
use kube::{Api, Client};

use crate::access::{Access, width};
use crate::error::Error;
use crate::exit::Exit;
use crate::rollout::Kind;

/// `completion …`
#[derive(Debug, clap::Args)]
#[command(after_help = "\
For this shell:
  bash        source <(stateward completion bash)
  zsh         source <(stateward completion zsh)
  fish        stateward completion fish | source
  powershell  stateward completion powershell | Out-String | Invoke-Expression

For kubectl stateward, put a link beside the plugin; kubectl's own completion finds it:
  ln -s stateward kubectl_complete-stateward")]
pub struct Args {
    /// bash, zsh, fish, powershell or elvish
    #[arg(value_parser = ["bash", "zsh", "fish", "powershell", "elvish"], hide_possible_values = true)]
    shell: String,
}

/// By this a script asks the program to complete.
const ASKED: &str = "STATEWARD_COMPLETE";

/// The name by which kubectl asks.
pub const KUBECTL_NAME: &str = "kubectl_complete-stateward";

/// How long names of the cluster are waited for: nobody waits longer for a key press.
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

/// Answers a shell, if one has asked; whether it has.
pub fn for_a_shell(command: impl Fn() -> clap::Command) -> bool {
    let answered = CompleteEnv::with_factory(command)
        .var(ASKED)
        .try_complete(std::env::args_os(), std::env::current_dir().ok().as_deref());
    // What cannot be completed is no reason to fail: a shell shows nothing then.
    answered.unwrap_or(true)
}

/// Answers kubectl: a candidate with its description on each line, and what the shell is to do with them at the end.
pub fn for_kubectl(command: &mut clap::Command, words: Vec<OsString>, out: &mut dyn Write) -> io::Result<()> {
    // Neither files nor what the shell may think of.
    const NO_FILES: u8 = 4;
    const DEFAULT: u8 = 0;
    let at = words.len();
    let words: Vec<_> = std::iter::once(OsString::from("stateward"))
        .chain(words)
        .collect();
    let takes_files = words
        .iter()
        .any(|word| word == "lint" || word == "-f" || word == "--filename");
    let here = std::env::current_dir().ok();
    let candidates = complete(command, words, at, here.as_deref()).unwrap_or_default();
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
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy().into_owned();
        let words = std::env::args_os().collect();
        // In a thread, because this may be called inside of a runtime, and knows nothing of it.
        let names = std::thread::spawn(move || names(words, &current)).join();
        names.unwrap_or_default()
    })
}

/// The flags that say which cluster is meant, among words that may be anything.
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

fn names(words: Vec<OsString>, current: &str) -> Vec<CompletionCandidate> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let found = runtime.block_on(async {
        let looked = tokio::time::timeout(PATIENCE, async {
            let (client, namespace) = access(words).connect().await.ok()?;
            Some(listed(&client, &namespace).await)
        });
        looked.await.ok().flatten()
    });
    let found = found.unwrap_or_default();
    candidates(&found, current)
}

/// Word by word: flags with values, wherever they stand.
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
            // Only what they are called: specs may be large.
            let names = api.list_metadata(&ListParams::default()).await;
            let names = names.map_or_else(|_| Vec::new(), |list| list.items);
            let named = |object: PartialObjectMeta<DynamicObject>| (kind, object.name_any());
            names.into_iter().map(named).collect::<Vec<_>>()
        }
    });
    futures::future::join_all(lists).await.concat()
}

/// Names as they are begun: with a kind before them where one was typed.
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
        let begun = full.starts_with(current);
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
}
