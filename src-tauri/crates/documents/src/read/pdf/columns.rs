//! Columns that a page draws row by row: each column's lines come together again.

use super::layout::Line;

/// The gap between columns, in parts of a letter's size.
const GAP: f64 = 0.9;
/// Fewer rows may be a table's.
const FEWEST_ROWS: usize = 4;
/// Columns of text have lines of this length on average, in bytes; a table's cells are shorter.
const LONG: usize = 24;

/// Returns the lines with rows of columns one column after the other.
pub(super) fn in_order(lines: Vec<Line>) -> Vec<Line> {
    let mut ordered = Vec::with_capacity(lines.len());
    let mut rows: Vec<(Line, Vec<Line>)> = Vec::new();
    // The gap that all rows have in common.
    let mut common: Option<(f64, f64)> = None;
    for line in lines {
        let parts = line.parts(GAP);
        let shared = match (parts.len(), common) {
            (2, None) => Some((parts[0].right, parts[1].left)),
            (2, Some((from, to))) => Some((from.max(parts[0].right), to.min(parts[1].left))),
            (1, Some((from, to))) if line.right <= to || line.left >= from => Some((from, to)),
            _ => None,
        };
        let shared = shared.filter(|(from, to)| to - from >= 0.5 * GAP * line.size);
        if shared.is_none() {
            end(&mut rows, &mut common, &mut ordered);
            common = (parts.len() == 2).then(|| (parts[0].right, parts[1].left));
        } else {
            common = shared;
        }
        match common {
            Some(_) => rows.push((line, parts)),
            None => ordered.push(line),
        }
    }
    end(&mut rows, &mut common, &mut ordered);
    ordered
}

fn end(
    rows: &mut Vec<(Line, Vec<Line>)>,
    common: &mut Option<(f64, f64)>,
    ordered: &mut Vec<Line>,
) {
    let rows = std::mem::take(rows);
    let Some((from, _)) = common.take() else {
        return;
    };
    let halves = |at: usize| {
        let parts = rows.iter().filter(|(_, parts)| parts.len() == 2);
        let (count, length) = parts.fold((0, 0), |(count, length), (_, parts)| {
            (count + 1, length + parts[at].length())
        });
        count >= FEWEST_ROWS && length >= LONG * count
    };
    if !(halves(0) && halves(1)) {
        ordered.extend(rows.into_iter().map(|(line, _)| line));
        return;
    }
    let parts = rows.into_iter().flat_map(|(_, parts)| parts);
    let (left, right): (Vec<Line>, Vec<Line>) = parts.partition(|part| part.left < from);
    ordered.extend(left);
    ordered.extend(right);
}
