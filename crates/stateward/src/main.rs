//! The one binary: arguments come in here, errors become exit codes here and nowhere else. Data goes to stdout, talk to
//! stderr.

mod cluster;
mod install;
mod kubeconfig;
mod operator;
mod telemetry;
mod tls;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Progressive delivery for stateful workloads on Kubernetes
#[derive(Parser)]
#[command(name = "stateward", version)]
struct Cli {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Run an embedded Kubernetes on this machine, with pods that are played and not run: to try things, not for production
    Cluster(cluster::Args),
    /// Run the operator: rolls what RolloutPlugins ask for, until SIGTERM. Exit code 3: the API server cannot be reached
    Operator(operator::Args),
    /// Print what to apply to a cluster: stateward install | kubectl apply -f -
    Install(install::Args),
}

#[tokio::main]
async fn main() -> ExitCode {
    let action = Cli::parse().action;
    // The operator has its own say in what is logged.
    if !matches!(action, Action::Operator(_)) {
        telemetry::init_from_env();
    }
    let outcome = match action {
        Action::Cluster(args) => cluster::run(args).await,
        Action::Operator(args) => operator::run(args).await,
        Action::Install(args) => install::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stateward: {error:#}");
            if error.is::<operator::Unreachable>() {
                ExitCode::from(3)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
