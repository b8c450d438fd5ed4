//! The directory of a plane: its data, logs and kubeconfigs, and the lock that shows whether it runs.
//!
//! The owner and every component hold the lock of `<plane>/lock` (the components inherit it as their stdin), and the kernel releases it
//! with the last of them. Process ids are reused and so not reliable: if the lock can be acquired, the plane is dead, and its files may be
//! removed.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, test_kill_process};

use super::users::User;
use crate::layout::Layout;

/// The prefix of planes for one command; the next start removes what a killed one left behind.
const RUN_PREFIX: &str = "run-";
const LOCK: &str = "lock";
/// Marks a plane of one command whose directory is to be kept.
const KEEP: &str = "keep";

/// The directory of a plane, owned as long as this value lives.
pub(crate) struct PlaneDir {
    name: String,
    path: PathBuf,
    registry: PathBuf,
    lock: File,
}

impl PlaneDir {
    /// Claims and empties the directory of the plane `name`; `None` if that plane is running.
    pub(crate) fn claim(layout: &Layout, name: &str) -> Result<Option<Self>> {
        let _registry = lock_registry(&layout.kube)?;
        prune(&root(layout));
        let path = root(layout).join(name);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot create {}", path.display()))?;
        let mut lock = open_lock(&path).with_context(|| format!("cannot open the lock of plane {name}"))?;
        if !take(&mut lock).with_context(|| format!("cannot lock plane {name}"))? {
            return Ok(None);
        }
        let dir = Self {
            name: name.to_owned(),
            path,
            registry: layout.kube.clone(),
            lock,
        };
        dir.wipe()?;
        dir.lock
            .set_len(0)
            .and_then(|()| write!(&dir.lock, "{}", std::process::id()))
            .context("cannot sign the lock")?;
        Ok(Some(dir))
    }

    /// Claims a directory for the plane of one command.
    pub(crate) fn claim_for_one_run(layout: &Layout, keep: bool) -> Result<Self> {
        let pid = std::process::id();
        for attempt in 0..10 {
            if let Some(dir) = Self::claim(layout, &format!("{RUN_PREFIX}{pid}-{attempt}"))? {
                if keep {
                    File::create(dir.path.join(KEEP))
                        .context("cannot mark the plane's directory to be kept")?;
                }
                return Ok(dir);
            }
        }
        bail!(
            "all names for a plane are taken: look at {}",
            root(layout).display()
        )
    }

    /// The name of the plane.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The file or directory `name` of this plane.
    pub(crate) fn join(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    /// The kubeconfig of `user`.
    pub(crate) fn kubeconfig(&self, user: User) -> PathBuf {
        self.join(user.kubeconfig())
    }

    /// The API server's audit log.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.join("audit.log")
    }

    /// Removes everything but the lock.
    pub(crate) fn wipe(&self) -> Result<()> {
        let failed = || format!("cannot empty {}", self.path.display());
        for entry in fs::read_dir(&self.path).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            if entry.file_type().with_context(failed)?.is_dir() {
                fs::remove_dir_all(entry.path()).with_context(failed)?;
            } else if entry.file_name() != LOCK && entry.file_name() != KEEP {
                fs::remove_file(entry.path()).with_context(failed)?;
            }
        }
        Ok(())
    }

    /// The held lock as the stdin of a component, which keeps it locked while the component lives.
    pub(crate) fn share_lock(&self) -> Result<Stdio> {
        Ok(self
            .lock
            .try_clone()
            .context("cannot share the lock of the plane")?
            .into())
    }

    /// Removes the directory.
    pub(crate) fn remove(self) -> Result<()> {
        let _registry = lock_registry(&self.registry)?;
        fs::remove_dir_all(&self.path).with_context(|| format!("cannot remove {}", self.path.display()))
    }
}

/// A plane that another process may own.
pub(crate) struct Known {
    /// Its name.
    pub(crate) name: String,
    /// Its directory.
    pub(crate) path: PathBuf,
    /// The process that owns it, if it is running.
    pub(crate) owner: Option<Pid>,
}

/// All planes that have a directory, running or dead, by name.
pub(crate) fn known(layout: &Layout) -> Result<Vec<Known>> {
    // Trying a lock holds it for a moment, which must not look like a running plane to a concurrent claim.
    let _registry = lock_registry(&layout.kube)?;
    let mut planes = Vec::new();
    for path in directories(&root(layout)) {
        let Ok(mut lock) = open_lock(&path) else { continue };
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let owner = match lock.try_lock() {
            Ok(()) => None,
            Err(TryLockError::WouldBlock) => signer(&mut lock),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock plane {name}"));
            }
        };
        planes.push(Known { name, path, owner });
    }
    planes.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(planes)
}

