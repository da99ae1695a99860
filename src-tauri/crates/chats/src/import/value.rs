//! A chat of a file as JSON values, within a bound: a list of small lists takes a hundred times its text once it is parsed.
//!
//! What no reader looks at is skipped, so that a real chat is far from the bound.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::{cell::Cell, fmt};

/// The text of a chat can take 16 MiB once it is stored.
const MOST_TEXT: usize = 17 << 20;
/// The memory of a chat's texts and values.
const MOST_MEMORY: usize = 24 << 20;
/// Of a list's element: lists double as they grow.
const ELEMENT: usize = 2 * size_of::<Value>();
/// Of an object's entry besides its value: its key and hash, and its place in the table.
const ENTRY: usize = size_of::<Value>() + size_of::<String>() + 24;
/// Of a text's own allocation.
const AROUND_TEXT: usize = 16;
/// What a server has embedded in a link, such as an image.
const LONGEST_LINK: usize = 64 << 10;
/// What is read of ChatGPT's `metadata`, which has a search's pages, too.
const METADATA: [&str; 3] = [
    "attachments",
    "is_visually_hidden_from_conversation",
    "model_slug",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParseFailure {
    Invalid,
    TooLarge,
}

/// Parses a chat, without its files and what else is read of no chat.
pub(super) fn parse(json: &[u8]) -> Result<Value, ParseFailure> {
    if longest_escaped_text(json) > MOST_TEXT {
        return Err(ParseFailure::TooLarge);
    }
    let room = Room {
        text: Cell::new(MOST_TEXT),
        memory: Cell::new(MOST_MEMORY),
        is_exceeded: Cell::new(false),
    };
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let seed = Node {
        room: &room,
        depth: 0,
        key: "",
    };
    let parsed = seed.deserialize(&mut deserializer);
    match parsed.and_then(|value| deserializer.end().map(|()| value)) {
        Ok(value) => Ok(value),
        Err(_) if room.is_exceeded.get() => Err(ParseFailure::TooLarge),
        Err(_) => Err(ParseFailure::Invalid),
    }
}

/// The bytes of the longest text with an escape, once it is read. The parser copies such a text before a visitor sees its length.
fn longest_escaped_text(json: &[u8]) -> usize {
    let (mut longest, mut begun, mut spared) = (0_usize, None::<usize>, 0_usize);
    let mut bytes = json.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match (byte, begun) {
            (b'\\', Some(_)) => {
                bytes.next();
                spared += match json.get(at + 1..at + 4) {
                    Some(b"u00") => 4,
                    // Three bytes at most.
                    Some([b'u', ..]) => 3,
                    _ => 1,
                };
            }
            (b'"', Some(from)) => {
                if spared > 0 {
                    longest = longest.max((at - from).saturating_sub(spared));
                }
                begun = None;
            }
            (b'"', None) => (begun, spared) = (Some(at), 0),
            _ => {}
        }
    }
    longest
}

/// Whether no reader looks at what has this key. `depth`: of its object, from 1; `within`: the object's own key.
fn is_skipped(depth: usize, within: &str, key: &str) -> bool {
    match (depth, key) {
        // They are read apart.
        (1, "files") => true,
        // A node's parent is what is read.
        (3, "children") | (_, "childrenIds") => true,
        // LM Studio's figures, and Open WebUI's steps.
        (_, "genInfo" | "statusHistory") => true,
        _ => within == "metadata" && depth <= 6 && !METADATA.contains(&key),
    }
}

/// What is left of the bounds.
struct Room {
    text: Cell<usize>,
    memory: Cell<usize>,
    is_exceeded: Cell<bool>,
}

impl Room {
    fn take<E: Error>(&self, memory: usize) -> Result<(), E> {
        self.take_of(&self.memory, memory)
    }

    fn text<E: Error>(&self, text: &str) -> Result<String, E> {
        self.take_of(&self.text, text.len())?;
        self.take(AROUND_TEXT + text.len())?;
        Ok(text.to_owned())
    }

