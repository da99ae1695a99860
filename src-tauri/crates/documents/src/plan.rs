//! Whether a model reads a document as a whole, and in which parts if it cannot.

use crate::chunks::tokens;
use std::ops::Range;

/// What the question, its instructions and the template take of a context, in tokens.
const AROUND: usize = 400;
/// What an answer may take; a quarter of a small context.
const ANSWER: usize = 1024;
/// More parts would take hours, and what is known of each too much room.
pub const MOST_PARTS: usize = 64;

/// A passage's number, title and place, in tokens.
const HEAD: usize = 40;

/// How a document is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadingPlan {
    Whole,
    /// Passages of these ranges are read for what they say about the question, and the notes are read at the end.
    Parts(Vec<Range<usize>>),
    /// It would take so many parts.
    TooLong(usize),
}

/// Returns how a model with this context reads a document, given as its passages in order.
pub fn plan<'a>(passages: impl IntoIterator<Item = &'a str>, context: usize) -> ReadingPlan {
    let answer = ANSWER.min(context / 4);
    let room = context.saturating_sub(AROUND + answer).max(256);
    let (mut parts, mut begun, mut used, mut count) = (Vec::new(), 0, 0, 0);
    for passage in passages {
        let size = tokens(passage) + HEAD;
        if used + size > room && count > begun {
            parts.push(begun..count);
            (begun, used) = (count, 0);
        }
        used += size;
        count += 1;
    }
    parts.push(begun..count);
    match parts.len() {
        0 | 1 => ReadingPlan::Whole,
        many if many > MOST_PARTS => ReadingPlan::TooLong(many),
        _ => ReadingPlan::Parts(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_whole_if_it_fits_and_in_parts_if_not() {
        let passages = vec!["word ".repeat(100); 20];
        let planned = |count: usize, context| {
            let passages = passages.iter().cycle().take(count).map(String::as_str);
            plan(passages, context)
        };
        assert_eq!(planned(20, 8192), ReadingPlan::Whole);
        assert_eq!(planned(0, 8192), ReadingPlan::Whole);
        let ReadingPlan::Parts(parts) = planned(20, 1600) else {
            panic!("not in parts");
        };
        assert!(parts.len() > 1);
        let all: Vec<usize> = parts.iter().cloned().flatten().collect();
        assert_eq!(all, (0..20).collect::<Vec<_>>());
        assert!(matches!(planned(5000, 2048), ReadingPlan::TooLong(_)));
        // A passage that is too large by itself is a part of its own.
        assert_eq!(
            plan(["x ".repeat(5000).as_str(), "y"], 512),
            ReadingPlan::Parts(vec![0..1, 1..2])
        );
    }
}
