//! Runs commands against a place.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

use super::normal::normal;
use super::transcript::{Answer, Step};

/// A command of a transcript takes this long only if it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A shell for one transcript on one place.
pub(super) struct Shell {
    /// The directory of kubectl.
    pub(super) programs: PathBuf,
    /// The directory of the transcripts and their manifests.
    pub(super) directory: PathBuf,
    /// Holds the kubeconfig, and kubectl's cache.
    pub(super) home: PathBuf,
    pub(super) namespace: String,
}

impl Shell {
    /// Runs a step and returns its answer.
    pub(super) async fn run(&self, step: &Step) -> Result<Answer> {
        let answer = tokio::time::timeout(PATIENCE, self.answer(step)).await;
        answer.with_context(|| format!("no end after {PATIENCE:?}: {}", step.command))?
    }

    async fn answer(&self, step: &Step) -> Result<Answer> {
        match step.ends_after {
            None => {
                let output = self
                    .command(&step.command)
                    .output()
                    .await
                    .context("cannot run sh")?;
                let text = |bytes: &[u8]| normal(&String::from_utf8_lossy(bytes));
                let code = output.status.code().unwrap_or(-1);
                Ok(Answer {
                    stdout: text(&output.stdout),
                    stderr: text(&output.stderr),
                    code,
                }
                .trimmed())
            }
            Some(count) => self.beginning(step, count).await,
        }
    }

    /// The first lines of a command that does not end by itself.
    async fn beginning(&self, step: &Step, count: usize) -> Result<Answer> {
        let mut running = self
            .command(&format!("exec {}", step.command))
            .spawn()
            .context("cannot run sh")?;
        let (Some(stdout), Some(mut stderr)) = (running.stdout.take(), running.stderr.take()) else {
            bail!("a process without output");
        };
        let mut lines = BufReader::new(stdout).lines();
        let mut seen = Vec::new();
        while seen.len() < count {
            let Some(line) = lines.next_line().await? else {
                let mut said = String::new();
                stderr.read_to_string(&mut said).await?;
                bail!("{} ended after {} lines: {said}", step.command, seen.len());
            };
            seen.push(line);
            if let (1, Some(meanwhile)) = (seen.len(), &step.meanwhile) {
                let done = self.command(meanwhile).output().await.context("cannot run sh")?;
                if !done.status.success() {
                    bail!("{meanwhile}: {}", String::from_utf8_lossy(&done.stderr));
                }
            }
        }
        running.kill().await.context("cannot end a watch")?;
        Ok(Answer {
            stdout: normal(&seen.join("\n")),
            ..Answer::default()
        }
        .trimmed())
    }

    fn command(&self, script: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let programs = std::iter::once(self.programs.clone()).chain(std::env::split_paths(&path));
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .current_dir(&self.directory)
            // A path with a colon cannot be joined; the shell then reports that there is no kubectl.
            .env("PATH", std::env::join_paths(programs).unwrap_or(path))
            .env("HOME", &self.home)
            .env("KUBECONFIG", kubeconfig(&self.home))
            .env("NAMESPACE", &self.namespace)
            .env("TMPDIR", &self.home)
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }
}

/// The path of the kubeconfig in a place's home.
pub(super) fn kubeconfig(home: &Path) -> PathBuf {
    home.join("kubeconfig")
}
