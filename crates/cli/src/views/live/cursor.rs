//! Reads the cursor position of a terminal while Ctrl-C remains a signal.
//!
//! crossterm sets raw mode to read the answer, in which Ctrl-C would be a key that nothing reads.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Stdout, Write};
use std::os::fd::AsFd;

use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

/// The timeout for the terminal's answer, in tenths of a second.
const PATIENCE: usize = 20;

/// crossterm's terminal, with signals enabled.
pub(super) struct Signalled(CrosstermBackend<Stdout>);

impl Signalled {
    pub(super) fn new() -> Self {
        Self(CrosstermBackend::new(io::stdout()))
    }
}

/// Reads the cursor position.
fn position() -> io::Result<Position> {
    let terminal = keyboard()?;
    let quiet = Quiet::keep(&terminal)?;
    let mut out = io::stdout();
    out.write_all(b"\x1b[6n")?;
    out.flush()?;
    let (mut heard, mut byte, mut silence) = (Vec::new(), [0], 0);
    while silence < PATIENCE {
        match quiet.terminal().read(&mut byte) {
            Ok(0) => silence += 1,
            Ok(_) => heard.extend(byte),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if let Some(position) = told(&heard) {
            return Ok(position);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "the terminal does not say where its cursor is",
    ))
}

/// The device for the terminal's answers. Only the controlling terminal has a path, and it may differ from stdout's.
fn keyboard() -> io::Result<File> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        return Ok(stdin.as_fd().try_clone_to_owned()?.into());
    }
    OpenOptions::new().read(true).open("/dev/tty")
}

/// Parses the position at the end of the input: `ESC [ row ; column R`, counted from one.
fn told(heard: &[u8]) -> Option<Position> {
    let text = std::str::from_utf8(heard.strip_suffix(b"R")?).ok()?;
    let (_, report) = text.rsplit_once("\x1b[")?;
    let (row, column) = report.split_once(';')?;
    let counted = |text: &str| text.parse::<u16>().ok()?.checked_sub(1);
    Some(Position {
        x: counted(column)?,
        y: counted(row)?,
    })
}

/// A terminal without echo and line buffering, until it is dropped. Signals are unchanged.
struct Quiet<'t> {
    terminal: &'t File,
    before: Termios,
}

impl<'t> Quiet<'t> {
    fn keep(terminal: &'t File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        // A signal must not discard the answer.
        quiet.local_modes.insert(LocalModes::NOFLSH);
        quiet.special_codes[SpecialCodeIndex::VMIN] = 0;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(terminal, OptionalActions::Now, &quiet)?;
        Ok(Self { terminal, before })
    }

    fn terminal(&self) -> &'t File {
        self.terminal
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

impl Backend for Signalled {
    type Error = io::Error;

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        position()
    }

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        self.0.draw(content)
    }

    fn append_lines(&mut self, count: u16) -> io::Result<()> {
        self.0.append_lines(count)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        self.0.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.0.show_cursor()
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.0.set_cursor_position(position)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.0.clear()
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.0.clear_region(region)
    }

    fn size(&self) -> io::Result<Size> {
        self.0.size()
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.0.window_size()
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("\x1b[1;1R", Some((0, 0)))]
    #[case("\x1b[24;80R", Some((79, 23)))]
    #[case("typed before\x1b[A\x1b[3;2R", Some((1, 2)))]
    #[case("\x1b[3;2", None)]
    #[case("R", None)]
    #[case("\x1b[0;0R", None)]
    fn a_terminal_says_where_its_cursor_is(#[case] heard: &str, #[case] expected: Option<(u16, u16)>) {
        let position = told(heard.as_bytes()).map(|position| (position.x, position.y));
        assert_eq!(position, expected);
    }
}
