//! Signs in a text of how hard it is to answer.

use super::words::{
    CODE_WORDS, CONDITIONED, CONDITIONS, FILLERS, GREETINGS, HARD_TASKS, MATHS, REPAIRS,
    SMALL_TASKS, SUMS, TEXT_TASKS,
};

/// The text in lower case, without the greeting at its start.
pub(super) struct Text {
    greeting: Greeting,
    lower: String,
    code: bool,
    words: usize,
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
    pub(super) fn of(text: &str) -> Self {
        const END: usize = 320;
        let text = text.trim();
        let count = text.chars().count();
        let ends: String = if count > 3 * END {
            let head = text.chars().take(END);
            let tail = text.chars().skip(count - END);
            head.chain(['\n']).chain(tail).collect()
        } else {
            text.to_owned()
        };
        let lower = ends.to_lowercase();
        let rest = behind_greeting(&lower);
        let greeting = match (rest.len() < lower.len(), says_nothing(rest)) {
            (true, Some(0)) => Greeting::Whole,
            (true, Some(_)) => Greeting::Chatty,
            _ => Greeting::Beginning,
        };
        let greeted = words(&lower) - words(rest);
        Self {
            greeting,
            code: is_code(text),
            words: words(text).saturating_sub(greeted),
            lower: rest.to_owned(),
        }
    }

    pub(super) fn words(&self) -> usize {
        self.words
    }

    pub(super) fn has_code(&self) -> bool {
        self.code
    }

    pub(super) fn greeting(&self) -> Greeting {
        self.greeting
    }

    pub(super) fn is_small_task(&self) -> bool {
        self.has_any(SMALL_TASKS)
    }

    pub(super) fn is_hard_task(&self) -> bool {
        self.has_any(HARD_TASKS)
    }

    pub(super) fn is_text_task(&self) -> bool {
        self.has_any(TEXT_TASKS)
    }

    pub(super) fn is_code_task(&self) -> bool {
        self.has_any(CODE_WORDS)
    }

    pub(super) fn is_repair(&self) -> bool {
        self.code && REPAIRS.iter().any(|sign| self.lower.contains(sign))
    }

    pub(super) fn is_maths(&self) -> bool {
        MATHS.iter().any(|sign| self.lower.contains(sign))
    }

    pub(super) fn is_sum_in_words(&self) -> bool {
        self.has_any(SUMS) && self.figures() >= 3
    }

    /// Returns whether it asks for an explanation.
    pub(super) fn asks_how(&self) -> bool {
        const WORDS: &[&str] = &[
            "how do",
            "how does",
            "how can",
            "how to",
            "why",
            "what could",
            "what should",
            "wie funktioniert",
            "warum",
            "pourquoi",
            "comment",
            "por qué",
            "cómo",
            "почему",
        ];
        WORDS.iter().any(|word| self.lower.starts_with(word))
    }

    /// Returns whether it is a short question followed by a text.
    pub(super) fn is_question_about_a_text(&self) -> bool {
        const SHORT: usize = 14;
        let first = self.lower.split_once(['?', '.', ':', '!']);
        first.is_some_and(|(question, text)| {
            let ends = self.lower.as_bytes().get(question.len()) == Some(&b'?');
            ends && question.split_whitespace().count() <= SHORT && words(text) > 3
        })
    }

    /// Returns whether it has so many figures that it is seldom easy.
    pub(super) fn is_full_of_figures(&self) -> bool {
        const FIGURES: usize = 3;
        const WORDS: usize = 15;
        self.words >= WORDS && self.figures() >= FIGURES
    }

    pub(super) fn is_conditioned(&self) -> bool {
        let conditions = CONDITIONS.iter().filter(|sign| self.has(sign));
        self.has_any(CONDITIONED) && conditions.take(2).count() == 2
    }

    /// Figures, and numbers in words.
    fn figures(&self) -> usize {
        const NUMBERS: &[&str] = &[
            "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve",
            "hundred",
        ];
        let figure =
            |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) || NUMBERS.contains(word);
        self.lower
            .split(|c: char| !c.is_alphanumeric())
            .filter(figure)
            .count()
    }

    fn has_any(&self, signs: &[&str]) -> bool {
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
    const MOST: usize = 6;
    let text = text.replace(['\'', '’'], "");
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    let count = words.try_fold(0, |count, word| match word {
        "" => Some(count),
        word => FILLERS.contains(&word).then_some(count + 1),
    });
    count.filter(|count| *count <= MOST)
}

/// Counts the words of a text; in a script without spaces, two characters count as one.
fn words(text: &str) -> usize {
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
