//! How hard a request is, by rules that can be explained to a user.

use super::{
    Level, Traits,
    guess::guess,
    signs::{Greeting, Text},
    traits::tokens,
    words::{CODE_WORDS, HARD_TASKS, MATHS, REPAIRS, SMALL_TASKS, SUMS, TEXT_TASKS},
};
use serde::Serialize;

/// A prompt longer than a small model handles well.
const LONG: u64 = 6000;
const LONGISH: u64 = 1500;
/// A text short enough for a small task.
const SHORT: u64 = 400;
/// An instruction without conditions; the text that it is about does not count if it is quoted.
const FEW_WORDS_OF_A_TASK: usize = 45;
/// A question of few words.
const FEW_WORDS: usize = 12;

/// The level by the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = RouteRules)]
pub struct Judgement {
    pub level: Level,
    /// Whether a rule matched.
    pub sure: bool,
    // A few words in ASCII.
    pub because: &'static str,
}

impl Judgement {
    fn sure(level: Level, because: &'static str) -> Self {
        Self {
            level,
            sure: true,
            because,
        }
    }
}

/// Applies the first rule that matches; those for the smallest and the largest requests come first.
pub fn judge(traits: &Traits) -> Judgement {
    let text = Text::new(&traits.text);
    let by_text = by_text(traits, &text);
    // Small models write calls that do not parse, and take one object for another.
    let greets = text.greeting == Greeting::Whole;
    if traits.tools && by_text.level < Level::Medium && !greets {
        return Judgement::sure(Level::Medium, "it has tools");
    }
    by_text
}

fn by_text(traits: &Traits, text: &Text) -> Judgement {
    let sure = Judgement::sure;
    if traits.thinks {
        return sure(Level::Hard, "it requests thinking");
    }
    if text.greeting != Greeting::Beginning {
        return sure(Level::Simple, "it is a greeting");
    }
    if text.has_any(HARD_TASKS) {
        return sure(Level::Hard, "it needs several dependent steps");
    }
    let is_short = text.words <= FEW_WORDS_OF_A_TASK && tokens(&traits.text) <= SHORT;
    if text.has_any(SMALL_TASKS) && is_short {
        return sure(Level::Simple, "it is a small task on a short text");
    }
    if text.code && text.count_letters(REPAIRS) > 0 {
        return sure(Level::Hard, "it asks to debug code");
    }
    if text.count_letters(MATHS) > 0 {
        return sure(Level::Hard, "it has formulas");
    }
    if text.has_any(SUMS) && text.figures() >= 3 {
        return sure(Level::Hard, "it is a word problem");
    }
    if text.is_conditioned() {
        return sure(Level::Hard, "it has several conditions");
    }
    if traits.prompt_tokens > LONG {
        return sure(Level::Hard, "it is long");
    }
    if text.code || text.has_any(CODE_WORDS) {
        return sure(Level::Medium, "it is about code");
    }
    if text.has_any(TEXT_TASKS) {
        return sure(Level::Medium, "it asks for writing or an explanation");
    }
    if traits.prompt_tokens > LONGISH {
        return sure(Level::Medium, "it is rather long");
    }
    // "And in Rust?" belongs to a tier that could answer what came before, and has it in its cache.
    let before = traits.earlier.iter().map(|text| judge_text(text).level);
    let (before, continues) = (before.max(), text.words <= FEW_WORDS);
    if let Some(before) = before.filter(|before| continues && *before > Level::Simple) {
        return sure(before, "it continues the previous question");
    }
    guess(text)
}

/// Applies the rules to a text without its conversation.
pub fn judge_text(text: &str) -> Judgement {
    let traits = Traits {
        prompt_tokens: tokens(text),
        text: text.to_owned(),
        ..Traits::default()
    };
    by_text(&traits, &Text::new(text))
}

/// Returns whether a text is a greeting or thanks, and no more than that.
pub fn is_greeting(text: &str) -> bool {
    Text::new(text).greeting != Greeting::Beginning
}
