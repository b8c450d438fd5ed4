//! Lines with the time before them.

use std::io::Write;

use anyhow::{Context, Result};
use jiff::Timestamp;
use stateward_clock::{Clock, human_duration};

/// Says what happens, as it happens.
pub(super) struct Teller<'o> {
    out: &'o mut (dyn Write + Send),
    clock: Clock,
    began: Timestamp,
}

impl<'o> Teller<'o> {
    pub(super) fn new(out: &'o mut (dyn Write + Send), clock: Clock) -> Self {
        let began = clock.now();
        Self { out, clock, began }
    }

    /// How much of the cluster's time has passed.
    pub(super) fn elapsed(&self) -> String {
        human_duration(self.clock.now().duration_since(self.began))
    }

    /// Something that happens now.
    pub(super) fn tell(&mut self, text: &str) -> Result<()> {
        let line = format!("{:>6}  {text}", self.elapsed());
        self.line(&line)
    }

    /// What somebody types.
    pub(super) fn typed(&mut self, command: &str) -> Result<()> {
        self.line("")?;
        self.tell(&format!("$ {command}"))
    }

    /// What a command says.
    pub(super) fn answer(&mut self, text: &str) -> Result<()> {
        text.lines()
            .try_for_each(|line| self.line(&format!("        {line}")))
    }

    /// A line as it is.
    pub(super) fn line(&mut self, line: &str) -> Result<()> {
        writeln!(self.out, "{}", line.trim_end())
            .and_then(|()| self.out.flush())
            .context("cannot write")
    }
}
