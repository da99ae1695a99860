//! OpenAI's requests, with llama-server's additions. Unknown fields are ignored, wrong types are refused by name.

pub(crate) mod functions;
mod generic;
mod options;
mod prompts;

pub(crate) use options::{Options, check_tokens, describe_wrong_option};
pub(crate) use prompts::{PromptInput, Prompts, deserialize_input};

use crate::{
    bad,
    llama::{Prompt, schema_grammar},
};
use options::form::SCHEMA;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use tierbar_core::{Code, Error};
use tierbar_grammar::{AnswerRule, OfferedTools, Placeholders, translate_schema};

#[derive(Debug, Deserialize)]
pub(crate) struct ChatRequest {
    #[serde(deserialize_with = "deserialize_messages")]
    pub(crate) messages: Vec<Value>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    /// OpenAI's older form of `tools`.
    functions: Option<Value>,
    /// OpenAI's older form of `tool_choice`.
    function_call: Option<Value>,
    chat_template_kwargs: Option<Map<String, Value>>,
    /// OpenAI's: `none` is off, the others are on.
    reasoning_effort: Option<String>,
    /// Ollama's: a flag, or an effort.
    think: Option<Value>,
    /// OpenRouter's form of these, and of `thinking_budget_tokens`.
    reasoning: Option<Reasoning>,
    /// How long the answer is, for templates that know it.
    verbosity: Option<String>,
    /// Most tokens that the model may think; below 0 for any number.
    thinking_budget_tokens: Option<i32>,
    /// As in vLLM: the last message is the assistant's, and the answer continues it.
    #[serde(default)]
    continue_final_message: bool,
    /// vLLM's: `false` goes with the above, and would otherwise have the model continue the user's message.
    #[serde(default)]
    add_generation_prompt: Option<bool>,
    #[serde(flatten)]
    pub(crate) options: Options,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, expecting = "`reasoning` as an object")]
struct Reasoning {
    effort: Option<String>,
    enabled: Option<bool>,
    max_tokens: Option<i32>,
    exclude: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct CompletionRequest {
    #[serde(deserialize_with = "prompts::deserialize_prompt")]
    pub(crate) prompt: Prompts,
    #[serde(flatten)]
    pub(crate) options: Options,
}

impl ChatRequest {
    /// Returns the text of the last message if the answer continues it, since a template would end it.
    pub(crate) fn begun(&self) -> Option<String> {
        let continues = self.continue_final_message && self.messages.len() > 1;
        let last = self.messages.last().filter(|_| continues)?;
        let calls = last.get("tool_calls").is_some_and(|calls| !calls.is_null());
        if last["role"] != "assistant" || calls {
            return None;
        }
        match &last["content"] {
            Value::String(text) => Some(text.clone()),
            Value::Array(parts) => {
                let texts = parts.iter().filter_map(|part| part["text"].as_str());
                Some(texts.collect())
            }
            _ => None,
        }
    }

    /// Whether the answer's call is to have OpenAI's older form.
    pub(crate) fn wants_function_call(&self) -> bool {
        self.functions.is_some() && self.tools.as_ref().is_none_or(Vec::is_empty)
    }

