//! Code, configurations and data: pieces that begin at the left margin behind an empty line, with their lines.

use super::{Facts, OpenBlock, Refusal, Sink};
use crate::kind::lowercase_extension;
use std::path::Path;

/// A piece is cut at the next line behind so many bytes.
const LONG: usize = 3000;

/// A script or a style sheet of so many bytes, and as many a line on average, has been minified.
const MINIFIED: usize = 4096;
const MINIFIED_LINE: usize = 500;

pub(super) fn read(text: &str, name: &Path, sink: &mut Sink<'_>) -> Result<Facts, Refusal> {
    if is_minified(text, name) {
        let why = "This is minified code, which a program has written for browsers.";
        return Err(Refusal::new(why));
    }
    let (mut piece, mut empty) = (OpenBlock::default(), false);
    for (line, number) in text.lines().zip(1_u32..) {
        if line.trim().is_empty() {
            empty = true;
            continue;
        }
        let at_margin = !line.starts_with([' ', '\t', '}', ')', ']']);
        if piece.text.len() > LONG || (empty && at_margin) {
            sink.push(piece.take());
        }
        piece.add(if empty { "\n\n" } else { "\n" }, line, number);
        empty = false;
    }
    sink.push(piece.take());
    Ok(Facts::default())
}

fn is_minified(text: &str, name: &Path) -> bool {
    let ending = lowercase_extension(name);
    ["js", "mjs", "cjs", "css"].contains(&ending.as_str())
        && text.len() > MINIFIED
        && text.len() / MINIFIED_LINE > text.lines().count()
}
