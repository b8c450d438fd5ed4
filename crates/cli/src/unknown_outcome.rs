//! A change without an answer: whether it was made is unknown.

use crate::connect_error::Unreachable;
use crate::dry_run::DryRun;
use crate::error::Error;
use crate::rollout::Rollout;
use crate::views::invocation;

/// Whether a change that failed with this error may have been made.
pub(crate) fn may_have_been_made(error: &kube::Error) -> bool {
    match error {
        // The server timed out waiting for its store.
        kube::Error::Api(status) => status.code == 504,
        // The answer has started, but cannot be read.
        kube::Error::HyperError(_) | kube::Error::SerdeError(_) => true,
        broken @ kube::Error::Service(_) => {
            Unreachable::among(broken).is_none_or(Unreachable::may_have_been_heard)
        }
        _ => false,
    }
}

/// The error for it. `what` is what is unknown: `rolloutplugin db was asked to abort`.
pub(crate) fn unknown_outcome(
    why: &str,
    what: &str,
    seen: &Rollout,
    dry_run: DryRun,
    program: &str,
) -> Error {
    if dry_run != DryRun::None {
        return Error::Late(format!("{why}; it was a dry run, and nothing was changed"));
    }
    let (program, name) = (invocation::about(program, seen), seen.name_any());
    Error::Late(format!(
        "{why}; whether {what} is not known, see with: {program} status {name}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::access::tests::{to, to_url};
    use rstest::rstest;
    use std::io::Read;
    use std::net::TcpListener;
    use std::time::Duration;

    /// The result of a request to a server that does this with every connection.
    async fn asked(limit: Option<Duration>, serve: impl FnOnce(TcpListener) + Send + 'static) -> kube::Error {
        let dir = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut access = to(listener.local_addr().unwrap(), &dir);
        access.request_timeout = limit;
        let client = access.connect().await.unwrap().client;
        let serving = std::thread::spawn(|| serve(listener));
        if limit.is_none() {
            serving.join().unwrap();
        }
        client.apiserver_version().await.unwrap_err()
    }

    #[tokio::test]
    async fn a_request_that_was_given_up_may_have_been_heard() {
        let limit = Some(Duration::from_millis(20));
        let error = asked(limit, |listener| {
            // It reads the whole request and never answers, until the client is gone.
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        })
        .await;
        assert!(may_have_been_made(&error), "{error:?}");
    }

    #[tokio::test]
    async fn a_connection_that_never_comes_about_has_sent_nothing() {
        let dir = tempfile::tempdir().unwrap();
        // It listens, but never answers the handshake.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let mut access = to_url(&format!("https://{address}"), &dir);
        access.request_timeout = Some(Duration::from_millis(50));
        let client = access.connect().await.unwrap().client;
        let error = client.apiserver_version().await.unwrap_err();
        assert!(!may_have_been_made(&error), "{error:?}");
        assert_eq!(
            Error::api("ask")(error).to_string(),
            format!("cannot reach https://{address}: no connection in time")
        );
    }

    #[tokio::test]
    async fn without_a_connection_nothing_was_heard() {
        let error = asked(None, drop).await;
        assert!(!may_have_been_made(&error), "{error:?}");
    }

    #[rstest]
    #[case(504, true)]
    #[case(409, false)]
    #[case(403, false)]
    fn a_server_that_has_given_up_itself_does_not_know(#[case] code: u16, #[case] expected: bool) {
        let status = kube::core::Status::failure("x", "y").with_code(code);
        assert_eq!(may_have_been_made(&kube::Error::Api(status.boxed())), expected);
    }
}
