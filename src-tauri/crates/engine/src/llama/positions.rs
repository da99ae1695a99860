//! The positions of tokens in a sequence, and the stand-ins for rows of media among them.
//!
//! A row of an image takes a cell in the cache like a token, but not always a position: models with M-RoPE number an image's
//! rows in two dimensions, give all of them one position in the sequence, and continue some positions later. Each stand-in
//! encodes how its row counts, so that the tokens alone give all positions, also in a file.

use super::Token;

/// Marks a stand-in: a number outside every vocabulary.
const STANDS: Token = Token::MIN;
/// Set if the row has the position of the token before it.
const JOINS: Token = 1 << 30;
/// Set if the next token is one position later.
const COUNTS: Token = 1 << 29;

/// Where some tokens of a sequence end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SequenceEnd {
    /// The position of the last one; -1 without tokens.
    pub(crate) last: i32,
    /// The position of what follows, which is not always the next one.
    pub(crate) next: i32,
}

impl SequenceEnd {
    pub(crate) const START: Self = Self { last: -1, next: 0 };

    pub(crate) fn of(tokens: &[Token]) -> Self {
        Self::START.after(tokens)
    }

    /// Returns the end after more tokens.
    pub(crate) fn after(self, tokens: &[Token]) -> Self {
        tokens.iter().fold(self, |end, &token| Self {
            last: if joins(token) { end.last } else { end.next },
            next: end.next + i32::from(token >= 0 || token & COUNTS != 0),
        })
    }
}

fn joins(token: Token) -> bool {
    token < 0 && token & JOINS != 0
}

pub(crate) fn common_prefix(one: &[Token], other: &[Token]) -> usize {
    let pairs = one.iter().zip(other);
    pairs.take_while(|(one, other)| one == other).count()
}

/// Returns `keep` or less: rows of one position are never divided, since a cache can only remove them together.
pub(crate) fn undivided(tokens: &[Token], mut keep: usize) -> usize {
    while keep > 0 && tokens.get(keep).is_some_and(|&next| joins(next)) {
        keep -= 1;
    }
    keep
}

/// Returns stand-ins for rows with these positions, before a token at position `after`. `identity` gives the hash of a row.
/// Returns `None` for descending positions, or for gaps larger than the number of rows.
pub(crate) fn stand_ins(
    positions: &[i32],
    after: i32,
    identity: impl Fn(usize) -> [u8; 4],
) -> Option<Vec<Token>> {
    let mut tokens = Vec::with_capacity(positions.len());
    for rows in positions.chunk_by(|one, next| one == next) {
        let next = positions.get(tokens.len() + rows.len()).unwrap_or(&after);
        let counting = usize::try_from(next - rows[0]).ok()?;
        if !(1..=rows.len()).contains(&counting) {
            return None;
        }
        for place in 0..rows.len() {
            let encoded = Token::from_le_bytes(identity(tokens.len())) & (COUNTS - 1);
            let joins = if place > 0 { JOINS } else { 0 };
            let counts = if place < counting { COUNTS } else { 0 };
            tokens.push(STANDS | joins | counts | encoded);
        }
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(positions: &[i32], after: i32) -> Option<Vec<Token>> {
        stand_ins(positions, after, |row| {
            u32::try_from(row * 31).unwrap().to_le_bytes()
        })
    }

    fn end(last: i32, next: i32) -> SequenceEnd {
        SequenceEnd { last, next }
    }

    #[test]
    fn text_and_rows_of_one_dimension_count_one_by_one() {
        assert_eq!(SequenceEnd::of(&[]), SequenceEnd::START);
        assert_eq!(SequenceEnd::of(&[5, 0, 7]), end(2, 3));
        let tokens = [vec![1, 2], rows(&[2, 3, 4], 5).unwrap(), vec![3]].concat();
        for keep in 0..=tokens.len() {
            let next = i32::try_from(keep).unwrap();
            assert_eq!(SequenceEnd::of(&tokens[..keep]), end(next - 1, next));
            assert_eq!(undivided(&tokens, keep), keep);
        }
    }

    #[test]
    fn an_image_has_one_position_and_is_never_divided() {
        // Two rows of three columns.
        let image = rows(&[2; 6], 5).unwrap();
        assert!(image.iter().all(|&token| token < 0));
        let tokens = [vec![1, 2], image, vec![3, 4]].concat();
        assert_eq!(SequenceEnd::of(&tokens[..2]), end(1, 2));
        assert_eq!(SequenceEnd::of(&tokens[..4]).last, 2);
        assert_eq!(SequenceEnd::of(&tokens[..8]), end(2, 5));
        assert_eq!(SequenceEnd::of(&tokens), end(6, 7));
        assert_eq!(SequenceEnd::of(&tokens[..8]).after(&tokens[8..]), end(6, 7));
        let cuts: Vec<_> = (0..=10).map(|keep| undivided(&tokens, keep)).collect();
        assert_eq!(cuts, [0, 1, 2, 2, 2, 2, 2, 2, 8, 9, 10]);
        // Two of them in a row, and one at the start.
        let two = [rows(&[0; 4], 2).unwrap(), rows(&[2; 4], 4).unwrap()].concat();
        assert_eq!(SequenceEnd::of(&two), end(2, 4));
        assert_eq!([3, 4, 5].map(|keep| undivided(&two, keep)), [0, 4, 4]);
        assert_eq!(undivided(&two[1..], 1), 0);
    }

    #[test]
    fn positions_that_cannot_be_encoded_are_refused() {
        for (positions, after) in [(&[3, 3][..], 6), (&[3, 3], 3), (&[3, 2], 4), (&[3, 4], 4)] {
            assert_eq!(rows(positions, after), None, "{positions:?} {after}");
        }
        // Two frames of a video.
        let film = rows(&[0, 0, 0, 1, 1, 1], 4).unwrap();
        assert_eq!(SequenceEnd::of(&film), end(1, 4));
        assert_eq!(SequenceEnd::of(&film[..3]), end(0, 1));
    }
}
