//! Builds the control plane: one binary per content of `testbed/`, stored under `target/kube/`.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::Signal;
use sha2::{Digest, Sha256};

use super::go;
use super::version::{Version, oldest_go};
use crate::layout::Layout;
use crate::process::die_with_us;
use crate::progress::Progress;

/// All inputs of the build.
pub(crate) struct Recipe {
    version: Version,
    oldest_go: String,
    digest: String,
}

impl Recipe {
    /// Reads the sources of the test bed.
    pub(crate) fn read(layout: &Layout) -> Result<Self> {
        let read = |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
        let go_mod =
            String::from_utf8(read(&layout.testbed.join("go.mod"))?).context("testbed/go.mod is not text")?;
        let version = Version::from_go_mod(&go_mod)?;
        let oldest_go = oldest_go(&go_mod)
            .context("testbed/go.mod: no go line")?
            .to_owned();

        let mut files: Vec<PathBuf> = fs::read_dir(&layout.testbed)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
            .with_context(|| format!("cannot list {}", layout.testbed.display()))?;
        files.retain(|path| {
            path.extension()
                .is_some_and(|ext| ["go", "mod", "sum"].iter().any(|e| ext == *e))
        });
        files.sort();
        let mut hash = Sha256::new();
        for flag in build_flags(&version) {
            hash.update(framed(flag.as_bytes()));
        }
        for file in &files {
            hash.update(framed(file.file_name().unwrap_or_default().as_encoded_bytes()));
            hash.update(framed(&read(file)?));
        }
        let digest = hash
            .finalize()
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Ok(Self {
            version,
            oldest_go,
            digest,
        })
    }

    /// The minimum Go version for the build.
    pub(crate) fn oldest_go(&self) -> &str {
        &self.oldest_go
    }

    fn dir(&self, layout: &Layout) -> PathBuf {
        layout.kube.join(format!("{}-{}", self.version, self.digest))
    }
}

/// A built control plane.
#[derive(Clone)]
pub(crate) struct Binary {
    dir: PathBuf,
}

impl Binary {
    /// The binary that was built from `recipe`, if there is one.
    pub(crate) fn find(layout: &Layout, recipe: &Recipe) -> Option<Self> {
        let binary = Self {
            dir: recipe.dir(layout),
        };
        binary.path().exists().then_some(binary)
    }

    /// The multi-call binary: `kube etcd`, `kube apiserver`, …
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.join("kube")
    }

    /// A directory for PATH that holds the real kubectl.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Builds the control plane unless it already exists.
pub(crate) fn build(layout: &Layout) -> Result<Binary> {
    let recipe = Recipe::read(layout)?;
    if let Some(binary) = Binary::find(layout, &recipe) {
        return Ok(binary);
    }
    go::check(&layout.testbed, &recipe.oldest_go)
        .map_err(|problem| anyhow!(problem.advice(&recipe.oldest_go)))?;
    let _lock = lock(layout, &recipe.version)?;
    // Another build may have finished while this one waited for the lock.
    if let Some(binary) = Binary::find(layout, &recipe) {
        return Ok(binary);
    }

    let dir = recipe.dir(layout);
    fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let partial = dir.join("kube.partial");
    compile(layout, &recipe.version, &partial)?;
    let kubectl = dir.join("kubectl");
    let _leftover = fs::remove_file(&kubectl);
    std::os::unix::fs::symlink("kube", &kubectl).context("cannot link kubectl")?;
    // The final name is set last, so that an interrupted build is never used.
    fs::rename(&partial, dir.join("kube")).context("cannot name the built control plane")?;
    Ok(Binary { dir })
}

fn compile(layout: &Layout, version: &Version, output: &Path) -> Result<()> {
    let what = format!("building Kubernetes {version}");
    eprintln!("{what} into {}", output.with_extension("").display());
    let missing = packages_to_compile(layout, version)?;
    let pace = if missing.len() > 500 {
        "minutes, this first time"
    } else {
        "the others are in Go's cache"
    };
    eprintln!("{what}: packages to compile: {} ({pace})", missing.len());

    let mut command = go_command(layout, "build", version);
    command
        .args(["-v", "-o"])
        .arg(output)
        .arg(".")
        .stdout(Stdio::null());
    let mut progress = Progress::new(what.clone(), "packages", missing.len());
    // `go build -v` prints each package as it is compiled; other lines are shown if it fails.
    let said = talk_of(&mut command, |line| {
        let package = missing.contains(line);
        if package {
            progress.advance();
        }
        package
    });
    progress.finish();
    said.with_context(|| format!("{what} failed"))
}

/// The packages that are not in Go's cache; this also downloads the modules.
fn packages_to_compile(layout: &Layout, version: &Version) -> Result<HashSet<String>> {
    let list = layout.kube.join("packages.txt");
    let mut command = go_command(layout, "list", version);
    command.args(["-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", "."]);
    command.stdout(File::create(&list).with_context(|| format!("cannot write {}", list.display()))?);
    let mut fetched = 0_usize;
    talk_of(&mut command, |line| {
        let fetching = line.starts_with("go: downloading ");
        if fetching {
            fetched += 1;
            if fetched % 25 == 1 {
                eprintln!("fetching Go modules ({fetched} so far)");
            }
        }
        fetching
    })
    .context("cannot list the packages of testbed")?;
    let list = fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    Ok(list
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect())
}

/// Runs `command` and passes each line of its stderr to `known`; on failure, prints the lines that `known` rejected.
fn talk_of(command: &mut Command, mut known: impl FnMut(&str) -> bool) -> Result<()> {
    die_with_us(command, Signal::KILL);
    let mut child = command.stderr(Stdio::piped()).spawn().context("cannot run go")?;
    let mut unknown = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        for line in BufReader::new(stderr).lines() {
            let line = line.context("cannot read what go says")?;
            if !known(&line) {
                unknown.push(line);
            }
        }
    }
    if !child.wait().context("cannot wait for go")?.success() {
        bail!("go said:\n{}", unknown.join("\n"));
    }
    Ok(())
}

fn go_command(layout: &Layout, verb: &str, version: &Version) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(&layout.testbed)
        .env("CGO_ENABLED", "0")
        .stdin(Stdio::null());
    command.arg(verb).args(build_flags(version));
    command
}

fn build_flags(version: &Version) -> [String; 3] {
    [
        "-trimpath".to_owned(),
        "-ldflags".to_owned(),
        version.linker_flags(),
    ]
}

/// `bytes` prefixed with their length, so that different lists of inputs never hash alike.
fn framed(bytes: &[u8]) -> Vec<u8> {
    [&bytes.len().to_le_bytes(), bytes].concat()
}

fn lock(layout: &Layout, version: &Version) -> Result<File> {
    fs::create_dir_all(&layout.kube).with_context(|| format!("cannot create {}", layout.kube.display()))?;
    let path = layout.kube.join("build.lock");
    let file = File::create(&path).with_context(|| format!("cannot open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => eprintln!("waiting for another build of Kubernetes {version}"),
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    file.lock()
        .with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(file)
}
