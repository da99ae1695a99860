//! Signs in a text of how hard it is to answer.

use super::{
    classifier::excerpt,
    words::{CONDITIONED, CONDITIONS, FILLERS, GREETINGS},
};

/// The text in lower case, without the greeting at its start and without what it quotes.
pub(super) struct Text {
    pub(super) greeting: Greeting,
    lower: String,
    /// Whether it quotes a text of some length.
    pub(super) quotes: bool,
    pub(super) code: bool,
    pub(super) words: usize,
}

/// How much of a text is a greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Greeting {
    /// All of it.
    Whole,
    /// All but a few filler words.
    Chatty,
    /// At most its beginning.
    Beginning,
}

impl Text {
    /// Reads a text; of a long one only its start and end, where people put their instructions.
    pub(super) fn new(text: &str) -> Self {
        const END: usize = 320;
        let text = text.trim();
        let lower = match text.chars().count() > 3 * END {
            true => excerpt(text, END, END, "\n").to_lowercase(),
            false => text.to_lowercase(),
        };
        let rest = behind_greeting(&lower);
        let greeting = match (rest.len() < lower.len(), says_nothing(rest)) {
            (true, Some(0)) => Greeting::Whole,
            (true, Some(_)) => Greeting::Chatty,
            _ => Greeting::Beginning,
        };
        let greeted = count_words(&lower) - count_words(rest);
        let own = without_quotes(rest);
        let quotes = own.len() < rest.len();
        let quoted = count_words(rest).saturating_sub(count_words(&own));
        Self {
            greeting,
            quotes,
            code: is_code(text),
            words: count_words(text).saturating_sub(greeted + quoted),
            lower: own,
        }
    }

    pub(super) fn questions(&self) -> usize {
        self.lower.matches(['?', '？']).count()
    }

    /// Returns whether it is one short question, followed by a text.
    pub(super) fn is_question_about_a_text(&self) -> bool {
        const SHORT: usize = 14;
        let first = self.lower.split_once('?');
        first.is_some_and(|(question, text)| {
            let is_one = !question.contains(['.', '!']) && !text.contains('?');
            is_one && count_words(question) <= SHORT && count_words(text) > 3
        })
    }

    /// Returns whether its first paragraph is a few words, and others follow.
    pub(super) fn has_instruction_above(&self) -> bool {
        const SHORT: usize = 20;
        let first = self.lower.split_once("\n\n");
        first.is_some_and(|(instruction, _)| count_words(instruction) <= SHORT)
    }

    /// Returns whether its words before a colon or the end of the first line are few.
    pub(super) fn has_short_instruction(&self) -> bool {
        const SHORT: usize = 16;
        let end = self.lower.find([':', '\n']).unwrap_or(self.lower.len());
        count_words(&self.lower[..end]) <= SHORT
    }

    pub(super) fn starts_with_any(&self, signs: &[&str]) -> bool {
        starts_with_any(&self.lower, signs)
    }

    /// Returns whether a sentence starts with one of these.
    pub(super) fn has_sentence_with(&self, signs: &[&str]) -> bool {
        let sentences = self.lower.split(['.', '?', '!', '\n']);
        let mut sentences =
            sentences.map(|text| text.trim_start_matches(|c: char| !c.is_alphanumeric()));
        sentences.any(|sentence| starts_with_any(sentence, signs))
    }

    /// Counts the different signs of a list.
    pub(super) fn count(&self, signs: &[&str]) -> usize {
        signs.iter().filter(|sign| self.has(sign)).count()
    }

    /// Counts those of a list that it has letter by letter.
    pub(super) fn count_letters(&self, signs: &[&str]) -> usize {
        let found = signs.iter().filter(|sign| self.lower.contains(*sign));
        found.count()
    }

    pub(super) fn is_conditioned(&self) -> bool {
        let conditions = CONDITIONS.iter().filter(|sign| self.has(sign));
        self.has_any(CONDITIONED) && conditions.take(2).count() == 2
    }

