//! Text in columns, as kubectl sets it.

/// Rows with cells of equal width, three spaces apart, and nothing at the end of a line. Escape sequences have no width.
pub(crate) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| width(cell)).max().unwrap_or(0)
        })
        .collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (cell, wanted) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.push_str(&" ".repeat(wanted - width(cell) + 3));
        }
        line.truncate(line.trim_end().len());
        line
    };
    rows.iter().map(line).collect()
}

/// How many places a text takes on a screen.
fn width(text: &str) -> usize {
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
