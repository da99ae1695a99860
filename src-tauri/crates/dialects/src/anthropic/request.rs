//! A request of Anthropic's as one of OpenAI's.

use super::{
    content::{self, Content, LeftOut},
    tools,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tierbar_core::{Error, bad_request};
use tierbar_request_fields::{self as fields, Table};
use utoipa::ToSchema;

/// The most letters of a user's identifier that OpenAI's servers take.
const LONGEST_USER: usize = 64;

/// The fields of a request that are translated.
#[derive(Debug, Deserialize, ToSchema)]
pub struct MessageFields {
    /// A tier, a chain, a model's id, or `auto`, which is the default.
    #[schema(examples("auto"))]
    model: Option<String>,
    #[schema(inline)]
    messages: Vec<Message>,
    /// The system message.
    system: Option<Content>,
    #[schema(value_type = Option<i64>)]
    max_tokens: Option<Value>,
    /// Strings that end the answer.
    #[schema(value_type = Option<Vec<String>>)]
    stop_sequences: Option<Value>,
    /// Tools with an `input_schema`. Those that Anthropic's servers would run are left out.
    #[schema(value_type = Option<Vec<Object>>)]
    tools: Option<Vec<Value>>,
    #[schema(inline)]
    tool_choice: Option<tools::Choice>,
    #[schema(inline)]
    thinking: Option<Thinking>,
    #[schema(inline)]
    output_config: Option<OutputConfig>,
    /// The older name of `output_config.format`.
    #[schema(value_type = Option<Object>)]
    output_format: Option<Value>,
    /// Passed to the model's server.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// A message of the user's or the assistant's.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Message {
    role: String,
    content: Content,
}

/// Whether the model thinks before it answers.
#[derive(Debug, Deserialize, ToSchema)]
struct Thinking {
    /// `enabled`, `adaptive`, `between_tools` (as `adaptive`) or `disabled`.
    #[serde(rename = "type")]
    kind: String,
    /// The most tokens of thoughts.
    budget_tokens: Option<i64>,
}

/// The form of the answer, and how much the model thinks.
#[derive(Debug, Default, Deserialize, ToSchema)]
struct OutputConfig {
    /// `json_schema`, with its `schema`.
    #[schema(value_type = Option<Object>)]
    format: Option<Value>,
    effort: Option<Value>,
}

impl MessageFields {
    /// What the model cannot read or call.
    pub(super) fn left_out(&self) -> Vec<LeftOut> {
        let tools = tools::left_out(self.tools.as_deref().unwrap_or_default());
        let tools = tools.into_iter().map(|what| LeftOut {
            what,
            is_file: false,
        });
        let mut left_out: Vec<_> = tools.collect();
        for (index, message) in self.messages.iter().enumerate() {
            let place = format!("messages[{index}].content");
            let blocks = message.content.blocks();
            content::add_left_out(&place, blocks, &mut left_out);
        }
        left_out
    }

    /// The chat of OpenAI's that says the same. `table`: the fields of its path.
    pub(super) fn into_chat(self, table: &Table) -> Result<Map<String, Value>, Error> {
        // A thread continues what Anthropic's servers have stored. The package sends the whole conversation after this error.
        let thread = self.rest.get("thread");
        if thread.is_some_and(|thread| !thread.is_null() && *thread != Value::Bool(false)) {
            let message = "`thread` is not supported: conversations are not stored here";
            return Err(bad_request(message)
                .hint("send the whole conversation")
                .detail(
                    "details",
                    json!({"error_code": "thread_unsupported_request", "unsupported": ["thread"]}),
                ));
        }
        fields::check(&[table, &fields::FOREIGN_TO_MESSAGES], &self.rest)?;
        if let Some(thinking) = &self.thinking {
            thinking.check()?;
        }
        let mut chat = self.rest;
        let user = chat.get("metadata").and_then(user);
        let service_tier = chat.get("service_tier").and_then(service_tier);
        // OpenAI's servers do not know these, or take them for something else.
        for key in fields::MESSAGES.not_honored() {
            chat.shift_remove(key);
        }
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value.filter(|value| !value.is_null()) {
                chat.insert(key.to_owned(), value);
            }
        };
        put("model", self.model.map(Value::from));
        put("max_tokens", self.max_tokens);
        put("stop", self.stop_sequences);
        put("user", user);
        put("service_tier", service_tier);
        let tools = self.tools.as_deref().unwrap_or_default();
        let functions = tools::functions(tools)?;
        if let Some(choice) = &self.tool_choice {
            let made = choice.openai()?;
            choice.check(functions.as_ref(), tools)?;
            // OpenAI's servers refuse both without tools.
            if functions.is_some() {
                put("tool_choice", Some(made));
                put("parallel_tool_calls", choice.parallel().map(Value::from));
            }
        }
        put("tools", functions);
        let OutputConfig { format, effort } = self.output_config.unwrap_or_default();
        match self.thinking {
            Some(thinking) => {
                put("think", Some((thinking.kind != "disabled").into()));
                let budget = thinking.budget_tokens;
                put("thinking_budget_tokens", budget.map(Value::from));
            }
            // An effort alone does not turn reasoning on, but OpenAI's servers take it for that.
            None => put("think", effort.as_ref().map(|_| false.into())),
        }
        put("reasoning_effort", effort);
        if let Some(format) = format.or(self.output_format) {
            put("response_format", Some(response_format(&format)?));
        }
        let messages = openai_messages(self.system, self.messages)?;
        // A prefilled answer: the model continues it.
        let thinks = chat.get("think") == Some(&Value::Bool(true));
        if !thinks && messages.last().is_some_and(is_begun) {
            // vLLM wants both.
            chat.insert("continue_final_message".to_owned(), true.into());
            chat.insert("add_generation_prompt".to_owned(), false.into());
        }
        chat.insert("messages".to_owned(), messages.into());
        if chat.get("stream") == Some(&Value::Bool(true)) {
            // Where the figures of a stream come from. Refused without one.
            let figures = json!({"include_usage": true});
            chat.insert("stream_options".to_owned(), figures);
        }
        Ok(chat)
    }
}

