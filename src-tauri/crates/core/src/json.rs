//! JSON that another program has written, parsed within bounds: as values, four bytes of it can take four hundred.

pub mod repair;

use crate::code;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error as _},
};
use serde_json::{Error, Map, Value, value::RawValue};
use std::mem::size_of;

/// The most memory that is made of one answer, message or document, besides its bytes.
pub const MOST_MEMORY: usize = 48 << 20;
/// How often its text is in memory at most, besides its bytes: parsed, and in the form that it is passed on in.
pub const COPIES: usize = 3;
/// The longest field that is read where the rest of a document is not, such as an error, in bytes,
pub const LONGEST_FIELD: usize = 64 << 10;
/// and the memory of its values: errors are kept, such as those of a chain's steps.
const MOST_OF_FIELD: usize = 1 << 20;
/// The memory that the values of an MCP message may take: `rmcp` parses them more than once.
pub const MCP_MESSAGE_MEMORY: usize = 24 << 20;

/// The memory of an array or object with one element, which has room for four; an object has a table too.
const CONTAINER: usize = 512;
/// The memory of a further element, in a list that doubles as it grows,
const ELEMENT: usize = 256;
/// and of one that is a number, which owns no further memory.
const NUMBER: usize = 160;

/// Counts the most memory that the values of a JSON document take when it is parsed, besides its text. A parser reads no
/// further than the document is valid, and so far its strings end where they are taken to end here.
#[derive(Debug, Default)]
pub struct ValuesCounter {
    memory: usize,
    in_text: bool,
    escaped: bool,
    parted: bool,
}

impl ValuesCounter {
    /// Takes the next part of the document, and returns the memory of all until here.
    pub fn add(&mut self, part: &[u8]) -> usize {
        for &byte in part {
            if std::mem::take(&mut self.parted) {
                match byte {
                    b' ' | b'\t' | b'\n' | b'\r' => self.parted = true,
                    b'-' | b'0'..=b'9' => self.memory -= ELEMENT - NUMBER,
                    _ => {}
                }
            }
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_text => self.escaped = true,
                b'"' => self.in_text = !self.in_text,
                b'[' | b'{' if !self.in_text => self.memory += CONTAINER,
                b',' if !self.in_text => {
                    self.memory += ELEMENT;
                    self.parted = true;
                }
                _ => {}
            }
        }
        self.memory
    }
}

/// Returns what [`ValuesCounter`] counts of a whole document.
pub fn values_memory(json: &[u8]) -> usize {
    ValuesCounter::default().add(json)
}

/// Returns the memory that a value owns: its texts, and those of the values in it.
pub fn memory_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.capacity(),
        Value::Array(all) => {
            let inside: usize = all.iter().map(memory_of).sum();
            all.capacity() * size_of::<Value>() + inside
        }
        Value::Object(fields) => memory_of_fields(fields),
        _ => 0,
    }
}

/// Returns the same of an object.
pub fn memory_of_fields(fields: &Map<String, Value>) -> usize {
    let room = fields.len().next_power_of_two().max(4);
    let inside = fields
        .iter()
        .map(|(name, value)| name.capacity() + memory_of(value));
    room * size_of::<(usize, u64, String, Value)>() + inside.sum::<usize>()
}

/// Checks that so many copies of a document's text, and its values, fit into so much memory.
///
/// # Errors
/// If they take more.
pub fn check(json: &[u8], copies: usize, most: usize) -> Result<(), Error> {
    let texts = json.len().saturating_mul(copies);
    // No byte stands for more than a container: what is short is not counted.
    if json.len() <= most / (CONTAINER + copies)
        || texts.saturating_add(values_memory(json)) <= most
    {
        return Ok(());
    }
    let (length, most) = (json.len() >> 10, most >> 20);
    Err(Error::custom(format!(
        "its {length} KiB would take more than {most} MiB of memory"
    )))
}

/// Parses a document of another program.
///
/// # Errors
/// If it is not the JSON that is expected, or takes more than [`MOST_MEMORY`].
pub fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, Error> {
    check(json, COPIES, MOST_MEMORY)?;
    serde_json::from_slice(json)
}

