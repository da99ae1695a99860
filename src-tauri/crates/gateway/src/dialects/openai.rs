//! The OpenAI dialect: the list of models, and completions and embeddings relayed to the worker that answers, responses on top of them.

pub(crate) mod models;
mod responses;

use crate::{
    Gateway,
    inference::{CHAT, EMBEDDINGS, TEXT, hints::Hints, relay},
};
use axum::{
    Router,
    body::Body,
    extract::State,
    routing::{get, post},
};
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<Gateway>> {
    let relayed = |path: &'static str| {
        post(
            move |State(gateway): State<Arc<Gateway>>, hints: Hints, body: Body| {
                relay::relay(gateway, path, hints, body)
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
