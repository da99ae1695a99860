//! Texts of which an answer is one.

use crate::pattern::gbnf_literal;

/// How many texts llama.cpp's grammar lists one by one: it holds each token against all that are still possible.
pub(crate) const MOST_LISTED: usize = 64;
/// Brackets within one another: llama.cpp's parser recurses for each.
const DEEPEST: usize = 32;

/// Returns the texts as alternatives in GBNF. Many share their beginnings.
pub(crate) fn texts_grammar(mut texts: Vec<String>) -> String {
    if texts.len() <= MOST_LISTED {
        let texts: Vec<_> = texts.iter().map(|text| gbnf_literal(text)).collect();
        return texts.join(" | ");
    }
    texts.sort_unstable();
    texts.dedup();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    with_shared_beginnings(&texts, 0)
}

/// Of texts that are sorted and each another.
fn with_shared_beginnings(texts: &[&str], depth: usize) -> String {
    let begin_alike = |a: &&str, b: &&str| depth < DEEPEST && a.chars().next() == b.chars().next();
    let groups = texts.chunk_by(begin_alike).map(|group| match group {
        [first, .., last] => {
            let same = first.chars().zip(last.chars()).take_while(|(a, b)| a == b);
            let shared = same.map(|(a, _)| a.len_utf8()).sum();
            let rests: Vec<_> = group.iter().map(|text| &text[shared..]).collect();
            let rest = with_shared_beginnings(&rests, depth + 1);
            format!("{} ({rest})", gbnf_literal(&first[..shared]))
        }
        _ => group.iter().copied().map(gbnf_literal).collect(),
    });
    groups.collect::<Vec<_>>().join(" | ")
}