/// Reads an answer of Tierbar's own API.
///
/// # Errors
/// [`code::Code::Internal`] if it has another form: the running Tierbar is another version.
pub fn read_answer<T: DeserializeOwned>(answer: Value) -> Result<T, code::Error> {
    serde_json::from_value(answer).map_err(|error| {
        let message = format!("the running Tierbar is another version: {error}");
        code::Error::new(code::Code::Internal, message)
    })
}

/// Reads a field of such an answer, which is null if the answer lacks it or is no object.
///
/// # Errors
/// As [`read_answer`].
pub fn read_field<T: DeserializeOwned>(mut answer: Value, name: &str) -> Result<T, code::Error> {
    read_answer(answer.get_mut(name).map(Value::take).unwrap_or_default())
}

/// Reads a field in a document whose other fields are not kept. One that is longer than [`LONGEST_FIELD`], takes too much memory, or is
/// of another form is as good as none: nothing is lost for it.
///
/// # Errors
/// If it is not JSON.
pub fn short<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    value: D,
) -> Result<Option<T>, D::Error> {
    let field = Option::<Box<RawValue>>::deserialize(value)?;
    let text = field.as_deref().map_or("", RawValue::get);
    let fits = text.len() <= LONGEST_FIELD && values_memory(text.as_bytes()) <= MOST_OF_FIELD;
    Ok(fits.then(|| serde_json::from_str(text).ok()).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_memory_of_values_is_counted_outside_strings() {
        for (json, memory) in [
            ("1", 0),
            ("[1, 2,\n-3]", CONTAINER + 2 * NUMBER),
            (r#"["a","1"]"#, CONTAINER + ELEMENT),
            (r#"{"a":[0],"b":"[,{\"["}"#, 2 * CONTAINER + ELEMENT),
        ] {
            assert_eq!(values_memory(json.as_bytes()), memory, "{json}");
            let mut counter = ValuesCounter::default();
            let parts = json.as_bytes().chunks(1);
            assert_eq!(parts.map(|part| counter.add(part)).last(), Some(memory));
        }
    }

    #[test]
    fn what_takes_too_much_is_not_parsed() {
        let list = |part: &str, parts: usize| format!("[{}0]", part.repeat(parts));
        for (json, fits) in [
            (list("[0],", 60_000), true),
            (list("[0],", 70_000), false),
            (list("0,", 280_000), true),
            (list("0,", 320_000), false),
            (format!("\"{}\"", "[".repeat(15 << 20)), true),
            (format!("\"{}\"", "[".repeat(17 << 20)), false),
        ] {
            let length = json.len();
            assert_eq!(read::<Value>(json.as_bytes()).is_ok(), fits, "{length}");
        }
    }

    #[test]
    fn a_value_is_counted_with_what_is_in_it() {
        let few = json!({"a": [1, 2], "b": "text"});
        let many: Value = (0..100).map(|_| few.clone()).collect();
        assert!(memory_of(&many) >= 100 * memory_of(&few));
        // No more than was expected of its text.
        for text in ["[0]", r#"{"a":0}"#, "[[0],[0],[0],[0],[0]]"] {
            let value: Value = serde_json::from_str(text).unwrap();
            let most = values_memory(text.as_bytes()) + text.len();
            assert!(memory_of(&value) <= most, "{text}");
        }
    }

    #[test]
    fn a_long_field_is_as_good_as_none() {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default, deserialize_with = "short")]
            error: Option<Value>,
        }
        let read = |json: &str| serde_json::from_str::<Answer>(json).unwrap().error;
        assert_eq!(read(r#"{"error":{"a":1}}"#), Some(json!({"a": 1})));
        for none in ["{}", "{\"error\":null}"] {
            assert_eq!(read(none), None);
        }
        let long = |length| format!("{{\"x\":1,\"error\":\"{}\"}}", "a".repeat(length));
        assert!(read(&long(LONGEST_FIELD - 2)).is_some());
        assert_eq!(read(&long(LONGEST_FIELD)), None);
        let lists = |count| format!("{{\"error\":[{}0]}}", "[0],".repeat(count));
        assert!(read(&lists(1000)).is_some());
        assert_eq!(read(&lists(2000)), None);
        let parsed = Answer::deserialize(json!({"error": "no"})).unwrap();
        assert_eq!(parsed.error, Some(json!("no")));
    }
}
