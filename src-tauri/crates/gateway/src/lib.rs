//! The HTTP API: access, the dialects, and the path to an answer. It uses the tiers through
//! [`Tiers`](tierbar_core::lease::Tiers), and the host through the traits of [`tierbar_inference::services`].
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
use std::sync::Arc;
use tierbar_contexts::Contexts;
use tierbar_edge::{Edge, encoding::refuse_compressed, keys::admit, origin::same_site};
use tierbar_http::{
    count::count, error::write_in_form, mount::Routes, reach::Reaches, routes, schema,
};
use tierbar_inference::{
    Inference,
    services::{documents::DocumentIndex, measures::Measures, schedules::Schedules},
};
use tierbar_jobs::{
    Jobs,
    answers::Answers,
    queue::{JobQueue, QueueRunner},
    turns::Turns,
};
use utoipa::openapi;

/// Everything that requests need.
#[derive(Debug)]
pub struct Gateway {
    pub inference: Arc<Inference>,
    pub edge: Arc<Edge>,
    pub measures: Arc<dyn Measures>,
    pub schedules: Arc<dyn Schedules>,
    pub documents: Arc<dyn DocumentIndex>,
    pub contexts: Contexts,
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
    pub fn parts(self) -> Parts {
        self.described().0
    }

    /// As [`Self::parts`], with the reach of the routes and their OpenAPI description.
    fn described(self) -> (Parts, Arc<Reaches>, openapi::OpenApi) {
        let (inference, edge) = (self.inference, self.edge);
        let jobs = Arc::new(Jobs {
            inference: Arc::clone(&inference),
            keys: Arc::clone(&edge.keys),
            store: edge.store.clone(),
            queue: JobQueue::default(),
            turns: Turns::default(),
            answers: Answers::default(),
        });
        let admin = Arc::new(Admin {
            services: Arc::clone(&inference.services),
            models: Arc::clone(&inference.models),
            measures: self.measures,
            schedules: self.schedules,
            documents: self.documents,
            store: edge.store.clone(),
            inference: Arc::clone(&inference),
            jobs: Arc::clone(&jobs),
            edge: Arc::clone(&edge),
        });
        let in_form = middleware::from_fn_with_state(tierbar_dialects::ERROR_FORMS, write_in_form);
        let searches = middleware::from_fn_with_state(
            Arc::clone(&jobs),
            tierbar_jobs::documents::search_files,
        );
        let openai = tierbar_dialects::openai::routes();
        let may_wait = tierbar_dialects::models::routes()
            .merge(openai.map(|routes| routes.route_layer(searches)))
            .merge(tierbar_dialects::anthropic::routes())
            .merge(tierbar_dialects::ollama::routes())
            .with_state(Arc::clone(&inference))
            .merge(tierbar_jobs::tasks::routes().with_state(Arc::clone(&jobs)));
        let (asked, reaches, _) = may_wait.clone().into_parts();
        let asked = asked.layer(in_form.clone());
        let runner = QueueRunner::new(Arc::clone(&jobs), asked, reaches);
        let keep = middleware::from_fn_with_state(Arc::clone(&jobs), tierbar_jobs::queue::keep);
        let services = Arc::clone(&edge.services);
        let until = middleware::from_fn_with_state(services, tierbar_edge::paused::add_retry_time);
        let metrics = Routes::default()
            .routes(routes!(admin::status::metrics))
            .with_state(Arc::clone(&admin));
        let contexts = tierbar_dialects::contexts::routes(Arc::clone(&inference), self.contexts);
        let answers = may_wait
            .map(|routes| routes.route_layer(keep))
            .merge(contexts)
            .map(|routes| routes.route_layer(until))
            .merge(tierbar_jobs::queue::routes().with_state(Arc::clone(&jobs)))
            .merge(metrics);
        let count = middleware::from_fn_with_state(inference.metrics.clone(), count);
        let forbids = middleware::from_fn_with_state(Arc::clone(&edge), same_site);
        let around = |routes: Router, reaches: Arc<Reaches>| {
            let admit = middleware::from_fn_with_state((Arc::clone(&edge), reaches), admit);
            routes
                .layer(admit)
                .layer(middleware::from_fn(refuse_compressed))
                .layer(forbids.clone())
                .layer(in_form.clone())
                .layer(count.clone())
                .layer(middleware::from_fn(tierbar_edge::request_id::assign))
        };
        let whole = |routes: &Routes| {
            let (router, reaches, _) = routes.clone().into_parts();
            around(router, Arc::new(reaches))
        };
        let sockets = Arc::new(Sockets {
            requests: whole(&answers),
            keys: Arc::clone(&edge.keys),
            closing: inference.closing.clone(),
        });
        let answers = answers.merge(admin::routes().with_state(admin));
        let tools = Arc::new(Mcp {
            requests: whole(&answers),
            closing: inference.closing.clone(),
        });
        let (router, reaches, api) = Routes::described::<tierbar_edge::openapi::Description>()
            .routes(routes!(health))
            .routes(routes!(tierbar_edge::openapi::document))
            .merge(answers)
            .merge(sockets::routes().with_state(sockets))
            .merge(mcp::routes().with_state(tools))
            .merge(tierbar_dialects::ollama::owners_routes().with_state(inference))
            .into_parts();
        let reaches = Arc::new(reaches);
        let router = router.fallback(tierbar_edge::ui::asset);
        let parts = Parts {
            router: around(router, Arc::clone(&reaches)),
            runner,
            jobs,
        };
        (parts, reaches, api)
    }
}

/// Reports that the server answers.
#[utoipa::path(
    get,
    path = "/health",
    reach(Anyone),
    responses((status = 200, description = "The server answers", body = schema::Health)),
)]
async fn health() -> Json<Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}
