//! Ollama's dialect: `/api/…`, turned into OpenAI's and back.
//!
//! Shapes: Ollama's `docs/api.md` and `docs/openapi.yaml`, as of its version [`VERSION`].

mod chat;
mod common;
mod delete;
mod details;
mod embed;
mod failure;
mod generate;
mod images;
mod load;
mod messages;
mod models;
mod name;
mod options;
mod probabilities;
mod pull;
pub mod schema;
mod show;
mod stream;
mod writer;

pub(crate) use details::tier_times;
pub use images::content;

use axum::{
    Json, Router,
    http::{HeaderMap, Uri},
    routing::get,
};
use schema::{OllamaRefusal, OllamaVersion};
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::bad_request;
use tierbar_http::{
    error::{ErrorForm, Failure},
    mount::Routes,
    routes,
};
use tierbar_inference::Inference;
use utoipa::OpenApi;

/// The version of Ollama whose API this is. Clients hold it against the least that they work with.
pub const VERSION: &str = "0.12.11";

/// Errors on these paths, as Ollama's clients read them.
pub(crate) const ERRORS: ErrorForm = ErrorForm {
    is_path,
    body: |error, _| failure::error_body(error),
};

/// Also with a base URL that ends in `/v1`, as OpenAI's.
fn is_path(path: &str, _: &HeaderMap) -> bool {
    path.trim_start_matches("/v1").starts_with("/api/")
}

#[derive(OpenApi)]
#[openapi(components(schemas(schema::OllamaError), responses(schema::OllamaRefusal)))]
struct Components;

pub fn routes() -> Routes<Arc<Inference>> {
    Routes::described::<Components>()
        .routes(routes!(version))
        .routes(routes!(models::tags))
        .routes(routes!(models::ps))
        .routes(routes!(show::show))
        .routes(routes!(chat::chat))
        .routes(routes!(generate::generate))
        .routes(routes!(embed::embed))
        .routes(routes!(embed::embeddings))
        .routes(routes!(copy))
        .routes(routes!(create))
        .routes(routes!(push))
        .routes(routes!(blob, has_blob))
}

/// What needs the token: deleting, and downloading a model that is not here.
pub fn owners_routes() -> Routes<Arc<Inference>> {
    Routes::default()
        .routes(routes!(pull::pull))
        .routes(routes!(delete::delete))
}

/// The same API where clients look for Ollama: they see by its greeting that it runs.
pub fn as_ollama(router: Router) -> Router {
    router.route("/", get(|| async { "Ollama is running" }))
}

/// Returns the version of Ollama whose API this is, and Tierbar's own.
#[utoipa::path(
    get,
    path = "/api/version",
    operation_id = "ollamaVersion",
    reach(Inference, Reads),
    responses((status = 200, description = "The versions", body = OllamaVersion)),
)]
async fn version() -> Json<Value> {
    Json(json!({"version": VERSION, "tierbar": env!("CARGO_PKG_VERSION")}))
}

/// Copies a model. Not supported: models are plain files.
#[utoipa::path(
    post,
    path = "/api/copy",
    operation_id = "ollamaCopy",
    reach(Inference, Counts),
    responses((status = 400, response = OllamaRefusal)),
)]
async fn copy(uri: Uri) -> Failure {
    not_supported(&uri)
}

/// Creates a model. Not supported: models are plain files.
#[utoipa::path(
    post,
    path = "/api/create",
    operation_id = "ollamaCreate",
    reach(Inference, Counts),
    responses((status = 400, response = OllamaRefusal)),
)]
async fn create(uri: Uri) -> Failure {
    not_supported(&uri)
}

/// Uploads a model. Not supported: models are plain files.
#[utoipa::path(
    post,
    path = "/api/push",
    operation_id = "ollamaPush",
    reach(Inference, Counts),
    responses((status = 400, response = OllamaRefusal)),
)]
async fn push(uri: Uri) -> Failure {
    not_supported(&uri)
}

/// Uploads a file. Not supported: models are plain files.
#[utoipa::path(
    post,
    path = "/api/blobs/{digest}",
    operation_id = "ollamaBlob",
    reach(Inference, Counts),
    params(("digest" = String, Path, description = "The file's digest")),
    responses((status = 400, response = OllamaRefusal)),
)]
async fn blob(uri: Uri) -> Failure {
    not_supported(&uri)
}

/// Looks for a file. Not supported: models are plain files.
#[utoipa::path(
    head,
    path = "/api/blobs/{digest}",
    operation_id = "ollamaBlobHead",
    reach(Inference),
    params(("digest" = String, Path, description = "The file's digest")),
    responses((status = 400, description = "Not supported")),
)]
async fn has_blob(uri: Uri) -> Failure {
    not_supported(&uri)
}

/// Refuses what Ollama's store of models does: here models are files, and tiers name them.
fn not_supported(uri: &Uri) -> Failure {
    let message = format!(
        "Tierbar does not support {}: models are plain files, and a tier in config.toml gives one a name and settings",
        uri.path()
    );
    Failure(bad_request(message).hint(
        "to use another name or other settings, add a tier; to add your own model, put its .gguf file in the models folder",
    ))
}
