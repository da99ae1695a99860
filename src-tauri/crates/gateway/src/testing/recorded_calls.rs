//! Models, documents and schedules that write down what they are asked.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
};
use tierbar_core::{
    Code, Error, ModelId,
    catalog::{CatalogRefresh, HubModel, HubReadme, HubRepository},
    documents::{DocumentSource, Documents},
    download::{DownloadState, DownloadStatus},
    fit::{LibraryModel, Verdict},
    judgment::{ExamOutcome, Judgment},
    lease::BoxFuture,
    schedule::ScheduleStatus,
    setup::{FolderRoom, SetupPlan},
};
use tierbar_inference::services::{
    documents::DocumentIndex,
    models::{self, DownloadChange, DownloadRequest, ModelList, ModelVerification, Models},
    schedules::Schedules,
};

/// Writes down what it is asked, and refuses it; only a download is begun, and it is new once, and models are listed if there
/// are any. Outcomes of examinations are kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordedCalls(
    Arc<Mutex<Vec<String>>>,
    Arc<Mutex<Vec<LibraryModel>>>,
    Arc<Mutex<Vec<(ModelId, ExamOutcome)>>>,
);

impl RecordedCalls {
    pub(crate) fn keep(&self, models: Vec<LibraryModel>) {
        *self.1.lock().unwrap() = models;
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    pub(super) fn note(&self, asked: String) {
        self.0.lock().unwrap().push(asked);
    }

    pub(super) fn refuse<T: Send + 'static>(
        &self,
        asked: String,
    ) -> BoxFuture<'static, Result<T, Error>> {
        self.note(asked);
        Box::pin(async { Err(Error::new(Code::ModelInUse, "fast has it loaded")) })
    }
}

impl Models for RecordedCalls {
    fn list(&self) -> BoxFuture<'_, Result<ModelList, Error>> {
        let models = self.1.lock().unwrap().clone();
        if models.is_empty() {
            return self.refuse("list".to_owned());
        }
        let models_dir = PathBuf::from("/models");
        let disks = Vec::new();
        Box::pin(async move {
            Ok(ModelList {
                models_dir,
                disks,
                models,
            })
        })
    }
    fn fit(&self, question: models::FitQuestion) -> BoxFuture<'_, Result<Verdict, Error>> {
        self.refuse(format!("{question:?}"))
    }
    fn remove(&self, model: String, permanently: bool) -> BoxFuture<'_, Result<bool, Error>> {
        self.refuse(format!("remove {model} {permanently}"))
    }
    fn verify(&self, model: String) -> BoxFuture<'_, Result<ModelVerification, Error>> {
        self.refuse(format!("verify {model}"))
    }
    fn import(&self, path: String) -> BoxFuture<'_, Result<Vec<LibraryModel>, Error>> {
        self.refuse(format!("import {path}"))
    }
    fn catalog(&self) -> BoxFuture<'_, Result<models::CatalogAnswer, Error>> {
        self.refuse("catalog".to_owned())
    }
    fn refresh_catalog(&self) -> BoxFuture<'_, Result<CatalogRefresh, Error>> {
        self.refuse("refresh catalog".to_owned())
    }
    fn plan_setup(&self, ram: Option<String>) -> BoxFuture<'_, Result<SetupPlan, Error>> {
        self.refuse(format!("plan setup {ram:?}"))
    }
    fn folder_room(&self, path: String) -> BoxFuture<'_, Result<FolderRoom, Error>> {
        self.refuse(format!("room in {path}"))
    }
    fn search(&self, words: String) -> BoxFuture<'_, Result<Vec<HubModel>, Error>> {
        self.refuse(format!("search {words}"))
    }
    fn repository(&self, id: String) -> BoxFuture<'_, Result<HubRepository, Error>> {
        self.refuse(format!("repository {id}"))
    }
    fn readme(&self, id: String) -> BoxFuture<'_, Result<HubReadme, Error>> {
        self.refuse(format!("readme {id}"))
    }
    fn downloads(&self) -> Vec<DownloadStatus> {
        Vec::new()
    }
    fn download(
        &self,
        pull: DownloadRequest,
    ) -> BoxFuture<'_, Result<(DownloadStatus, bool), Error>> {
        let mut asked = self.0.lock().unwrap();
        let status = DownloadStatus {
            id: "1".to_owned(),
            reference: pull.reference.clone(),
            file: "m.gguf".to_owned(),
            files: Vec::new(),
            state: DownloadState::Queued,
            priority: pull.priority,
            received_bytes: 0,
            total_bytes: None,
            bytes_per_second: 0,
            eta_seconds: None,
            reason: None,
            warnings: Vec::new(),
        };
        let wanted = format!("{pull:?}");
        let new = !asked.contains(&wanted);
        asked.push(wanted);
        Box::pin(async move { Ok((status, new)) })
    }
    fn change_download(
        &self,
        id: String,
        change: DownloadChange,
    ) -> BoxFuture<'_, Result<DownloadStatus, Error>> {
        self.refuse(format!("{id} {change:?}"))
    }
    fn remove_download(&self, id: String) -> BoxFuture<'_, Result<(), Error>> {
        self.refuse(format!("remove download {id}"))
    }
    fn exam_outcome(
        &self,
        model: ModelId,
        judgment: Judgment,
    ) -> BoxFuture<'_, Option<ExamOutcome>> {
        let kept = self.2.lock().unwrap();
        let is_wanted =
            |(of, outcome): &&(ModelId, ExamOutcome)| *of == model && outcome.judgment == judgment;
        let newest = kept.iter().rev().find(is_wanted);
        let outcome = newest.map(|(_, outcome)| outcome.clone());
        Box::pin(async { outcome })
    }
    fn store_exam_outcome(&self, model: ModelId, outcome: ExamOutcome) -> BoxFuture<'_, bool> {
        self.2.lock().unwrap().push((model, outcome));
        Box::pin(async { true })
    }
}

impl DocumentIndex for RecordedCalls {
    fn status(&self) -> BoxFuture<'_, Result<Documents, Error>> {
        self.note("documents".to_owned());
        Box::pin(async { Ok(Documents::default()) })
    }
    fn add(
        &self,
        path: String,
        collection: Option<String>,
    ) -> BoxFuture<'_, Result<DocumentSource, Error>> {
        self.refuse(format!("add {path} {collection:?}"))
    }
    fn remove(&self, source: u64) -> BoxFuture<'_, Result<(), Error>> {
        self.refuse(format!("remove source {source}"))
    }
    fn read_pictures(&self, source: u64, read: bool) -> BoxFuture<'_, Result<(), Error>> {
        self.refuse(format!("read pictures of source {source}: {read}"))
    }
    fn set_paused(&self, paused: bool) {
        self.note(format!("documents paused: {paused}"));
    }
}

impl Schedules for RecordedCalls {
    fn list(&self) -> BoxFuture<'_, Result<Vec<ScheduleStatus>, Error>> {
        self.note("schedules".to_owned());
        Box::pin(async { Ok(Vec::new()) })
    }
    fn run(&self, name: String) -> BoxFuture<'_, Result<String, Error>> {
        self.note(format!("run schedule {name}"));
        Box::pin(async { Ok("wrote /tmp/a.md".to_owned()) })
    }
}
