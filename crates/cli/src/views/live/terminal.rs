//! The user's screen and keys.

use std::io::Stdout;

use crossterm::event::{Event, EventStream};
use futures::StreamExt;
use ratatui::backend::CrosstermBackend;
use ratatui::{Frame, Terminal};

use crate::error::Error;

/// The whole screen and all keys, until it is dropped. A panic restores the terminal as well.
///
/// One instance for all views: keys typed before the next reader starts would be lost with the first.
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

    /// The next key or terminal event. `None` when the terminal is gone.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        self.input.next().await.and_then(Result::ok)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portable_pty::{CommandBuilder, PtySize, native_pty_system};

    #[test]
    #[ignore = "the other one runs it, in a terminal of its own"]
    fn panics_while_it_shows_something() {
        let mut screen = Screen::enter().unwrap();
        screen.draw(|_| ()).unwrap();
        panic!("the view is broken");
    }

    #[test]
    fn a_panic_gives_the_terminal_back_and_is_seen() {
        let pty = native_pty_system().openpty(PtySize::default()).unwrap();
        let before = pty.master.get_termios();
        let mut command = CommandBuilder::new(std::env::current_exe().unwrap());
        let test = "views::live::terminal::tests::panics_while_it_shows_something";
        command.args(["--ignored", "--exact", "--nocapture", test]);
        let mut child = pty.slave.spawn_command(command).unwrap();
        let mut reader = pty.master.try_clone_reader().unwrap();
        let said = std::thread::spawn(move || {
            let mut said = Vec::new();
            // Linux reports the closed other end as an error.
            let _ = std::io::Read::read_to_end(&mut reader, &mut said);
            String::from_utf8_lossy(&said).into_owned()
        });
        assert!(!child.wait().unwrap().success());
        assert_eq!(pty.master.get_termios(), before, "keys are the terminal's again");
        drop(pty);
        let said = said.join().unwrap();
        let (entered, left) = (said.find("\x1b[?1049h"), said.find("\x1b[?1049l"));
        let complained = said.find("the view is broken");
        assert!(
            entered.is_some() && left > entered && complained > left,
            "{said:?}"
        );
    }
}
