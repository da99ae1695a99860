//! The admin API under `/tierbar/v1`. All of it needs the token.

mod chains;
mod chats;
mod config;
mod costs;
mod downloads;
mod events;
mod history;
mod hub;
mod keys;
mod log;
mod measures;
pub(crate) mod metrics;
mod models;
mod pause;
mod queue;
mod route;
mod schedules;
mod secrets;
mod session;
mod status;
mod tiers;
mod turns;

use crate::{
    edge::Edge,
    inference::Inference,
    jobs::Jobs,
    services::{Services, measures::Measures, models::Models, schedules::Schedules},
};
use axum::{
    Router,
    routing::{delete, get, patch, post, put},
};
use std::sync::Arc;
use tierbar_store::Store;

/// What the owner's API is answered from.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) services: Arc<dyn Services>,
    pub(crate) models: Arc<dyn Models>,
    pub(crate) measures: Arc<dyn Measures>,
    pub(crate) schedules: Arc<dyn Schedules>,
    pub(crate) store: Store,
    pub(crate) inference: Arc<Inference>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) edge: Arc<Edge>,
}

pub(crate) fn routes() -> Router<Arc<Admin>> {
    let routes = Router::new()
        .route("/status", get(status::status))
        .route("/events", get(status::events))
        .route("/history", get(history::history))
        .route("/pause", post(pause::pause))
        .route("/resume", post(pause::resume))
        .route("/expect", post(tiers::expect))
        .route("/log", get(log::log))
        .route("/route", post(route::explain))
        .route("/tiers/{id}/start", post(tiers::start))
        .route("/tiers/{id}/stop", post(tiers::stop))
        .route(
            "/tiers/{id}/bench",
            get(measures::last_bench).post(measures::bench),
        )
        .route(
            "/tiers/{id}/tune",
            get(measures::last_tune).post(measures::tune),
        )
        .route("/models", get(models::list))
        .route("/models/fit", get(models::fit))
        .route("/models/import", post(models::import))
        .route("/models/{id}", delete(models::remove))
        .route("/models/{id}/verify", post(models::verify))
        .route("/catalog", get(hub::catalog))
        .route("/hub/search", get(hub::search))
        .route("/hub/repository", get(hub::repository))
        .route("/downloads", get(downloads::list).post(downloads::add))
        .route(
            "/downloads/{id}",
            patch(downloads::change).delete(downloads::remove),
        )
        .route("/queue", get(queue::list))
        .route("/queue/secret", get(queue::secret))
        .route("/secrets", get(secrets::list))
        .route("/secrets/{name}", put(secrets::set).delete(secrets::remove))
        .route("/keys", get(keys::list).post(keys::add))
        .route("/keys/{name}", delete(keys::revoke))
        .route("/config", get(config::get).patch(config::patch))
        .route("/chains", get(chains::list))
        .route("/costs", get(costs::costs))
        .route("/schedules", get(schedules::list))
        .route("/schedules/{name}/run", post(schedules::run))
        .route("/chats", get(chats::list).post(chats::create))
        .route(
            "/chats/{id}",
            get(chats::get).patch(chats::update).delete(chats::delete),
        )
        .route("/chats/{id}/messages", post(chats::add_message))
        .route("/chats/{id}/turns", post(turns::begin))
        .route("/chats/{id}/turns/{turn}", delete(turns::stop))
        .route("/chats/{id}/turns/{turn}/events", get(turns::events))
        .route("/session", post(session::begin).delete(session::end))
        .route("/raise", post(session::raise));
    Router::new().nest("/tierbar/v1", routes)
}

#[cfg(test)]
mod tests;
