//! The HTTP API: access, the dialects, and the path to an answer. It uses the tiers through [`Tiers`], and the host through
//! [`Services`], [`Models`], [`Measures`], [`Schedules`] and [`DocumentIndex`].
//!
//! Below it are crates of their own; each imports from those further down:
//!
//! | crate | what is in it |
//! |---|---|
//! | this one | puts the routes together: `admin`, the owner's API; `sockets`, the Responses API over a WebSocket; `mcp`, Tierbar as an MCP server, whose tools are requests of the API |
//! | `jobs` | turns of chats; answers from documents; tasks with an answer of a fixed form; the queue of requests that are answered later |
//! | `edge` | who may call: origins, API keys, the token; request ids; the page's files |
//! | `dialects` | OpenAI's, Anthropic's and Ollama's API: requests in OpenAI's form, answers in the client's; saved contexts |
//! | `http` | routes, their descriptions, and errors of every handler |
//! | `inference` | which tier answers, its lease, the call of its worker, the stream that is relayed while it is counted; what the host offers |
//!
//! The tests of all that a request passes through are here, in `tests`, by crate.

// What only descriptions of the API use is linted with them (src-tauri/crates/openapi).
#![cfg_attr(not(openapi), allow(dead_code, unused_imports))]

mod admin;
mod mcp;
mod sockets;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use sockets::{ConnectionSlot, Slot};

use admin::Admin;
use axum::{Json, Router, middleware};
use mcp::Mcp;
use serde_json::{Value, json};
use sockets::Sockets;
use std::{net::SocketAddr, sync::Arc};
use tierbar_contexts::Contexts;
use tierbar_core::lease::Tiers;
use tierbar_edge::{
    Edge,
    keys::{self, Keys},
    nearest::method_not_allowed,
    origin::{require_token, same_site},
    token::Token,
};
use tierbar_fetch::Remote;
use tierbar_http::{
    count::count,
    error::write_in_form,
    mount::described_router,
    routes,
    schema::{self, Errors},
};
use tierbar_inference::{
    Inference,
    auto::Auto,
    endpoints::EndpointStates,
    metrics::Metrics,
    services::{
        Services, documents::DocumentIndex, measures::Measures, models::Models,
        schedules::Schedules,
    },
    speed::SpeedMeter,
};
use tierbar_jobs::{
    Jobs,
    queue::{JobQueue, QueueRunner},
};
use tierbar_secrets::Secrets;
use tierbar_store::Store;
use tokio_util::sync::CancellationToken;
use utoipa::openapi;
use utoipa_axum::router::OpenApiRouter;

/// Everything that requests need.
#[derive(Debug)]
pub struct Gateway {
    pub tiers: Arc<dyn Tiers>,
    pub services: Arc<dyn Services>,
    pub models: Arc<dyn Models>,
    pub measures: Arc<dyn Measures>,
    pub schedules: Arc<dyn Schedules>,
    pub documents: Arc<dyn DocumentIndex>,
    pub secrets: Secrets,
    /// The client for endpoints.
    pub remote: Remote,
    pub store: Store,
    pub queue: JobQueue,
    pub contexts: Contexts,
    pub speed: SpeedMeter,
    pub auto: Auto,
    pub endpoints: EndpointStates,
    pub metrics: Metrics,
    pub token: Token,
    pub keys: Arc<Keys>,
    /// The listen address.
    pub address: SocketAddr,
    /// Ends the event streams, so that the server can stop.
    pub closing: CancellationToken,
}

/// The API, and what runs beside it.
#[derive(Debug)]
pub struct Parts {
    /// The whole API as one service.
    pub router: Router,
    /// Runs queued requests.
    pub runner: QueueRunner,
    /// Answers the host's own requests.
    pub jobs: Arc<Jobs>,
}

impl Gateway {
    /// Puts the API together.
    #[must_use]
    pub fn parts(self) -> Parts {
        self.described().0
    }

