//! Columns that a page draws row by row: the lines of each come together again.

use super::layout::Line;

/// The gap between columns, in parts of a letter's size.
const GAP: f64 = 0.9;
/// Fewer rows may be a table's.
const FEWEST_ROWS: usize = 4;
/// Columns of text have lines of this length on average, in bytes; a table's cells are shorter.
const LONG: usize = 24;

/// Returns the lines with rows of two columns one column after the other.
pub(super) fn in_order(lines: Vec<Line>) -> Vec<Line> {
    let mut ordered = Vec::with_capacity(lines.len());
    let mut rows = Rows::default();
    for line in lines {
        let mut gutter = rows.gutter_with(&line);
        if gutter.is_none() {
            rows.end(&mut ordered);
            gutter = rows.gutter_with(&line);
        }
        match gutter {
            Some(_) => rows.lines.push(line),
            None => ordered.push(line),
        }
        rows.gutter = gutter;
    }
    rows.end(&mut ordered);
    ordered
}

/// Lines that leave one gap in common.
#[derive(Default)]
struct Rows {
    lines: Vec<Line>,
    gutter: Option<(f64, f64)>,
}

impl Rows {
    /// The gap that is left with one line more.
    fn gutter_with(&self, line: &Line) -> Option<(f64, f64)> {
        let gutter = match (line.gaps(GAP).as_slice(), self.gutter) {
            ([gap], None) => *gap,
            ([(left, right)], Some((from, to))) => (from.max(*left), to.min(*right)),
            ([], Some((from, to))) if line.left < from => (from.max(line.right), to),
            ([], Some((from, to))) => (from, to.min(line.left)),
            _ => return None,
        };
        (gutter.1 - gutter.0 >= 0.5 * GAP * line.size).then_some(gutter)
    }

    fn end(&mut self, ordered: &mut Vec<Line>) {
        let lines = std::mem::take(&mut self.lines);
        let Some((from, to)) = self.gutter.take() else {
            return;
        };
        let middle = f64::midpoint(from, to);
        let lengths = lines.iter().map(|line| line.lengths(middle));
        let (mut rows, mut left, mut right) = (0, 0, 0);
        for (one, other) in lengths.filter(|&(one, other)| one > 0 && other > 0) {
            (rows, left, right) = (rows + 1, left + one, right + other);
        }
        if rows < FEWEST_ROWS || left.min(right) < LONG * rows {
            ordered.extend(lines);
            return;
        }
        let is_from_right = lines.iter().any(|line| line.has_from_right);
        let (left, right): (Vec<_>, Vec<_>) =
            lines.into_iter().map(|line| line.split(middle)).unzip();
        let (first, second) = if is_from_right {
            (right, left)
        } else {
            (left, right)
        };
        ordered.extend(first.into_iter().chain(second).flatten());
    }
}
