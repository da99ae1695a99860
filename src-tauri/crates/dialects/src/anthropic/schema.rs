//! Anthropic's answers and errors as the API's description shows them; the request is described where it is read.

// These types describe; nothing builds them.
#![allow(dead_code)]

use super::request::MessageFields;
use crate::openai::schema::KeepAlive;
use serde_json::Value;
use std::collections::BTreeMap;
use tierbar_http::constant;
use utoipa::{ToResponse, ToSchema};

/// A request for a message. Other fields, such as llama-server's, are passed to the model's server.
#[derive(Debug, ToSchema)]
pub struct MessagesRequest {
    #[serde(flatten)]
    translated: MessageFields,
    /// Whether to answer as Anthropic's events.
    stream: Option<bool>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<i64>,
    keep_alive: Option<KeepAlive>,
}

/// A message of the assistant's.
#[derive(Debug, ToSchema)]
pub struct MessagesAnswer {
    id: String,
    #[schema(rename = "type", inline)]
    kind: MessageType,
    #[schema(inline)]
    role: AssistantRole,
    /// The model that answered.
    model: String,
    /// Blocks: `thinking`, `text` and `tool_use`.
    #[schema(value_type = Vec<Object>)]
    content: Value,
    /// `end_turn`, `max_tokens`, `stop_sequence`, `tool_use` or `refusal`.
    stop_reason: Option<String>,
    /// The sequence that ended the answer.
    stop_sequence: Option<String>,
    usage: MessageUsage,
    /// For chains: which tiers were tried, and why others did not answer. `left_out` names what no model here could read or call.
    #[schema(value_type = Object, required = false)]
    tierbar: Value,
}

constant!(MessageType = "message");
constant!(AssistantRole = "assistant");

/// How many tokens a message took.
#[derive(Debug, ToSchema)]
struct MessageUsage {
    /// Tokens that prefill read.
    input_tokens: u64,
    /// Always 0.
    cache_creation_input_tokens: u64,
    /// Tokens that were already in memory.
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

/// How many tokens a message's prompt has.
#[derive(Debug, ToSchema)]
pub struct TokenCount {
    input_tokens: u64,
}

/// An error in Anthropic's form.
#[derive(Debug, ToSchema)]
#[schema(as = AnthropicError)]
pub struct ErrorBody {
    #[schema(rename = "type", inline)]
    kind: ErrorType,
    #[schema(inline)]
    error: ErrorFields,
    request_id: Option<String>,
}

constant!(ErrorType = "error");

#[derive(Debug, ToSchema)]
struct ErrorFields {
    /// Anthropic's kind of error.
    #[schema(rename = "type", examples("invalid_request_error"))]
    kind: String,
    /// What happened, and what to do.
    message: String,
    /// The stable code; clients may match on it.
    #[schema(examples("context_length_exceeded"))]
    code: String,
    /// What to do.
    #[schema(required = false)]
    hint: String,
    /// The figures of the message, such as `prompt_tokens`.
    #[serde(flatten)]
    figures: BTreeMap<String, Value>,
}

/// The request was refused or failed, in Anthropic's form.
#[derive(Debug, ToResponse)]
pub(crate) struct AnthropicRefusal(ErrorBody);
