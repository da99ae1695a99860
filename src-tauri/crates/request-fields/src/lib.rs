//! What becomes of each field that a client may send: of the published schemas of OpenAI, Anthropic and Ollama, and of what vLLM,
//! SGLang and llama-server add to OpenAI's.
//!
//! The rule: a field that changes what the answer must be is followed or refused by name, and never ignored. So is a name that means
//! something in another API, and one that is a misspelled one. Any other field that is in none of these tables is ignored, as a
//! server ignores what a newer client knows. `docs/api.md` has the tables, and tests hold them against what reads the requests.

mod anthropic;
mod foreign;
mod ollama;
mod openai;
mod servers;
pub mod wrong_field;

pub use self::{anthropic::*, foreign::*, ollama::*, openai::*, servers::*};

use serde_json::{Map, Value};
use std::sync::LazyLock;
use tierbar_core::{Error, bad_request};

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
    /// For tests: a value, as JSON, that asks for something, if that of its name in `samples.json` does not here.
    sample: Option<&'static str>,
    pub effect: Effect,
    pub values: Values,
}

/// Which values a field takes, where a wrong one would not be noticed.
#[derive(Debug, Clone, Copy)]
pub enum Values {
    /// Checked where it is parsed.
    Any,
    Numbers {
        least: f64,
        /// Infinite for no bound.
        most: f64,
    },
    Words(&'static [&'static str]),
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

const fn field(name: &'static str, effect: Effect) -> Field {
    Field {
        name,
        sample: None,
        effect,
        values: Values::Any,
    }
}

const fn honored(name: &'static str, how: &'static str) -> Field {
    field(name, Effect::Honored(how))
}

const fn harmless(name: &'static str, why: &'static str) -> Field {
    field(name, Effect::Harmless(why))
}

/// Refused, unless the value is one of [`NOTHING`].
const fn refused(name: &'static str, instead: &'static str) -> Field {
    refused_unless(name, NOTHING, instead)
}

const fn refused_unless(
    name: &'static str,
    unless: &'static [&'static str],
    instead: &'static str,
) -> Field {
    field(name, Effect::Refused { unless, instead })
}

/// Honored, with a number from `least` to `most`.
const fn number(name: &'static str, least: f64, most: f64, how: &'static str) -> Field {
    let values = Values::Numbers { least, most };
    Field {
        values,
        ..honored(name, how)
    }
}

/// One of these words.
const fn word(field: Field, words: &'static [&'static str]) -> Field {
    let values = Values::Words(words);
    Field { values, ..field }
}

/// With another sample than fields of its name have.
const fn asking(sample: &'static str, field: Field) -> Field {
    let sample = Some(sample);
    Field { sample, ..field }
}

/// How much a model thinks, in all of the APIs.
const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];

// Of all APIs.
const MODEL: Field = honored("model", "a tier, a chain, a model or `auto`");

// Of all APIs that sample.
const TEMPERATURE: Field = number("temperature", 0.0, f64::INFINITY, "");
const TOP_P: Field = number("top_p", 0.0, 1.0, "");
const MIN_P: Field = number("min_p", 0.0, 1.0, "");
const TYPICAL_P: Field = number("typical_p", 0.0, 1.0, "");
const FREQUENCY_PENALTY: Field = number("frequency_penalty", -2.0, 2.0, "");
const PRESENCE_PENALTY: Field = number("presence_penalty", -2.0, 2.0, "");
const WHOLE_CONTEXT: &str = "-1: the whole context";

impl Table {
    /// Returns the field of this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the names of the fields that an answer follows.
    pub fn honored(&self) -> impl Iterator<Item = &'static str> + use<> {
        let honored = self.fields.iter().filter(|field| field.is_honored());
        honored.map(|field| field.name)
    }

    /// Returns the names of all others.
    pub fn not_honored(&self) -> impl Iterator<Item = &'static str> + use<> {
        let others = self.fields.iter().filter(|field| !field.is_honored());
        others.map(|field| field.name)
    }
}

impl Field {
    /// Returns a value for tests that asks for something: not the default. `null` if there is none, which a test excludes.
    pub fn sample(&self) -> Value {
        static SAMPLES: LazyLock<Map<String, Value>> = LazyLock::new(|| {
            serde_json::from_str(include_str!("../samples.json")).unwrap_or_default()
        });
        match self.sample {
            Some(sample) => value(sample),
            None => SAMPLES.get(self.name).cloned().unwrap_or_default(),
        }
    }

    /// Returns whether an answer follows it.
    pub fn is_honored(&self) -> bool {
        matches!(self.effect, Effect::Honored(_))
    }

