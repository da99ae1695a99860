//! What is kept of a stream that may be endless: its beginning and its end.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a command wrote to one stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// In UTF-8, with a note where bytes are missing. Bytes that are no UTF-8 are replaced.
    pub text: String,
    /// All that was written.
    pub bytes: u64,
}

/// Keeps as many bytes as it was made for, half of them from the end.
#[derive(Debug)]
pub(crate) struct Collector {
    half: usize,
    first: Vec<u8>,
    last: VecDeque<u8>,
    bytes: u64,
}

impl Collector {
    pub(crate) fn new(kept: usize) -> Self {
        Self {
            half: kept / 2,
            first: Vec::new(),
            last: VecDeque::new(),
            bytes: 0,
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        let (first, rest) = bytes.split_at(bytes.len().min(self.half - self.first.len()));
        self.first.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let excess = (self.last.len() + rest.len()).saturating_sub(self.half);
        self.last.drain(..excess);
        self.last.extend(rest);
    }

    pub(crate) fn finish(&self) -> Output {
        let (first, last) = (self.first.as_slice(), Vec::from(self.last.clone()));
        let left_out = self.bytes - (first.len() + last.len()) as u64;
        let text = if left_out == 0 {
            String::from_utf8_lossy(&[first, last.as_slice()].concat()).into_owned()
        } else {
            // A character that is cut in two is no replacement character.
            let end = first.len() - cut_at_the_end(first);
            let start = last.iter().take(3).take_while(|byte| is_inner(**byte));
            let (first, last) = (&first[..end], &last[start.count()..]);
            format!(
                "{}\n[… {left_out} bytes left out …]\n{}",
                String::from_utf8_lossy(first),
                String::from_utf8_lossy(last)
            )
        };
        Output {
            text,
            bytes: self.bytes,
        }
    }
}

/// Whether a byte is not the first one of a character.
fn is_inner(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// How many bytes of an unfinished character are at the end.
fn cut_at_the_end(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.len() - error.valid_up_to(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(kept: usize, pieces: &[&[u8]]) -> Output {
        let mut collector = Collector::new(kept);
        for piece in pieces {
            collector.push(piece);
        }
        collector.finish()
    }

    #[test]
    fn short_output_is_kept_whole() {
        assert_eq!(collected(8, &[]).text, "");
        assert_eq!(collected(8, &[b"abc", b"defgh"]).text, "abcdefgh");
        // A character of two pieces.
        assert_eq!(collected(8, &[b"a\xc3", b"\xa4b"]).text, "aäb");
        assert_eq!(collected(8, &[b"a\xff"]).text, "a\u{fffd}");
    }

    #[test]
    fn the_middle_of_long_output_is_left_out() {
        let output = collected(8, &[b"abc", b"defghijkl", b"mnop"]);
        assert_eq!(output.text, "abcd\n[… 8 bytes left out …]\nmnop");
        assert_eq!(output.bytes, 16);
        let long = vec![b'x'; 1 << 20];
        let output = collected(8, &[&long, b"end"]);
        assert!(output.text.starts_with("xxxx\n[…"), "{}", output.text);
        assert!(output.text.ends_with("xend"), "{}", output.text);
    }

    #[test]
    fn a_character_at_the_cut_is_left_out() {
        let output = collected(8, &["abcäxxxxxxxxxxäbcd".as_bytes()]);
        assert_eq!(output.text, "abc\n[… 12 bytes left out …]\nbcd");
    }

    #[test]
    fn omitted_output_is_counted() {
        let output = collected(0, &[b"abc"]);
        assert_eq!(output.text, "\n[… 3 bytes left out …]\n");
    }
}
