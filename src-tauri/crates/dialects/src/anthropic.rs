//! Anthropic's dialect: `/v1/messages`. A server that speaks it gets the request as it came, and its answer passes; for all others, it
//! is turned into a chat of OpenAI's and back.
//!
//! Shapes: Anthropic's API reference, "Messages", "Streaming messages" and "Count message tokens".

pub mod answer;
mod calls;
pub mod content;
mod failure;
pub mod models;
mod original;
pub mod request;
pub mod schema;
mod stream;
mod tools;

pub use content::part_of_block;

use crate::respond::respond;
use answer::AnswerWriter;
use axum::{
    Json,
    body::{Body, Bytes},
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use request::MessageFields;
use schema::{MessagesAnswer, MessagesRequest, TokenCount};
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::Error;
use tierbar_http::{
    InferenceCall,
    error::{ErrorForm, Failure},
    mount::Routes,
    routes,
};
use tierbar_inference::{
    CHAT, Inference, body,
    clouds::anthropic::{COUNT, MESSAGES},
    dispatch::{self, Count},
    original::Original,
    request::Request,
};
use tierbar_request_fields::{COUNT_TOKENS, MESSAGES as MESSAGE_FIELDS};
use utoipa::OpenApi;

/// The header that all of Anthropic's clients send.
pub const VERSION: &str = "anthropic-version";

#[derive(OpenApi)]
#[openapi(components(schemas(schema::AnthropicError), responses(schema::AnthropicRefusal)))]
struct Components;

pub fn routes() -> Routes<Arc<Inference>> {
    Routes::described::<Components>()
        .routes(routes!(messages))
        .routes(routes!(count))
}

/// Errors on these paths, as Anthropic's clients read them.
pub const ERRORS: ErrorForm = ErrorForm {
    is_path,
    body: failure::error_body,
};

/// Also with a wrong base URL, and of what it shares with OpenAI's, for its clients.
fn is_path(path: &str, headers: &HeaderMap) -> bool {
    if headers.contains_key(VERSION) {
        return true;
    }
    // Also what this API does not have, such as batches.
    path.match_indices(MESSAGES).any(|(at, found)| {
        let rest = &path[at + found.len()..];
        rest.is_empty() || rest.starts_with('/')
    })
}

/// Answers with a message in Anthropic's form, whole or as its events.
#[utoipa::path(
    post,
    path = MESSAGES,
    operation_id = "message",
    reach(Inference, Spends, Counts),
    request_body = MessagesRequest,
    responses((status = 200, description = "The message", content((MessagesAnswer = "application/json"), ("text/event-stream")))),
)]
async fn messages(
    InferenceCall(inference, hints, body): InferenceCall,
) -> Result<Response, Failure> {
    let bytes = body::read(body, body::INFERENCE_LIMIT).await?;
    let (original, fields) = read(MESSAGES, bytes)?;
    let mut writer = AnswerWriter::new(original::model(&original));
    writer.files_sent = original.files_sent.clone();
    let chat = fields.and_then(|message| {
        writer.left_out = message.left_out();
        message.into_chat(&MESSAGE_FIELDS)
    });
    let chat = Request::with_original(CHAT, hints, original, chat.map(Value::Object))?;
    Ok(respond(&inference, chat, |_| writer).await)
}

/// Counts the tokens of a message's prompt.
#[utoipa::path(
    post,
    path = COUNT,
    operation_id = "countTokens",
    reach(Inference, Spends, Counts),
    request_body = MessagesRequest,
    responses((status = 200, description = "The count", body = TokenCount)),
)]
async fn count(InferenceCall(inference, hints, body): InferenceCall) -> Result<Response, Failure> {
    let bytes = body::read(body, body::INFERENCE_LIMIT).await?;
    let (original, fields) = read(COUNT, bytes)?;
    let chat = fields.and_then(|message| message.into_chat(&COUNT_TOKENS));
    let counted =
        dispatch::count_original(&inference, hints, original, chat.map(Value::Object)).await?;
    Ok(match counted {
        Count::Tokens(tokens) => Json(json!({"input_tokens": tokens})).into_response(),
        Count::Passed(whole) => Response::from(whole).map(Body::new),
    })
}

/// Reads a request as it came, and its fields, of which the former takes its own copy first.
fn read(
    path: &'static str,
    bytes: Bytes,
) -> Result<(Original, Result<MessageFields, Error>), Error> {
    let original = original::read(path, bytes.clone())?;
    Ok((original, body::parse(&bytes)))
}