    /// Refuses the field with this value, if it is refused. `shown`: the field as the client knows it.
    fn check(&self, shown: &str, value: &Value) -> Result<(), Error> {
        match self.effect {
            Effect::Refused { unless, .. } if is_among(value, unless) => Ok(()),
            Effect::Refused { instead, .. } => {
                Err(bad_request(format!("`{shown}` is not supported")).hint(instead))
            }
            Effect::Honored(_) | Effect::Harmless(_) => match self.values.allowed(value) {
                None => Ok(()),
                Some(allowed) => {
                    let sent = value.to_string();
                    Err(bad_request(format!(
                        "`{shown}` is {sent:.40}; send {allowed}"
                    )))
                }
            },
        }
    }
}

impl Values {
    /// Returns the allowed values in words; `None` if this is one of them, or of a type that parsing refuses.
    fn allowed(self, value: &Value) -> Option<String> {
        let fits = match (self, value) {
            (Self::Numbers { least, most }, Value::Number(number)) => {
                let number = number.as_f64().unwrap_or(f64::NAN);
                (least..=most).contains(&number)
            }
            (Self::Words(words), Value::String(word)) => {
                word.is_empty() || words.contains(&word.as_str())
            }
            _ => true,
        };
        (!fits).then(|| self.in_words()).flatten()
    }

    /// Returns the values as the documentation has them; `None` for any.
    pub fn in_words(self) -> Option<String> {
        match self {
            Self::Any => None,
            Self::Numbers { least, most } if most.is_infinite() => Some(format!("{least} or more")),
            Self::Numbers { least, most } => Some(format!("{least} to {most}")),
            Self::Words(words) => Some(format!("one of {}", words.join(", "))),
        }
    }
}

/// Returns whether a field with this value asks for nothing, whatever the field.
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
    check_in("", tables, request)
}

/// As [`check`], of an object within a request. `place`: what its fields' names begin with, such as `options.`.
///
/// # Errors
/// As [`check`].
pub fn check_in(place: &str, tables: &[&Table], object: &Map<String, Value>) -> Result<(), Error> {
    for (name, value) in object {
        match tables.iter().find_map(|table| table.field(name)) {
            Some(field) => field.check(&format!("{place}{name}"), value)?,
            None if is_nothing(value) => {}
            None => {
                let meant = misspelled(tables, name).filter(|meant| !object.contains_key(*meant));
                if let Some(meant) = meant {
                    let message = format!("`{place}{name}` is not a field of this request");
                    return Err(
                        bad_request(message).hint(format!("did you mean `{place}{meant}`?"))
                    );
                }
            }
        }
    }
    Ok(())
}

/// Returns the field that is honored and that a name is nearly that of: a slip or two in a long name. What other programs add to their
/// requests is farther from any.
fn misspelled(tables: &[&Table], name: &str) -> Option<&'static str> {
    const SHORTEST: usize = 6;
    const LONGEST: usize = 40;
    const SIMILAR: f64 = 0.85;
    if !(SHORTEST..=LONGEST).contains(&name.len()) {
        return None;
    }
    let fields = tables.iter().flat_map(|table| table.fields);
    let honored = fields.filter(|field| field.is_honored());
    let likely = honored.map(|field| {
        let alike = strsim::normalized_damerau_levenshtein(name, field.name);
        (alike, field.name)
    });
    let (alike, meant) = likely.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (alike >= SIMILAR).then_some(meant)
}

