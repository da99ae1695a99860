//! The OpenAI dialect: the list of models, and completions and embeddings relayed to the worker that answers, responses on top of them.

pub(crate) mod calls;
pub(crate) mod models;
pub(crate) mod owed;
pub(crate) mod relay;
mod responses;
pub(crate) mod route;
mod tap;
pub(crate) mod wire;

use crate::{Gateway, hints::Hints};
use axum::{
    Router,
    body::Body,
    extract::State,
    routing::{get, post},
};
use std::sync::Arc;

pub(crate) const CHAT: &str = "/v1/chat/completions";
/// How many tokens a chat is; between the gateway and our own worker, or what stands for it.
pub(crate) const TOKENS: &str = "/v1/chat/tokens";
pub(crate) const TEXT: &str = "/v1/completions";
pub(crate) const EMBEDDINGS: &str = "/v1/embeddings";

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
