//! What the API needs of the host about models: local ones, available ones, and downloads.

use serde::{Deserialize, Serialize};
use std::{fmt, path::PathBuf};
use tierbar_core::{
    Error, ModelId, TierId,
    catalog::{CatalogModel, CatalogRefresh, HubModel, HubReadme, HubRepository},
    download::{DownloadState, DownloadStatus, Include, Priority},
    fit::{LibraryModel, Verdict},
    judgment::{ExamOutcome, Judgment},
    lease::BoxFuture,
    setup::{FolderRoom, SetupPlan},
    volume::ModelDisk,
};

/// The host's models. Owned by the host; no call blocks.
pub trait Models: Send + Sync + fmt::Debug {
    /// # Errors
    /// `Storage` if the models folder cannot be read.
    fn list(&self) -> BoxFuture<'_, Result<ModelList, Error>>;

    /// # Errors
    /// `ModelMissing`, `RepositoryUnknown` and the like for a model that is neither here nor elsewhere; `BadRequest`
    /// for a context, cache type or RAM that cannot be.
    fn fit(&self, question: FitQuestion) -> BoxFuture<'_, Result<Verdict, Error>>;

    /// Whether it went to the Trash rather than away.
    ///
    /// # Errors
    /// `ModelMissing`, `ModelInUse` with the tier, `NotOurs` with whose it is, `Storage`.
    fn remove(&self, model: String, permanently: bool) -> BoxFuture<'_, Result<bool, Error>>;

    /// Hashes the whole model.
    ///
    /// # Errors
    /// `ModelMissing`, `Storage`.
    fn verify(&self, model: String) -> BoxFuture<'_, Result<ModelVerification, Error>>;

    /// Adds a folder to the configuration, and tells what is in it.
    ///
    /// # Errors
    /// `BadRequest` if there is no such folder; those of changing the configuration.
    fn import(&self, path: String) -> BoxFuture<'_, Result<Vec<LibraryModel>, Error>>;

    fn catalog(&self) -> BoxFuture<'_, Result<CatalogAnswer, Error>>;

    /// Asks the hub for the current files of the catalog's models.
    ///
    /// # Errors
    /// `Unreachable` and the like if no repository could be read; `Storage`.
    fn refresh_catalog(&self) -> BoxFuture<'_, Result<CatalogRefresh, Error>>;

    /// Proposes a model for each tier, of this machine or of a Mac with as much RAM, such as `16GiB`. Needs no network.
    ///
    /// # Errors
    /// `BadRequest` for RAM that cannot be.
    fn plan_setup(&self, ram: Option<String>) -> BoxFuture<'_, Result<SetupPlan, Error>>;

    /// Returns a folder that models can be downloaded to, as a full path or from `~`, with the room there.
    ///
    /// # Errors
    /// `BadRequest` for what is not a folder that can be written; `Storage`.
    fn folder_room(&self, path: String) -> BoxFuture<'_, Result<FolderRoom, Error>>;

    /// # Errors
    /// `Unreachable` and the like.
    fn search(&self, words: String) -> BoxFuture<'_, Result<Vec<HubModel>, Error>>;

    /// # Errors
    /// `RepositoryUnknown`, `AccessDenied`, `Unreachable`.
    fn repository(&self, id: String) -> BoxFuture<'_, Result<HubRepository, Error>>;

    /// # Errors
    /// `NotFound` without a readme, else as [`Models::repository`].
    fn readme(&self, id: String) -> BoxFuture<'_, Result<HubReadme, Error>>;

    /// The downloads, in the order of the status.
    fn downloads(&self) -> Vec<DownloadStatus>;

    /// Whether the download is a new one.
    ///
    /// # Errors
    /// `BadRequest` and those of the hub for the reference, `OverBudget` unless `anyway`, `Storage`.
    fn download(
        &self,
        pull: DownloadRequest,
    ) -> BoxFuture<'_, Result<(DownloadStatus, bool), Error>>;

    /// # Errors
    /// `NotFound`; `BadRequest` for a state that cannot be asked for.
    fn change_download(
        &self,
        id: String,
        change: DownloadChange,
    ) -> BoxFuture<'_, Result<DownloadStatus, Error>>;

    /// # Errors
    /// `NotFound`.
    fn remove_download(&self, id: String) -> BoxFuture<'_, Result<(), Error>>;

    /// How the model's file did in an earlier examination; `None` if it took none. `model`: as its tier names it.
    fn exam_outcome(
        &self,
        model: ModelId,
        judgment: Judgment,
    ) -> BoxFuture<'_, Option<ExamOutcome>>;

    /// Stores how the model's file did, in place of what was stored of the same judgment. `false`: the file has been replaced since it was
    /// loaded, so the outcome is only of the model as it is loaded now, and not stored.
    fn store_exam_outcome(&self, model: ModelId, outcome: ExamOutcome) -> BoxFuture<'_, bool>;
}

#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = Listed)]
pub struct ModelList {
    #[schema(value_type = String)]
    pub models_dir: PathBuf,
    /// The disks with models, first that of the models folder.
    pub disks: Vec<ModelDisk>,
    pub models: Vec<LibraryModel>,
}

/// Which model, and for which machine; what is left out is this machine's, or the tier's that loads the model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub struct FitQuestion {
    pub model: String,
    pub context: Option<u32>,
    pub kv_cache: Option<String>,
    /// What it is for: `balanced`, `long_context`, `agent` or `paged`; without it, the tier's profile, or `balanced`.
    pub profile: Option<String>,
    /// Such as `16GiB`.
    pub ram: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Verified)]
pub struct ModelVerification {
    pub sha256: String,
    /// What was fetched, or hashed when it was.
    pub expected: Option<String>,
    pub matches: Option<bool>,
    /// The files that differ from what was expected: of the model, and its media projector.
    #[schema(value_type = Vec<String>)]
    pub damaged: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct CatalogAnswer {
    pub version: String,
    /// When its facts were collected: `2026-11-26`.
    pub date: String,
    /// When files, sizes and hashes were last updated from the hub, RFC 3339.
    pub refreshed: Option<String>,
    pub models: Vec<CatalogModel>,
}

/// What to download.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[schema(as = Pull)]
pub struct DownloadRequest {
    pub reference: String,
    #[serde(default)]
    pub priority: Priority,
    /// Also if it cannot run on this machine.
    #[serde(default)]
    pub anyway: bool,
    /// With `projector`, `reference` may also be the id of an installed model that Tierbar downloaded.
    #[serde(default)]
    pub include: Include,
    /// The tier that gets the model once it is downloaded.
    pub tier: Option<TierId>,
    /// A folder on another disk, such as `/Volumes/Models`, instead of the models folder. It is added to the library's folders.
    pub folder: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
pub struct DownloadChange {
    pub state: Option<DownloadState>,
    pub priority: Option<Priority>,
}
