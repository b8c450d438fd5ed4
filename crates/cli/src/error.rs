//! Errors, as messages for the user.

use std::io;

use kube::runtime::watcher;
use stateward_client::InvalidName;

use crate::connect_error::{self, Unreachable};
use crate::exit::Exit;
use crate::views::style::Style;

/// Why a verb failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no cluster to talk to.
    #[error("no cluster to talk to: {0}; set KUBECONFIG, or name one with --kubeconfig or --context")]
    Access(String),
    /// There is no such object.
    #[error("{name} is not there in namespace {namespace}; {hint}")]
    NotFound {
        /// Its name, with the kind if one was given.
        name: String,
        /// The namespace that was searched.
        namespace: String,
        /// What the user can do.
        hint: String,
    },
    /// A workload has no rollout.
    #[error(
        "{name} is rolled by nothing in namespace {namespace}; see what is there with: {program} get -o wide"
    )]
    Unmanaged {
        /// The workload.
        name: String,
        /// The namespace that was searched.
        namespace: String,
        /// How the user invoked the program.
        program: String,
    },
    /// The API server does not know the kind.
    #[error(
        "the cluster knows no rollouts of ours; install the operator with: stateward install | kubectl apply -f -"
    )]
    Unserved,
    /// The command does not apply, or the operator refused it.
    #[error("{0}")]
    Refused(String),
    /// The API server does not answer.
    #[error("{0}")]
    Unreachable(String),
    /// The API server returned an error.
    #[error("cannot {doing}: {}", words(source))]
    Api {
        /// The operation that failed.
        doing: String,
        /// The server's error.
        source: Box<kube::Error>,
    },
    /// No answer within the timeout.
    #[error("{0}")]
    Late(String),
    /// A watch was denied.
    #[error("cannot watch {what}: {why}")]
    Watch {
        /// What was watched.
        what: String,
        /// The reason.
        why: String,
    },
    /// An object that cannot be written in the requested format.
    #[error("cannot write the object as {format}: {why}")]
    Format {
        /// The format.
        format: &'static str,
        /// The reason.
        why: String,
    },
    /// The reader of the output is gone.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

impl From<InvalidName> for Error {
    fn from(invalid: InvalidName) -> Self {
        Self::Refused(invalid.to_string())
    }
}

impl Error {
    /// An API error with the operation that failed, for `map_err`.
    pub(crate) fn api(doing: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let doing = doing.into();
        move |source| match &source {
            kube::Error::Api(status) if is_unserved(status) => Self::Unserved,
            _ => match Unreachable::among(&source) {
                Some(unreachable) => Self::Unreachable(unreachable.to_string()),
                None => Self::Api {
                    doing,
                    source: Box::new(source),
                },
            },
        }
    }

    /// The message without the operation.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Api { source, .. } => words(source),
            other => other.to_string(),
        }
    }

    /// Whether it means that a kind is not served, or that access to it is denied.
    pub(crate) fn is_about_the_kind(&self) -> bool {
        match self {
            Self::Unserved => true,
            Self::Api { source, .. } => matches!(&**source, kube::Error::Api(status) if status.code == 403),
            _ => false,
        }
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        match self {
            Self::NotFound { .. } | Self::Unmanaged { .. } => Exit::NotFound,
            Self::Late(_) => Exit::Timeout,
            _ if self.is_nobody_listening() => Exit::Done,
            _ => Exit::Error,
        }
    }

    /// The message in one line, sanitized: it may quote the API server.
    pub fn line(&self, style: Style) -> String {
        stateward_terminal::line(&self.to_string(), style.charset())
    }

    /// Whether the reader closed the pipe, as in `… | head`.
    pub(crate) fn is_nobody_listening(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// The server's own message, if there is one, without kube's wrapping.
pub(crate) fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => status.message.clone(),
        unsent @ (kube::Error::Service(_) | kube::Error::HyperError(_)) => connect_error::root(unsent),
        other => other.to_string(),
    }
}

/// Why a watch was lost.
pub(crate) fn lost(error: &(dyn std::error::Error + 'static)) -> String {
    if let Some(unreachable) = Unreachable::among(error) {
        return unreachable.to_string();
    }
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    let said = causes.find_map(|cause| match cause.downcast_ref::<watcher::Error>() {
        Some(watcher::Error::WatchError(status)) => Some(status.message.clone()),
        _ => cause.downcast_ref().map(words),
    });
    said.unwrap_or_else(|| error.to_string())
}

/// A 404 without an object name is about the whole kind.
fn is_unserved(status: &kube::core::Status) -> bool {
    let named = status
        .details
        .as_ref()
        .is_some_and(|details| !details.name.is_empty());
    status.code == 404 && !named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_what_the_server_said_and_not_how_it_is_kept() {
        let status = kube::core::Status::failure("you may not", "Forbidden").with_code(403);
        let error = Error::api("get rolloutplugin db")(kube::Error::Api(status.boxed()));
        assert_eq!(error.to_string(), "cannot get rolloutplugin db: you may not");
        let status = || {
            kube::core::Status::failure("you may not", "Forbidden")
                .with_code(403)
                .boxed()
        };
        let refused = watcher::Error::InitialListFailed(kube::Error::Api(status()));
        assert_eq!(lost(&refused), "you may not");
        assert_eq!(lost(&watcher::Error::WatchError(status())), "you may not");
    }
}
