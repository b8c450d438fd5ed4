//! The holder identity of an operator in its Lease.
//!
//! In a pod it is the pod's UID, so that a restarted container reacquires its own Lease without waiting for it to expire. Two live
//! processes must never share an identity, because each would consider the other's Lease its own. The UID therefore belongs to the
//! process that holds a socket of that name in the pod's network namespace, which all containers of a pod share and which the kernel
//! closes with the process. Every other process has a random identity.

use std::os::unix::net::UnixListener;

/// A candidate's identity, held until it is dropped.
pub(super) struct Identity {
    pub(super) name: String,
    _held: Option<UnixListener>,
}

impl Identity {
    /// The pod's UID, if there is one and no other live process of the pod holds it; otherwise random.
    pub(super) fn new(pod_uid: Option<&str>) -> Self {
        let pod_uid = pod_uid.map(str::trim).filter(|uid| !uid.is_empty());
        if let Some(uid) = pod_uid {
            match hold(uid) {
                Ok(held) => {
                    return Self {
                        name: format!("{}_{uid}", host()),
                        _held: Some(held),
                    };
                }
                Err(error) => tracing::warn!(
                    %error,
                    "another process holds the identity of this pod; standing for election with a random one"
                ),
            }
        }
        Self {
            name: format!("{}_{:016x}", host(), fastrand::u64(..)),
            _held: None,
        }
    }
}

fn host() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    let host = host.or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    host.as_deref().map_or("stateward", str::trim).to_owned()
}

#[cfg(target_os = "linux")]
fn hold(uid: &str) -> std::io::Result<UnixListener> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;

    let name = SocketAddr::from_abstract_name(format!("stateward-operator-{uid}"))?;
    UnixListener::bind_addr(&name)
}

/// Pods run on Linux.
#[cfg(not(target_os = "linux"))]
fn hold(_uid: &str) -> std::io::Result<UnixListener> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_leaves_its_identity_to_the_next_and_a_live_one_shares_it_with_none() {
        let uid = format!("{:016x}", fastrand::u64(..));
        let first = Identity::new(Some(&uid));
        assert!(first.name.ends_with(&uid));
        let second = Identity::new(Some(&uid));
        assert!(!second.name.ends_with(&uid));
        let pods = first.name.clone();
        drop(first);
        assert_eq!(Identity::new(Some(&uid)).name, pods);
    }

    #[test]
    fn outside_of_a_pod_identities_are_random() {
        for uid in [None, Some(""), Some(" ")] {
            assert_ne!(Identity::new(uid).name, Identity::new(uid).name);
        }
    }
}
