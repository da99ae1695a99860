//! The OpenAI dialect: completions and embeddings relayed to the worker that answers, responses on top of them.

pub mod responses;
pub mod schema;
pub mod stores;

use axum::response::Response;
use schema::{
    ChatCompletion, ChatRequest, Embeddings, EmbeddingsRequest, RerankRequest, Reranked,
    TextCompletion, TextRequest,
};
use std::sync::Arc;
use tierbar_http::{InferenceCall, error::Failure, mount::Routes, routes};
use tierbar_inference::{CHAT, EMBEDDINGS, Inference, RERANK, TEXT};

pub fn routes() -> Routes<Arc<Inference>> {
    Routes::default()
        .routes(routes!(chat))
        .routes(routes!(complete))
        .routes(routes!(embed))
        .routes(routes!(rerank))
        .merge(responses::routes())
}

/// Answers a chat.
#[utoipa::path(
    post,
    path = CHAT,
    reach(Inference, Spends, Counts),
    request_body = ChatRequest,
    responses((
        status = 200,
        description = "The answer, whole or as events",
        content((ChatCompletion = "application/json"), ("text/event-stream")),
        headers(
            ("x-tierbar-tier" = String, description = "The tier that answers"),
            ("x-tierbar-model" = String, description = "The tier's model"),
            ("x-tierbar-context" = String, description = "Tokens of the prompt, and of the context: `1200/4096`; not of streams"),
        ),
    )),
)]
async fn chat(call: InferenceCall) -> Result<Response, Failure> {
    call.answer(CHAT).await
}

/// Completes a text.
#[utoipa::path(
    post,
    path = TEXT,
    reach(Inference, Spends, Counts),
    request_body = TextRequest,
    responses((
        status = 200,
        description = "The text, whole or as events",
        content((TextCompletion = "application/json"), ("text/event-stream")),
        headers(
            ("x-tierbar-tier" = String, description = "The tier that answers"),
            ("x-tierbar-model" = String, description = "The tier's model"),
            ("x-tierbar-context" = String, description = "Tokens of the prompt, and of the context: `1200/4096`; not of streams"),
        ),
    )),
)]
async fn complete(call: InferenceCall) -> Result<Response, Failure> {
    call.answer(TEXT).await
}

/// Turns texts into vectors.
#[utoipa::path(
    post,
    path = EMBEDDINGS,
    reach(Inference, Spends, Counts),
    request_body = EmbeddingsRequest,
    responses((
        status = 200,
        description = "A vector for each text",
        body = Embeddings,
        headers(
            ("x-tierbar-tier" = String, description = "The tier that answers"),
            ("x-tierbar-model" = String, description = "The tier's model"),
        ),
    )),
)]
async fn embed(call: InferenceCall) -> Result<Response, Failure> {
    call.answer(EMBEDDINGS).await
}

/// Ranks documents by how well they answer a query, as Jina's and Cohere's APIs do.
#[utoipa::path(
    post,
    path = RERANK,
    reach(Inference, Spends, Counts),
    request_body = RerankRequest,
    responses((
        status = 200,
        description = "The documents' places in the request and their scores, the best first",
        body = Reranked,
        headers(
            ("x-tierbar-tier" = String, description = "The tier that answers"),
            ("x-tierbar-model" = String, description = "The tier's model"),
        ),
    )),
)]
async fn rerank(call: InferenceCall) -> Result<Response, Failure> {
    call.answer(RERANK).await
}