impl Thinking {
    /// Refuses a type that no version of the API has.
    fn check(&self) -> Result<(), Error> {
        const KINDS: [&str; 4] = ["enabled", "adaptive", "between_tools", "disabled"];
        if KINDS.contains(&self.kind.as_str()) {
            return Ok(());
        }
        let message = format!("`thinking.type` is \"{:.40}\"", self.kind);
        Err(bad_request(message).hint(format!("send one of {}", KINDS.join(", "))))
    }
}

fn user(metadata: &Value) -> Option<Value> {
    let user = metadata["user_id"].as_str()?;
    let fits = (1..=LONGEST_USER).contains(&user.chars().count());
    fits.then(|| user.into())
}

fn service_tier(tier: &Value) -> Option<Value> {
    match tier.as_str()? {
        "auto" => Some("auto".into()),
        "standard_only" => Some("default".into()),
        _ => None,
    }
}

fn openai_messages(system: Option<Content>, from: Vec<Message>) -> Result<Vec<Value>, Error> {
    let mut messages = Vec::new();
    if let Some(system) = system {
        messages.push(json!({"role": "system", "content": system.text()?}));
    }
    let last = from.iter().rposition(|message| message.role == "user");
    for (index, message) in from.into_iter().enumerate() {
        let place = format!("messages[{index}].content");
        content::check_kinds(&place, message.content.blocks())?;
        let rendered = messages.len();
        if message.role == "system" && !messages.is_empty() {
            content::remind(&message.content.text()?, &mut messages);
            continue;
        }
        content::into_messages(&message.role, message.content, &mut messages)?;
        if last == Some(index) && messages.len() == rendered {
            let message = "the last user message has no content that a model can read here";
            return Err(bad_request(message).hint("send text, images or tool results"));
        }
    }
    Ok(messages)
}

fn is_begun(message: &Value) -> bool {
    message["role"] == "assistant"
        && message.get("tool_calls").is_none()
        && message["content"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
}

fn response_format(format: &Value) -> Result<Value, Error> {
    let schema = format.get("schema");
    match (format.get("type").and_then(Value::as_str), schema) {
        (Some("json_schema"), Some(schema)) => {
            Ok(json!({"type": "json_schema", "json_schema": {"name": "output", "schema": schema}}))
        }
        _ => Err(bad_request(
            "the output format must be {\"type\": \"json_schema\", \"schema\": …}",
        )),
    }
}

#[cfg(test)]
mod tests;
