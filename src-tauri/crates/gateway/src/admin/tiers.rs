//! Starting, stopping and expecting a tier, pausing all of them, and the chains of tiers.

use crate::admin::{Admin, AdminState};
use axum::{Json, extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use tierbar_core::{
    Code, Error, TierId,
    chain::ChainStatus,
    config::Span,
    nearest::suggest,
    status::{Status, TierStatus},
};
use tierbar_http::{Answer, error::Failure, path::Id, request::JsonBody};
use tierbar_inference::{content::Content, route};
use utoipa::ToSchema;

#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(crate) struct StopTier {
    #[serde(default)]
    force: bool,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[schema(as = Expected)]
pub(crate) struct Announcement {
    model: Option<String>,
}

/// Announces a request for a model, which may load meanwhile.
#[utoipa::path(
    post,
    path = "/tierbar/v1/expect",
    reach(Owner, Spends),
    request_body = Announcement,
    responses((status = 204, description = "The announcement is noted")),
)]
pub(crate) async fn expect(
    State(admin): AdminState,
    JsonBody(Announcement { model }): JsonBody<Announcement>,
) -> Result<StatusCode, Failure> {
    let (model, tiers) = (model.as_deref(), admin.inference.tiers.snapshot());
    let tier = route::resolve(model, &tiers)?;
    let smaller = route::smaller_tier(&tier, model, &tiers, &Content::new(Map::new()));
    admin.inference.tiers.expect(&smaller.unwrap_or(tier));
    Ok(StatusCode::NO_CONTENT)
}

/// Loads the model of a tier.
#[utoipa::path(
    post,
    path = "/tierbar/v1/tiers/{id}/start",
    operation_id = "startTier",
    reach(Owner, Spends),
    params(("id" = String, Path, description = "The name of a tier")),
    responses((status = 200, description = "The tier", body = TierStatus)),
)]
pub(crate) async fn start(State(admin): AdminState, Id(name): Id) -> Answer<TierStatus> {
    let tier = parse_tier(&admin, &name)?;
    admin.inference.tiers.start(&tier).await?;
    tier_status(&admin, &tier)
}

/// Unloads the model of a tier.
#[utoipa::path(
    post,
    path = "/tierbar/v1/tiers/{id}/stop",
    operation_id = "stopTier",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The name of a tier")),
    request_body = StopTier,
    responses((status = 200, description = "The tier", body = TierStatus)),
)]
pub(crate) async fn stop(
    State(admin): AdminState,
    Id(name): Id,
    JsonBody(StopTier { force }): JsonBody<StopTier>,
) -> Answer<TierStatus> {
    let tier = parse_tier(&admin, &name)?;
    admin.inference.tiers.stop(&tier, force).await?;
    tier_status(&admin, &tier)
}

fn parse_tier(admin: &Admin, name: &str) -> Result<TierId, Error> {
    TierId::new(name).map_err(|_| unknown_tier_error(admin, name))
}

/// For those who do not ask the tiers' owner, who says so himself.
pub(super) fn find_tier(admin: &Admin, name: &str) -> Result<TierId, Error> {
    let tiers = admin.inference.tiers.snapshot().into_iter();
    let mut ids = tiers.map(|tier| tier.id);
    ids.find(|id| id.as_str() == name)
        .ok_or_else(|| unknown_tier_error(admin, name))
}

fn tier_status(admin: &Admin, tier: &TierId) -> Answer<TierStatus> {
    // The host's status has the memory readings too; both are of this moment.
    let status = admin.services.status();
    let found = status.tiers.iter().find(|status| status.id == *tier);
    let found = found.ok_or_else(|| unknown_tier_error(admin, tier.as_str()))?;
    Ok(Json(found.clone()))
}

fn unknown_tier_error(admin: &Admin, name: &str) -> Error {
    let tiers = admin.inference.tiers.snapshot();
    let names: Vec<_> = tiers.iter().map(|tier| tier.id.as_str()).collect();
    let shown: String = name.chars().take(100).collect();
    let message = format!("there is no tier named \"{shown}\"");
    let error = Error::new(Code::TierUnknown, message);
    if names.is_empty() {
        return error.hint("add a tier to config.toml");
    }
    let all = format!("the tiers are {}", names.join(", "));
    error.hint(suggest(&shown, names, all))
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(crate) struct Pause {
    /// How long; until resumed if omitted.
    #[serde(rename = "for")]
    #[schema(value_type = Option<String>, examples("1h"))]
    length: Option<Span>,
}

/// Unloads the models, and loads none until the pause ends.
#[utoipa::path(
    post,
    path = "/tierbar/v1/pause",
    reach(Owner, Writes),
    request_body = Pause,
    responses((status = 200, description = "The status", body = Status)),
)]
pub(crate) async fn pause(
    State(admin): AdminState,
    JsonBody(Pause { length }): JsonBody<Pause>,
) -> Answer<Status> {
    let status = admin.services.pause(length.map(|Span(length)| length));
    Ok(Json(Status::clone(&status)))
}

/// Ends a pause.
#[utoipa::path(
    post,
    path = "/tierbar/v1/resume",
    reach(Owner, Writes),
    responses((status = 200, description = "The status", body = Status)),
)]
pub(crate) async fn resume(State(admin): AdminState) -> Json<Status> {
    Json(Status::clone(&admin.services.resume()))
}

/// All chains.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChainList {
    chains: Vec<ChainStatus>,
}

/// Lists the chains, and whether each endpoint can be asked now.
#[utoipa::path(
    get,
    path = "/tierbar/v1/chains",
    operation_id = "listChains",
    reach(Owner, Reads),
    responses((status = 200, description = "The chains", body = ChainList)),
)]
pub(crate) async fn chains(State(admin): AdminState) -> Json<ChainList> {
    let chains = admin.inference.chain_status();
    Json(ChainList { chains })
}
