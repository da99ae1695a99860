//! Anthropic's dialect: `/v1/messages`, turned into a chat of OpenAI's and back; and, in [`upstream`], the other way round,
//! where a server that speaks it answers for a tier.
//!
//! Shapes: Anthropic's API reference, "Messages", "Streaming messages" and "Count message tokens".

mod answer;
mod calls;
mod content;
mod failure;
pub(crate) mod models;
mod request;
pub(crate) mod schema;
mod stream;
mod tools;

pub(crate) use content::part_of_block;

use crate::{
    dialects::respond::respond,
    http::{
        body,
        error::{ErrorForm, Failure},
        routes::{described_router, routes},
        schema::{Queued, RequestHeaders},
    },
    inference::{
        CHAT, Inference,
        clouds::anthropic::{COUNT, MESSAGES},
        dispatch,
        hints::Hints,
        request::Request,
    },
};
use answer::AnswerWriter;
use axum::{Json, body::Body, extract::State, http::HeaderMap, response::Response};
use request::MessageFields;
use schema::{Errors, MessagesAnswer, MessagesRequest, TokenCount};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

/// The header that all of Anthropic's clients send.
pub(crate) const VERSION: &str = "anthropic-version";

#[derive(OpenApi)]
#[openapi(components(schemas(schema::ErrorBody), responses(schema::AnthropicRefusal)))]
struct Components;

pub(crate) fn routes() -> OpenApiRouter<Arc<Inference>> {
    described_router::<Components, _>()
        .routes(routes!(messages))
        .routes(routes!(count))
}

/// Errors on these paths, as Anthropic's clients read them.
pub(crate) const ERRORS: ErrorForm = ErrorForm {
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
    tag = "anthropic",
    operation_id = "message",
    params(RequestHeaders),
    request_body = MessagesRequest,
    responses(
        (
            status = 200,
            description = "The message",
            content((MessagesAnswer = "application/json"), ("text/event-stream")),
        ),
        (status = 202, response = Queued),
        Errors,
    ),
)]
async fn messages(
    State(inference): State<Arc<Inference>>,
    hints: Hints,
    body: Body,
) -> Result<Response, Failure> {
    let request: MessageFields = body::request(body).await?;
    let writer = AnswerWriter::new(request.model()).without(request.left_out());
    let chat = Request::of(CHAT, hints, request.into_chat()?.into())?;
    Ok(respond(&inference, chat, |_| writer).await)
}

/// Counts the tokens of a message's prompt.
#[utoipa::path(
    post,
    path = COUNT,
    tag = "anthropic",
    operation_id = "countTokens",
    params(RequestHeaders),
    request_body = MessagesRequest,
    responses(
        (status = 200, description = "The count", body = TokenCount),
        (status = 202, response = Queued),
        Errors,
    ),
)]
async fn count(
    State(inference): State<Arc<Inference>>,
    hints: Hints,
    body: Body,
) -> Result<Json<Value>, Failure> {
    let request: MessageFields = body::request(body).await?;
    let chat = request.into_counted()?;
    let counted = dispatch::count(inference, hints, chat.into()).await?;
    Ok(Json(json!({"input_tokens": counted})))
}

#[cfg(test)]
mod tests;
