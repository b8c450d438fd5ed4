//! A picture at the bottom of the terminal, below scrolling lines.

use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Widget};
use ratatui::{Terminal, TerminalOptions, Viewport};
use stateward_terminal::Charset;

use super::cursor::Signalled;
use super::paint::{painted, wrapped};
use crate::error::Error;
use crate::views::style::Style;

/// The bottom of a terminal. Lines stay in its history; the picture is removed on drop.
pub struct Pane {
    terminal: Terminal<Signalled>,
    charset: Charset,
}

impl Pane {
    /// A picture of this height. `None` if the terminal is too small for it and some lines.
    pub fn open(height: u16, style: Style) -> Option<Self> {
        let (_, rows) = crossterm::terminal::size().ok()?;
        if rows < height + 6 {
            return None;
        }
        let options = TerminalOptions {
            viewport: Viewport::Inline(height),
        };
        let terminal = Terminal::with_options(Signalled::new(), options).ok()?;
        Some(Self {
            terminal,
            charset: style.charset(),
        })
    }

    /// Prints a line above the picture.
    pub fn tell(&mut self, line: &str) -> Result<(), Error> {
        let width = usize::from(self.terminal.size().map_err(Error::Output)?.width).max(1);
        let lines = wrapped(&painted(line, self.charset), width);
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let told = self
            .terminal
            .insert_before(height, |buffer| Paragraph::new(lines).render(buffer.area, buffer));
        told.map_err(Error::Output)
    }

    /// Draws the picture.
    pub fn show(&mut self, lines: &[String]) -> Result<(), Error> {
        let lines: Vec<Line<'_>> = lines.iter().map(|line| painted(line, self.charset)).collect();
        let shown = self
            .terminal
            .draw(|frame| frame.render_widget(Paragraph::new(lines), frame.area()));
        shown.map(drop).map_err(Error::Output)
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        // Later output starts where the picture was. The terminal may be gone.
        let top = self.terminal.get_frame().area().y;
        let _ = self.terminal.clear();
        let _ = self.terminal.set_cursor_position((0, top));
        let _ = self.terminal.show_cursor();
    }
}
