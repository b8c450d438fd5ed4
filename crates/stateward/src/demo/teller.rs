//! Timestamped lines, and on a terminal the current state of the rollout below them.

use std::io::Write;

use anyhow::{Context, Result};
use jiff::Timestamp;
use stateward_cli::{Pane, Style};
use stateward_clock::{Clock, human_duration};

/// The height of the picture: a rollout with a few steps and seven pods.
const PICTURE: u16 = 17;

/// The output of the story.
pub(super) enum Out<'o> {
    /// Line by line, no cursor moves.
    Plain(&'o mut (dyn Write + Send)),
    /// With a picture below the lines.
    Live(Box<Pane>),
}

impl<'o> Out<'o> {
    /// With a picture, if it is wanted and fits.
    pub(super) fn new(out: &'o mut (dyn Write + Send), live: bool) -> Self {
        let pane = if live {
            Pane::open(PICTURE, Style::of_the_terminal())
        } else {
            None
        };
        pane.map_or(Self::Plain(out), |pane| Self::Live(Box::new(pane)))
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }
}

/// Prints events as they happen.
pub(super) struct Teller<'o> {
    pub(super) out: Out<'o>,
    clock: Clock,
    began: Timestamp,
}

impl<'o> Teller<'o> {
    pub(super) fn new(out: Out<'o>, clock: Clock) -> Self {
        let began = clock.now();
        Self { out, clock, began }
    }

    /// The elapsed time of the cluster.
    pub(super) fn elapsed(&self) -> String {
        human_duration(self.clock.now().duration_since(self.began))
    }

    /// Prints an event.
    pub(super) fn tell(&mut self, text: &str) -> Result<()> {
        let line = format!("{:>6}  {text}", self.elapsed());
        self.line(&line)
    }

    /// Prints a command that the user types.
    pub(super) fn typed(&mut self, command: &str) -> Result<()> {
        self.line("")?;
        self.tell(&format!("$ {command}"))
    }

    /// Prints the output of a command.
    pub(super) fn answer(&mut self, text: &str) -> Result<()> {
        text.lines()
            .try_for_each(|line| self.line(&format!("        {line}")))
    }

    /// Prints a line unchanged.
    pub(super) fn line(&mut self, line: &str) -> Result<()> {
        match &mut self.out {
            Out::Plain(out) => {
                let line = stateward_terminal::line(line.trim_end(), Style::of_the_terminal().charset());
                writeln!(out, "{line}")
                    .and_then(|()| out.flush())
                    .context("cannot write")
            }
            Out::Live(pane) => Ok(pane.tell(line.trim_end())?),
        }
    }

    /// Draws the current state of the rollout, if there is a picture.
    pub(super) fn show(&mut self, picture: &[String]) -> Result<()> {
        match &mut self.out {
            Out::Plain(_) => Ok(()),
            Out::Live(pane) => Ok(pane.show(picture)?),
        }
    }
}
