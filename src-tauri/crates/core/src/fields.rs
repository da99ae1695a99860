//! What becomes of each field that a client may send: of the published schemas of OpenAI, Anthropic and Ollama, and of what vLLM and
//! llama-server add to OpenAI's.
//!
//! The rule: a field that changes what the answer must be is followed or refused by name, and never ignored. A field that is in none
//! of these tables is ignored, as a server ignores what a newer client knows. `docs/api.md` has the tables, and tests hold them
//! against what reads the requests.

mod anthropic;
mod ollama;
mod openai;
mod servers;

pub use anthropic::MESSAGES;
pub use ollama::{OLLAMA_CHAT, OLLAMA_EMBED, OLLAMA_EMBEDDINGS, OLLAMA_GENERATE, OLLAMA_OPTIONS};
pub use openai::{CHAT, COMPLETIONS, EMBEDDINGS, RESPONSES};
pub use servers::{CHAT_ADDITIONS, COMPLETION_ADDITIONS, GENERATION_ADDITIONS};

use crate::{Code, Error};
use serde_json::{Map, Value};

/// The fields of a request.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// The path, and what publishes the fields, for the documentation.
    pub title: &'static str,
    /// The version that the fields were taken from.
    pub source: &'static str,
    pub fields: &'static [Field],
}

#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    /// A value, as JSON, that asks for something: not the default.
    pub sample: &'static str,
    pub effect: Effect,
}

/// What a field does to the answer.
#[derive(Debug, Clone, Copy)]
pub enum Effect {
    /// The answer follows it; how, if that is not plain.
    Honored(&'static str),
    /// It says nothing of what the answer must be; why.
    Harmless(&'static str),
    Refused {
        /// The values, as JSON, that ask for nothing and are accepted.
        unless: &'static [&'static str],
        /// What to do.
        instead: &'static str,
    },
}

/// The values that ask for nothing.
const NOTHING: &[&str] = &["null", "false", "0", "\"\"", "[]", "{}"];

const fn honored(name: &'static str, sample: &'static str, how: &'static str) -> Field {
    let effect = Effect::Honored(how);
    Field {
        name,
        sample,
        effect,
    }
}

const fn harmless(name: &'static str, sample: &'static str, why: &'static str) -> Field {
    let effect = Effect::Harmless(why);
    Field {
        name,
        sample,
        effect,
    }
}

const fn refused(
    name: &'static str,
    sample: &'static str,
    unless: &'static [&'static str],
    instead: &'static str,
) -> Field {
    let effect = Effect::Refused { unless, instead };
    Field {
        name,
        sample,
        effect,
    }
}

impl Table {
    /// Returns the field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// # Panics
    /// If the table has no JSON here, which a test excludes.
    #[must_use]
    pub fn sample(&self) -> Value {
        value(self.sample)
    }

    /// # Errors
    /// `BadRequest` naming the field, if it is refused with this value.
    fn check(&self, value: &Value) -> Result<(), Error> {
        let Effect::Refused { unless, instead } = self.effect else {
            return Ok(());
        };
        if is_among(value, unless) {
            return Ok(());
        }
        let name = self.name;
        Err(Error::new(Code::BadRequest, format!("`{name}` is not supported")).hint(instead))
    }
}

/// Returns whether a field with this value asks for nothing, whatever the field.
#[must_use]
pub fn is_nothing(value: &Value) -> bool {
    is_among(value, NOTHING)
}

fn is_among(value: &Value, values: &[&str]) -> bool {
    values.iter().any(|one| same(value, &self::value(one)))
}

/// Numbers are the same whether or not they are written as fractions.
fn same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}

fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

/// Checks a request's fields.
///
/// # Errors
/// `BadRequest` naming the first field that is refused.
pub fn check(tables: &[&Table], request: &Map<String, Value>) -> Result<(), Error> {
    for (name, value) in request {
        let found = tables.iter().find_map(|table| table.field(name));
        if let Some(field) = found {
            field.check(value)?;
        }
    }
    Ok(())
}

/// All tables, in the order of the documentation.
pub const TABLES: &[&Table] = &[
    &CHAT,
    &COMPLETIONS,
    &GENERATION_ADDITIONS,
    &CHAT_ADDITIONS,
    &COMPLETION_ADDITIONS,
    &EMBEDDINGS,
    &RESPONSES,
    &MESSAGES,
    &OLLAMA_CHAT,
    &OLLAMA_GENERATE,
    &OLLAMA_OPTIONS,
    &OLLAMA_EMBED,
    &OLLAMA_EMBEDDINGS,
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_field_is_listed_once_and_its_values_are_json() {
        for table in TABLES {
            for (at, field) in table.fields.iter().enumerate() {
                let name = field.name;
                assert!(
                    serde_json::from_str::<Value>(field.sample).is_ok(),
                    "{name}"
                );
                let again = table.fields[at + 1..]
                    .iter()
                    .any(|other| other.name == name);
                assert!(!again, "{}: {name}", table.title);
                match field.effect {
                    Effect::Honored(_) => {}
                    Effect::Harmless(why) => assert!(!why.is_empty(), "{name}"),
                    Effect::Refused { unless, instead } => {
                        assert!(!instead.is_empty(), "{name}");
                        for allowed in unless {
                            let allowed: Value = serde_json::from_str(allowed).unwrap();
                            assert!(field.check(&allowed).is_ok(), "{name}");
                        }
                        assert!(field.check(&Value::Null).is_ok(), "{name}");
                        assert!(field.check(&field.sample()).is_err(), "{name}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_refused_field_is_named_with_what_to_do() {
        let request = |fields: Value| check(&[&CHAT], fields.as_object().unwrap());
        let error = request(json!({"modalities": ["text", "audio"]})).unwrap_err();
        assert_eq!(error.code, Code::BadRequest);
        assert!(error.message.contains("`modalities`"), "{error}");
        assert!(error.hint.is_some());
        assert!(request(json!({"modalities": ["text"], "unknown": true})).is_ok());
        let none = json!({"n_indent": 0.0, "bad_words": []});
        assert!(check(&[&CHAT, &GENERATION_ADDITIONS], none.as_object().unwrap()).is_ok());
    }
}
