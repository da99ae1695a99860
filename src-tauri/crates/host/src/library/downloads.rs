//! Downloads of models: from a request to a download, and from a downloaded file to a model.

use super::{ModelService, local::writable_folder, offers};
use crate::volume::Volume;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::{
    Code, Error, TierId,
    budget::Placement,
    download::{DownloadFile, DownloadState, DownloadStatus, Include},
    fit::{ContextChoice, Keeper, Verdict},
    nearest::suggest,
};
use tierbar_fetch::{FetchedFile, FileSpec, Job, OnComplete, Queue, blocking};
use tierbar_inference::services::models::{DownloadChange, DownloadRequest};
use tierbar_library::{
    Entry, Library, LibraryWatch, Origin,
    catalog::catalog,
    hub::{QuantTarget, ResolvedReference},
    is_projector,
};

impl ModelService {
    fn queue(&self) -> &Queue {
        &self.local.config.queue
    }

    /// Removes a download from the list. A tier does not get the model of one that was not complete.
    pub(super) async fn forget_download(&self, id: String) -> Result<(), Error> {
        let downloads = self.queue().watch().borrow().clone();
        self.queue().remove(&id).await?;
        let mut downloads = downloads.iter();
        match downloads.find(|known| known.id == id && known.state != DownloadState::Done) {
            Some(unfinished) => self.assignments.forget(&unfinished.reference).await,
            None => Ok(()),
        }
    }

    /// Returns the download, and whether it is new. A tier that is named gets the model at its end.
    pub(super) async fn begin_download(
        &self,
        pull: DownloadRequest,
    ) -> Result<(DownloadStatus, bool), Error> {
        let Some(tier) = pull.tier.clone() else {
            return self.fetch(pull).await;
        };
        let config = self.local.config.models.config();
        let replaces = match config.tiers.get(&tier) {
            Some(known) if known.foreign_model().is_none() => known.model.clone(),
            Some(_) => {
                let message = format!("{tier} is served by an endpoint and needs no model file");
                return Err(Error::new(Code::BadRequest, message).hint("name another tier"));
            }
            None => {
                let message = format!("there is no tier \"{tier}\"");
                let (names, open) = (
                    config.tiers.keys(),
                    "name one of the tiers in Settings > Tiers",
                );
                let hint = suggest(tier.as_str(), names.map(TierId::as_str), open);
                return Err(Error::new(Code::TierUnknown, message).hint(hint));
            }
        };
        let (download, is_new) = self.fetch(pull).await?;
        let reference = &download.reference;
        self.assignments.set(reference, &tier, &replaces).await?;
        Ok((download, is_new))
    }

    async fn fetch(&self, mut pull: DownloadRequest) -> Result<(DownloadStatus, bool), Error> {
        let shown: String = pull.reference.chars().take(100).collect();
        let message = format!("\"{shown}\" is not in the catalog");
        let unknown = Error::new(Code::ModelUnknown, message).hint(suggest(
            &pull.reference,
            catalog().names(),
            "name a model as owner/repo:quant, as the URL of a .gguf file, or as listed by `tierbar models search`",
        ));
        // A running download is returned without the network.
        if let Some(known) = self.unfinished(&pull)? {
            return self.again(known, &pull).await;
        }
        let (library, entries) = self.local.entries().await?;
        let installed = match pull.include {
            Include::Projector => installed(&pull.reference, &entries)?,
            Include::All | Include::Model => None,
        };
        if let Some(reference) = installed.and_then(Entry::reference) {
            pull.reference = reference.to_owned();
        }
        let reference = offers::parse(&pull.reference, unknown)?;
        let machine = self.local.machine_for(&entries).await;
        let suit = QuantTarget {
            machine,
            context: ContextChoice::default(),
        };
        let resolved = self.offers.resolve(&reference, &suit, &entries).await?;
        pull.reference.clone_from(&resolved.reference);
        if let Some(known) = self.unfinished(&pull)? {
            return self.again(known, &pull).await;
        }
        let warnings = warnings(&resolved, &suit, &pull)?;
        let folder = match (
            installed.and_then(|entry| entry.path.parent()),
            &pull.folder,
        ) {
            (Some(folder), _) => folder.to_owned(),
            (None, Some(folder)) => {
                let folder = folder.clone();
                let folder =
                    blocking("looking for the folder", move || writable_folder(&folder)).await?;
                self.local.import(folder.display().to_string()).await?;
                folder
            }
            (None, None) => library.models_dir().to_owned(),
        };
        let mut files = resolved.specs(&folder, pull.include);
        if pull.include == Include::All {
            files.retain(|file| !self.is_coming(file));
        }
        let is_damaged = |entry: &Entry| {
            let projector = entry.projector.as_ref();
            projector.is_some_and(|projector| projector.account.is_err())
        };
        if installed.is_some_and(is_damaged) {
            self.clear_damaged(&library, &files).await?;
        }
        let started = self.start(pull, files, warnings, folder).await?;
        self.offers.pin(&resolved).await;
        Ok(started)
    }

