//! The form of the answer as a grammar that llama.cpp writes.

use super::Options;
use crate::llama::schema_grammar;
use serde_json::{Value, json};
use tierbar_core::{Code, Error};
use tierbar_grammar::{
    AnswerRule, LONGEST_GRAMMAR, Placeholders, check_extent, replace_placeholders, translate_schema,
};

impl Options {
    /// How a completion is constrained; empty for not at all.
    pub(crate) fn constraint(&self) -> Result<String, Error> {
        let grammar = match self.form.rule()? {
            None => return Ok(String::new()),
            Some(AnswerRule::Grammar(grammar)) => grammar,
            Some(AnswerRule::Schema(schema)) => {
                let grammar = grammar_of_schema(&schema)?;
                check_extent("the JSON schema's grammar", &grammar, LONGEST_GRAMMAR)?;
                grammar
            }
        };
        Ok(json!({"grammar": grammar}).to_string())
    }

    /// Names the schema that is the reason for an error of the grammar.
    pub(crate) fn explain(&self, error: Error) -> Error {
        let Ok(Some(AnswerRule::Schema(schema))) = self.form.rule() else {
            return error;
        };
        if error.code != Code::BadRequest {
            return error;
        }
        match grammar_of_schema(&schema) {
            Err(refused) => refused,
            Ok(_)
                if error
                    .message
                    .starts_with("the answer cannot be constrained") =>
            {
                error.hint("send a simpler schema")
            }
            Ok(_) => error,
        }
    }
}

/// The name of the schema of an answer, in messages.
pub(in crate::request) const SCHEMA: &str = "the JSON schema";

fn grammar_of_schema(schema: &Value) -> Result<String, Error> {
    let mut placeholders = Placeholders::absent_from(&schema.to_string());
    let translated = translate_schema(schema, SCHEMA, true, &mut placeholders)?;
    let grammar = schema_grammar(&translated.to_string())?;
    Ok(replace_placeholders(grammar, &placeholders.into_grammars()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Map;

    #[test]
    fn constants_of_a_schema_stay_beside_those_of_ours() {
        let share = json!({"type": "number", "minimum": 0, "maximum": 1});
        let schema = json!({"type": "object", "properties": {"a": share, "c": {"const": "tierbar-form-0-0"}}});
        let grammar = grammar_of_schema(&schema).unwrap();
        assert!(grammar.contains("tierbar-form-0-0"), "{grammar}");
        assert!(!grammar.contains("tierbar-form-1-0"), "{grammar}");
    }

    #[test]
    fn each_form_becomes_a_grammar() {
        let mut properties = Map::new();
        for format in [
            "date",
            "time",
            "date-time",
            "duration",
            "email",
            "hostname",
            "ipv4",
            "ipv6",
            "uri",
            "uuid",
            "uuid4",
            "phone",
        ] {
            properties.insert(
                format.to_owned(),
                json!({"type": "string", "format": format}),
            );
        }
        for (name, property) in [
            ("pattern", json!({"type": "string", "pattern": "[0-9]{3}"})),
            (
                "name",
                json!({"type": "string", "pattern": "^[a-z]+$", "maxLength": 5}),
            ),
            (
                "share",
                json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1e300}),
            ),
            ("cents", json!({"type": "number", "multipleOf": 0.01})),
            ("count", json!({"type": "integer", "maximum": -5})),
            (
                "safe",
                json!({"type": "integer", "minimum": -9_007_199_254_740_991_i64, "maximum": 9_007_199_254_740_991_i64}),
            ),
            (
                "none",
                json!({"type": "array", "items": {"type": "string"}, "maxItems": 0}),
            ),
            (
                "long",
                json!({"type": "string", "minLength": 3, "maxLength": 5000}),
            ),
            ("pair", json!({"prefixItems": [true, {"type": "integer"}]})),
            (
                "flags",
                json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
            ),
        ] {
            properties.insert(name.to_owned(), property);
        }
        for (name, property) in properties {
            let schema =
                json!({"type": "object", "properties": {&name: property}, "required": [&name]});
            let grammar = grammar_of_schema(&schema);
            let grammar = grammar.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!grammar.contains("tierbar-form-"), "{name}: {grammar}");
        }
    }
}
