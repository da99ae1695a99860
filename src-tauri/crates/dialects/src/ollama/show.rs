//! `POST /api/show`: one model, and what it can do.

use super::{
    details::{self, Library},
    name::OllamaModelName,
    schema::OllamaShown,
};
use axum::{Json, body::Body, extract::State};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::{
    TierId,
    fit::LibraryModel,
    status::{EngineKind, TierStatus},
};
use tierbar_http::Answer;
use tierbar_inference::{Inference, body, models, route};

/// Shows a model.
#[utoipa::path(
    post,
    path = "/api/show",
    operation_id = "ollamaShow",
    reach(Inference, Reads, Counts),
    request_body = OllamaModelName,
    responses((status = 200, description = "The model", body = OllamaShown)),
)]
pub(super) async fn show(State(inference): State<Arc<Inference>>, body: Body) -> Answer<Value> {
    let named: OllamaModelName = body::object(body).await?;
    let tiers = inference.tiers.snapshot();
    let wanted = route::without_latest_tag(named.model()?, &tiers);
    let config = inference.services.config();
    let mut chains = config.chains.iter();
    let chain = chains.find(|(name, _)| name.as_str() == wanted);
    // Of a chain: the first of its tiers, which is its first choice.
    let first = chain.and_then(|(_, chain)| chain.tiers().next());
    let id = match route::resolve(Some(first.map_or(wanted, TierId::as_str)), &tiers) {
        Ok(id) => id,
        Err(error) => {
            let explained = models::explain_unknown_name(&inference, Some(wanted), error);
            return Err(explained.await.into());
        }
    };
    let found = tiers.iter().find(|tier| tier.id == id);
    let tier = found.ok_or_else(|| route::unknown_name_error(id.as_str(), &tiers))?;
    let library = Library::read(&inference).await;
    let model = library.of_tier(tier);
    let changed = details::modification_times(&[model]).await;
    Ok(Json(json!({
        "modified_at": changed.first().map(ToString::to_string),
        "details": details::details(model),
        "model_info": model_info(tier, model),
        "capabilities": details::capabilities(model),
        "parameters": format!("num_ctx                        {}", tier.context_tokens),
        "template": "",
        "modelfile": "",
        "tierbar": {"tier": tier.id, "model": tier.model, "state": tier.state},
    })))
}

/// The header's names for what is known. `context_length` is what the tier holds, which is what a client may send: a model may
/// have been trained for more.
fn model_info(tier: &TierStatus, model: Option<&LibraryModel>) -> Value {
    let account = model.and_then(|model| model.account.as_ref());
    let kind = match tier.engine {
        EngineKind::Embedded => "unknown",
        EngineKind::Command => "command",
        EngineKind::Endpoint => "endpoint",
    };
    let architecture = account.map_or(kind, |account| &account.architecture);
    let mut info = Map::new();
    info.insert("general.architecture".to_owned(), architecture.into());
    if let Some(account) = account {
        let parameters = account.parameters.into();
        info.insert("general.parameter_count".to_owned(), parameters);
        let name = account.name.as_deref();
        info.extend(name.map(|name| ("general.name".to_owned(), name.into())));
    }
    let mut put = |name: &str, value: u32| {
        if value > 0 {
            info.insert(format!("{architecture}.{name}"), value.into());
        }
    };
    let trained = account.map_or(u32::MAX, |account| account.context_train);
    put("context_length", tier.context_tokens.min(trained));
    if let Some(account) = account {
        put("block_count", account.layers);
        put("embedding_length", account.embedding);
        put("attention.head_count", account.heads);
        put("attention.head_count_kv", account.kv_heads);
        put("expert_count", account.experts);
        put("expert_used_count", account.experts_used);
        put("vocab_size", account.vocabulary);
    }
    info.into()
}
