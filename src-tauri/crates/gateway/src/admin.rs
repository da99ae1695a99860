//! The admin API under `/tierbar/v1`. All of it needs the token.

mod chats;
mod config;
mod session;
mod status;
mod tiers;

use crate::Gateway;
use axum::{
    Router,
    routing::{get, post},
};
use std::sync::Arc;

pub(crate) fn routes() -> Router<Arc<Gateway>> {
    let routes = Router::new()
        .route("/status", get(status::status))
        .route("/events", get(status::events))
        .route("/tiers/{id}/start", post(tiers::start))
        .route("/tiers/{id}/stop", post(tiers::stop))
        .route("/models", get(config::models))
        .route("/config", get(config::get).patch(config::patch))
        .route("/chats", get(chats::list).post(chats::create))
        .route(
            "/chats/{id}",
            get(chats::get).patch(chats::update).delete(chats::delete),
        )
        .route("/chats/{id}/messages", post(chats::add_message))
        .route("/session", post(session::begin).delete(session::end))
        .route("/raise", post(session::raise));
    Router::new().nest("/tierbar/v1", routes)
}
