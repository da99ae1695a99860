//! `GET /openapi.json`: the API as OpenAPI 3.1. `docs/openapi.json` is collected from its routes; a test compares the two.

use axum::{http::header, response::IntoResponse};
use tierbar_chats::TurnEvent;
use tierbar_core::journal::Entry;
use tierbar_http::schema::{Error, Queued, QueuedRequest, Refusal};
use tierbar_measure::{
    bench::{BenchRow, Progress},
    tune::TuneRow,
};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        self,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

/// What belongs to no route.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tierbar",
        description = "docs/api.md says what a schema cannot.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    servers((url = "http://127.0.0.1:11435")),
    security((), ("token" = [])),
    tags(
        (name = "openai", description = "OpenAI's dialect"),
        (name = "anthropic", description = "Anthropic's dialect"),
        (name = "ollama", description = "Ollama's dialect"),
        (name = "contexts", description = "Saved contexts"),
        (name = "documents", description = "The owner's documents"),
        (name = "agent", description = "The agent"),
        (name = "tasks", description = "Tasks"),
        (name = "queue", description = "Queued requests"),
        (name = "tools", description = "Tierbar as an MCP server"),
        (name = "operations", description = "The server"),
        (name = "owner", description = "The owner's API, which needs the token"),
    ),
    components(
        // Those of event streams, which no route names.
        schemas(Error, QueuedRequest, Entry, Progress, BenchRow, TuneRow, TurnEvent),
        responses(Refusal, Queued),
    ),
    modifiers(&Credentials),
)]
#[derive(Debug)]
pub struct Description;

/// The token, which the API needs beyond loopback.
struct Credentials;

impl Modify for Credentials {
    fn modify(&self, api: &mut openapi::OpenApi) {
        let token = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("The token or an API key. Not needed by default on loopback, except for the owner's routes."));
        let components = api.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(token.build()));
    }
}

/// The description of the API, which `GET /openapi.json` returns: `docs/openapi.json`.
pub static API_DESCRIPTION: &str = include_str!("../../../../docs/openapi.json");

/// Returns this document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "openapi",
    reach(Anyone),
    responses((status = 200, description = "The document", body = Object)),
)]
pub async fn document() -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "application/json")],
        API_DESCRIPTION,
    )
}