    /// Figures, and numbers in words.
    pub(super) fn figures(&self) -> usize {
        const NUMBERS: &[&str] = &[
            "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve",
            "hundred",
        ];
        let figure =
            |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) || NUMBERS.contains(word);
        let words = self.lower.split(|c: char| !c.is_alphanumeric());
        words.filter(figure).count()
    }

    pub(super) fn has_any(&self, signs: &[&str]) -> bool {
        signs.iter().any(|sign| self.has(sign))
    }

    /// Returns whether a word starts with the sign: `prove` is in `proved` but not in `improve`. Scripts without spaces
    /// have no word starts.
    fn has(&self, sign: &str) -> bool {
        let spaced = sign.chars().all(|c| c < '\u{2e80}');
        self.lower.match_indices(sign).any(|(at, _)| {
            let before = self.lower[..at].chars().next_back();
            !spaced || before.is_none_or(|c| !c.is_alphanumeric())
        })
    }
}

fn starts_with_any(text: &str, signs: &[&str]) -> bool {
    let start = |sign: &&str| text.strip_prefix(*sign);
    let goes_on = |rest: &str| rest.starts_with(char::is_alphanumeric);
    signs.iter().filter_map(start).any(|rest| !goes_on(rest))
}

/// Returns the text without its longer quotations: what they say is not what is asked for. A text that is nothing but a
/// quotation stays as it is.
fn without_quotes(text: &str) -> String {
    const LEAST_WORDS: usize = 5;
    let mut own = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(['"', '“', '„', '«']) {
        let Some((quoted, behind)) = behind.split_once(['"', '”', '“', '»']) else {
            break;
        };
        own.push_str(before);
        if count_words(quoted) < LEAST_WORDS {
            own.push_str(quoted);
        }
        own.push(' ');
        rest = behind;
    }
    own.push_str(rest);
    if own.trim().is_empty() {
        return text.to_owned();
    }
    own
}

/// Returns the text after its greetings.
fn behind_greeting(text: &str) -> &str {
    const MOST: usize = 3;
    let mut rest = text;
    for _ in 0..MOST {
        let behind = |greeting: &&str| {
            let behind = rest.strip_prefix(*greeting)?;
            let spaced = greeting.chars().all(|c| c < '\u{2e80}');
            let goes_on = spaced && behind.starts_with(char::is_alphanumeric);
            (!goes_on).then_some(behind)
        };
        let Some(behind) = GREETINGS.iter().find_map(behind) else {
            break;
        };
        let mark = |c: char| c.is_whitespace() || ",.;:!?-–—…，。！、".contains(c);
        rest = behind.trim_start_matches(mark);
    }
    rest
}

/// Counts the words of a text that has only filler words; `None` if it has others or too many.
fn says_nothing(text: &str) -> Option<usize> {
    const MOST: usize = 9;
    let text = text.replace(['\'', '’'], "");
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    let count = words.try_fold(0, |count, word| match word {
        "" => Some(count),
        word => FILLERS.contains(&word).then_some(count + 1),
    });
    count.filter(|count| *count <= MOST)
}

/// Counts the words of a text; in a script without spaces, two characters count as one.
fn count_words(text: &str) -> usize {
    const ENOUGH: usize = 1000;
    let ideographs = text.chars().take(ENOUGH * 4).filter(|c| *c >= '\u{2e80}');
    text.split_whitespace().take(ENOUGH).count() + ideographs.count() / 2
}

/// Returns whether it has a code fence, or lines that end like statements.
fn is_code(text: &str) -> bool {
    if text.contains("```") {
        return true;
    }
    let statement = |line: &&str| {
        let line = line.trim_end();
        line.ends_with([';', '{', '}']) || line.ends_with("):")
    };
    text.lines().filter(statement).take(3).count() == 3
}
