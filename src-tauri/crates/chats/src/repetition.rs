//! Detects a text that repeats the same passage without end, as small models and low temperatures produce.

/// The longest passage that is looked for, in characters.
const LONGEST: usize = 200;
/// How often a passage stands at the end of a text that repeats itself.
const TIMES: usize = 8;
/// How many characters they have together, at least: a row of dashes or a short list is none.
const LEAST: usize = 400;
const TAIL: usize = LONGEST * TIMES;
const STEP: usize = 16;

/// The end of a text that grows.
#[derive(Debug, Default)]
pub struct Repetition {
    tail: Vec<char>,
    /// Characters since the last look.
    new: usize,
}

impl Repetition {
    /// Adds to the text. Returns whether it repeats itself now.
    pub fn push(&mut self, text: &str) -> bool {
        let before = self.tail.len();
        self.tail.extend(text.chars());
        self.new += self.tail.len() - before;
        if self.new < STEP {
            return false;
        }
        self.new = 0;
        // Rarely, since the rest is moved each time.
        if self.tail.len() > 2 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
        (1..=LONGEST).any(|period| ends_with_period(&self.tail, period))
    }
}

fn ends_with_period(text: &[char], period: usize) -> bool {
    let length = (period * TIMES).max(LEAST);
    let Some(start) = text.len().checked_sub(length) else {
        return false;
    };
    let end = &text[start..];
    end[period..] == end[..length - period]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a text is taken for a repetition while it comes in pieces of so many characters.
    fn repeats(text: &str, piece: usize) -> bool {
        let letters: Vec<_> = text.chars().collect();
        let mut seen = Repetition::default();
        let mut pieces = letters.chunks(piece);
        pieces.any(|piece| seen.push(&piece.iter().collect::<String>()))
    }

    #[test]
    fn a_passage_that_repeats_is_found_in_pieces_of_any_size() {
        let passage = "I am sorry, I cannot help you with that. Is there anything else? ";
        let text = format!("Of course. {}", passage.repeat(9));
        for piece in [1, 3, 16, 1000] {
            assert!(repeats(&text, piece), "{piece}");
        }
        assert!(repeats(&"ä ö ".repeat(120), 4));
        assert!(repeats(&"x".repeat(416), 1));
        let long: String = ('a'..='z').cycle().take(LONGEST - 1).collect();
        let long = format!("{long}!");
        assert!(repeats(&long.repeat(TIMES + 1), 7));
    }

    #[test]
    fn what_is_short_or_changes_is_no_repetition() {
        let passage = "I am sorry, I cannot help you with that. Is there anything else? ";
        assert!(!repeats(&passage.repeat(TIMES - 1), 3), "seldom");
        assert!(!repeats(&"-".repeat(LEAST - 1), 1), "a rule");
        let numbered = |row: usize| format!("{row}. The row after it is like this one.\n");
        let list: String = (1..200).map(numbered).collect();
        assert!(!repeats(&list, 5), "a list");
        let verse = "la la la, ".repeat(30);
        assert!(!repeats(&verse, 2), "300 characters");
        let longer: String = ('a'..='z').cycle().take(LONGEST).collect();
        let longer = format!("{longer}!");
        assert!(!repeats(&longer.repeat(TIMES + 2), 5), "a longer passage");
    }

    #[test]
    fn what_came_long_before_is_forgotten() {
        let mut seen = Repetition::default();
        for row in 0..10_000 {
            assert!(!seen.push(&format!("row {row} of many. ")));
        }
        assert!(seen.tail.len() <= 3 * TAIL);
    }
}
