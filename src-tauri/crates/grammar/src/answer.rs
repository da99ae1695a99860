//! The fields of a request that give the answer a form, as a grammar or a JSON schema: OpenAI's, llama-server's and vLLM's.

use crate::{bad, check_extent, pattern::pattern_grammar, texts::texts_grammar};
use serde::Deserialize;
use serde_json::{Value, json};
use tierbar_core::{Error, json};

/// The longest schema or grammar, in bytes.
pub const LONGEST_GRAMMAR: usize = 64 << 10;

/// The fields for the form of an answer. vLLM has older ones, and `structured_outputs` with newer ones.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct AnswerForm {
    grammar: Option<String>,
    json_schema: Option<Value>,
    response_format: Option<Value>,
    guided_json: Option<Value>,
    guided_regex: Option<String>,
    guided_choice: Option<Vec<String>>,
    guided_grammar: Option<String>,
    structured_outputs: Option<StructuredOutputs>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct StructuredOutputs {
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
pub enum AnswerRule {
    /// In GBNF.
    Grammar(String),
    /// A JSON schema.
    Schema(Value),
}

impl AnswerForm {
    /// Returns what the answer must follow; `None` for a free answer.
    ///
    /// # Errors
    /// `BadRequest` naming the field, for a form that cannot be followed or is too large, and for more than one.
    pub fn rule(&self) -> Result<Option<AnswerRule>, Error> {
        let (schema, guided) = (self.schema()?, self.guided_rule()?);
        let rule = match (self.own_grammar(), schema, guided) {
            (None, None, guided) => guided,
            (Some(grammar), None, None) => Some(AnswerRule::Grammar(grammar.to_owned())),
            (None, Some(schema), None) => Some(AnswerRule::Schema(schema)),
            (Some(_), Some(_), None) => {
                return Err(bad("`grammar` cannot be combined with a JSON schema"));
            }
            (_, _, Some(_)) => {
                return Err(bad(format!(
                    "{} cannot be combined with another form for the answer",
                    self.guided_names()
                )));
            }
        };
        match &rule {
            None => {}
            Some(AnswerRule::Schema(schema)) => {
                check_extent("the JSON schema", &schema.to_string(), LONGEST_GRAMMAR)?;
            }
            Some(AnswerRule::Grammar(grammar)) => {
                check_extent("the grammar", grammar, LONGEST_GRAMMAR)?;
            }
        }
        Ok(rule)
    }

    /// Returns the fields that the grammar comes from, for a message.
    pub fn grammar_names(&self) -> String {
        match self.own_grammar() {
            Some(_) => "`grammar`".to_owned(),
            None => self.guided_names(),
        }
    }

    fn own_grammar(&self) -> Option<&str> {
        self.grammar.as_deref().filter(|own| !own.is_empty())
    }

    /// The JSON schema in the fields of OpenAI and llama-server.
    fn schema(&self) -> Result<Option<Value>, Error> {
        let format = self.response_format.as_ref();
        let Some(format) = format.filter(|format| !format.is_null()) else {
            return Ok(self.json_schema.clone());
        };
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
        let schema = schema.filter(|schema| **schema != json!({}) && !schema.is_null());
        Ok(Some(
            schema.cloned().unwrap_or_else(|| json!({"type": "object"})),
        ))
    }

    fn guided_rule(&self) -> Result<Option<AnswerRule>, Error> {
        if let Some(newer) = &self.structured_outputs {
            newer.check()?;
        }
        let forms = self.guided_forms();
        match &*forms {
            [] => Ok(None),
            [(name, form)] => form.rule(name).map(Some),
            _ => Err(bad(format!(
                "{} cannot be combined: an answer has one form",
                self.guided_names()
            ))),
        }
    }

    fn guided_names(&self) -> String {
        let names = self
            .guided_forms()
            .into_iter()
            .map(|(name, _)| format!("`{name}`"));
        names.collect::<Vec<_>>().join(" and ")
    }

    fn guided_forms(&self) -> Vec<(&'static str, GuidedForm<'_>)> {
        let older = forms_of(
            self.guided_json.as_ref(),
            self.guided_regex.as_deref(),
            self.guided_choice.as_deref(),
            self.guided_grammar.as_deref(),
        );
        let names = [
            "guided_json",
            "guided_regex",
            "guided_choice",
            "guided_grammar",
        ];
        let mut forms: Vec<_> = names.into_iter().zip(older).collect();
        if let Some(newer) = &self.structured_outputs {
            let names = [
                "structured_outputs.json",
                "structured_outputs.regex",
                "structured_outputs.choice",
                "structured_outputs.grammar",
            ];
            let of_newer = forms_of(
                newer.json.as_ref(),
                newer.regex.as_deref(),
                newer.choice.as_deref(),
                newer.grammar.as_deref(),
            );
            forms.extend(names.into_iter().zip(of_newer));
            let any_object = newer.json_object == Some(true);
            let any_object = any_object.then_some(GuidedForm::AnyObject);
            forms.push(("structured_outputs.json_object", any_object));
        }
        let given = forms.into_iter();
        given
            .filter_map(|(name, form)| Some((name, form?)))
            .collect()
    }
}

fn forms_of<'a>(
    json: Option<&'a Value>,
    regex: Option<&'a str>,
    choice: Option<&'a [String]>,
    grammar: Option<&'a str>,
) -> [Option<GuidedForm<'a>>; 4] {
    [
        json.map(GuidedForm::Json),
        regex.map(GuidedForm::Regex),
        choice.map(GuidedForm::Choice),
        grammar.map(GuidedForm::Grammar),
    ]
}

