//! A picture at the foot of the terminal, with lines that scroll away above it.

use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Widget};
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::cursor::Signalled;
use super::paint::{painted, wrapped};
use crate::error::Error;

/// The foot of a terminal. Lines stay in its history; the picture goes when it is dropped.
pub struct Pane(Terminal<Signalled>);

impl Pane {
    /// A picture of so many lines. `None` where the terminal has no room for it beside what is told.
    pub fn open(height: u16) -> Option<Self> {
        let (_, rows) = crossterm::terminal::size().ok()?;
        if rows < height + 6 {
            return None;
        }
        let options = TerminalOptions {
            viewport: Viewport::Inline(height),
        };
        Terminal::with_options(Signalled::new(), options).ok().map(Self)
    }

    /// A line above the picture.
    pub fn tell(&mut self, line: &str) -> Result<(), Error> {
        let width = usize::from(self.0.size().map_err(Error::Output)?.width).max(1);
        let lines = wrapped(&painted(line), width);
        let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let told = self
            .0
            .insert_before(height, |buffer| Paragraph::new(lines).render(buffer.area, buffer));
        told.map_err(Error::Output)
    }

    /// The picture.
    pub fn show(&mut self, lines: &[String]) -> Result<(), Error> {
        let lines: Vec<Line<'_>> = lines.iter().map(|line| painted(line)).collect();
        let shown = self
            .0
            .draw(|frame| frame.render_widget(Paragraph::new(lines), frame.area()));
        shown.map(drop).map_err(Error::Output)
    }
}

impl Drop for Pane {
    fn drop(&mut self) {
        // What comes next is written where the picture was. The terminal may be gone.
        let top = self.0.get_frame().area().y;
        let _ = self.0.clear();
        let _ = self.0.set_cursor_position((0, top));
        let _ = self.0.show_cursor();
    }
}
