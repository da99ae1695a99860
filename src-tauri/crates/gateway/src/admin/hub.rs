//! Models that can be had: the catalog, and the hub when there is a network.

use super::models::asked;
use crate::{CatalogAnswer, Gateway, http::error::Failure};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::catalog::HubRepository;

#[derive(Debug, Deserialize)]
pub(crate) struct Words {
    q: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Named {
    id: String,
}

pub(crate) async fn catalog(
    State(gateway): State<Arc<Gateway>>,
) -> Result<Json<CatalogAnswer>, Failure> {
    Ok(Json(gateway.models.catalog().await?))
}

pub(crate) async fn search(
    State(gateway): State<Arc<Gateway>>,
    query: Result<Query<Words>, QueryRejection>,
) -> Result<Json<Value>, Failure> {
    let Words { q } = asked(query)?;
    Ok(Json(json!({"models": gateway.models.search(q).await?})))
}

pub(crate) async fn repository(
    State(gateway): State<Arc<Gateway>>,
    query: Result<Query<Named>, QueryRejection>,
) -> Result<Json<HubRepository>, Failure> {
    let Named { id } = asked(query)?;
    Ok(Json(gateway.models.repository(id).await?))
}
