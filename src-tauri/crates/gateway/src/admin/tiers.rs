//! Starting, stopping and expecting a tier.

use crate::admin::Admin;
use axum::{Json, body::Body, extract::State, http::StatusCode};
use serde::Deserialize;
use serde_json::Map;
use std::sync::Arc;
use tierbar_core::{Code, Error, TierId, nearest::suggest, status::TierStatus};
use tierbar_http::{error::Failure, path::Id, schema::Errors};
use tierbar_inference::{body, content::Content, route};

#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(crate) struct StopTier {
    #[serde(default)]
    force: bool,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[schema(as = Expected)]
pub(crate) struct Announcement {
    #[serde(default)]
    model: Option<String>,
}

/// Announces a request for a model, which may load meanwhile.
#[utoipa::path(
    post,
    path = "/tierbar/v1/expect",
    tag = "owner",
    operation_id = "expect",
    reach(Owner, Spends),
    request_body = Announcement,
    responses((status = 204, description = "The announcement is noted"), Errors),
)]
pub(crate) async fn expect(
    State(admin): State<Arc<Admin>>,
    body: Body,
) -> Result<StatusCode, Failure> {
    let expected: Announcement = body::object(body).await?;
    let (model, tiers) = (expected.model.as_deref(), admin.inference.tiers.snapshot());
    let tier = route::resolve(model, &tiers)?;
    let smaller = route::smaller_tier(&tier, model, &tiers, &Content::new(Map::new()));
    admin.inference.tiers.expect(&smaller.unwrap_or(tier));
    Ok(StatusCode::NO_CONTENT)
}

/// Loads the model of a tier.
#[utoipa::path(
    post,
    path = "/tierbar/v1/tiers/{id}/start",
    tag = "owner",
    operation_id = "startTier",
    reach(Owner, Spends),
    params(("id" = String, Path, description = "The name of a tier")),
    responses((status = 200, description = "The tier", body = TierStatus), Errors),
)]
pub(crate) async fn start(
    State(admin): State<Arc<Admin>>,
    Id(name): Id,
) -> Result<Json<TierStatus>, Failure> {
    let tier = parse_tier(&admin, &name)?;
    admin.inference.tiers.start(&tier).await?;
    tier_status(&admin, &tier)
}

/// Unloads the model of a tier.
#[utoipa::path(
    post,
    path = "/tierbar/v1/tiers/{id}/stop",
    tag = "owner",
    operation_id = "stopTier",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The name of a tier")),
    request_body = StopTier,
    responses((status = 200, description = "The tier", body = TierStatus), Errors),
)]
pub(crate) async fn stop(
    State(admin): State<Arc<Admin>>,
    Id(name): Id,
    body: Body,
) -> Result<Json<TierStatus>, Failure> {
    let stop: StopTier = body::object(body).await?;
    let tier = parse_tier(&admin, &name)?;
    admin.inference.tiers.stop(&tier, stop.force).await?;
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

fn tier_status(admin: &Admin, tier: &TierId) -> Result<Json<TierStatus>, Failure> {
    // The host's status has the memory readings too; both are of this moment.
    let status = admin
        .services
        .status()
        .tiers
        .iter()
        .find(|status| status.id == *tier)
        .cloned();
    Ok(Json(
        status.ok_or_else(|| unknown_tier_error(admin, tier.as_str()))?,
    ))
}

fn unknown_tier_error(admin: &Admin, name: &str) -> Error {
    let names: Vec<_> = admin
        .inference
        .tiers
        .snapshot()
        .into_iter()
        .map(|tier| tier.id.to_string())
        .collect();
    let shown: String = name.chars().take(100).collect();
    let error = Error::new(
        Code::TierUnknown,
        format!("there is no tier named \"{shown}\""),
    );
    if names.is_empty() {
        return error.hint("add a tier to config.toml");
    }
    let all = format!("the tiers are {}", names.join(", "));
    error.hint(suggest(&shown, names.iter().map(String::as_str), all))
}
