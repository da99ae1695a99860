//! Anthropic's dialect: `/v1/messages`, turned into a chat of OpenAI's and back; and, in [`upstream`], the other way round,
//! where a server that speaks it answers for a tier.
//!
//! Shapes: Anthropic's API reference, "Messages", "Streaming messages" and "Count message tokens".

mod answer;
mod ask;
mod calls;
mod content;
mod failure;
mod stream;
mod tools;

use crate::{
    dialects::translate,
    http::{
        body,
        error::{ErrorForm, Failure},
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
use axum::{Json, Router, body::Body, extract::State, response::Response, routing::post};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<Inference>> {
    Router::new()
        .route(MESSAGES, post(messages))
        .route(COUNT, post(count))
}

/// Errors on these paths, as Anthropic's clients read them.
pub(crate) const ERRORS: ErrorForm = ErrorForm {
    is_path,
    body: failure::error_body,
};

fn is_path(path: &str) -> bool {
    path == MESSAGES || path == COUNT
}

async fn messages(
    State(inference): State<Arc<Inference>>,
    hints: Hints,
    body: Body,
) -> Result<Response, Failure> {
    let ask = read(body).await?;
    let writer = AnswerWriter::new(ask.model());
    let chat = Request::of(CHAT, hints, ask.into_chat()?.into())?;
    let answer = relay::send(inference, chat).await?;
    translate::translate(writer, answer).await
}

async fn count(
    State(inference): State<Arc<Inference>>,
    hints: Hints,
    body: Body,
) -> Result<Json<Value>, Failure> {
    let chat = read(body).await?.into_chat()?;
    let counted = relay::count(inference, hints, chat.into()).await?;
    Ok(Json(json!({"input_tokens": counted})))
}

async fn read(body: Body) -> Result<Ask, Failure> {
    let bytes = body::read(body, body::INFERENCE_LIMIT).await?;
    Ok(body::parse(&bytes)?)
}

#[cfg(test)]
mod tests;
