//! Which cluster and namespace to use: kubectl's flags and kubeconfig files.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Response;
use http::header::{DATE, HeaderMap};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use kube::client::{ClientBuilder, DynBody};
use kube::config::{InferConfigError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use stateward_api::duration;
use stateward_clock::Clock;
use tower::BoxError;
use tower::util::{MapErrLayer, MapFutureLayer, MapResponseLayer};

use crate::connect_error::{Unreachable, root};
use crate::error::Error;
use crate::input::name::is_label;
use crate::verbs::completion;
use crate::views::invocation::{self, quoted};

/// kubectl's flags. The last one of a kind counts, as with kubectl.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Access {
    /// The kubeconfig to use instead of $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE", overrides_with = "kubeconfig")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig to use
    #[arg(long, value_name = "NAME", overrides_with = "context", add = completion::contexts())]
    context: Option<String>,
    /// The namespace of the rollouts
    #[arg(short, long, value_name = "NAME", overrides_with = "namespace", value_parser = namespace, add = completion::namespaces())]
    namespace: Option<String>,
    /// The user to act as
    #[arg(long = "as", value_name = "USER", overrides_with = "user")]
    user: Option<String>,
    /// A group to act as, together with --as; may be repeated
    #[arg(long = "as-group", value_name = "GROUP", requires = "user")]
    groups: Vec<String>,
    /// Give up on a request that is not answered within this time (30s, 5m); 0 is never
    #[arg(long, value_name = "DURATION", overrides_with = "request_timeout", value_parser = duration::typed)]
    pub(crate) request_timeout: Option<Duration>,
}

/// The spellings of these flags.
const FLAGS: [&str; 7] = [
    "-n",
    "--namespace",
    "--context",
    "--kubeconfig",
    "--as",
    "--as-group",
    "--request-timeout",
];

/// The number of words of a flag that starts with this word: its value may be a word of its own or a part of this one.
pub(crate) fn width(word: &OsStr) -> Option<usize> {
    let word = word.to_string_lossy();
    if FLAGS.contains(&word.as_ref()) {
        return Some(2);
    }
    let attached = |flag: &str| match word.strip_prefix(flag) {
        Some(value) => !flag.starts_with("--") || value.starts_with('='),
        None => false,
    };
    FLAGS.iter().any(|flag| attached(flag)).then_some(1)
}

/// A connection to a cluster.
pub struct Connection {
    /// The client of the cluster.
    pub client: Client,
    /// The selected namespace.
    pub namespace: String,
    /// The cluster's time, from the server's responses: ages are as the cluster sees them.
    pub clock: Clock,
    /// The user that the kubeconfig names, or the one to act as.
    pub user: Option<String>,
}

impl Access {
    /// Connects to the selected cluster and namespace.
    pub async fn connect(&self) -> Result<Connection, Error> {
        let (mut config, user) = self.config().await?;
        if let Some(user) = &self.user {
            config.auth_info.impersonate = Some(user.clone());
            config.auth_info.impersonate_groups = (!self.groups.is_empty()).then(|| self.groups.clone());
        }
        let namespace = self.namespace_or(&config.default_namespace);
        named_rightly(&namespace).map_err(Error::Access)?;
        let address = config.cluster_url.to_string();
        let address = address.trim_end_matches('/').to_owned();
        let limit = self.request_timeout.filter(|limit| !limit.is_zero());
        if let Some(limit) = limit {
            // The connection times out first: then nothing was sent for certain.
            let connect = limit.mul_f64(0.9);
            config.connect_timeout = Some(config.connect_timeout.map_or(connect, |set| set.min(connect)));
        }
        let patient = MapFutureLayer::new(move |answer| within(limit, answer));
        // Errors that are not kube's own come from the connection.
        let told = MapErrLayer::new(move |error: BoxError| -> BoxError {
            if error.is::<kube::Error>() {
                error
            } else {
                Unreachable::new(&address, &*error).into()
            }
        });
        let clock = Clock::remote();
        let heard = clock.clone();
        let dated = MapResponseLayer::new(move |response: Response<Box<DynBody>>| {
            if let Some(date) = date(response.headers()) {
                heard.heard(date);
            }
            response
        });
        let builder = ClientBuilder::try_from(config).map_err(|error| Error::Access(error.to_string()))?;
        let client = builder
            .with_layer(&dated)
            .with_layer(&patient)
            .with_layer(&told)
            .build();
        Ok(Connection {
            client,
            namespace,
            clock,
            user: self.user.clone().or(user),
        })
    }

