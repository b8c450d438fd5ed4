//! A real Prometheus, as a process of its own.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ::http::header::AUTHORIZATION;
use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};
use url::Url;

use super::Exporter;
use crate::Egress;
use crate::address::basic;
use crate::http::{Http, Request};

/// How long a start and a scrape may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often it scrapes.
const EVERY: &str = "200ms";

/// Why there is no Prometheus.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// None is installed, and in CI there must be one.
    #[error("there is no prometheus in PATH, and CI is set: install the package prometheus")]
    NotInstalled,
    /// It could not be started.
    #[error("prometheus cannot be started")]
    Start(#[from] io::Error),
    /// It was started, and that was all.
    #[error("prometheus did not get ready; its last words: {0}")]
    NotReady(String),
    /// It runs, and has nothing to show.
    #[error("prometheus has nothing for {0}")]
    Nothing(String),
}

/// A Prometheus with a configuration and data of its own, on a free port of this machine's loopback, that scrapes one
/// [`Exporter`]. The process ends when it is dropped.
#[derive(Debug)]
pub struct RealPrometheus {
    process: Child,
    port: u16,
    http: Http,
    directory: TempDir,
    door: Door,
}

/// Whom a Prometheus lets in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Open,
    /// Whoever says [`USERNAME`] and [`PASSWORD`].
    Guarded,
}

/// Who is let in.
pub const USERNAME: &str = "username";
/// With which password.
pub const PASSWORD: &str = "password";
/// The same as Prometheus wants it: bcrypt of the password, as cheap as can be.
const HASH: &str = "$2b$04$rQaEk1MeCwBRaaBlstzGX.HOsjRwGmngxkOr7nWiwXfheACer1FU6";

impl RealPrometheus {
    /// Starts one. `None` where none is installed, which is said on stderr; where `CI` is set, that is an error.
    pub async fn start(exporter: &Exporter) -> Result<Option<Self>, TestError> {
        Self::open(exporter, Door::Open).await
    }

    /// The same, behind [`USERNAME`] and [`PASSWORD`].
    pub async fn start_guarded(exporter: &Exporter) -> Result<Option<Self>, TestError> {
        Self::open(exporter, Door::Guarded).await
    }

    async fn open(exporter: &Exporter, door: Door) -> Result<Option<Self>, TestError> {
        let Some(binary) = installed() else {
            if std::env::var_os("CI").is_some() {
                return Err(TestError::NotInstalled);
            }
            eprintln!(
                "SKIPPED: there is no prometheus in PATH; install the package prometheus to run this test"
            );
            return Ok(None);
        };
        // Between finding a free port and taking it, somebody else may.
        let mut last = TestError::NotReady(String::new());
        for _ in 0..3 {
            let mut prometheus = Self::spawn(&binary, exporter, door)?;
            match prometheus.ready().await {
                Ok(()) => return Ok(Some(prometheus)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Where it is, for `provider.prometheus.address`.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// For which moments it was asked a query, by its own log.
    pub fn asked(&self, query: &str) -> Vec<Timestamp> {
        let log = fs::read_to_string(self.directory.path().join("queries")).unwrap_or_default();
        let asked = log.lines().filter_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            let is_it = line["params"]["query"] == query;
            line["params"]["start"].as_str()?.parse().ok().filter(|_| is_it)
        });
        asked.collect()
    }

    /// Waits until a query finds something.
    pub async fn has(&self, query: &str) -> Result<(), TestError> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let found = self.get("/api/v1/query", &[("query", query)]).await;
            if found.is_some_and(|body| body.contains("\"value\"")) {
                return Ok(());
            }
            sleep(Duration::from_millis(50)).await;
        }
        Err(TestError::Nothing(query.to_owned()))
    }

    fn spawn(binary: &Path, exporter: &Exporter, door: Door) -> Result<Self, TestError> {
        let directory = tempfile::tempdir()?;
        let config = directory.path().join("prometheus.yml");
        let data = directory.path().join("data");
        fs::write(
            &config,
            format!(
                "global: {{scrape_interval: {EVERY}, scrape_timeout: {EVERY}, query_log_file: '{}'}}\n\
                 scrape_configs:\n- job_name: test\n  static_configs: [{{targets: ['{}']}}]\n",
                directory.path().join("queries").display(),
                exporter.socket()
            ),
        )?;
        let web = directory.path().join("web.yml");
        let users = match door {
            Door::Open => String::new(),
            Door::Guarded => format!("basic_auth_users: {{{USERNAME}: '{HASH}'}}\n"),
        };
        fs::write(&web, users)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = Command::new(binary)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.config.file={}", web.display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--log.level=warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(directory.path().join("log"))?)
            .spawn()?;
        let egress = Egress {
            allow: "127.0.0.1".parse().into_iter().collect(),
            refuse: Vec::new(),
        };
        Ok(Self {
            process,
            port,
            http: Http::new(egress),
            directory,
            door,
        })
    }

    async fn ready(&mut self) -> Result<(), TestError> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if self.process.try_wait()?.is_some() {
                break;
            }
            if self.get("/-/ready", &[]).await.is_some() {
                return Ok(());
            }
            sleep(Duration::from_millis(50)).await;
        }
        let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        let last = log.lines().last().unwrap_or_default();
        Err(TestError::NotReady(last.to_owned()))
    }

    /// The body of a good answer.
    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Option<String> {
        let url = Url::parse_with_params(&format!("{}{path}", self.address()), query).ok()?;
        let mut request = Request::get(url, Duration::from_secs(5));
        if self.door == Door::Guarded {
            request.headers.insert(AUTHORIZATION, basic(USERNAME, PASSWORD));
        }
        let (_, body) = self.http.send(request).await.ok()?.ok().ok()?;
        String::from_utf8(body.to_vec()).ok()
    }
}

impl Drop for RealPrometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The binary, where there is one.
fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join("prometheus"))
        .find(|binary| binary.is_file())
}
