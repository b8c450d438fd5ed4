//! `stateward cluster`: an embedded Kubernetes for use with kubectl.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use stateward_api::duration;
use stateward_clock::Clock;
use stateward_cluster::{Cluster, Options};
use stateward_kubelet::{Behaviour, Behaviours, Kubelet, Match};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::tls::{Identity, TlsListener};
use crate::{kubeconfig, loopback, say};

/// `stateward cluster …`
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The loopback port to serve on; 0 selects a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// How many times faster than the wall clock the cluster's clock runs
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    speed: f64,
    /// Where to write the kubeconfig, readable by its owner only; a symbolic link is not followed
    #[arg(long, default_value = "stateward.kubeconfig")]
    kubeconfig: PathBuf,
    /// Serve without TLS and without authentication on loopback: kubectl sends its token only over TLS
    #[arg(long)]
    plain: bool,
    /// How containers of this image behave: never-ready, crash, no-image, out-of-memory or ready-after=DURATION; may be repeated
    #[arg(long, value_name = "IMAGE=TROUBLE", value_parser = trouble)]
    image: Vec<(String, Behaviour)>,
}

/// `db:3.0=crash`
fn trouble(text: &str) -> Result<(String, Behaviour), String> {
    let (image, trouble) = text
        .split_once('=')
        .filter(|(image, _)| !image.is_empty())
        .ok_or("it takes an image and its trouble, such as db:3.0=crash")?;
    let behaviour = match trouble.split_once('=') {
        Some(("ready-after", after)) => Behaviour::ready_after(duration::typed(after)?),
        _ => match trouble {
            "never-ready" => Behaviour::never_ready(),
            "crash" => Behaviour::crash_loop(),
            "no-image" => Behaviour::image_pull_error(),
            "out-of-memory" => Behaviour::oom_killed(),
            _ => {
                return Err(format!(
                    "{trouble:?} is not a trouble of pods; one of never-ready, crash, no-image, out-of-memory, ready-after=DURATION"
                ));
            }
        },
    };
    Ok((image.to_owned(), behaviour))
}

/// The maximum speed: beyond it, timers are shorter than a machine can keep.
const FASTEST: f64 = 10_000.0;

/// Serves a cluster until it is interrupted.
pub(crate) async fn run(args: Args) -> Result<()> {
    let Args {
        port,
        speed,
        kubeconfig,
        plain,
        image,
    } = args;
    if !(speed > 0.0 && speed <= FASTEST) {
        bail!("--speed: {speed} is not above 0 and at most {FASTEST}");
    }
    let door = Door::open(port, plain).await?;
    // Wall time at speed 1 too, but from a clock that never jumps.
    let clock = Clock::starting_at(Clock::wall().now(), speed);
    let cluster = Cluster::start(Options {
        seed: fastrand::u64(..),
        ..door.options(&clock)
    });
    let behaviours = Behaviours::default();
    for (image, behaviour) in image {
        behaviours.program(Match::image(image), behaviour);
    }
    let _kubelet = Kubelet::new(cluster.lean_client("system:nodes"), clock)
        .nodes(["node-a", "node-b", "node-c"])
        .behaviours(behaviours)
        .heartbeat(Some(Duration::from_secs(10)))
        .spawn();
    door.write(&kubeconfig)?;
    say(format_args!(
        "an embedded Kubernetes serves on {}; its pods are simulated, not run",
        door.server
    ));
    say(format_args!(
        "try: kubectl --kubeconfig {} get nodes",
        kubeconfig.display()
    ));
    say(format_args!("stop with Ctrl-C"));
    door.serve(&cluster, &kubeconfig).await
}

/// A local endpoint of an embedded cluster.
pub(crate) struct Door {
    /// `https://127.0.0.1:41397`
    pub(crate) server: String,
    listener: TcpListener,
    identity: Option<Identity>,
    token: String,
    interrupted: Signal,
    terminated: Signal,
}