/// Rejects invalid directory names, and names of planes for one command.
pub(crate) fn check_name(name: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.starts_with('-') || !name.chars().all(fits) {
        return Err("allowed are lower case letters, digits and hyphens".to_owned());
    }
    if is_of_one_run(name) {
        return Err(format!(
            "names with {RUN_PREFIX} belong to the planes of single commands"
        ));
    }
    Ok(name.to_owned())
}

/// Whether `name` is that of a plane for one command.
pub(crate) fn is_of_one_run(name: &str) -> bool {
    name.starts_with(RUN_PREFIX)
}

fn root(layout: &Layout) -> PathBuf {
    layout.kube.join("planes")
}

/// Protects the creation and removal of plane directories against races.
fn lock_registry(kube: &Path) -> Result<File> {
    let path = kube.join("planes.lock");
    fs::create_dir_all(kube)
        .and_then(|()| File::create(&path))
        .and_then(|file| file.lock().map(|()| file))
        .with_context(|| format!("cannot lock {}", path.display()))
}

fn open_lock(plane: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(plane.join(LOCK))
}

/// Acquires the lock of a plane unless the plane is running.
fn take(lock: &mut File) -> std::io::Result<bool> {
    match lock.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
        Err(TryLockError::WouldBlock) => match signer(lock) {
            // Its owner is gone, so the kernel is about to end the components.
            Some(pid) if test_kill_process(pid).is_err() => lock.lock().map(|()| true),
            _ => Ok(false),
        },
    }
}

/// The process id that the owner wrote into the lock.
fn signer(lock: &mut File) -> Option<Pid> {
    let mut text = String::new();
    lock.read_to_string(&mut text).ok()?;
    Pid::from_raw(text.trim().parse().ok()?)
}

/// Removes what killed commands left behind. Failing to do so must not prevent a start.
fn prune(root: &Path) {
    for path in directories(root) {
        let of_one_run = path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(RUN_PREFIX));
        if of_one_run
            && !path.join(KEEP).exists()
            && let Ok(lock) = open_lock(&path)
            && lock.try_lock().is_ok()
        {
            let _next_time = fs::remove_dir_all(&path);
        }
    }
}

fn directories(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(dir: &Path) -> Layout {
        Layout {
            root: dir.to_path_buf(),
            testbed: dir.join("testbed"),
            target: dir.to_path_buf(),
            kube: dir.join("kube"),
        }
    }

    #[test]
    fn a_name_is_held_while_its_plane_lives_and_its_leftovers_are_wiped_after_that() {
        let dir = tempfile::tempdir().unwrap();
        let layout = layout(dir.path());
        let held = PlaneDir::claim(&layout, "dev").unwrap().unwrap();
        fs::create_dir(held.join("etcd")).unwrap();
        assert!(
            PlaneDir::claim(&layout, "dev").unwrap().is_none(),
            "claimed twice"
        );
        assert_eq!(known(&layout).unwrap()[0].owner, Some(rustix::process::getpid()));

        drop(held);
        assert!(known(&layout).unwrap()[0].owner.is_none());
        let again = PlaneDir::claim(&layout, "dev").unwrap().unwrap();
        assert!(
            !again.join("etcd").exists(),
            "leftovers of the dead plane are still there"
        );
    }

    #[test]
    fn the_next_start_removes_what_a_killed_command_left_but_nothing_that_was_kept() {
        let dir = tempfile::tempdir().unwrap();
        let layout = layout(dir.path());
        let killed = PlaneDir::claim_for_one_run(&layout, false).unwrap();
        let kept = PlaneDir::claim_for_one_run(&layout, true).unwrap();
        let alive = PlaneDir::claim_for_one_run(&layout, false).unwrap();
        let paths = [killed.path.clone(), kept.path.clone(), alive.path.clone()];
        drop(killed);
        drop(kept);

        let _next = PlaneDir::claim(&layout, "dev").unwrap().unwrap();
        assert_eq!(paths.map(|path| path.exists()), [false, true, true]);
        drop(alive);
    }

    #[test]
    fn names_that_could_escape_or_collide_are_refused() {
        for name in ["dev", "a-1"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "..", "a/b", "-x", "Dev", "run-1"] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
