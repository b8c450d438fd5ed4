//! A real Prometheus, as a child process.

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

use super::{Authority, Exporter};
use crate::Egress;
use crate::address::basic;
use crate::http::{Http, Request, Trust};

/// The timeout of a start and of a scrape.
const PATIENCE: Duration = Duration::from_secs(60);

/// The address to listen on.
const HOST: &str = "127.0.0.1";

/// The TLS certificate and its key: files next to the configuration, read for every connection.
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";

/// The scrape interval.
const EVERY: &str = "200ms";

/// Why there is no Prometheus.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// Prometheus is not installed, although CI requires it.
    #[error("there is no prometheus in PATH, and CI is set: install the package prometheus")]
    NotInstalled,
    /// Prometheus could not be started.
    #[error("prometheus cannot be started")]
    Start(#[from] io::Error),
    /// The certificate could not be created.
    #[error("there is no certificate for prometheus")]
    Certificate(#[from] rcgen::Error),
    /// Prometheus was started, but did not become ready.
    #[error("prometheus did not get ready; its last words: {0}")]
    NotReady(String),
    /// Prometheus runs, but has no data.
    #[error("prometheus has nothing for {0}")]
    Nothing(String),
}

/// A Prometheus with its own configuration and data, on a free loopback port, which scrapes one [`Exporter`]. The process ends when it is
/// dropped.
#[derive(Debug)]
pub struct RealPrometheus {
    process: Child,
    port: u16,
    http: Http,
    directory: TempDir,
    door: Door,
}

/// How a Prometheus is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Door {
    Open,
    /// With basic authentication.
    Guarded,
    /// With basic authentication and TLS.
    Encrypted,
}

/// The user name.
pub const USERNAME: &str = "username";
/// The password.
pub const PASSWORD: &str = "password";
/// The bcrypt hash of the password, at minimum cost.
const HASH: &str = "$2b$04$rQaEk1MeCwBRaaBlstzGX.HOsjRwGmngxkOr7nWiwXfheACer1FU6";

impl RealPrometheus {
    /// Starts a Prometheus. `None` if none is installed, with a message on stderr; if `CI` is set, that is an error.
    pub async fn start(exporter: &Exporter) -> Result<Option<Self>, TestError> {
        Self::open(exporter, Door::Open, None).await
    }

    /// Starts a Prometheus with basic authentication.
    pub async fn start_guarded(exporter: &Exporter) -> Result<Option<Self>, TestError> {
        Self::open(exporter, Door::Guarded, None).await
    }

    /// Starts a Prometheus with basic authentication and TLS, with a certificate of this authority.
    pub async fn start_encrypted(
        exporter: &Exporter,
        authority: &Authority,
    ) -> Result<Option<Self>, TestError> {
        Self::open(exporter, Door::Encrypted, Some(authority)).await
    }

    /// Replaces the certificate by one of another authority, for new connections.
    pub fn show_certificate_of(&self, authority: &Authority) -> Result<(), TestError> {
        show_certificate_of(authority, self.directory.path())
    }

    async fn open(
        exporter: &Exporter,
        door: Door,
        authority: Option<&Authority>,
    ) -> Result<Option<Self>, TestError> {
        let Some(binary) = installed() else {
            if std::env::var_os("CI").is_some() {
                return Err(TestError::NotInstalled);
            }
            eprintln!(
                "SKIPPED: there is no prometheus in PATH; install the package prometheus to run this test"
            );
            return Ok(None);
        };
        // Another process may take the free port first.
        let mut last = TestError::NotReady(String::new());
        for _ in 0..3 {
            let mut prometheus = Self::spawn(&binary, exporter, door, authority)?;
            match prometheus.ready().await {
                Ok(()) => return Ok(Some(prometheus)),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The address, for `provider.prometheus.address`.
    pub fn address(&self) -> String {
        let scheme = match self.door {
            Door::Open | Door::Guarded => "http",
            Door::Encrypted => "https",
        };
        format!("{scheme}://{HOST}:{}", self.port)
    }

    /// The evaluation times of a query in its query log.
    pub fn asked(&self, query: &str) -> Vec<Timestamp> {
        let log = fs::read_to_string(self.directory.path().join("queries")).unwrap_or_default();
        let asked = log.lines().filter_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            let is_it = line["params"]["query"] == query;
            line["params"]["start"].as_str()?.parse().ok().filter(|_| is_it)
        });
        asked.collect()
    }

    /// Waits until a query returns data.
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

    fn spawn(
        binary: &Path,
        exporter: &Exporter,
        door: Door,
        authority: Option<&Authority>,
    ) -> Result<Self, TestError> {
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
        let users = format!("basic_auth_users: {{{USERNAME}: '{HASH}'}}\n");
        let tls = format!("tls_server_config: {{cert_file: {CERTIFICATE}, key_file: {KEY}}}\n");
        let settings = match door {
            Door::Open => String::new(),
            Door::Guarded => users,
            Door::Encrypted => users + &tls,
        };
        fs::write(&web, settings)?;
        if let Some(authority) = authority {
            show_certificate_of(authority, directory.path())?;
        }
        let port = TcpListener::bind((HOST, 0))?.local_addr()?.port();
        let process = Command::new(binary)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", data.display()))
            .arg(format!("--web.config.file={}", web.display()))
            .arg(format!("--web.listen-address={HOST}:{port}"))
            .arg("--log.level=warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(directory.path().join("log"))?)
            .spawn()?;
        let egress = Egress {
            allow: HOST.parse().into_iter().collect(),
            ..Egress::default()
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

    /// The body of a successful response.
    async fn get(&self, path: &str, query: &[(&str, &str)]) -> Option<String> {
        let url = Url::parse_with_params(&format!("{}{path}", self.address()), query).ok()?;
        let mut request = Request::get(url, Duration::from_secs(5));
        if self.door != Door::Open {
            request.headers.insert(AUTHORIZATION, basic(USERNAME, PASSWORD));
        }
        request.trust = Trust::Anybody;
        let answer = self.http.send("test", request).await.ok()?.ok().ok()?;
        String::from_utf8(answer.body.to_vec()).ok()
    }
}

impl Drop for RealPrometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn show_certificate_of(authority: &Authority, directory: &Path) -> Result<(), TestError> {
    let signed = authority.sign(HOST)?;
    fs::write(directory.join(CERTIFICATE), signed.certificate)?;
    fs::write(directory.join(KEY), signed.key)?;
    Ok(())
}

/// The installed binary, if any.
fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join("prometheus"))
        .find(|binary| binary.is_file())
}
