//! The form of the answer: a grammar, or a JSON schema.

use super::Options;
use crate::{
    llama::{schema_grammar, with_forms},
    request::{
        bad,
        guided::Rule,
        held::{Forms, hold},
        within,
    },
};
use serde_json::{Value, json};
use std::borrow::Cow;
use tierbar_core::{Code, Error};

const LONGEST_GRAMMAR: usize = 64 << 10;

impl Options {
    /// How a completion is constrained; empty for not at all.
    pub(crate) fn constraint(&self) -> Result<String, Error> {
        let grammar = match self.rules()? {
            (None, None) => return Ok(String::new()),
            (Some(grammar), _) => grammar.into_owned(),
            (None, Some(schema)) => {
                let grammar = grammar_of(&schema)?;
                within("the JSON schema's grammar", &grammar, LONGEST_GRAMMAR)?;
                grammar
            }
        };
        Ok(json!({"grammar": grammar}).to_string())
    }

    /// Names the schema that is the reason for an error of the grammar.
    pub(crate) fn explain(&self, error: Error) -> Error {
        let Ok((None, Some(schema))) = self.rules() else {
            return error;
        };
        if error.code != Code::BadRequest {
            return error;
        }
        match grammar_of(&schema) {
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

    /// The field that a grammar comes from, for a message.
    pub(in crate::request) fn grammar_name(&self) -> String {
        match &self.grammar {
            Some(own) if !own.is_empty() => "`grammar`".to_owned(),
            _ => self.guided.names(),
        }
    }

    /// The client's own GBNF, or one for what it asks for in vLLM's fields.
    pub(in crate::request) fn grammar(&self) -> Result<Option<Cow<'_, str>>, Error> {
        let own = self.grammar.as_deref();
        if let Some(own) = own.filter(|grammar| !grammar.is_empty()) {
            return Ok(Some(Cow::Borrowed(own)));
        }
        Ok(match self.guided.rule()? {
            Some(Rule::Grammar(grammar)) => Some(Cow::Owned(grammar)),
            Some(Rule::Schema(_)) | None => None,
        })
    }

    /// The grammar or the JSON schema that the answer must follow.
    pub(in crate::request) fn rules(&self) -> Result<(Option<Cow<'_, str>>, Option<Value>), Error> {
        let own_grammar = self.grammar.as_ref().is_some_and(|own| !own.is_empty());
        let (own_schema, guided) = (self.schema()?, self.guided.rule()?);
        if guided.is_some() && (own_grammar || own_schema.is_some()) {
            return Err(bad(format!(
                "{} cannot be combined with another form for the answer",
                self.guided.names()
            )));
        }
        let schema = match guided {
            Some(Rule::Schema(schema)) => Some(schema),
            Some(Rule::Grammar(_)) | None => own_schema,
        };
        if let Some(schema) = &schema {
            within("the JSON schema", &schema.to_string(), LONGEST_GRAMMAR)?;
        }
        let grammar = self.grammar()?;
        if let Some(grammar) = &grammar {
            within("the grammar", grammar, LONGEST_GRAMMAR)?;
        }
        if grammar.is_some() && schema.is_some() {
            return Err(bad("`grammar` cannot be combined with a JSON schema"));
        }
        Ok((grammar, schema))
    }

    /// The JSON schema that the answer must follow, from any of the places where clients put it.
    pub(in crate::request) fn schema(&self) -> Result<Option<Value>, Error> {
        let any_object = || json!({"type": "object"});
        let Some(format) = &self.response_format else {
            return Ok(self.json_schema.clone());
        };
        if format.is_null() {
            return Ok(self.json_schema.clone());
        }
        let schema = match format.get("type").and_then(Value::as_str) {
            // Reject rather than silently return free text.
            None => {
                return Err(bad("`response_format` is not an object with a `type`")
                    .hint("send {\"type\": \"json_object\"}, or {\"type\": \"json_schema\", \"json_schema\": {\"name\": …, \"schema\": …}}"));
            }
            Some("text") => return Ok(self.json_schema.clone()),
            Some("json_object") => format.get("schema").or(self.json_schema.as_ref()),
            Some("json_schema") => format
                .pointer("/json_schema/schema")
                .or_else(|| format.get("schema")),
            Some(other) => {
                return Err(bad(format!(
                    "`response_format.type` is \"{other}\": use text, json_object or json_schema"
                )));
            }
        };
        Ok(Some(
            schema
                .cloned()
                .filter(|schema| schema != &json!({}) && !schema.is_null())
                .unwrap_or_else(any_object),
        ))
    }
}

/// The name of the schema of an answer, in messages.
pub(in crate::request) const SCHEMA: &str = "the JSON schema";

pub(in crate::request) fn grammar_of(schema: &Value) -> Result<String, Error> {
    let mut forms = Forms::beside(&schema.to_string());
    let held = hold(schema, SCHEMA, true, &mut forms)?;
    let grammar = schema_grammar(&held.to_string())?;
    Ok(with_forms(grammar, &forms.grammars))
}
