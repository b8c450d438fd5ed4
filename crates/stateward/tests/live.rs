//! The live view in a real terminal, on a real control plane: the screen and the keys.

use std::io::{self, Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::Signal;
use serde_json::json;
use stateward_scenarios::harness::{Cluster, Failure, Outcome, Rollout, Set};
use stateward_scenarios::scenarios;
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

scenarios![
    a_rollout_is_watched_and_promoted_with_keys,
    one_of_many_is_chosen_and_left_again,
    a_lost_connection_is_told_and_survived,
    a_connection_that_hangs_is_told_and_survived,
    a_view_that_is_told_to_stop_gives_the_terminal_back,
];

fn main() -> anyhow::Result<ExitCode> {
    stateward_scenarios::harness::run(all())
}

/// How long to wait for text on the screen.
const PATIENCE: Duration = Duration::from_secs(60);

async fn at_rest(cluster: &Cluster) -> Outcome<(Set<'_>, Rollout<'_>)> {
    let db = cluster.statefulset("db").replicas(3).start().await?;
    let steps = json!([{"setWeight": 34}, {"pause": {}}]);
    let rollout = cluster.rollout("db").steps(steps).start().await?;
    Ok((db, rollout))
}

async fn a_rollout_is_watched_and_promoted_with_keys(cluster: &mut Cluster) -> Outcome {
    let kubeconfig = reachable(cluster)?;
    cluster.with_operator().await?;
    let (db, rollout) = at_rest(cluster).await?;
    let mut screen = Terminal::open(&["get", "db", "-w"], &kubeconfig, cluster.namespace())?;
    screen.shows("rolloutplugin/db   Successful").await?;
    screen.shows("pod/db-2").await?;
    db.set_image("v2").await?;
    screen.shows("rolloutplugin/db   Paused   step 2 of 2").await?;
    screen.shows("▶ pause until promoted").await?;
    screen.shows("RolloutPaused").await?;

    screen.type_keys("p")?;
    screen.shows("promote? y to go ahead").await?;
    screen.type_keys("n")?;
    screen.shows("promote: nothing was changed").await?;
    rollout.expect_step(1, "Paused").await?;
    screen.type_keys("p")?;
    screen.shows("promote? y to go ahead").await?;
    screen.type_keys("y")?;
    screen.shows("rolloutplugin db promoted").await?;
    rollout.expect_phase("Successful").await?;
    screen.shows("rolloutplugin/db   Successful").await?;

    screen.resize(10, 50)?;
    screen.shows("more lines").await?;
    screen.type_keys("G")?;
    screen.shows("pod/db-2").await?;
    screen.type_keys("?")?;
    screen.shows("promote: end the pause").await?;
    screen.type_keys("x")?;
    screen.type_keys("a")?;
    screen.shows("has no rollout in progress").await?;
    screen.type_keys("q")?;
    screen.ends_clean().await
}

async fn one_of_many_is_chosen_and_left_again(cluster: &mut Cluster) -> Outcome {
    let kubeconfig = reachable(cluster)?;
    cluster.with_operator().await?;
    at_rest(cluster).await?;
    cluster.statefulset("web").replicas(1).start().await?;
    cluster.rollout("web").steps(json!([])).start().await?;
    let mut screen = Terminal::open(&["top"], &kubeconfig, cluster.namespace())?;
    screen.shows("web    Successful").await?;
    screen.shows("enter to watch one").await?;
    // Down, and select.
    screen.type_keys("j\r")?;
    screen.shows("rolloutplugin/web   Successful").await?;
    screen.type_keys("q")?;
    screen.shows("enter to watch one").await?;
    // Ctrl-C
    screen.type_keys("\x03")?;
    screen.ends_clean().await
}

async fn a_lost_connection_is_told_and_survived(cluster: &mut Cluster) -> Outcome {
    let kubeconfig = reachable(cluster)?;
    cluster.with_operator().await?;
    let (db, rollout) = at_rest(cluster).await?;
    let wire = Wire::to(&kubeconfig).await?;
    let mut screen = Terminal::open(&["get", "db", "-w"], &wire.kubeconfig, cluster.namespace())?;
    screen.shows("pod/db-2").await?;
    wire.make(Wired::Cut);
    screen.shows("no connection for ").await?;
    screen.shows("pod/db-2").await?;
    // The restored connection is shown although nothing has changed meanwhile.
    wire.make(Wired::Through);
    screen.misses("no connection for ").await?;
    wire.make(Wired::Cut);
    screen.shows("no connection for ").await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    wire.make(Wired::Through);
    screen.shows("rolloutplugin/db   Paused").await?;
    screen.misses("no connection for ").await?;
    screen.type_keys("q")?;
    screen.ends_clean().await
}

/// The connection stays open, but nothing gets through.
async fn a_connection_that_hangs_is_told_and_survived(cluster: &mut Cluster) -> Outcome {
    let kubeconfig = reachable(cluster)?;
    cluster.with_operator().await?;
    let (db, rollout) = at_rest(cluster).await?;
    db.set_image("v2").await?;
    rollout.expect_step(1, "Paused").await?;
    let wire = Wire::to(&kubeconfig).await?;
    let mut screen = Terminal::open(&["get", "db", "-w"], &wire.kubeconfig, cluster.namespace())?;
    screen.shows("pod/db-2").await?;
    let mut list = Terminal::open(&["top"], &wire.kubeconfig, cluster.namespace())?;
    list.shows("db     Paused").await?;
    wire.make(Wired::Frozen);
    screen.type_keys("p")?;
    screen.shows("promote? y to go ahead").await?;
    screen.type_keys("y")?;
    // It reads first, so that nothing was sent.
    screen
        .shows("the API server has not answered within 10s; nothing was changed")
        .await?;
    screen.shows("no connection for ").await?;
    screen.shows("seen last: the API server has not answered").await?;
    list.shows("no connection, trying again: the API server has not answered")
        .await?;
    wire.make(Wired::Through);
    list.shows("enter to watch one").await?;
    list.type_keys("q")?;
    list.ends_clean().await?;
    screen.misses("no connection for ").await?;
    screen.type_keys("q")?;
    screen.ends_clean().await?;
    rollout.expect_step(1, "Paused").await?;
    Ok(())
}

async fn a_view_that_is_told_to_stop_gives_the_terminal_back(cluster: &mut Cluster) -> Outcome {
    let kubeconfig = reachable(cluster)?;
    cluster.with_operator().await?;
    at_rest(cluster).await?;
    for signal in [Signal::TERM, Signal::INT, Signal::QUIT] {
        let mut screen = Terminal::open(&["top", "db"], &kubeconfig, cluster.namespace())?;
        screen.shows("rolloutplugin/db   Successful").await?;
        screen.send(signal)?;
        screen.ends_clean().await?;
    }
    let mut screen = Terminal::open(&["top"], &kubeconfig, cluster.namespace())?;
    screen.shows("enter to watch one").await?;
    screen.send(Signal::TERM)?;
    screen.ends_clean().await?;
    // A view that was opened from the list ends the program, too.
    for end in [Some(Signal::TERM), None] {
        let mut screen = Terminal::open(&["top"], &kubeconfig, cluster.namespace())?;
        screen.shows("db     Successful").await?;
        screen.type_keys("\r")?;
        screen.shows("rolloutplugin/db   Successful").await?;
        match end {
            Some(signal) => screen.send(signal)?,
            // Ctrl-C
            None => screen.type_keys("\x03")?,
        }
        screen.ends_clean().await?;
    }
    Ok(())
}

fn reachable(cluster: &Cluster) -> Outcome<PathBuf> {
    let kubeconfig = cluster.kubeconfig().map(Path::to_owned);
    kubeconfig.ok_or_else(|| Failure::NotHere("a process cannot reach a cluster inside this one".into()))
}

/// A terminal that runs a command.
struct Terminal {
    screen: Arc<Mutex<vt100::Parser>>,
    changed: watch::Receiver<()>,
    keys: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
}

const SIZE: PtySize = PtySize {
    rows: 30,
    cols: 110,
    pixel_width: 0,
    pixel_height: 0,
};

impl Terminal {
    fn open(words: &[&str], kubeconfig: &Path, namespace: &str) -> Outcome<Self> {
        let pair = native_pty_system().openpty(SIZE).map_err(io::Error::other)?;
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_stateward"));
        command.args(words);
        command.args(["-n", namespace, "--kubeconfig"]);
        command.arg(kubeconfig);
        command.env("TERM", "xterm-256color");
        command.env("LC_ALL", "C.UTF-8");
        command.env_remove("NO_COLOR");
        let child = pair.slave.spawn_command(command).map_err(io::Error::other)?;
        let mut output = pair.master.try_clone_reader().map_err(io::Error::other)?;
        let keys = pair.master.take_writer().map_err(io::Error::other)?;
        let screen = Arc::new(Mutex::new(parser(SIZE)?));
        let (tell, changed) = watch::channel(());
        let drawn = screen.clone();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                lock(&drawn).process(&bytes[..count]);
                let _ = tell.send(());
            }
        });
        Ok(Self {
            screen,
            changed,
            keys,
            master: pair.master,
            child,
        })
    }

    fn type_keys(&mut self, keys: &str) -> Outcome {
        Ok(self.keys.write_all(keys.as_bytes())?)
    }

    fn resize(&self, rows: u16, cols: u16) -> Outcome {
        let size = PtySize { rows, cols, ..SIZE };
        let (rows, cols) = cells(size)?;
        lock(&self.screen).screen_mut().set_size(rows, cols);
        Ok(self.master.resize(size).map_err(io::Error::other)?)
    }

    fn send(&self, signal: Signal) -> Outcome {
        let pid = self.child.process_id().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.and_then(rustix::process::Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("it has ended"))?;
        let killed = rustix::process::kill_process(pid, signal);
        Ok(killed.map_err(io::Error::from)?)
    }

    async fn shows(&mut self, part: &str) -> Outcome {
        self.until(&format!("{part:?} on the screen"), |screen| {
            screen.contents().contains(part)
        })
        .await
    }

    async fn misses(&mut self, part: &str) -> Outcome {
        self.until(&format!("no {part:?} on the screen"), |screen| {
            !screen.contents().contains(part)
        })
        .await
    }

    async fn until(&mut self, what: &str, is_so: impl Fn(&vt100::Screen) -> bool) -> Outcome {
        let waited = tokio::time::timeout(PATIENCE, async {
            while !is_so(lock(&self.screen).screen()) {
                if self.changed.changed().await.is_err() {
                    return;
                }
            }
        })
        .await;
        let screen = lock(&self.screen);
        if waited.is_ok() && is_so(screen.screen()) {
            return Ok(());
        }
        let seen = screen.screen().contents();
        Err(Failure::from(io::Error::other(format!(
            "expected {what}, saw:\n{seen}"
        ))))
    }

    /// It exits with 0, and the terminal is restored.
    async fn ends_clean(mut self) -> Outcome {
        let mut child = self.child;
        let ended = tokio::task::spawn_blocking(move || child.wait()).await;
        let ended = ended.map_err(io::Error::other)??;
        // The last output is read after the process has exited.
        while self.changed.changed().await.is_ok() {}
        let screen = lock(&self.screen);
        let screen = screen.screen();
        let clean = !screen.alternate_screen() && !screen.hide_cursor();
        if ended.success() && clean {
            return Ok(());
        }
        Err(Failure::from(io::Error::other(format!(
            "expected a clean end, saw {ended:?}, alternate screen {}, hidden cursor {}: {}",
            screen.alternate_screen(),
            screen.hide_cursor(),
            screen.contents()
        ))))
    }
}

