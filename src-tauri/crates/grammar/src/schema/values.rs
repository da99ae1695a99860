//! Values that a schema lists.

use super::{Fields, SchemaWalk, keyword_type};
use crate::pattern::gbnf_literal;
use serde_json::{Value, json};
use tierbar_core::Error;

/// How many values llama.cpp's grammar lists one by one: it holds each token against all that are still possible.
const MOST_LISTED: usize = 64;
/// Brackets within one another: llama.cpp's parser recurses for each.
const DEEPEST: usize = 32;

impl SchemaWalk<'_> {
    /// One of some values.
    pub(super) fn translate_values(&mut self, fields: &Fields, at: &str) -> Result<Value, Error> {
        let values = self.allowed_values(fields, at)?;
        Ok(self.one_of(values))
    }

    pub(super) fn one_of(&mut self, values: Vec<Value>) -> Value {
        if values.len() <= MOST_LISTED {
            return json!({"enum": values});
        }
        let mut texts: Vec<_> = values.iter().map(Value::to_string).collect();
        texts.sort_unstable();
        texts.dedup();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        self.placeholders.constant(grammar_of_texts(&texts, 0))
    }

    /// The values of `enum` or `const` that the other keywords allow, at least one.
    pub(super) fn allowed_values(&self, fields: &Fields, at: &str) -> Result<Vec<Value>, Error> {
        let mut values = match fields.get("enum") {
            Some(Value::Array(values)) if !values.is_empty() => values.clone(),
            Some(_) => return Err(self.wrong(at, "has an `enum` without a value")),
            None => Vec::new(),
        };
        if let Some(only) = fields.get("const") {
            if fields.contains_key("enum") {
                values.retain(|value| value == only);
            } else {
                values.push(only.clone());
            }
        }
        if fields.contains_key("type") {
            let types = self.types(fields, at)?;
            values.retain(|value| types.iter().any(|kind| has_type(value, kind)));
        }
        values.retain(|value| is_within(value, fields));
        for key in fields.keys() {
            let applies = |value: &Value| match key.as_str() {
                "pattern" => value.is_string(),
                "multipleOf" => value.is_number(),
                _ => match keyword_type(key) {
                    Some("object") => value.is_object(),
                    Some("array") => value.is_array(),
                    _ => false,
                },
            };
            if values.iter().any(applies) {
                self.refuse(at, key, "beside `enum` or `const` is not supported")?;
            }
        }
        if values.is_empty() {
            return Err(self.wrong(at, "contradicts itself: no value of `enum` or `const` fits"));
        }
        Ok(values)
    }
}

/// A grammar of texts, sorted and each another, in which those that begin alike share their beginning.
fn grammar_of_texts(texts: &[&str], depth: usize) -> String {
    let begin_alike = |a: &&str, b: &&str| depth < DEEPEST && a.chars().next() == b.chars().next();
    let groups = texts.chunk_by(begin_alike).map(|group| match group {
        [first, .., last] => {
            let same = first.chars().zip(last.chars()).take_while(|(a, b)| a == b);
            let shared = same.map(|(a, _)| a.len_utf8()).sum();
            let rests: Vec<_> = group.iter().map(|text| &text[shared..]).collect();
            let rest = grammar_of_texts(&rests, depth + 1);
            format!("{} ({rest})", gbnf_literal(&first[..shared]))
        }
        _ => group.iter().copied().map(gbnf_literal).collect(),
    });
    groups.collect::<Vec<_>>().join(" | ")
}

pub(super) fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|value| value.fract() == 0.0),
        "boolean" => value.is_boolean(),
        _ => value.is_null(),
    }
}

/// Whether a number or a text is within its bounds.
pub(super) fn is_within(value: &Value, fields: &Fields) -> bool {
    let bound = |key: &str| fields.get(key).and_then(Value::as_f64);
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            bound("minimum").is_none_or(|low| number >= low)
                && bound("maximum").is_none_or(|high| number <= high)
                && bound("exclusiveMinimum").is_none_or(|low| number > low)
                && bound("exclusiveMaximum").is_none_or(|high| number < high)
        }
        Value::String(text) => {
            let count = text.chars().count() as u64;
            let length = |key: &str| fields.get(key).and_then(Value::as_u64);
            length("minLength").is_none_or(|fewest| count >= fewest)
                && length("maxLength").is_none_or(|most| count <= most)
        }
        _ => true,
    }
}
