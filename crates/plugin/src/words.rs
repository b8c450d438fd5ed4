//! Error messages of requests, for users.

use kube::runtime::watcher;

/// The API server's own message, if there is one. kube's format would repeat everything, once as code.
pub fn words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => of_status(status),
        other => other.to_string(),
    }
}

/// The same for a broken watch.
pub fn words_of_watch(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => words(error),
        watcher::Error::WatchError(status) => of_status(status),
        other => other.to_string(),
    }
}

fn of_status(status: &kube::core::Status) -> String {
    if status.message.is_empty() {
        format!("the API server said {} {}", status.code, status.reason)
    } else {
        status.message.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    #[test]
    fn people_read_what_the_server_said_and_not_how_it_is_kept() {
        let refused = |message: &str| {
            let status = Status::failure(message, "Forbidden").with_code(403);
            kube::Error::Api(status.boxed())
        };
        assert_eq!(words(&refused("quota exceeded")), "quota exceeded");
        assert_eq!(words(&refused("")), "the API server said 403 Forbidden");
        let broken = watcher::Error::InitialListFailed(refused("you may not"));
        assert_eq!(words_of_watch(&broken), "you may not");
    }
}