    /// What the chat template is rendered from. `calls_tools`: the template has a place for tools.
    pub(crate) fn template_input(&self, calls_tools: bool) -> Result<Value, Error> {
        if self.messages.is_empty() {
            return Err(bad("`messages` is empty; send at least one message"));
        }
        if self.has_media() {
            return Err(text_only());
        }
        if self.add_generation_prompt == Some(false) && !self.continue_final_message {
            return Err(
                bad("`add_generation_prompt` is false without `continue_final_message`")
                    .hint("set `continue_final_message` to true, or leave both out"),
            );
        }
        let reasoning = self.reasoning.as_ref();
        if reasoning.and_then(|reasoning| reasoning.exclude) == Some(true) {
            return Err(bad("`reasoning.exclude` is not supported")
                .hint("leave it out, and leave `reasoning_content` unread"));
        }
        let tools = self.offers()?;
        let calls = tools.may_be_called();
        let schema = match self.options.form.rule()? {
            Some(AnswerRule::Grammar(_)) if calls => {
                let name = self.options.form.grammar_names();
                return Err(bad(format!("`tools` cannot be combined with {name}"))
                    .hint("send a JSON schema instead, or set `tool_choice` to none"));
            }
            Some(AnswerRule::Schema(schema)) => Some(schema),
            Some(AnswerRule::Grammar(_)) | None => None,
        };
        if calls && self.options.min_tokens()? > 0 {
            return Err(bad(
                "`min_tokens` cannot be combined with `tools`: a call says where the answer ends",
            )
            .hint("leave out `min_tokens`, or set `tool_choice` to none"));
        }
        let schemas = json!([tools.offered, schema]).to_string();
        let mut placeholders = Placeholders::absent_from(&schemas);
        let followed_schema = schema
            .as_ref()
            .map(|schema| translate_schema(schema, SCHEMA, true, &mut placeholders))
            .transpose()?;
        // An answer that is only calls has no other form.
        let beside_calls = schema.filter(|_| calls && tools.choice != "required");
        let followed_schema = followed_schema.filter(|_| !calls || beside_calls.is_some());
        let mut kwargs = self.chat_template_kwargs.clone().unwrap_or_default();
        if let Some(effort) = self.effort() {
            kwargs
                .entry("reasoning_effort")
                .or_insert_with(|| effort.into());
        }
        if let Some(verbosity) = &self.verbosity {
            kwargs
                .entry("verbosity")
                .or_insert_with(|| verbosity.as_str().into());
        }
        let mut input = json!({
            "messages": self.messages,
            "tools": tools.offered,
            "tool_choice": tools.choice,
            "parallel_tool_calls": tools.parallel,
            "json_schema": followed_schema,
            "enable_thinking": self.thinks(),
            "chat_template_kwargs": kwargs,
        });
        let has_no_place =
            !calls_tools && (!tools.offered.is_empty() || generic::has_calls(&self.messages));
        // A template's own form for calls has no place for another answer that has a form.
        let is_generic = has_no_place || beside_calls.is_some();
        if is_generic {
            let rewritten =
                generic::rewrite_messages(&self.messages, &tools, beside_calls.as_ref());
            input["messages"] = json!(rewritten);
            input["generic_tools"] = json!(true);
        }
        if calls {
            let followed = tools.with_followed_schemas(&mut placeholders)?;
            let are_held = is_generic
                || tools.choice == "required"
                || tools.are_strict()
                || !placeholders.is_empty();
            if are_held {
                input["held_tools"] = json!(followed);
            }
            input["written_calls"] = json!(self.are_writable(&tools));
        }
        input["forms"] = Value::Object(placeholders.into_grammars());
        Ok(input)
    }

    pub(crate) fn offers_tools(&self) -> bool {
        self.offers().is_ok_and(|tools| tools.may_be_called())
    }

    /// The functions whose calls may also come as text.
    pub(crate) fn writable_tools(&self) -> Option<OfferedTools> {
        let tools = self.offers().ok()?;
        self.are_writable(&tools).then_some(tools)
    }

    /// Whether calls may also come as text: nothing holds the answer to a form.
    fn are_writable(&self, tools: &OfferedTools) -> bool {
        let is_free = matches!(self.options.form.rule(), Ok(None)) && !tools.are_strict();
        is_free && tools.choice == "auto" && tools.may_be_called()
    }

    /// Names the schema that is the reason for an error of the template or the grammar.
    pub(crate) fn explain(&self, error: Error) -> Error {
        let offers = self.offers();
        let tools = offers.ok().filter(|_| error.code == Code::BadRequest);
        let refused = tools.and_then(|tools| tools.refused_schema(schema_grammar));
        refused.unwrap_or_else(|| self.options.explain(error))
    }

