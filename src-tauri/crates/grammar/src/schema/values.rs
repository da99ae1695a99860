//! Values that a schema lists.

use super::{Fields, SchemaWalk, keyword_type};
use crate::texts::{MOST_LISTED, texts_grammar};
use serde_json::{Value, json};
use tierbar_core::Error;

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
        let texts = values.iter().map(Value::to_string).collect();
        self.placeholders.constant(texts_grammar(texts))
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
