//! Whether a model reads a document as a whole, and in which parts if it cannot.

use crate::chunks::tokens;

/// What the question, its instructions and the template take of a context, in tokens.
const AROUND: usize = 400;
/// What an answer may take; a quarter of a small context.
const ANSWER: usize = 1024;
/// More parts would take hours, and what is known of each too much room.
pub const MOST_PARTS: usize = 64;

/// How a document is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    Whole(String),
    /// Each is read for what it says about the question, and the notes are read at the end.
    Parts(Vec<String>),
    /// It would take so many parts.
    TooLong(usize),
}

/// Returns how a model with this context reads a document, given as its passages in order, without what they repeat.
#[must_use]
pub fn plan(passages: &[String], context: usize) -> Reading {
    let answer = ANSWER.min(context / 4);
    let room = context.saturating_sub(AROUND + answer).max(256);
    let sizes: Vec<usize> = passages.iter().map(|passage| tokens(passage) + 1).collect();
    if sizes.iter().sum::<usize>() <= room {
        return Reading::Whole(passages.join("\n"));
    }
    let mut parts: Vec<String> = Vec::new();
    let mut used = room;
    for (passage, size) in passages.iter().zip(sizes) {
        if used + size > room {
            parts.push(String::new());
            used = 0;
        } else if let Some(part) = parts.last_mut() {
            part.push('\n');
        }
        if let Some(part) = parts.last_mut() {
            part.push_str(passage);
        }
        used += size;
    }
    match parts.len() > MOST_PARTS {
        true => Reading::TooLong(parts.len()),
        false => Reading::Parts(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_whole_if_it_fits_and_in_parts_if_not() {
        let passages = vec!["word ".repeat(100); 20];
        let size = tokens(&passages.join("\n"));
        assert!(matches!(plan(&passages, size + 2000), Reading::Whole(_)));
        let Reading::Parts(parts) = plan(&passages, 1600) else {
            panic!("not in parts");
        };
        assert!(parts.len() > 1);
        assert_eq!(parts.join("\n"), passages.join("\n"));
        assert!(parts.iter().all(|part| tokens(part) <= 800));
        let long = vec!["word ".repeat(100); 5000];
        assert!(matches!(plan(&long, 2048), Reading::TooLong(_)));
    }
}
