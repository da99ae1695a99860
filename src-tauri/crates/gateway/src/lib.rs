//! The HTTP API: who may call, the dialects, and the way to an answer. It answers from the tiers, which it knows as [`Tiers`] alone,
//! and from what the host offers as [`Services`], [`Models`] and [`Measures`].
//!
//! The modules are storeys; each imports from those below it:
//!
//! | storey | what is in it |
//! |---|---|
//! | this file | puts the routes together |
//! | `admin` | the owner's API |
//! | `jobs` | tasks with an answer of a fixed form; the queue of requests that are answered later |
//! | `edge` | who may call: origins, API keys, the token; the request's name; the page's files |
//! | `dialects` | OpenAI's, Anthropic's and Ollama's API, turned into one of OpenAI's and back; saved contexts |
//! | `inference` | which tier answers, its lease, the call of its worker, the stream that is relayed while it is counted |
//! | `metrics`, `services`, `http` | counters; what the host offers; bodies and errors of every handler |

mod admin;
mod blocking;
mod dialects;
mod edge;
mod http;
mod inference;
mod jobs;
mod metrics;
mod services;
#[cfg(test)]
mod testing;

pub use dialects::ollama::as_ollama;
pub use edge::{keys::Keys, origin::OverTls, token::Token};
pub use inference::{
    auto::Auto,
    chain::Chains,
    speed::{SpeedHistory, SpeedMeter},
};
pub use jobs::queue::{Queue, Runner};
pub use metrics::Metrics;
pub use services::{
    Services,
    measures::{MeasureEvent, Measurement, Measures},
    models::{CatalogAnswer, DownloadChange, FitQuestion, Listed, Models, Pull, Verified},
    schedules::Schedules,
};

use axum::{Json, Router, middleware, routing::get};
use serde_json::{Value, json};
use std::{net::SocketAddr, sync::Arc};
use tierbar_contexts::Contexts;
use tierbar_core::lease::Tiers;
use tierbar_fetch::Remote;
use tierbar_secrets::Secrets;
use tierbar_store::Store;
use tokio_util::sync::CancellationToken;

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
        let in_form =
            middleware::from_fn_with_state(dialects::ERROR_FORMS, http::error::write_in_form);
        let token =
            || middleware::from_fn_with_state(Arc::clone(&gateway), edge::origin::require_token);
        let may_wait = dialects::openai::routes()
            .merge(dialects::anthropic::routes())
            .merge(dialects::ollama::routes())
            .merge(jobs::tasks::routes());
        let later = may_wait
            .clone()
            .layer(in_form.clone())
            .with_state(Arc::clone(&gateway));
        let runner = Runner::new(Arc::clone(&gateway), later);
        let keep = middleware::from_fn_with_state(Arc::clone(&gateway), jobs::queue::keep);
        let until = middleware::from_fn_with_state(Arc::clone(&gateway), edge::paused::until);
        let admit = middleware::from_fn_with_state(Arc::clone(&gateway), edge::keys::admit);
        let inference = may_wait
            .route_layer(keep)
            .merge(dialects::contexts::routes())
            .route_layer(until)
            .merge(jobs::queue::routes())
            .route("/metrics", get(metrics::tell))
            .layer(admit);
        let router = Router::new()
            .route("/health", get(health))
            .route("/openapi.json", get(edge::openapi::document))
            .merge(inference)
            .merge(admin::routes().layer(token()))
            .merge(dialects::ollama::owners_routes().layer(token()))
            .fallback(edge::ui::asset)
            .method_not_allowed_fallback(http::error::method_not_allowed)
            .layer(middleware::from_fn_with_state(
                Arc::clone(&gateway),
                edge::origin::same_site,
            ))
            .layer(in_form)
            .layer(middleware::from_fn_with_state(
                Arc::clone(&gateway),
                metrics::count,
            ))
            .layer(middleware::from_fn(edge::request_id::name))
            .with_state(gateway);
        (router, runner)
    }
}

async fn health() -> Json<Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}