    /// The namespace that the user named; an empty name does not count, as with kubectl.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|named| !named.is_empty())
    }

    /// The namespace that the user named, or `default`.
    pub(crate) fn namespace_or(&self, default: &str) -> String {
        self.namespace().unwrap_or(default).to_owned()
    }

    /// The invocation for the same cluster and user, and for this namespace.
    pub fn call(&self, program: &str, namespace: Option<&str>) -> String {
        let program = self.again(program);
        match namespace {
            Some(namespace) => invocation::in_namespace(&program, namespace),
            None => program,
        }
    }

    /// The same, without the namespace.
    pub(crate) fn again(&self, program: &str) -> String {
        let Self {
            kubeconfig,
            context,
            namespace: _,
            user,
            groups,
            request_timeout: _,
        } = self;
        let kubeconfig = kubeconfig.as_ref().map(|path| path.display().to_string());
        let flags = [
            ("--kubeconfig", &kubeconfig),
            ("--context", context),
            ("--as", user),
        ];
        let flags = flags
            .into_iter()
            .filter_map(|(flag, value)| Some((flag, value.as_ref()?)))
            .chain(groups.iter().map(|group| ("--as-group", group)));
        let words = flags.map(|(flag, value)| format!(" {flag} {}", quoted(value)));
        format!("{program}{}", words.collect::<String>())
    }

    /// The contexts of the kubeconfig.
    pub(crate) fn contexts(&self) -> Vec<String> {
        let read = match &self.kubeconfig {
            Some(path) => Kubeconfig::read_from(path).ok(),
            None => of_the_environment()
                .ok()
                .flatten()
                .or_else(|| Kubeconfig::read().ok()),
        };
        let contexts = read.map(|read| read.contexts).unwrap_or_default();
        contexts.into_iter().map(|context| context.name).collect()
    }

    /// The configuration, and the user that the kubeconfig names.
    async fn config(&self) -> Result<(Config, Option<String>), Error> {
        let options = KubeConfigOptions {
            context: self.context.clone(),
            ..KubeConfigOptions::default()
        };
        let named = match &self.kubeconfig {
            Some(path) => {
                let read = Kubeconfig::read_from(path);
                Some(read.map_err(|error| Error::Access(words(&error)))?)
            }
            None => of_the_environment()?,
        };
        let context = self.context.as_deref();
        let user = match &named {
            Some(kubeconfig) => user_of(kubeconfig, context),
            None => Kubeconfig::read()
                .ok()
                .and_then(|kubeconfig| user_of(&kubeconfig, context)),
        };
        let config = match named {
            Some(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
            // Without a kubeconfig, the program may run in a pod.
            None if self.context.is_none() => {
                let config = Config::infer().await;
                let config = config.map_err(|error| Error::Access(nowhere(&error)))?;
                return Ok((config, user));
            }
            None => Config::from_kubeconfig(&options).await,
        };
        let config = config.map_err(|error| Error::Access(words(&error)))?;
        Ok((config, user))
    }
}

/// The user of a context, or of the current one.
fn user_of(kubeconfig: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let name = context.or(kubeconfig.current_context.as_deref())?;
    let named = kubeconfig.contexts.iter().find(|context| context.name == name)?;
    let user = named.context.as_ref()?.user.clone()?;
    (!user.is_empty()).then_some(user)
}

/// The `Date` header of a response.
fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(DATE)?.to_str().ok()?;
    DateTimeParser::new().parse_timestamp(date).ok()
}

/// The server did not answer a request in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct Unanswered(Duration);

/// The answer to a request, or an error at the timeout.
fn within<R: 'static>(
    limit: Option<Duration>,
    answer: impl Future<Output = Result<R, BoxError>> + Send + 'static,
) -> BoxFuture<'static, Result<R, BoxError>> {
    let Some(limit) = limit else {
        return answer.boxed();
    };
    let answer = tokio::time::timeout(limit, answer);
    answer
        .map(move |answer| answer.unwrap_or_else(|_| Err(Unanswered(limit).into())))
        .boxed()
}

/// The problem of a kubeconfig, as text.
fn words(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::ReadConfig(why, path) => format!("cannot read {}: {}", path.display(), root(why)),
        KubeconfigError::LoadContext(context) => format!("the kubeconfig has no context {context:?}"),
        KubeconfigError::CurrentContextNotSet => "the kubeconfig says no context".into(),
        other => other.to_string(),
    }
}

/// The problems of all sources. The requirements of a pod do not help a user outside a pod.
fn nowhere(error: &InferConfigError) -> String {
    let kubeconfig = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
    match kubeconfig {
        Some(kubeconfig) if std::env::var_os("KUBERNETES_SERVICE_HOST").is_none() => {
            format!("{}, and this is no pod of a cluster", words(kubeconfig))
        }
        _ => error.to_string(),
    }
}

/// Parses `--namespace`.
fn namespace(text: &str) -> Result<String, String> {
    if !text.is_empty() {
        named_rightly(text)?;
    }
    Ok(text.to_owned())
}

fn named_rightly(namespace: &str) -> Result<(), String> {
    if is_label(namespace) {
        return Ok(());
    }
    Err(format!(
        "{namespace:?} cannot be the name of a namespace, which has at most 63 lower-case letters, digits and -"
    ))
}

/// The merged files of $KUBECONFIG.
fn of_the_environment() -> Result<Option<Kubeconfig>, Error> {
    let named = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let files: Vec<_> = std::env::split_paths(&named)
        .filter(|file| !file.as_os_str().is_empty())
        .collect();
    merged(&files)
}

