//! The screen that is borrowed from the user.

use std::io::Stdout;

use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};

use crate::error::Error;

/// The whole screen, until it is dropped. A panic gives it back as well.
pub(crate) struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    pub(crate) fn enter() -> Result<Self, Error> {
        ratatui::try_init().map(Self).map_err(Error::Output)
    }

    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<(), Error> {
        self.0.draw(draw).map(drop).map_err(Error::Output)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
