//! Starting, stopping and expecting a tier.

use crate::{
    Gateway,
    http::{body, error::Failure, path::Id},
    inference::route,
};
use axum::{Json, body::Body, extract::State, http::StatusCode};
use serde::Deserialize;
use std::sync::Arc;
use tierbar_core::{Code, Error, TierId, status::TierStatus};

#[derive(Debug, Deserialize)]
pub(crate) struct Stop {
    #[serde(default)]
    force: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Expected {
    #[serde(default)]
    model: Option<String>,
}

/// A request for `model` is being written: its tier may load meanwhile, if that is in nobody's way.
pub(crate) async fn expect(
    State(gateway): State<Arc<Gateway>>,
    body: Body,
) -> Result<StatusCode, Failure> {
    let expected: Expected = body::object(body).await?;
    let (model, tiers) = (expected.model.as_deref(), gateway.tiers.snapshot());
    let tier = route::resolve(model, &tiers)?;
    let smaller = route::smaller(&tier, model, &tiers, b"");
    gateway.tiers.expect(&smaller.unwrap_or(tier));
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn start(
    State(gateway): State<Arc<Gateway>>,
    Id(name): Id,
) -> Result<Json<TierStatus>, Failure> {
    let tier = named(&gateway, &name)?;
    gateway.tiers.start(&tier).await?;
    state(&gateway, &tier)
}

pub(crate) async fn stop(
    State(gateway): State<Arc<Gateway>>,
    Id(name): Id,
    body: Body,
) -> Result<Json<TierStatus>, Failure> {
    let stop: Stop = body::object(body).await?;
    let tier = named(&gateway, &name)?;
    gateway.tiers.stop(&tier, stop.force).await?;
    state(&gateway, &tier)
}

fn named(gateway: &Gateway, name: &str) -> Result<TierId, Error> {
    TierId::new(name).map_err(|_| unknown(gateway, name))
}

/// For those who do not ask the tiers' owner, who says so himself.
pub(super) fn existing(gateway: &Gateway, name: &str) -> Result<TierId, Error> {
    let tiers = gateway.tiers.snapshot().into_iter();
    let mut ids = tiers.map(|tier| tier.id);
    ids.find(|id| id.as_str() == name)
        .ok_or_else(|| unknown(gateway, name))
}

fn state(gateway: &Gateway, tier: &TierId) -> Result<Json<TierStatus>, Failure> {
    // The host's status has the memory readings too; both are of this moment.
    let status = gateway
        .services
        .status()
        .tiers
        .iter()
        .find(|status| status.id == *tier)
        .cloned();
    Ok(Json(status.ok_or_else(|| unknown(gateway, tier.as_str()))?))
}

fn unknown(gateway: &Gateway, name: &str) -> Error {
    let names: Vec<_> = gateway
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
    error.hint(format!("the tiers are {}", names.join(", ")))
}
