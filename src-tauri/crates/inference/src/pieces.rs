//! Text in pieces, so that a long part which stands in it several times is in memory once.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use std::{
    borrow::Cow,
    fmt::{self, Write},
};
use tierbar_core::json_edit::{self, Change};

/// In bytes. What is shorter is copied, and sent with what is around it.
pub(crate) const SHORTEST: usize = 4 << 10;

/// Returns an object with these changes. What stays is not copied.
pub(crate) fn edit(json: &Bytes, changes: &[Change]) -> Vec<Bytes> {
    if changes.is_empty() {
        return vec![json.clone()];
    }
    let parts = json_edit::parts(json, changes).into_iter();
    let pieces = parts.map(|part| match part {
        Cow::Borrowed(part) => json.slice_ref(part),
        Cow::Owned(part) => part.into(),
    });
    pieces.filter(|piece| !piece.is_empty()).collect()
}

/// Text in pieces. A copy of it shares the long ones.
#[derive(Debug, Clone, Default)]
pub struct Pieces {
    complete: Vec<Bytes>,
    /// What follows them.
    last: Vec<u8>,
}

impl Pieces {
    /// Returns a value as JSON.
    pub fn json(value: &impl Serialize) -> Self {
        let mut pieces = Self::default();
        // Values are always written.
        pieces.push(serde_json::to_vec(value).unwrap_or_default().into());
        pieces
    }

    /// Returns an object with these fields, and members after them.
    pub fn object(fields: &Value, members: &[(&str, Self)]) -> Self {
        if members.is_empty() {
            return Self::json(fields);
        }
        let mut text = fields.to_string();
        // The brace that closes it.
        text.pop();
        let mut object = Self::default();
        object.push(text.into());
        for (name, value) in members {
            if object.last != b"{" {
                object.last.push(b',');
            }
            // A text takes whatever is written to it.
            let _ = write!(object, "{}:", Value::from(*name));
            object.append(value.clone());
        }
        object.last.push(b'}');
        object
    }

    /// Returns a list of JSON.
    pub fn list(all: impl IntoIterator<Item = Self>) -> Self {
        let mut list = Self::from("[".to_owned());
        for (index, one) in all.into_iter().enumerate() {
            if index > 0 {
                list.last.push(b',');
            }
            list.append(one);
        }
        list.last.push(b']');
        list
    }

    /// Appends bytes. Long ones are not copied.
    pub fn push(&mut self, bytes: Bytes) {
        if bytes.len() < SHORTEST {
            self.last.extend_from_slice(&bytes);
            return;
        }
        self.complete_last();
        self.complete.push(bytes);
    }

    /// Appends another text, of which the long pieces are not copied.
    pub fn append(&mut self, other: Self) {
        for piece in other.complete {
            self.push(piece);
        }
        self.push(other.last.into());
    }

    fn complete_last(&mut self) {
        if !self.last.is_empty() {
            self.complete.push(std::mem::take(&mut self.last).into());
        }
    }

    /// Returns the pieces, none of which is empty.
    pub fn into_bytes(mut self) -> Vec<Bytes> {
        self.complete_last();
        self.complete
    }
}

impl From<String> for Pieces {
    fn from(text: String) -> Self {
        Self {
            complete: Vec::new(),
            last: text.into_bytes(),
        }
    }
}

impl Write for Pieces {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.last.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_stays_is_not_copied() {
        let object = Bytes::from(r#"{"a":"x","b":1}"#);
        let changes = [("b", None), ("c", Some(json!(2)))];
        let pieces = edit(&object, &changes);
        assert_eq!(pieces, [&b"{"[..], b"\"a\":\"x\"", b",\"c\":2", b"}"]);
        for (piece, at) in [(0, 0), (1, 1), (3, object.len() - 1)] {
            assert_eq!(pieces[piece].as_ptr(), object[at..].as_ptr(), "{piece}");
        }
        assert_eq!(edit(&object, &[]), [object]);
    }

    fn text(pieces: &Pieces) -> String {
        let pieces = pieces.clone().into_bytes();
        pieces
            .iter()
            .map(|piece| str::from_utf8(piece).unwrap())
            .collect()
    }

    #[test]
    fn objects_and_lists_are_written_around_their_members() {
        let one = Pieces::json(&"é\n");
        for (fields, object) in [
            (json!({}), r#"{"a":"é\n","b\"":"é\n"}"#),
            (json!({"x": {}}), r#"{"x":{},"a":"é\n","b\"":"é\n"}"#),
        ] {
            let members = [("a", one.clone()), ("b\"", one.clone())];
            assert_eq!(text(&Pieces::object(&fields, &members)), object);
            assert_eq!(text(&Pieces::object(&fields, &[])), fields.to_string());
        }
        assert_eq!(text(&Pieces::list([])), "[]");
        assert_eq!(text(&Pieces::list([one.clone(), one])), r#"["é\n","é\n"]"#);
    }

    #[test]
    fn a_long_part_is_shared_and_a_short_one_is_not() {
        let long = Pieces::json(&"a".repeat(SHORTEST));
        let mut both = Pieces::object(&json!({"x": 1}), &[("long", long.clone())]);
        both.append(Pieces::list([long.clone(), Pieces::json(&1)]));
        let expected = text(&long);
        let expected = format!("{{\"x\":1,\"long\":{expected}}}[{expected},1]");
        assert_eq!(text(&both), expected);
        let (long, both) = (long.into_bytes(), both.into_bytes());
        assert_eq!(both.len(), 5, "{both:?}");
        for shared in [&both[1], &both[3]] {
            assert_eq!(shared.as_ptr(), long[0].as_ptr());
        }
    }
}
