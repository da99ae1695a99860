//! vLLM's fields for the form of an answer, as a grammar or a JSON schema.

use super::{bad, regex};
use serde::Deserialize;
use serde_json::{Value, json};
use tierbar_core::Error;

/// The older fields, and `structured_outputs`, which has the newer ones.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Guided {
    guided_json: Option<Value>,
    guided_regex: Option<String>,
    guided_choice: Option<Vec<String>>,
    guided_grammar: Option<String>,
    structured_outputs: Option<Structured>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Structured {
    json: Option<Value>,
    regex: Option<String>,
    choice: Option<Vec<String>>,
    grammar: Option<String>,
    json_object: Option<bool>,
    structural_tag: Option<Value>,
    whitespace_pattern: Option<String>,
    disable_additional_properties: Option<bool>,
}

/// What an answer must follow.
#[derive(Debug, PartialEq)]
pub(super) enum Rule {
    /// In GBNF.
    Grammar(String),
    Schema(Value),
}

impl Guided {
    /// # Errors
    /// `BadRequest` naming the field, for a form that cannot be followed, and for more than one.
    pub(super) fn rule(&self) -> Result<Option<Rule>, Error> {
        if let Some(newer) = &self.structured_outputs {
            newer.check()?;
        }
        let forms = self.forms();
        match &*forms {
            [] => Ok(None),
            [(name, form)] => form.rule(name).map(Some),
            _ => Err(bad(format!(
                "{} cannot be combined: an answer has one form",
                self.names()
            ))),
        }
    }

    /// The fields that are given, for a message.
    pub(super) fn names(&self) -> String {
        let names = self
            .forms()
            .into_iter()
            .map(|(name, _)| format!("`{name}`"));
        names.collect::<Vec<_>>().join(" and ")
    }

    fn forms(&self) -> Vec<(&'static str, Form<'_>)> {
        let newer = self.structured_outputs.as_ref();
        let any_object = newer.and_then(|newer| newer.json_object).filter(|&any| any);
        let forms = [
            ("guided_json", self.guided_json.as_ref().map(Form::Json)),
            (
                "guided_regex",
                self.guided_regex.as_deref().map(Form::Regex),
            ),
            (
                "guided_choice",
                self.guided_choice.as_deref().map(Form::Choice),
            ),
            (
                "guided_grammar",
                self.guided_grammar.as_deref().map(Form::Grammar),
            ),
            (
                "structured_outputs.json",
                newer.and_then(|newer| newer.json.as_ref()).map(Form::Json),
            ),
            (
                "structured_outputs.regex",
                newer
                    .and_then(|newer| newer.regex.as_deref())
                    .map(Form::Regex),
            ),
            (
                "structured_outputs.choice",
                newer
                    .and_then(|newer| newer.choice.as_deref())
                    .map(Form::Choice),
            ),
            (
                "structured_outputs.grammar",
                newer
                    .and_then(|newer| newer.grammar.as_deref())
                    .map(Form::Grammar),
            ),
            (
                "structured_outputs.json_object",
                any_object.map(|_| Form::AnyObject),
            ),
        ];
        let given = forms
            .into_iter()
            .filter_map(|(name, form)| Some((name, form?)));
        given.collect()
    }
}

impl Structured {
    fn check(&self) -> Result<(), Error> {
        let refused = [
            ("structural_tag", self.structural_tag.is_some()),
            ("whitespace_pattern", self.whitespace_pattern.is_some()),
            (
                "disable_additional_properties",
                self.disable_additional_properties == Some(true),
            ),
        ];
        match refused.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(bad(format!("`structured_outputs.{name}` is not supported"))
                .hint("use `json`, `regex`, `choice` or `grammar`")),
            None => Ok(()),
        }
    }
}

enum Form<'a> {
    Json(&'a Value),
    Regex(&'a str),
    Choice(&'a [String]),
    Grammar(&'a str),
    AnyObject,
}

impl Form<'_> {
    fn rule(&self, name: &str) -> Result<Rule, Error> {
        Ok(match self {
            // A schema, or its text.
            Self::Json(Value::String(text)) => {
                let schema = serde_json::from_str(text);
                Rule::Schema(schema.map_err(|error| bad(format!("`{name}` is not JSON: {error}")))?)
            }
            Self::Json(schema @ (Value::Object(_) | Value::Bool(_))) => {
                Rule::Schema((*schema).clone())
            }
            Self::Json(_) => return Err(bad(format!("`{name}` is not a JSON schema"))),
            Self::Regex(pattern) => {
                let grammar = regex::grammar(pattern);
                Rule::Grammar(grammar.map_err(|why| {
                    bad(format!("`{name}` cannot be followed: {why}"))
                        .hint("use a simpler pattern, or a `grammar` in GBNF")
                })?)
            }
            Self::Choice([]) => {
                return Err(bad(format!(
                    "`{name}` is empty; send the texts to choose from"
                )));
            }
            Self::Choice(texts) => {
                let texts: Vec<_> = texts.iter().map(|text| regex::quoted(text)).collect();
                Rule::Grammar(format!("root ::= {}", texts.join(" | ")))
            }
            Self::Grammar(grammar) => Rule::Grammar((*grammar).to_owned()),
            Self::AnyObject => Rule::Schema(json!({"type": "object"})),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(fields: Value) -> Result<Option<Rule>, Error> {
        serde_json::from_value::<Guided>(fields).unwrap().rule()
    }

    #[test]
    fn each_form_is_a_grammar_or_a_schema() {
        let grammar = |text: &str| Some(Rule::Grammar(text.to_owned()));
        let schema = json!({"type": "array"});
        for (fields, expected) in [
            (json!({}), None),
            (json!({"structured_outputs": {"json_object": false}}), None),
            (
                json!({"guided_json": schema}),
                Some(Rule::Schema(schema.clone())),
            ),
            (
                json!({"guided_json": schema.to_string()}),
                Some(Rule::Schema(schema.clone())),
            ),
            (
                json!({"structured_outputs": {"json": schema}}),
                Some(Rule::Schema(schema.clone())),
            ),
            (
                json!({"guided_choice": ["a", "b\"c"]}),
                grammar("root ::= \"a\" | \"b\\\"c\""),
            ),
            (
                json!({"guided_grammar": "root ::= \"x\""}),
                grammar("root ::= \"x\""),
            ),
            (
                json!({"structured_outputs": {"regex": "ab"}}),
                grammar("root ::= \"ab\""),
            ),
        ] {
            assert_eq!(rule(fields.clone()).unwrap(), expected, "{fields}");
        }
    }

    #[test]
    fn what_cannot_be_followed_is_refused_by_name() {
        for (fields, named) in [
            (json!({"guided_json": 7}), "`guided_json`"),
            (json!({"guided_json": "{"}), "`guided_json`"),
            (json!({"guided_choice": []}), "`guided_choice`"),
            (json!({"guided_regex": "(?=a)"}), "`guided_regex`"),
            (
                json!({"structured_outputs": {"structural_tag": {}}}),
                "`structured_outputs.structural_tag`",
            ),
            (
                json!({"guided_choice": ["a"], "guided_regex": "a"}),
                "`guided_regex` and `guided_choice`",
            ),
        ] {
            let error = rule(fields).unwrap_err();
            assert!(error.message.contains(named), "{error}");
        }
    }
}
