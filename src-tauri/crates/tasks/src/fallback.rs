//! What takes the place of a model's text when a model gives no usable one: made by rule, of the source's own words.

use super::{
    aggregate::Aggregate,
    count_words, facts,
    terms::{are_alike, is_telling, terms},
};
use std::collections::BTreeSet;

/// The most sentences to choose from: what matters is seldom said later.
const SENTENCES: usize = 400;
/// What the first sentence counts beside its facts: people begin with what matters.
const FIRST: usize = 2;
/// The most sentences that answer a question.
const ANSWERS: usize = 3;

/// Returns the sentences of a text that have the most names, numbers and dates for their length, in their order, in at most
/// `limit` words. Extraction by sentence score, as H. P. Luhn, "The automatic creation of literature abstracts" (1958), has it.
pub fn summary(source: &str, limit: usize) -> String {
    let sentences: Vec<&str> = sentences(source).take(SENTENCES).collect();
    let mut ranked: Vec<(usize, usize, f64)> = Vec::new();
    for (place, sentence) in sentences.iter().enumerate() {
        let length = count_words(sentence);
        let facts = facts::compare(sentence, sentence).kept.len();
        let first = if place == 0 { FIRST } else { 0 };
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let score = (1 + 2 * facts + first) as f64 / (length + 4) as f64;
        ranked.push((place, length, score));
    }
    ranked.sort_by(|one, other| other.2.total_cmp(&one.2).then(one.0.cmp(&other.0)));
    let mut left = limit;
    let mut chosen = Vec::new();
    for (place, length, _) in ranked {
        if length > 0 && length <= left {
            left -= length;
            chosen.push(place);
        }
    }
    if chosen.is_empty() {
        return beginning(source, limit);
    }
    chosen.sort_unstable();
    let chosen: Vec<&str> = chosen.into_iter().map(|place| sentences[place]).collect();
    chosen.join(" ")
}

/// Returns what was counted, the worst first, in at most `limit` words.
pub fn brief(aggregate: &Aggregate, limit: usize) -> String {
    let mut text = String::new();
    for line in aggregate.render(usize::MAX).lines() {
        let longer = if text.is_empty() {
            line.to_owned()
        } else {
            format!("{text}\n{line}")
        };
        if count_words(&longer) > limit {
            break;
        }
        text = longer;
    }
    text
}

/// Returns the sentences that have the most of a question's words, rare ones above all, in their order: at most three of them, each
/// with the place of its text. Without such a sentence, it is the first one.
pub fn answer<'a>(question: &str, texts: &[&'a str]) -> Vec<(usize, &'a str)> {
    let wanted: BTreeSet<String> = terms(question).filter(|term| is_telling(term)).collect();
    let sentences = texts.iter().enumerate().flat_map(|(place, &text)| {
        let sentences = sentences(text).filter(|sentence| count_words(sentence) > 0);
        sentences.map(move |sentence| (place, sentence))
    });
    let mut found: Vec<(usize, &str, Vec<bool>)> = Vec::new();
    for (place, sentence) in sentences {
        let words: Vec<String> = terms(sentence).collect();
        let has = |word: &String| words.iter().any(|term| are_alike(term, word));
        found.push((place, sentence, wanted.iter().map(has).collect()));
    }
    let counts: Vec<usize> = (0..wanted.len())
        .map(|word| found.iter().filter(|(_, _, has)| has[word]).count())
        .collect();
    let mut ranked: Vec<(usize, f64)> = Vec::new();
    for (at, (_, _, has)) in found.iter().enumerate() {
        let has = has.iter().zip(&counts).filter(|(has, _)| **has);
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let score: f64 = has.map(|(_, count)| 1.0 / *count as f64).sum();
        if score > 0.0 {
            ranked.push((at, score));
        }
    }
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    let mut chosen: Vec<usize> = ranked.iter().take(ANSWERS).map(|(at, _)| *at).collect();
    chosen.sort_unstable();
    if chosen.is_empty() && !found.is_empty() {
        chosen.push(0);
    }
    let chosen = chosen.into_iter().map(|at| (found[at].0, found[at].1));
    chosen.collect()
}

/// Returns the first words of a text whose sentences are all too long.
fn beginning(source: &str, limit: usize) -> String {
    let first: Vec<&str> = source.split_whitespace().take(limit).collect();
    format!("{}…", first.join(" "))
}

/// Returns the sentences and lines of a text.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let ends = |(at, c): (usize, char)| {
            let after = &rest[at + c.len_utf8()..];
            let full_stop =
                matches!(c, '.' | '!' | '?' | '…') && after.starts_with(char::is_whitespace);
            let ends = full_stop || matches!(c, '\n' | '。' | '！' | '？');
            ends.then_some(at + c.len_utf8())
        };
        let end = rest.char_indices().find_map(ends).unwrap_or(rest.len());
        let (sentence, after) = rest.split_at(end);
        rest = after;
        Some(sentence.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::Counter;
    use proptest::prelude::*;

    #[test]
    fn the_sentences_with_facts_are_kept_in_their_order() {
        let source = "The meeting of the council was long. As always, some people came late and others left early. \
            In the end Mayor Okafor announced that the bridge closes on 3 May for 14 weeks. Not many liked that. \
            The repair costs 2.4 million euros. There was coffee.";
        assert_eq!(
            summary(source, 22),
            "In the end Mayor Okafor announced that the bridge closes on 3 May for 14 weeks. The repair costs 2.4 million euros."
        );
    }

    #[test]
    fn a_question_is_answered_by_the_sentences_with_its_words() {
        let texts = [
            "The tower is 60 m high. It is painted every seven years.",
            "The tower was built in 1890.\n\n* * *",
        ];
        let found = answer("When was the painting of the towers renewed?", &texts);
        assert_eq!(found[1], (1, "The tower was built in 1890."));
        let found = answer("How often is it painted?", &texts);
        assert_eq!(found, [(0, "It is painted every seven years.")]);
        assert_eq!(answer("Why?", &texts), [(0, "The tower is 60 m high.")]);
        assert!(answer("Why?", &["* * *", ""]).is_empty());
    }

    #[test]
    fn a_text_without_a_short_sentence_is_cut_within_it() {
        let source = "one two three four five six seven";
        assert_eq!(summary(source, 5), "one two three four five…");
        assert_eq!(summary("", 5), "…");
    }

    #[test]
    fn a_brief_by_rule_has_whole_lines() {
        let mut counter = Counter::default();
        for n in 0..3 {
            let line = format!(r#"{{"level": "error", "message": "disk {n} is full"}}"#);
            counter.line(line.as_bytes());
        }
        counter.line(br#"{"level": "info", "message": "all others are fine"}"#);
        let aggregate = counter.done();
        let text = brief(&aggregate, 8);
        assert_eq!(text, "4 entries\n3× error: disk 2 is full");
        assert!(brief(&aggregate, 100).contains("all others are fine"));
    }

    proptest! {
        #[test]
        fn a_summary_by_rule_never_exceeds_its_limit(source in "[a-z0-9.?! \nÄ。]{0,400}", limit in 5usize..60) {
            prop_assert!(count_words(&summary(&source, limit)) <= limit);
        }
    }
}
