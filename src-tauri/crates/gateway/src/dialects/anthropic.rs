//! Anthropic's dialect: `/v1/messages`, turned into a chat of OpenAI's and back; and, in [`upstream`], the other way round,
//! where a server that speaks it answers for a tier.
//!
//! Shapes: Anthropic's API reference, "Messages", "Streaming messages" and "Count message tokens".

mod answer;
mod ask;
mod calls;
mod content;
mod failure;
pub(crate) mod schema;
mod stream;
mod tools;

use crate::{
    dialects::respond::respond,
    http::{
        body,
        error::{ErrorForm, Failure},
        schema::{Queued, RequestHeaders},
    },
    inference::{
        CHAT, Inference,
        clouds::anthropic::{COUNT, MESSAGES},
        hints::Hints,
        relay,
        request::Request,
    },
};
use answer::AnswerWriter;
use ask::Ask;
use axum::{Json, body::Body, extract::State, response::Response};
use schema::{Errors, MessagesAnswer, MessagesRequest, TokenCount};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::OpenApi;
use utoipa_axum::{router::OpenApiRouter, routes};

#[derive(OpenApi)]
#[openapi(components(schemas(schema::ErrorBody), responses(schema::AnthropicRefusal)))]
struct Components;

pub(crate) fn routes() -> OpenApiRouter<Arc<Inference>> {
    OpenApiRouter::with_openapi(Components::openapi())
        .routes(routes!(messages))
        .routes(routes!(count))
}

/// Errors on these paths, as Anthropic's clients read them.
pub(crate) const ERRORS: ErrorForm = ErrorForm {
    is_path,
    body: failure::error_body,
};

fn is_path(path: &str) -> bool {
    path == MESSAGES || path == COUNT
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
    let ask: Ask = body::request(body).await?;
    let writer = AnswerWriter::new(ask.model());
    let chat = Request::of(CHAT, hints, ask.into_chat()?.into())?;
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
    let ask: Ask = body::request(body).await?;
    let chat = ask.into_chat()?;
    let counted = relay::count(inference, hints, chat.into()).await?;
    Ok(Json(json!({"input_tokens": counted})))
}

#[cfg(test)]
mod tests;
