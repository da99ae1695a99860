//! Models: those on this machine, those to download, and the downloads.

mod assignments;
mod disks;
mod downloads;
mod list;
mod local;
mod marks;
mod offers;
mod setup;

pub(crate) use assignments::Assignments;
pub(crate) use downloads::on_complete;
pub(crate) use list::CatalogList;
pub(crate) use local::LocalModels;
pub(crate) use marks::store_mark;
pub(crate) use offers::Offers;

use std::sync::Arc;
use tierbar_core::{
    Error, ModelId,
    catalog::{CatalogRefresh, HubModel, HubReadme, HubRepository},
    download::DownloadStatus,
    fit::{LibraryModel, Verdict},
    judgment::{ExamOutcome, Judgment},
    lease::BoxFuture,
    setup::{FolderRoom, SetupPlan},
};
use tierbar_inference::services::models::{
    CatalogAnswer, DownloadChange, DownloadRequest, FitQuestion, ModelList, ModelVerification,
    Models,
};
use tierbar_library::reference::Repository;

#[derive(Debug)]
pub(crate) struct ModelService {
    pub(crate) local: Arc<LocalModels>,
    pub(crate) offers: Offers,
    pub(crate) assignments: Arc<Assignments>,
}

impl Models for ModelService {
    fn list(&self) -> BoxFuture<'_, Result<ModelList, Error>> {
        Box::pin(self.local.list())
    }

    fn fit(&self, question: FitQuestion) -> BoxFuture<'_, Result<Verdict, Error>> {
        Box::pin(self.offers.fit(question))
    }

    fn remove(&self, model: String, permanently: bool) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(self.local.remove(model, permanently))
    }

    fn verify(&self, model: String) -> BoxFuture<'_, Result<ModelVerification, Error>> {
        Box::pin(self.local.verify(model))
    }

    fn import(&self, path: String) -> BoxFuture<'_, Result<Vec<LibraryModel>, Error>> {
        Box::pin(self.local.import(path))
    }

    fn catalog(&self) -> BoxFuture<'_, Result<CatalogAnswer, Error>> {
        Box::pin(self.offers.catalog())
    }

    fn refresh_catalog(&self) -> BoxFuture<'_, Result<CatalogRefresh, Error>> {
        Box::pin(self.offers.list.refresh(&self.offers.hub))
    }

    fn plan_setup(&self, ram: Option<String>) -> BoxFuture<'_, Result<SetupPlan, Error>> {
        Box::pin(self.offers.plan_setup(ram))
    }

    fn folder_room(&self, path: String) -> BoxFuture<'_, Result<FolderRoom, Error>> {
        Box::pin(setup::folder_room(path))
    }

    fn search(&self, words: String) -> BoxFuture<'_, Result<Vec<HubModel>, Error>> {
        Box::pin(async move { self.offers.hub.search(&words).await })
    }

    fn repository(&self, id: String) -> BoxFuture<'_, Result<HubRepository, Error>> {
        Box::pin(self.offers.repository(id))
    }

    fn readme(&self, id: String) -> BoxFuture<'_, Result<HubReadme, Error>> {
        Box::pin(async move { self.offers.hub.readme(&Repository::new(&id)?).await })
    }

    fn downloads(&self) -> Vec<DownloadStatus> {
        self.local.config.queue.watch().borrow().to_vec()
    }

    fn download(
        &self,
        pull: DownloadRequest,
    ) -> BoxFuture<'_, Result<(DownloadStatus, bool), Error>> {
        Box::pin(self.begin_download(pull))
    }

    fn change_download(
        &self,
        id: String,
        change: DownloadChange,
    ) -> BoxFuture<'_, Result<DownloadStatus, Error>> {
        Box::pin(self.alter_download(id, change))
    }

    fn remove_download(&self, id: String) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.forget_download(id))
    }

    fn exam_outcome(
        &self,
        model: ModelId,
        judgment: Judgment,
    ) -> BoxFuture<'_, Option<ExamOutcome>> {
        Box::pin(self.local.exam_outcome(model, judgment))
    }

    fn store_exam_outcome(&self, model: ModelId, outcome: ExamOutcome) -> BoxFuture<'_, bool> {
        Box::pin(self.local.store_exam_outcome(model, outcome))
    }
}
