//! A long text, split at natural breaks, and how much of it a context holds.

/// Splits off a first piece of at most `most` bytes that is not empty, and returns it with the rest. It ends after a
/// paragraph if one ends in its second half, or else after a line, a sentence, a word, or at last any character.
pub fn first(text: &str, most: usize) -> (&str, &str) {
    if text.len() <= most {
        return (text, "");
    }
    let most = text.floor_char_boundary(most);
    if most == 0 {
        let one = text.chars().next().map_or(0, char::len_utf8);
        return text.split_at(one);
    }
    let half = most / 2;
    let window = &text[..most];
    let behind = |mark: &str| window.rfind(mark).map(|at| at + mark.len());
    let sentence = || {
        let ends = [". ", "! ", "? ", "。", "！", "？"].map(behind);
        ends.into_iter().flatten().max()
    };
    let late = |end: &usize| *end > half;
    let end = behind("\n\n")
        .filter(late)
        .or_else(|| behind("\n").filter(late))
        .or_else(|| sentence().filter(late))
        .or_else(|| behind(" ").filter(late))
        .unwrap_or(most);
    text.split_at(end)
}

/// How many bytes a context holds, learned from token counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Room {
    /// Tokens for a piece of text, without instructions and answer.
    tokens: usize,
    bytes_per_token: f64,
}

impl Room {
    /// Bytes per token before the first count: most text has more, and no common script half as many.
    const CAUTIOUS: f64 = 2.0;
    /// A margin, since texts vary.
    const MARGIN: f64 = 0.85;
    const LEAST: f64 = 0.25;
    const MOST: f64 = 6.0;

    pub fn new(tokens: usize) -> Self {
        Self {
            tokens,
            bytes_per_token: Self::CAUTIOUS,
        }
    }

    pub fn bytes(&self) -> usize {
        // Not negative, and no context comes near the limit.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bounded above"
        )]
        let bytes = (self.tokens as f64 * self.bytes_per_token) as usize;
        bytes.max(1)
    }

    /// Records that a prompt of this many bytes had this many tokens.
    pub fn counted(&mut self, bytes: usize, tokens: u64) {
        if tokens > 0 && bytes > 0 {
            let seen = bytes as f64 / tokens as f64 * Self::MARGIN;
            self.bytes_per_token = seen.clamp(Self::LEAST, Self::MOST);
        }
    }

    /// Records that a piece of this size was too long; returns `false` if smaller ones make no sense.
    pub fn too_long(&mut self) -> bool {
        self.bytes_per_token /= 2.0;
        self.bytes_per_token >= Self::LEAST
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_piece_ends_at_a_natural_break() {
        let cut = |text: &'static str, most| first(text, most);
        assert_eq!(cut("short", 9), ("short", ""));
        assert_eq!(
            cut("One two.\n\nThree. Four", 16),
            ("One two.\n\n", "Three. Four")
        );
        assert_eq!(cut("One two three.\nFour five", 20).0, "One two three.\n");
        assert_eq!(cut("One two. Three four", 12).0, "One two. ");
        assert_eq!(cut("One two three", 9).0, "One two ");
        assert_eq!(cut("unbreakable", 4), ("unbr", "eakable"));
        assert_eq!(cut("ééé", 3), ("é", "éé"));
        assert_eq!(cut("é", 1), ("é", ""));
        assert_eq!(cut("ab", 0), ("a", "b"));
    }

    proptest! {
        #[test]
        fn splitting_loses_no_text(text in "(\\PC|\n| |\\. ){0,200}", most in 1usize..60) {
            let (mut rest, mut whole) = (text.as_str(), String::new());
            while !rest.is_empty() {
                let (piece, after) = first(rest, most);
                prop_assert!(!piece.is_empty() && piece.len() <= most.max(4));
                whole.push_str(piece);
                rest = after;
            }
            prop_assert_eq!(whole, text);
        }
    }

    #[test]
    fn the_room_is_estimated_low_until_measured() {
        let mut room = Room::new(1000);
        assert_eq!(room.bytes(), 2000);
        room.counted(4000, 1000);
        assert_eq!(room.bytes(), 3400);
        room.counted(0, 1000);
        room.counted(100, 0);
        assert_eq!(room.bytes(), 3400);
        assert!(room.too_long());
        assert_eq!(room.bytes(), 1700);
        let mut turns = 0;
        while room.too_long() {
            turns += 1;
        }
        assert_eq!(turns, 2);
        assert!(Room::new(0).bytes() > 0);
    }
}
