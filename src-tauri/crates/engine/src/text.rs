//! From token bytes to text that may be sent: whole UTF-8 only, and nothing of a stop string.

use tierbar_chats::marks::overlap;

/// Collects a generation's bytes and releases what can no longer become part of a stop string.
#[derive(Debug, Default)]
pub(crate) struct TextStream {
    stops: Vec<String>,
    /// Bytes of a character that is not complete yet.
    partial: Vec<u8>,
    /// Text that may be the beginning of a stop string.
    held: String,
}

/// What a piece released.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ReleasedText {
    pub(crate) text: String,
    /// The stop string that was completed; nothing follows.
    pub(crate) stopped: Option<String>,
}

impl TextStream {
    pub(crate) fn new(stops: Vec<String>) -> Self {
        Self {
            stops: stops.into_iter().filter(|stop| !stop.is_empty()).collect(),
            ..Self::default()
        }
    }

    /// Takes the bytes of a token that no stop string may end with, nor begin in.
    pub(crate) fn push_past_stops(&mut self, bytes: &[u8]) -> ReleasedText {
        self.hold(bytes);
        ReleasedText {
            text: std::mem::take(&mut self.held),
            stopped: None,
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
        let complete = complete_prefix(&self.partial);
        self.held
            .push_str(&String::from_utf8_lossy(&self.partial[..complete]));
        self.partial.drain(..complete);
    }

    /// Takes a token's bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> ReleasedText {
        self.hold(bytes);
        if let Some((at, stop)) = self
            .stops
            .iter()
            .filter_map(|stop| Some((self.held.find(stop)?, stop)))
            .min()
        {
            let stopped = Some(stop.clone());
            self.held.truncate(at);
            return ReleasedText {
                text: std::mem::take(&mut self.held),
                stopped,
            };
        }
        let keep = self
            .stops
            .iter()
            .map(|stop| overlap(&self.held, stop))
            .max()
            .unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - keep);
        ReleasedText {
            text: std::mem::replace(&mut self.held, rest),
            stopped: None,
        }
    }

    /// Whether nothing is held back.
    pub(crate) fn is_settled(&self) -> bool {
        self.partial.is_empty() && self.held.is_empty()
    }

    /// What was held back, when the generation has ended otherwise. The bytes of a character that is not complete are left
    /// out: nothing will complete it.
    pub(crate) fn finish(self) -> String {
        self.held
    }
}

/// Length of the prefix that is whole: all but an incomplete character at the end.
fn complete_prefix(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Err(error) = std::str::from_utf8(&bytes[at..]) {
        match error.error_len() {
            Some(invalid) => at += error.valid_up_to() + invalid,
            None => return at + error.valid_up_to(),
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(stops: &[&str], pieces: &[&[u8]]) -> (String, bool) {
        let mut stream = TextStream::new(stops.iter().map(|&stop| stop.to_owned()).collect());
        let mut text = String::new();
        for piece in pieces {
            let released = stream.push(piece);
            text.push_str(&released.text);
            if released.stopped.is_some() {
                return (text, true);
            }
        }
        text.push_str(&stream.finish());
        (text, false)
    }

    #[test]
    fn a_stop_string_may_be_passed_over() {
        let mut stream = TextStream::new(vec!["END".to_owned()]);
        assert_eq!(stream.push_past_stops(b"aEND").text, "aEND");
        assert_eq!(stream.push_past_stops(b" E").text, " E");
        assert_eq!(
            stream
                .push_past_stops("€".as_bytes().get(..1).unwrap())
                .text,
            ""
        );
        let released = stream.push("€".as_bytes().get(1..).unwrap());
        assert_eq!((&*released.text, released.stopped), ("€", None));
        assert_eq!(stream.push(b"bEND").stopped.as_deref(), Some("END"));
    }

    #[test]
    fn characters_are_never_split() {
        let mut stream = TextStream::default();
        let bytes = "€".as_bytes();
        assert_eq!(stream.push(&bytes[..1]).text, "");
        assert_eq!(stream.push(&bytes[1..2]).text, "");
        assert_eq!(stream.push(&bytes[2..]).text, "€");
    }

    #[test]
    fn invalid_utf8_does_not_delay_text() {
        assert_eq!(
            stream(&[], &[b"a\xff", b"b\xc3", b"(c"]),
            ("a\u{fffd}b\u{fffd}(c".into(), false)
        );
    }

    #[test]
    fn a_character_that_is_cut_at_the_end_is_left_out() {
        let cut = &"🙂".as_bytes()[..3];
        assert_eq!(stream(&[], &[b"end ", cut]), ("end ".into(), false));
        assert_eq!(stream(&["END"], &[b"EN", cut]), ("EN".into(), false));
    }

    #[test]
    fn a_stop_string_is_found_across_tokens_and_never_sent() {
        assert_eq!(stream(&["\n\n"], &[b"a\n", b"\nb"]), ("a".into(), true));
        assert_eq!(
            stream(&["STOP", "ST"], &[b"xS", b"TOP"]),
            ("x".into(), true)
        );
        assert_eq!(stream(&["END"], &[b"aEN", b"x"]), ("aENx".into(), false));
        assert_eq!(stream(&["END"], &[b"aEN"]), ("aEN".into(), false));
        assert_eq!(
            stream(&["ü!"], &["aü".as_bytes(), b"?"]),
            ("aü?".into(), false)
        );
    }

    #[test]
    fn text_before_a_possible_stop_is_not_delayed() {
        let mut stream = TextStream::new(vec!["END".into()]);
        assert_eq!(stream.push(b"abcE").text, "abc");
        assert_eq!(stream.push(b"f").text, "Ef");
    }
}
