//! Responses as the API's description shows them; the request is described where it is read.

// These types describe; nothing builds them.
#![allow(dead_code)]

use super::request::ResponseFields;
use crate::openai::schema::KeepAlive;
use serde_json::Value;
use tierbar_http::constant;
use utoipa::ToSchema;

/// A request for a response. Other fields, such as llama-server's, are passed to the model's server.
#[derive(Debug, ToSchema)]
pub(super) struct ResponsesRequest {
    #[serde(flatten)]
    translated: ResponseFields,
    /// Whether to answer as the response's events.
    stream: Option<bool>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    parallel_tool_calls: Option<bool>,
    keep_alive: Option<KeepAlive>,
}

/// A text, or items: messages, calls of functions and their results, and thoughts.
#[derive(Debug, ToSchema)]
#[schema(as = ResponseInput)]
#[serde(untagged)]
pub enum Input {
    Text(String),
    #[schema(value_type = Vec<Object>)]
    Items(Value),
}

/// A response. It also repeats the request's settings, such as `instructions`, `tools` and `text`.
#[derive(Debug, ToSchema)]
#[schema(as = Response)]
pub(super) struct ResponseBody {
    id: String,
    #[schema(inline)]
    object: ResponseObject,
    /// In seconds since 1970.
    created_at: u64,
    completed_at: Option<u64>,
    #[schema(inline)]
    status: ResponseStatus,
    /// Why the response failed.
    #[schema(value_type = Option<Object>)]
    error: Value,
    /// The `reason` why the response is incomplete: `max_output_tokens` or `content_filter`.
    #[schema(value_type = Option<Object>)]
    incomplete_details: Value,
    /// The model that answered.
    model: String,
    /// Items: `file_search_call`, `reasoning`, `message` and `function_call`.
    #[schema(value_type = Vec<Object>)]
    output: Value,
    usage: Option<ResponseUsage>,
    /// Always false: responses are not stored.
    store: bool,
    #[schema(inline)]
    tierbar: ResponseOmissions,
}

constant!(ResponseObject = "response");

#[derive(Debug, ToSchema)]
#[schema(rename_all = "snake_case")]
enum ResponseStatus {
    InProgress,
    Completed,
    Incomplete,
    Failed,
}

/// How many tokens a response took.
#[derive(Debug, ToSchema)]
struct ResponseUsage {
    input_tokens: u64,
    /// `cached_tokens` and `cache_write_tokens`.
    #[schema(value_type = Object)]
    input_tokens_details: Value,
    output_tokens: u64,
    /// `reasoning_tokens`.
    #[schema(value_type = Object)]
    output_tokens_details: Value,
    total_tokens: u64,
}

/// What was not passed to the model, and for chains which tiers were tried.
#[derive(Debug, ToSchema)]
struct ResponseOmissions {
    #[schema(examples(json!(["tools[1]: web_search"])))]
    left_out: Vec<String>,
}

/// How many tokens a response's prompt has.
#[derive(Debug, ToSchema)]
pub(super) struct ResponseTokenCount {
    #[schema(inline)]
    object: CountObject,
    input_tokens: u64,
}

constant!(CountObject = "response.input_tokens");

/// A conversation to be sent as `input` in the place of the one that was compacted.
#[derive(Debug, ToSchema)]
pub struct CompactedResponse {
    id: String,
    #[schema(inline)]
    object: CompactionObject,
    /// In seconds since 1970.
    created_at: u64,
    /// Messages and calls that are kept, and a `compaction`, whose `encrypted_content` holds the summary.
    #[schema(value_type = Vec<Object>)]
    output: Value,
    usage: ResponseUsage,
    /// `left_out`, and `fallback` if the summary was made by rule.
    #[schema(value_type = Object)]
    tierbar: Value,
}

constant!(CompactionObject = "response.compaction");
