//! Waits for child processes, timeouts, and signals to stop.
//!
//! A caught signal arrives as a readable pipe, so one `poll` waits for everything and no thread is needed. That matters: a parent-death
//! signal is tied to the thread that spawned the child.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::Signal;

/// The signals to stop: terminal interrupt, termination, hangup.
const CAUGHT: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

/// A signal interrupted the work.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) Signal);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted by signal {}", self.0.as_raw())
    }
}

impl std::error::Error for Interrupted {}

/// What ended a wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Woke {
    /// A signal to stop arrived.
    Signal(Signal),
    /// The watched descriptor with this index became readable; for a pidfd, the process ended.
    Ready(usize),
    /// The timeout expired.
    Timeout,
}

/// The signals to stop, caught from the creation of this value.
pub(crate) struct Signals {
    pipes: Vec<(Signal, UnixStream)>,
}

impl Signals {
    /// Catches the signals instead of being killed by them.
    pub(crate) fn catch() -> Result<Self> {
        let pipes = CAUGHT.iter().map(|&signal| {
            let (ours, handlers) = UnixStream::pair().context("cannot make a pipe for signals")?;
            signal_hook::low_level::pipe::register(signal.as_raw(), handlers)
                .with_context(|| format!("cannot catch signal {}", signal.as_raw()))?;
            Ok((signal, ours))
        });
        Ok(Self {
            pipes: pipes.collect::<Result<_>>()?,
        })
    }

    /// Waits until one of `watched` is readable, a signal to stop arrives or `timeout` expires.
    pub(crate) fn wait(&self, watched: &[BorrowedFd<'_>], timeout: Option<Duration>) -> Result<Woke> {
        let timeout = timeout
            .map(Timespec::try_from)
            .transpose()
            .context("timeout out of range")?;
        let mut fds: Vec<PollFd<'_>> = self
            .pipes
            .iter()
            .map(|(_, pipe)| PollFd::new(pipe, PollFlags::IN))
            .collect();
        fds.extend(
            watched
                .iter()
                .map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)),
        );
        // A signal interrupts poll but leaves its byte in the pipe, so a retry loses nothing.
        let ready = loop {
            match poll(&mut fds, timeout.as_ref()) {
                Err(Errno::INTR) => {}
                other => break other.context("cannot wait for processes")?,
            }
        };
        if ready == 0 {
            return Ok(Woke::Timeout);
        }
        for (fd, (signal, pipe)) in fds.iter().zip(&self.pipes) {
            if !fd.revents().is_empty() {
                (&mut &*pipe)
                    .read_exact(&mut [0])
                    .context("cannot read from the signal pipe")?;
                return Ok(Woke::Signal(*signal));
            }
        }
        let index = fds[self.pipes.len()..]
            .iter()
            .position(|fd| !fd.revents().is_empty());
        Ok(index.map_or(Woke::Timeout, Woke::Ready))
    }
}

/// Whether `signal` came from the keyboard, which already sends it to every process of the foreground group: forwarding it would deliver
/// it twice.
pub(crate) fn typed_at_the_terminal(signal: Signal) -> bool {
    signal == Signal::INT
        && File::open("/dev/tty")
            .and_then(|tty| Ok(rustix::termios::tcgetpgrp(tty.as_fd())?))
            .is_ok_and(|foreground| foreground == rustix::process::getpgrp())
}
