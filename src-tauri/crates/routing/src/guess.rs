//! A guess at how hard a request is, where no rule is sure: signs that each say little are added up.

use super::{
    Level,
    rules::Judgement,
    signs::Text,
    words::{
        ALGEBRA, CLOSED_QUESTIONS, COMPOSING, CONCEPTS, CONDITIONS, DEMANDS, LIMITS, LOOKS,
        OPEN_QUESTIONS, OWN_WORDS, TECHNICAL,
    },
};

/// Signs that make a request look hard.
const HARD: usize = 3;
const FEW_WORDS: usize = 12;
/// An instruction about a quoted text.
const SHORT_INSTRUCTION: usize = 20;
const MANY_WORDS: usize = 40;

/// Grades a request by the sum of its signs. It is never sure.
pub(super) fn guess(text: &Text) -> Judgement {
    let guess = |level, because| Judgement {
        level,
        sure: false,
        because,
    };
    let composes = text.has_any(COMPOSING);
    if text.is_question_about_a_text() && text.count(DEMANDS) == 0 && !text.has_any(OWN_WORDS) {
        return guess(
            Level::Simple,
            "a guess: it is a short question about a text",
        );
    }
    if signs_of_steps(text) >= HARD + 2 * usize::from(composes) {
        return guess(Level::Hard, "a guess: it seems to need several steps");
    }
    if composes {
        return guess(Level::Medium, "a guess: it seems to ask for writing");
    }
    if text.has_sentence_with(OPEN_QUESTIONS) || text.has_sentence_with(CONCEPTS) {
        return guess(Level::Medium, "a guess: it seems to ask for an explanation");
    }
    let words = text.words;
    if text.quotes && words <= SHORT_INSTRUCTION {
        return guess(
            Level::Simple,
            "a guess: it is a short question about a text",
        );
    }
    let looks = text.starts_with_any(LOOKS) && text.has_short_instruction();
    let asks = text.starts_with_any(CLOSED_QUESTIONS);
    if looks || asks && (words <= SHORT_INSTRUCTION || text.has_instruction_above()) {
        return guess(Level::Simple, "a guess: it seems quick to answer");
    }
    if words <= FEW_WORDS {
        return guess(Level::Simple, "a guess: it is short");
    }
    guess(Level::Medium, "a guess: it is neither short nor complex")
}

/// Counts what makes dependent steps likely.
fn signs_of_steps(text: &Text) -> usize {
    let technical = text.count(TECHNICAL).min(3);
    let figures = text.figures();
    let conditions = text.count(CONDITIONS) + text.count(LIMITS);
    2 * text.count(DEMANDS).min(2)
        + technical
        + 2 * text.count_letters(ALGEBRA).min(2)
        + usize::from(figures >= 3)
        + usize::from(figures >= 6)
        + usize::from(conditions >= 2)
        + usize::from(conditions >= 4)
        + usize::from(text.questions() >= 2)
        + usize::from(text.words >= MANY_WORDS)
        + usize::from(technical > 0 && text.has_sentence_with(OPEN_QUESTIONS))
}
