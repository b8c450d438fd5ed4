//! Text in columns, as kubectl sets it.

/// Rows with cells of equal width, three spaces apart, and nothing at the end of a line. Escape sequences have no width.
pub(crate) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let mut widths = Widths::default();
    rows.iter().for_each(|row| widths.fit(row));
    rows.iter().map(|row| widths.set(row)).collect()
}

/// How wide the columns are, where rows come one after the other.
#[derive(Default)]
pub(crate) struct Widths(Vec<usize>);

impl Widths {
    /// Makes room for a row.
    pub(crate) fn fit(&mut self, row: &[String]) {
        if self.0.len() < row.len() {
            self.0.resize(row.len(), 0);
        }
        for (wide, cell) in self.0.iter_mut().zip(row) {
            *wide = (*wide).max(width(cell));
        }
    }

    /// A row as a line.
    pub(crate) fn set(&self, row: &[String]) -> String {
        let mut line = String::new();
        for (cell, wanted) in row.iter().zip(&self.0) {
            line.push_str(cell);
            line.push_str(&" ".repeat(wanted.saturating_sub(width(cell)) + 3));
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// How many places a text takes on a screen.
pub(crate) fn width(text: &str) -> usize {
    let mut escaped = false;
    let visible = |c: &char| {
        let skip = escaped || *c == '\x1b';
        escaped = skip && *c != 'm';
        !skip
    };
    text.chars().filter(visible).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_takes_no_room() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [row(["A", "B"]), row(["\x1b[32mlong\x1b[0m", "x"]), row(["✓", ""])];
        assert_eq!(columns(&rows), ["A      B", "\x1b[32mlong\x1b[0m   x", "✓"]);
    }
}
