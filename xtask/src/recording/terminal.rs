//! Runs a program in a terminal and records the frames of its screen.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::num::NonZero;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use vt100::{Cell, Color, Parser, Screen};

/// The size of the screen.
pub(super) const COLUMNS: u16 = 108;
pub(super) const ROWS: u16 = 28;

/// Changes within this time are one frame: they are too fast to read.
const AT_ONCE: Duration = Duration::from_millis(80);

/// The escape sequence that requests the cursor position.
const WHERE: &[u8] = b"\x1b[6n";

/// A frame of the screen.
#[derive(Debug, PartialEq)]
pub(super) struct Frame {
    pub(super) at: Duration,
    pub(super) rows: Vec<Row>,
}

/// A line of the screen: pieces of equal style.
pub(super) type Row = Vec<Piece>;

/// Text of one style.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    pub(super) column: u16,
    pub(super) text: String,
    pub(super) look: Look,
}

/// The style of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Look {
    /// One of the terminal's sixteen colours.
    pub(super) colour: Option<u8>,
    pub(super) bold: bool,
    pub(super) dim: bool,
}

/// Runs `program`, which was typed as `line`, until it ends.
pub(super) fn record(line: &str, program: &mut Command) -> Result<Vec<Frame>> {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).context("cannot open a terminal")?;
    grantpt(&master)?;
    unlockpt(&master)?;
    let size = Winsize {
        ws_row: ROWS,
        ws_col: COLUMNS,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&master, size)?;
    let name = ptsname(&master, Vec::new())?.into_string()?;
    let slave = OpenOptions::new().read(true).write(true).open(&name)?;
    let mut child = program
        .env("TERM", "xterm-256color")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("NO_COLOR")
        .stdin(Stdio::from(slave.try_clone()?))
        .stdout(Stdio::from(slave.try_clone()?))
        .stderr(Stdio::from(slave))
        .spawn()
        .context("cannot start the program")?;
    // The command has its own copies of this end of the terminal; ours would keep it open.
    program
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let frames = watch(line, File::from(master))?;
    let ended = child.wait()?;
    if !ended.success() {
        bail!("what was recorded has failed: {ended}");
    }
    Ok(frames)
}

fn watch(line: &str, mut shown: File) -> Result<Vec<Frame>> {
    let mut screen = blank();
    screen.process(format!("{line}\r\n").as_bytes());
    let mut frames = vec![Frame {
        at: Duration::ZERO,
        rows: rows(screen.screen()),
    }];
    let began = Instant::now();
    let mut buffer = [0; 4096];
    loop {
        let read = match shown.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // Linux reports the closed other end as this error.
            Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => break,
            Err(error) => return Err(error).context("cannot read the terminal"),
        };
        screen.process(&buffer[..read]);
        if buffer[..read].windows(WHERE.len()).any(|asked| asked == WHERE) {
            let (row, column) = screen.screen().cursor_position();
            write!(shown, "\x1b[{};{}R", row + 1, column + 1).context("cannot answer the program")?;
        }
        show(&mut frames, began.elapsed(), rows(screen.screen()));
    }
    Ok(frames)
}

fn show(frames: &mut Vec<Frame>, at: Duration, rows: Vec<Row>) {
    match frames.last_mut() {
        Some(last) if last.rows == rows => {}
        Some(last) if at < last.at + AT_ONCE && last.at > Duration::ZERO => last.rows = rows,
        _ => frames.push(Frame { at, rows }),
    }
}

fn rows(screen: &Screen) -> Vec<Row> {
    (0..ROWS).map(|row| pieces(screen, row)).collect()
}

fn pieces(screen: &Screen, row: u16) -> Row {
    let mut pieces: Row = Vec::new();
    for column in 0..COLUMNS {
        let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) else {
            continue;
        };
        let look = look(cell);
        let end = |piece: &Piece| usize::from(piece.column) + piece.text.chars().count();
        match pieces.last_mut() {
            Some(last) if last.look == look && end(last) <= usize::from(column) => {
                let gap = usize::from(column) - end(last);
                last.text.push_str(&" ".repeat(gap));
                last.text.push_str(cell.contents());
            }
            _ => pieces.push(Piece {
                column,
                text: cell.contents().to_owned(),
                look,
            }),
        }
    }
    for piece in &mut pieces {
        let text = piece.text.trim_start();
        // Only single spaces precede it, at most as many as there are columns.
        piece.column += u16::try_from(piece.text.len() - text.len()).unwrap_or_default();
        piece.text = text.trim_end().to_owned();
    }
    pieces.retain(|piece| !piece.text.is_empty());
    pieces
}

fn look(cell: &Cell) -> Look {
    Look {
        colour: match cell.fgcolor() {
            Color::Idx(colour @ 0..16) => Some(colour),
            Color::Idx(_) | Color::Rgb(..) | Color::Default => None,
        },
        bold: cell.bold(),
        dim: cell.dim(),
    }
}

/// An empty screen.
fn blank() -> Parser {
    let size = |cells: u16| NonZero::new(cells).unwrap_or(NonZero::<u16>::MIN);
    Parser::new(size(ROWS), size(COLUMNS), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(column: u16, text: &str, look: Look) -> Piece {
        let text = text.to_owned();
        Piece { column, text, look }
    }

    #[test]
    fn a_line_is_cut_where_its_look_changes() {
        let mut screen = blank();
        screen.process(b"  a b \x1b[1;31mred\x1b[0m end");
        let plain = Look::default();
        let red = Look {
            colour: Some(1),
            bold: true,
            dim: false,
        };
        assert_eq!(
            pieces(screen.screen(), 0),
            [
                piece(2, "a b", plain),
                piece(6, "red", red),
                piece(10, "end", plain)
            ]
        );
    }

    #[test]
    fn what_nobody_could_read_is_no_frame() {
        let row = |text: &str| vec![vec![piece(0, text, Look::default())]];
        let at = Duration::from_millis;
        let mut frames = vec![Frame {
            at: at(0),
            rows: row("$"),
        }];
        for (time, text) in [(500, "a"), (540, "b"), (700, "c"), (900, "c")] {
            show(&mut frames, at(time), row(text));
        }
        let told: Vec<_> = frames
            .iter()
            .map(|frame| (frame.at, frame.rows[0][0].text.as_str()))
            .collect();
        assert_eq!(told, [(at(0), "$"), (at(500), "b"), (at(700), "c")]);
    }

    #[test]
    fn a_program_is_recorded_to_its_end() {
        let mut echo = Command::new("sh");
        echo.args(["-c", "test -t 1 && echo in a terminal"]);
        let frames = record("$ sh", &mut echo).unwrap();
        let last = frames.last().unwrap();
        let texts: Vec<_> = last
            .rows
            .iter()
            .flatten()
            .map(|piece| piece.text.as_str())
            .collect();
        assert_eq!(texts, ["$ sh", "in a terminal"]);
    }
}