    fn take_of<E: Error>(&self, room: &Cell<usize>, bytes: usize) -> Result<(), E> {
        let left = room.get().checked_sub(bytes);
        self.is_exceeded.set(left.is_none());
        room.set(left.ok_or_else(|| E::custom("too large"))?);
        Ok(())
    }
}

struct Node<'a> {
    room: &'a Room,
    depth: usize,
    /// The key that it has.
    key: &'a str,
}

impl Node<'_> {
    fn inner<'b>(&'b self, key: &'b str) -> Node<'b> {
        Node {
            room: self.room,
            depth: self.depth + 1,
            key,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        if self.key == "url" && text.len() > LONGEST_LINK {
            return Ok(Value::Null);
        }
        self.room.text(text).map(Value::String)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element_seed(self.inner(""))? {
            self.room.take(ELEMENT)?;
            list.push(element);
        }
        list.shrink_to_fit();
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        let mut room = 0;
        while let Some(key) = entries.next_key_seed(Key(self.room))? {
            if is_skipped(self.depth + 1, self.key, &key) {
                entries.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = entries.next_value_seed(self.inner(&key))?;
            if map.len() >= room {
                let larger = table_room(room);
                self.room.take((larger - room) * ENTRY)?;
                room = larger;
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

/// The next room of a table: for 3, 7, 14, 28 … entries.
fn table_room(before: usize) -> usize {
    match before {
        0 => 3,
        3 => 7,
        _ => 2 * before,
    }
}

struct Key<'a>(&'a Room);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<String, E> {
        self.0.text(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn what_no_reader_looks_at_is_skipped() {
        let node = |children: Value, metadata: Value| json!({"mapping": {"a": {"children": children, "message": {"metadata": metadata}}}});
        let mut file = node(
            json!(["b"]),
            json!({"model_slug": "m", "search_result_groups": [1]}),
        );
        file["files"] = json!({"00": "AAAA"});
        let parsed = parse(file.to_string().as_bytes()).unwrap();
        let mut read = node(json!([]), json!({"model_slug": "m"}));
        let nodes = read["mapping"]["a"].as_object_mut().unwrap();
        nodes.remove("children");
        assert_eq!(parsed, read);
        // A call's arguments are whole.
        let call = json!({"messages": [{"versions": [{"steps": [{"content": [{"parameters": {"children": [1]}}]}]}]}]});
        assert_eq!(parse(call.to_string().as_bytes()), Ok(call));
    }

    #[test]
    fn a_chat_beyond_the_bound_is_not_parsed() {
        let lists = |part: &str| format!("{{\"x\":[{}0]}}", part.repeat((36 << 20) / part.len()));
        let texts = |part: &str| format!("{{\"x\":\"{}\"}}", part.repeat((36 << 20) / part.len()));
        let key = format!("{{\"{}\":0}}", "k".repeat(36 << 20));
        let bombs = [
            lists("[0],"),
            lists("{\"\":0},"),
            lists("0,"),
            lists("\"\","),
            texts("word "),
            texts("\\n"),
            key,
        ];
        for bomb in bombs {
            let parsed = parse(bomb.as_bytes());
            assert_eq!(parsed, Err(ParseFailure::TooLarge), "{}", &bomb[..20]);
        }
        // An image within a link is as none.
        let image = format!("{{\"url\":\"data:{}\"}}", "A".repeat(36 << 20));
        assert_eq!(parse(image.as_bytes()), Ok(json!({"url": null})));
        for invalid in ["", "{", "{} {}", "{\"a\": 1e999}"] {
            assert_eq!(
                parse(invalid.as_bytes()),
                Err(ParseFailure::Invalid),
                "{invalid}"
            );
        }
    }

    proptest! {
        #[test]
        fn other_values_are_as_they_are(texts in prop::collection::vec(".*", 0..30), number in any::<f64>(), sign in any::<i64>()) {
            let inner: Map<String, Value> = texts.iter().map(|text| (text.clone(), json!([text, null, {}, true]))).collect();
            let value = json!({"inner": inner, "numbers": [number, sign, u64::MAX]});
            let text = value.to_string();
            let whole: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(parse(text.as_bytes()), Ok(whole));
        }
    }
}