impl Door {
    /// Binds a loopback port; 0 selects a free one. `plain` disables TLS.
    pub(crate) async fn open(port: u16, plain: bool) -> Result<Self> {
        // Before anything is started, so that an early signal is not lost.
        let (interrupted, terminated) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .with_context(|| {
                format!("cannot listen on port {port}; choose another with --port, or 0 for any")
            })?;
        let port = listener.local_addr()?.port();
        let scheme = if plain { "http" } else { "https" };
        Ok(Self {
            server: format!("{scheme}://127.0.0.1:{port}"),
            listener,
            identity: if plain {
                None
            } else {
                Some(Identity::for_loopback()?)
            },
            token: kubeconfig::new_token()?,
            interrupted,
            terminated,
        })
    }

    /// The options of a cluster for this endpoint.
    pub(crate) fn options(&self, clock: &Clock) -> Options {
        Options {
            users: BTreeMap::from([(self.token.clone(), "kubernetes-admin".to_owned())]),
            certificate: access(&self.server, self.identity.as_ref(), &self.token)
                .authority
                .unwrap_or_default()
                .to_owned(),
            anonymous: self.identity.is_none(),
            ..Options::at(clock.clone())
        }
    }

    /// Writes the kubeconfig for this endpoint. Files of others are not overwritten.
    pub(crate) fn write(&self, kubeconfig: &Path) -> Result<()> {
        let access = access(&self.server, self.identity.as_ref(), &self.token);
        kubeconfig::write(kubeconfig, &access)
    }

    /// Serves until a signal arrives, then removes the kubeconfig, which would no longer work.
    pub(crate) async fn serve(self, cluster: &Cluster, kubeconfig: &Path) -> Result<()> {
        let Self {
            server,
            listener,
            identity,
            token,
            mut interrupted,
            mut terminated,
        } = self;
        let served = tokio::select! {
            served = serve(listener, identity.as_ref(), cluster.router()) => served,
            _ = interrupted.recv() => Ok(()),
            _ = terminated.recv() => Ok(()),
        };
        kubeconfig::remove(kubeconfig, &access(&server, identity.as_ref(), &token))?;
        served?;
        say(format_args!("stopped"));
        Ok(())
    }
}

fn access<'d>(server: &str, identity: Option<&'d Identity>, token: &'d str) -> kubeconfig::Access<'d> {
    kubeconfig::Access {
        server: server.to_owned(),
        authority: identity.map(|identity| identity.authority.as_str()),
        token,
    }
}

async fn serve(listener: TcpListener, identity: Option<&Identity>, router: axum::Router) -> Result<()> {
    match identity {
        Some(identity) => axum::serve(TlsListener::new(listener, identity)?, router).await?,
        None => {
            // Without TLS there is no token to check.
            let router = router.layer(axum::middleware::from_fn(loopback::only));
            axum::serve(listener, router).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("db:3.0=crash", "db:3.0", Behaviour::crash_loop())]
    #[case("host:5000/db=never-ready", "host:5000/db", Behaviour::never_ready())]
    #[case("db=ready-after=5m", "db", Behaviour::ready_after(Duration::from_secs(300)))]
    fn images_have_their_troubles(#[case] said: &str, #[case] image: &str, #[case] behaviour: Behaviour) {
        assert_eq!(trouble(said), Ok((image.to_owned(), behaviour)));
    }

    #[rstest]
    #[case("crash", "it takes an image and its trouble")]
    #[case("=crash", "it takes an image and its trouble")]
    #[case("db=tired", "\"tired\" is not a trouble of pods")]
    #[case("db=ready-after=soon", "\"soon\" ")]
    fn what_is_no_trouble_is_refused(#[case] said: &str, #[case] why: &str) {
        let refused = trouble(said).unwrap_err();
        assert!(refused.starts_with(why), "{refused}");
    }

    #[tokio::test]
    async fn without_tls_only_requests_for_loopback_are_served() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = axum::Router::new().fallback(async || "served");
        tokio::spawn(async move { serve(listener, None, router).await });
        for (host, expected) in [
            (address.to_string().as_str(), "200 OK"),
            ("evil.example", "403 Forbidden"),
        ] {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let request = format!("GET /version HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut said = String::new();
            stream.read_to_string(&mut said).await.unwrap();
            assert!(
                said.starts_with(&format!("HTTP/1.1 {expected}")),
                "{host}: {said}"
            );
        }
    }
}
