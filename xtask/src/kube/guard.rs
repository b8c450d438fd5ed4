//! Runs a command so that none of its processes outlives the xtask that started it.
//!
//! A parent-death signal reaches one process, not its children, and commands such as `cargo test` have many. So this process stands in
//! between: it adopts every orphan below it, and kills all remaining descendants when the command or its own parent ends.

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_child_subreaper, wait};

use crate::process::{Running, code_of_signal, die_with_us, exit_code};
use crate::signals::{Signals, Woke, typed_at_the_terminal};

/// A shell's exit code for an unknown command.
const NOT_FOUND: u8 = 127;

/// The signal this process gets when its parent dies.
pub(crate) const PARENT_DIED: Signal = Signal::TERM;

/// Runs `command` to its end and returns its exit code.
pub(crate) fn run(command: &[OsString]) -> Result<u8> {
    // Read before signals are caught: until then the death of the parent ends this process.
    let parent = getppid();
    let signals = Signals::catch()?;
    set_child_subreaper(Some(getpid())).context("cannot adopt orphans")?;
    let (program, arguments) = command.split_first().context("no command")?;

    let mut child = Command::new(program);
    child.args(arguments);
    die_with_us(&mut child, Signal::KILL);
    let mut running = match Running::spawn(&mut child, &program.to_string_lossy()) {
        Ok(running) => running,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            return Ok(NOT_FOUND);
        }
    };
    let code = loop {
        match signals.wait(&[running.ended()], None)? {
            Woke::Signal(_) if getppid() != parent => break code_of_signal(Signal::KILL.as_raw()),
            Woke::Signal(signal) if typed_at_the_terminal(signal) => {}
            Woke::Signal(signal) => running.signal(signal),
            Woke::Ready(_) => break exit_code(running.wait()?),
            Woke::Timeout => {}
        }
    };
    drop(running);
    end_descendants();
    Ok(code)
}

/// Kills children until there are none; children of killed processes become ours, so this reaches all of them.
fn end_descendants() {
    loop {
        let mut killed = 0;
        for child in children_of(getpid()) {
            killed += usize::from(kill_process(child, Signal::KILL).is_ok());
        }
        if killed == 0 || wait(WaitOptions::empty()).is_err() {
            return;
        }
    }
}

fn children_of(parent: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(|pid| {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        parent_in(&stat) == Some(parent.as_raw_nonzero().get())
    })
    .collect()
}

/// The parent's process id in the text of `/proc/<pid>/stat`.
fn parent_in(stat: &str) -> Option<i32> {
    // The second field is the program's name in parentheses, which may contain spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parent_is_read_past_a_program_name_with_spaces_and_parentheses() {
        assert_eq!(parent_in("42 (sh) S 7 42 42 0 -1"), Some(7));
        assert_eq!(parent_in("42 (a) b (c) S 9 42 42 0 -1"), Some(9));
        assert_eq!(parent_in(""), None);
    }
}
