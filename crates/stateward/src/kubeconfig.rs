//! The kubeconfig that leads to a cluster of ours.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use base64::Engine;

/// Where a cluster is and how to be let in.
pub(crate) struct Access<'a> {
    pub(crate) server: String,
    /// The authority to trust, in PEM; `None` where the cluster is served without TLS.
    pub(crate) authority: Option<&'a str>,
    pub(crate) token: &'a str,
}

/// What our kubeconfigs begin with, so that we never overwrite somebody else's.
const HEADER: &str = "# written by stateward cluster, which replaces it at every start\n";

/// A token that nobody can guess.
pub(crate) fn new_token() -> Result<String> {
    let mut bytes = [0; 24];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random
        .fill(&mut bytes)
        .map_err(|_| anyhow!("the system has no random numbers"))?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// Writes a kubeconfig that only its owner can read. A file that we did not write is left alone, unless it is empty.
pub(crate) fn write(path: &Path, access: &Access<'_>) -> Result<()> {
    if let Ok(there) = fs::read(path)
        && !there.is_empty()
        && !there.starts_with(HEADER.as_bytes())
    {
        bail!(
            "{} is not a kubeconfig of ours and would be overwritten; name another file with --kubeconfig",
            path.display()
        );
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    let writing = || format!("cannot write {}", path.display());
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .with_context(writing)?;
    file.write_all(text(access).as_bytes()).with_context(writing)
}

/// Takes a kubeconfig away that we wrote. One that somebody has replaced meanwhile is theirs.
pub(crate) fn remove(path: &Path, access: &Access<'_>) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == text(access).as_bytes()) {
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}

fn text(access: &Access<'_>) -> String {
    let Access {
        server,
        authority,
        token,
    } = access;
    // JSON is YAML, and needs no indentation to be right.
    let authority = match authority {
        Some(pem) => format!("\n    certificate-authority-data: {}", base64(pem.as_bytes())),
        None => String::new(),
    };
    format!(
        "{HEADER}apiVersion: v1
kind: Config
current-context: stateward
contexts:
- name: stateward
  context: {{cluster: stateward, user: admin}}
clusters:
- name: stateward
  cluster:
    server: {server}{authority}
users:
- name: admin
  user: {{token: {token}}}
"
    )
}

fn base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCESS: Access<'_> = Access {
        server: String::new(),
        authority: None,
        token: "t",
    };

    #[test]
    fn only_what_we_wrote_is_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        write(&path, &ACCESS).unwrap();
        remove(
            &path,
            &Access {
                token: "another",
                ..ACCESS
            },
        )
        .unwrap();
        assert!(path.exists(), "another cluster's file was taken away");
        remove(&path, &ACCESS).unwrap();
        assert!(!path.exists());
        remove(&path, &ACCESS).unwrap();
    }

    #[test]
    fn our_own_file_is_replaced_and_a_foreign_one_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/kubeconfig");
        write(&path, &ACCESS).unwrap();
        write(&path, &ACCESS).unwrap();
        fs::write(&path, "").unwrap();
        write(&path, &ACCESS).unwrap();

        fs::write(&path, b"\xff not even text").unwrap();
        write(&path, &ACCESS).unwrap_err();
        fs::write(&path, "apiVersion: v1\nkind: Config\n").unwrap();
        let refused = write(&path, &ACCESS).unwrap_err().to_string();
        assert!(refused.contains("not a kubeconfig of ours"), "{refused}");
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "apiVersion: v1\nkind: Config\n"
        );
    }
}
