//! Which tool call a piece of a stream belongs to.

use super::wire::ToolCall;
use serde_json::{Map, Value};
use tierbar_core::json::{MOST_MEMORY, values_memory};

/// No answer has so many. Those beyond are dropped.
const MOST_CALLS: usize = 1024;

/// The calls of one answer as they began: the server's number of each, and its id.
#[derive(Debug, Default)]
pub struct Calls(Vec<(usize, Option<String>)>);

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Our number of the piece's call, which for a new one is the next.
    ///
    /// Servers may write several at a time. Some number none of them: there a name with another id begins another call. An id
    /// alone does not, since some servers make up one for each piece.
    pub fn number(&mut self, piece: &ToolCall) -> Option<usize> {
        let id = piece.id.as_ref().filter(|id| !id.is_empty());
        let named = piece.function.name.as_ref();
        let begins = id.is_some() && named.is_some_and(|name| !name.is_empty());
        let of = |same: &dyn Fn(Option<&String>) -> bool| {
            let mut calls = self.0.iter();
            calls.rposition(|(index, known)| *index == piece.index && same(known.as_ref()))
        };
        let known = of(&|known| id.is_some() && known == id);
        let known = known.or_else(|| of(&|_| !begins));
        if known.is_none() && self.0.len() < MOST_CALLS {
            self.0.push((piece.index, id.cloned()));
            return Some(self.0.len() - 1);
        }
        known
    }
}

/// Reads the arguments of a call, of which `taken` counts the memory of an answer's calls together. `None` for what is no object, such
/// as one that was cut off, or takes too much.
pub fn arguments(text: &str, taken: &mut usize) -> Option<Value> {
    if text.trim().is_empty() {
        return Some(Value::Object(Map::new()));
    }
    *taken += values_memory(text.as_bytes());
    if *taken > MOST_MEMORY {
        return None;
    }
    let read: Option<Value> = serde_json::from_str(text).ok();
    read.filter(Value::is_object)
}

/// How far a call's arguments, an object in JSON, have come.
#[derive(Debug, Default)]
pub struct ArgumentsProgress {
    depth: usize,
    begun: bool,
    in_text: bool,
    escaped: bool,
}

impl ArgumentsProgress {
    pub fn read(&mut self, more: &str) {
        for byte in more.bytes() {
            if self.in_text {
                self.in_text = self.escaped || byte != b'"';
                self.escaped = !self.escaped && byte == b'\\';
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'{' | b'[' => {
                    self.begun = true;
                    self.depth += 1;
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    /// Nothing can follow but blanks.
    pub fn is_end(&self) -> bool {
        self.begun && self.depth == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_arguments_of_all_calls_are_bounded_together() {
        let mut taken = 0;
        assert_eq!(arguments(" ", &mut taken), Some(json!({})));
        assert_eq!(arguments("[1]", &mut taken), None);
        assert_eq!(arguments("{\"a\":1", &mut taken), None);
        let lists = format!("{{\"a\":[{}0]}}", "[0],".repeat(20_000));
        let read: Vec<_> = (0..5).map(|_| arguments(&lists, &mut taken)).collect();
        assert!(read[..3].iter().all(Option::is_some));
        assert_eq!(read[3..], [None, None]);
    }

    #[test]
    fn a_piece_belongs_to_its_index_and_to_its_id() {
        let mut calls = Calls::default();
        let mut number = |index: usize, id: Option<&str>, name: Option<&str>| {
            let piece = json!({"index": index, "id": id, "function": {"name": name}});
            calls.number(&serde_json::from_value(piece).unwrap())
        };
        assert_eq!(number(0, Some("a"), Some("look")), Some(0));
        assert_eq!(number(1, Some("b"), Some("look")), Some(1));
        assert_eq!(number(0, None, None), Some(0));
        assert_eq!(number(1, Some("b"), None), Some(1));
        // Not numbered.
        assert_eq!(number(0, Some("c"), Some("look")), Some(2));
        assert_eq!(number(0, Some("a"), None), Some(0));
        assert_eq!(number(0, Some(""), None), Some(2));
        // Made up for a piece.
        assert_eq!(number(1, Some("x"), None), Some(1));
        assert_eq!(number(7, None, None), Some(3));
        for index in 8..2000 {
            number(index, None, None);
        }
        assert_eq!(number(5000, None, None), None);
    }

    #[test]
    fn arguments_end_with_their_object_and_not_within_a_text() {
        for (json, ends) in [
            ("", false),
            ("{", false),
            ("{}", true),
            (r#"{"a": [{"b": 1}]"#, false),
            (r#"{"a": "}"#, false),
            (r#"{"a": "\"}"#, false),
            (r#"{"a": "\\"}"#, true),
        ] {
            let mut whole = ArgumentsProgress::default();
            whole.read(json);
            let mut cut = ArgumentsProgress::default();
            json.split("").for_each(|piece| cut.read(piece));
            assert_eq!((whole.is_end(), cut.is_end()), (ends, ends), "{json}");
        }
    }
}
