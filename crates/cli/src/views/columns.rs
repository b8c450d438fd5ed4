//! Text in columns, like kubectl.

pub(crate) use stateward_terminal::width;

/// Pads cells to equal width, three spaces apart, without trailing space. Styles have no width.
pub(crate) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let mut widths = Widths::default();
    rows.iter().for_each(|row| widths.fit(row));
    rows.iter().map(|row| widths.set(row)).collect()
}

/// The widths of columns whose rows are printed one by one.
#[derive(Default)]
pub(crate) struct Widths(Vec<usize>);

impl Widths {
    /// Widens the columns for a row.
    pub(crate) fn fit(&mut self, row: &[String]) {
        if self.0.len() < row.len() {
            self.0.resize(row.len(), 0);
        }
        for (wide, cell) in self.0.iter_mut().zip(row) {
            *wide = (*wide).max(width(cell));
        }
    }

    /// Formats a row as a line.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_takes_no_room() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let long = stateward_terminal::paint("32", "long");
        let rows = [row(["A", "B"]), row([&long, "x"]), row(["✓", ""])];
        assert_eq!(columns(&rows), ["A      B", &format!("{long}   x"), "✓"]);
    }
}
