//! Lines with the time before them, and on a terminal the rollout below them as it stands.

use std::io::Write;

use anyhow::{Context, Result};
use jiff::Timestamp;
use stateward_cli::{Pane, Style};
use stateward_clock::{Clock, human_duration};

/// The lines of the picture: a rollout with a few steps and seven pods.
const PICTURE: u16 = 17;

/// Where it is told.
pub(super) enum Out<'o> {
    /// Line by line, no cursor moves.
    Plain(&'o mut (dyn Write + Send)),
    /// With a picture below.
    Live(Box<Pane>),
}

impl<'o> Out<'o> {
    /// With a picture if that is wanted and there is room for it.
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

/// Says what happens, as it happens.
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

    /// The rollout as it stands, where there is a place for it.
    pub(super) fn show(&mut self, picture: &[String]) -> Result<()> {
        match &mut self.out {
            Out::Plain(_) => Ok(()),
            Out::Live(pane) => Ok(pane.show(picture)?),
        }
    }
}
