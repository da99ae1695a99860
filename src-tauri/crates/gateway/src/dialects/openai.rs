//! The OpenAI dialect: the list of models, and completions and embeddings relayed to the worker that answers, responses on top of them.

pub(crate) mod models;
mod responses;

use crate::inference::{CHAT, EMBEDDINGS, Inference, TEXT, hints::Hints, relay};
use axum::{
    Router,
    body::Body,
    extract::State,
    routing::{get, post},
};
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<Inference>> {
    let relayed = |path: &'static str| {
        post(
            move |State(inference): State<Arc<Inference>>, hints: Hints, body: Body| {
                relay::relay(inference, path, hints, body)
            },
        )
    };
    Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one))
        .route(CHAT, relayed(CHAT))
        .route(TEXT, relayed(TEXT))
        .route(EMBEDDINGS, relayed(EMBEDDINGS))
        .merge(responses::routes())
}
