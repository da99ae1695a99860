//! Models that are here: what fits, what is whole, what goes.

use crate::admin::AdminState;
use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use tierbar_core::{
    Code, Error,
    fit::{LibraryModel, Verdict},
};
use tierbar_http::{
    Answer,
    path::Id,
    request::{JsonBody, QueryFields},
};
use tierbar_inference::services::models::{FitQuestion, ModelList, ModelVerification};
use utoipa::ToSchema;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Removal {
    #[serde(default)]
    permanently: bool,
}

#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub(crate) struct Import {
    path: String,
}

/// Where a removed model went.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Removed)]
pub(crate) struct ModelRemoval {
    /// To the Trash; otherwise it is deleted.
    trashed: bool,
}

/// The models in an added folder.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Imported)]
pub(crate) struct ImportedModels {
    models: Vec<LibraryModel>,
}

/// Lists the models on this machine.
#[utoipa::path(
    get,
    path = "/tierbar/v1/models",
    operation_id = "listLocalModels",
    reach(Owner, Reads),
    responses((status = 200, description = "The models", body = ModelList)),
)]
pub(crate) async fn list(State(admin): AdminState) -> Answer<ModelList> {
    Ok(Json(admin.models.list().await?))
}

/// Returns whether a model fits into memory, and how fast it would be.
#[utoipa::path(
    get,
    path = "/tierbar/v1/models/fit",
    operation_id = "fitModel",
    reach(Owner, Reads),
    params(FitQuestion),
    responses((status = 200, description = "The plan", body = Verdict)),
)]
pub(crate) async fn fit(
    State(admin): AdminState,
    QueryFields(question): QueryFields<FitQuestion>,
) -> Answer<Verdict> {
    Ok(Json(admin.models.fit(question).await?))
}

/// Moves a model to the Trash.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/models/{id}",
    operation_id = "removeModel",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "The id of a model"), Removal),
    responses((status = 200, description = "Whether the model was moved to the Trash", body = ModelRemoval)),
)]
pub(crate) async fn remove(
    State(admin): AdminState,
    Id(id): Id,
    QueryFields(Removal { permanently }): QueryFields<Removal>,
) -> Answer<ModelRemoval> {
    let removed = admin.models.remove(id, permanently).await;
    let trashed = removed.map_err(as_unknown)?;
    Ok(Json(ModelRemoval { trashed }))
}

/// Hashes a model, and compares it with what was downloaded.
#[utoipa::path(
    post,
    path = "/tierbar/v1/models/{id}/verify",
    operation_id = "verifyModel",
    reach(Owner, Spends),
    params(("id" = String, Path, description = "The id of a model")),
    responses((status = 200, description = "The hashes", body = ModelVerification)),
)]
pub(crate) async fn verify(State(admin): AdminState, Id(id): Id) -> Answer<ModelVerification> {
    Ok(Json(admin.models.verify(id).await.map_err(as_unknown)?))
}

/// Adds a folder with models to the configuration.
#[utoipa::path(
    post,
    path = "/tierbar/v1/models/import",
    operation_id = "importModels",
    reach(Owner, Writes, Opens),
    request_body = Import,
    responses((status = 200, description = "The models in the folder", body = ImportedModels)),
)]
pub(crate) async fn import(
    State(admin): AdminState,
    JsonBody(Import { path }): JsonBody<Import>,
) -> Answer<ImportedModels> {
    let models = admin.models.import(path).await?;
    Ok(Json(ImportedModels { models }))
}

/// A model that an address names and that is not here.
fn as_unknown(mut error: Error) -> Error {
    if error.code == Code::ModelMissing {
        error.code = Code::ModelUnknown;
    }
    error
}
