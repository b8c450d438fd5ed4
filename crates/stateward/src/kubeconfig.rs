//! The kubeconfig of an embedded cluster.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use base64::Engine;

/// The address of a cluster and its credentials.
pub(crate) struct Access<'a> {
    pub(crate) server: String,
    /// The certificate authority to trust, in PEM format; `None` if the cluster is served without TLS.
    pub(crate) authority: Option<&'a str>,
    pub(crate) token: &'a str,
}

/// The first line of our kubeconfigs, so that files of others are never overwritten.
const HEADER: &str = "# written by stateward cluster, which replaces it at every start\n";

/// A random token.
pub(crate) fn new_token() -> Result<String> {
    let mut bytes = [0; 24];
    let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
    random
        .fill(&mut bytes)
        .map_err(|_| anyhow!("the system has no random numbers"))?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// Writes a kubeconfig that only its owner can read. An existing file is replaced only if it is ours or empty. A symbolic link is
/// rejected, because its target would be replaced, or be readable by the creator of the link.
///
/// The file is written under a temporary name in the same directory and renamed, so that no reader sees a partial file, and the token
/// never reaches a file that another process may have open.
pub(crate) fn write(path: &Path, access: &Access<'_>) -> Result<()> {
    if let Some(there) = present(path)?
        && !there.is_empty()
        && !there.starts_with(HEADER.as_bytes())
    {
        bail!(
            "{} is not a kubeconfig of ours and would be overwritten; name another file with --kubeconfig",
            path.display()
        );
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    let writing = || format!("cannot write {}", path.display());
    // With mode 0600, and only if no file has this name.
    let mut file = tempfile::Builder::new()
        .prefix(".stateward-")
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(parent)
        .with_context(writing)?;
    file.write_all(text(access).as_bytes()).with_context(writing)?;
    file.persist(path)
        .map_err(|error| error.error)
        .with_context(writing)?;
    Ok(())
}

/// The content of a file; `None` if it does not exist. Anything but a regular file is rejected.
fn present(path: &Path) -> Result<Option<Vec<u8>>> {
    let reading = || format!("cannot read {}", path.display());
    let what = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(reading),
    };
    if what.is_symlink() {
        bail!(
            "{} is a symbolic link, which --kubeconfig does not follow; name the file itself",
            path.display()
        );
    }
    if !what.is_file() {
        bail!("{} is no file; name another with --kubeconfig", path.display());
    }
    fs::read(path).map(Some).with_context(reading)
}

/// Removes our kubeconfig, unless another one has replaced it.
pub(crate) fn remove(path: &Path, access: &Access<'_>) -> Result<()> {
    if present(path).is_ok_and(|there| there.is_some_and(|there| there == text(access).as_bytes())) {
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
    // JSON is valid YAML, and quotes strings correctly.
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

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_its_owner_can_read_it_whatever_was_there_before() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kubeconfig");
        for before in ["", HEADER] {
            fs::write(&path, before).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
            // A process that has the file open sees its old content, and not the token.
            let mut open = fs::File::open(&path).unwrap();
            write(&path, &ACCESS).unwrap();
            assert_eq!(mode(&path), 0o600);
            let mut read = String::new();
            io::Read::read_to_string(&mut open, &mut read).unwrap();
            assert_eq!(read, before);
        }
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn a_symbolic_link_is_refused_and_what_it_leads_to_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (path, target) = (dir.path().join("kubeconfig"), dir.path().join("target"));
        std::os::unix::fs::symlink(&target, &path).unwrap();
        for there in [None, Some(""), Some(HEADER)] {
            if let Some(there) = there {
                fs::write(&target, there).unwrap();
            }
            let refused = write(&path, &ACCESS).unwrap_err().to_string();
            assert!(refused.contains("is a symbolic link"), "{refused}");
            assert_eq!(fs::read_to_string(&target).ok().as_deref(), there);
        }
        fs::write(&target, text(&ACCESS)).unwrap();
        remove(&path, &ACCESS).unwrap();
        assert!(path.is_symlink() && target.exists());
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let refused = write(dir.path(), &ACCESS).unwrap_err().to_string();
        assert!(refused.contains("is no file"), "{refused}");
    }
}
