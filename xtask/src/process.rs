//! Child processes that cannot outlive this one, and their exit codes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, kill_process_group, pidfd_open, pidfd_send_signal,
};

/// A child process, killed on drop, and the descriptor that becomes readable when it ends.
pub(crate) struct Running {
    child: Child,
    pidfd: OwnedFd,
}

impl Running {
    /// Starts `command`; `name` is for error messages.
    pub(crate) fn spawn(command: &mut Command, name: &str) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("cannot start {name}"))?;
        let pid = Pid::from_child(&child);
        let pidfd = pidfd_open(pid, PidfdFlags::empty())
            .with_context(|| format!("cannot watch {name} (pid {pid})", pid = child.id()))?;
        Ok(Self { child, pidfd })
    }

    /// Readable once the process has ended.
    pub(crate) fn ended(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Sends `signal`; a process that has already ended is not an error.
    pub(crate) fn signal(&self, signal: Signal) {
        let _gone = pidfd_send_signal(&self.pidfd, signal);
    }

    /// Kills it and all processes of its process group.
    pub(crate) fn kill_group(&self) {
        let _gone = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }

    /// Whether it ends within `patience`.
    pub(crate) fn ends_within(&self, patience: Duration) -> Result<bool> {
        let patience = Timespec::try_from(patience).context("too long a time to wait")?;
        let ended = &mut [PollFd::new(&self.pidfd, PollFlags::IN)];
        loop {
            match poll(ended, Some(&patience)) {
                // A signal that is handled elsewhere; wait again.
                Err(Errno::INTR) => {}
                Err(error) => return Err(error).context("cannot wait for a process"),
                Ok(ready) => return Ok(ready > 0),
            }
        }
    }

    /// Waits for the end of the process.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        self.child.wait().context("cannot wait for a process")
    }
}

/// Kills the process instead of stopping it: a test plane needs no orderly end, and an API server whose etcd is gone does not stop on
/// request.
impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _reaped = self.child.wait();
    }
}

/// Ties `command` to this process: the kernel sends it `signal` when the calling thread ends for any reason.
///
/// Call and spawn from the main thread only, because the kernel watches the thread, not the process.
pub(crate) fn die_with_us(command: &mut Command, signal: Signal) {
    let parent = getpid();
    before_exec(command, move || {
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        // The parent may have died between fork and the line above; then the signal never arrives.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::ErrorKind::NotConnected.into())
        }
    });
}

/// Gives `command` its own session, and so its own process group: a Ctrl-C or a hangup of our terminal does not reach it.
pub(crate) fn leave_our_terminal(command: &mut Command) {
    before_exec(command, || Ok(rustix::process::setsid().map(drop)?));
}

#[allow(unsafe_code)]
fn before_exec(command: &mut Command, hook: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: both hooks above only make system calls (prctl, getppid, setsid), which are async-signal-safe,
    // and build errors without allocating, as code between fork and exec must.
    unsafe { command.pre_exec(hook) };
}

/// The exit code for `status`, by the shell's convention for signals.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(u8::MAX),
        (None, Some(signal)) => code_of_signal(signal),
        (None, None) => 1,
    }
}

/// 128 + n, as a shell reports a process killed by signal n.
pub(crate) fn code_of_signal(signal: i32) -> u8 {
    u8::try_from(signal).map_or(u8::MAX, |signal| 128_u8.saturating_add(signal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_code_is_passed_on_and_a_signal_becomes_128_and_its_number() {
        // Raw wait statuses: the code in the second byte, the signal in the low seven bits.
        for (raw, code) in [
            (0, 0),
            (7 << 8, 7),
            (255 << 8, 255),
            (2, 130),
            (9, 137),
            (15, 143),
        ] {
            assert_eq!(exit_code(ExitStatus::from_raw(raw)), code, "wait status {raw:#x}");
        }
    }
}