    /// As [`Self::parts`], with the OpenAPI description of the routes.
    fn described(self) -> (Parts, openapi::OpenApi) {
        let contexts = self.contexts.clone();
        let (inference, jobs, edge, admin) = self.states();
        let token = || middleware::from_fn_with_state(Arc::clone(&edge), require_token);
        let charge = || middleware::from_fn_with_state(Arc::clone(&edge), keys::charge);
        let in_form = middleware::from_fn_with_state(tierbar_dialects::ERROR_FORMS, write_in_form);
        let searches = middleware::from_fn_with_state(
            Arc::clone(&jobs),
            tierbar_jobs::documents::search_files,
        );
        let may_wait = tierbar_dialects::models::routes()
            .merge(tierbar_dialects::openai::routes().route_layer(searches))
            .merge(tierbar_dialects::anthropic::routes())
            .merge(tierbar_dialects::ollama::routes())
            .with_state(Arc::clone(&inference))
            .merge(tierbar_jobs::tasks::routes().with_state(Arc::clone(&jobs)));
        let asked = Router::from(may_wait.clone()).layer(in_form.clone());
        let runner = QueueRunner::new(Arc::clone(&jobs), asked);
        let keep = middleware::from_fn_with_state(Arc::clone(&jobs), tierbar_jobs::queue::keep);
        let services = Arc::clone(&edge.services);
        let until = middleware::from_fn_with_state(services, tierbar_edge::paused::add_retry_time);
        let admit = middleware::from_fn_with_state(Arc::clone(&edge), keys::admit);
        let metrics = OpenApiRouter::default()
            .routes(routes!(admin::metrics::metrics))
            .with_state(Arc::clone(&admin));
        let answers = may_wait
            .route_layer(keep)
            .merge(tierbar_dialects::contexts::routes(
                Arc::clone(&inference),
                contexts,
            ))
            .route_layer(until)
            .merge(tierbar_jobs::queue::routes().with_state(Arc::clone(&jobs)))
            .merge(metrics)
            .layer(admit.clone());
        let count = middleware::from_fn_with_state(inference.metrics.clone(), count);
        let forbids = middleware::from_fn_with_state(Arc::clone(&edge), same_site);
        let around = |routes: Router| {
            routes
                .layer(forbids.clone())
                .layer(in_form.clone())
                .layer(count.clone())
                .layer(middleware::from_fn(tierbar_edge::request_id::assign))
        };
        let sockets = Arc::new(Sockets {
            requests: around(Router::from(answers.clone())),
            keys: Arc::clone(&edge.keys),
            closing: inference.closing.clone(),
        });
        let sockets = sockets::routes().with_state(sockets).layer(admit);
        let admin_api = admin::routes()
            .with_state(Arc::clone(&admin))
            .layer(charge())
            .layer(token());
        let tools = Arc::new(Mcp {
            requests: around(Router::from(answers.clone().merge(admin_api.clone()))),
            closing: inference.closing.clone(),
        });
        let identify = middleware::from_fn_with_state(Arc::clone(&edge), keys::identify);
        let tools = mcp::routes().with_state(tools).layer(identify);
        let owners = tierbar_dialects::ollama::owners_routes().with_state(inference);
        let (router, api) = described_router::<tierbar_edge::openapi::Description, _>()
            .routes(routes!(health))
            .routes(routes!(tierbar_edge::openapi::document))
            .merge(answers)
            .merge(sockets)
            .merge(tools)
            .merge(owners.layer(charge()).layer(token()))
            .merge(admin::file_routes().with_state(admin).layer(token()))
            .merge(admin_api)
            .split_for_parts();
        let router = router
            .fallback(tierbar_edge::ui::asset)
            .method_not_allowed_fallback(method_not_allowed);
        let parts = Parts {
            router: around(router),
            runner,
            jobs,
        };
        (parts, api)
    }

    /// The state of each storey.
    fn states(self) -> (Arc<Inference>, Arc<Jobs>, Arc<Edge>, Arc<Admin>) {
        let inference = Arc::new(Inference {
            tiers: self.tiers,
            services: Arc::clone(&self.services),
            models: Arc::clone(&self.models),
            secrets: self.secrets,
            remote: self.remote,
            speed: self.speed,
            auto: self.auto,
            endpoints: self.endpoints,
            metrics: self.metrics,
            closing: self.closing,
        });
        let jobs = Arc::new(Jobs {
            inference: Arc::clone(&inference),
            keys: Arc::clone(&self.keys),
            store: self.store.clone(),
            queue: self.queue,
            turns: tierbar_jobs::turns::Turns::default(),
            answers: tierbar_jobs::answers::Answers::default(),
        });
        let edge = Arc::new(Edge {
            services: Arc::clone(&self.services),
            keys: self.keys,
            token: self.token,
            codes: tierbar_edge::sign_in::SignInCodes::default(),
            store: self.store.clone(),
            address: self.address,
            is_owners_path: tierbar_dialects::contexts::is_path,
            is_held_path: tierbar_jobs::queue::is_watched,
            takes_lines: tierbar_jobs::tasks::takes_lines,
            reads_lines: tierbar_jobs::tasks::reads_lines,
        });
        let admin = Arc::new(Admin {
            services: self.services,
            models: self.models,
            measures: self.measures,
            schedules: self.schedules,
            documents: self.documents,
            store: self.store,
            inference: Arc::clone(&inference),
            jobs: Arc::clone(&jobs),
            edge: Arc::clone(&edge),
        });
        (inference, jobs, edge, admin)
    }
}

/// Reports that the server answers.
#[utoipa::path(
    get,
    path = "/health",
    tag = "operations",
    operation_id = "health",
    responses((status = 200, description = "The server answers", body = schema::Health), Errors),
)]
async fn health() -> Json<Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}
