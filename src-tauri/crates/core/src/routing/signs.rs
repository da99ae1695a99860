//! What of a text tells how hard it is to answer.

use super::words::{
    CODE_WORDS, CONDITIONED, CONDITIONS, GREETINGS, HARD_TASKS, MATHS, REPAIRS, SMALL_TASKS, SUMS,
    TEXT_TASKS,
};

/// The lower-case text with its words to be looked at.
pub(super) struct Text {
    lower: String,
    code: bool,
    words: usize,
}

impl Text {
    /// Of a long text what stands at its ends, where people say what is to be done with the rest.
    pub(super) fn of(text: &str) -> Self {
        const END: usize = 320;
        let text = text.trim();
        let count = text.chars().count();
        let told: String = if count > 3 * END {
            let head = text.chars().take(END);
            let tail = text.chars().skip(count - END);
            head.chain(['\n']).chain(tail).collect()
        } else {
            text.to_owned()
        };
        Self {
            lower: told.to_lowercase(),
            code: is_code(text),
            words: words(text),
        }
    }

    pub(super) fn words(&self) -> usize {
        self.words
    }

    pub(super) fn has_code(&self) -> bool {
        self.code
    }

    /// The whole message is a greeting, with a few words after it.
    pub(super) fn is_greeting(&self) -> bool {
        const MOST_WORDS: usize = 7;
        let plain = |c: char| c.is_alphanumeric() || c == ' ';
        let said: String = self.lower.chars().filter(|c| plain(*c)).collect();
        let begins = |greeting: &&str| {
            let rest = said.strip_prefix(*greeting);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        self.words <= MOST_WORDS && GREETINGS.iter().any(begins)
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

    /// An explanation is asked for.
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

    /// A short question, and the text that it is about.
    pub(super) fn is_question_about_a_text(&self) -> bool {
        const SHORT: usize = 14;
        let first = self.lower.split_once(['?', '.', ':', '!']);
        first.is_some_and(|(question, text)| {
            let ends = self.lower.as_bytes().get(question.len()) == Some(&b'?');
            ends && question.split_whitespace().count() <= SHORT && words(text) > 3
        })
    }

    /// What has so many figures in so many words is seldom answered at one look.
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

    /// Whether a word begins so: `prove` is in `proved` and not in `improve`. Scripts without spaces have no such beginnings.
    fn has(&self, sign: &str) -> bool {
        let spaced = sign.chars().all(|c| c < '\u{2e80}');
        self.lower.match_indices(sign).any(|(at, _)| {
            let before = self.lower[..at].chars().next_back();
            !spaced || before.is_none_or(|c| !c.is_alphanumeric())
        })
    }
}

/// Words of a text; of a script without spaces, two characters are about one.
fn words(text: &str) -> usize {
    const ENOUGH: usize = 1000;
    let ideographs = text.chars().take(ENOUGH * 4).filter(|c| *c >= '\u{2e80}');
    text.split_whitespace().take(ENOUGH).count() + ideographs.count() / 2
}

/// A fence, or lines that end as statements do.
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
