//! `POST /v1/responses/compact`: a conversation of the Responses API with a summary in the place of what was said, as chats are
//! summarized that their context no longer holds.

use super::{
    ask::{TaskResult, Trail},
    message::Message,
    summarize,
};
use crate::Jobs;
use axum::{
    Json,
    body::Body,
    extract::State,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::{Code, Error};
use tierbar_dialects::openai::responses::{
    CompactedResponse, ResponseInput, compaction::Window, count_tokens, no_previous_response,
};
use tierbar_edge::now_ms;
use tierbar_http::{RequestHints, error::Failure};
use tierbar_inference::{Inference, body, hints::Hints};
use tierbar_request_fields as fields;
use utoipa::ToSchema;
use uuid::Uuid;

/// A conversation to compact.
#[derive(Deserialize, ToSchema)]
pub(super) struct CompactRequest {
    /// A tier, a chain, a model's id, or `auto`: what writes the summary.
    model: String,
    #[schema(value_type = Option<ResponseInput>)]
    input: Option<Value>,
    /// Those of the conversation. They are not summarized: send them again with the next request.
    instructions: Option<String>,
    /// Refused, because responses are not stored.
    #[schema(value_type = Option<String>)]
    #[serde(default, rename = "previous_response_id")]
    _previous_response_id: Value,
    /// No effect: what a prompt shares with an earlier one is found without it.
    #[serde(default, rename = "prompt_cache_key")]
    #[schema(value_type = Option<String>)]
    _prompt_cache_key: Value,
}

/// Compacts a conversation: a summary takes the place of what was said.
#[utoipa::path(
    post,
    path = "/v1/responses/compact",
    operation_id = "compactResponse",
    reach(Inference, Spends, Counts),
    request_body = CompactRequest,
    responses((status = 200, description = "The compacted conversation", body = CompactedResponse)),
)]
pub(super) async fn compact(
    State(jobs): State<Arc<Jobs>>,
    RequestHints(hints): RequestHints,
    body: Body,
) -> Result<Response, Failure> {
    let wanted = parse_request(body::request(body).await?)?;
    let trail = Trail::default();
    let compacted = answer(&jobs.inference, wanted, &hints, trail.clone()).await;
    let mut response = compacted.map_or_else(
        |error| Failure(error).into_response(),
        |compacted| Json(compacted).into_response(),
    );
    trail.write(&mut response);
    Ok(response)
}

fn parse_request(sent: Map<String, Value>) -> Result<CompactRequest, Error> {
    if let Some(id) = sent.get("previous_response_id").filter(|id| !id.is_null()) {
        return Err(no_previous_response(id));
    }
    fields::check(&[&fields::COMPACT, &fields::FOREIGN_TO_RESPONSES], &sent)?;
    body::of_value(sent.into())
}

async fn answer(
    inference: &Arc<Inference>,
    wanted: CompactRequest,
    hints: &Hints,
    trail: Trail,
) -> Result<Value, Error> {
    let mut window = Window::read(wanted.input)?;
    let message = Message::of_text(&std::mem::take(&mut window.text));
    let summarized =
        summarize::of_conversation(inference, &wanted.model, hints, trail, &message).await;
    drop(message);
    let TaskResult { answer, spent } = summarized.map_err(not_compacted)?;
    let left_out = std::mem::take(&mut window.left_out);
    let output = window.output(answer["summary"].as_str().unwrap_or_default());
    check_fits(inference, &answer["tier"], wanted.instructions, &output).await?;
    Ok(json!({
        "id": format!("resp_{}", Uuid::new_v4().simple()),
        "object": "response.compaction",
        "created_at": now_ms() / 1000,
        "output": output,
        "usage": {
            "input_tokens": spent.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": spent.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": spent.prompt_tokens + spent.completion_tokens,
        },
        "tierbar": {"left_out": left_out, "fallback": answer["fallback"]},
    }))
}

/// The client may choose another model.
fn not_compacted(error: Error) -> Error {
    match error.code {
        Code::ContextExceeded => Error {
            message: format!("the conversation cannot be compacted: {}", error.message),
            ..error
        }
        .hint("name a tier with a larger context in `model`"),
        _ => error,
    }
}

/// Checks that the tier's context holds what is kept. Only our own engine counts tokens; for others, the next request shows it.
///
/// # Errors
/// `ContextExceeded` with the figures.
async fn check_fits(
    inference: &Arc<Inference>,
    tier: &Value,
    instructions: Option<String>,
    output: &[Value],
) -> Result<(), Error> {
    let mut tiers = inference.tiers.snapshot().into_iter();
    let Some(tier) = tiers.find(|status| *tier == status.id.as_str()) else {
        return Ok(());
    };
    let request = json!({"model": tier.id, "instructions": instructions, "input": output});
    let Ok(tokens) = count_tokens(inference, request).await else {
        return Ok(());
    };
    let context = u64::from(tier.context_tokens);
    if tokens < context {
        return Ok(());
    }
    let message = format!(
        "the compacted conversation has {tokens} tokens, and the context of {} holds {context}: the instructions, images, last \
         question and open calls are kept as they are",
        tier.id
    );
    Err(Error::new(Code::ContextExceeded, message)
        .hint("shorten them, or name a tier with a larger context in `model`")
        .detail("prompt_tokens", tokens)
        .detail("context_tokens", context))
}
