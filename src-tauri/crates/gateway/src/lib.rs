//! The HTTP API: access, the dialects, and the path to an answer. It uses the tiers through [`Tiers`], and the host through
//! [`Services`], [`Models`], [`Measures`], [`Schedules`] and [`DocumentIndex`].
//!
//! The modules are storeys; each imports from those below it:
//!
//! | storey | what is in it |
//! |---|---|
//! | this file | puts the routes together |
//! | `admin` | the owner's API |
//! | `sockets` | the Responses API over a WebSocket |
//! | `mcp` | Tierbar as an MCP server, whose tools are requests of the API |
//! | `jobs` | turns of chats; answers from documents; tasks with an answer of a fixed form; the queue of requests that are answered later |
//! | `edge` | who may call: origins, API keys, the token; request ids; the page's files |
//! | `dialects` | OpenAI's, Anthropic's and Ollama's API: requests in OpenAI's form, answers in the client's; saved contexts |
//! | `inference` | which tier answers, its lease, the call of its worker, the stream that is relayed while it is counted |
//! | `metrics`, `services`, `http` | counters, and a record of each of the last requests; what the host offers; routes, bodies and errors of every handler |

// What only descriptions of the API use is linted with them (src-tauri/crates/openapi).
#![cfg_attr(not(openapi), allow(dead_code, unused_imports))]

mod admin;
mod blocking;
mod dialects;
mod edge;
mod http;
mod inference;
mod jobs;
mod mcp;
mod metrics;
mod services;
mod sockets;
#[cfg(test)]
mod testing;

pub use dialects::ollama::as_ollama;
pub use edge::{
    keys::Keys, openapi::API_DESCRIPTION, origin::OverTls, sessions::trim_sessions, token::Token,
};
pub use inference::{
    Inference,
    ask::{Answer, Event, Failed, Gathered, Sampling, Stage, ToolCall, ToolCallPart, Usage},
    auto::Auto,
    caller::{Account, Caller},
    endpoints::EndpointStates,
    request::Request,
    source::Source,
    speed::{SpeedHistory, SpeedMeter},
};
pub use jobs::queue::{JobQueue, QueueRunner};
pub use metrics::{IndexerRequest, Metrics};
pub use services::{
    SandboxPlace, Services,
    documents::DocumentIndex,
    measures::{MeasureEvent, Measurement, Measures},
    models::{CatalogAnswer, DownloadChange, FitQuestion, Listed, Models, Pull, Verified},
    schedules::Schedules,
};
pub use sockets::{ConnectionSlot, Slot};

use admin::Admin;
use axum::{Json, Router, middleware};
use edge::{
    Edge,
    nearest::method_not_allowed,
    origin::{require_token, same_site},
};
use http::{
    error::write_in_form,
    routes::{described_router, routes},
    schema::Errors,
};
use jobs::Jobs;
use mcp::Mcp;
use serde_json::{Value, json};
use sockets::Sockets;
use std::{net::SocketAddr, sync::Arc};
use tierbar_contexts::Contexts;
use tierbar_core::lease::Tiers;
use tierbar_fetch::Remote;
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

impl Gateway {
    /// Returns the whole API as one service, and the runner of queued requests, to run beside it.
    pub fn parts(self) -> (Router, QueueRunner) {
        let (router, runner, _) = self.described();
        (router, runner)
    }

    /// As [`Self::parts`], with the OpenAPI description of the routes.
    fn described(self) -> (Router, QueueRunner, openapi::OpenApi) {
        let contexts = self.contexts.clone();
        let (inference, jobs, edge, admin) = self.states();
        let token = || middleware::from_fn_with_state(Arc::clone(&edge), require_token);
        let charge = || middleware::from_fn_with_state(Arc::clone(&edge), edge::keys::charge);
        let in_form = middleware::from_fn_with_state(dialects::ERROR_FORMS, write_in_form);
        let searches =
            middleware::from_fn_with_state(Arc::clone(&jobs), jobs::documents::search_files);
        let may_wait = dialects::models::routes()
            .merge(dialects::openai::routes().route_layer(searches))
            .merge(dialects::anthropic::routes())
            .merge(dialects::ollama::routes())
            .with_state(Arc::clone(&inference))
            .merge(jobs::tasks::routes().with_state(Arc::clone(&jobs)));
        let asked = Router::from(may_wait.clone()).layer(in_form.clone());
        let runner = QueueRunner::new(Arc::clone(&jobs), asked);
        let keep = middleware::from_fn_with_state(Arc::clone(&jobs), jobs::queue::keep);
        let services = Arc::clone(&edge.services);
        let until = middleware::from_fn_with_state(services, edge::paused::until);
        let admit = middleware::from_fn_with_state(Arc::clone(&edge), edge::keys::admit);
        let metrics = OpenApiRouter::default()
            .routes(routes!(admin::metrics::metrics))
            .with_state(Arc::clone(&admin));
        let answers = may_wait
            .route_layer(keep)
            .merge(dialects::contexts::routes(Arc::clone(&inference), contexts))
            .route_layer(until)
            .merge(jobs::queue::routes().with_state(jobs))
            .merge(metrics)
            .layer(admit.clone());
        let count = middleware::from_fn_with_state(inference.metrics.clone(), metrics::count);
        let forbids = middleware::from_fn_with_state(Arc::clone(&edge), same_site);
        let around = |routes: Router| {
            routes
                .layer(forbids.clone())
                .layer(in_form.clone())
                .layer(count.clone())
                .layer(middleware::from_fn(edge::request_id::name))
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
        let identify = middleware::from_fn_with_state(Arc::clone(&edge), edge::keys::identify);
        let tools = mcp::routes().with_state(tools).layer(identify);
        let owners = dialects::ollama::owners_routes().with_state(inference);
        let (router, api) = described_router::<edge::openapi::Description, _>()
            .routes(routes!(health))
            .routes(routes!(edge::openapi::document))
            .merge(answers)
            .merge(sockets)
            .merge(tools)
            .merge(owners.layer(charge()).layer(token()))
            .merge(admin::file_routes().with_state(admin).layer(token()))
            .merge(admin_api)
            .split_for_parts();
        let router = router
            .fallback(edge::ui::asset)
            .method_not_allowed_fallback(method_not_allowed);
        (around(router), runner, api)
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
            turns: jobs::turns::Turns::default(),
            answers: jobs::answers::Answers::default(),
        });
        let edge = Arc::new(Edge {
            services: Arc::clone(&self.services),
            keys: self.keys,
            token: self.token,
            codes: edge::sign_in::SignInCodes::default(),
            store: self.store.clone(),
            address: self.address,
            is_owners_path: dialects::contexts::is_path,
            is_held_path: jobs::queue::is_watched,
            takes_lines: jobs::tasks::takes_lines,
            reads_lines: jobs::tasks::reads_lines,
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
    responses((status = 200, description = "The server answers", body = http::schema::Health), Errors),
)]
async fn health() -> Json<Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}
