//! From pieces of text with places to lines, paragraphs and headings.
//!
//! Pieces stay in the order in which the page draws them: programs write columns one after the other, and to sort them by place would
//! mix them.

use super::content::Span;
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
        let most = self
            .0
            .iter()
            .max_by_key(|(size, letters)| (**letters, **size));
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

struct Line {
    text: String,
    /// Where the first piece begins and the last one ends.
    left: f64,
    right: f64,
    y: f64,
    size: f64,
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
    let mut above: Option<Line> = None;
    for line in lines(spans) {
        if line.text.trim().is_empty() {
            continue;
        }
        let goes_on = above.as_ref().is_some_and(|above| continues(above, &line));
        if !goes_on {
            end(&mut open);
        }
        match &mut open {
            Some((text, _)) => join(text, line.text.trim()),
            None => open = Some((line.text.trim().to_owned(), line.size)),
        }
        above = Some(line);
    }
    end(&mut open);
    paragraphs
}

/// Whether a line is of the same paragraph as the one that was drawn before it.
fn continues(above: &Line, line: &Line) -> bool {
    let size = above.size.max(line.size);
    let same_size = (above.size - line.size).abs() <= 0.12 * size;
    let down = above.y - line.y;
    if !same_size {
        return false;
    }
    if down >= 0.0 {
        // A list's next point stands apart, although no more than a line.
        return down <= PARAGRAPH_GAP * size && !is_point(&line.text);
    }
    // Upwards is the next column, where an unfinished sentence goes on.
    line.left > above.left && !above.text.trim_end().ends_with(['.', ':', '!', '?'])
}

fn is_point(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with(['•', '–', '▪', '◦', '●'])
}

/// Adds a line to a paragraph; a word that is divided at its end becomes one again.
fn join(text: &mut String, line: &str) {
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

fn lines(spans: &[Span]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for span in spans {
        if let Some(line) = lines.last_mut() {
            let size = line.size.max(span.size).max(1.0);
            let level = (line.y - span.y).abs() <= 0.5 * size;
            let gap = span.left - line.right;
            // Backwards is another line, or bold letters that are drawn twice.
            if level && gap > -0.6 * size {
                let parted = gap > WORD_GAP * size
                    && !line.text.ends_with(' ')
                    && !span.text.starts_with(' ');
                if parted {
                    line.text.push(' ');
                }
                line.text.push_str(&span.text);
                line.right = line.right.max(span.right);
                if span.size > line.size {
                    (line.size, line.y) = (span.size, span.y);
                }
                continue;
            }
            let is_shadow = level
                && (span.left - line.left).abs() < 0.1 * size
                && line.text.ends_with(&span.text);
            if is_shadow {
                continue;
            }
        }
        lines.push(Line {
            text: span.text.clone(),
            left: span.left,
            right: span.right,
            y: span.y,
            size: span.size,
        });
    }
    for line in &mut lines {
        line.text = spelled(&line.text);
    }
    lines
}

/// Ligatures as their letters, so that words with them are found.
fn spelled(text: &str) -> String {
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
            letter => spelled.push(letter),
        }
    }
    spelled
}
