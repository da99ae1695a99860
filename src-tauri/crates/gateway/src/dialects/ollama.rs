//! Ollama's dialect: `/api/…`, turned into OpenAI's and back.
//!
//! Shapes: Ollama's `docs/api.md` and `docs/openapi.yaml`, as of its version [`VERSION`].

mod ask;
mod chat;
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
mod show;
mod stream;
#[cfg(test)]
mod tests;
mod writer;

use crate::{
    http::error::{ErrorForm, Failure},
    inference::Inference,
};
use axum::{
    Json, Router,
    http::Uri,
    routing::{delete, get, post},
};
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::{Code, Error};

/// The version of Ollama whose API this is. Clients hold it against the least that they work with.
const VERSION: &str = "0.12.11";

/// Errors on these paths, as Ollama's clients read them.
pub(crate) const ERRORS: ErrorForm = ErrorForm {
    is_path,
    body: failure::error_body,
};

fn is_path(path: &str) -> bool {
    path.starts_with("/api/")
}

pub(crate) fn routes() -> Router<Arc<Inference>> {
    Router::new()
        .route("/api/version", get(version))
        .route("/api/tags", get(models::tags))
        .route("/api/ps", get(models::ps))
        .route("/api/show", post(show::show))
        .route("/api/chat", post(chat::chat))
        .route("/api/generate", post(generate::generate))
        .route("/api/embed", post(embed::embed))
        .route("/api/embeddings", post(embed::embeddings))
        .route("/api/copy", post(not_here))
        .route("/api/create", post(not_here))
        .route("/api/push", post(not_here))
        .route("/api/blobs/{digest}", post(not_here).head(not_here))
}

/// What spends disk and network, or deletes: for those with the token.
pub(crate) fn owners_routes() -> Router<Arc<Inference>> {
    Router::new()
        .route("/api/pull", post(pull::pull))
        .route("/api/delete", delete(delete::delete))
}

/// The same API where clients look for Ollama: they see by its greeting that it runs.
pub fn as_ollama(router: Router) -> Router {
    router.route("/", get(|| async { "Ollama is running" }))
}

async fn version() -> Json<Value> {
    Json(json!({"version": VERSION, "tierbar": env!("CARGO_PKG_VERSION")}))
}

/// What Ollama's store of models does. Ours are files, and tiers name them.
async fn not_here(uri: Uri) -> Failure {
    let message = format!(
        "Tierbar does not support {}: models are plain files, and a tier in config.toml gives one a name and settings",
        uri.path()
    );
    Failure(Error::new(Code::BadRequest, message).hint(
        "to use another name or other settings, add a tier; to add your own model, put its .gguf file in the models folder",
    ))
}
