//! The settings with which other programs use this server.

use crate::admin::AdminState;
use axum::{
    Json,
    extract::{Request, State},
};
use serde::Serialize;
use tierbar_connect::{CLIENTS, ClientServer, ClientSettings, ClientTier, render};
use tierbar_core::{
    ModelKind,
    fit::LibraryModel,
    status::{EngineKind, TierStatus},
};
use tierbar_edge::origin::address_of;
use tierbar_http::Answer;
use utoipa::ToSchema;

/// The server as clients see it, and their settings for it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Connections {
    server: ClientServer,
    clients: Vec<ClientSettings>,
}

/// Lists the known clients with their settings for this server: its address as this request reached it, a tier that suits
/// the client, and why.
#[utoipa::path(
    get,
    path = "/tierbar/v1/connect",
    operation_id = "listClients",
    reach(Owner, Reads),
    responses((status = 200, description = "The clients", body = Connections)),
)]
pub(crate) async fn list(State(admin): AdminState, request: Request) -> Answer<Connections> {
    let status = admin.services.status();
    let url = address_of(&request).unwrap_or_else(|| status.url.clone());
    // Tiers are listed all the same if the folder cannot be read.
    let listed = admin.models.list().await;
    let models = listed.map(|listed| listed.models).unwrap_or_default();
    let server = ClientServer {
        mcp_command: admin.services.mcp_command().await,
        ..server(url, admin.edge.needs_key(), &status.tiers, &models)
    };
    let found = admin.services.found_clients().await;
    let clients = CLIENTS.iter().map(|client| ClientSettings {
        found: client.is_found(&found),
        ..render(client, &server, None, None)
    });
    let clients = clients.collect();
    Ok(Json(Connections { server, clients }))
}

fn server(
    url: String,
    key_required: bool,
    tiers: &[TierStatus],
    models: &[LibraryModel],
) -> ClientServer {
    let of_kind = |kind: ModelKind| {
        let has_model = move |tier: &&TierStatus| tier.model.is_some() && tier.kind == kind;
        tiers.iter().filter(has_model)
    };
    let tools = |tier: &TierStatus| {
        let model = models.iter().find(|model| model.tiers.contains(&tier.id));
        let known = model.and_then(|model| Some(model.account.as_ref()?.tools));
        // Of a file outside the folder nothing is known but that our engine lets each model call tools.
        known.or((tier.engine == EngineKind::Embedded).then_some(true))
    };
    let chat = of_kind(ModelKind::Chat).map(|tier| ClientTier {
        id: tier.id.clone(),
        context_tokens: Some(tier.context_tokens),
        tools: tools(tier),
    });
    ClientServer {
        url,
        key_required,
        tiers: chat.collect(),
        embedder: of_kind(ModelKind::Embedding)
            .next()
            .map(|tier| tier.id.clone()),
        mcp_command: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, json, tier};
    use tierbar_core::{ModelKind, TierState};

    #[tokio::test]
    async fn clients_are_listed_with_this_servers_address_and_tiers() {
        let bench = Bench::configured("127.0.0.1:11435", |config| {
            config.server.require_keys = true;
        })
        .await;
        let embedder = tier("embedder", Some("minilm"), TierState::Stopped);
        bench.tiers(|tiers| {
            tiers.push(tier("empty", None, TierState::Stopped));
            tiers.push(embedder);
            tiers.last_mut().unwrap().kind = ModelKind::Embedding;
        });
        let answer = json(bench.get("/tierbar/v1/connect").await).await;
        let server = &answer["server"];
        assert_eq!(server["url"], "http://localhost");
        assert_eq!(server["key_required"], true);
        assert_eq!(server["tiers"].as_array().unwrap().len(), 1);
        assert_eq!(server["tiers"][0]["id"], "fast");
        assert_eq!(server["embedder"], "embedder");
        let clients = answer["clients"].as_array().unwrap();
        let of = |id: &str| clients.iter().find(|client| client["id"] == id).unwrap();
        assert_eq!(of("codex")["found"], true);
        assert_eq!(of("aider")["found"], false);
        assert!(of("langchain")["found"].is_null());
        let text = of("cursor")["settings"][0]["text"].as_str().unwrap();
        assert!(text.contains(r#""command": "/bin/tierbar""#), "{text}");
        assert!(of("cursor")["model"].is_null());
        let text = of("claude-code")["settings"][0]["text"].as_str().unwrap();
        assert!(
            text.contains("ANTHROPIC_BASE_URL=http://localhost\n"),
            "{text}"
        );
        assert!(text.contains("ANTHROPIC_MODEL=fast"), "{text}");
    }
}
