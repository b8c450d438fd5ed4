//! The screen and the keys that are borrowed from the user.

use std::io::Stdout;

use crossterm::event::{Event, EventStream};
use futures::StreamExt;
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};

use crate::error::Error;

/// The whole screen and all keys, until it is dropped. A panic gives them back as well.
///
/// One for as long as anything is shown: keys that were typed before the next reader is there would be lost with the first.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    input: EventStream,
}

impl Screen {
    pub(crate) fn enter() -> Result<Self, Error> {
        Ok(Self {
            terminal: ratatui::try_init().map_err(Error::Output)?,
            input: EventStream::new(),
        })
    }

    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> Result<(), Error> {
        self.terminal.draw(draw).map(drop).map_err(Error::Output)
    }

    /// What was typed, or done to the terminal. `None` when it is gone.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.input.next().await.and_then(Result::ok)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