impl StructuredOutputs {
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

enum GuidedForm<'a> {
    Json(&'a Value),
    Regex(&'a str),
    Choice(&'a [String]),
    Grammar(&'a str),
    AnyObject,
}

impl GuidedForm<'_> {
    fn rule(&self, name: &str) -> Result<AnswerRule, Error> {
        Ok(match self {
            // A schema, or its text.
            Self::Json(Value::String(text)) => {
                let wrong = |error| bad(format!("`{name}` is not JSON: {error}"));
                AnswerRule::Schema(json::read(text.as_bytes()).map_err(wrong)?)
            }
            Self::Json(schema @ (Value::Object(_) | Value::Bool(_))) => {
                AnswerRule::Schema((*schema).clone())
            }
            Self::Json(_) => return Err(bad(format!("`{name}` is not a JSON schema"))),
            Self::Regex(pattern) => {
                let wrong = |why| {
                    bad(format!("`{name}` cannot be followed: {why}"))
                        .hint("use a simpler pattern, or a `grammar` in GBNF")
                };
                AnswerRule::Grammar(pattern_grammar(pattern).map_err(wrong)?)
            }
            Self::Choice([]) => {
                return Err(bad(format!(
                    "`{name}` is empty; send the texts to choose from"
                )));
            }
            Self::Choice(texts) => {
                AnswerRule::Grammar(format!("root ::= {}", texts_grammar(texts.to_vec())))
            }
            Self::Grammar(grammar) => AnswerRule::Grammar((*grammar).to_owned()),
            Self::AnyObject => AnswerRule::Schema(json!({"type": "object"})),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::Code;

    fn rule(fields: Value) -> Result<Option<AnswerRule>, Error> {
        serde_json::from_value::<AnswerForm>(fields).unwrap().rule()
    }

    #[test]
    fn each_form_is_a_grammar_or_a_schema() {
        let grammar = |text: &str| Some(AnswerRule::Grammar(text.to_owned()));
        let schema = json!({"type": "array"});
        for (fields, expected) in [
            (json!({}), None),
            (json!({"structured_outputs": {"json_object": false}}), None),
            (
                json!({"guided_json": schema}),
                Some(AnswerRule::Schema(schema.clone())),
            ),
            (
                json!({"guided_json": schema.to_string()}),
                Some(AnswerRule::Schema(schema.clone())),
            ),
            (
                json!({"structured_outputs": {"json": schema}}),
                Some(AnswerRule::Schema(schema.clone())),
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
    fn many_choices_share_their_beginnings() {
        let choices: Vec<_> = (0..100).map(|n| format!("hat {n:02}")).collect();
        let Some(AnswerRule::Grammar(grammar)) = rule(json!({"guided_choice": choices})).unwrap()
        else {
            panic!()
        };
        let begin = r#"root ::= "hat " ("0" ("0" | "1" | "2""#;
        assert!(grammar.starts_with(begin), "{grammar}");
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

    #[test]
    fn a_schema_is_found_wherever_clients_put_it() {
        let schema = json!({"type": "array"});
        let openai =
            json!({"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}});
        let llama = json!({"response_format": {"type": "json_object", "schema": schema}});
        for value in [openai, llama, json!({"json_schema": schema})] {
            assert_eq!(
                rule(value).unwrap(),
                Some(AnswerRule::Schema(schema.clone()))
            );
        }
        let any = rule(json!({"response_format": {"type": "json_object"}}));
        let object = json!({"type": "object"});
        assert_eq!(any.unwrap(), Some(AnswerRule::Schema(object)));
    }

    #[test]
    fn a_malformed_format_is_refused_by_name() {
        for free in [json!(null), json!({"type": "text"})] {
            let read = rule(json!({"response_format": free}));
            assert_eq!(read.unwrap(), None);
        }
        for malformed in [
            json!("json_object"),
            json!({}),
            json!({"type": null}),
            json!({"json_schema": {"schema": {}}}),
            json!(["json_object"]),
            json!(true),
            json!({"type": "xml"}),
        ] {
            let error = rule(json!({"response_format": malformed})).unwrap_err();
            assert_eq!(error.code, Code::BadRequest, "{malformed}");
            assert!(error.message.contains("`response_format"), "{error}");
        }
    }

    #[test]
    fn an_answer_has_one_form_of_limited_size() {
        let (schema, grammar) = (json!({"type": "array"}), "root ::= \"a\"");
        for (fields, named) in [
            (
                json!({"grammar": grammar, "json_schema": schema}),
                "`grammar` cannot be combined with a JSON schema",
            ),
            (
                json!({"grammar": grammar, "guided_choice": ["a"]}),
                "`guided_choice` cannot be combined with another form",
            ),
            (
                json!({"json_schema": schema, "guided_json": schema}),
                "`guided_json` cannot be combined with another form",
            ),
            (
                json!({"grammar": "a".repeat(LONGEST_GRAMMAR + 1)}),
                "the grammar has 65537 bytes",
            ),
            (
                json!({"guided_grammar": "(".repeat(101)}),
                "the grammar is nested deeper",
            ),
            (
                json!({"json_schema": {"const": "a".repeat(LONGEST_GRAMMAR)}}),
                "the JSON schema has ",
            ),
        ] {
            let error = rule(fields).unwrap_err();
            assert!(error.message.starts_with(named), "{error}");
        }
        let own = rule(json!({"grammar": grammar})).unwrap();
        assert_eq!(own, Some(AnswerRule::Grammar(grammar.to_owned())));
        assert_eq!(rule(json!({"grammar": ""})).unwrap(), None);
    }
}
