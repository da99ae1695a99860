//! A request of the Responses API as one for a chat.

use super::{messages::Messages, schema, tools::Tools};
use crate::openai::stores::FileSearchResults;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tierbar_core::{Code, Error, bad_request};
use tierbar_documents::answer::{BESIDE, NOTHING_FOUND};
use tierbar_request_fields::{self as fields, Table};
use utoipa::ToSchema;

/// The fields of a request that are translated.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct ResponseFields {
    /// A tier, a chain, a model's id, or `auto`, which is the default.
    #[schema(examples("auto"))]
    model: Option<String>,
    #[schema(value_type = Option<schema::ResponseInput>)]
    input: Option<Value>,
    /// The system message: a text, or items.
    #[serde(default)]
    #[schema(value_type = Option<schema::ResponseInput>)]
    instructions: Value,
    /// Functions that the model may call, and `file_search`. Other tools are left out.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Value>>,
    /// `auto`, `none`, `required`, a function, or `allowed_tools`.
    tool_choice: Option<Value>,
    #[schema(inline)]
    text: Option<Text>,
    #[schema(inline)]
    reasoning: Option<Reasoning>,
    max_output_tokens: Option<u64>,
    /// `message.output_text.logprobs` for the log probabilities of the answer's tokens, `file_search_call.results` for the passages
    /// that were found.
    include: Option<Vec<String>>,
    /// The number of alternatives to each token.
    top_logprobs: Option<u64>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    /// Refused if true.
    background: Option<bool>,
    /// Passed to the model's server.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The form of the answer.
#[derive(Debug, Deserialize, ToSchema)]
struct Text {
    /// `text`, `json_object` or `json_schema`, with its `name` and `schema`.
    #[schema(value_type = Option<Object>)]
    format: Option<Value>,
    verbosity: Option<Value>,
}

/// How the model thinks.
#[derive(Debug, Deserialize, ToSchema)]
struct Reasoning {
    /// How much, such as `low` or `high`.
    effort: Option<Value>,
}

/// What a chat knows nothing of, or takes for something else.
const DROPPED: [&str; 14] = [
    "access_programs",
    "background_options",
    "client_metadata",
    "context_management",
    "image",
    "max_tool_calls",
    "messages",
    "moderation",
    // There is one answer.
    "n",
    "prompt_cache_options",
    "prompt_cache_retention",
    "store",
    "stream_options",
    "truncation",
];

/// What a response can be asked to hold beside its text. All but the log probabilities and the passages that were found are of tools
/// that run elsewhere, or of reasoning that is hidden there.
const INCLUDABLE: [&str; 8] = [
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    "message.output_text.logprobs",
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
];

/// What only a server that keeps responses could follow, and what to send instead.
const KEPT_ELSEWHERE: [(&str, &str); 2] = [
    ("conversation", "send the whole conversation in `input`"),
    ("prompt", "send its text in `instructions` or `input`"),
];

/// What an answer repeats of its request.
#[derive(Debug, Default)]
pub(super) struct Echo {
    /// As it was named; empty for none.
    pub(super) model: String,
    /// The fields of a response that are settled when it begins.
    pub(super) fields: Map<String, Value>,
}

impl ResponseFields {
    /// Refuses what needs a response that is stored.
    fn refuse_stored(&mut self) -> Result<(), Error> {
        if let Some(id) = self.rest.shift_remove("previous_response_id")
            && !id.is_null()
        {
            return Err(no_previous(&id));
        }
        for (field, instead) in KEPT_ELSEWHERE {
            let value = self.rest.shift_remove(field);
            if value.is_some_and(|value| !value.is_null()) {
                let message = format!("`{field}` is not supported: responses are not stored here");
                return Err(bad_request(message).hint(instead));
            }
        }
        if self.background == Some(true) {
            return Err(no_background());
        }
        Ok(())
    }

    /// Refuses what no version of the API has.
    fn check_included(&self) -> Result<(), Error> {
        let asked = self.include.iter().flatten();
        let mut unknown = asked.filter(|one| !INCLUDABLE.contains(&one.as_str()));
        let Some(unknown) = unknown.next() else {
            return Ok(());
        };
        Err(bad_request(format!("`include` has \"{unknown:.100}\""))
            .hint(format!("send some of {}", INCLUDABLE.join(", "))))
    }

