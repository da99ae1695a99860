//! Models that can be had: the catalog, and the hub when there is a network.

use super::models::read_query;
use crate::{admin::Admin, http::error::Failure, services::models::CatalogAnswer};
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
    State(admin): State<Arc<Admin>>,
) -> Result<Json<CatalogAnswer>, Failure> {
    Ok(Json(admin.models.catalog().await?))
}

pub(crate) async fn search(
    State(admin): State<Arc<Admin>>,
    query: Result<Query<Words>, QueryRejection>,
) -> Result<Json<Value>, Failure> {
    let Words { q } = read_query(query)?;
    Ok(Json(json!({"models": admin.models.search(q).await?})))
}

pub(crate) async fn repository(
    State(admin): State<Arc<Admin>>,
    query: Result<Query<Named>, QueryRejection>,
) -> Result<Json<HubRepository>, Failure> {
    let Named { id } = read_query(query)?;
    Ok(Json(admin.models.repository(id).await?))
}