/// All tables, in the order of the documentation.
pub const TABLES: &[&Table] = &[
    &CHAT,
    &COMPLETIONS,
    &GENERATION_ADDITIONS,
    &CHAT_ADDITIONS,
    &REASONING,
    &COMPLETION_ADDITIONS,
    &FOREIGN_TO_CHATS,
    &FOREIGN_TO_COMPLETIONS,
    &EMBEDDINGS,
    &RERANK,
    &RESPONSES,
    &FOREIGN_TO_RESPONSES,
    &INPUT_TOKENS,
    &COMPACT,
    &VECTOR_STORES,
    &VECTOR_STORE,
    &VECTOR_STORE_SEARCH,
    &FILE_SEARCH,
    &RANKING_OPTIONS,
    &MESSAGES,
    &FOREIGN_TO_MESSAGES,
    &COUNT_TOKENS,
    &OLLAMA_CHAT,
    &OLLAMA_GENERATE,
    &OLLAMA_ADDITIONS,
    &FOREIGN_TO_OLLAMA,
    &OLLAMA_OPTIONS,
    &FOREIGN_TO_OPTIONS,
    &OLLAMA_EMBED,
    &OLLAMA_EMBEDDINGS,
];

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tierbar_core::Code;

    #[test]
    fn each_field_is_listed_once_and_its_values_are_json() {
        for table in TABLES {
            for (at, field) in table.fields.iter().enumerate() {
                let name = field.name;
                assert_ne!(field.sample(), Value::Null, "{name}");
                let again = table.fields[at + 1..]
                    .iter()
                    .any(|other| other.name == name);
                assert!(!again, "{}: {name}", table.title);
                match field.effect {
                    Effect::Honored(_) => {
                        assert!(field.check(name, &field.sample()).is_ok(), "{name}");
                    }
                    Effect::Harmless(why) => {
                        assert!(!why.is_empty(), "{name}");
                        assert!(field.check(name, &field.sample()).is_ok(), "{name}");
                    }
                    Effect::Refused { unless, instead } => {
                        assert!(!instead.is_empty(), "{name}");
                        for allowed in unless {
                            let allowed: Value = serde_json::from_str(allowed).unwrap();
                            assert!(field.check(name, &allowed).is_ok(), "{name}");
                        }
                        assert!(field.check(name, &Value::Null).is_ok(), "{name}");
                        assert!(field.check(name, &field.sample()).is_err(), "{name}");
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

    fn refusal(tables: &[&Table], fields: Value) -> Option<String> {
        let error = check(tables, fields.as_object().unwrap()).err()?;
        assert_eq!(error.code, Code::BadRequest);
        let hint = error.hint.map(|hint| format!("; {hint}"));
        Some(error.message + &hint.unwrap_or_default())
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_what_to_send() {
        let chat: &[&Table] = &[&CHAT, &GENERATION_ADDITIONS, &CHAT_ADDITIONS];
        for (fields, said) in [
            (
                json!({"temperature": -1}),
                "`temperature` is -1; send 0 or more",
            ),
            (json!({"top_p": 5}), "`top_p` is 5; send 0 to 1"),
            (
                json!({"presence_penalty": 99}),
                "`presence_penalty` is 99; send -2 to 2",
            ),
            (json!({"typical_p": -3}), "`typical_p` is -3; send 0 to 1"),
            (json!({"min_p": 7}), "`min_p` is 7; send 0 to 1"),
            (
                json!({"top_logprobs": 101}),
                "`top_logprobs` is 101; send 0 to 100",
            ),
            (
                json!({"reasoning_effort": "bogus"}),
                "`reasoning_effort` is \"bogus\"; send one of none, minimal, low, medium, high, xhigh, max",
            ),
            (
                json!({"verbosity": "bogus"}),
                "`verbosity` is \"bogus\"; send one of low, medium, high",
            ),
        ] {
            assert_eq!(refusal(chat, fields).as_deref(), Some(said));
        }
        for fine in [
            json!({"temperature": 0, "top_p": 1.0, "min_p": 0.0, "presence_penalty": -2}),
            json!({"temperature": null, "reasoning_effort": "", "verbosity": null, "think": true}),
            json!({"temperature": 5, "reasoning_effort": "xhigh"}),
        ] {
            assert_eq!(refusal(chat, fine.clone()), None, "{fine}");
        }
        let truncation = refusal(&[&RESPONSES], json!({"truncation": "bogus"}));
        assert!(truncation.unwrap().contains("one of auto, disabled"));
    }

    #[test]
    fn a_name_of_another_api_and_a_misspelled_one_are_refused() {
        let chat: &[&Table] = &[
            &CHAT,
            &GENERATION_ADDITIONS,
            &CHAT_ADDITIONS,
            &FOREIGN_TO_CHATS,
        ];
        for (fields, said) in [
            (
                json!({"format": "json"}),
                "`format` is not supported; send `response_format`",
            ),
            (
                json!({"max_output_tokens": 9}),
                "`max_output_tokens` is not supported; send `max_tokens`",
            ),
            (
                json!({"respose_format": {"type": "json_object"}}),
                "`respose_format` is not a field of this request; did you mean `response_format`?",
            ),
            (
                json!({"tool_choise": "required"}),
                "`tool_choise` is not a field of this request; did you mean `tool_choice`?",
            ),
        ] {
            assert_eq!(refusal(chat, fields).as_deref(), Some(said));
        }
        // What clients are known to add, and what asks for nothing.
        for fine in [
            json!({"session_id": "a", "chat_id": "b", "title_generation": true, "tool_ids": [], "features": {"x": 1}}),
            json!({"respose_format": null, "model_name": "a", "user_id": "b", "top_a": 1, "stopped": true}),
            json!({"thinking": {"type": "disabled"}, "format": "", "extra_body": {"a": 1}}),
            json!({"tool_choise": "none", "tool_choice": "none"}),
        ] {
            assert_eq!(refusal(chat, fine.clone()), None, "{fine}");
        }
        let options: &[&Table] = &[&OLLAMA_OPTIONS, &FOREIGN_TO_OPTIONS];
        let wrong = json!({"grammar": "root ::= \"a\""});
        let error = check_in("options.", options, wrong.as_object().unwrap()).unwrap_err();
        assert_eq!(error.message, "`options.grammar` is not supported");
        let long = Map::from_iter([("x".repeat(1 << 20), json!(1))]);
        assert!(check(chat, &long).is_ok());
    }
}
