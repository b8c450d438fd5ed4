//! Runs every transcript on every place, as ordinary test cases.
//!
//! Both places must give the recorded answers, which come from the real one; only what the embedded cluster rejects on purpose is recorded
//! from itself. A machine with a kubectl and no control plane still runs them on the embedded cluster.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::runtime::Runtime;

use super::compare::difference;
use super::place::{Offered, Place};
use super::play::Shell;
use super::transcript::{Answer, Step, Taken, Transcript};

/// Records the real control plane's answers instead of comparing them.
const RECORD: &str = "STATEWARD_RECORD";
/// The command that records the answers, for readers of the file.
const RECORDED_BY: &str =
    "STATEWARD_RECORD=1 cargo xtask kube exec -- cargo test -p stateward-scenarios --test kubectl";
const RECORDED_FROM: &str = "v1.36.3";
/// Transcripts mostly wait.
const AT_ONCE: usize = 4;

/// The `main` of a test binary: runs the transcripts in `directory`.
pub fn run(directory: &Path) -> Result<ExitCode> {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_ONCE);
    let runtime = Arc::new(tokio::runtime::Builder::new_multi_thread().enable_all().build()?);
    let offered = Offered::from_env();
    let recording = std::env::var_os(RECORD).is_some_and(|value| value == "1");

    let mut trials = Vec::new();
    for file in files(directory)? {
        let name = file
            .file_stem()
            .and_then(OsStr::to_str)
            .context("a transcript without name")?
            .to_owned();
        let play = |on: On| Play {
            file: file.clone(),
            name: name.clone(),
            on,
            recording,
        };
        let Offered { programs, admin } = &offered;
        // Both would write and read the same file.
        if !recording {
            trials.push(trial(play(On::Embedded), programs.clone(), None, &runtime));
        }
        let programs_and_plane = programs.clone().filter(|_| admin.is_some());
        trials.push(trial(play(On::Real), programs_and_plane, admin.clone(), &runtime));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

/// The transcripts, by name.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let reading = || format!("cannot read {}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(reading)? {
        let path = entry.with_context(reading)?.path();
        if path.extension() == Some(OsStr::new("txt")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// One transcript on one place.
struct Play {
    file: PathBuf,
    name: String,
    on: On,
    recording: bool,
}

/// The place.
#[derive(Clone, Copy, PartialEq, Eq)]
enum On {
    Embedded,
    Real,
}

impl On {
    fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Real => "real",
        }
    }

    fn takes(self, step: &Step) -> bool {
        match step.taken {
            Taken::Everywhere => true,
            Taken::EmbeddedOnly => self == Self::Embedded,
            Taken::RealOnly => self == Self::Real,
        }
    }
}

/// A transcript that cannot run is reported as ignored; in CI it fails, so that the gap is noticed.
fn trial(play: Play, programs: Option<PathBuf>, admin: Option<PathBuf>, runtime: &Arc<Runtime>) -> Trial {
    let name = format!("{}::{}", play.on.name(), play.name);
    let runtime = runtime.clone();
    match programs {
        Some(programs) => Trial::test(name, move || {
            let played = runtime.block_on(play.run(programs, admin));
            played.map_err(|error| Failed::from(format!("\n{error:#}")))
        }),
        None if std::env::var_os("CI").is_some_and(|ci| ci == "true") => Trial::test(name, || {
            Err("no kubectl or no real control plane; run the tests with: cargo xtask test".into())
        }),
        None => Trial::test(name, || Ok(())).with_ignored_flag(true),
    }
}

impl Play {
    async fn run(self, programs: PathBuf, admin: Option<PathBuf>) -> Result<()> {
        let reading = || format!("cannot read {}", self.file.display());
        let text = fs::read_to_string(&self.file).with_context(reading)?;
        let mut transcript = Transcript::parse(&text).with_context(reading)?;
        if !self.recording {
            return self.compare(&mut transcript, programs, admin.as_deref()).await;
        }
        self.record(&mut transcript, programs.clone(), admin.as_deref())
            .await?;
        let embedded = Self {
            on: On::Embedded,
            ..self
        };
        if transcript
            .steps
            .iter()
            .any(|step| step.taken == Taken::EmbeddedOnly)
        {
            embedded.record(&mut transcript, programs, None).await?;
        }
        let text = transcript.render(RECORDED_FROM, RECORDED_BY);
        fs::write(&embedded.file, text).with_context(|| format!("cannot write {}", embedded.file.display()))
    }

    /// Reports which commands were answered differently.
    async fn compare(
        &self,
        transcript: &mut Transcript,
        programs: PathBuf,
        admin: Option<&Path>,
    ) -> Result<()> {
        let mut differences = Vec::new();
        let note = |step: &mut Step, seen: Answer| differences.extend(difference(step, &seen));
        self.play(transcript, programs, admin, note).await?;
        if !differences.is_empty() {
            bail!(
                "answered differently (- recorded from the real one, + seen here):\n\n{}",
                differences.join("\n")
            );
        }
        Ok(())
    }

    /// Records the answers; from the embedded cluster only those of steps that run nowhere else.
    async fn record(
        &self,
        transcript: &mut Transcript,
        programs: PathBuf,
        admin: Option<&Path>,
    ) -> Result<()> {
        let on = self.on;
        let note = |step: &mut Step, seen: Answer| {
            if on == On::Real || step.taken == Taken::EmbeddedOnly {
                step.recorded = seen;
            }
        };
        self.play(transcript, programs, admin, note).await
    }

    async fn play(
        &self,
        transcript: &mut Transcript,
        programs: PathBuf,
        admin: Option<&Path>,
        mut note: impl FnMut(&mut Step, Answer),
    ) -> Result<()> {
        let namespace = format!("t-{}", self.name);
        let place = match admin {
            Some(admin) => Place::real(admin, &namespace).await?,
            None => Place::embedded(&namespace).await?,
        };
        let directory = self.file.parent().unwrap_or(Path::new(".")).to_owned();
        let shell = Shell {
            programs,
            directory,
            home: place.home(),
            namespace,
        };
        let mut played = Ok(());
        for step in transcript.steps.iter_mut().filter(|step| self.on.takes(step)) {
            match shell.run(step).await {
                Ok(seen) => note(step, seen),
                Err(error) => {
                    played = Err(error);
                    break;
                }
            }
        }
        let closed = place.close().await;
        played.and(closed)
    }
}