/// The existing ones of these files, merged: kubectl skips missing files. `None` if no file is named.
fn merged(files: &[PathBuf]) -> Result<Option<Kubeconfig>, Error> {
    let there: Vec<_> = files.iter().filter(|file| file.exists()).collect();
    if there.is_empty() {
        // A single missing file is reported.
        return match files {
            [] | [_] => Ok(None),
            _ => Err(Error::Access(
                "none of the files that KUBECONFIG names is there".into(),
            )),
        };
    }
    let merged = there.iter().try_fold(Kubeconfig::default(), |merged, file| {
        merged.merge(Kubeconfig::read_from(file)?)
    });
    merged.map(Some).map_err(|error| Error::Access(words(&error)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn kubeconfigs_that_are_not_there_are_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("one"), dir.path().join("other"));
        std::fs::write(&one, "current-context: one\n").unwrap();
        std::fs::write(&other, "current-context: other\n").unwrap();
        let missing = dir.path().join("missing");
        let read = merged(&[missing.clone(), one, missing.clone(), other])
            .unwrap()
            .unwrap();
        assert_eq!(read.current_context.as_deref(), Some("one"));
        let refused = merged(&[missing.clone(), missing]).unwrap_err().to_string();
        assert!(
            refused.contains("none of the files that KUBECONFIG names is there"),
            "{refused}"
        );
    }

    #[tokio::test]
    async fn a_kubeconfig_that_will_not_do_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let mut access = to("127.0.0.1:1".parse().unwrap(), &dir);
        access.context = Some("other".into());
        let told = access.connect().await.err().unwrap().to_string();
        assert!(
            told.contains("the kubeconfig has no context \"other\";"),
            "{told}"
        );
        access.kubeconfig = Some("/nowhere/k".into());
        let told = access.connect().await.err().unwrap().to_string();
        assert!(
            told.contains("cannot read /nowhere/k: no such file or directory;"),
            "{told}"
        );
    }

    /// Access to a server at this address.
    pub(crate) fn to(address: std::net::SocketAddr, dir: &tempfile::TempDir) -> Access {
        to_url(&format!("http://{address}"), dir)
    }

    pub(crate) fn to_url(url: &str, dir: &tempfile::TempDir) -> Access {
        let file = dir.path().join("kubeconfig");
        let text = format!(
            "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], users: [{{name: u, user: {{}}}}],
            clusters: [{{name: c, cluster: {{server: '{url}', insecure-skip-tls-verify: true}}}}]}}"
        );
        std::fs::write(&file, text).unwrap();
        Access {
            kubeconfig: Some(file),
            ..Access::default()
        }
    }

    #[tokio::test]
    async fn a_request_that_is_not_answered_in_time_is_given_up() {
        let dir = tempfile::tempdir().unwrap();
        // It listens, but accepts no connection.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let access = Access {
            request_timeout: Some(Duration::from_millis(20)),
            ..to(address, &dir)
        };
        let client = access.connect().await.unwrap().client;
        let error = client.apiserver_version().await.unwrap_err();
        assert_eq!(
            Error::api("ask")(error).to_string(),
            format!("cannot reach http://{address}: no answer within 20ms")
        );
    }

    /// A cluster's time may differ from this machine's, and a test cluster's may run faster.
    #[tokio::test]
    async fn the_time_is_that_of_the_server() {
        let dir = tempfile::tempdir().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let access = to(listener.local_addr().unwrap(), &dir);
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let answer =
                "HTTP/1.1 404 Not Found\r\nDate: Wed, 01 Jan 9000 00:00:00 GMT\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let Connection { client, clock, .. } = access.connect().await.unwrap();
        client.apiserver_version().await.unwrap_err();
        serving.join().unwrap();
        let said: Timestamp = "9000-01-01T00:00:00Z".parse().unwrap();
        assert!(clock.now() >= said, "{}", clock.now());
    }

    #[tokio::test]
    async fn what_cannot_be_reached_is_told_with_its_address() {
        let dir = tempfile::tempdir().unwrap();
        let closed = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let Connection {
            client, namespace, ..
        } = to(closed, &dir).connect().await.unwrap();
        assert_eq!(namespace, "default");
        let error = client.apiserver_version().await.unwrap_err();
        assert_eq!(
            Error::api("ask")(error).to_string(),
            format!("cannot reach http://{closed}: connection refused")
        );
    }

    #[rstest]
    #[case("", Ok("mine"))]
    #[case("prod-2", Ok("prod-2"))]
    #[case(
        "Prod",
        Err(
            "\"Prod\" cannot be the name of a namespace, which has at most 63 lower-case letters, digits and -"
        )
    )]
    #[case(
        "a/b",
        Err(
            "\"a/b\" cannot be the name of a namespace, which has at most 63 lower-case letters, digits and -"
        )
    )]
    fn a_namespace_is_a_label_and_an_empty_one_is_none(
        #[case] text: &str,
        #[case] expected: Result<&str, &str>,
    ) {
        let meant = super::namespace(text).map(|namespace| {
            let access = Access {
                namespace: Some(namespace),
                ..Access::default()
            };
            access.namespace_or("mine")
        });
        assert_eq!(meant.as_deref().map_err(String::as_str), expected);
    }
    use rstest::rstest;
}