    /// The chat that says the same. `table`: the fields of the request's path. `continues`: the id of the response whose conversation is
    /// part of the input. `searched`: what was found for it in documents.
    pub(super) fn into_chat(
        mut self,
        table: &Table,
        continues: Option<&str>,
        searched: Option<&FileSearchResults>,
    ) -> Result<(Value, Echo), Error> {
        self.refuse_stored()?;
        fields::check(&[table, &fields::FOREIGN_TO_RESPONSES], &self.rest)?;
        self.check_included()?;
        let tools = Tools::read(
            self.tools.unwrap_or_default(),
            self.tool_choice,
            searched.is_some(),
        )?;
        let mut messages = Messages::default();
        messages.instruct(&self.instructions)?;
        match searched.map(|searched| &searched.passages) {
            None => messages.read(self.input)?,
            Some(passages) if passages.is_empty() => {
                messages.add("system", json!(NOTHING_FOUND));
                messages.read(self.input)?;
            }
            Some(passages) => {
                messages.add("system", json!(BESIDE));
                messages.read(self.input)?;
                messages.quote(passages);
            }
        }

        let field = |key: &str| self.rest.get(key).cloned().unwrap_or_default();
        let effort = self.reasoning.and_then(|reasoning| reasoning.effort);
        let format = self.text.as_ref().and_then(|text| text.format.clone());
        let verbosity = self.text.and_then(|text| text.verbosity);
        let mut left_out = tools.left_out;
        left_out.append(&mut messages.left_out);
        let echo = json!({
            "background": false,
            "frequency_penalty": field("frequency_penalty"),
            "instructions": self.instructions,
            "max_output_tokens": self.max_output_tokens,
            "max_tool_calls": field("max_tool_calls"),
            "metadata": self.metadata.unwrap_or_else(|| json!({})),
            "parallel_tool_calls": field("parallel_tool_calls").as_bool().unwrap_or(true),
            "presence_penalty": field("presence_penalty"),
            "previous_response_id": continues,
            "prompt_cache_key": field("prompt_cache_key"),
            "reasoning": {"effort": effort, "summary": null},
            "safety_identifier": field("safety_identifier"),
            // There is one, whichever is asked for.
            "service_tier": "default",
            "store": false,
            "temperature": field("temperature"),
            "text": text_echo(format.as_ref(), verbosity.as_ref()),
            "tool_choice": tools.choice_echo,
            "tools": tools.kept,
            "top_logprobs": self.top_logprobs.unwrap_or(0),
            "top_p": field("top_p"),
            "truncation": "disabled",
            "user": field("user"),
            "tierbar": {"left_out": left_out},
        });

        let mut chat = self.rest;
        for key in DROPPED {
            chat.shift_remove(key);
        }
        let asks = |include: &Vec<String>| include.iter().any(|one| one.ends_with(".logprobs"));
        let logprobs = self.include.as_ref().is_some_and(asks) || self.top_logprobs > Some(0);
        for (key, value) in [
            ("model", json!(self.model)),
            ("max_tokens", json!(self.max_output_tokens)),
            ("logprobs", json!(logprobs.then_some(true))),
            (
                "top_logprobs",
                json!(self.top_logprobs.filter(|_| logprobs)),
            ),
            ("reasoning_effort", json!(effort)),
            ("verbosity", json!(verbosity)),
            (
                "response_format",
                format.map_or(Ok(Value::Null), response_format)?,
            ),
            (
                "tools",
                json!((!tools.offered.is_empty()).then_some(tools.offered)),
            ),
            ("tool_choice", tools.choice),
            ("messages", json!(messages.list)),
            // Where the figures of a stream come from.
            ("stream_options", json!({"include_usage": true})),
        ] {
            if !value.is_null() {
                chat.insert(key.to_owned(), value);
            }
        }
        if chat.get("stream") != Some(&Value::Bool(true)) {
            chat.shift_remove("stream_options");
        }
        let Value::Object(fields) = echo else {
            return Err(Error::new(Code::Internal, "a response has no fields"));
        };
        let model = self.model.unwrap_or_default();
        Ok((Value::Object(chat), Echo { model, fields }))
    }
}

/// As the request has it. Without a verbosity, the model's own is used, which has no name.
fn text_echo(format: Option<&Value>, verbosity: Option<&Value>) -> Value {
    let mut text = json!({"format": format.cloned().unwrap_or_else(|| json!({"type": "text"}))});
    if let Some(verbosity) = verbosity.filter(|verbosity| !verbosity.is_null()) {
        text["verbosity"] = verbosity.clone();
    }
    text
}

/// A format's fields stand beside its type here, and in an object of their own in a chat.
fn response_format(mut format: Value) -> Result<Value, Error> {
    let kind = format.get("type").and_then(Value::as_str);
    match (kind, format.get("schema")) {
        (Some("text"), _) => Ok(Value::Null),
        (Some("json_object"), _) => Ok(json!({"type": "json_object"})),
        (Some("json_schema"), Some(Value::Object(_))) => {
            if let Some(format) = format.as_object_mut() {
                format.shift_remove("type");
            }
            Ok(json!({"type": "json_schema", "json_schema": format}))
        }
        _ => Err(bad_request(
            "`text.format` must be {\"type\": \"text\"}, {\"type\": \"json_object\"} or {\"type\": \"json_schema\", \"name\": …, \"schema\": …}",
        )),
    }
}

/// The error of a `previous_response_id` whose response is not in memory.
pub(super) fn no_previous(id: &Value) -> Error {
    let id = id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    let message = format!(
        "`previous_response_id` is \"{id:.100}\", and that response is not in memory: responses are not stored"
    );
    Error::new(Code::PreviousResponseNotFound, message).hint(
        "send the whole conversation in `input`, with the `output` of the responses before; over a WebSocket, the last \
         response can be continued",
    )
}

/// The error of a response that is to be answered later: it could be neither metered nor canceled.
pub(super) fn no_background() -> Error {
    bad_request("`background` is not supported: a response is answered at once")
        .hint("leave it out, and read the answer as a stream")
}
