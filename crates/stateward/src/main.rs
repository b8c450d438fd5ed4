//! The one binary: arguments come in here, errors become exit codes here and nowhere else. Data goes to stdout, talk to
//! stderr.

mod cluster;
mod kubeconfig;
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
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .init();
    let outcome = match Cli::parse().action {
        Action::Cluster(args) => cluster::run(args).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stateward: {error:#}");
            ExitCode::FAILURE
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
