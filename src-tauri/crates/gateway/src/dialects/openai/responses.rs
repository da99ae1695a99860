//! OpenAI's Responses API, turned into a chat and back. Nothing is kept: a conversation is sent whole each time.
//!
//! Shapes: OpenAI's API reference, "Responses" and "Streaming events", and the types of its Python package.

mod ask;
mod content;
mod events;
mod item;
mod messages;
mod response;
mod tools;

#[cfg(test)]
mod tests;

use crate::{
    dialects::translate,
    http::{body, error::Failure, path::Id},
    inference::{CHAT, Inference, hints::Hints, relay, request::Request},
};
use ask::Ask;
use axum::{
    Json, Router,
    body::Body,
    extract::State,
    response::Response,
    routing::{get, post},
};
use response::AnswerWriter;
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc};
use tierbar_core::{Code, Error};

const RESPONSES: &str = "/v1/responses";
const COUNT: &str = "/v1/responses/input_tokens";

pub(crate) fn routes() -> Router<Arc<Inference>> {
    Router::new()
        .route(RESPONSES, post(create))
        .route(COUNT, post(count))
        .route("/v1/responses/{id}", get(stored).delete(stored))
        .route("/v1/responses/{id}/cancel", post(stored))
        .route("/v1/responses/{id}/input_items", get(stored))
}

async fn create(
    State(inference): State<Arc<Inference>>,
    hints: Hints,
    body: Body,
) -> Result<Response, Failure> {
    let (chat, echo) = read(body).await?.into_chat()?;
    let answer = relay::send(inference, Request::of(CHAT, hints, chat)?).await?;
    let model = relay::model(&answer);
    translate::translate(AnswerWriter::new(echo, model), answer).await
}

async fn count(
    State(inference): State<Arc<Inference>>,
    hints: Hints,
    body: Body,
) -> Result<Json<Value>, Failure> {
    let (chat, _) = read(body).await?.into_chat()?;
    let counted = relay::count(inference, hints, chat).await?;
    let object = "response.input_tokens";
    Ok(Json(json!({"object": object, "input_tokens": counted})))
}

async fn read(body: Body) -> Result<Ask, Failure> {
    let bytes = body::read(body, body::INFERENCE_LIMIT).await?;
    Ok(body::parse(&bytes)?)
}

async fn stored(Id(id): Id) -> Result<Infallible, Failure> {
    let shown: String = id.chars().take(100).collect();
    let message = format!("there is no response \"{shown}\": responses are not stored here");
    let hint = "keep each response's `output`, and send the conversation in `input`";
    Err(Failure(Error::new(Code::NotFound, message).hint(hint)))
}
