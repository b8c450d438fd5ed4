//! The binary: parses arguments and turns errors into exit codes. Data goes to stdout, messages to stderr.

mod cluster;
mod demo;
mod install;
mod kubeconfig;
mod loopback;
mod operator;
mod plan;
#[cfg(test)]
mod reference;
mod telemetry;
mod tls;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Args as _, CommandFactory, FromArgMatches, Parser, Subcommand};
use stateward_cli::{Access, Exit, Style, Verb, as_meant, completion};

/// An embedded cluster allocates many small objects; the operator fewer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Progressive delivery for stateful workloads on Kubernetes
#[derive(Parser)]
#[command(name = "stateward", version, after_help = stateward_cli::CODES)]
struct Cli {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run a demo: a database, a good version and a bad one, on an embedded Kubernetes, in a few seconds
    Demo(demo::Args),
    #[command(flatten)]
    Verb(Verb),
    /// Simulate a rollout: when it changes which pods, and where it waits for a user
    Plan(plan::Args),
    /// Run an embedded Kubernetes with simulated pods on this machine, for trying things, not for production
    Cluster(cluster::Args),
    /// Run the operator, which executes RolloutPlugins and PhasedRollouts, until SIGTERM. Exit code 3: the API server cannot be reached
    Operator(operator::Args),
    /// Print the manifests to apply to a cluster: stateward install | kubectl apply -f -
    Install(install::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let called = std::env::args_os().next();
    if is_kubectls_completion(called.as_deref()) {
        let words = std::env::args_os().skip(1).collect();
        // A closed stdout is not an error.
        let _ = completion::for_kubectl(command(), words, &mut std::io::stdout());
        return ExitCode::SUCCESS;
    }
    if completion::for_a_shell(command) {
        return ExitCode::SUCCESS;
    }
    let program = program(called.as_deref());
    let action = match parsed(std::env::args_os().collect(), program) {
        Ok(cli) => cli.action,
        Err(error) => {
            // A closed stderr is not an error.
            let _ = error.print();
            // clap's exit code for bad arguments is 2, which here means that a rollout failed.
            return if error.use_stderr() {
                Exit::Error
            } else {
                Exit::Done
            }
            .into();
        }
    };
    // The operator configures its own logging.
    if !matches!(action, Action::Operator(_)) {
        telemetry::init_from_env();
    }
    let outcome = match action {
        Action::Demo(args) => {
            let typed = typed(called.as_deref(), program);
            demo::run(args, &typed, &mut std::io::stdout()).await
        }
        Action::Verb(verb) => return verb.run(program).await.into(),
        Action::Plan(args) => return plan::run(args, program).await.into(),
        Action::Cluster(args) => cluster::run(args).await,
        Action::Operator(args) => operator::run(args).await,
        Action::Install(args) => install::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(demo::Interrupted(signal)) = error.downcast_ref() {
                // The exit code of a process that a signal ended, as in a shell. The user knows why.
                return ExitCode::from(128 + signal);
            }
            say(format_args!("{program}: {error:#}"));
            if error.is::<operator::Unreachable>() {
                ExitCode::from(3)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// The command line: the flags for the cluster may also precede the verb.
fn command() -> clap::Command {
    let command = Cli::command();
    // The flattened arguments would replace the description.
    let about = command.get_about().cloned().unwrap_or_default();
    Access::augment_args(command).about(about).long_about(None)
}

fn parsed(words: Vec<OsString>, program: &str) -> Result<Cli, clap::Error> {
    let mut command = command().bin_name(program);
    let matches = command.try_get_matches_from_mut(as_meant(words))?;
    // Flags that remain precede a verb that does not support them.
    let typed = |id: &clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    if let (Some(verb), true) = (matches.subcommand_name(), matches.ids().any(typed)) {
        let why = format!("cluster flags cannot be used with `{verb}`");
        return Err(command.error(ErrorKind::ArgumentConflict, why));
    }
    Cli::from_arg_matches(&matches)
}

/// Prints a line, which may quote a cluster, on stderr. A closed stderr is not an error.
fn say(line: fmt::Arguments<'_>) {
    let charset = Style::of_the_terminal().charset();
    let line = stateward_terminal::line(&line.to_string(), charset);
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// How the user invoked the program: by its name, or as a kubectl plugin.
fn program(called: Option<&OsStr>) -> &'static str {
    let name = called.map(Path::new).and_then(Path::file_name);
    match name.and_then(OsStr::to_str) {
        Some("kubectl-stateward" | "kubectl-stateward.exe") => "kubectl stateward",
        _ => "stateward",
    }
}

/// What to type to invoke the program again: its path, if it was invoked by one, since it may not be installed.
fn typed(called: Option<&OsStr>, program: &str) -> String {
    let path = called.and_then(OsStr::to_str);
    let path = path.filter(|path| path.contains('/') && program == "stateward");
    path.unwrap_or(program).to_owned()
}

/// Whether kubectl requests completion, for which it uses another program name.
fn is_kubectls_completion(called: Option<&OsStr>) -> bool {
    let name = called.map(Path::new).and_then(Path::file_stem);
    name == Some(OsStr::new(completion::KUBECTL_NAME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn the_arguments_are_consistent() {
        command().debug_assert();
    }

    #[test]
    fn the_help_begins_with_what_this_is_about() {
        for help in [command().render_help(), command().render_long_help()] {
            let help = help.to_string();
            assert_eq!(
                help.lines().next(),
                Some("Progressive delivery for stateful workloads on Kubernetes"),
                "{help}"
            );
        }
    }

    #[rstest]
    #[case("stateward -n prod get", None)]
    #[case("stateward --context x -n prod set image db db=db:2", None)]
    #[case("stateward --kubeconfig f plan db", None)]
    #[case("stateward --context x operator", None)]
    #[case("stateward --as me demo", Some("cluster flags cannot be used with `demo`"))]
    #[case(
        "stateward --kubeconfig mine cluster",
        Some("cluster flags cannot be used with `cluster`")
    )]
    #[case("stateward cluster --kubeconfig mine", None)]
    #[case("stateward -n prod", Some("requires a subcommand"))]
    fn flags_before_the_verb_are_those_of_the_verb(#[case] typed: &str, #[case] refusal: Option<&str>) {
        let words = typed.split(' ').map(OsString::from).collect();
        let refused = parsed(words, "stateward").err().map(|error| error.to_string());
        let matches = match (&refused, refusal) {
            (Some(said), Some(expected)) => said.contains(expected),
            (said, expected) => said.is_none() && expected.is_none(),
        };
        assert!(matches, "{refused:?}");
    }

    #[rstest]
    #[case("/usr/local/bin/kubectl-stateward", "kubectl stateward")]
    #[case("kubectl-stateward", "kubectl stateward")]
    #[case("target/debug/stateward", "stateward")]
    #[case("kubectl_complete-stateward", "stateward")]
    fn a_plugin_calls_itself_as_kubectl_does(#[case] called: &str, #[case] expected: &str) {
        assert_eq!(program(Some(OsStr::new(called))), expected);
        let completes = called == completion::KUBECTL_NAME;
        assert_eq!(is_kubectls_completion(Some(OsStr::new(called))), completes);
    }

    #[rstest]
    #[case("/usr/local/bin/kubectl-stateward", "kubectl stateward")]
    #[case("stateward", "stateward")]
    #[case("target/debug/stateward", "target/debug/stateward")]
    fn what_is_typed_next_is_what_was_typed(#[case] called: &str, #[case] expected: &str) {
        let called = Some(OsStr::new(called));
        assert_eq!(typed(called, program(called)), expected);
    }
}
