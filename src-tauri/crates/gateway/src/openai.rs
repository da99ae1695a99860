//! The OpenAI dialect: the list of models, and completions and embeddings relayed to the worker that answers.

mod models;
pub(crate) mod relay;
pub(crate) mod route;
mod tap;

use crate::Gateway;
use axum::{
    Router,
    body::Body,
    extract::State,
    routing::{get, post},
};
use std::sync::Arc;

pub(crate) const CHAT: &str = "/v1/chat/completions";
const TEXT: &str = "/v1/completions";
const EMBEDDINGS: &str = "/v1/embeddings";

pub(crate) fn routes() -> Router<Arc<Gateway>> {
    let chat = |State(gateway): State<Arc<Gateway>>, body: Body| relay::relay(gateway, CHAT, body);
    let text = |State(gateway): State<Arc<Gateway>>, body: Body| relay::relay(gateway, TEXT, body);
    let embeddings =
        |State(gateway): State<Arc<Gateway>>, body: Body| relay::relay(gateway, EMBEDDINGS, body);
    Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{id}", get(models::one))
        .route(CHAT, post(chat))
        .route(TEXT, post(text))
        .route(EMBEDDINGS, post(embeddings))
}