    async fn start(
        &self,
        pull: DownloadRequest,
        files: Vec<FileSpec>,
        mut warnings: Vec<String>,
        folder: PathBuf,
    ) -> Result<(DownloadStatus, bool), Error> {
        let room = {
            let files = files.clone();
            let missing = move || files.iter().map(FileSpec::missing).sum::<Option<u64>>();
            blocking("looking for room", move || match missing() {
                Some(bytes) if bytes > 0 => Volume::of(&folder)?.take(&folder, bytes),
                _ => Ok(None),
            })
        };
        warnings.extend(room.await?);
        let job = Job {
            reference: pull.reference,
            files,
            priority: pull.priority,
            warnings,
        };
        self.queue().add(job).await
    }

    /// Returns whether another download brings the same projector.
    fn is_coming(&self, file: &FileSpec) -> bool {
        let name = file.dest.file_name().unwrap_or_default().to_string_lossy();
        let downloads = self.queue().watch().borrow().clone();
        is_projector(&file.dest)
            && downloads.iter().any(|download| {
                let mut files = download.files.iter();
                download.state.is_under_way()
                    && files.any(|file| file.name.eq_ignore_ascii_case(&name))
            })
    }

    /// Moves projectors that cannot be read out of the way of new ones.
    async fn clear_damaged(&self, library: &Arc<Library>, files: &[FileSpec]) -> Result<(), Error> {
        let (library, files) = (Arc::clone(library), files.to_vec());
        blocking("moving the damaged projector", move || {
            for file in files.iter().filter(|file| file.dest.exists()) {
                if library.projector_account(&file.dest).is_err() {
                    library.remove(&file.dest.to_string_lossy(), false, &[])?;
                }
            }
            Ok(())
        })
        .await
    }

    pub(super) async fn alter_download(
        &self,
        id: String,
        change: DownloadChange,
    ) -> Result<DownloadStatus, Error> {
        // Checked before anything is changed.
        if let Some(state) = change.state
            && !matches!(state, DownloadState::Paused | DownloadState::Queued)
        {
            let message =
                "a download can be set to paused or queued; Tierbar sets the other states";
            return Err(Error::new(Code::BadRequest, message));
        }
        let mut changed = None;
        if let Some(priority) = change.priority {
            changed = Some(self.queue().prioritize(&id, priority).await?);
        }
        match change.state {
            Some(DownloadState::Paused) => changed = Some(self.queue().pause(&id).await?),
            Some(_) => changed = Some(self.queue().resume(&id).await?),
            None => {}
        }
        changed.ok_or_else(|| Error::new(Code::BadRequest, "give a new state or a new priority"))
    }

    fn unfinished(&self, pull: &DownloadRequest) -> Result<Option<DownloadStatus>, Error> {
        let downloads = self.queue().watch().borrow().clone();
        let mut downloads = downloads.iter();
        let known = downloads
            .find(|known| known.reference == pull.reference && known.state != DownloadState::Done);
        let Some(known) = known else { return Ok(None) };
        let has_projector = known.files.iter().any(DownloadFile::is_projector);
        match pull.include {
            // After a failure, the projector can be left out.
            Include::Model if has_projector && known.state == DownloadState::Failed => Ok(None),
            Include::Projector if !has_projector => Err(Error::new(
                Code::BadRequest,
                format!(
                    "{} is being downloaded without its projector",
                    pull.reference
                ),
            )
            .hint("wait until it is complete, then try again")),
            _ => Ok(Some(known.clone())),
        }
    }

    async fn again(
        &self,
        mut known: DownloadStatus,
        pull: &DownloadRequest,
    ) -> Result<(DownloadStatus, bool), Error> {
        if known.priority < pull.priority {
            known = self.queue().prioritize(&known.id, pull.priority).await?;
        }
        if !known.state.is_under_way() {
            known = self.queue().resume(&known.id).await?;
        }
        Ok((known, false))
    }
}

