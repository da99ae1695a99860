//! OpenAI's Responses API. An endpoint that has it gets the request as it came, and its answer passes; for all others, it is turned into a
//! chat and back. Nothing is kept here: a conversation is sent whole each time.
//!
//! Shapes: OpenAI's API reference, "Responses" and "Streaming events", and the types of its Python package.

pub mod compaction;
mod content;
mod events;
mod item;
mod messages;
mod request;
mod response;
mod schema;
mod tools;

pub use schema::{CompactedResponse, ResponseInput};

use super::stores::FileSearchResults;
use crate::respond::respond;
use axum::{Extension, Json, response::Response};
use request::{Echo, ResponseFields};
use response::AnswerWriter;
use schema::{ResponseTokenCount, ResponsesRequest};
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc};
use tierbar_core::{Code, Error};
use tierbar_http::{
    Answer, InferenceCall, error::Failure, mount::Routes, path::Id, routes, schema::Refusal,
};
use tierbar_inference::{
    CHAT, Inference, body, dispatch,
    hints::Hints,
    original::{Form, Original},
    request::Request,
    source::Source,
};
use tierbar_request_fields::{INPUT_TOKENS, RESPONSES as RESPONSE_FIELDS};

pub const RESPONSES: &str = "/v1/responses";
const COUNT: &str = "/v1/responses/input_tokens";

/// Marks a request whose input has the conversation of the response with this id.
#[derive(Debug, Clone)]
pub struct PreviousResponse(pub String);

/// The error of a `previous_response_id` whose response is not in memory.
pub fn no_previous_response(id: &Value) -> Error {
    request::no_previous(id)
}

/// Returns the tokens of a conversation for the tier that it names.
///
/// # Errors
/// Those of a response.
pub async fn count_tokens(inference: &Arc<Inference>, request: Value) -> Result<u64, Error> {
    let request: ResponseFields = body::of_value(request)?;
    let (chat, _) = request.into_chat(&INPUT_TOKENS, None, None)?;
    dispatch::count(inference, Hints::default(), chat).await
}

pub fn routes() -> Routes<Arc<Inference>> {
    Routes::default()
        .routes(routes!(create))
        .routes(routes!(count))
        .routes(routes!(get, delete))
        .routes(routes!(cancel))
        .routes(routes!(input_items))
}

/// Answers with a response, whole or as its events.
#[utoipa::path(
    post,
    path = RESPONSES,
    operation_id = "respond",
    reach(Inference, Spends, Counts),
    request_body = ResponsesRequest,
    responses((status = 200, description = "The response", content((schema::Response = "application/json"), ("text/event-stream")))),
)]
async fn create(
    continues: Option<Extension<PreviousResponse>>,
    searched: Option<Extension<FileSearchResults>>,
    InferenceCall(inference, hints, body): InferenceCall,
) -> Result<Response, Failure> {
    let bytes = body::read(body, body::INFERENCE_LIMIT).await?;
    let continues = continues.map(|Extension(PreviousResponse(id))| id);
    let searched = searched.map(|Extension(searched)| searched);
    let fields: Result<ResponseFields, Error> = body::parse(&bytes);
    let original = Original::read(Form::Responses, RESPONSES, bytes)?;
    // Some servers take 1 for true.
    let background = original.value("background").unwrap_or_default();
    if !background.is_null() && background != Value::Bool(false) {
        return Err(request::no_background().into());
    }
    let translated = fields.and_then(|fields| {
        fields.into_chat(&RESPONSE_FIELDS, continues.as_deref(), searched.as_ref())
    });
    // What was found for it here, or was compacted here, no other server knows.
    let is_ours = searched.is_some() || original.contains(compaction::PREFIX);
    let (chat, echo) = match translated {
        Ok((chat, echo)) => (Ok(chat), echo),
        Err(error) => (Err(error), Echo::default()),
    };
    let request = match is_ours {
        true => Request::of(CHAT, hints, chat?)?,
        false => Request::with_original(CHAT, hints, original, chat)?,
    };
    let writer = |source: &Source| {
        let writer = AnswerWriter::new(echo, source.model.as_ref());
        writer.searched(searched, source.tier.as_ref())
    };
    Ok(respond(&inference, request, writer).await)
}

/// Counts the tokens of a response's prompt.
#[utoipa::path(
    post,
    path = COUNT,
    operation_id = "countResponseTokens",
    reach(Inference, Spends, Counts),
    request_body = ResponsesRequest,
    responses((status = 200, description = "The count", body = ResponseTokenCount)),
)]
async fn count(InferenceCall(inference, hints, body): InferenceCall) -> Answer<Value> {
    let request: ResponseFields = body::request(body).await?;
    let (chat, _) = request.into_chat(&INPUT_TOKENS, None, None)?;
    let counted = dispatch::count(&inference, hints, chat).await?;
    let object = "response.input_tokens";
    Ok(Json(json!({"object": object, "input_tokens": counted})))
}

/// Returns a stored response. Responses are not stored: always 404.
#[utoipa::path(
    get,
    path = "/v1/responses/{id}",
    operation_id = "stored",
    reach(Inference, Reads),
    params(("id" = String, Path, description = "A response's id")),
    responses((status = 404, response = Refusal)),
)]
async fn get(Id(id): Id) -> Result<Infallible, Failure> {
    not_stored(&id)
}

/// Deletes a stored response. Responses are not stored: always 404.
#[utoipa::path(
    delete,
    path = "/v1/responses/{id}",
    operation_id = "forget",
    reach(Inference, Writes),
    params(("id" = String, Path, description = "A response's id")),
    responses((status = 404, response = Refusal)),
)]
async fn delete(Id(id): Id) -> Result<Infallible, Failure> {
    not_stored(&id)
}

/// Cancels a stored response. Responses are not stored: always 404.
#[utoipa::path(
    post,
    path = "/v1/responses/{id}/cancel",
    operation_id = "cancelResponse",
    reach(Inference, Writes, Counts),
    params(("id" = String, Path, description = "A response's id")),
    responses((status = 404, response = Refusal)),
)]
async fn cancel(Id(id): Id) -> Result<Infallible, Failure> {
    not_stored(&id)
}

/// Lists a stored response's input. Responses are not stored: always 404.
#[utoipa::path(
    get,
    path = "/v1/responses/{id}/input_items",
    operation_id = "inputItems",
    reach(Inference, Reads),
    params(("id" = String, Path, description = "A response's id")),
    responses((status = 404, response = Refusal)),
)]
async fn input_items(Id(id): Id) -> Result<Infallible, Failure> {
    not_stored(&id)
}

fn not_stored(id: &str) -> Result<Infallible, Failure> {
    let message = format!("there is no response \"{id:.100}\": responses are not stored here");
    let hint = "keep each response's `output`, and send the conversation in `input`";
    Err(Failure(Error::new(Code::NotFound, message).hint(hint)))
}
