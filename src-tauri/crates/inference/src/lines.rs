//! A stream's bytes as whole lines.

use bytes::Bytes;
use memchr::memrchr;

/// Has the lines of an event stream end as all readers expect: a carriage return alone, which ends one as well (WHATWG, "Interpreting an
/// event stream"), becomes a line feed. Pairs of both stay.
#[derive(Debug, Default)]
pub struct LineEnds {
    last: LastByte,
    /// There was a carriage return alone: the next one that ends what has arrived is not waited with.
    alone: bool,
}

/// What the next byte may belong to.
#[derive(Debug, Default, PartialEq, Eq)]
enum LastByte {
    #[default]
    Other,
    /// A carriage return that is held back.
    Return,
    /// A carriage return that has become a line feed: one behind it belongs to it.
    Ended,
}

impl LineEnds {
    /// Returns what has arrived, with its lines' ends. A carriage return at its end may wait for what follows it.
    pub fn unify(&mut self, arrived: Bytes) -> Bytes {
        // Nearly no stream has any.
        if self.last == LastByte::Other && !arrived.contains(&b'\r') {
            return arrived;
        }
        let mut unified = Vec::with_capacity(arrived.len() + 1);
        for &byte in &arrived {
            match (std::mem::take(&mut self.last), byte) {
                (LastByte::Return, b'\n') => {
                    unified.extend_from_slice(b"\r\n");
                    continue;
                }
                (LastByte::Return, _) => {
                    self.alone = true;
                    unified.push(b'\n');
                }
                (LastByte::Ended, b'\n') => continue,
                (LastByte::Ended | LastByte::Other, _) => {}
            }
            match byte {
                b'\r' => self.last = LastByte::Return,
                byte => unified.push(byte),
            }
        }
        if self.last == LastByte::Return && self.alone {
            self.last = LastByte::Ended;
            unified.push(b'\n');
        }
        unified.into()
    }
}

/// Holds the line whose end has not arrived.
#[derive(Debug, Default)]
pub struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// Returns the lines that these bytes complete, each with its end; empty if they complete none. The rest waits for its end, which is
    /// only looked for in what arrives.
    pub fn complete(&mut self, bytes: &[u8]) -> Vec<u8> {
        let end = memrchr(b'\n', bytes);
        let (ending, rest) = bytes.split_at(end.map_or(0, |end| end + 1));
        if ending.is_empty() {
            self.partial.extend_from_slice(rest);
            return Vec::new();
        }
        self.partial.extend_from_slice(ending);
        std::mem::replace(&mut self.partial, rest.to_vec())
    }

    /// Returns the number of bytes of the line whose end has not arrived.
    pub fn pending(&self) -> usize {
        self.partial.len()
    }

    /// Takes the line whose end does not arrive.
    pub fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.partial)
    }
}

/// Returns a line without its end.
pub fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_either_letter_or_both() {
        for (stream, unified) in [
            ("a\nb\n\n", "a\nb\n\n"),
            ("a\r\nb\r\n\r\n", "a\r\nb\r\n\r\n"),
            ("a\rb\r\rc\r\r", "a\nb\n\nc\n\n"),
            // Of a mixed stream, a pair may have become a line feed.
            ("a\r\r\nb\n\r\n\rc\r\r", "a\n\nb\n\n\nc\n\n"),
        ] {
            let is_mixed = stream.contains("\r\r\n");
            for size in 1..=stream.len() {
                let mut ends = LineEnds::default();
                let pieces = stream.as_bytes().chunks(size);
                let pieces = pieces.map(|piece| ends.unify(Bytes::copy_from_slice(piece)));
                let read = String::from_utf8(pieces.collect::<Vec<_>>().concat()).unwrap();
                let read = if is_mixed {
                    read.replace('\r', "")
                } else {
                    read
                };
                assert_eq!(read, unified, "{size}: {stream:?}");
            }
        }
    }

    #[test]
    fn a_carriage_return_waits_only_until_one_was_alone() {
        let mut ends = LineEnds::default();
        let mut unify = |piece: &'static str| ends.unify(Bytes::from_static(piece.as_bytes()));
        assert_eq!(unify("a\r"), "a");
        assert_eq!(unify("\n"), "\r\n");
        assert_eq!(unify("b\r"), "b");
        assert_eq!(unify("c\r\r"), "\nc\n\n");
        assert_eq!(unify("d\r"), "d\n");
        assert_eq!(unify("\ne\r"), "e\n");
        assert_eq!(unify("\r"), "\n");
    }

    #[test]
    fn a_line_is_complete_with_its_end() {
        let mut lines = Lines::default();
        assert_eq!(lines.complete(b"da"), b"");
        assert_eq!(lines.complete(b""), b"");
        assert_eq!(lines.pending(), 2);
        assert_eq!(lines.complete(b"ta: 1\n\nda"), b"data: 1\n\n");
        assert_eq!(lines.complete(b"ta: 2\n"), b"data: 2\n");
        assert_eq!(lines.complete(b"\n"), b"\n");
    }
}
