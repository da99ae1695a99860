//! What is kept of a JSON line: its plain fields, and a few of an object among them. So a line takes little more memory than its text,
//! whatever is nested in it.

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};
use std::fmt;

/// The longest line that is read.
pub(super) const LONGEST: usize = 256 << 10;
/// The fields of an object within a line that say what the line is about.
const INNER: [&str; 5] = ["message", "level", "name", "stringValue", "epochSecond"];

/// Returns the fields of a line; `None` if it is no JSON object, or longer than 256 KiB. A wrong byte spoils its own field alone.
pub(super) fn fields(line: &[u8]) -> Option<Map<String, Value>> {
    if line.len() > LONGEST {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    let Line(fields) = serde_json::from_str(&text).ok()?;
    Some(fields)
}

/// Returns the same of a line that was parsed.
pub(super) fn fields_of(value: &Value) -> Option<Map<String, Value>> {
    let Line(fields) = Line::deserialize(value).ok()?;
    Some(fields)
}

struct Line(Map<String, Value>);

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(line: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Line;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Line, A::Error> {
                let mut kept = Map::new();
                while let Some((name, Field(value))) = fields.next_entry::<String, Field>()? {
                    kept.insert(name, value);
                }
                Ok(Line(kept))
            }
        }
        line.deserialize_map(Fields)
    }
}

/// A plain value; an object with few of its fields; null for an array, unless it is of bytes: journald writes a text so that is not UTF-8.
struct Field(Value);

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(field: D) -> Result<Self, D::Error> {
        struct Plain;
        impl<'de> Visitor<'de> for Plain {
            type Value = Field;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Field, E> {
                Ok(Field(value.into()))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Field, E> {
                Ok(Field(value.into()))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Field, E> {
                Ok(Field(value.into()))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Field, E> {
                Ok(Field(value.into()))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Field, E> {
                Ok(Field(value.into()))
            }

            fn visit_unit<E: Error>(self) -> Result<Field, E> {
                Ok(Field(Value::Null))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Field, A::Error> {
                let (mut bytes, mut is_text) = (Vec::new(), true);
                while let Some(Field(value)) = values.next_element()? {
                    match value.as_u64().map(u8::try_from) {
                        Some(Ok(byte)) if is_text => bytes.push(byte),
                        _ => (bytes, is_text) = (Vec::new(), false),
                    }
                }
                let text = (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into());
                Ok(Field(text.unwrap_or(Value::Null)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Field, A::Error> {
                let mut kept = Map::new();
                while let Some(name) = fields.next_key::<String>()? {
                    if INNER.contains(&name.as_str()) {
                        let Field(value) = fields.next_value()?;
                        kept.insert(name, value);
                    } else {
                        fields.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(Field(Value::Object(kept)))
            }
        }
        field.deserialize_any(Plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_keeps_its_plain_fields_and_a_nested_message() {
        let line = r#"{"a": 1, "b": -1.5, "c": "x", "d": true, "e": null, "f": [1, [2]],
            "g": {"message": "m", "other": [3]}, "h": {"message": ["n"]}, "i": [195, 188, 255], "j": [104, 256]}"#;
        let kept = json!({"a": 1, "b": -1.5, "c": "x", "d": true, "e": null, "f": null,
            "g": {"message": "m"}, "h": {"message": null}, "i": "ü\u{fffd}", "j": null});
        let read = Value::Object(fields(line.as_bytes()).unwrap());
        assert_eq!(read, kept);
        let parsed: Value = serde_json::from_str(line).unwrap();
        assert_eq!(fields_of(&parsed).map(Value::Object), Some(kept));
        let lossy = fields(b"{\"msg\": \"a\xffb\"}").unwrap();
        assert_eq!(lossy["msg"], "a\u{fffd}b");
    }

    #[test]
    fn what_is_no_object_and_what_is_too_long_is_no_line() {
        for line in ["[[0],[0]]", "1", "\"", "{", "{} {}", ""] {
            assert!(fields(line.as_bytes()).is_none(), "{line}");
        }
        let line = |length: usize| format!("{{\"m\":\"{}\"}}", "x".repeat(length - 8));
        assert!(fields(line(LONGEST).as_bytes()).is_some());
        assert!(fields(line(LONGEST + 1).as_bytes()).is_none());
    }
}
