//! From pieces of text with places to lines, paragraphs and headings.
//!
//! Pieces stay in the order in which the page draws them: programs write columns one after the other, and to sort them by place would
//! mix them. Only columns that are drawn row by row are put one after the other (`columns`).

use super::{bidi, columns, content::Span};
use std::collections::HashMap;

/// The gaps, in parts of a letter's size, from which on text to the right is another word, and text below is another paragraph.
const WORD_GAP: f64 = 0.16;
const PARAGRAPH_GAP: f64 = 1.75;
/// A heading is so much larger than the body's text, and no longer than this.
const HEADING: f64 = 1.14;
const LONGEST_HEADING: usize = 200;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Paragraph {
    pub(super) text: String,
    pub(super) heading: Option<u8>,
}

/// How many letters there are of each size, in tenths of a point; the most frequent is the body's.
#[derive(Debug, Default)]
pub(super) struct Sizes(HashMap<u32, usize>);

impl Sizes {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bounded before"
    )]
    fn add(&mut self, span: &Span) {
        let tenths = (span.size * 10.0).round().clamp(0.0, 10_000.0) as u32;
        *self.0.entry(tenths).or_default() += span.text.trim().len();
    }

    fn body(&self) -> f64 {
        let sizes = self.0.iter();
        let most = sizes.max_by_key(|(size, letters)| (**letters, **size));
        most.map_or(0.0, |(size, _)| f64::from(*size) / 10.0)
    }

    fn level(&self, size: f64) -> Option<u8> {
        let ratio = size / self.body().max(1.0);
        if ratio >= 1.6 {
            Some(1)
        } else if ratio >= 1.3 {
            Some(2)
        } else if ratio >= HEADING {
            Some(3)
        } else {
            None
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Line {
    pieces: Vec<Piece>,
    /// Where the first piece begins and the last one ends.
    pub(super) left: f64,
    pub(super) right: f64,
    y: f64,
    pub(super) size: f64,
    angle: u16,
    pub(super) has_from_right: bool,
}

#[derive(Debug, Clone)]
struct Piece {
    text: String,
    left: f64,
    right: f64,
}

pub(super) fn paragraphs(spans: &[Span], sizes: &mut Sizes) -> Vec<Paragraph> {
    for span in spans {
        sizes.add(span);
    }
    let mut paragraphs: Vec<Paragraph> = Vec::new();
    let mut open: Option<(String, f64)> = None;
    let mut end = |open: &mut Option<(String, f64)>| {
        let Some((text, size)) = open.take() else {
            return;
        };
        let words = text.chars().filter(|letter| letter.is_alphabetic()).count() > 1;
        let heading = sizes
            .level(size)
            .filter(|_| words && text.len() <= LONGEST_HEADING);
        paragraphs.push(Paragraph { text, heading });
    };
    let mut above: Option<(Line, String)> = None;
    for line in columns::in_order(group_lines(spans)) {
        let text = line.text();
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        let goes_on = above
            .as_ref()
            .is_some_and(|(above, last)| continues(above, last, &line, text));
        if !goes_on {
            end(&mut open);
        }
        match &mut open {
            Some((open, _)) => append_line(open, text),
            None => open = Some((text.to_owned(), line.size)),
        }
        above = Some((line, text.to_owned()));
    }
    end(&mut open);
    paragraphs
}

/// Whether a line is of the same paragraph as the one that was drawn before it.
fn continues(above: &Line, last: &str, line: &Line, text: &str) -> bool {
    let size = above.size.max(line.size);
    let same_size = (above.size - line.size).abs() <= 0.12 * size;
    let down = above.y - line.y;
    if !same_size || above.angle != line.angle {
        return false;
    }
    if down >= 0.0 {
        // A list's next point stands apart, although no more than a line.
        return down <= PARAGRAPH_GAP * size && !text.starts_with(['•', '–', '▪', '◦', '●']);
    }
    // Upwards is the next column, where an unfinished sentence goes on.
    line.left > above.left && !last.ends_with(['.', ':', '!', '?'])
}

/// Adds a line to a paragraph; a word that is divided at its end becomes one again.
fn append_line(text: &mut String, line: &str) {
    let is_divided = text.strip_suffix(['-', '\u{ad}', '‐']).is_some_and(|word| {
        word.ends_with(char::is_alphabetic) && line.starts_with(char::is_lowercase)
    });
    if is_divided {
        text.pop();
    } else {
        text.push(' ');
    }
    text.push_str(line);
}

fn group_lines(spans: &[Span]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for span in spans {
        if !lines.last_mut().is_some_and(|line| line.takes(span)) {
            lines.push(Line::new(span));
        }
    }
    lines
}

impl Line {
    fn new(span: &Span) -> Self {
        let mut line = Self {
            pieces: Vec::new(),
            left: span.left,
            right: span.right,
            y: span.y,
            size: span.size,
            angle: span.angle,
            has_from_right: false,
        };
        line.push(span);
        line
    }

    fn push(&mut self, span: &Span) {
        let is_from_right = span.text.chars().any(bidi::is_from_right);
        self.has_from_right |= is_from_right;
        self.pieces.push(Piece {
            // By place, as all others.
            text: match is_from_right && span.is_logical {
                true => bidi::reading_order(&span.text),
                false => span.text.clone(),
            },
            left: span.left,
            right: span.right,
        });
        self.left = self.left.min(span.left);
        self.right = self.right.max(span.right);
    }

    /// Adds a piece of text if it stands on this line, behind what it has.
    fn takes(&mut self, span: &Span) -> bool {
        let size = self.size.max(span.size).max(1.0);
        let is_level = self.angle == span.angle && (self.y - span.y).abs() <= 0.5 * size;
        if !is_level {
            return false;
        }
        // Bold letters may be drawn twice.
        let last = &self.pieces[self.pieces.len() - 1];
        let moved = (span.left - last.left).abs();
        let is_shadow = last.text == span.text && moved < 0.1 * size
            || last.text.ends_with(&span.text) && (span.left - self.left).abs() < 0.1 * size;
        if is_shadow && moved < 0.5 * (last.right - last.left) {
            return true;
        }
        // Backwards is another line.
        let is_behind = span.left - self.right > -0.6 * size;
        let before = self.left - span.right;
        let is_before = before > -0.6 * size && before < 3.0 * size;
        let is_from_right = self.has_from_right || span.text.chars().any(bidi::is_from_right);
        if !(is_behind || is_before && is_from_right) {
            return false;
        }
        self.push(span);
        if span.size > self.size {
            (self.size, self.y) = (span.size, span.y);
        }
        true
    }

    fn text(&self) -> String {
        let mut pieces: Vec<&Piece> = self.pieces.iter().collect();
        if self.has_from_right {
            pieces.sort_by(|one, other| one.left.total_cmp(&other.left));
        }
        let mut text = String::new();
        let mut right = f64::INFINITY;
        for piece in pieces {
            let is_parted = piece.left - right > WORD_GAP * self.size.max(1.0)
                && !text.ends_with(' ')
                && !piece.text.starts_with(' ');
            if is_parted {
                text.push(' ');
            }
            text.push_str(&piece.text);
            right = match right.is_finite() {
                true => right.max(piece.right),
                false => piece.right,
            };
        }
        match self.has_from_right {
            true => expand_ligatures(&bidi::reading_order(&text)),
            false => expand_ligatures(&text),
        }
    }

    /// Where it has gaps of more than a part of its size.
    pub(super) fn gaps(&self, part: f64) -> Vec<(f64, f64)> {
        let pairs = self.pieces.windows(2);
        let gaps = pairs.map(|pair| (pair[0].right, pair[1].left));
        gaps.filter(|(from, to)| to - from > part * self.size)
            .collect()
    }

    /// How many bytes of text it has before and behind a place.
    pub(super) fn lengths(&self, place: f64) -> (usize, usize) {
        self.pieces
            .iter()
            .fold((0, 0), |(before, behind), piece| match piece.left < place {
                true => (before + piece.text.len(), behind),
                false => (before, behind + piece.text.len()),
            })
    }

    pub(super) fn split(mut self, place: f64) -> (Option<Self>, Option<Self>) {
        let pieces = std::mem::take(&mut self.pieces);
        let (before, behind): (Vec<_>, Vec<_>) =
            pieces.into_iter().partition(|piece| piece.left < place);
        let part = |pieces: Vec<Piece>| {
            Some(Self {
                left: pieces.first()?.left,
                right: pieces.last()?.right,
                pieces,
                ..self
            })
        };
        (part(before), part(behind))
    }
}

/// Ligatures as their letters, so that words with them are found.
fn expand_ligatures(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            'ﬀ' => spelled.push_str("ff"),
            'ﬁ' => spelled.push_str("fi"),
            'ﬂ' => spelled.push_str("fl"),
            'ﬃ' => spelled.push_str("ffi"),
            'ﬄ' => spelled.push_str("ffl"),
            'ﬅ' | 'ﬆ' => spelled.push_str("st"),
            '\u{a0}' => spelled.push(' '),
            // Of letters that are lost in a row, one mark is enough.
            char::REPLACEMENT_CHARACTER if spelled.ends_with(letter) => {}
            letter => spelled.push(letter),
        }
    }
    spelled
}