    /// # Errors
    /// `BadRequest` for a role or a part that no template has a place for, with its position.
    pub(crate) fn check_messages(&self) -> Result<(), Error> {
        for (at, message) in self.messages.iter().enumerate() {
            let Some(role) = message.get("role").and_then(Value::as_str) else {
                return Err(bad(format!("`messages[{at}]` has no `role`"))
                    .hint(format!("send one of {}", ROLES.join(", "))));
            };
            if !ROLES.contains(&role) {
                let shown: String = role.chars().take(40).collect();
                return Err(bad(format!("`messages[{at}].role` is \"{shown}\""))
                    .hint(format!("send one of {}", ROLES.join(", "))));
            }
            let parts = message.get("content").and_then(Value::as_array);
            for (nth, part) in parts.into_iter().flatten().enumerate() {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
                if !PARTS.contains(&kind) {
                    let shown: String = kind.chars().take(40).collect();
                    let message =
                        format!("`messages[{at}].content[{nth}]` has the type \"{shown}\"");
                    let hint = match kind {
                        "file" => {
                            "send the text of the file, which `POST /tierbar/v1/documents/text` returns, as a part of the type text".to_owned()
                        }
                        _ => format!("send one of {}", PARTS.join(", ")),
                    };
                    return Err(bad(message).hint(hint));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn has_media(&self) -> bool {
        self.messages.iter().any(has_media)
    }

    /// How the answer is constrained, given its rendered prompt; empty for not at all.
    pub(crate) fn constraint(&self, prompt: &Prompt) -> Result<String, Error> {
        let budget = self.thinking_budget().unwrap_or(-1).max(-1);
        let own = match self.options.form.rule()? {
            Some(AnswerRule::Grammar(grammar)) => Some(grammar),
            Some(AnswerRule::Schema(_)) | None => None,
        };
        let is_free = prompt.grammar.is_empty() && prompt.written_grammar.is_empty();
        if is_free && own.is_none() && budget < 0 {
            return Ok(String::new());
        }
        let mut spec = serde_json::to_value(prompt)
            .map_err(|error| Error::new(Code::Internal, format!("chat shim: {error}")))?;
        // A grammar of the client's own describes what comes after the prompt, from its first token on.
        spec["prefill"] = json!(own.is_none());
        if let Some(grammar) = own {
            spec["grammar"] = json!(grammar);
            spec["grammar_lazy"] = json!(false);
        }
        spec["thinking_budget"] = json!(budget);
        Ok(spec.to_string())
    }

    /// Has the model think unless the request says otherwise.
    pub(crate) fn think_by_default(&mut self) {
        let says = self.named_thinking().is_some();
        if !says {
            self.think = Some(Value::Bool(true));
        }
    }

    /// Whether the model thinks before it answers. Off by default.
    pub(crate) fn thinks(&self) -> bool {
        self.named_thinking().unwrap_or(false)
    }

    fn named_thinking(&self) -> Option<bool> {
        let named = self.chat_template_kwargs.as_ref();
        let named = named.and_then(|kwargs| kwargs.get("enable_thinking")?.as_bool());
        let flag = self.think.as_ref().and_then(Value::as_bool);
        let enabled = self.reasoning.as_ref().and_then(|own| own.enabled);
        let effort = self.effort().map(|effort| effort != "none");
        // Who limits thoughts in OpenRouter's form asks for some.
        let most = self.reasoning.as_ref().and_then(|own| own.max_tokens);
        let limited = most.map(|most| most != 0);
        named.or(flag).or(enabled).or(effort).or(limited)
    }

    fn thinking_budget(&self) -> Option<i32> {
        let other = self.reasoning.as_ref().and_then(|own| own.max_tokens);
        self.thinking_budget_tokens.or(other)
    }

    fn effort(&self) -> Option<&str> {
        let ollamas = self.think.as_ref().and_then(Value::as_str);
        let other = self.reasoning.as_ref();
        let other = other.and_then(|own| own.effort.as_deref());
        self.reasoning_effort.as_deref().or(other).or(ollamas)
    }

    fn offers(&self) -> Result<OfferedTools, Error> {
        let tools = self.tools.as_deref().unwrap_or_default();
        let older = [
            ("functions", &self.functions),
            ("function_call", &self.function_call),
        ];
        let given = |value: &Option<Value>| value.as_ref().is_some_and(|value| !value.is_null());
        let beside = older.into_iter().find(|(_, value)| given(value));
        match (beside, &self.functions) {
            (Some((name, _)), _) if !tools.is_empty() => {
                Err(bad(format!("`{name}` cannot be combined with `tools`"))
                    .hint("use `tools` and `tool_choice` alone: the older fields stand for them"))
            }
            (Some(_), Some(functions)) if !functions.is_null() => {
                let (tools, choice) =
                    functions::tools_of_functions(functions, self.function_call.as_ref())?;
                let choice = choice.as_ref().or(self.tool_choice.as_ref());
                OfferedTools::read(&tools, choice, Some(false))
            }
            // A choice that asks for no call says nothing where there is none to make.
            (Some((_, Some(choice))), _) if choice != "none" && choice != "auto" => Err(bad(
                "`function_call` names a function, but there are no `functions`",
            )
            .hint("send the function in `tools`, and choose it with `tool_choice`")),
            _ => OfferedTools::read(tools, self.tool_choice.as_ref(), self.parallel_tool_calls),
        }
    }
}

const ROLES: [&str; 6] = [
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];
const PARTS: [&str; 3] = ["text", "image_url", "input_audio"];

/// Turns refusals in messages into text, and older forms of calls into newer ones, since templates know only one of each.
fn deserialize_messages<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Value>, D::Error> {
    let mut messages = Vec::<Value>::deserialize(from)?;
    for message in &mut messages {
        let Some(message) = message.as_object_mut() else {
            continue;
        };
        let refusal = message.shift_remove("refusal");
        match (message.get_mut("content"), refusal) {
            (Some(Value::Array(parts)), _) => {
                for part in parts.iter_mut().filter(|part| part["type"] == "refusal") {
                    *part = json!({"type": "text", "text": part["refusal"]});
                }
            }
            (Some(Value::String(text)), Some(Value::String(words))) if text.is_empty() => {
                *text = words;
            }
            (None | Some(Value::Null), Some(words @ Value::String(_))) => {
                message.insert("content".to_owned(), words);
            }
            _ => {}
        }
    }
    functions::convert_messages(&mut messages);
    Ok(messages)
}

fn has_media(message: &Value) -> bool {
    let parts = message.get("content").and_then(Value::as_array);
    // A marker is where a medium was taken out.
    let is_medium = |kind: &Value| kind != "text" && kind != "media_marker";
    let mut parts = parts.into_iter().flatten();
    parts.any(|part| part.get("type").is_some_and(is_medium))
}

/// The error for images or audio without a projector.
pub(crate) fn text_only() -> Error {
    bad("this model accepts only text; the request has an image or audio part")
        .hint("models that see or hear need a projector (\"mmproj\" file): put it beside the model, or choose such a model")
}

#[cfg(test)]
mod tests {
    use super::{options::sampling::FAR_BACK, *};
    use crate::llama::Sampling;
    use tierbar_core::sampling::Sampling as OwnSampling;
    use tierbar_request_fields::{
        CHAT, CHAT_ADDITIONS, COMPLETION_ADDITIONS, COMPLETIONS, Effect, Field,
        GENERATION_ADDITIONS, Table,
    };

    fn options(value: Value) -> Options {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn roles_and_parts_without_a_place_are_refused_by_name() {
        let refused = |messages: Value| {
            let request: ChatRequest =
                serde_json::from_value(json!({"messages": messages})).unwrap();
            let error = request.check_messages().err()?;
            Some(format!("{}; {}", error.message, error.hint.unwrap()))
        };
        let user = json!({"role": "user", "content": "Hi"});
        for role in ROLES {
            assert_eq!(
                refused(json!([user, {"role": role, "content": null}])),
                None
            );
        }
        for (message, said) in [
            (
                json!({"role": "bogus", "content": "Hi"}),
                "`messages[1].role` is \"bogus\"; send one of system, ",
            ),
            (
                json!({"content": "Hi"}),
                "`messages[1]` has no `role`; send one of system, ",
            ),
            (
                json!("Hi"),
                "`messages[1]` has no `role`; send one of system, ",
            ),
            (
                json!({"role": "user", "content": [{"type": "text", "text": ""}, {"type": "file", "file": {}}]}),
                "`messages[1].content[1]` has the type \"file\"; send the text of the file, ",
            ),
            (
                json!({"role": "user", "content": [{"type": "media_marker", "text": "x"}]}),
                "`messages[1].content[0]` has the type \"media_marker\"; send one of text, ",
            ),
        ] {
            let found = refused(json!([user, message])).unwrap();
            assert!(found.starts_with(said), "{found}");
        }
    }

    #[test]
    fn a_refusal_is_read_as_text() {
        let part = |kind: &str| json!({"type": kind, kind: "I cannot."});
        let request: ChatRequest = serde_json::from_value(json!({"messages": [
            {"role": "user", "content": [part("text")]},
            {"role": "assistant", "content": [part("refusal"), part("text")]},
            {"role": "assistant", "content": null, "refusal": "Nor this."},
            {"role": "assistant", "content": "", "refusal": "Nor this."},
            {"role": "assistant", "refusal": "Nor this."},
            {"role": "assistant", "content": "That.", "refusal": null},
            {"role": "assistant", "tool_calls": []},
            7,
        ]}))
        .unwrap();
        assert!(!request.has_media());
        let content: Vec<_> = request
            .messages
            .iter()
            .map(|message| &message["content"])
            .collect();
        let text = part("text");
        assert_eq!(
            content,
            [
                &json!([text]),
                &json!([text, text]),
                &json!("Nor this."),
                &json!("Nor this."),
                &json!("Nor this."),
                &json!("That."),
                &Value::Null,
                &Value::Null
            ]
        );
    }

    #[test]
    fn defaults_are_those_of_llama_server() {
        let sampling = options(json!({}))
            .sampling(10, OwnSampling::default())
            .unwrap();
        assert_eq!(sampling, Sampling::default());
    }

    #[test]
    fn the_newest_name_of_the_token_limit_wins() {
        assert_eq!(
            options(json!({"max_tokens": 5})).max_tokens().unwrap(),
            Some(5)
        );
        assert_eq!(
            options(json!({"max_tokens": 5, "max_completion_tokens": 7}))
                .max_tokens()
                .unwrap(),
            Some(7)
        );
        assert_eq!(
            options(json!({"n_predict": -1})).max_tokens().unwrap(),
            None
        );
        assert!(options(json!({"max_tokens": -5})).max_tokens().is_err());
    }

    #[test]
    fn out_of_range_values_are_refused() {
        for value in [
            json!({"repeat_penalty": 0.0}),
            json!({"repeat_last_n": -2}),
            json!({"repeat_last_n": 2_000_000_000}),
            json!({"logit_bias": {"99": 1.0}}),
            json!({"logit_bias": {"x": 1.0}}),
            json!({"logit_bias": [[99, 1.0]]}),
            json!({"dry_penalty_last_n": 2_000_000_000}),
            json!({"mirostat": 3}),
            json!({"temperature": 1e39}),
        ] {
            let error = options(value.clone())
                .sampling(10, OwnSampling::default())
                .unwrap_err();
            assert_eq!(error.code, Code::BadRequest, "{value}");
        }
    }

    /// A request with this field, as it is read.
    fn read<T: std::fmt::Debug + serde::de::DeserializeOwned>(field: Option<&Field>) -> String {
        let mut request = json!({"messages": [{"role": "user", "content": "Hi"}], "prompt": "Hi"});
        if let Some(field) = field {
            request[field.name] = field.sample();
        }
        let read: Result<T, _> = serde_json::from_value(request);
        let name = field.map_or("", |field| field.name);
        format!(
            "{:?}",
            read.unwrap_or_else(|error| panic!("{name}: {error}"))
        )
    }

    /// What the table says of a field is what this type makes of it.
    fn check_tables<T: std::fmt::Debug + serde::de::DeserializeOwned>(tables: &[&Table]) {
        // The gateway reads these.
        const ELSEWHERE: [&str; 2] = ["model", "keep_alive"];
        let plain = read::<T>(None);
        for field in tables.iter().flat_map(|table| table.fields) {
            let name = field.name;
            match field.effect {
                Effect::Honored(_) if ELSEWHERE.contains(&name) => {}
                Effect::Honored(_) => assert_ne!(read::<T>(Some(field)), plain, "{name}"),
                Effect::Harmless(_) => assert_eq!(read::<T>(Some(field)), plain, "{name}"),
                // The gateway's to refuse, and here too where this reads them.
                Effect::Refused { .. } => {}
            }
        }
    }

    #[test]
    fn fields_are_read_as_the_tables_say() {
        check_tables::<ChatRequest>(&[&CHAT, &GENERATION_ADDITIONS, &CHAT_ADDITIONS]);
        check_tables::<CompletionRequest>(&[
            &COMPLETIONS,
            &GENERATION_ADDITIONS,
            &COMPLETION_ADDITIONS,
        ]);
    }

    #[test]
    fn a_generation_prompt_is_left_out_only_of_what_is_continued() {
        let input = |fields: Value| {
            let mut request = json!({"messages": [{"role": "assistant", "content": "Hi"}]});
            request
                .as_object_mut()
                .unwrap()
                .extend(fields.as_object().unwrap().clone());
            let request: ChatRequest = serde_json::from_value(request).unwrap();
            request.template_input(true)
        };
        let both = json!({"add_generation_prompt": false, "continue_final_message": true});
        assert!(input(both).is_ok());
        let error = input(json!({"add_generation_prompt": false})).unwrap_err();
        assert!(error.message.contains("`add_generation_prompt`"), "{error}");
        let input = input(json!({"verbosity": "low"})).unwrap();
        assert_eq!(input["chat_template_kwargs"]["verbosity"], "low");
    }

    #[test]
    fn tools_and_a_schema_go_together() {
        let input = |choice: &str, calls_tools: bool| {
            let look = json!({"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}});
            let schema = json!({"type": "object", "properties": {"share": {"type": "number", "maximum": 1}}});
            let form =
                json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}});
            let request = json!({"messages": [{"role": "user", "content": "Hi"}], "tools": [look],
                                 "tool_choice": choice, "response_format": form});
            serde_json::from_value::<ChatRequest>(request)
                .unwrap()
                .template_input(calls_tools)
                .unwrap()
        };
        for calls_tools in [false, true] {
            let auto = input("auto", calls_tools);
            assert_eq!(auto["generic_tools"], true);
            assert!(auto["json_schema"]["properties"]["share"]["const"].is_string());
            assert_eq!(auto["forms"].as_object().unwrap().len(), 1);
            assert!(auto["held_tools"].is_array());
            // The model reads what the client has sent.
            let words = auto["messages"][0]["content"].as_str().unwrap();
            assert!(words.contains("\"maximum\":1"), "{words}");
            let required = input("required", calls_tools);
            assert!(required["json_schema"].is_null());
            let none = input("none", calls_tools);
            assert!(none["json_schema"].is_object() && none["held_tools"].is_null());
        }
        assert!(input("required", true)["generic_tools"].is_null());
    }

    #[test]
    fn a_function_that_is_strict_is_held_to_its_schema() {
        let input = |strict: bool, choice: &str, parameters: Value| {
            let look = json!({"type": "function", "function": {"name": "look", "strict": strict, "parameters": parameters}});
            let request = json!({"messages": [{"role": "user", "content": "Hi"}], "tools": [look], "tool_choice": choice});
            serde_json::from_value::<ChatRequest>(request)
                .unwrap()
                .template_input(true)
        };
        let hint = json!({"type": "object", "properties": {"a": {"type": "string", "not": {"const": "b"}}}});
        for choice in ["auto", "required"] {
            assert!(input(false, choice, hint.clone()).is_ok());
            let error = input(true, choice, hint.clone()).unwrap_err();
            assert_eq!(
                error.message,
                "`not` at `#/properties/a` of `parameters` of the function \"look\" in `tools` is not supported"
            );
        }
        let never = json!({"type": "object", "properties": {"a": {"enum": []}}});
        assert!(input(false, "auto", never.clone()).is_ok());
        assert!(input(false, "required", never).is_err());
        let ranged =
            json!({"type": "object", "properties": {"a": {"type": "number", "minimum": 0}}});
        let plain = json!({"type": "object", "properties": {"a": {"type": "number"}}});
        assert!(input(false, "auto", ranged).unwrap()["held_tools"].is_array());
        assert!(input(false, "auto", plain).unwrap()["held_tools"].is_null());
    }

    #[test]
    fn a_call_as_text_is_held_where_it_is_read() {
        let function = |strict: bool| {
            let parameters = json!({"type": "object", "properties": {}});
            json!([{"type": "function", "function": {"name": "look", "strict": strict, "parameters": parameters}}])
        };
        for (choice, strict, held) in [
            ("auto", false, true),
            ("auto", true, false),
            ("required", false, false),
            ("none", false, false),
        ] {
            let request: ChatRequest = serde_json::from_value(json!({
                "messages": [{"role": "user", "content": "Hi"}],
                "tools": function(strict),
                "tool_choice": choice,
            }))
            .unwrap();
            let input = request.template_input(true).unwrap();
            assert_eq!(input["written_calls"] == true, held, "{choice} {strict}");
            assert_eq!(
                request.writable_tools().is_some(),
                held,
                "{choice} {strict}"
            );
        }
    }

    #[test]
    fn fewest_tokens_are_refused_beside_tools() {
        let input = |choice: &str| {
            let look = json!({"type": "function", "function": {"name": "look"}});
            let request = json!({"messages": [{"role": "user", "content": "Hi"}], "tools": [look],
                                 "tool_choice": choice, "min_tokens": 5});
            serde_json::from_value::<ChatRequest>(request)
                .unwrap()
                .template_input(true)
        };
        for choice in ["auto", "required"] {
            let error = input(choice).unwrap_err();
            assert!(error.message.contains("`min_tokens`"), "{choice}: {error}");
        }
        assert!(input("none").is_ok());
    }

    #[test]
    fn reasoning_is_read_in_openrouters_form() {
        let request = |reasoning: Value| -> ChatRequest {
            let user = json!({"role": "user", "content": "Hi"});
            serde_json::from_value(json!({"messages": [user], "reasoning": reasoning})).unwrap()
        };
        for (reasoning, thinks, effort, budget) in [
            (json!(null), false, None, None),
            (json!({}), false, None, None),
            (json!({"effort": "high"}), true, Some("high"), None),
            (json!({"effort": "none"}), false, Some("none"), None),
            (json!({"enabled": true}), true, None, None),
            (
                json!({"enabled": false, "effort": "low"}),
                false,
                Some("low"),
                None,
            ),
            (json!({"max_tokens": 9}), true, None, Some(9)),
            (json!({"max_tokens": 0}), false, None, Some(0)),
        ] {
            let request = request(reasoning.clone());
            assert_eq!(request.thinks(), thinks, "{reasoning}");
            assert_eq!(request.effort(), effort, "{reasoning}");
            assert_eq!(request.thinking_budget(), budget, "{reasoning}");
        }
        let hidden = request(json!({"exclude": true})).template_input(true);
        let error = hidden.unwrap_err();
        assert!(error.message.contains("`reasoning.exclude`"), "{error}");
    }

    #[test]
    fn older_tools_are_read_or_refused_by_name() {
        let offers = |fields: Value| {
            let mut request = json!({"messages": [{"role": "user", "content": "Hi"}]});
            let request_fields = request.as_object_mut().unwrap();
            request_fields.extend(fields.as_object().unwrap().clone());
            let request: ChatRequest = serde_json::from_value(request).unwrap();
            let tools = request.offers()?;
            Ok::<_, Error>((
                tools.offered.len(),
                tools.choice,
                request.wants_function_call(),
            ))
        };
        let functions = json!([{"name": "look"}]);
        let tools = json!([{"type": "function", "function": {"name": "look"}}]);
        for (fields, expected) in [
            (json!({"functions": functions}), (1, "auto", true)),
            (
                json!({"functions": functions, "tools": []}),
                (1, "auto", true),
            ),
            (
                json!({"functions": functions, "function_call": {"name": "look"}}),
                (1, "required", true),
            ),
            (
                json!({"functions": functions, "tool_choice": "none"}),
                (1, "none", true),
            ),
            (
                json!({"tools": tools, "functions": null, "function_call": null}),
                (1, "auto", false),
            ),
            (json!({"function_call": "none"}), (0, "auto", false)),
        ] {
            assert_eq!(offers(fields.clone()).unwrap(), expected, "{fields}");
        }
        for (fields, named) in [
            (
                json!({"tools": tools, "function_call": "auto"}),
                "`function_call`",
            ),
            (
                json!({"tools": tools, "functions": functions}),
                "`functions`",
            ),
            (
                json!({"function_call": {"name": "look"}}),
                "`function_call`",
            ),
        ] {
            let error = offers(fields).unwrap_err();
            assert_eq!(error.code, Code::BadRequest);
            assert!(error.message.contains(named), "{error}");
        }
    }

    #[test]
    fn biases_are_an_object_or_pairs() {
        let never = f32::NEG_INFINITY;
        for (value, expected) in [
            (json!({"7": 1.5}), vec![(7, 1.5)]),
            (json!([[7, 1.5], ["3", false]]), vec![(7, 1.5), (3, never)]),
            (json!(null), Vec::new()),
        ] {
            let read = options(json!({"logit_bias": value})).biases(10).unwrap();
            assert_eq!(read, expected);
        }
        for wrong in [json!([7]), json!([[7]]), json!("7"), json!({"7": "x"})] {
            let read = serde_json::from_value::<Options>(json!({"logit_bias": wrong}));
            let message = read.unwrap_err().to_string();
            assert!(message.contains("`logit_bias`"), "{message}");
        }
    }

    #[test]
    fn the_limits_of_an_answer_agree() {
        let both = |min: usize| options(json!({"min_tokens": min, "max_tokens": 4})).min_tokens();
        assert_eq!(both(4).unwrap(), 4);
        assert!(both(5).unwrap_err().message.contains("`min_tokens`"));
        for form in [
            json!({"min_tokens": 2, "guided_choice": ["a"]}),
            json!({"min_tokens": 2, "grammar": "root ::= \"a\""}),
            json!({"min_tokens": 2, "response_format": {"type": "json_object"}}),
        ] {
            let error = options(form).min_tokens().unwrap_err();
            assert!(error.message.contains("`min_tokens`"), "{error}");
        }
        for free in [
            json!({"min_tokens": 0, "guided_choice": ["a"]}),
            json!({"min_tokens": 0, "response_format": {"type": "text"}}),
        ] {
            assert_eq!(options(free).min_tokens().unwrap(), 0);
        }
        let stops = |ids: Value| options(json!({"stop_token_ids": ids})).stop_tokens(10);
        assert_eq!(stops(json!([9])).unwrap(), [9]);
        for unknown in [10, -1] {
            let error = stops(json!([unknown])).unwrap_err();
            assert!(error.message.contains("`stop_token_ids`"), "{error}");
        }
    }

    #[test]
    fn a_prompt_is_scored_if_it_is_echoed_or_asked_for() {
        for (value, expected) in [
            (json!({"logprobs": 1}), None),
            (json!({"logprobs": 1, "echo": true}), Some(1)),
            (json!({"echo": true}), None),
            (json!({"prompt_logprobs": 0}), Some(0)),
            (
                json!({"prompt_logprobs": 5, "logprobs": 2, "echo": true}),
                Some(5),
            ),
        ] {
            let read = options(value.clone()).prompt_probabilities().unwrap();
            assert_eq!(read, expected, "{value}");
        }
        let streamed = json!({"prompt_logprobs": 1, "stream": true});
        assert!(options(streamed).prompt_probabilities().is_err());
        assert!(options(json!({"prompt_logprobs": 1})).check_chat().is_err());
    }

    #[test]
    fn a_repetition_penalty_looks_at_everything() {
        let read = |request: Value| {
            let sampling = options(request).sampling(10, OwnSampling::default());
            let sampling = sampling.unwrap();
            (sampling.repeat_penalty, sampling.repeat_last_n)
        };
        let everything = (1.2, FAR_BACK);
        assert_eq!(read(json!({"repetition_penalty": 1.2})), everything);
        let all = json!({"repeat_penalty": 1.2, "repeat_last_n": -1});
        assert_eq!(read(all), everything);
        let last = json!({"repetition_penalty": 1.2, "repeat_last_n": 9});
        assert_eq!(read(last), (1.2, 9));
    }

    #[test]
    fn unbounded_requests_are_refused() {
        assert!(options(json!({"n": 17})).answers().is_err());
        assert!(options(json!({"n": 0})).answers().is_err());
        assert!(options(json!({"n": 1, "best_of": 3})).answers().is_err());
        assert_eq!(options(json!({"n": 3})).answers().unwrap(), 3);
        assert!(options(json!({"stop": vec!["x"; 10_000]})).stops().is_err());
        assert!(
            options(json!({"stop": ["x".repeat(20_000)]}))
                .stops()
                .is_err()
        );
        assert!(
            options(json!({"top_logprobs": 101, "logprobs": true}))
                .log_probabilities()
                .is_err()
        );
    }

    #[test]
    fn log_probabilities_work_in_each_form() {
        for (value, expected) in [
            (json!({}), None),
            (json!({"logprobs": false, "top_logprobs": 5}), None),
            (json!({"logprobs": true}), Some(0)),
            (json!({"logprobs": true, "top_logprobs": 5}), Some(5)),
            (json!({"logprobs": 3}), Some(3)),
            (json!({"n_probs": 2}), Some(2)),
            (json!({"n_probs": 0}), None),
        ] {
            let requested = options(value.clone()).log_probabilities().unwrap();
            assert_eq!(requested, expected, "{value}");
        }
    }
}