/// Returns what the user should know about a download.
///
/// # Errors
/// `OverBudget` and those of the header, unless the download is wanted anyway; why there is no projector, if it alone is wanted.
fn warnings(
    resolved: &ResolvedReference,
    suit: &QuantTarget,
    pull: &DownloadRequest,
) -> Result<Vec<String>, Error> {
    let mut warnings = Vec::new();
    match (&resolved.projector, pull.include) {
        (Ok(None), Include::Projector) => {
            let message = format!(
                "the repository of {} has no media projector",
                resolved.reference
            );
            return Err(Error::new(Code::RepositoryUnknown, message)
                .hint("this model takes text only; choose another one for images and sound"));
        }
        (Err(error), Include::Projector) => return Err(error.clone()),
        (Err(error), Include::All) => warnings.push(format!(
            "The model is downloaded without images and sound: {}.",
            error.message
        )),
        _ => {}
    }
    match offers::judge(resolved, suit, pull.include) {
        Ok(verdict) if verdict.placement == Placement::Refused => {
            if !pull.anyway && pull.include != Include::Projector {
                return Err(over_budget(&verdict));
            }
            warnings.push(verdict.summary);
        }
        Ok(verdict) => warnings.extend(verdict.warning),
        Err(error) if pull.anyway => warnings.push(error.message),
        Err(error) => return Err(error),
    }
    Ok(warnings)
}

/// Returns the installed model that a projector is to be added to, if the reference names one.
fn installed<'a>(reference: &str, entries: &'a [Entry]) -> Result<Option<&'a Entry>, Error> {
    let is_it =
        |entry: &&Entry| entry.id.as_str() == reference || entry.reference() == Some(reference);
    let Some(entry) = entries.iter().find(is_it) else {
        return Ok(None);
    };
    if entry.keeper != Keeper::Tierbar || entry.reference().is_none() {
        let message = format!(
            "{} was not downloaded by Tierbar, so its repository is unknown",
            entry.id
        );
        return Err(Error::new(Code::BadRequest, message).hint(
            "put the projector (a file with \"mmproj\" in its name) into the model's folder",
        ));
    }
    Ok(Some(entry))
}

fn over_budget(verdict: &Verdict) -> Error {
    let hint = match &verdict.instead {
        Some(instead) => format!("choose {} instead", instead.reference),
        None => "choose a smaller model or a smaller quant of this one".to_owned(),
    };
    Error::new(Code::OverBudget, verdict.summary.clone())
        .hint(format!("{hint}; to download it anyway, use --anyway"))
        .detail("needed_bytes", verdict.total_bytes)
        .detail("budget_bytes", verdict.budget_bytes)
}

/// Makes a downloaded file a model: deletes it if it is none, or else records its source.
pub(crate) fn on_complete(
    library: impl Fn() -> Arc<Library> + Send + Sync + 'static,
    watch: Arc<LibraryWatch>,
) -> OnComplete {
    Arc::new(move |job, fetched| {
        let library = library();
        let files = job.files.iter().zip(fetched);
        let origin = |(spec, fetched): (&FileSpec, &FetchedFile)| {
            let origin = Origin {
                reference: job.reference.clone(),
                url: spec.url.clone(),
                sha256: fetched.sha256.clone(),
            };
            (spec.dest.clone(), origin)
        };
        let origins: Vec<_> = files.map(origin).collect();
        let watch = Arc::clone(&watch);
        Box::pin(async move {
            let outcome =
                blocking("taking the model over", move || settle(&library, origins)).await;
            watch.look();
            outcome
        })
    })
}

fn settle(library: &Library, origins: Vec<(PathBuf, Origin)>) -> Result<(), Error> {
    let (projectors, model): (Vec<_>, Vec<_>) = origins
        .into_iter()
        .partition(|(path, _)| is_projector(path));
    if let Some((first, _)) = model.first() {
        match library.account(first) {
            Ok(_) => {}
            // Complete by its hash, but not a model: a web page, or a file broken by its publisher.
            Err(error) if error.code == Code::ModelInvalid => {
                for (path, _) in &model {
                    discard(path);
                }
                let message =
                    format!("the downloaded file is not a model and was deleted: {error}");
                return Err(Error::new(Code::Corrupt, message)
                    .hint("the published file is damaged: choose another one"));
            }
            // A valid file that this engine cannot run.
            Err(error) => tracing::info!("{} was fetched: {error}", first.display()),
        }
    }
    let mut outcome = Ok(());
    for (path, origin) in model.into_iter().chain(projectors) {
        if is_projector(&path)
            && let Err(error) = library.projector_account(&path)
        {
            discard(&path);
            outcome = Err(Error::new(
                Code::Corrupt,
                format!("the downloaded projector cannot be used and was deleted: {error}"),
            )
            .hint("the model answers text without it; download it again with `--no-media`"));
            continue;
        }
        if let Err(error) = library.record(&path, origin) {
            // The model is complete; only its source is not recorded.
            tracing::warn!("{error}");
        }
    }
    outcome
}

fn discard(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!("{} cannot be deleted: {error}", path.display());
    }
}
