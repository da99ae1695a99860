//! Models that can be had: the catalog, and the hub when there is a network.

use crate::admin::AdminState;
use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use tierbar_core::catalog::{CatalogRefresh, HubModel, HubReadme, HubRepository};
use tierbar_http::{Answer, request::QueryFields};
use tierbar_inference::services::models::CatalogAnswer;
use utoipa::ToSchema;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct HubSearchQuery {
    q: String,
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct RepositoryQuery {
    id: String,
}

/// The models that a search found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HubSearch {
    models: Vec<HubModel>,
}

/// Lists recommended models.
#[utoipa::path(
    get,
    path = "/tierbar/v1/catalog",
    reach(Owner, Reads),
    responses((status = 200, description = "The catalog", body = CatalogAnswer)),
)]
pub(crate) async fn catalog(State(admin): AdminState) -> Answer<CatalogAnswer> {
    Ok(Json(admin.models.catalog().await?))
}

/// Updates the recommended models' files, sizes and hashes from Hugging Face.
///
/// Tierbar never does so by itself. A repository that cannot be read is listed with the reason, and the others are updated.
#[utoipa::path(
    post,
    path = "/tierbar/v1/catalog/refresh",
    operation_id = "refreshCatalog",
    reach(Owner, Writes, Spends),
    responses((status = 200, description = "What was updated", body = CatalogRefresh)),
)]
pub(crate) async fn refresh(State(admin): AdminState) -> Answer<CatalogRefresh> {
    Ok(Json(admin.models.refresh_catalog().await?))
}

/// Searches Hugging Face for models.
#[utoipa::path(
    get,
    path = "/tierbar/v1/hub/search",
    operation_id = "searchHub",
    reach(Owner, Spends),
    params(HubSearchQuery),
    responses((status = 200, description = "The models found", body = HubSearch)),
)]
pub(crate) async fn search(
    State(admin): AdminState,
    QueryFields(HubSearchQuery { q }): QueryFields<HubSearchQuery>,
) -> Answer<HubSearch> {
    let models = admin.models.search(q).await?;
    Ok(Json(HubSearch { models }))
}

/// Lists the files of a repository on Hugging Face, and how each fits.
#[utoipa::path(
    get,
    path = "/tierbar/v1/hub/repository",
    operation_id = "hubRepository",
    reach(Owner, Spends),
    params(RepositoryQuery),
    responses((status = 200, description = "The repository", body = HubRepository)),
)]
pub(crate) async fn repository(
    State(admin): AdminState,
    QueryFields(RepositoryQuery { id }): QueryFields<RepositoryQuery>,
) -> Answer<HubRepository> {
    Ok(Json(admin.models.repository(id).await?))
}

/// Returns what a repository on Hugging Face says of its models.
///
/// Tierbar asks Hugging Face only now: no page of a model is fetched by itself.
#[utoipa::path(
    get,
    path = "/tierbar/v1/hub/readme",
    operation_id = "hubReadme",
    reach(Owner, Spends),
    params(RepositoryQuery),
    responses((status = 200, description = "The readme", body = HubReadme)),
)]
pub(crate) async fn readme(
    State(admin): AdminState,
    QueryFields(RepositoryQuery { id }): QueryFields<RepositoryQuery>,
) -> Answer<HubReadme> {
    Ok(Json(admin.models.readme(id).await?))
}
