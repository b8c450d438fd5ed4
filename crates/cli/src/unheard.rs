//! A change that was asked for and whose answer was never heard: nobody knows whether it was made.

use crate::call;
use crate::dry_run::DryRun;
use crate::error::Error;
use crate::reach::Unreachable;
use crate::rollout::Rollout;

/// Whether a change that ended so may have been made all the same.
pub(crate) fn may_have_been_made(error: &kube::Error) -> bool {
    match error {
        // The server has given up waiting for its own store.
        kube::Error::Api(status) => status.code == 504,
        // The answer has begun, and cannot be read.
        kube::Error::HyperError(_) | kube::Error::SerdeError(_) => true,
        broken @ kube::Error::Service(_) => {
            Unreachable::among(broken).is_none_or(Unreachable::may_have_been_heard)
        }
        _ => false,
    }
}

/// How that ends. `what` is what is not known: `rolloutplugin db was asked to abort`.
pub(crate) fn unheard(why: &str, what: &str, seen: &Rollout, dry_run: DryRun, program: &str) -> Error {
    if dry_run != DryRun::None {
        return Error::Late(format!("{why}; it was a dry run, and nothing was changed"));
    }
    let (program, name) = (call::about(program, seen), seen.name_any());
    Error::Late(format!(
        "{why}; whether {what} is not known, see with: {program} status {name}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::tests::{to, to_url};
    use rstest::rstest;
    use std::io::Read;
    use std::net::TcpListener;
    use std::time::Duration;

    /// How asking a server ends that does this with whoever connects.
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
            // It hears all of it and says nothing, until nobody is there any more.
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        })
        .await;
        assert!(may_have_been_made(&error), "{error:?}");
    }

    #[tokio::test]
    async fn a_connection_that_never_comes_about_has_sent_nothing() {
        let dir = tempfile::tempdir().unwrap();
        // It listens, and never says its part of the handshake.
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