fn cells(size: PtySize) -> io::Result<(NonZero<u16>, NonZero<u16>)> {
    let cells = NonZero::new(size.rows).zip(NonZero::new(size.cols));
    cells.ok_or_else(|| io::Error::other("a screen of nothing"))
}

fn parser(size: PtySize) -> io::Result<vt100::Parser> {
    let (rows, cols) = cells(size)?;
    Ok(vt100::Parser::new(rows, cols, 0))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// The state of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wired {
    Through,
    Cut,
    /// Nothing gets through, and neither side is notified.
    Frozen,
}

/// A connection to the API server that can be cut.
struct Wire {
    kubeconfig: PathBuf,
    made: watch::Sender<Wired>,
    _dir: TempDir,
}

impl Wire {
    async fn to(kubeconfig: &Path) -> Outcome<Self> {
        let text = std::fs::read_to_string(kubeconfig)?;
        let server = text
            .split_once("https://")
            .and_then(|(_, rest)| rest.split(['"', '\n', ' ', '/']).next())
            .ok_or_else(|| io::Error::other("the kubeconfig names no server"))?
            .to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let dir = tempfile::tempdir()?;
        let ours = dir.path().join("kubeconfig");
        std::fs::write(&ours, text.replace(&server, &listener.local_addr()?.to_string()))?;
        let (made, is_made) = watch::channel(Wired::Through);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (server, mut made) = (server.clone(), is_made.clone());
                tokio::spawn(async move {
                    let mut copied = pin!(async {
                        let mut server = TcpStream::connect(server).await?;
                        copy_bidirectional(&mut client, &mut server).await
                    });
                    let thawed = |made: &Wired| *made != Wired::Frozen;
                    while let Ok(Wired::Through) = made.wait_for(thawed).await.map(|made| *made) {
                        tokio::select! {
                            _ = &mut copied => break,
                            _ = made.changed() => {}
                        }
                    }
                });
            }
        });
        Ok(Self {
            kubeconfig: ours,
            made,
            _dir: dir,
        })
    }

    fn make(&self, made: Wired) {
        self.made.send_replace(made);
    }
}
