//! Code, configurations and data: pieces that begin at the left margin behind an empty line, with their lines.

use super::{Block, Facts, Sink};

/// A piece is cut at the next line behind so many bytes.
const LONG: usize = 3000;

pub(super) fn read(text: &str, sink: &mut Sink<'_>) -> Facts {
    let (mut piece, mut begun, mut empty) = (String::new(), 1_u32, false);
    for (line, number) in text.lines().zip(1_u32..) {
        if line.trim().is_empty() {
            empty = true;
            continue;
        }
        let at_margin = !line.starts_with([' ', '\t', '}', ')', ']']);
        if piece.len() > LONG || (empty && at_margin && !piece.is_empty()) {
            sink.push(Block {
                line: Some(begun),
                ..Block::new(std::mem::take(&mut piece))
            });
        }
        if piece.is_empty() {
            begun = number;
        } else {
            piece.push_str(if empty { "\n\n" } else { "\n" });
        }
        empty = false;
        piece.push_str(line.trim_end());
    }
    sink.push(Block {
        line: Some(begun),
        ..Block::new(piece)
    });
    Facts::default()
}
