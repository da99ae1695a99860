//! The HTTP API: routing, who may call, and the dialects. It answers from the tiers, which it knows as
//! [`Tiers`] alone, and from what the host offers it as [`Services`], [`Models`] and [`Measures`]. It owns no state but what it counts (the
//! speed of answers, what `/metrics` tells) and what its router has learnt, and the API keys.

mod admin;
mod anthropic;
mod auto;
mod blocking;
mod body;
mod chain;
mod contexts;
mod dialect;
mod error;
mod events;
mod guard;
mod hints;
mod keys;
mod measures;
mod metrics;
mod models;
mod ollama;
mod openai;
mod openapi;
mod path;
mod paused;
mod prompts;
mod queue;
mod request_id;
mod schedules;
mod speed;
mod tasks;
#[cfg(test)]
mod testing;
mod token;
mod ui;
mod upstream;

pub use auto::Auto;
pub use chain::Chains;
pub use guard::OverTls;
pub use keys::Keys;
pub use measures::{MeasureEvent, Measurement, Measures};
pub use metrics::Metrics;
pub use models::{CatalogAnswer, DownloadChange, FitQuestion, Listed, Models, Pull, Verified};
pub use ollama::as_ollama;
pub use queue::{Queue, Runner};
pub use schedules::Schedules;
pub use speed::{SpeedHistory, SpeedMeter};
pub use token::Token;

use axum::{Json, Router, middleware, routing::get};
use serde_json::{Value, json};
use std::{fmt, net::SocketAddr, path::Path, sync::Arc, time::Duration};
use tierbar_contexts::Contexts;
use tierbar_core::{
    Config, Error,
    history::History,
    journal::Entry,
    lease::{BoxFuture, Tiers},
    status::Status,
};
use tierbar_fetch::Remote;
use tierbar_secrets::Secrets;
use tierbar_store::Store;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

/// What the host offers to the API beside the tiers and the store.
pub trait Services: Send + Sync + fmt::Debug {
    /// The status as it is at this moment.
    fn status(&self) -> Arc<Status>;

    /// The status as it changes. While a receiver lives, somebody is watching.
    fn watch(&self) -> watch::Receiver<Arc<Status>>;

    /// The readings of the last minutes, up to now: at most as many points as seconds in ten minutes, or a few more.
    ///
    /// # Errors
    /// `Storage` if what is kept cannot be read.
    fn history(&self, minutes: u64) -> BoxFuture<'_, Result<History, Error>>;

    /// Refuses requests and unloads what nobody uses, for so long or until [`Self::resume`]. The status since then.
    fn pause(&self, length: Option<Duration>) -> Arc<Status>;

    fn resume(&self) -> Arc<Status>;

    /// The log's entries from now on. By then they are in the store, if that takes any.
    fn log(&self) -> broadcast::Receiver<Entry>;

    fn config(&self) -> Arc<Config>;

    fn config_path(&self) -> &Path;

    /// Merges a partial configuration into the file and applies it.
    ///
    /// # Errors
    /// `BadRequest` or `ConfigInvalid` naming the key; `Storage` if the file cannot be written.
    fn patch_config(&self, patch: Value) -> BoxFuture<'_, Result<Arc<Config>, Error>>;

    /// Asks the app for its chat window; `false` if no app with windows runs in this host.
    fn raise(&self) -> bool;
}

/// All that a request is answered from.
#[derive(Debug)]
pub struct Gateway {
    pub tiers: Arc<dyn Tiers>,
    pub services: Arc<dyn Services>,
    pub models: Arc<dyn Models>,
    pub measures: Arc<dyn Measures>,
    pub schedules: Arc<dyn Schedules>,
    pub secrets: Secrets,
    /// The way to tiers that are endpoints.
    pub remote: Remote,
    pub store: Store,
    pub queue: Queue,
    pub contexts: Contexts,
    pub speed: SpeedMeter,
    pub auto: Auto,
    pub chains: Chains,
    pub metrics: Metrics,
    pub token: Token,
    pub keys: Arc<Keys>,
    /// The address that is listened on.
    pub address: SocketAddr,
    /// Ends the event streams, so that the server can stop.
    pub closing: CancellationToken,
}

impl Gateway {
    /// The whole API as one service, and what does the requests that wait, to be run beside it.
    pub fn parts(self) -> (Router, Runner) {
        let gateway = Arc::new(self);
        let token = || middleware::from_fn_with_state(Arc::clone(&gateway), guard::require_token);
        let may_wait = openai::routes()
            .merge(anthropic::routes())
            .merge(ollama::routes())
            .merge(tasks::routes());
        let later = may_wait
            .clone()
            .layer(middleware::from_fn(error::in_dialect))
            .with_state(Arc::clone(&gateway));
        let runner = Runner::new(Arc::clone(&gateway), later);
        let keep = middleware::from_fn_with_state(Arc::clone(&gateway), queue::keep);
        let until = middleware::from_fn_with_state(Arc::clone(&gateway), paused::until);
        let admit = middleware::from_fn_with_state(Arc::clone(&gateway), keys::admit);
        let inference = may_wait
            .route_layer(keep)
            .merge(contexts::routes())
            .route_layer(until)
            .merge(queue::routes())
            .route("/metrics", get(metrics::tell))
            .layer(admit);
        let router = Router::new()
            .route("/health", get(health))
            .route("/openapi.json", get(openapi::document))
            .merge(inference)
            .merge(admin::routes().layer(token()))
            .merge(ollama::owners_routes().layer(token()))
            .fallback(ui::asset)
            .method_not_allowed_fallback(error::method_not_allowed)
            .layer(middleware::from_fn_with_state(
                Arc::clone(&gateway),
                guard::same_site,
            ))
            .layer(middleware::from_fn(error::in_dialect))
            .layer(middleware::from_fn_with_state(
                Arc::clone(&gateway),
                metrics::count,
            ))
            .layer(middleware::from_fn(request_id::name))
            .with_state(gateway);
        (router, runner)
    }
}

async fn health() -> Json<Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}
